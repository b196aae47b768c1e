//! `tardy rm`: removes runs, comparisons and plans.

use std::{fs, path::PathBuf};

use anyhow::Result;
use clap::Args;

use super::{Exit, output};
use crate::{
    plain::plain_path,
    run::{RemovableCampaign, RemovableRun, RemoveError},
    store::Store,
};

/// Remove runs, comparisons and plans, with all their files.
///
/// Removes without asking, and names each removed run. If one of them cannot be removed, nothing
/// is: a running run, a directory with a file that tardy did not write, a link, or, for root, files
/// of another user. A comparison or a plan is removed with all its runs.
#[derive(Debug, Args)]
pub(super) struct RmFlags {
    /// Paths, names, complete ids, `last` or `last~1`
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
}

/// What may be removed.
enum Removable {
    Run(RemovableRun),
    Campaign(RemovableCampaign),
}

/// Removes them.
pub(super) fn rm(flags: &RmFlags, store: &Store) -> Result<Exit> {
    // All of them first: `last~1` is the one that it is now.
    let mut removable: Vec<(PathBuf, Removable)> = Vec::new();
    for name in &flags.runs {
        let (path, found) = match store.find_campaign(name) {
            Some(path) => {
                let campaign = RemovableCampaign::check(&path)?;
                (path, Removable::Campaign(campaign))
            }
            None => {
                let path = store.find_whole(name)?.path;
                let run = RemovableRun::check(&path)?;
                (path, Removable::Run(run))
            }
        };
        let place = fs::canonicalize(&path).unwrap_or(path);
        // One may be named in several ways, and by the plan that it is in.
        if !removable.iter().any(|(known, _)| place.starts_with(known)) {
            removable.retain(|(known, _)| !known.starts_with(&place));
            removable.push((place, found));
        }
    }
    removable.into_iter().try_for_each(|(_, found)| found.remove())?;
    Ok(Exit::Done)
}

impl Removable {
    fn remove(self) -> Result<()> {
        match self {
            Self::Run(run) => told(run.path().to_owned(), || run.remove()),
            Self::Campaign(campaign) => told(campaign.path().to_owned(), || campaign.remove()),
        }
    }
}

fn told(path: PathBuf, remove: impl FnOnce() -> Result<(), RemoveError>) -> Result<()> {
    remove()?;
    output::put(&format!("removed {}\n", plain_path(&path)))
}

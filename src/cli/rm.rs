//! `tardy rm`: removes runs.

use std::{fs, path::PathBuf};

use anyhow::Result;
use clap::Args;

use super::{Exit, output};
use crate::{plain::plain_path, run::RemovableRun, store::Store};

/// Remove runs, with all their files.
///
/// Asks nothing, and names what it removed. All runs are looked at before the first is removed, and
/// nothing is where one of them cannot be: a run that is still being measured, a directory with a
/// file in it that tardy did not write, a link, and for root a run of another user.
#[derive(Debug, Args)]
pub(super) struct RmFlags {
    /// Paths, names, whole ids, `last` or `last~1`
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
}

/// Removes them.
pub(super) fn rm(flags: &RmFlags, store: &Store) -> Result<Exit> {
    // All of them first: `last~1` is the one that it is now.
    let mut places: Vec<PathBuf> = Vec::new();
    let mut removable = Vec::new();
    for name in &flags.runs {
        let path = store.find_whole(name)?.path;
        let run = RemovableRun::check(&path)?;
        let place = fs::canonicalize(&path).unwrap_or(path);
        // One may be named in several ways.
        if !places.contains(&place) {
            places.push(place);
            removable.push(run);
        }
    }
    removable.into_iter().try_for_each(remove)?;
    Ok(Exit::Done)
}

fn remove(run: RemovableRun) -> Result<()> {
    let path = run.path().to_owned();
    run.remove()?;
    output::put(&format!("removed {}\n", plain_path(&path)))
}

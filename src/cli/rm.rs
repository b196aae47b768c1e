//! `tardy rm`: removes runs, comparisons and plans.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use clap::{ArgGroup, Args};
use jiff::{SignedDuration, Timestamp};

use super::{Exit, list::WhereFlags, output, trend::EARLIEST_S};
use crate::{
    plain::plain_path,
    run::{RemovableCampaign, RemovableRun, RemoveError},
    store::{CampaignKind, ListedRun, Store},
    units::{Nanos, many, typed},
};

/// Remove runs, comparisons and plans, with all their files.
///
/// Removes without asking, and names each removed run. If one of them cannot be removed, nothing
/// is: a running run, a directory with a file that tardy did not write, a link, or, for root, files
/// of another user. A comparison or a plan is removed with all its runs.
///
/// With --where and --older-than it removes all that match, and keeps and names those of them that
/// cannot be removed, for example runs in progress. `tardy list --where` shows them first. Runs of
/// a plan go with their plan alone.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("chosen").args(["question", "older_than"]).multiple(true))]
pub(super) struct RmFlags {
    /// Paths, names, complete ids, `last` or `last~1`
    #[arg(value_name = "RUN", required_unless_present = "chosen", conflicts_with = "chosen")]
    runs: Vec<String>,
    #[command(flatten)]
    question: WhereFlags,
    /// Only those that started longer ago than this, e.g. 90d; without --where also comparisons and
    /// plans
    ///
    /// What has no date, or one before 2001 (of a clock that was not set), stays.
    #[arg(long, value_name = "TIME", value_parser = typed::positive, help_heading = "Runs")]
    older_than: Option<Nanos>,
}

/// What may be removed.
enum Removable {
    Run(RemovableRun),
    Campaign(RemovableCampaign),
}

/// Removes them.
pub(super) fn rm(flags: &RmFlags, store: &Store) -> Result<Exit> {
    if flags.runs.is_empty() {
        return flags.remove_chosen(store);
    }
    // All of them first: `last~1` is the one that it is now.
    let mut removable: Vec<(PathBuf, Removable)> = Vec::new();
    for name in &flags.runs {
        let path = store.find_whole(name)?.path;
        let found = Removable::check(&path)?;
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

impl RmFlags {
    /// Removes what matches, and says what of it stays.
    fn remove_chosen(&self, store: &Store) -> Result<Exit> {
        let listing = store.listing()?;
        let old = self.old()?;
        let question = self.question.question.as_ref();
        let is_meant = |run: &&ListedRun| {
            old.holds(run.entry.start()) && question.is_none_or(|question| question.holds(run))
        };
        let meant: Vec<&ListedRun> = listing.runs.iter().filter(is_meant).collect();
        let (alone, of_plans): (Vec<&ListedRun>, Vec<&ListedRun>) =
            meant.into_iter().partition(|run| run.cell().is_none());
        if question.is_some() && !of_plans.is_empty() {
            let runs = many(of_plans.len() as u64, "run");
            output::notice(&format!("{runs} of plans stay: remove the plans."));
        }
        let campaigns = listing.campaigns.iter().filter(|_| question.is_none());
        let campaigns = campaigns.filter(|campaign| old.holds(campaign.start()));
        let runs = alone.into_iter().map(|run| &run.entry.path);
        let all: Vec<&PathBuf> = runs.chain(campaigns.map(|campaign| &campaign.path)).collect();
        if all.is_empty() {
            output::notice(&format!("No such runs in {}.", plain_path(store.root())));
        }
        for path in all {
            match Removable::check(path) {
                Ok(found) => found.remove()?,
                Err(error) => output::warn(&format!("kept: {error}")),
            }
        }
        Ok(Exit::Done)
    }

    fn old(&self) -> Result<StartedBefore> {
        let ago = |age: Nanos| {
            let before = Timestamp::now().checked_sub(SignedDuration::from_nanos(age.0));
            before.context("--older-than: it is longer ago than any date")
        };
        Ok(StartedBefore(self.older_than.map(ago).transpose()?))
    }
}

/// A time before which something started; any time if that is `None`.
struct StartedBefore(Option<Timestamp>);

impl StartedBefore {
    fn holds(&self, start: Option<Timestamp>) -> bool {
        let is_dated = |start: &Timestamp| start.as_second() >= EARLIEST_S;
        self.0.is_none_or(|before| start.filter(is_dated).is_some_and(|start| start < before))
    }
}

impl Removable {
    /// A run, or a comparison or plan with its runs.
    fn check(path: &Path) -> Result<Self, RemoveError> {
        Ok(match CampaignKind::of(path) {
            Some(_) => Self::Campaign(RemovableCampaign::check(path)?),
            None => Self::Run(RemovableRun::check(path)?),
        })
    }

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

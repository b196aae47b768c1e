//! One of many runs.

use std::path::PathBuf;

use super::stamp::{KeptDetails, Stamp};
use crate::run::{RunDetails, RunEntry};

/// A run, and where it is.
#[derive(Debug, Clone)]
pub(crate) struct ListedRun {
    /// Its directory, from the store's: `nightly`, or `kernels/cells/idle` of a plan.
    pub place: PathBuf,
    /// What is known of it.
    pub entry: RunEntry,
    /// Of a run of a plan the name of its cell.
    pub(super) cell: Option<String>,
    /// How its record was; `None` if that could change.
    pub(super) stamp: Option<Stamp>,
    pub(super) kept: Option<KeptDetails>,
}

impl ListedRun {
    /// The directory of the plan and the name of the cell that it is of; absent of others.
    #[must_use]
    pub(crate) fn cell(&self) -> Option<(&str, &str)> {
        let plan = self.place.iter().next()?.to_str()?;
        Some((plan, self.cell.as_deref()?))
    }

    /// What the files beside its record say; absent before that was asked for.
    #[must_use]
    pub(crate) fn details(&self) -> Option<&RunDetails> {
        self.kept.as_ref().map(|kept| &kept.details)
    }
}

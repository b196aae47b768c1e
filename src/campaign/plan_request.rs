//! What a plan is measured by, and how somebody watches it.

use std::{path::PathBuf, time::Duration};

use crate::run::{PlanCell, PlanRecord, RunDirectory};

/// What is to be measured.
#[derive(Debug)]
pub(crate) struct PlanRequest {
    /// The record: a new one, or that of the sitting before.
    pub record: PlanRecord,
    /// Where it comes from.
    pub source: PlanSource,
    /// Where it goes.
    pub directory: PathBuf,
    /// Where other runs are.
    pub store: PathBuf,
}

/// Where a plan comes from.
#[derive(Debug)]
pub(crate) enum PlanSource {
    /// This text, of a new one.
    New(String),
    /// The directory of the sitting before, held open since it was checked.
    Resumed(RunDirectory),
}

/// A running plan.
#[derive(Debug)]
pub(crate) struct PlanProgress<'a> {
    /// The record so far.
    pub record: &'a PlanRecord,
    /// Since the present cell or pause began.
    pub within: Duration,
    /// The cell that is measured; absent in a pause.
    pub cell: Option<&'a PlanCell>,
    /// Whether the cell has just ended.
    pub has_ended: bool,
}

/// How somebody watches it.
pub(crate) struct PlanView<'a> {
    /// How often it is shown while a cell continues; absent for never.
    pub pace: Option<Duration>,
    /// What is shown.
    pub show: &'a mut dyn FnMut(&PlanProgress<'_>),
}

//! Comparisons and plans, which lie in the store beside runs: what a list says of each.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::{
    run::{
        AB, AbRecord, AbStatus, CampaignRecordError, CellStatus, PLAN, PlanRecord, PlanStatus,
        SideName,
    },
    units::many,
};

/// The directory of a plan that holds its runs.
pub(super) const CELLS: &str = "cells";

/// The directory of a comparison that holds its runs.
const BLOCKS: &str = "blocks";

/// What it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CampaignKind {
    /// Of `tardy ab`.
    Comparison,
    /// Of `tardy plan` or `tardy suite`.
    Plan,
}

impl CampaignKind {
    /// All of them.
    const ALL: [Self; 2] = [Self::Comparison, Self::Plan];

    /// The kind of campaign in the directory `place`; `None` for any other directory.
    #[must_use]
    pub(crate) fn of(place: &Path) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| place.join(kind.record()).is_file())
    }

    /// The file with its record.
    const fn record(self) -> &'static str {
        match self {
            Self::Comparison => AB,
            Self::Plan => PLAN,
        }
    }

    /// In JSON: `plan`.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Comparison => "comparison",
            Self::Plan => "plan",
        }
    }

    /// In a sentence: `a plan`.
    pub(super) const fn called(self) -> &'static str {
        match self {
            Self::Comparison => "a comparison by `tardy ab`",
            Self::Plan => "a plan",
        }
    }

    /// Where its runs are.
    pub(super) const fn runs(self) -> &'static str {
        match self {
            Self::Comparison => BLOCKS,
            Self::Plan => CELLS,
        }
    }
}

/// A comparison or a plan, as a list shows it.
#[derive(Debug, Clone)]
pub(crate) struct StoredCampaign {
    /// What it is.
    pub kind: CampaignKind,
    /// Its directory.
    pub path: PathBuf,
    /// Unique.
    pub id: String,
    /// What the user calls it.
    pub name: String,
    /// How far it came; of one that was killed `running`.
    pub status: &'static str,
    /// What is said of B; absent of a plan, and before it is said.
    pub verdict: Option<&'static str>,
    /// `plan of 12 cells, 10 measured`
    pub what: String,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// Of a plan the name of the cell of each run, by its path from the plan's directory.
    pub(super) cells: BTreeMap<String, String>,
}

impl StoredCampaign {
    /// Reads the record in `path`.
    ///
    /// # Errors
    /// It is damaged or newer than this tardy.
    pub(super) fn read(kind: CampaignKind, path: &Path) -> Result<Self, CampaignRecordError> {
        match kind {
            CampaignKind::Comparison => {
                AbRecord::open(path).map(|record| Self::of_ab(path, record))
            }
            CampaignKind::Plan => PlanRecord::open(path).map(|record| Self::of_plan(path, record)),
        }
    }

    fn of_ab(path: &Path, record: AbRecord) -> Self {
        let status = match record.status {
            AbStatus::Running => "running",
            AbStatus::Complete => "complete",
            AbStatus::Interrupted => "interrupted",
            AbStatus::Invalid => "invalid",
            AbStatus::Failed => "failed",
        };
        let compared = record.blocks.iter().filter(|block| block.compared);
        let a = compared.clone().filter(|block| block.side == SideName::A).count();
        let b = compared.count() - a;
        Self {
            kind: CampaignKind::Comparison,
            path: path.into(),
            id: record.id,
            name: record.name,
            status,
            verdict: (!record.figures.is_empty()).then(|| record.verdict.as_str()),
            what: format!("comparison of {} of A, {b} of B", many(a as u64, "block")),
            started_at: record.started_at,
            cells: BTreeMap::new(),
        }
    }

    fn of_plan(path: &Path, record: PlanRecord) -> Self {
        let status = match record.status {
            PlanStatus::Running => "running",
            PlanStatus::Complete => "complete",
            PlanStatus::OverBudget => "over_budget",
            PlanStatus::Interrupted => "interrupted",
            PlanStatus::Failed => "failed",
        };
        let measured = record.count(CellStatus::Measured);
        let all = many(record.cells.len() as u64, "cell");
        let cells = record.cells.into_iter();
        Self {
            kind: CampaignKind::Plan,
            path: path.into(),
            what: format!("plan of {all}, {measured} measured"),
            id: record.id,
            name: record.name,
            status,
            verdict: None,
            started_at: record.started_at,
            cells: cells.filter_map(|cell| Some((cell.path?, cell.name))).collect(),
        }
    }

    /// When it started; `None` if the record names no time.
    #[must_use]
    pub(crate) fn start(&self) -> Option<jiff::Timestamp> {
        self.started_at.parse().ok()
    }
}

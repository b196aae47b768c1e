//! `plan.json`: the record of one plan that is measured on this machine, cell by cell.
//!
//! The JSON Schema is `docs/plan.schema.json`; `docs/reference/plans.md` explains it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    ab_record::AbCommand,
    campaign_record::{self, CampaignRecord, CampaignRecordError},
    caveat::Validity,
    directory::RunDirectory,
    document::Status,
};

/// The file's name.
pub const PLAN: &str = "plan.json";

/// Whoever measures a plan has this file of its directory locked.
pub const PLAN_LOCK: &str = "plan.lock";

/// The version of `plan.json` that this tardy writes. Raised by any change a reader would notice.
pub const PLAN_SCHEMA_VERSION: u32 = 1;

/// What `plan.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanRecord {
    /// See [`PLAN_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Unique: start time in ms and four random digits.
    pub id: String,
    /// What the user calls it; the plan's name and the id where no name was given.
    pub name: String,
    /// The plan's own name.
    pub plan: String,
    /// The command line that began it.
    pub argv: Vec<String>,
    /// How far it came. Of one that was killed it stays `running`.
    pub status: PlanStatus,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// RFC 3339, UTC; null until the end.
    pub ended_at: Option<String>,
    /// `random`: drawn anew for each repeat; `listed`: as in the plan.
    pub order: String,
    /// What a random order was drawn by.
    pub seed: u64,
    /// How often each combination is measured.
    pub repeat: u32,
    /// How long nothing is done between two cells, ns.
    pub pause_ns: u64,
    /// The time that all of it may take, over all sittings, ns; null for no limit.
    pub budget_ns: Option<u64>,
    /// The time that it took so far, over all sittings, ns.
    pub spent_ns: u64,
    /// How often it was begun or resumed.
    pub sittings: u32,
    /// Limits of the plan's file, as `--gate` takes them; absent if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    /// The command that restores what the prepare commands changed; null if it has none.
    pub undo: Option<String>,
    /// Whether a prepare command may have changed the machine since the last restore.
    pub is_prepared: bool,
    /// The rows of the matrix, in the order of the plan.
    pub rows: Vec<String>,
    /// Its columns; one without a name where only rows differ.
    pub columns: Vec<String>,
    /// The cells in the order in which they are measured.
    pub cells: Vec<PlanCell>,
    /// The prepare and undo commands that were run, in the order of time.
    pub commands: Vec<AbCommand>,
    /// Why it ended, if it could not continue; null elsewhere.
    pub error: Option<String>,
}

/// How far a plan came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// It is running, or was killed.
    Running,
    /// Every cell was measured, or could not be.
    Complete,
    /// The next cell did not fit into what was left of the budget.
    OverBudget,
    /// Ctrl-C or a signal ended it early.
    Interrupted,
    /// Something could not be done: see `error`.
    Failed,
}

/// One cell: a combination of the plan, in one of its repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanCell {
    /// What people call it: its row and its column.
    pub name: String,
    /// The part of the plan that it belongs to; absent if the plan has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// As in `rows`.
    pub row: String,
    /// As in `columns`.
    pub column: String,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// The words of `tardy run` that measure it.
    pub words: Vec<String>,
    /// The command that prepares the machine for it; null for none.
    pub prepare: Option<String>,
    /// How long it should measure with its warm-up, ns.
    pub expected_ns: u64,
    /// Its run directory, from that of the plan; null until it was begun. One that was begun again
    /// has another.
    pub path: Option<String>,
    /// The id of its run; absent until it was begun, and in records of versions that did not keep
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// What came of it.
    pub status: CellStatus,
    /// The verdict on its run; null until it was measured.
    pub validity: Option<Validity>,
    /// How its run ended; null until it was measured.
    pub run_status: Option<Status>,
    /// How long it took with everything, ns; null until it was measured, and where another sitting
    /// began it.
    pub taken_ns: Option<u64>,
    /// Why the run is missing; null elsewhere.
    pub error: Option<String>,
}

/// What came of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CellStatus {
    /// Not measured yet.
    Pending,
    /// Its run is whole.
    Measured,
    /// It could not be measured: see `error`. Resuming tries again.
    Failed,
}

impl CampaignRecord for PlanRecord {
    const WHAT: &'static str = "plan";
    const NEWEST: u32 = PLAN_SCHEMA_VERSION;

    fn version(&self) -> u32 {
        self.schema_version
    }

    fn paths(&self) -> impl Iterator<Item = &str> {
        self.cells.iter().filter_map(|cell| cell.path.as_deref())
    }
}

impl PlanRecord {
    /// Reads the record in `directory`.
    ///
    /// # Errors
    /// None is there, or it is damaged or newer than this tardy.
    pub fn open(directory: &Path) -> Result<Self, CampaignRecordError> {
        campaign_record::read(directory.join(PLAN))
    }

    /// Reads the record in a directory that is held open, to continue with it; `shown` is where
    /// that is.
    ///
    /// # Errors
    /// As [`PlanRecord::open`]; or the caller is not the only one who can have written it.
    pub fn read_own(directory: &RunDirectory, shown: &Path) -> Result<Self, CampaignRecordError> {
        campaign_record::read_own(directory, PLAN, shown)
    }

    /// Cells of this status.
    #[must_use]
    pub fn count(&self, status: CellStatus) -> usize {
        self.cells.iter().filter(|cell| cell.status == status).count()
    }

    /// How long the cells that are pending will take, ns: what they measure, what arming and the
    /// rest took of those that were measured, and pauses.
    #[must_use]
    pub fn left_ns(&self) -> u64 {
        let pending = self.cells.iter().filter(|cell| cell.status == CellStatus::Pending);
        let each = |cell: &PlanCell| self.cell_ns(cell).saturating_add(self.pause_ns);
        let all = pending.map(each).fold(0, u64::saturating_add);
        all.saturating_sub(self.pause_ns)
    }

    /// How long one cell will take, ns.
    #[must_use]
    pub fn cell_ns(&self, cell: &PlanCell) -> u64 {
        /// Before anything is known of it.
        const ASSUMED_NS: u64 = 300_000_000;
        let over = |cell: &PlanCell| Some(cell.taken_ns?.saturating_sub(cell.expected_ns));
        let known: Vec<u64> = self.cells.iter().filter_map(over).collect();
        let sum = known.iter().copied().fold(0, u64::saturating_add);
        let mean = sum.checked_div(known.len() as u64).unwrap_or(ASSUMED_NS);
        cell.expected_ns.saturating_add(mean)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A plan of two cells, of which the first is measured.
    pub(crate) fn record() -> PlanRecord {
        let cell = |row: &str, status, taken_ns| PlanCell {
            name: row.into(),
            part: None,
            row: row.into(),
            column: String::new(),
            repeat: 1,
            words: vec!["fake".into()],
            prepare: None,
            expected_ns: 2_000_000_000,
            path: Some(format!("cells/{row}")),
            run_id: None,
            status,
            validity: None,
            run_status: None,
            taken_ns,
            error: None,
        };
        PlanRecord {
            schema_version: PLAN_SCHEMA_VERSION,
            id: "i".into(),
            name: "n".into(),
            plan: "p".into(),
            argv: Vec::new(),
            status: PlanStatus::Running,
            started_at: String::new(),
            ended_at: None,
            order: "listed".into(),
            seed: 1,
            repeat: 1,
            pause_ns: 500_000_000,
            budget_ns: None,
            spent_ns: 0,
            sittings: 1,
            gates: Vec::new(),
            undo: None,
            is_prepared: false,
            rows: vec!["a".into(), "b".into()],
            columns: vec![String::new()],
            cells: vec![
                cell("a", CellStatus::Measured, Some(3_000_000_000)),
                cell("b", CellStatus::Pending, None),
            ],
            commands: Vec::new(),
            error: None,
        }
    }

    #[test]
    fn the_time_left_is_what_is_measured_and_what_the_rest_took_so_far() {
        let mut record = record();
        assert_eq!(record.left_ns(), 3_000_000_000, "no pause after the last cell");
        record.cells[0].status = CellStatus::Pending;
        assert_eq!(record.left_ns(), 6_500_000_000);
        record.cells[0].taken_ns = None;
        assert_eq!(record.left_ns(), 2 * 2_300_000_000 + 500_000_000);
    }

    #[test]
    fn a_record_comes_back_and_what_is_none_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let open = || PlanRecord::open(place.path());
        assert!(open().unwrap_err().to_string().contains("no plan was measured there"));
        let write = |text: &str| std::fs::write(place.path().join(PLAN), text).unwrap();
        write(&serde_json::to_string(&record()).unwrap());
        assert_eq!(open().unwrap(), record());
        let mut other = record();
        other.cells[0].path = Some("../../etc".into());
        write(&serde_json::to_string(&other).unwrap());
        assert!(open().unwrap_err().to_string().contains("leads out"));
        write(&serde_json::to_string(&record()).unwrap());
        std::os::unix::fs::symlink("/etc", place.path().join("cells")).unwrap();
        assert!(open().unwrap_err().to_string().contains("cells is a link"));
        let newer = PlanRecord { schema_version: 9, ..record() };
        write(&serde_json::to_string(&newer).unwrap());
        assert!(open().unwrap_err().to_string().contains("schema_version 9"));
        write("{");
        assert!(open().unwrap_err().to_string().contains("plan.json is damaged"));
    }
}

//! `ab.json`: the record of one comparison of two sides in blocks. `ab --json` prints the same.
//!
//! The JSON Schema is `docs/ab.schema.json`; `docs/how-to/ab.md` explains it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    campaign_record::{self, CampaignRecord, CampaignRecordError},
    caveat::{Effect, Validity},
    compared::{AbVerdict, BandDifference, ComparedFigureRow},
};

/// The file's name.
pub const AB: &str = "ab.json";

/// Whoever measures a comparison has this file of its directory locked.
pub const AB_LOCK: &str = "ab.lock";

/// The version of `ab.json` that this tardy writes. Raised by any change a reader would notice.
pub const AB_SCHEMA_VERSION: u32 = 2;

/// What `ab.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AbRecord {
    /// See [`AB_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Unique: start time in ms and four random digits.
    pub id: String,
    /// What the user calls it; the id where no name was given.
    pub name: String,
    /// The command line that made it.
    pub argv: Vec<String>,
    /// How far it came. Of one that was killed it stays `running`.
    pub status: AbStatus,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// RFC 3339, UTC; null until the end.
    pub ended_at: Option<String>,
    /// What is said of B, compared with A: worse if any figure is worse, else better if any is,
    /// else the same if any is, else inconclusive.
    pub verdict: AbVerdict,
    /// The names of the figures that are judged, chosen beforehand.
    pub judged: Vec<String>,
    /// The judged figures at the last look; empty before the first.
    pub figures: Vec<ComparedFigureRow>,
    /// The largest floor of them: the share by which equal sides would differ, in 5% of such
    /// comparisons by more. Null before the first look.
    pub floor: Option<f64>,
    /// Which causes differ between the sides, band by band: what the slowest samples of the
    /// compared blocks were blamed on. Null until the end, and where not all of these were
    /// traced or some have too few samples for a band.
    pub causes: Option<Vec<BandDifference>>,
    /// The looks that were fixed beforehand; empty until they are.
    pub looks: Vec<AbLook>,
    /// What the order of the blocks was drawn by.
    pub seed: u64,
    /// A: what is compared with.
    pub a: AbSideRecord,
    /// B: what is judged.
    pub b: AbSideRecord,
    /// The command that restores what the prepare commands changed; null if it has none.
    pub undo: Option<String>,
    /// The time that all of it may take, ns.
    pub budget_ns: u64,
    /// How long a block measures, ns; null until that is planned.
    pub block_ns: Option<u64>,
    /// How long a pair takes with arming and preparing, ns; null until that is planned.
    pub pair_ns: Option<u64>,
    /// The blocks in the order of time.
    pub blocks: Vec<AbBlock>,
    /// The prepare and undo commands that were run, in the order of time.
    pub commands: Vec<AbCommand>,
    /// Caveats of the blocks, each once, worst first.
    pub caveats: Vec<AbCaveat>,
    /// Why it ended, if it could not continue; null elsewhere.
    pub error: Option<String>,
}

/// How far a comparison came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AbStatus {
    /// It is running, or was killed.
    Running,
    /// It was decided, or its budget was used up.
    Complete,
    /// Ctrl-C or a signal ended it early.
    Interrupted,
    /// A block was invalid.
    Invalid,
    /// Something could not be done: see `error`.
    Failed,
}

/// One of the two that a comparison measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SideName {
    /// What is compared with.
    A,
    /// What is judged.
    B,
}

impl SideName {
    /// In the names of blocks: `a`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }

    /// For people: `A`.
    #[must_use]
    pub const fn letter(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }
}

/// How one side is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AbSideRecord {
    /// Its own options, as typed.
    pub options: String,
    /// The command that is run before each of its blocks; null for none.
    pub prepare: Option<String>,
}

/// When to look whether it is decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AbLook {
    /// After this number of pairs.
    pub pairs: u32,
    /// What was said then; null for a look that did not come.
    pub verdict: Option<AbVerdict>,
}

/// One block: a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AbBlock {
    /// Its run directory, below that of `ab.json`.
    pub path: String,
    /// Which side it measured.
    pub side: SideName,
    /// Whether it was to be compared: not so the first of each side, which shows that it can be
    /// measured and how long that takes.
    pub compared: bool,
    /// The verdict of its run.
    pub validity: Validity,
    /// What is compared of it: its samples of all series; of series with a schedule one for each
    /// period, as in `scheduled` of `run.json`.
    pub samples: u64,
    /// How long it measured, ns.
    pub measured_ns: u64,
    /// How long it took with arming and preparing, ns.
    pub taken_ns: u64,
}

/// A prepare or undo command that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AbCommand {
    /// `prepare-a`, `prepare-b` or `undo`; of a plan `prepare` or `undo`.
    pub what: String,
    /// The block, or cell of a plan, before which it ran; null for `undo`.
    pub block: Option<String>,
    /// Its exit code; null where a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it; null elsewhere.
    pub signal: Option<i32>,
    /// How long it took, ns.
    pub taken_ns: u64,
}

/// A caveat of some blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AbCaveat {
    /// As in `run.json`.
    pub code: String,
    /// What it does to the verdict.
    pub effect: Effect,
    /// Blocks of A that have it.
    pub blocks_a: u32,
    /// Blocks of B that have it.
    pub blocks_b: u32,
    /// What was found in the first of them.
    pub text: String,
    /// What to do about it.
    pub remedy: String,
}

impl CampaignRecord for AbRecord {
    const WHAT: &'static str = "comparison";
    const NEWEST: u32 = AB_SCHEMA_VERSION;

    fn version(&self) -> u32 {
        self.schema_version
    }

    fn paths(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().map(|block| block.path.as_str())
    }
}

impl AbRecord {
    /// Reads the record in `directory`.
    ///
    /// # Errors
    /// None is there, or it is damaged or newer than this tardy.
    pub fn open(directory: &Path) -> Result<Self, CampaignRecordError> {
        campaign_record::read(directory.join(AB))
    }

    /// The side of this name.
    #[must_use]
    pub const fn side(&self, side: SideName) -> &AbSideRecord {
        match side {
            SideName::A => &self.a,
            SideName::B => &self.b,
        }
    }
}

//! `settings.json`: what each setting of the machine was found to be worth. `check --measure
//! --json` prints the same; `docs/reference/check.md` explains it.

use serde::{Deserialize, Serialize};

use super::compared::{AbVerdict, ComparedFigureRow};

/// The file's name.
pub const SETTINGS: &str = "settings.json";

/// The version of `settings.json` that this tardy writes.
pub const SETTINGS_SCHEMA_VERSION: u32 = 1;

/// What `settings.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SettingsRecord {
    /// See [`SETTINGS_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Unique: start time in ms and four random digits.
    pub id: String,
    /// The command line that made it.
    pub argv: Vec<String>,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// The measured CPUs, as a list.
    pub cpus: String,
    /// What both sides of each comparison have in common, as options of `tardy run`.
    pub common: Vec<String>,
    /// Pairs of blocks of each setting.
    pub pairs: u32,
    /// How long a block measures, ns.
    pub block_ns: u64,
    /// What the order of the blocks was drawn by; of each setting one more.
    pub seed: u64,
    /// The expected share of false ones among what is called better or worse, at most.
    pub false_discovery_rate: f64,
    /// Whether it was ended before all was measured.
    pub interrupted: bool,
    /// Best first.
    pub settings: Vec<TriedSetting>,
    /// What was not tried here, and why.
    pub not_tried: Vec<UntriedSetting>,
}

/// A setting that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TriedSetting {
    /// As in `--set`; `shield` and `smt_siblings` for the flags of that kind.
    pub name: String,
    /// What it is about.
    pub what: String,
    /// What it is now.
    pub now: String,
    /// What was tried.
    pub tried: String,
    /// What keeping it may break.
    pub may_break: String,
    /// Over all figures: worse if any is worse, else better if any is, else the same if all are.
    /// Null where it was not judged.
    pub verdict: Option<AbVerdict>,
    /// Why it was not judged; null where it was.
    pub not_judged: Option<String>,
    /// The directory of its comparison, from that of this file; null if it has none.
    pub comparison: Option<String>,
    /// Each figure; empty where it was not judged.
    pub figures: Vec<TriedFigure>,
}

/// One figure of a setting that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TriedFigure {
    /// As in `ab.json`, with the verdict and interval over all settings.
    #[serde(flatten)]
    pub row: ComparedFigureRow,
    /// The probability of such pairs without a difference.
    pub p: f64,
    /// The smallest false discovery rate at which it would be a discovery.
    pub p_adjusted: f64,
}

#[cfg(test)]
impl TriedFigure {
    /// The figure `name`, whose ratio is `ratio`, by six pairs.
    pub(crate) fn example(name: &str, ratio: f64, verdict: AbVerdict) -> Self {
        let row = ComparedFigureRow {
            series: None,
            figure: name.into(),
            unit: super::compared::ComparedUnit::Ns,
            above_ns: None,
            lower_is_better: true,
            a: 1.0,
            b: ratio,
            ratio,
            low: Some(ratio * 0.9),
            high: Some(ratio * 1.1),
            margin: 0.05,
            floor: Some(0.05),
            pairs: 6,
            pairs_needed: None,
            verdict,
        };
        Self { row, p: 0.001, p_adjusted: 0.01 }
    }
}

/// A setting that was not tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UntriedSetting {
    /// As in `--set`.
    pub name: String,
    /// Why.
    pub why: String,
    /// Whether it has the value that would be tried.
    pub is_so: bool,
}

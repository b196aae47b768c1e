//! A comparison as the page shows it: the answer in words, figures, shift, facts and causes.

use serde::{Deserialize, Serialize};

use crate::run::{AbVerdict, BandDifference, ComparedFigureRow};

/// One side of runs against one other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageComparison {
    /// Places of A's runs in `runs`.
    pub a: Vec<u32>,
    /// Those of B's.
    pub b: Vec<u32>,
    /// What A is called.
    pub a_name: String,
    /// What B is called, which is judged.
    pub b_name: String,
    /// What is said of B.
    pub verdict: AbVerdict,
    /// Whether there is enough to judge anything; else it is only described.
    pub judged: bool,
    /// What the figures came to, in words.
    pub sentence: String,
    /// Which cause differs, in words; empty if that is unknown.
    pub cause: String,
    /// The figures that are judged, or are to be.
    pub figures: Vec<ComparedFigureRow>,
    /// The other figures.
    pub described: Vec<ComparedFigureRow>,
    /// The ratio at each percentile with its interval.
    pub shift: Vec<ShiftPoint>,
    /// What the intervals of the shift are; empty if it has no shift.
    pub shift_meaning: String,
    /// What is not the same in all runs.
    pub facts: Vec<FactDifference>,
    /// What the slowest samples were blamed on, side by side.
    pub causes: Vec<BandDifference>,
    /// What cannot be told, and what it would take.
    pub remarks: Vec<String>,
}

/// One percentile of B against that of A.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShiftPoint {
    /// The series; null for all series together.
    pub series: Option<String>,
    /// Which percentile: `99.9`.
    pub percentile: String,
    /// That of A, ns; of several runs the geometric mean.
    pub a_ns: f64,
    /// That of B.
    pub b_ns: f64,
    /// B / A.
    pub ratio: f64,
    /// The lower end of the ratio's 95% interval; null if it has none.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// What the interval is from.
    pub basis: ShiftBasis,
}

/// What an interval of a shift is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ShiftBasis {
    /// The samples of one run a side: it says nothing of how much runs differ.
    Samples,
    /// Several runs a side.
    Runs,
}

impl ShiftBasis {
    /// What an interval of this kind says.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Samples => {
                "what the samples of these two runs leave open; other runs of the same set-up \
                 differ by more"
            }
            Self::Runs => "how much the runs of a side differ among themselves",
        }
    }
}

/// A fact that differs between runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FactDifference {
    /// Which: `kernel`, `policy`.
    pub fact: String,
    /// What the runs of A say, each different one once.
    pub a: Vec<String>,
    /// What those of B say.
    pub b: Vec<String>,
}

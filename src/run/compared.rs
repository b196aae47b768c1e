//! One figure of B beside that of A, and one band of causes, as `ab --json`, `ab.json` and
//! `compare --json` have them.

use serde::{Deserialize, Serialize};

use super::peaks::Cause;

/// What is said of B, compared with A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AbVerdict {
    /// B is better: the whole interval lies on that side.
    Better,
    /// B is worse.
    Worse,
    /// Whatever the difference is, it is smaller than the margin.
    Same,
    /// None of these can be said.
    Inconclusive,
}

impl AbVerdict {
    /// As in the record: `better`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// What the values of a compared figure are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ComparedUnit {
    /// Latencies in ns.
    Ns,
    /// Shares, 0 to 1: of samples above `above_ns`, or of periods that were missed.
    Share,
}

/// One figure of B, compared with A.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedFigureRow {
    /// The series; null for all series together.
    pub series: Option<String>,
    /// Which: p50, p90, p99, p99.9, p99.99, max or missed.
    pub figure: String,
    /// What `a` and `b` are.
    pub unit: ComparedUnit,
    /// Of a percentile for which the blocks are too short: `a` and `b` are the shares of samples
    /// above this latency, ns. Otherwise null.
    pub above_ns: Option<u64>,
    /// Whether B is better where it has less.
    pub lower_is_better: bool,
    /// The figure of A; of several blocks or runs their geometric mean. Of a share of few samples
    /// half a sample more than there were, as none has no logarithm, but for the missed periods of
    /// runs.
    pub a: f64,
    /// That of B.
    pub b: f64,
    /// B / A.
    pub ratio: f64,
    /// Lower end of the ratio's interval; null if it has none.
    pub low: Option<f64>,
    /// Upper end of the ratio's interval; null if it has none.
    pub high: Option<f64>,
    /// Differences below this share are called the same, 0.05 for 5%: what was asked for, or the
    /// floor where that is higher.
    pub margin: f64,
    /// The share by which equal sides would differ, in 5% of such comparisons by more; null where
    /// nothing tells.
    pub floor: Option<f64>,
    /// Pairs that it uses; 0 if one run is compared with one other.
    pub pairs: u32,
    /// Pairs that it would take to decide, if mean and spread stay as they are; null where it is
    /// decided, where it would take more than 100,000, and where nothing tells.
    pub pairs_needed: Option<u32>,
    /// What follows.
    pub verdict: AbVerdict,
}

/// What the samples of a band were blamed on, A beside B. All times are means per sample of the
/// band, in ns; of several runs of a side the mean of theirs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BandDifference {
    /// `p99`: the samples above each side's own 99th percentile.
    pub band: String,
    /// Their mean latency in A.
    pub a_ns: f64,
    /// The same in B.
    pub b_ns: f64,
    /// How much of the time of A was blamed, if only on `unexplained`, 0 to 1.
    pub blamed_a: f64,
    /// The same of B.
    pub blamed_b: f64,
    /// Where the difference comes from, the largest first. What was not blamed at all is missing.
    pub causes: Vec<CauseDifference>,
}

/// One cause's part of both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CauseDifference {
    /// What kind.
    pub cause: Cause,
    /// Which one.
    pub name: String,
    /// What it had of a sample's latency in A, ns.
    pub a_ns: f64,
    /// The same in B.
    pub b_ns: f64,
}

impl CauseDifference {
    /// By how much it has more in B, ns.
    #[must_use]
    pub fn difference_ns(&self) -> f64 {
        self.b_ns - self.a_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_written_as_it_is_called() {
        for verdict in
            [AbVerdict::Better, AbVerdict::Worse, AbVerdict::Same, AbVerdict::Inconclusive]
        {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.as_str());
        }
    }
}

//! The few figures of the files beside `run.json`, and how they are kept: each name once. Of 64
//! CPUs the same dozen of causes would otherwise be most of what is kept of a run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::peaks::Cause;

/// The few figures of each series.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "DetailsTable", into = "DetailsTable")]
pub struct RunDetails {
    /// One entry a series of which anything is known.
    pub series: Vec<SeriesDetails>,
}

/// Those of one series.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SeriesDetails {
    /// Its name.
    pub name: String,
    /// The median of the maxima of equal stretches, each a twentieth of the planned length, ns.
    /// `None` if `series.hlog` is damaged, or holds not one whole stretch.
    pub block_max_ns: Option<i64>,
    /// What its late samples were blamed on; `None` if the run was not traced.
    pub late: Option<LateDetails>,
}

/// What the late samples of a series were blamed on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LateDetails {
    /// Sum of their latencies, ns.
    pub ns: u64,
    /// The causes with the largest sums, largest first.
    pub causes: Vec<CauseSum>,
}

/// One cause of late samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CauseSum {
    /// What kind.
    pub cause: Cause,
    /// Which one; a run of many CPUs has each name many times.
    pub name: Arc<str>,
    /// Its part of all latencies, ns.
    pub ns: u64,
}

impl RunDetails {
    /// Those of the series of this name.
    #[must_use]
    pub fn series(&self, name: &str) -> Option<&SeriesDetails> {
        self.series.iter().find(|series| series.name == name)
    }
}

/// All causes of a run, and its series.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct DetailsTable {
    causes: Vec<(Cause, String)>,
    series: Vec<SeriesRow>,
}

/// Name, usual maximum and what its late samples were blamed on.
type SeriesRow = (String, Option<i64>, Option<LateRow>);

/// Sum of late latencies, and of each cause its place in the table and its part, ns.
type LateRow = (u64, Vec<(usize, u64)>);

impl From<RunDetails> for DetailsTable {
    fn from(details: RunDetails) -> Self {
        let mut causes: Vec<(Cause, String)> = Vec::new();
        let mut place = |own: &CauseSum| {
            let is_it = |known: &(Cause, String)| known.0 == own.cause && known.1 == *own.name;
            causes.iter().position(is_it).unwrap_or_else(|| {
                causes.push((own.cause, own.name.to_string()));
                causes.len() - 1
            })
        };
        let mut late = |own: LateDetails| -> LateRow {
            (own.ns, own.causes.iter().map(|cause| (place(cause), cause.ns)).collect())
        };
        let mut series = Vec::new();
        for own in details.series {
            series.push((own.name, own.block_max_ns, own.late.map(&mut late)));
        }
        Self { causes, series }
    }
}

impl From<DetailsTable> for RunDetails {
    fn from(DetailsTable { causes, series }: DetailsTable) -> Self {
        let causes: Vec<(Cause, Arc<str>)> =
            causes.into_iter().map(|(cause, name)| (cause, name.into())).collect();
        // A place that is not there is of a damaged file: its cause is absent.
        let cause = |(place, ns): (usize, u64)| {
            let (cause, name) = causes.get(place)?;
            Some(CauseSum { cause: *cause, name: Arc::clone(name), ns })
        };
        let late = |(ns, parts): LateRow| LateDetails {
            ns,
            causes: parts.into_iter().filter_map(cause).collect(),
        };
        let row = |(name, block_max_ns, own): SeriesRow| SeriesDetails {
            name,
            block_max_ns,
            late: own.map(late),
        };
        Self { series: series.into_iter().map(row).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_kept_once_and_all_comes_back() {
        let cause = |name: &str, ns| CauseSum { cause: Cause::Softirq, name: name.into(), ns };
        let series = |name: &str, ns| SeriesDetails {
            name: name.into(),
            block_max_ns: Some(7),
            late: Some(LateDetails { ns, causes: vec![cause("NET_RX", ns), cause("TIMER", 1)] }),
        };
        let bare = SeriesDetails { name: "rtt".into(), ..SeriesDetails::default() };
        let details = RunDetails { series: vec![series("cpu0", 5), series("cpu1", 6), bare] };
        let text = serde_json::to_string(&details).unwrap();
        assert_eq!(text.matches("NET_RX").count(), 1, "{text}");
        assert_eq!(serde_json::from_str::<RunDetails>(&text).unwrap(), details);
        let damaged = text.replace("[[0,5],", "[[9,5],");
        let found: RunDetails = serde_json::from_str(&damaged).unwrap();
        let late = found.series[0].late.as_ref().unwrap();
        assert_eq!((late.ns, late.causes.len()), (5, 1), "{damaged}");
    }
}

//! What the files beside `run.json` say of a run in a few figures, for a look at many of them: the
//! usual maximum of its stretches, and what its late samples were blamed on.

use std::{cmp::Reverse, collections::BTreeMap, io::BufReader};

use super::{
    details_table::{CauseSum, LateDetails, RunDetails, SeriesDetails},
    entry::RunEntry,
    files, hlog,
    peaks::{Blame, Cause},
    peaks_file::read_blame,
    writer::names,
};

/// Stretches into which the planned length of a run is divided.
const BLOCKS: i64 = 20;

/// Length of a stretch where the run was to continue until it was ended, or its length is unknown,
/// ns.
const BLOCK_WITHOUT_END_NS: i64 = 60_000_000_000;

/// Causes that are kept of a series: those that took longest.
const MOST_CAUSES: usize = 12;

impl RunDetails {
    /// Reads them. What is damaged is absent.
    #[must_use]
    pub fn read(run: &RunEntry) -> Self {
        let maxima = block_maxima(run).unwrap_or_default();
        let blame = read_blame(&run.path).ok().flatten();
        let late = blame.as_ref().map(late_details).unwrap_or_default();
        let details = |name: &str| SeriesDetails {
            name: name.into(),
            block_max_ns: maxima.get(name).copied(),
            late: late.get(name).cloned(),
        };
        let known =
            |details: &SeriesDetails| details.block_max_ns.is_some() || details.late.is_some();
        Self { series: run.whole().map(|series| details(&series.name)).filter(known).collect() }
    }
}

/// The median of the maxima of whole stretches, by series.
fn block_maxima(run: &RunEntry) -> Option<BTreeMap<String, i64>> {
    let log = files::open(&run.path.join(names::SERIES)).ok()?;
    let block_s = block_ns(run) as f64 / 1e9;
    let mut blocks: BTreeMap<String, BTreeMap<u64, i64>> = BTreeMap::new();
    hlog::read_maxima(BufReader::new(log), |tag, middle_s, max_ns| {
        // An interval without a sample has 0 there.
        if max_ns == 0 {
            return;
        }
        let block = (middle_s / block_s).max(0.0) as u64;
        let known = blocks.entry(tag.to_owned()).or_default().entry(block).or_insert(max_ns);
        *known = max_ns.max(*known);
    })
    .ok()?;
    // The last stretch of a run that was ended early is a part of one.
    let whole = ((run.duration_ns as f64 / 1e9 + block_s * 0.02) / block_s) as u64;
    let median = |(tag, maxima): (String, BTreeMap<u64, i64>)| {
        let mut maxima: Vec<i64> = maxima.range(..whole).map(|(_, max)| *max).collect();
        maxima.sort_unstable();
        // The lower of both middle ones: a latency that occurred.
        Some((tag, *maxima.get(maxima.len().checked_sub(1)? / 2)?))
    };
    Some(blocks.into_iter().filter_map(median).collect())
}

/// Length of a stretch: whole intervals of the log, and the same in every run of this length.
fn block_ns(run: &RunEntry) -> i64 {
    let interval_ns = run.log_interval_ns.max(1);
    let planned = run.parameters.duration_ns.map(|ns| ns / BLOCKS);
    // Counted samples have a log of a thousand intervals, or one a tenth of a second.
    let counted =
        run.parameters.samples.map(|_| i64::try_from(run.duration_ns).unwrap_or(0) / BLOCKS);
    let wanted = planned.or(counted).unwrap_or(BLOCK_WITHOUT_END_NS);
    let intervals = (wanted / interval_ns).max(1);
    intervals.saturating_mul(interval_ns)
}

/// The sums of each series.
fn late_details(blame: &Blame) -> BTreeMap<String, LateDetails> {
    let mut sums: BTreeMap<(&str, Cause, &str), u64> = BTreeMap::new();
    for (cause, _, ns) in blame.buckets.iter().flat_map(|bucket| &bucket.parts) {
        let Some(of) = blame.causes.get(*cause as usize) else { continue };
        let sum = sums.entry((&of.series, of.cause, &of.name)).or_default();
        *sum = sum.saturating_add(*ns);
    }
    let mut late: BTreeMap<String, LateDetails> = BTreeMap::new();
    for ((series, cause, name), ns) in sums {
        let own = late.entry(series.to_owned()).or_default();
        own.ns = own.ns.saturating_add(ns);
        own.causes.push(CauseSum { cause, name: name.into(), ns });
    }
    for own in late.values_mut() {
        own.causes.sort_by_key(|cause| Reverse(cause.ns));
        own.causes.truncate(MOST_CAUSES);
    }
    late
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::peaks::{Basis, CauseOf, LatencyBucket};

    #[test]
    fn the_usual_maximum_is_the_median_over_equal_whole_stretches() {
        let place = tempfile::tempdir().unwrap();
        // 2 s planned: twenty stretches of 100 ms; it was ended after 1.05 s.
        let record = serde_json::json!({
            "schema_version": 2, "id": "i", "name": "n", "status": "interrupted",
            "validity": "valid", "probe": {"name": "timer", "parameters": {}}, "loads": [],
            "parameters": {"duration_ns": 2_000_000_000_i64, "samples": null, "warmup_ns": 0,
                "stop_over_ns": null, "raw": false, "peaks": null, "peak_over_ns": null},
            "started_at": "", "duration_ns": 1_050_000_000_u64, "log_interval_ns": 100_000_000,
            "series": [{"name": "cpu0", "count": 5, "max": 9}],
        });
        std::fs::write(place.path().join(names::RUN), record.to_string()).unwrap();
        let line = |number: u32, max_ms: u32| {
            let start_s = f64::from(number) / 10.0;
            format!("Tag=cpu0,{start_s:.3},0.100,{max_ms}.000000,HIST\n#[Totals: x]\n")
        };
        let mut log = hlog::header(0.0, "x");
        (0..10).for_each(|number| log.push_str(&line(number, number + 1)));
        log.push_str(&line(10, 900));
        std::fs::write(place.path().join(names::SERIES), log).unwrap();
        let details = || RunDetails::read(&RunEntry::read(place.path()).unwrap());
        let expected = Some(5_000_000);
        assert_eq!(details().series("cpu0").unwrap().block_max_ns, expected, "1 to 10 ms");
        std::fs::write(place.path().join(names::SERIES), "Tag=cpu0,0.0,zero\n").unwrap();
        assert_eq!(details(), RunDetails::default(), "damaged");
    }

    #[test]
    fn the_parts_of_all_latencies_are_summed_by_cause() {
        let cause = |cause, name: &str| CauseOf {
            series: "cpu0".into(),
            cause,
            name: name.into(),
            basis: Basis::Measured,
        };
        let bucket = |low_ns, parts| LatencyBucket { low_ns, wakeups: 1, ns: 0, parts };
        let blame = Blame {
            causes: vec![cause(Cause::Softirq, "NET_RX"), cause(Cause::Thread, "dd")],
            buckets: vec![bucket(10, vec![(0, 1, 7)]), bucket(20, vec![(0, 1, 3), (1, 1, 40)])],
            ..Blame::default()
        };
        let late = &late_details(&blame)["cpu0"];
        let causes: Vec<_> = late.causes.iter().map(|own| (&*own.name, own.ns)).collect();
        assert_eq!((late.ns, causes), (50, vec![("dd", 40), ("NET_RX", 10)]));
    }
}

//! Whether a run stayed the same, from the intervals of `series.hlog`: the caveats that follow.

use hdrhistogram::Histogram;

use super::stationarity::{
    Aspect, ChangeKind, LevelShift, LoggedInterval, Unsteadiness, unsteadiness,
};
use crate::run::{
    CaveatKind, Document, LATE_PERIODICALLY, LEVEL_CHANGED, LevelChange, Run, SeriesPeriod, Status,
    SteadinessCaveat, hlog::IntervalSpan,
};

/// The intervals of each series of a run, in the order of its record.
#[derive(Debug, Clone)]
pub struct SeriesBlocks(Vec<Vec<LoggedInterval>>);

impl SeriesBlocks {
    /// Nothing yet, for `series` series.
    #[must_use]
    pub fn new(series: usize) -> Self {
        Self(vec![Vec::new(); series])
    }

    /// Adds the next interval of a series.
    pub fn add(&mut self, number: usize, span: &IntervalSpan, counts: &Histogram<u64>) {
        if let Some(own) = self.0.get_mut(number)
            && !counts.is_empty()
        {
            own.push(LoggedInterval {
                start_s: span.start_s,
                length_s: span.length_s,
                samples: counts.len(),
                median_ns: counts.value_at_quantile(0.5),
                max_ns: counts.max(),
            });
        }
    }

    /// Those of one series.
    #[must_use]
    pub fn of(&self, number: usize) -> &[LoggedInterval] {
        self.0.get(number).map_or(&[], Vec::as_slice)
    }

    /// What is not stationary, series by series of whole latencies.
    #[must_use]
    pub fn unsteadiness(&self, document: &Document) -> Vec<(usize, Unsteadiness)> {
        let whole = document.wakeups().count();
        let all = document.series.iter().enumerate().filter(|(_, series)| !series.is_part());
        all.filter_map(|(number, _)| Some((number, unsteadiness(self.of(number), whole)?)))
            .collect()
    }

    /// The caveats that follow, but for those that the record has; none of a run without the time
    /// of its hypervisor, and none of one that continues.
    #[must_use]
    pub fn caveats(&self, document: &Document) -> Vec<CaveatKind> {
        // Those of what was measured are in the record already. Of a run in progress some commands
        // read the log and others do not, and its verdict is to be one.
        if document.without_host.is_some() || document.status == Status::Running {
            return Vec::new();
        }
        let (mut changes, mut periods) = (Vec::new(), Vec::new());
        for (number, found) in self.unsteadiness(document) {
            let Some(series) = document.series.get(number) else { continue };
            changes.extend(found.changes.iter().map(|change| level(&series.name, change)));
            periods.extend(found.period.map(|period| SeriesPeriod {
                series: series.name.clone(),
                period_ns: period.period_ns as i64,
                events: period.events,
                share: period.share,
            }));
        }
        let mut caveats = Vec::new();
        let is_known = |code: &str| document.caveats.iter().any(|known| known.code == code);
        if !changes.is_empty() && !is_known(LEVEL_CHANGED) {
            caveats.push(SteadinessCaveat::LevelChanged { changes }.into());
        }
        if !periods.is_empty() && !is_known(LATE_PERIODICALLY) {
            caveats.push(SteadinessCaveat::LatePeriodically { periods }.into());
        }
        caveats
    }
}

/// The caveats of a run whose measurement has ended, for its record, so that whoever reads that
/// knows the whole verdict. None where the log is damaged, which is said to whoever reads it.
#[must_use]
pub fn found_in_log(run: &Run) -> Vec<CaveatKind> {
    let mut blocks = SeriesBlocks::new(run.document.series.len());
    let read = run.intervals(|number, span, counts| blocks.add(number, &span, &counts));
    read.map_or_else(|_| Vec::new(), |()| blocks.caveats(&run.document))
}

fn level(series: &str, change: &LevelShift) -> LevelChange {
    let ns = |s: f64| (s * 1e9).round() as i64;
    LevelChange {
        series: series.to_owned(),
        of: match change.aspect {
            Aspect::Middle => "median",
            Aspect::Worst => "maximum",
        },
        kind: match change.kind {
            ChangeKind::Step => "step",
            ChangeKind::Drift => "drift",
        },
        at_ns: ns(change.at_s),
        from_ns: ns(change.within_s.0),
        to_ns: ns(change.within_s.1),
        share: change.share,
        before_ns: change.before_ns as i64,
        after_ns: change.after_ns as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::SplitMix64;
    use super::*;
    use crate::run::{Validity, fixture};

    /// 100 intervals of 100 latencies; those from `from` on are twice as long.
    fn run_with_step(place: &std::path::Path, from: usize) -> Run {
        let mut random = SplitMix64::new(1);
        let mut latency = |block: usize| {
            let scale = if block >= from { 2.0 } else { 1.0 };
            (scale * (4_000.0 - 1_000.0 * random.uniform().ln())) as u64
        };
        let block = |block: usize| (0..100).map(|_| latency(block)).collect::<Vec<u64>>();
        let blocks: Vec<Vec<u64>> = (0..100).map(block).collect();
        fixture::written(place, &[("cpu0", blocks)])
    }

    #[test]
    fn a_run_that_did_not_stay_the_same_has_a_caveat() {
        let place = tempfile::tempdir().unwrap();
        let run = run_with_step(&place.path().join("step"), 60);
        let found = found_in_log(&run);
        let [CaveatKind::Steadiness(SteadinessCaveat::LevelChanged { changes })] = &found[..]
        else {
            panic!("{found:?}")
        };
        assert_eq!((changes[0].of, changes[0].kind), ("median", "step"));
        assert_eq!(changes[0].at_ns, 6_000_000_000);
        let record = run.record_with(found);
        assert_eq!(record.validity, Validity::Weakened);
        assert!(record.caveats.iter().any(|caveat| caveat.code == LEVEL_CHANGED));
        // What is in the record is not said twice, and of a run in progress nothing is.
        let mut again = Run::of(run.path.clone(), record);
        assert_eq!(found_in_log(&again), []);
        again.document.caveats.clear();
        again.document.status = Status::Running;
        assert_eq!(found_in_log(&again), []);
        let steady = run_with_step(&place.path().join("steady"), 100);
        assert_eq!(found_in_log(&steady), []);
    }

    #[test]
    fn latencies_that_are_high_at_a_beat_are_a_caveat_that_informs() {
        let place = tempfile::tempdir().unwrap();
        let block = |number: u64| {
            let late = if number % 10 == 4 { 90_000 + number } else { 5_000 };
            (0..100).map(|n| if n == 7 { late } else { 4_000 + n }).collect::<Vec<u64>>()
        };
        let blocks: Vec<Vec<u64>> = (0..200).map(block).collect();
        let run = fixture::written(&place.path().join("r"), &[("cpu0", blocks)]);
        let found = found_in_log(&run);
        let [CaveatKind::Steadiness(SteadinessCaveat::LatePeriodically { periods })] = &found[..]
        else {
            panic!("{found:?}")
        };
        assert!((periods[0].period_ns - 1_000_000_000).abs() < 20_000_000, "{periods:?}");
        let record = run.record_with(found);
        assert_eq!(record.validity, Validity::Valid);
        assert!(record.caveats.iter().any(|caveat| caveat.code == "late_periodically"));
    }
}

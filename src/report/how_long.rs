//! How long to run for a wanted statement: `tardy show RUN --how-long 'p99.9<100us'`.

use serde::Serialize;

use super::{
    gate::Gate,
    intervals::{NamedInterval, RunIntervals},
};
use crate::{
    analysis::{
        how_long::{Needed, needed},
        percentile::BlockCount,
    },
    run::{LatencyView, Run, SeriesSummary},
    units::{Nanos, count, span},
};

/// Times for which the rate of what was never seen is told, s.
const EVENT_TIMES: [(&str, f64); 3] =
    [("a minute", 60.0), ("an hour", 3_600.0), ("a day", 86_400.0)];

/// Without any event in a time T, the rate of events is below this / T at 95%.
const NONE_SEEN: f64 = 3.0;

/// Clean days after which at 95% at least 99% of days are clean: ln(0.05) / ln(0.99), less one
/// day of rounding up.
const CLEAN_DAYS: u32 = 298;

/// What a statement takes of one series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatementCost {
    /// The statement, as it was asked for.
    pub statement: String,
    /// The series.
    pub series: String,
    /// How long a run of the same kind must be, s; null where no length will do, or none follows.
    pub needed_s: Option<f64>,
    /// Whether it may take longer: none beyond the limit was seen, so that how those come in groups
    /// is not known.
    pub is_least: bool,
    /// In words.
    pub why: String,
}

/// What a statement takes, series by series.
///
/// # Errors
/// A series that the run does not have, a statement about missed periods, or a damaged log.
pub fn how_long(run: &Run, gate: &Gate) -> Result<Vec<StatementCost>, String> {
    let run = &run.led_by_responses();
    let document = &run.document;
    let names: Vec<String> = document.wakeups().map(|series| series.name.clone()).collect();
    if let Some(refusal) = gate.refusal(&names) {
        return Err(refusal);
    }
    if !gate.is_latency() {
        return Err(format!("\"{gate}\": missed periods are counted; ask for a latency"));
    }
    let (blocks, known) = (blocks(run, gate)?, RunIntervals::of(run));
    let length_s = document.duration_ns as f64 / 1e9;
    let series = document.series.iter().enumerate();
    let meant = series.filter(|(_, own)| !own.is_part() && gate.is_of(&own.name));
    let one = |(number, series): (usize, &SeriesSummary)| {
        let own = blocks.get(number).map_or(&[][..], Vec::as_slice);
        let (needed_s, is_least, why) = match gate.percent() {
            Some(percent) => {
                let interval =
                    gate.percentile().and_then(|name| known.of_series(&series.name, name));
                of_percentile(percent, interval, own).told(length_s)
            }
            None => of_max(gate, series, length_s),
        };
        StatementCost {
            statement: gate.to_string(),
            series: series.name.clone(),
            needed_s,
            is_least,
            why,
        }
    };
    Ok(meant.map(one).collect())
}

/// The samples of each interval of each series, and how many do not keep the limit.
fn blocks(run: &Run, gate: &Gate) -> Result<Vec<Vec<BlockCount>>, String> {
    let mut blocks = vec![Vec::new(); run.document.series.len()];
    let (limit, view) = (gate.limit_ns(), LatencyView::of(&run.document));
    let read = run.intervals(|number, _, counts| {
        let Some(series) = run.document.series.get(number) else { return };
        let counts = view.counts(series, &counts);
        let over = counts.iter_recorded().filter(|bucket| bucket.value_iterated_to() > limit);
        let beyond = over.map(|bucket| bucket.count_since_last_iteration());
        if let Some(own) = blocks.get_mut(number) {
            let beyond = beyond.fold(0, u64::saturating_add);
            own.push(BlockCount { samples: counts.len(), beyond });
        }
    });
    read.map_err(|error| format!("series.hlog: {error}"))?;
    Ok(blocks)
}

/// What a percentile takes.
struct PercentileCost {
    /// "20 of 60,000 were over the limit".
    seen: String,
    samples: u64,
    needed: Needed,
    percent: f64,
}

fn of_percentile(
    percent: f64,
    known: Option<&NamedInterval>,
    blocks: &[BlockCount],
) -> PercentileCost {
    let samples: u64 = blocks.iter().map(|block| block.samples).fold(0, u64::saturating_add);
    let beyond: u64 = blocks.iter().map(|block| block.beyond).fold(0, u64::saturating_add);
    let allowed = 1.0 - percent / 100.0;
    // As the gate will count them: beyond the percentile itself.
    let effect = known.and_then(|known| {
        let effective = known.effective_beyond.filter(|effective| *effective > 0.0)?;
        Some(known.samples as f64 * allowed / effective)
    });
    PercentileCost {
        seen: format!("{} of {} were over the limit", count(beyond), count(samples)),
        samples,
        needed: needed(allowed, blocks, effect),
        percent,
    }
}

impl PercentileCost {
    /// How long, s, whether at least, and why; of a run of this length.
    fn told(&self, length_s: f64) -> (Option<f64>, bool, String) {
        let Self { seen, percent, .. } = self;
        match self.needed {
            Needed::Samples { samples, is_least } => {
                let needed_s = length_s * samples / self.samples.max(1) as f64;
                let (least, length) = (if is_least { "at least" } else { "about" }, span(needed_s));
                let why = format!("{seen}: if that continues, it takes {least} {length}");
                (Some(needed_s), is_least, why)
            }
            Needed::Never { share, is_certain } => {
                let (share, allowed) = (share * 100.0, 100.0 - percent);
                let so = match is_certain {
                    true => "no length will do if the load stays",
                    false => "so few do not tell whether a longer run would keep it",
                };
                let why = format!("{seen}, {share:.3}%, and less than {allowed:.3}% may be: {so}");
                (None, false, why)
            }
            Needed::Unknown => (None, false, "nothing was measured".into()),
        }
    }
}

/// Of a maximum a run proves what was not seen in it, and no more.
fn of_max(gate: &Gate, series: &SeriesSummary, length_s: f64) -> (Option<f64>, bool, String) {
    let Some(max) = series.max else { return (None, false, "nothing was measured".into()) };
    if max > i64::try_from(gate.limit_ns()).unwrap_or(i64::MAX) {
        let why =
            format!("the largest in {} was {}: no length will do", span(length_s), Nanos(max));
        return (None, false, why);
    }
    let times = EVENT_TIMES
        .map(|(name, time)| format!("less than once in {name} takes {}", span(time * NONE_SEEN)));
    let why = format!(
        "no run proves a maximum. Without any over the limit, at 95% and if the load stays: {}, \
         99% of days takes {CLEAN_DAYS} clean days",
        times.join(", ")
    );
    (None, false, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    /// 100 intervals of 0.1 s with 1,000 latencies, `late` of which are 200 us.
    fn run(place: &std::path::Path, late: impl Fn(usize) -> usize) -> Run {
        let block = |number: usize| {
            let late = late(number);
            (0..1_000).map(|n| if n < late { 200_000 } else { 5_000 }).collect::<Vec<u64>>()
        };
        let blocks = (0..100).map(block).collect();
        fixture::written_with(place, &[("cpu0", blocks)], |document| {
            document.duration_ns = 10_000_000_000;
        })
    }

    fn asked(run: &Run, statement: &str) -> StatementCost {
        how_long(run, &statement.parse().unwrap()).unwrap().remove(0)
    }

    #[test]
    fn a_percentile_takes_as_long_as_its_late_samples_make_it() {
        let place = tempfile::tempdir().unwrap();
        let none = run(&place.path().join("none"), |_| 0);
        let found = asked(&none, "p99.99<100us");
        // 20 beyond p99.99 are 200,000 samples: twice these.
        assert!((found.needed_s.unwrap() - 20.0).abs() < 0.01 && found.is_least, "{found:?}");
        let some = run(&place.path().join("some"), |number| number % 2);
        let near = asked(&some, "p99.9<100us").needed_s.unwrap();
        assert!((2.0..8.0).contains(&near), "{near}");
        let found = asked(&some, "p99.99<100us");
        assert_eq!(found.needed_s, None);
        assert!(found.why.contains("no length will do"), "{found:?}");
    }

    #[test]
    fn a_maximum_is_never_proved() {
        let place = tempfile::tempdir().unwrap();
        let run = run(&place.path().join("r"), |number| number % 2);
        assert!(asked(&run, "max<300us").why.contains("298 clean days"));
        assert!(asked(&run, "max<100us").why.contains("200 us: no length will do"));
    }

    #[test]
    fn what_is_no_latency_of_this_run_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let run = run(&place.path().join("r"), |_| 0);
        let refused = |statement: &str| how_long(&run, &statement.parse().unwrap()).unwrap_err();
        assert!(refused("missed=0").contains("missed periods"));
        assert!(refused("cpu7:p99<1ms").contains("unknown series cpu7"));
    }
}

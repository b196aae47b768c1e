//! What a run says of its gates: decided on intervals and not on points.
//!
//! A percentile passes where its whole 95% interval keeps the limit, and fails where all of it
//! lies above. The maximum and missed periods are facts of the run: they pass or fail, and what
//! that proves stands beside them.

use serde::Serialize;

use super::{
    gate::{Gate, GatedFigure},
    intervals::{NamedInterval, RunIntervals, RunLog},
};
use crate::{
    analysis::percentile::ShareBeyond,
    run::{
        AttachedRow, CycleBegin, Document, JudgedCycles, LatencyView, Run, SeriesSummary, Validity,
        summary::ENOUGH_BEYOND,
    },
    units::{Nanos, count, many, span},
};

/// Why no percentile of a single histogram is decided, however many samples it has.
const UNORDERED: &str = "its samples are one histogram, without their order in time, so how far \
                         they depend on each other is unknown, and the interval is missing; max is \
                         decided without one";

/// What is said of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    /// The limit is kept.
    Pass,
    /// The samples do not say.
    Inconclusive,
    /// It is not kept.
    Fail,
}

impl GateVerdict {
    /// As in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Inconclusive => "inconclusive",
            Self::Fail => "fail",
        }
    }
}

/// A gate and what one series says of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GateResult {
    /// As it was asked for.
    pub gate: String,
    /// The series; null for all together.
    pub series: Option<String>,
    /// What follows.
    pub verdict: GateVerdict,
    /// Why.
    pub reason: String,
}

/// With the reason.
type Decided = (GateVerdict, String);

impl Gate {
    fn result(&self, series: &str, (verdict, reason): Decided) -> GateResult {
        GateResult { gate: self.text.clone(), series: Some(series.to_owned()), verdict, reason }
    }

    fn of_percentile(&self, found: Option<&NamedInterval>) -> Decided {
        let ns = |ns: u64| Nanos(i64::try_from(ns).unwrap_or(i64::MAX)).to_string();
        let Some(found) = found else {
            return (GateVerdict::Inconclusive, "it has no interval".into());
        };
        let few = || match found.effective_beyond {
            Some(beyond) => format!(
                "{beyond:.1} independent samples beyond it, of the {ENOUGH_BEYOND} it takes"
            ),
            None => "too few samples beyond it to say how they come in groups".into(),
        };
        match (found.low_ns, found.high_ns) {
            (Some(low), _) if !self.is_kept(low) => {
                (GateVerdict::Fail, format!("at least {}", ns(low)))
            }
            (Some(low), Some(high)) if self.is_kept(high) => {
                (GateVerdict::Pass, format!("between {} and {}", ns(low), ns(high)))
            }
            (None, Some(high)) if self.is_kept(high) => {
                (GateVerdict::Pass, format!("at most {}", ns(high)))
            }
            (Some(low), Some(high)) => (
                GateVerdict::Inconclusive,
                format!("between {} and {}: the limit lies within", ns(low), ns(high)),
            ),
            (Some(low), None) => {
                (GateVerdict::Inconclusive, format!("at least {}; {}", ns(low), few()))
            }
            (None, _) => (GateVerdict::Inconclusive, few()),
        }
    }

    /// Why so few samples beyond the limit keep it.
    fn few_beyond(&self, share: &ShareBeyond) -> String {
        let limit = Nanos(i64::try_from(self.limit).unwrap_or(i64::MAX)).typed();
        let of = count(share.samples);
        let over = if self.is_strict { "reach" } else { "exceed" };
        let found = match share.beyond {
            0 => format!("none of {of} {over} {limit}"),
            beyond => format!("at most {} of {of} {over} {limit}", count(beyond)),
        };
        let effective = share.effective.min(share.samples as f64).floor() as u64;
        format!(
            "{found}, which as {} decides it, if those that do come no more in groups than others",
            many(effective, "independent sample")
        )
    }

    /// `row`: the attached thread, or all of one name, whose series it is.
    fn of_max(&self, series: &SeriesSummary, row: Option<&AttachedRow>, length_s: f64) -> Decided {
        let Some(max) = series.max else {
            return (GateVerdict::Inconclusive, "no sample".into());
        };
        if !self.is_kept(u64::try_from(max).unwrap_or(0)) {
            return (GateVerdict::Fail, format!("the largest is {}", Nanos(max)));
        }
        let limit = Nanos(i64::try_from(self.limit).unwrap_or(i64::MAX)).typed();
        let over = if self.is_strict { "reached" } else { "exceeded" };
        if let Some(unseen) = row.and_then(AttachedRow::unseen) {
            let reason = format!(
                "{limit} {over} by none of {} that were seen, but {unseen}: the largest may have \
                 been among these",
                count(series.count)
            );
            return (GateVerdict::Inconclusive, reason);
        }
        if length_s <= 0.0 {
            let samples = count(series.count);
            let reason = format!(
                "{limit} {over} by none of {samples}; as it is unknown how long that took, nothing \
                 is said of the next ones"
            );
            return (GateVerdict::Pass, reason);
        }
        (
            GateVerdict::Pass,
            format!(
                "{limit} {over} by none of {} in {}; at 95%, less than one cluster of such \
                 samples in {} if the load stays",
                count(series.count),
                span(length_s),
                span(length_s / 3.0)
            ),
        )
    }

    /// Missed deadlines of attached threads.
    fn of_deadline(&self, judged: JudgedCycles<'_>) -> Decided {
        let JudgedCycles { row, cycles, missed, deadline_ns, .. } = judged;
        let deadline = Nanos(deadline_ns).typed();
        let found = format!("{} of {} took over {deadline}", count(missed), many(cycles, "cycle"));
        match row.unmatched {
            _ if self.is_kept(missed) && row.cycle_begin == CycleBegin::WakeUp => {
                let reason = format!(
                    "{found}, from the wake-up by another task: earlier stages are not in them; \
                     {}/response:max<={deadline} judges this stage alone",
                    row.series
                );
                (GateVerdict::Inconclusive, reason)
            }
            _ if !self.is_kept(missed) => (GateVerdict::Fail, found),
            unseen if !self.is_kept(missed.saturating_add(unseen)) => {
                (GateVerdict::Inconclusive, self.undecided(&found, missed, unseen))
            }
            _ => (GateVerdict::Pass, found),
        }
    }

    /// Why cycles that were not seen leave it open, and what would decide it.
    fn undecided(&self, found: &str, missed: u64, unseen: u64) -> String {
        let most = missed.saturating_add(unseen);
        format!(
            "{found}, and of {} more it was not seen: a run that sees all of them decides it, and \
             missed<={most} passes here",
            count(unseen)
        )
    }

    /// Whether work for others hides how late an event loop's cycles were, so that what is kept by
    /// those that were seen decides nothing.
    fn hidden(&self, document: &Document, series: &SeriesSummary) -> Option<Decided> {
        let row = document.attached_row(series).filter(|_| series.is_response())?;
        let limit_ns = match self.figure {
            GatedFigure::Missed => document.judged_by(row, series)?.deadline_ns,
            _ => i64::try_from(self.limit_ns()).unwrap_or(i64::MAX),
        };
        let longest_ns = document.other_work_over(row, limit_ns)?;
        let reason = format!(
            "its work for others took up to {}: how late what fell due meanwhile was is not known",
            Nanos(longest_ns)
        );
        Some((GateVerdict::Inconclusive, reason))
    }

    fn of_missed(&self, series: &SeriesSummary, row: Option<&AttachedRow>) -> Decided {
        let Some(missed) = series.missed else {
            return (GateVerdict::Inconclusive, "no schedule, so no missed period".into());
        };
        let periods = series.count.saturating_add(missed);
        let by_then = if series.is_response() { " by the end of the work" } else { "" };
        let found = format!("{} of {} missed{by_then}", count(missed), many(periods, "period"));
        match row.and_then(|row| row.unsure_periods) {
            _ if !self.is_kept(missed) => (GateVerdict::Fail, found),
            Some(unsure) if !self.is_kept(missed.saturating_add(unsure)) => {
                let most = missed.saturating_add(unsure);
                let reason = format!(
                    "{found}, and {} more unsure: missed<={most} passes here",
                    count(unsure)
                );
                (GateVerdict::Inconclusive, reason)
            }
            _ => (GateVerdict::Pass, found),
        }
    }
}

/// The cycles of the attached thread, or name, whose responses these are, where a deadline judged
/// them.
fn over_of<'a>(document: &'a Document, series: &'a SeriesSummary) -> Option<JudgedCycles<'a>> {
    let row = document.attached_row(series).filter(|_| series.is_response())?;
    document.judged_by(row, series)
}

/// What a run says of its gates, a line a gate and series.
///
/// # Errors
/// A gate for a series that the run does not have.
pub fn decide(run: &Run, gates: &[Gate]) -> Result<Vec<GateResult>, String> {
    let document = &run.document;
    let by_name = document.threads().chain(document.responses());
    let names: Vec<String> =
        document.wakeups().chain(by_name).map(|series| series.name.clone()).collect();
    if let Some(refusal) = gates.iter().find_map(|gate| gate.refusal(&names)) {
        return Err(refusal);
    }
    let needs_log = gates.iter().any(|gate| matches!(gate.figure, GatedFigure::Percentile(..)));
    let log = needs_log.then(|| RunLog::read(run));
    let known = log.as_ref().map(|log| KnownLatencies {
        intervals: RunIntervals::of_read(run, log),
        log: log.as_ref().ok(),
    });
    Ok(gates.iter().flat_map(|gate| of_gate(gate, document, known.as_ref())).collect())
}

/// What the log of a run says of its latencies.
struct KnownLatencies<'a> {
    intervals: RunIntervals,
    log: Option<&'a RunLog>,
}

impl KnownLatencies<'_> {
    /// How many samples of a series lie beyond the limit of a gate. Those in its bucket do, unless
    /// none does; cycles that were not seen may, and periods without one do.
    fn beyond(
        &self,
        gate: &Gate,
        document: &Document,
        series: &SeriesSummary,
    ) -> Option<ShareBeyond> {
        let number = document.series.iter().position(|own| own.name == series.name)?;
        let counts = self.log?.counts().of(number);
        let limit = gate.limit_ns();
        let over = match series.max.is_some_and(|max| u64::try_from(max).unwrap_or(0) <= limit) {
            true => 0,
            false => counts.count_between(counts.lowest_equivalent(limit), u64::MAX),
        };
        let row = document.attached_row(series);
        let unseen = row.map_or(0, |row| row.unmatched);
        let unserved = over_of(document, series).map_or(0, |own| own.cycles - series.count);
        let outside = series.above.saturating_add(unseen).saturating_add(unserved);
        let samples = counts.len().saturating_add(series.early).saturating_add(outside);
        Some(ShareBeyond {
            samples,
            beyond: over.saturating_add(outside),
            effective: self.intervals.effective(&series.name)?,
        })
    }
}

fn of_gate(
    gate: &Gate,
    document: &Document,
    known: Option<&KnownLatencies<'_>>,
) -> Vec<GateResult> {
    let length_s = document.duration_ns as f64 / 1e9;
    let is_meant = |series: &&SeriesSummary| gate.is_of(&series.name);
    let is_invalid = document.validity == Validity::Invalid;
    let one = |series: &SeriesSummary| {
        let found = match gate.figure {
            _ if is_invalid => (
                GateVerdict::Inconclusive,
                "the run is invalid, and its figures decide nothing".to_owned(),
            ),
            GatedFigure::Percentile(name, percent) => {
                let intervals = known.map(|known| &known.intervals);
                let own = intervals.and_then(|known| known.of_series(&series.name, name));
                let (mut verdict, mut reason) = gate.of_percentile(own);
                let is_unordered = intervals.is_some_and(|known| known.is_unordered(&series.name));
                let share = || known?.beyond(gate, document, series);
                if verdict == GateVerdict::Inconclusive && is_unordered {
                    reason = UNORDERED.to_owned();
                } else if verdict == GateVerdict::Inconclusive
                    && let Some(share) = share().filter(|share| share.keeps(percent))
                {
                    (verdict, reason) = (GateVerdict::Pass, gate.few_beyond(&share));
                } else if intervals.is_some_and(|known| known.counted == LatencyView::PerPeriod) {
                    reason.push_str(", per scheduled period");
                }
                (verdict, reason)
            }
            GatedFigure::Max => gate.of_max(series, document.attached_row(series), length_s),
            GatedFigure::Missed => match over_of(document, series) {
                Some(judged) => gate.of_deadline(judged),
                None => gate.of_missed(series, document.attached_row(series)),
            },
        };
        let hidden = || gate.hidden(document, series);
        let found = match found.0 {
            GateVerdict::Pass => hidden().unwrap_or(found),
            GateVerdict::Inconclusive | GateVerdict::Fail => found,
        };
        gate.result(&series.name, found)
    };
    if gate.series.is_none() && gate.is_latency() {
        return document.leading().into_iter().map(one).collect();
    }
    // That of a single thread, or of its work, is asked for by its name; but periods that passed
    // while a thread worked were missed as well, and so were deadlines.
    let others = document.of_other_kind();
    let others: Vec<&str> = others.iter().map(|(_, response)| response.name.as_str()).collect();
    let by_name = document.threads().chain(document.responses()).filter(|series| {
        let is_whole = series.thread_of.is_none() || others.contains(&series.name.as_str());
        let is_judged = is_whole && over_of(document, series).is_some();
        let are_counted = series.is_response() && (series.missed.is_some() || is_judged);
        gate.series.is_some() || (gate.figure == GatedFigure::Missed && are_counted)
    });
    document.wakeups().chain(by_name).filter(is_meant).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    fn gate(text: &str) -> Gate {
        text.parse().unwrap()
    }

    fn known(low: Option<u64>, high: Option<u64>, beyond: f64) -> NamedInterval {
        NamedInterval {
            percentile: "99.9".into(),
            value_ns: 0,
            low_ns: low,
            high_ns: high,
            samples: 20_000,
            effective_beyond: Some(beyond),
            backing: "sound",
        }
    }

    #[test]
    fn a_percentile_is_decided_by_its_interval_and_not_by_its_point() {
        use GateVerdict::{Fail, Inconclusive, Pass};
        for (limit, low, high, expected) in [
            ("90us", Some(70_000), Some(85_000), Pass),
            ("85us", Some(70_000), Some(85_000), Pass),
            ("80us", Some(70_000), Some(85_000), Inconclusive),
            ("69us", Some(70_000), Some(85_000), Fail),
            ("90us", Some(70_000), None, Inconclusive),
            ("69us", Some(70_000), None, Fail),
            ("90us", None, None, Inconclusive),
        ] {
            let found =
                gate(&format!("p99.9<={limit}")).of_percentile(Some(&known(low, high, 3.1)));
            assert_eq!(found.0, expected, "{limit} {low:?} {high:?}");
        }
        let strict = gate("p99.9<85us").of_percentile(Some(&known(Some(1), Some(85_000), 30.0)));
        assert_eq!(strict.0, Inconclusive, "the limit itself is too much");
        let few = gate("p99.9<=90us").of_percentile(Some(&known(Some(70_000), None, 3.1))).1;
        assert_eq!(few, "at least 70.0 us; 3.1 independent samples beyond it, of the 10 it takes");
        assert_eq!(gate("p99.9<=1s").of_percentile(None).0, Inconclusive);
    }

    #[test]
    fn the_maximum_says_what_it_proves_and_missed_periods_are_counted() {
        let mut own = fixture::summary("cpu0");
        let (verdict, why) = gate("max<3ms").of_max(&own, None, 30.0);
        assert_eq!(verdict, GateVerdict::Pass);
        assert_eq!(
            why,
            "3ms reached by none of 1,000 in 30 s; at 95%, less than one cluster of such \
             samples in 10 s if the load stays"
        );
        let (verdict, why) = gate("max<3ms").of_max(&own, None, 0.0);
        assert_eq!(verdict, GateVerdict::Pass);
        assert!(why.contains("unknown how long") && !why.contains("0 s"), "{why}");
        assert_eq!(gate("max<=2400us").of_max(&own, None, 30.0).0, GateVerdict::Pass);
        assert_eq!(gate("max<2400us").of_max(&own, None, 30.0).0, GateVerdict::Fail);
        assert_eq!(
            gate("missed=0").of_missed(&own, None).0,
            GateVerdict::Inconclusive,
            "no schedule"
        );
        own.missed = Some(2);
        let (verdict, why) = gate("missed=0").of_missed(&own, None);
        assert_eq!((verdict, why.as_str()), (GateVerdict::Fail, "2 of 1,002 periods missed"));
        assert_eq!(gate("missed<=2").of_missed(&own, None).0, GateVerdict::Pass);
        assert_eq!(gate("missed<2").of_missed(&own, None).0, GateVerdict::Fail);
    }

    #[test]
    fn of_attached_threads_what_was_not_seen_may_have_missed_and_have_been_the_largest() {
        use GateVerdict::{Fail, Inconclusive, Pass};
        let mut document = fixture::of("attach", &["app"]);
        let row = |unmatched: u64, unsure: u64| -> AttachedRow {
            let text = format!(
                r#"{{"series": "app", "wakeups": 1000, "by_timer": 1000, "by_interrupt": 0,
                "by_ipi": 0, "by_task": 0, "by_own_timer": 1000, "in_slack": 0, "missed": 2,
                "unsure_periods": {unsure}, "preempted": 0, "unmatched": {unmatched},
                "run": {{"count": 0}}, "ready": {{"count": 0}}, "blocked": {{"count": 0}}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        document.series[0].missed = Some(2);
        let mut of = |text: &str, row| {
            let rows = vec![row];
            document.attached = Some(crate::run::AttachRecord { rows, ..Default::default() });
            let found = of_gate(&gate(text), &document, None).remove(0);
            (found.verdict, found.reason)
        };
        let (verdict, why) = of("missed<=5", row(3, 31));
        assert_eq!(verdict, Inconclusive);
        assert_eq!(why, "2 of 1,002 periods missed, and 31 more unsure: missed<=33 passes here");
        assert_eq!(of("missed<=33", row(3, 31)).0, Pass);
        assert_eq!(of("missed<=1", row(3, 31)).0, Fail);
        let (verdict, why) = of("max<=3ms", row(3, 31));
        assert_eq!(verdict, Inconclusive);
        let says = "3ms exceeded by none of 1,000 that were seen, but what it did was not 3 times";
        assert!(why.starts_with(says), "{why}");
        assert_eq!(of("max<=1us", row(3, 31)).0, Fail);
        // Unsure periods of a thread of which all was seen hide no latency.
        assert_eq!(of("max<=3ms", row(0, 31)).0, Pass);
        assert_eq!((of("max<=3ms", row(0, 0)).0, of("missed<=2", row(0, 0)).0), (Pass, Pass));
    }

    fn of_judged(document: &Document, text: &str) -> (GateVerdict, String) {
        let found = of_gate(&gate(text), document, None);
        let own = found.into_iter().find(|own| own.series.as_deref() == Some("ctl/response"));
        own.map(|own| (own.verdict, own.reason)).unwrap()
    }

    /// The rows of [`fixture::judged`], none of whose cycles was late.
    fn none_late(change: impl Fn(&mut AttachedRow)) -> Document {
        let mut document = fixture::judged();
        document.series[1].max = Some(900_000);
        for row in document.attached.iter_mut().flat_map(|record| &mut record.rows) {
            (row.missed, row.period_ns, row.unmatched) = (None, None, 0);
            row.over.iter_mut().for_each(|over| over.cycles = 0);
            change(row);
        }
        document.series[0].missed = Some(0);
        document
    }

    #[test]
    fn cycles_of_a_loop_that_works_long_for_others_keep_no_limit() {
        use GateVerdict::{Fail, Inconclusive, Pass};
        let gates = ["missed=0", "max<=1ms"];
        let seen = none_late(|_| {});
        assert_eq!(gates.map(|text| of_judged(&seen, text).0), [Pass, Pass]);
        let hidden = none_late(|row| row.other_work = row.lateness);
        let found = gates.map(|text| of_judged(&hidden, text));
        assert_eq!(found.each_ref().map(|own| own.0), [Inconclusive, Inconclusive]);
        let says = "its work for others took up to 5.49 ms: how late what fell due meanwhile was";
        assert!(found.iter().all(|own| own.1.starts_with(says)), "{found:?}");
        assert_eq!(of_judged(&hidden, "max<=6ms").0, Pass, "no work took as long");
        assert_eq!(of_judged(&hidden, "max<=100us").0, Fail);
    }

    #[test]
    fn a_stage_within_the_deadline_does_not_say_that_the_work_met_it() {
        let stage = none_late(|row| row.cycle_begin = CycleBegin::WakeUp);
        let (verdict, why) = of_judged(&stage, "missed=0");
        assert_eq!(verdict, GateVerdict::Inconclusive);
        assert_eq!(
            why,
            "0 of 2,976 cycles took over 1ms, from the wake-up by another task: earlier stages are \
             not in them; ctl/response:max<=1ms judges this stage alone"
        );
        assert_eq!(of_judged(&stage, "ctl/response:max<=1ms").0, GateVerdict::Pass);
    }

    #[test]
    fn missed_periods_without_a_series_are_also_those_that_passed_during_the_work() {
        let mut document = fixture::of("timer", &["cpu0", "cpu0/response"]);
        let [wakeups, work] = &mut document.series[..] else { panic!("two series") };
        (wakeups.missed, work.missed) = (Some(0), Some(3));
        (work.stage_of, work.stage) = (Some("cpu0".into()), Some("response".into()));
        let found = of_gate(&gate("missed=0"), &document, None);
        let found: Vec<_> =
            found.iter().map(|own| (own.series.as_deref().unwrap(), own.verdict)).collect();
        assert_eq!(found, [("cpu0", GateVerdict::Pass), ("cpu0/response", GateVerdict::Fail)]);
        document.series[1].missed = None;
        let found = of_gate(&gate("missed=0"), &document, None);
        assert_eq!(found.len(), 1, "of attached threads the work counts none");
    }

    #[test]
    fn of_one_histogram_the_maximum_is_decided_and_a_percentile_is_not() {
        use GateVerdict::{Fail, Inconclusive, Pass};
        let place = tempfile::tempdir().unwrap();
        let block: Vec<u64> = (0..50_000).map(|n| 4_000 + n % 1_000).collect();
        let run = fixture::written(&place.path().join("r"), &[("cpu0", vec![block])]);
        let gates = ["p99<=1ms", "max<=1ms", "max<=1us"].map(gate);
        let found = decide(&run, &gates).unwrap();
        let verdicts: Vec<GateVerdict> = found.iter().map(|own| own.verdict).collect();
        assert_eq!(verdicts, [Inconclusive, Pass, Fail]);
        assert!(found[0].reason.contains("without their order in time"), "{}", found[0].reason);
    }

    #[test]
    fn a_gate_covers_every_series_unless_it_names_one() {
        let place = tempfile::tempdir().unwrap();
        let blocks = |late: u64| vec![vec![5_000; 199].into_iter().chain([late]).collect(); 100];
        let series = [("cpu0", blocks(50_000)), ("cpu1", blocks(200_000))];
        let run = fixture::written(&place.path().join("r"), &series);
        let of = |texts: &[&str]| {
            let gates: Vec<Gate> = texts.iter().map(|text| gate(text)).collect();
            let found = decide(&run, &gates)?;
            Ok::<_, String>(
                found.into_iter().map(|own| (own.series.unwrap(), own.verdict)).collect(),
            )
        };
        let all: Vec<(String, GateVerdict)> = of(&["max<100us", "cpu0:p50<=10us"]).unwrap();
        use GateVerdict::{Fail, Pass};
        let expected = [("cpu0", Pass), ("cpu1", Fail), ("cpu0", Pass)];
        assert_eq!(all, expected.map(|(name, verdict)| (name.to_owned(), verdict)));
        let error = of(&["cpu7:max<1ms"]).unwrap_err();
        assert_eq!(error, "\"cpu7:max<1ms\": unknown series cpu7; there are cpu0, cpu1");
    }
}

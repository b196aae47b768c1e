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

    /// Why no sample beyond the limit does not decide it yet.
    fn none_beyond(&self, share: &ShareBeyond, percent: f64) -> String {
        let limit = Nanos(i64::try_from(self.limit).unwrap_or(i64::MAX)).typed();
        let over = if self.is_strict { "reach" } else { "exceed" };
        let fewest = ShareBeyond::fewest(percent);
        let found = format!("none of {} {over} {limit}", count(share.samples));
        if share.samples < fewest {
            return format!("{found}, and it takes {} to decide it", count(fewest));
        }
        let effective = share.effective.min(share.samples as f64).floor() as u64;
        format!(
            "{found}, but they come in groups and count as {}, of the {} it takes",
            many(effective, "independent sample"),
            count(fewest)
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
                } else if verdict == GateVerdict::Inconclusive
                    && let Some(share) = share().filter(|share| share.beyond == 0)
                {
                    reason = gate.none_beyond(&share, percent);
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
mod tests;

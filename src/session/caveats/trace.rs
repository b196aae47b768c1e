//! Caveats of what tracing found, and did not.

use super::super::evidence::TraceEvidence;
use crate::run::{CaveatKind, SeriesSummary, TraceBy, TraceCaveat, TraceMode};

/// More than one wake-up in this number without stages is worth a word: percentiles of stages would
/// be of other wake-ups than those of the whole latency.
const UNMATCHED: u64 = 1_000;

/// `series` are those of whole latencies.
pub(super) fn caveats(trace: &TraceEvidence, series: &[SeriesSummary]) -> Vec<CaveatKind> {
    let record = &trace.record;
    let lack = trace.lack.clone().map(|why_not| TraceCaveat::Untraced { why_not });
    let no_causes = record.why_not.clone().filter(|_| record.found == TraceMode::Stages);
    let is_in_part = !record.missing.is_empty() || no_causes.is_some();
    let missing = record.missing.clone();
    let in_part = is_in_part.then_some(TraceCaveat::TracedInPart { missing, no_causes });
    let by_tracefs = (record.by == Some(TraceBy::Tracefs)).then(|| TraceCaveat::TracedByTracefs {
        why_not_bpf: record.why_not_bpf.clone(),
        causes: record.found == TraceMode::Peaks,
    });
    let cpus = record.lost_on.clone();
    let lost_on = (!cpus.is_empty()).then_some(TraceCaveat::TraceEventsLost { cpus });
    let lost = record.lost_events;
    let lost = (lost > 0).then_some(TraceCaveat::EventsLost { lost });
    let left_out = record.peaks_left_out;
    let left_out = (left_out > 0).then_some(TraceCaveat::PeaksLeftOut { left_out });
    let wakeups: u64 = series.iter().map(|series| series.count).sum();
    let unmatched = record.unmatched;
    let unmatched = (unmatched > wakeups / UNMATCHED)
        .then_some(TraceCaveat::WakeupsUnmatched { unmatched, wakeups });
    let hidden = trace.symbols_hidden.then_some(TraceCaveat::SymbolsHidden);
    let profiled = trace.profiled.map(|profile| TraceCaveat::Profiled {
        hz: profile.hz,
        samples: profile.cost.samples,
        sample_ns: profile.cost.program_ns / profile.cost.samples.max(1),
        lost: profile.lost,
    });
    [lack, by_tracefs, in_part, lost_on, lost, left_out, unmatched, hidden, profiled]
        .into_iter()
        .flatten()
        .map(CaveatKind::from)
        .collect()
}

//! Why wake-ups of a run were late: what `tardy why` shows, as data. `docs/why.schema.json` is its
//! JSON Schema, `docs/reference/why.md` tells how to read it.

mod between;
mod causes;
mod own_time;
mod periodic;
mod phrases;
mod selection;
mod terminal_text;
mod text;
mod timeline;
mod verdict;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    analysis::{
        bands::Band,
        between::BetweenThreads,
        preempted::{Preempted, preempted},
        together::{Together, together},
    },
    report::{
        causes::{
            self as all_causes, Causes, between_threads,
            responses::{self, ResponseCause},
        },
        cycles_headline,
        headline::failed_command,
        profile::{OwnTime, own_time},
        sample_name::SampleName,
    },
    run::{
        CaveatKind, Document, Run, Status, TraceMode, names,
        peaks::{Blame, Peak},
        peaks_file::Damage,
        without_host::WithoutHost,
    },
};

pub use periodic::PeriodicCause;
pub use selection::{PeakFilter, PeakView};
pub use text::text;
pub use timeline::peak_text;

/// Why wake-ups of one run were late.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WhyReport {
    /// The run's id.
    pub run: String,
    /// What was late.
    #[serde(default)]
    pub sample: SampleName,
    /// One sentence.
    pub verdict: String,
    /// Above this every wake-up was blamed, at the end of the run; ns.
    pub threshold_ns: i64,
    /// The lowest that this threshold was: no wake-up below it was blamed; ns.
    #[serde(default)]
    pub lowest_threshold_ns: i64,
    /// Of a run that did not end in order: how far into it the sums of late wake-ups reach, from
    /// which `bands` but the ten worst are, ns; 0 before there was any. Null of others.
    #[serde(default)]
    pub summed_ns: Option<i64>,
    /// Late wake-ups that were blamed.
    pub blamed: u64,
    /// All wake-ups later than `lowest_threshold_ns`, as the run's histograms count them: those
    /// that were blamed, and those that were not, as the threshold had risen above them.
    #[serde(default)]
    pub late: u64,
    /// Late wake-ups that were not: their events were overwritten by then, or too many later ones
    /// were waiting.
    pub passed_over: u64,
    /// Wake-ups that matched no record of the BPF programs.
    pub unmatched: u64,
    /// Events that the recorder lost.
    pub lost_events: u64,
    /// What the threads of an attached program did to each other, the longest waits first.
    #[serde(default)]
    pub between: Vec<BetweenThreads>,
    /// Peaks that were not kept, as there was no more room for them (`--peak-room`).
    #[serde(default)]
    pub peaks_left_out: u64,
    /// From the widest to the worst.
    pub bands: Vec<Band>,
    /// What late responses were spent on, most first: no wake-ups, and in no band.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<ResponseCause>,
    /// Late responses that were analyzed: those in `responses`, the latest first.
    #[serde(default)]
    pub responses_analysed: u64,
    /// Late responses that were not: for them there was no time, or their events were overwritten
    /// by then.
    #[serde(default)]
    pub responses_passed_over: u64,
    /// On what attached threads spent their own CPU time in late cycles; empty without `--profile`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_time: Vec<OwnTime>,
    /// Causes that come at a beat, those with the most events first.
    pub periodic: Vec<PeriodicCause>,
    /// Peaks that hit several CPUs at once for one cause; absent if none did.
    pub together: Option<Together>,
    /// Tasks that went before the measured threads.
    pub preempted: Preempted,
    /// Peaks that `peaks` was chosen from.
    pub peaks_found: u64,
    /// The worst, worst first; all with `--peak-over`.
    pub peaks: Vec<Peak>,
    /// What could not be read.
    pub damaged: Vec<Damage>,
    /// What was removed, where the time that the hypervisor took was to be left out: then all of
    /// the above is of what is left, but for the timelines of peaks. Peaks were kept by their whole
    /// latency: among those that were not there may be later ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_host: Option<WithoutHost>,
}

/// Why nothing can be said about a run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotTraced {
    /// It was not to be traced, or its tardy could not trace yet.
    #[error(
        "the {what} of {run} were not traced, so nothing shows why they were late: measure \
         again with --trace peaks"
    )]
    Off {
        /// The run's name.
        run: String,
        /// `wake-ups`, `round trips`.
        what: &'static str,
    },
    /// Another program measured it, and its file says nothing of causes.
    #[error(
        "{run} was imported from {program}, and its file has no causes, so nothing shows why its \
         {what} were late; `tardy run --trace peaks` measures with them"
    )]
    Imported {
        /// The run's name.
        run: String,
        /// `wake-ups`, `round trips`.
        what: &'static str,
        /// Who wrote the file.
        program: String,
    },
    /// It could not be traced.
    #[error("the {what} of {run} were not traced, so nothing shows why they were late: {why}")]
    Lacking {
        /// The run's name.
        run: String,
        /// `wake-ups`, `round trips`.
        what: &'static str,
        /// What was lacking, with the remedy.
        why: String,
    },
    /// Where the time went was recorded, and not why.
    #[error(
        "{run} has the stages of its {what} (`tardy show` has them), but nothing shows why they \
         were late: measure again with --trace peaks"
    )]
    StagesOnly {
        /// The run's name.
        run: String,
        /// `wake-ups`, `round trips`.
        what: &'static str,
    },
}

/// What a run knows of why its wake-ups were late; and its record, with what reading it gave reason
/// to doubt.
///
/// # Errors
/// It was not traced.
pub fn document(run: &Run) -> Result<(WhyReport, Document), NotTraced> {
    refuse_untraced(run)?;
    let (total, read) = all_causes::total(run);
    let Causes { blame, summed_ns, bands, worst, all, mut damaged, mut caveats } =
        Causes::of(run, &total);
    if let Err(error) = read {
        let what = error.to_string();
        damaged.push(Damage { file: names::SERIES.into(), line: None, what: what.clone() });
        caveats.push(CaveatKind::SeriesDamaged { what });
    }
    let profiled = run.profile().unwrap_or_else(|damage| {
        damaged.push(damage);
        None
    });
    let trace = &run.document.trace;
    let blame = blame.unwrap_or_else(|| Blame {
        unmatched: trace.unmatched,
        lost_events: trace.lost_events,
        ..Blame::default()
    });
    let series: Vec<&str> = run.document.wakeups().map(|series| series.name.as_str()).collect();
    let mut why = WhyReport {
        run: run.document.id.clone(),
        sample: SampleName::of(&run.document),
        verdict: String::new(),
        threshold_ns: blame.threshold_ns,
        lowest_threshold_ns: blame.lowest_threshold_ns,
        summed_ns,
        blamed: blame.blamed,
        late: later_than(&total, blame.lowest_threshold_ns).max(blame.blamed),
        passed_over: blame.passed_over,
        unmatched: blame.unmatched,
        lost_events: blame.lost_events,
        peaks_left_out: blame.peaks_left_out,
        bands,
        responses: responses::spent_on(&blame),
        responses_analysed: responses::analysed(&blame),
        responses_passed_over: blame.responses_passed_over,
        own_time: profiled.as_ref().map(own_time).unwrap_or_default(),
        periodic: periodic::causes(&all, &run.document),
        together: together(&all),
        preempted: preempted(&blame, &series),
        between: between_threads(&run.document, &blame, &worst),
        peaks_found: all.len() as u64,
        peaks: worst,
        damaged,
        without_host: run.document.without_host.clone(),
    };
    why.verdict = verdict::verdict(&why, series.len());
    if let Some(cycles) = cycles_headline::cycles(&run.document) {
        let faults = cycles_headline::faults(&run.document);
        let faults = faults.map_or_else(String::new, |faults| format!(" {faults}"));
        why.verdict = format!("{cycles}. {}{faults}", why.verdict);
    }
    why.verdict = failed_command(&run.document) + &why.verdict;
    Ok((why, run.record_with(caveats)))
}

/// How many are later than this, by whole buckets.
fn later_than(latencies: &Histogram<u64>, ns: i64) -> u64 {
    let ns = u64::try_from(ns).unwrap_or(0);
    latencies.count_between(latencies.next_non_equivalent(ns), u64::MAX)
}

fn refuse_untraced(run: &Run) -> Result<(), NotTraced> {
    let document = &run.document;
    let is_there = |name| run.path.join(name).exists();
    if document.trace.found == TraceMode::Peaks || is_there(names::PEAKS) || is_there(names::BLAME)
    {
        return Ok(());
    }
    let run = document.name.clone();
    let sample_name = SampleName::of(document);
    let what = sample_name.many();
    if document.status == Status::Imported {
        let program = document.provenance.program.clone();
        return Err(NotTraced::Imported { run, what, program });
    }
    if document.trace.found == TraceMode::Stages {
        return Err(NotTraced::StagesOnly { run, what });
    }
    Err(match document.trace.why_not.clone() {
        Some(why) => NotTraced::Lacking { run, what, why },
        None => NotTraced::Off { run, what },
    })
}

//! From runs to a report: their logs are read, as many at once as there are CPUs, and each pair of
//! sides is compared.

use std::{num::NonZeroUsize, panic, thread};

use super::{
    CompareError, CompareOptions, CompareReport, LoggedRun, RunInComparison, SideComparison,
    compare, delays,
};
use crate::{
    analysis::ab::verdict::overall,
    run::{AbVerdict, Document, LatencyView, Run},
};

/// Compares runs of B with runs of A; without any of B, each run of A but the first with the first.
///
/// # Errors
/// See [`CompareError`].
pub fn compare_runs(
    a: Vec<Run>,
    b: Vec<Run>,
    options: &CompareOptions,
) -> Result<CompareReport, CompareError> {
    let (of_a, is_judged) = (a.len(), !b.is_empty());
    let describes = !is_judged || (of_a == 1 && b.len() == 1);
    let runs = read(a.into_iter().chain(b).collect(), describes)?;
    let all: Vec<&LoggedRun> = runs.iter().collect();
    let comparisons: Vec<SideComparison> = if is_judged {
        let (a, b) = all.split_at(of_a);
        vec![compare(a, b, options)?]
    } else {
        let (a, others) = all.split_at(1);
        let each = others.chunks(1).map(|b| compare(a, b, options));
        each.collect::<Result<_, CompareError>>()?
    };
    let verdicts: Vec<AbVerdict> = comparisons.iter().map(|one| one.verdict).collect();
    Ok(CompareReport {
        verdict: overall(&verdicts),
        comparisons,
        runs: all.iter().map(|run| RunInComparison::of(run)).collect(),
    })
}

/// Reads the logs of runs, as many at once as there are CPUs; all of them in the same view, which
/// flatters none.
fn read(mut runs: Vec<Run>, describes: bool) -> Result<Vec<LoggedRun>, CompareError> {
    if delays::are_of_several_programs(runs.iter().map(|run| &run.document)) {
        runs.iter_mut().for_each(|run| delays::by_dispatch(&mut run.document));
    } else if runs.iter().all(|run| !run.document.judged_cycles().is_empty()) {
        runs.iter_mut().for_each(|run| run.document.lead_by_responses());
    }
    let documents: Vec<&Document> = runs.iter().map(|run| &run.document).collect();
    let view = LatencyView::shared(&documents);
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut left = runs.into_iter();
    let mut read = Vec::new();
    loop {
        let batch: Vec<Run> = left.by_ref().take(threads).collect();
        if batch.is_empty() {
            return Ok(read);
        }
        let found: Vec<Result<LoggedRun, CompareError>> = thread::scope(|scope| {
            let begin = |run| scope.spawn(move || LoggedRun::read(run, view, describes));
            let begun: Vec<_> = batch.into_iter().map(begin).collect();
            let end = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))
            };
            begun.into_iter().map(end).collect()
        });
        for run in found {
            read.push(run?);
        }
    }
}

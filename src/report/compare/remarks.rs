//! What runs cannot tell, and what it would take.

use std::collections::BTreeSet;

use super::{CompareOptions, LoggedRun, delays, figures::missed};
use crate::{
    analysis::replicates::FEWEST_RUNS,
    report::{causes::words::percent, without_host::mark},
    run::{AbVerdict, ComparedFigureRow, Document, LatencyView},
    units::{Nanos, many},
};

/// The number of omitted series that are named: perf has all tasks of a machine.
const MOST_NAMES: usize = 20;

/// The remarks, in whole sentences.
pub(super) fn of(
    a: &[&LoggedRun],
    b: &[&LoggedRun],
    series: &[String],
    figures: &[ComparedFigureRow],
    options: &CompareOptions,
) -> Vec<String> {
    let mut remarks: Vec<String> = a.iter().chain(b).filter_map(|run| failed(run)).collect();
    let documents: Vec<&Document> = a.iter().chain(b).map(|run| run.document()).collect();
    if let Some(remark) = delays::remark(&documents) {
        remarks.push(remark);
    } else if a.len().min(b.len()) < FEWEST_RUNS {
        remarks.push(few(a.len(), b.len()));
    } else {
        remarks.extend(shared(figures, options));
        remarks.extend(needed(figures));
        remarks.extend(boots(a, b));
        remarks.extend(order(a, b));
    }
    remarks.extend(without_host(a, b));
    remarks.extend(counted(a, b));
    remarks.extend(shares(figures));
    remarks.extend(maxima(a, b));
    remarks.extend(work_for_others(a, b));
    remarks.extend(missed_periods(a, b, series));
    remarks.extend(left_out(a, b, series));
    remarks
}

/// That the command which was measured failed: its figures are of a program that crashed.
fn failed(run: &LoggedRun) -> Option<String> {
    let how = run.document().attached.as_ref()?.command.as_ref()?.failure()?;
    Some(format!("The command of {} {how}: its figures are of a program that failed.", run.name()))
}

/// That a run does not know how late its cycles were: those that it saw may differ in nothing.
fn work_for_others(a: &[&LoggedRun], b: &[&LoggedRun]) -> Option<String> {
    let longest = |run: &&&LoggedRun| {
        let document = run.document();
        let judged = document.judged_cycles();
        let over =
            judged.iter().filter_map(|own| document.other_work_over(own.row, own.deadline_ns));
        Some((run.name().to_owned(), over.max()?))
    };
    let found: Vec<String> = a
        .iter()
        .chain(b)
        .filter_map(|run| longest(&run))
        .map(|(name, ns)| format!("{name} (up to {})", Nanos(ns)))
        .collect();
    (!found.is_empty()).then(|| {
        format!(
            "Work for others took longer than the deadline in {}: how late what fell due meanwhile \
             was is not known, so that a difference in it does not show.",
            found.join(", ")
        )
    })
}

/// What was removed from each run, where they are without the time of their hypervisors.
fn without_host(a: &[&LoggedRun], b: &[&LoggedRun]) -> Option<String> {
    let all: Vec<&LoggedRun> = a.iter().chain(b).copied().collect();
    all.iter().find(|run| run.document().without_host.is_some())?;
    let of = |run: &&LoggedRun| {
        let what = mark(run.document())
            .unwrap_or_else(|| "as measured, for no hypervisor is known of it".into());
        format!("{} {what}", run.name())
    };
    let said: Vec<String> = all.iter().map(of).collect();
    Some(format!(
        "All figures and causes are without the hosts, as far as steal counters measured them: \
         {}. What was stolen from samples below the threshold of tracing, and what was late \
         afterwards, is still in: `tardy show RUN --without host` says how much is known. Verdicts \
         of the runs are those with their hosts.",
        said.join("; ")
    ))
}

/// That periods count and not wake-ups, where that is so, or should be and cannot.
fn counted(a: &[&LoggedRun], b: &[&LoggedRun]) -> Option<String> {
    let runs: Vec<&LoggedRun> = a.iter().chain(b).copied().collect();
    let documents: Vec<&Document> = runs.iter().map(|run| run.document()).collect();
    if !documents.iter().any(|run| LatencyView::of(run) == LatencyView::PerPeriod) {
        return None;
    }
    if LatencyView::shared(&documents) == LatencyView::PerPeriod {
        let text = "Latencies count per scheduled period, in all of these runs, since many \
                    periods were missed: a wake-up late by L at period T counts as L, L-T, and so \
                    on.";
        return Some(text.into());
    }
    let lacking = runs.iter().filter(|run| LatencyView::lacks_periods(run.document()));
    let lacking: Vec<&str> = lacking.map(|run| run.name()).collect();
    Some(format!(
        "Latencies count per wake-up, though many periods were missed: how late those of {} were \
         does not show in its wake-ups. Read the missed periods beside them.",
        lacking.join(", ")
    ))
}

fn few(of_a: usize, of_b: usize) -> String {
    let runs = |count: usize| many(count as u64, "run");
    format!(
        "{} of A beside {} of B: described, not judged. How much runs of one set-up differ from \
         each other, and from boot to boot, is not in them. To judge it takes at least \
         {FEWEST_RUNS} runs of each, interleaved: tardy compare A1 A2 A3 --vs B1 B2 B3",
        runs(of_a),
        runs(of_b)
    )
}

/// What the intervals are corrected for.
fn shared(figures: &[ComparedFigureRow], options: &CompareOptions) -> Option<String> {
    let judged = options.judged.len();
    let is_alone = figures.iter().all(|row| row.series.is_none()) || judged < 2;
    (judged > 1 || !is_alone).then(|| {
        "Intervals are corrected for all metrics of a table together: at most 5% of A/A \
         comparisons call some metric different by chance (Holm)."
            .to_owned()
    })
}

/// How many runs would decide what is open.
fn needed(figures: &[ComparedFigureRow]) -> Option<String> {
    let main = &figures.first()?.series;
    let is_open = |row: &&ComparedFigureRow| {
        row.verdict == AbVerdict::Inconclusive && (main.is_some() || row.series.is_none())
    };
    let one = |row: &ComparedFigureRow| match row.pairs_needed {
        Some(runs) => format!("{} about {runs} runs a side", row.figure),
        None => format!("{} more than 100,000", row.figure),
    };
    let open: Vec<String> = figures.iter().filter(is_open).map(one).collect();
    (!open.is_empty()).then(|| {
        format!(
            "To decide what is inconclusive, if difference and spread stay as they are, takes: {}.",
            open.join(", ")
        )
    })
}

fn boots(a: &[&LoggedRun], b: &[&LoggedRun]) -> Option<String> {
    let boots = |side: &[&LoggedRun]| -> Option<BTreeSet<String>> {
        side.iter().map(|run| run.document().facts.boot_id.clone()).collect()
    };
    let (of_a, of_b) = (boots(a)?, boots(b)?);
    let all: BTreeSet<&String> = of_a.iter().chain(&of_b).collect();
    if all.len() == 1 {
        return Some("All runs are of one boot: other boots may differ.".to_owned());
    }
    (of_a.len() < FEWEST_RUNS || of_b.len() < FEWEST_RUNS).then(|| {
        format!(
            "The runs of A are of {}, those of B of {}: how much boots of one set-up differ is \
             hardly in the intervals.",
            many(of_a.len() as u64, "boot"),
            many(of_b.len() as u64, "boot")
        )
    })
}

/// Whether one side was measured before the other began.
fn order(a: &[&LoggedRun], b: &[&LoggedRun]) -> Option<String> {
    let starts = |side: &[&LoggedRun]| -> Option<(jiff::Timestamp, jiff::Timestamp)> {
        let starts: Option<Vec<jiff::Timestamp>> =
            side.iter().map(|run| run.document().started_at.parse().ok()).collect();
        let starts = starts?;
        Some((*starts.iter().min()?, *starts.iter().max()?))
    };
    let (of_a, of_b) = (starts(a)?, starts(b)?);
    let (early, late) = match () {
        () if of_a.1 < of_b.0 => ("A", "B"),
        () if of_b.1 < of_a.0 => ("B", "A"),
        () => return None,
    };
    Some(format!(
        "All runs of {early} were made before those of {late}: what changed on the machine \
         meanwhile looks like a difference. Interleave them."
    ))
}

/// What a maximum of several runs is.
fn maxima(a: &[&LoggedRun], b: &[&LoggedRun]) -> Option<String> {
    let largest = |side: &[&LoggedRun]| {
        let all = side.iter().flat_map(|run| run.document().wakeups());
        all.filter_map(|series| series.max).max()
    };
    let (of_a, of_b) = (largest(a)?, largest(b)?);
    (a.len().max(b.len()) > 1).then(|| {
        format!(
            "max is the geometric mean of the largest samples of the runs; the largest of all is \
             {} in A, {} in B.",
            Nanos(of_a),
            Nanos(of_b)
        )
    })
}

/// What the share of missed periods of several runs is.
fn missed_periods(a: &[&LoggedRun], b: &[&LoggedRun], series: &[String]) -> Option<String> {
    let names: Vec<&str> = series.iter().map(String::as_str).collect();
    let has_schedule = |run: &&LoggedRun| run.has_schedule(&names);
    let are_several = a.len().max(b.len()) > 1;
    if !are_several || names.is_empty() || !a.iter().chain(b).all(has_schedule) {
        return None;
    }
    let all = |side: &[&LoggedRun]| -> f64 {
        missed(&side.iter().map(|run| run.block(&names)).collect::<Vec<_>>())
    };
    let (of_a, of_b) = (all(a), all(b));
    (of_a > 0.0 || of_b > 0.0).then(|| {
        format!(
            "missed is the geometric mean of the shares of the runs, for which half a period more \
             counts as missed in each; of all their periods together {} were missed in A, {} in B.",
            percent(of_a),
            percent(of_b)
        )
    })
}

/// What is compared where runs are too short for a percentile.
fn shares(figures: &[ComparedFigureRow]) -> Vec<String> {
    let Some(main) = figures.first().map(|row| &row.series) else { return Vec::new() };
    let is_main = |row: &&ComparedFigureRow| main.is_some() || row.series.is_none();
    let one = |row: &ComparedFigureRow| {
        let above = Nanos(i64::try_from(row.above_ns?).unwrap_or(i64::MAX));
        let of = row.series.as_ref().map_or_else(String::new, |series| format!(" of {series}"));
        Some(format!(
            "{}{of}: a run has fewer than 10 samples beyond it, so that the shares of samples \
             above {above} are compared.",
            row.figure
        ))
    };
    figures.iter().filter(is_main).filter_map(one).collect()
}

fn left_out(a: &[&LoggedRun], b: &[&LoggedRun], series: &[String]) -> Option<String> {
    let all = a.iter().chain(b).flat_map(|run| run.document().wakeups());
    let others: BTreeSet<&str> = all
        .map(|own| own.name.as_str())
        .filter(|name| !series.iter().any(|own| own == name))
        .collect();
    (!others.is_empty()).then(|| {
        let more = others.len().saturating_sub(MOST_NAMES);
        let shown: Vec<&str> = others.into_iter().take(MOST_NAMES).collect();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("Not in all runs, and left out: {}{more}.", shown.join(", "))
    })
}

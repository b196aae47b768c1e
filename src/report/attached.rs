//! The threads of another program: what woke them and what they did then.

use super::{
    figures::number,
    sample_name,
    table::{Table, us},
};
use crate::{
    run::{
        AttachRecord, AttachedFaults, AttachedLatency, AttachedOver, AttachedRow, AttachedTimes,
        AttachedWaitCall, AttachedWaits, CycleBegin, Document, SeriesSummary,
    },
    units::{Nanos, count, many},
};

/// Rows of single threads that are shown: those that woke up most often.
const SHOWN: usize = 16;

/// Rows of names: programs give each thread its own.
const NAMES: usize = 32;

/// Columns that fit on a narrow terminal, the first of them first.
pub(super) const LEAST: [&str; 7] =
    ["IPI", "ready", "interrupt", "slack", "timer", "period", "task"];

/// The same of responses.
pub(super) const LEAST_RESPONSES: [&str; 7] =
    ["not seen", "mean", "late", "cycles", "other", "I/O", "PI mutex"];

/// A row for each name, and where a name has several threads one for each of them.
pub(super) fn table(document: &Document) -> Option<Table> {
    let record = document.attached.as_ref().filter(|record| !record.rows.is_empty())?;
    let headings = [
        "thread",
        "policy",
        "wake-ups",
        "own timer",
        "timer",
        "interrupt",
        "IPI",
        "task",
        "period",
        "missed",
        "slack",
        "preempted",
        "run us",
        "p99",
        "ready",
        "blocked",
    ];
    let mut table = Table::new(2, &headings);
    shown(record).for_each(|row| table.row(cells(row)));
    Some(table)
}

/// How one kind of waits is named, and what a record has of it, ns.
type WaitKind = (&'static str, fn(&AttachedWaits) -> Option<u64>);

/// What threads slept for in cycles over the deadline, as a column each.
const WAITS: [WaitKind; 4] = [
    ("futex", |waits| waits.futex_ns),
    ("PI mutex", |waits| waits.pi_mutex_ns),
    ("I/O", |waits| Some(waits.io_ns)),
    ("other", |waits| Some(waits.other_ns)),
];

/// A part of the waits that the record does not have.
const NOT_KNOWN: &str = "not known";

/// A row for each whose work was measured: how long it took from the expiry to its end, and what
/// the cycles over the deadline were made of.
pub(super) fn responses(document: &Document) -> Option<Table> {
    let record = document.attached.as_ref()?;
    let rows = || shown(record).filter_map(|row| Some((row, row.response?)));
    rows().next()?;
    let waits = waits_shown(rows().filter_map(|(row, _)| row.over));
    let mut headings = vec![
        "response us",
        "cycles",
        "mean",
        "p50",
        "p99",
        "max",
        "deadline",
        "over",
        "late",
        "run",
        "ready",
        "waits",
    ];
    headings.extend(waits.iter().map(|kind| WAITS[*kind].0));
    headings.push("not seen");
    let mut table = Table::new(1, &headings);
    rows().for_each(|(row, response)| table.row(response_cells(row, &response, &waits)));
    Some(table)
}

/// What that table says, and the page faults of the cycles over the deadline.
pub(super) fn notes_on_responses(document: &Document) -> Vec<String> {
    let Some(record) = &document.attached else { return Vec::new() };
    let rows: Vec<&AttachedRow> = shown(record).filter(|row| row.response.is_some()).collect();
    let (stages, others): (Vec<&AttachedRow>, Vec<&AttachedRow>) =
        rows.iter().partition(|row| row.cycle_begin == CycleBegin::WakeUp);
    let mut notes = Vec::new();
    if !others.is_empty() {
        notes.push("from the hard expiry to the last sleep before the next one".to_owned());
    }
    if !stages.is_empty() {
        let names: Vec<_> =
            stages.iter().map(|row| sample_name::series(&row.series).into_owned()).collect();
        notes.push(format!(
            "{}: from the wake-up by another task to the next wait; earlier stages are not in it",
            names.join(", ")
        ));
    }
    notes.push("late to waits: means of the cycles over the deadline".to_owned());
    notes.extend(rows.iter().filter_map(|row| faults(row)));
    notes.extend(rows.iter().filter_map(|row| loop_work(row, &record.wait_calls)));
    notes
}

/// What an event loop did beside its cycles.
fn loop_work(row: &AttachedRow, calls: &[AttachedWaitCall]) -> Option<String> {
    let other = row.other_work?;
    let took =
        |times: AttachedTimes| times.max.map_or_else(|| "-".into(), |ns| Nanos(ns).to_string());
    let kept = row.kept_waiting.map_or_else(String::new, |kept| {
        let cycles = many(kept.count, "due cycle");
        format!("; it kept {cycles} waiting, for at most {}", took(kept))
    });
    Some(format!(
        "{}: an event loop; its cycles end at its first return to its wait; work for others ({}, \
         at most {}) is not in them{kept}; {}",
        sample_name::series(&row.series),
        crate::units::times(other.count),
        took(other),
        returns_seen(calls)
    ))
}

/// Whether returns to the wait were seen that did not sleep.
fn returns_seen(calls: &[AttachedWaitCall]) -> String {
    let unseen = "returns that do not sleep are not seen";
    if let Some(AttachedWaitCall { call, failed: Some(why) }) =
        calls.iter().find(|call| call.failed.is_some())
    {
        return format!("{unseen} (tardy cannot follow {call}: {why})");
    }
    let names: Vec<&str> = calls.iter().map(|call| call.call.as_str()).collect();
    match names.is_empty() {
        true => unseen.to_owned(),
        false => format!("returns to {} are seen also if they do not sleep", names.join(", ")),
    }
}

fn faults(row: &AttachedRow) -> Option<String> {
    let over = row.over?;
    let AttachedFaults { cycles, minor, major } = over.faults.filter(|faults| faults.cycles > 0)?;
    Some(format!(
        "{}: {} of {} over the deadline had page faults: {} minor, {} major",
        sample_name::series(&row.series),
        count(cycles),
        many(over.cycles, "cycle"),
        count(minor),
        count(major)
    ))
}

/// The kinds of waits that some row has, or does not know that it has none.
fn waits_shown(overs: impl Iterator<Item = AttachedOver>) -> Vec<usize> {
    let overs: Vec<AttachedOver> = overs.filter(|over| over.wait_ns > 0).collect();
    let has = |over: &AttachedOver, kind: usize| match over.waits {
        Some(waits) => WAITS[kind].1(&waits) != Some(0),
        None => kind == 0,
    };
    (0..WAITS.len()).filter(|kind| overs.iter().any(|over| has(over, *kind))).collect()
}

fn response_cells(row: &AttachedRow, response: &AttachedTimes, waits: &[usize]) -> Vec<String> {
    let mut cells = vec![row.series.clone(), count(response.count)];
    cells.extend([response.mean, response.p50, response.p99, response.max].map(us));
    let Some(over) = row.over else {
        cells.resize(13 + waits.len(), "-".to_owned());
        return cells;
    };
    cells.push(Nanos(i64::try_from(over.deadline_ns).unwrap_or(i64::MAX)).to_string());
    cells.push(count(over.cycles));
    // The mean of each part.
    let mean = |ns: u64| us(ns.checked_div(over.cycles).and_then(|ns| ns.try_into().ok()));
    cells.extend([over.late_ns, over.run_ns, over.ready_ns, over.wait_ns].map(mean));
    cells.extend(waits.iter().map(|kind| {
        let known = over.waits.and_then(|waits| WAITS[*kind].1(&waits));
        known.map_or_else(|| NOT_KNOWN.to_owned(), mean)
    }));
    cells.push(mean(over.unseen_ns));
    cells
}

/// What the table leaves out, and what has no row.
pub(super) fn remarks(document: &Document) -> Vec<String> {
    let Some(record) = &document.attached else { return Vec::new() };
    let mut said = Vec::new();
    let names = record.rows.iter().filter(|row| row.tid.is_none()).count();
    if names > NAMES {
        said.push(format!(
            "the {NAMES} of {names} names whose threads woke up most often; in the table of \
             latencies those with the largest; --json has all"
        ));
    }
    let all = record.rows.iter().filter(|row| is_of_several(record, row)).count();
    if all > SHOWN {
        said.push(format!("the {SHOWN} of {all} threads that woke up most often; --json has all"));
    }
    if shown(record).any(AttachedRow::is_mixed) {
        said.push(
            "own timer with a word: lateness or dispatch could be the other one; it was settled by \
             the first 8 to 64 wake-ups, and is that of the name from a third to two thirds"
                .into(),
        );
    }
    let asides: u64 = of_threads(record).map(|row| row.asides).sum();
    if asides > 0 {
        said.push(format!(
            "{} from sleeps for a time (usleep) in the middle of a cycle, which are part of it: in \
             no lateness",
            many(asides, "wake-up")
        ));
    }
    if of_threads(record).any(|row| row.period_changed) {
        said.push(
            "changed: it had another period before; missed periods are counted by that of the time"
                .into(),
        );
    }
    let unsure: u64 = of_threads(record).filter_map(|row| row.unsure_periods).sum();
    if unsure > 0 {
        said.push(format!(
            "{} unsure, neither met nor missed: an event of the thread was not seen, or it armed \
             its timer for more than one period ahead",
            many(unsure, "period")
        ));
    }
    if record.pooled_only > 0 {
        said.push(format!(
            "{} lived too shortly for a row, and {} in that of the name",
            many(record.pooled_only, "thread"),
            if record.pooled_only == 1 { "is" } else { "are" }
        ));
    }
    said.extend(suggested_deadline(document));
    if let Some(command) = &record.command {
        let ended = command.ended.as_deref().unwrap_or("still running");
        let by = if command.ended_by_tardy { ", as the run was over" } else { "" };
        said.push(format!("command {}: {ended}{by}", command.argv.join(" ")));
    }
    said
}

/// Of a run without a deadline: what the period of a thread would be as one.
fn suggested_deadline(document: &Document) -> Option<String> {
    if !document.judged_cycles().is_empty() || !document.deadlines().is_empty() {
        return None;
    }
    let rows = document.attached.iter().flat_map(|record| &record.rows);
    let periodic = rows
        .filter(|row| row.tid.is_none())
        .filter_map(|row| Some((row.missed.unwrap_or(0), row.period_ns?, &row.series)));
    let (missed, period_ns, name) = periodic.max_by_key(|(missed, ..)| *missed)?;
    let (deadline, name) = (Nanos(rounded(period_ns)).typed(), sample_name::series(name));
    Some(match missed {
        0 => format!(
            "--deadline {deadline}, the period of {name}, would judge how long its work takes"
        ),
        _ => format!(
            "--deadline {deadline}, the period of {name}, would judge at least {} as late, the \
             missed ones, and measure what the work took",
            many(missed, "cycle")
        ),
    })
}

/// A time in three digits, as a user would type it.
fn rounded(ns: i64) -> i64 {
    let step = 10_i64.pow(ns.max(1).ilog10().saturating_sub(2));
    (ns + step / 2) / step * step
}

/// What a table of wake-ups has below them: the responses of threads of the run's own; of attached
/// ones the series of single threads with the largest latencies, where a name has several threads.
pub(super) fn below_wakeups(document: &Document) -> Vec<&SeriesSummary> {
    if document.attached.is_none() {
        return document.responses().collect();
    }
    let count = |series: &SeriesSummary| {
        document.threads().filter(|other| other.thread_of == series.thread_of).count()
    };
    let mut worst: Vec<&SeriesSummary> =
        document.threads().filter(|series| count(series) > 1).collect();
    worst.sort_by_key(|series| std::cmp::Reverse(series.max));
    worst.truncate(SHOWN);
    worst
}

/// The series that a table of wake-ups begins with: of very many names those with the largest
/// latencies.
pub(super) fn whole(document: &Document) -> Vec<&SeriesSummary> {
    let mut all: Vec<&SeriesSummary> = document.wakeups().collect();
    if document.attached.is_some() && all.len() > NAMES {
        all.sort_by_key(|series| std::cmp::Reverse(series.max));
        all.truncate(NAMES);
    }
    all
}

fn is_of_several(record: &AttachRecord, row: &AttachedRow) -> bool {
    let name = row.series.rsplit_once('/').map(|(name, _)| name);
    let pool = record.rows.iter().find(|pool| Some(pool.series.as_str()) == name);
    row.tid.is_some() && pool.is_none_or(|pool| pool.threads != Some(1))
}

fn of_threads(record: &AttachRecord) -> impl Iterator<Item = &AttachedRow> {
    record.rows.iter().filter(|row| row.tid.is_some())
}

fn shown(record: &AttachRecord) -> impl Iterator<Item = &AttachedRow> {
    let mut names: Vec<&AttachedRow> = record.rows.iter().filter(|row| row.tid.is_none()).collect();
    if names.len() > NAMES {
        names.sort_by_key(|row| std::cmp::Reverse(row.wakeups));
        names.truncate(NAMES);
    }
    let of_threads = record.rows.iter().filter(|row| is_of_several(record, row));
    names.into_iter().chain(of_threads.take(SHOWN))
}

fn cells(row: &AttachedRow) -> Vec<String> {
    let share = |of: u64| match row.wakeups {
        0 => "-".into(),
        all => format!("{}%", number(of as f64 / all as f64 * 100.0)),
    };
    let own_timer = match row.latency {
        Some(latency) if row.is_mixed() => {
            format!("{}, {}", share(row.by_own_timer), latency.as_str())
        }
        _ => share(row.by_own_timer),
    };
    let has_timer = row.latency == Some(AttachedLatency::Lateness);
    let period = match row.period_ns {
        Some(ns) if row.period_changed => format!("{}, changed", Nanos(ns)),
        Some(ns) => Nanos(ns).to_string(),
        None if row.missed.is_some() => "several".into(),
        None if has_timer => "no period".into(),
        None => "-".into(),
    };
    let name = match row.threads {
        Some(threads) if threads > 1 => format!("{} ({threads})", row.series),
        _ => row.series.clone(),
    };
    vec![
        name,
        row.policy.clone().unwrap_or_else(|| "-".into()),
        count(row.wakeups),
        own_timer,
        share(row.by_timer),
        share(row.by_interrupt),
        share(row.by_ipi),
        share(row.by_task),
        period,
        row.missed.map_or_else(|| "-".into(), count),
        row.slack_ns.map_or_else(|| "-".into(), |ns| Nanos(ns).to_string()),
        count(row.preempted),
        us(row.run.p50),
        us(row.run.p99),
        us(row.ready.p50),
        us(row.blocked.p50),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_deadline_the_period_is_suggested_as_one() {
        let mut document = crate::report::fixture::judged();
        assert_eq!(suggested_deadline(&document), None);
        document.parameters.deadline_ns = None;
        for row in document.attached.iter_mut().flat_map(|record| &mut record.rows) {
            (row.response, row.over) = (None, None);
        }
        assert_eq!(
            suggested_deadline(&document).unwrap(),
            "--deadline 1ms, the period of ctl, would judge at least 24 cycles as late, the missed \
             ones, and measure what the work took"
        );
        for row in document.attached.iter_mut().flat_map(|record| &mut record.rows) {
            (row.missed, row.period_ns) = (row.missed.map(|_| 0), row.period_ns.map(|_| 2_500_400));
        }
        assert_eq!(
            suggested_deadline(&document).unwrap(),
            "--deadline 2500us, the period of ctl, would judge how long its work takes"
        );
    }

    #[test]
    fn a_stage_is_told_from_a_timer_and_page_faults_are_counted() {
        let mut document = crate::report::fixture::judged();
        let notes = notes_on_responses(&document);
        assert_eq!(notes.len(), 2, "{notes:?}");
        for row in document.attached.iter_mut().flat_map(|record| &mut record.rows) {
            row.cycle_begin = CycleBegin::WakeUp;
            if let Some(over) = &mut row.over {
                over.faults = Some(AttachedFaults { cycles: 116, minor: 59_392, major: 0 });
            }
        }
        let notes = notes_on_responses(&document);
        assert!(notes[0].starts_with("ctl: from the wake-up by another task"), "{notes:?}");
        assert_eq!(
            notes[2],
            "ctl: 116 of 228 cycles over the deadline had page faults: 59,392 minor, 0 major"
        );
    }

    fn over(wait_ns: u64, waits: Option<AttachedWaits>) -> AttachedOver {
        AttachedOver { cycles: 2, wait_ns, waits, ..AttachedOver::default() }
    }

    #[test]
    fn waits_have_a_column_for_each_kind_that_there_is_or_that_is_not_known() {
        let waits = AttachedWaits {
            futex_ns: Some(8_000),
            pi_mutex_ns: Some(0),
            io_ns: 0,
            other_ns: 4_000,
        };
        let split = over(12_000, Some(waits));
        assert_eq!(waits_shown([split].into_iter()), [0, 3]);
        let untold = AttachedWaits { futex_ns: None, pi_mutex_ns: None, ..waits };
        assert_eq!(waits_shown([over(4_000, Some(untold))].into_iter()), [0, 1, 3]);
        assert_eq!(waits_shown([over(4_000, None), over(0, None)].into_iter()), [0]);
        assert_eq!(waits_shown([over(0, None)].into_iter()), [0; 0]);
        let text = r#"{"series": "app", "tid": null, "wakeups": 9, "by_timer": 9, "by_interrupt": 0,
            "by_ipi": 0, "by_task": 0, "by_own_timer": 5, "in_slack": 0, "preempted": 0,
            "unmatched": 0, "latency": "lateness", "run": {"count": 0}, "ready": {"count": 0},
            "blocked": {"count": 0}}"#;
        let mut row: AttachedRow = serde_json::from_str(text).unwrap();
        assert!(row.is_mixed() && cells(&row)[3] == "55.6%, lateness", "{:?}", cells(&row));
        let of = |row: &AttachedRow| {
            response_cells(row, &AttachedTimes::default(), &[0, 3]).split_off(11)
        };
        assert_eq!(of(&row), ["-"; 4]);
        row.over = Some(split);
        assert_eq!(of(&row), ["6.0", "4.0", "2.0", "0.0"]);
        row.over = Some(over(12_000, None));
        assert_eq!(of(&row), ["6.0", NOT_KNOWN, NOT_KNOWN, "0.0"]);
    }
}

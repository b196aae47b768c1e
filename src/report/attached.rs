//! The threads of another program: what woke them and what they did then.

use super::{
    figures::number,
    table::{Table, us},
};
use crate::{
    run::{AttachRecord, AttachedLatency, AttachedRow, AttachedTimes, Document, SeriesSummary},
    units::{Nanos, count, many},
};

/// Rows of single threads that are shown: those that woke up most often.
const SHOWN: usize = 16;

/// Columns that go on a narrow terminal, the first of them first.
pub(super) const LEAST: [&str; 6] = ["IPI", "ready", "interrupt", "slack", "period", "task"];

/// The same of responses.
pub(super) const LEAST_RESPONSES: [&str; 4] = ["not seen", "mean", "late", "cycles"];

/// A row for each name, and where a name has several threads one for each of them.
pub(super) fn table(document: &Document) -> Option<Table> {
    let record = document.attached.as_ref().filter(|record| !record.rows.is_empty())?;
    let headings = [
        "thread",
        "wake-ups",
        "timer",
        "interrupt",
        "IPI",
        "task",
        "period",
        "slack",
        "preempted",
        "run us",
        "p99",
        "ready",
        "blocked",
    ];
    let mut table = Table::new(1, &headings);
    shown(record).for_each(|row| table.row(cells(row)));
    Some(table)
}

/// A row for each whose work was measured: how long it took from the expiry to its end, and what
/// the cycles over the deadline were made of.
pub(super) fn responses(document: &Document) -> Option<Table> {
    let record = document.attached.as_ref()?;
    let headings = [
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
        "not seen",
    ];
    let mut table = Table::new(1, &headings);
    let mut rows = shown(record).filter_map(|row| Some((row, row.response?))).peekable();
    rows.peek()?;
    for (row, response) in rows {
        table.row(response_cells(row, &response));
    }
    Some(table)
}

fn response_cells(row: &AttachedRow, response: &AttachedTimes) -> Vec<String> {
    let mut cells = vec![row.series.clone(), count(response.count)];
    cells.extend([response.mean, response.p50, response.p99, response.max].map(us));
    let Some(over) = row.over else {
        return cells.into_iter().chain(["-"; 7].map(str::to_owned)).collect();
    };
    cells.push(Nanos(i64::try_from(over.deadline_ns).unwrap_or(i64::MAX)).to_string());
    cells.push(count(over.cycles));
    // The mean of each part.
    let parts = [over.late_ns, over.run_ns, over.ready_ns, over.wait_ns, over.unseen_ns];
    cells.extend(parts.map(|ns| us(ns.checked_div(over.cycles).and_then(|ns| ns.try_into().ok()))));
    cells
}

/// What the table leaves out, and what there is no row for.
pub(super) fn remarks(document: &Document) -> Vec<String> {
    let Some(record) = &document.attached else { return Vec::new() };
    let mut said = Vec::new();
    let all = record.rows.iter().filter(|row| is_of_several(record, row)).count();
    if all > SHOWN {
        said.push(format!("the {SHOWN} of {all} threads that woke up most often; --json has all"));
    }
    if record.pooled_only > 0 {
        said.push(format!(
            "{} lived too shortly for a row, and {} in that of the name",
            many(record.pooled_only, "thread"),
            if record.pooled_only == 1 { "is" } else { "are" }
        ));
    }
    if let Some(command) = &record.command {
        let ended = command.ended.as_deref().unwrap_or("still running");
        let by = if command.ended_by_tardy { ", as the run was over" } else { "" };
        said.push(format!("command {}: {ended}{by}", command.argv.join(" ")));
    }
    said
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

fn is_of_several(record: &AttachRecord, row: &AttachedRow) -> bool {
    let name = row.series.rsplit_once('/').map(|(name, _)| name);
    let pool = record.rows.iter().find(|pool| Some(pool.series.as_str()) == name);
    row.tid.is_some() && pool.is_none_or(|pool| pool.threads != Some(1))
}

fn shown(record: &AttachRecord) -> impl Iterator<Item = &AttachedRow> {
    let of_names = record.rows.iter().filter(|row| row.tid.is_none());
    let of_threads = record.rows.iter().filter(|row| is_of_several(record, row));
    of_names.chain(of_threads.take(SHOWN))
}

fn cells(row: &AttachedRow) -> Vec<String> {
    let share = |of: u64| match row.wakeups {
        0 => "-".into(),
        all => format!("{} %", number(of as f64 / all as f64 * 100.0)),
    };
    let has_timer = row.latency == Some(AttachedLatency::Lateness);
    let period = match row.period_ns {
        Some(ns) => Nanos(ns).to_string(),
        None if has_timer => "no period".into(),
        None => "-".into(),
    };
    let name = match row.threads {
        Some(threads) if threads > 1 => format!("{} ({threads})", row.series),
        _ => row.series.clone(),
    };
    vec![
        name,
        count(row.wakeups),
        share(row.by_timer),
        share(row.by_interrupt),
        share(row.by_ipi),
        share(row.by_task),
        period,
        row.slack_ns.map_or_else(|| "-".into(), |ns| Nanos(ns).to_string()),
        count(row.preempted),
        us(row.run.p50),
        us(row.run.p99),
        us(row.ready.p50),
        us(row.blocked.p50),
    ]
}

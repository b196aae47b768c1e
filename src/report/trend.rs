//! The table of runs over time, and what changed.

use super::{causes::words::head, table::Table};
use crate::{
    analysis::{
        change_points::FEWEST_VALUES,
        trend::{CauseShift, TrendAlarm, TrendChange, TrendFigure, TrendFigureName, TrendRow},
    },
    units::{Nanos, many},
};

/// Below this change of its share a cause is not named as one whose part changed.
const LEAST_SHIFT: f64 = 0.05;

/// A row a group, then a line for each change, for people; a table no wider than `width`.
#[must_use]
pub fn text(rows: &[TrendRow], width: Option<usize>) -> String {
    let mut table = Table::new(
        4,
        &[
            "machine",
            "measured",
            "policy",
            "series",
            "runs",
            "days",
            "p99",
            "last",
            "usual max",
            "last ",
            "worst",
            "changes",
        ],
    );
    rows.iter().for_each(|row| table.row(cells(row)));
    let least = ["last ", "last", "policy", "worst", "machine", "usual max", "measured"];
    let mut lines = table.fitted(width, &least).0;
    let changes: Vec<String> = rows.iter().flat_map(of_row).collect();
    if !changes.is_empty() {
        lines.push(String::new());
        lines.extend(changes);
    }
    if rows.iter().any(|row| row.figures.iter().any(|figure| figure.is_too_short)) {
        lines.push(String::new());
        lines.push(format!("Too few to say: a change is looked for from {FEWEST_VALUES} days on."));
    }
    lines.join("\n") + "\n"
}

fn cells(row: &TrendRow) -> Vec<String> {
    let key = &row.key;
    let ns = |ns: Option<i64>| ns.map_or_else(|| "-".into(), |ns| Nanos(ns).to_string());
    let mut cells = vec![
        key.machine.clone(),
        format!("{} {}, {}", key.probe, key.loads, key.length),
        key.policy.clone(),
        key.series.clone(),
        row.runs.to_string(),
        row.days.to_string(),
    ];
    for figure in &row.figures {
        cells.push(ns(figure.median_ns));
        cells.push(ns(figure.points.last().map(|point| point.ns)));
    }
    cells.push(ns(row.max_ns));
    let found: usize = row.figures.iter().map(|figure| figure.changes.len()).sum();
    let is_short = row.figures.iter().all(|figure| figure.is_too_short);
    cells.push(if is_short { "too few".into() } else { found.to_string() });
    cells
}

fn of_row(row: &TrendRow) -> Vec<String> {
    let key = &row.key;
    let place = format!("{}, {} {}, {}", key.machine, key.probe, key.loads, key.series);
    let of_figure = |figure: &TrendFigure| {
        let name = called(figure.figure);
        let changes = figure.changes.iter().map(|change| change_line(&place, name, change));
        let alarms = figure.alarms.iter().map(|alarm| alarm_line(&place, name, alarm));
        changes.chain(alarms).collect::<Vec<String>>()
    };
    row.figures.iter().flat_map(of_figure).collect()
}

/// The figure, as people call it.
#[must_use]
pub const fn called(figure: TrendFigureName) -> &'static str {
    match figure {
        TrendFigureName::P99 => "p99",
        TrendFigureName::BlockMax => "usual max",
    }
}

fn change_line(place: &str, name: &str, change: &TrendChange) -> String {
    let (before, after) = (Nanos(change.before_ns), Nanos(change.after_ns));
    let word = if change.ratio > 1.0 { "worse" } else { "better" };
    format!(
        "{}: {name} {word}, {before} -> {after} (x {:.2}), {place}\n    {}\n    {}",
        change.day,
        change.ratio,
        kernels(change),
        causes(change.causes.as_deref())
    )
}

/// What is known of the kernels around a change.
#[must_use]
pub fn kernels(change: &TrendChange) -> String {
    match &change.kernels {
        Some((before, after)) => format!("the kernel changed there: {before} -> {after}"),
        None => "the kernel did not change there".into(),
    }
}

/// Whose share of late time changed.
#[must_use]
pub fn causes(causes: Option<&[CauseShift]>) -> String {
    let Some(causes) = causes else { return "causes: not recorded on both sides".into() };
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let moved = causes.iter().filter(|cause| (cause.after - cause.before).abs() >= LEAST_SHIFT);
    let shift = |cause: &CauseShift| {
        let name = format!("{} {}", head(cause.cause), cause.name);
        format!("{} {} -> {}", name.trim_end(), percent(cause.before), percent(cause.after))
    };
    let moved: Vec<String> = moved.map(shift).collect();
    match moved.as_slice() {
        [] => "causes: no share of late time changed by 5 points".into(),
        moved => format!("share of late time: {}", moved.join(", ")),
    }
}

fn alarm_line(place: &str, name: &str, alarm: &TrendAlarm) -> String {
    let word = if alarm.is_worse { "worse" } else { "better" };
    let TrendAlarm { day, since, .. } = alarm;
    format!("{day}: alarm, {name} {word} since {since}, {place}")
}

/// What was left out: `left out: 2 invalid runs`; nothing where nothing was.
#[must_use]
pub fn left_out(counts: &[(usize, &str)]) -> Option<String> {
    let some = counts.iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> =
        some.map(|(count, what)| many(*count as u64, &format!("{what} run"))).collect();
    (!words.is_empty()).then(|| format!("left out: {}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::peaks::Cause;

    fn change(ratio: f64) -> TrendChange {
        TrendChange {
            day: "2026-10-07".into(),
            before_ns: 50_000,
            after_ns: (50_000.0 * ratio) as i64,
            ratio,
            kernels: Some(("6.12".into(), "6.13".into())),
            causes: None,
        }
    }

    #[test]
    fn a_change_is_said_with_its_day_its_size_and_what_is_known_of_it() {
        let said = change_line("vm, timer idle, cpu0", "p99", &change(1.5));
        assert!(
            said.starts_with("2026-10-07: p99 worse, 50.0 us -> 75.0 us (x 1.50), vm"),
            "{said}"
        );
        assert!(said.contains("the kernel changed there: 6.12 -> 6.13"), "{said}");
        assert!(said.ends_with("not recorded on both sides"), "{said}");
        assert!(change_line("vm", "p99", &change(0.5)).contains("p99 better"));
    }

    #[test]
    fn only_a_cause_whose_share_changed_is_named() {
        let shift = |name: &str, before, after| CauseShift {
            cause: Cause::Softirq,
            name: name.into(),
            before,
            after,
        };
        let said = causes(Some(&[shift("NET_RX", 0.1, 0.7), shift("TIMER", 0.2, 0.21)]));
        assert_eq!(said, "share of late time: softirq NET_RX 10 % -> 70 %");
        assert!(causes(Some(&[shift("TIMER", 0.2, 0.21)])).contains("no share of late time"));
        assert_eq!(
            left_out(&[(2, "invalid"), (0, "imported")]).unwrap(),
            "left out: 2 invalid runs"
        );
        assert_eq!(left_out(&[(0, "invalid")]), None);
    }
}

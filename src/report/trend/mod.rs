//! Runs over time, and what changed: as a table, and as a page.

mod days;
mod events;
mod page;
#[cfg(test)]
mod testing;
mod words;

pub use events::{TrendEvent, events, sentence};
pub use page::{PageTrend, PageTrendFigure, PageTrendRow, page};

use std::collections::BTreeMap;

use self::words::{called, direction, measured, time, title};
use super::table::Table;
use crate::{
    analysis::{
        change_points::FEWEST_VALUES,
        trend::{AlarmRule, TrendFigure, TrendFigureName, TrendRow},
    },
    plain::plain,
    units::many,
};

/// A row a group, then what changed, for people; a table no wider than `width` where the columns
/// that tell rows apart allow it. Of each row the latest `days` too.
#[must_use]
pub fn text(rows: &[TrendRow], width: Option<usize>, days: usize) -> String {
    let mut lines = table(rows, width);
    let found = events(rows);
    let is_all_short = rows.iter().all(is_short);
    if found.is_empty() && !rows.is_empty() && !is_all_short {
        lines.extend([String::new(), capital(&events::none(rows))]);
    }
    for event in found {
        let TrendEvent { day, is_worse, title, lines: changes, kernel, cause, .. } = event;
        lines.extend([String::new(), plain(&format!("{day}: {}, {title}", direction(is_worse)))]);
        let below = changes.iter().chain([&kernel, &cause]);
        lines.extend(below.map(|line| format!("    {}", plain(line))));
    }
    let alarms = alarms(rows);
    if !alarms.is_empty() {
        lines.push(String::new());
        lines.extend(alarms.iter().map(|line| plain(line)));
        if rows.iter().flat_map(|row| &row.figures).any(has_alarm_alone) {
            lines.push(ALARM_ALONE.into());
        }
    }
    if days > 0 {
        lines.extend(rows.iter().flat_map(|row| days::text(row, days)));
    }
    lines.extend(not_looked_at(rows).into_iter().flat_map(|line| [String::new(), line]));
    lines.join("\n") + "\n"
}

/// Why an alarm and a change are not the same.
const ALARM_ALONE: &str =
    "(An alarm judges the nights until then, a change all nights and all rows.
What lasts becomes a change as more nights follow.)";

fn has_alarm_alone(figure: &TrendFigure) -> bool {
    figure.alarms.iter().any(|alarm| !alarm.has_change)
}

/// A sentence that stands by itself.
fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The heading of a column that tells rows apart, and what it says of a row.
type RowColumn = (&'static str, fn(&TrendRow) -> String);

/// What all rows have in common stands above the table, so that no row needs it.
fn table(rows: &[TrendRow], width: Option<usize>) -> Vec<String> {
    let names: [RowColumn; 3] = [
        ("machine", |row| row.key.machine.clone()),
        ("measured", measured),
        ("policy", |row| row.key.policy.clone()),
    ];
    let mut common = Vec::new();
    let mut told = Vec::new();
    for (heading, of) in names {
        let first = rows.first().map(of).unwrap_or_default();
        if rows.iter().all(|row| of(row) == first) {
            common.push(first);
        } else {
            told.push((heading, of));
        }
    }
    common.retain(|own| !own.is_empty());
    let headings: Vec<&str> = told.iter().map(|(heading, _)| *heading).collect();
    let figures =
        ["series", "runs", "days", "p99", "last", "usual max", "last ", "worst", "changes"];
    let mut table = Table::new(told.len() + 1, &[&headings[..], &figures[..]].concat());
    for row in rows {
        table.row(told.iter().map(|(_, of)| of(row)).chain(cells(row)).collect());
    }
    let mut lines: Vec<String> = Vec::new();
    if !common.is_empty() {
        lines.push(plain(&common.join(", ")));
    }
    lines.extend(table.fitted(width, &["last ", "last", "worst", "runs", "usual max"]).0);
    lines
}

/// Where no change was looked for: rows of too few days, and figures that too few days of other
/// rows have.
fn not_looked_at(rows: &[TrendRow]) -> Option<String> {
    let from = format!("a change is looked for from {FEWEST_VALUES} days on.");
    let (short, long): (Vec<&TrendRow>, Vec<&TrendRow>) =
        rows.iter().partition(|row| is_short(row));
    let of_long = |name: TrendFigureName| {
        let mut own = long.iter().flat_map(|row| &row.figures);
        let is_short = |figure: &TrendFigure| figure.is_too_short && !figure.points.is_empty();
        own.any(|figure| figure.figure == name && is_short(figure))
    };
    let names = [TrendFigureName::P99, TrendFigureName::BlockMax, TrendFigureName::Max];
    let names: Vec<&str> = names.into_iter().filter(|name| of_long(*name)).map(called).collect();
    match (short.len(), names.is_empty()) {
        (0, true) => None,
        (short, _) if short == rows.len() => Some(format!("Too few days to say: {from}")),
        (0, false) => Some(format!("Too few days have a {}: {from}", names.join(" or a "))),
        (short, _) => Some(format!("Too few days in {}: {from}", many(short as u64, "row"))),
    }
}

fn is_short(row: &TrendRow) -> bool {
    row.figures.iter().all(|figure| figure.is_too_short)
}

fn cells(row: &TrendRow) -> Vec<String> {
    let mut cells = vec![row.key.series.clone(), row.runs.to_string(), row.days.to_string()];
    // Of the maximum the largest of all days stands there.
    for figure in row.figures.iter().filter(|own| own.figure != TrendFigureName::Max) {
        cells.push(time(figure.median_ns));
        cells.push(time(figure.points.last().map(|point| point.ns)));
    }
    cells.push(time(row.max_ns));
    let found: usize = row.figures.iter().map(|figure| figure.changes.len()).sum();
    cells.push(if is_short(row) { "too few".into() } else { found.to_string() });
    cells
}

/// What was seen after the same day, of the same runs and since the same day, with or without a
/// change beside it.
type AlarmsAlike<'a> = (&'a str, &'a str, bool, String, bool, AlarmRule);

/// A line for each of them.
fn alarms(rows: &[TrendRow]) -> Vec<String> {
    let mut alike: BTreeMap<AlarmsAlike<'_>, Vec<String>> = BTreeMap::new();
    for row in rows {
        for figure in &row.figures {
            for alarm in &figure.alarms {
                let (day, since) = (alarm.day.as_str(), alarm.since.as_str());
                let key = (day, since, alarm.is_worse, title(row), alarm.has_change, alarm.rule);
                let what = format!("{} of {}", called(figure.figure), row.key.series);
                alike.entry(key).or_default().push(what);
            }
        }
    }
    let line = |((day, since, is_worse, title, has_change, rule), what): (
        AlarmsAlike<'_>,
        Vec<String>,
    )| {
        let word = direction(is_worse);
        let alone = if has_change { "" } else { ", no change near it" };
        let alarm = match rule {
            AlarmRule::Ranks => "alarm",
            AlarmRule::GrossJump => "alarm (gross jump)",
        };
        format!("{day}: {alarm}, {word} since {since}, {title}: {}{alone}", what.join(", "))
    };
    alike.into_iter().map(line).collect()
}

/// What was left out, by a word before and a remark behind: `left out: 2 invalid runs`; nothing
/// where nothing was.
#[must_use]
pub fn left_out(counts: &[(usize, &str, &str)]) -> Option<String> {
    let some = counts.iter().filter(|(count, ..)| *count > 0);
    let word = |(count, what, remark): &(usize, &str, &str)| {
        many(*count as u64, &format!("{what} run")) + remark
    };
    let words: Vec<String> = some.map(word).collect();
    (!words.is_empty()).then(|| format!("left out: {}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::trend::{TrendAlarm, TrendPoint},
        report::trend::testing::{alarm, change, row},
    };

    #[test]
    fn what_rows_have_in_common_stands_above_them_and_the_rest_tells_them_apart() {
        let rows = [row("cpu0"), row("cpu1")];
        let lines = table(&rows, None);
        assert_eq!(lines[0], "vm, timer, no load started, 60 s, fifo 90");
        assert!(lines[1].starts_with("series  runs"), "{lines:?}");
        let mut rows = [row("cpu0"), row("cpu0")];
        rows[0].apart = vec!["traced".into()];
        rows[1].apart = vec!["not traced".into()];
        let narrow = table(&rows, Some(40));
        assert!(narrow[0] == "vm, fifo 90" && narrow[1].starts_with("measured"), "{narrow:?}");
        assert!(narrow[2].starts_with("timer, no load started, 60 s, traced"), "{narrow:?}");
        assert!(narrow[3].starts_with("timer, no load started, 60 s, not traced"), "{narrow:?}");
    }

    #[test]
    fn a_change_is_said_with_its_day_its_size_and_what_is_known_of_it() {
        let mut own = row("cpu0");
        own.figures[0].changes = vec![change("2026-10-07", 1.5)];
        own.figures[0].alarms = vec![alarm("2026-10-15", true)];
        own.figures[1].alarms = vec![alarm("2026-10-20", false)];
        let jump = TrendAlarm { rule: AlarmRule::GrossJump, ..alarm("2026-10-21", true) };
        own.figures[1].alarms.push(jump);
        let said = text(&[own], None, 0);
        for part in [
            "2026-10-07: worse, vm, timer, no load started, 60 s, fifo 90\n    cpu0: p99 50.0 us \
             -> 75.0 us (x 1.50)\n    the kernel changed there: 6.12 -> 6.13\n    causes: \
             not recorded",
            "2026-10-15: alarm, worse since 2026-10-07, vm, timer, no load started, 60 s, fifo \
             90: p99 of cpu0\n",
            "2026-10-20: alarm, worse since 2026-10-07, vm, timer, no load started, 60 s, fifo \
             90: usual max of cpu0, no change near it\n",
            "2026-10-21: alarm (gross jump), worse since 2026-10-07, vm, timer, no load started, \
             60 s, fifo 90: usual max of cpu0\n(An alarm judges the nights until then",
        ] {
            assert!(said.contains(part), "{said}");
        }
        assert!(!said.contains("No change"), "{said}");
        let (day, kernel) = ("2026-10-01".into(), "6.12".into());
        let point = TrendPoint { day, kernel, runs: 1, ns: 9, first: jiff::Timestamp::UNIX_EPOCH };
        let mut partly = row("cpu1");
        partly.figures[1].is_too_short = true;
        partly.figures[1].points = vec![point];
        let mut short = row("cpu2");
        short.figures.iter_mut().for_each(|figure| figure.is_too_short = true);
        let looked = |rows: &[TrendRow]| not_looked_at(rows).unwrap_or_default();
        let from = "a change is looked for from 20 days on.";
        assert_eq!(looked(&[partly]), format!("Too few days have a usual max: {from}"));
        assert_eq!(looked(&[row("cpu0"), short.clone()]), format!("Too few days in 1 row: {from}"));
        assert_eq!(looked(&[short]), format!("Too few days to say: {from}"));
        assert_eq!(looked(&[row("cpu0")]), "");
        let said = text(&[row("cpu0")], None, 0);
        assert!(said.contains("\n\nNo change was found. Of so few days"), "{said}");
        assert_eq!(
            left_out(&[(2, "invalid", ""), (0, "x", "")]).unwrap(),
            "left out: 2 invalid runs"
        );
        assert_eq!(left_out(&[(1, "odd", " (so)")]).unwrap(), "left out: 1 odd run (so)");
        assert_eq!(left_out(&[(0, "invalid", "")]), None);
    }
}

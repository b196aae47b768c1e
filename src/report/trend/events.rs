//! Changes that are one: those of the series and figures of the same runs, to the same side, within
//! two days of each other.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::words::{causes, direction, kernel, sizes, title};
use crate::{
    analysis::trend::{TrendChange, TrendFigureName, TrendRow, days_beside},
    units::many,
};

/// Days within which a change is found beside its place, nearly always.
const NEAR_DAYS: i32 = 2;

/// Series of which each is written out.
const MOST_SERIES: usize = 4;

/// What happened to the runs of a row, or of rows that differ in their series alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrendEvent {
    /// The first day of its largest change.
    pub day: String,
    /// Whether latencies became longer.
    pub is_worse: bool,
    /// The runs: `vm, timer, no load started, 60 s, fifo 90`.
    pub title: String,
    /// A line a series, the largest change first: `cpu0: p99 50.0 us -> 75.0 us (x 1.50)`.
    pub lines: Vec<String>,
    /// What the kernel did there.
    pub kernel: String,
    /// Whose share of late time changed.
    pub cause: String,
    /// The largest factor, 1 or more, whichever the side.
    pub size: f64,
}

/// One change, and of what.
struct Part<'a> {
    title: &'a str,
    series: &'a str,
    figure: TrendFigureName,
    change: &'a TrendChange,
    day: Option<Date>,
}

impl Part<'_> {
    fn is_worse(&self) -> bool {
        self.change.ratio > 1.0
    }

    /// 1 or more.
    fn size(&self) -> f64 {
        self.change.ratio.max(1.0 / self.change.ratio)
    }

    fn is_with(&self, other: &Self) -> bool {
        let near = |(a, b): (Date, Date)| a.duration_until(b).as_hours().abs() / 24;
        self.title == other.title
            && self.is_worse() == other.is_worse()
            && self.day.zip(other.day).is_some_and(|days| near(days) <= i64::from(NEAR_DAYS))
    }
}

/// All of them, the latest last.
#[must_use]
pub fn events(rows: &[TrendRow]) -> Vec<TrendEvent> {
    let titles: Vec<String> = rows.iter().map(title).collect();
    let mut parts: Vec<Part<'_>> = rows.iter().zip(&titles).flat_map(of_row).collect();
    // What is largest gathers the others; a stable sort keeps the order of series.
    parts.sort_by(|a, b| b.size().total_cmp(&a.size()));
    let mut groups: Vec<Vec<Part<'_>>> = Vec::new();
    for part in parts {
        let with = |group: &&mut Vec<Part<'_>>| group.first().is_some_and(|own| own.is_with(&part));
        match groups.iter_mut().find(with) {
            Some(group) => group.push(part),
            None => groups.push(vec![part]),
        }
    }
    let mut events: Vec<TrendEvent> = groups.iter().filter_map(|group| event(group)).collect();
    events.sort_by(|a, b| (&a.day, &a.title).cmp(&(&b.day, &b.title)));
    events
}

fn of_row<'a>((row, title): (&'a TrendRow, &'a String)) -> Vec<Part<'a>> {
    let part = |figure: TrendFigureName, change: &'a TrendChange| {
        let series = row.key.series.as_str();
        Part { title, series, figure, change, day: change.day.parse().ok() }
    };
    let of_figure =
        row.figures.iter().flat_map(|own| own.changes.iter().map(|one| part(own.figure, one)));
    of_figure.collect()
}

fn event(parts: &[Part<'_>]) -> Option<TrendEvent> {
    let first = parts.first()?;
    let mut series: Vec<&str> = Vec::new();
    for part in parts {
        if !series.contains(&part.series) {
            series.push(part.series);
        }
    }
    let (shown, more) = series.split_at(series.len().min(MOST_SERIES));
    let mut lines: Vec<String> =
        shown.iter().map(|own| line(own, &first.change.day, parts)).collect();
    if !more.is_empty() {
        let of_more = parts.iter().filter(|part| more.contains(&part.series));
        let ratios: Vec<f64> = of_more.map(|part| part.change.ratio).collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let many = if more.len() == 1 {
            "1 more series".into()
        } else {
            format!("{} more series", more.len())
        };
        lines.push(format!("{many}: x {least:.2} to x {most:.2}"));
    }
    let mut cause = causes(first.change.causes.as_deref());
    if series.len() > 1 && first.change.causes.is_some() {
        cause = format!("{cause} (on {})", first.series);
    }
    Some(TrendEvent {
        day: first.change.day.clone(),
        is_worse: first.is_worse(),
        title: first.title.to_owned(),
        lines,
        kernel: kernel(first.change),
        cause,
        size: first.size(),
    })
}

/// `cpu0: p99 50.0 us -> 75.0 us (x 1.50), usual max ... from 2026-10-08`
fn line(series: &str, day: &str, parts: &[Part<'_>]) -> String {
    let mut own: Vec<&Part<'_>> = parts.iter().filter(|part| part.series == series).collect();
    own.sort_by_key(|part| part.figure != TrendFigureName::P99);
    let words = |part: &&Part<'_>| {
        let sizes = sizes(part.figure, part.change);
        match part.change.day == day {
            true => sizes,
            false => format!("{sizes} from {} on", part.change.day),
        }
    };
    format!("{series}: {}", own.iter().map(words).collect::<Vec<_>>().join(", "))
}

/// That no change was found, what nightly looks saw nevertheless, and what could not be found.
pub(super) fn none(rows: &[TrendRow]) -> String {
    let alarms = rows.iter().flat_map(|row| &row.figures).flat_map(|figure| &figure.alarms);
    let found = match alarms.clone().max_by(|a, b| a.day.cmp(&b.day)) {
        None => "no change was found.".to_owned(),
        Some(last) => format!(
            "no change stands out among all days, but looks after each night raised {}, the \
             latest on {}: {} since {}.",
            many(alarms.count() as u64, "alarm"),
            last.day,
            direction(last.is_worse),
            last.since
        ),
    };
    let reach = match days_beside(rows) {
        Some(days) => format!(
            "A change in the first or last {} days may be too near the end to be found, however \
             large.",
            days.saturating_sub(1)
        ),
        None => "Of so few days, with so many rows, a change may not be told from chance, however \
                 large."
            .into(),
    };
    format!("{found} {reach}")
}

/// How many changes there are, in a sentence.
#[must_use]
pub fn sentence(rows: &[TrendRow], events: &[TrendEvent]) -> String {
    let days = rows.iter().map(|row| row.days).max().unwrap_or(0);
    let of = format!("{} in up to {}", many(rows.len() as u64, "row"), many(days as u64, "day"));
    let is_short = rows.iter().all(|row| row.figures.iter().all(|figure| figure.is_too_short));
    let worse = events.iter().filter(|event| event.is_worse).count();
    match events.last() {
        None if is_short => format!("{of}: too few to say whether anything changed."),
        None => format!("{of}: {}", none(rows)),
        Some(last) => {
            let TrendEvent { day, title, lines, is_worse, .. } = last;
            let line = lines.first().map_or("", String::as_str);
            let found = many(events.len() as u64, "change");
            let word = direction(*is_worse);
            format!(
                "{of}: {found}, {worse} for the worse. The latest is of {day}: {word} on {title}, \
                 {line}."
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::trend::testing::{alarm, change, point, row};

    #[test]
    fn what_changed_on_all_cpus_is_one_event() {
        let mut rows: Vec<TrendRow> = (0..6).map(|cpu| row(&format!("cpu{cpu}"))).collect();
        for (cpu, own) in rows.iter_mut().enumerate() {
            own.figures[0].changes = vec![change("2026-10-07", 1.5 + cpu as f64 / 100.0)];
        }
        rows[5].figures[1].changes = vec![change("2026-10-08", 1.2)];
        rows[0].figures[1].changes = vec![change("2026-10-08", 0.5), change("2026-10-20", 1.3)];
        let found = events(&rows);
        let heads: Vec<_> = found.iter().map(|own| (own.day.as_str(), own.is_worse)).collect();
        assert_eq!(heads, [("2026-10-07", true), ("2026-10-08", false), ("2026-10-20", true)]);
        let lines = &found[0].lines;
        assert_eq!(
            lines[0],
            "cpu5: p99 50.0 us -> 77.5 us (x 1.55), usual max 50.0 us -> 60.0 us (x 1.20) from \
             2026-10-08 on"
        );
        assert_eq!((lines.len(), lines[4].as_str()), (5, "2 more series: x 1.50 to x 1.51"));
        assert!(found[0].kernel.contains("6.12 -> 6.13"), "{found:?}");
        let said = sentence(&rows, &found);
        assert!(said.starts_with("6 rows in up to 60 days: 3 changes, 2 for the worse."), "{said}");
        assert!(
            said.contains("of 2026-10-20: worse on vm, timer, no load started, 60 s, fifo 90"),
            "{said}"
        );
    }

    #[test]
    fn where_nothing_is_found_it_is_said_whether_it_could_be() {
        let mut rows = [row("cpu0")];
        let said = sentence(&rows, &[]);
        assert!(
            said.starts_with("1 row in up to 60 days: no change was found. Of so few"),
            "{said}"
        );
        rows[0].figures[0].points = vec![point("2026-10-01", 50_000); 60];
        let said = sentence(&rows, &[]);
        assert!(
            said.ends_with(
                "first or last 19 days may be too near the end to be found, however \
            large."
            ),
            "{said}"
        );
        rows[0].figures[0].alarms = vec![alarm("2026-10-09", false), alarm("2026-10-20", false)];
        let said = sentence(&rows, &[]);
        let alarms = "no change stands out among all days, but looks after each night raised 2 \
            alarms, the latest on 2026-10-20: worse since 2026-10-07.";
        assert!(said.contains(alarms) && !said.contains("no change was found"), "{said}");
        rows[0].figures.iter_mut().for_each(|figure| figure.is_too_short = true);
        assert!(sentence(&rows, &[]).contains("too few to say"));
        rows[0].key.machine = "other".into();
        rows[0].figures[0].changes = vec![change("2026-10-07", 1.5)];
        let other = TrendRow { key: row("cpu0").key, ..rows[0].clone() };
        assert_eq!(events(&[rows[0].clone(), other]).len(), 2, "of two machines");
    }
}

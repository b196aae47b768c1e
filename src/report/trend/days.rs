//! The figures of a row, day by day.

use std::collections::BTreeMap;

use super::words::{time, title};
use crate::{
    analysis::trend::{TrendFigureName, TrendPoint, TrendRow},
    plain::plain,
    report::table::Table,
};

/// The runs of one day under one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TrendDay<'a> {
    pub day: &'a str,
    pub kernel: &'a str,
    pub runs: usize,
    pub p99_ns: Option<i64>,
    pub usual_max_ns: Option<i64>,
    pub max_ns: Option<i64>,
}

/// All of them, oldest first. A run with samples has a maximum, whatever else it lacks.
pub(super) fn days(row: &TrendRow) -> Vec<TrendDay<'_>> {
    let of = |name: TrendFigureName| {
        let figure = row.figures.iter().find(|figure| figure.figure == name);
        figure.map(|figure| by_day(&figure.points)).unwrap_or_default()
    };
    let (p99, usual) = (of(TrendFigureName::P99), of(TrendFigureName::BlockMax));
    let mut all = Vec::new();
    for TrendPoint { day, kernel, runs, ns, .. } in &row.maxima {
        let at = (day.as_str(), kernel.as_str());
        let (p99_ns, usual_max_ns) = (p99.get(&at).copied(), usual.get(&at).copied());
        let max_ns = Some(*ns);
        all.push(TrendDay { day, kernel, runs: *runs, p99_ns, usual_max_ns, max_ns });
    }
    all
}

fn by_day(points: &[TrendPoint]) -> BTreeMap<(&str, &str), i64> {
    points.iter().map(|point| ((point.day.as_str(), point.kernel.as_str()), point.ns)).collect()
}

/// The latest `count` days of a row, a line each.
pub(super) fn text(row: &TrendRow, count: usize) -> Vec<String> {
    let mut table = Table::new(2, &["day", "kernel", "runs", "p99", "usual max", "max"]);
    let days = days(row);
    for day in days.get(days.len().saturating_sub(count)..).unwrap_or(&days) {
        let TrendDay { day, kernel, runs, p99_ns, usual_max_ns, max_ns } = day;
        let times = [p99_ns, usual_max_ns, max_ns].map(|ns| time(*ns));
        let words = [(*day).to_owned(), (*kernel).to_owned(), runs.to_string()];
        table.row(words.into_iter().chain(times).collect());
    }
    let head = plain(&format!("{}, {}", title(row), row.key.series));
    [vec![String::new(), head], table.lines()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::trend::testing::{point, row};

    #[test]
    fn a_day_has_what_is_known_of_it() {
        let mut own = row("cpu0");
        own.maxima = vec![point("2026-10-01", 900_000), point("2026-10-02", 700_000)];
        own.figures[0].points = vec![point("2026-10-02", 50_000)];
        let lines = text(&own, 9);
        assert_eq!(lines[1], "vm, timer, no load started, 60 s, fifo 90, cpu0");
        let cells = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(cells(&lines[3]), "2026-10-01 6.12 1 - - 900 us");
        assert_eq!(cells(&lines[4]), "2026-10-02 6.12 1 50.0 us - 700 us");
        assert_eq!(text(&own, 1).len(), 4);
    }
}

//! The page of trends: what changed, and of each row its days.
//!
//! The data lies in the same block as that of runs, in `trend`; `web/src/trend/` draws it.

use jiff::civil::{Date, date};
use serde::{Deserialize, Serialize};

use super::{
    days::days,
    events::{TrendEvent, events, sentence},
    words::{causes, kernel, measured, title},
};
use crate::analysis::trend::{TrendChange, TrendFigure, TrendFigureName, TrendRow};

/// Runs of many nights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageTrend {
    /// What was asked: `Trends of kernel=6.12*`.
    pub title: String,
    /// How many changes there are, and the latest one, in a sentence.
    pub headline: String,
    /// How it is to be read, in sentences.
    pub meanings: Vec<String>,
    /// What was left out, and other things to know; none where nothing was.
    pub remarks: Vec<String>,
    /// The changes, oldest first.
    pub events: Vec<TrendEvent>,
    /// A row a group of runs that are alike, and a series.
    pub rows: Vec<PageTrendRow>,
}

/// A group of runs that are alike, and one of their series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageTrendRow {
    /// All that tells the group from others.
    pub title: String,
    /// The machine.
    pub machine: String,
    /// What was measured.
    pub measured: String,
    /// Policy and priority of the measured threads; empty where it is unknown.
    pub policy: String,
    /// The series.
    pub series: String,
    /// Runs.
    pub runs: usize,
    /// Their kernels, in the order of first use.
    pub kernels: Vec<String>,
    /// Each day and kernel, oldest first: columns of one length.
    pub days: PageTrendDays,
    /// p99.
    pub p99: PageTrendFigure,
    /// The median of the maxima of equal stretches of a run.
    pub usual_max: PageTrendFigure,
}

/// Days with runs, as columns of one length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageTrendDays {
    /// Days since 1970-01-01, UTC.
    pub day: Vec<i32>,
    /// Places in `kernels`.
    pub kernel: Vec<usize>,
    /// Runs.
    pub runs: Vec<usize>,
    /// Median of their p99, ns; null where too few samples lie beyond it.
    pub p99_ns: Vec<Option<i64>>,
    /// Median of their usual maxima, ns; null where their logs do not tell.
    pub usual_max_ns: Vec<Option<i64>>,
    /// Their largest latency, ns.
    pub max_ns: Vec<Option<i64>>,
}

/// What became of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageTrendFigure {
    /// The median of all days and kernels, ns; null without any.
    pub median_ns: Option<i64>,
    /// Whether there are too few days for a change to be found.
    pub is_too_short: bool,
    /// Where its level changed, oldest first.
    pub changes: Vec<PageTrendChange>,
    /// What nightly looks would have seen.
    pub alarms: Vec<PageTrendAlarm>,
}

/// A change of level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageTrendChange {
    /// The first day after it, in days since 1970-01-01.
    pub day: i32,
    /// The median before it, since the change before, ns.
    pub before_ns: i64,
    /// The median after it, until the next one, ns.
    pub after_ns: i64,
    /// After over before.
    pub ratio: f64,
    /// What the kernel did there.
    pub kernel: String,
    /// Whose share of late time changed.
    pub cause: String,
}

/// A change that was seen by looking after each day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageTrendAlarm {
    /// The day after which it was seen, in days since 1970-01-01.
    pub day: i32,
    /// The first day after the change, the same.
    pub since: i32,
    /// Whether latencies became longer.
    pub is_worse: bool,
}

/// The page of these rows. `run_length` is how many nights lie between false alarms.
#[must_use]
pub fn page(
    rows: &[TrendRow],
    asked: &str,
    left_out: Option<String>,
    run_length: u32,
) -> PageTrend {
    let found = events(rows);
    let title = match asked {
        "" => "Trends of all runs".into(),
        asked => format!("Trends of {asked}"),
    };
    PageTrend {
        title,
        headline: sentence(rows, &found),
        meanings: meanings(run_length),
        remarks: left_out.into_iter().collect(),
        events: found,
        rows: rows.iter().map(page_row).collect(),
    }
}

fn meanings(run_length: u32) -> Vec<String> {
    vec![
        "A value for each day (UTC) and kernel: the median of its runs' p99 and of their usual \
         maximum, which is the median of the maxima of twenty equal stretches of a run. Of the \
         largest latency of a day, one sample, no change is claimed."
            .into(),
        "Changes are found in retrospect by ranks; of all that are named 5% are wrong on average. \
         Their day is exact to two nights or so. What changed with them need not be their cause."
            .into(),
        format!(
            "An alarm is what a look after each night would have seen first: one in {run_length} \
             nights is false, over all rows together. It judges the nights until then, a change \
             all nights and rows: an alarm without a change near it may be false, or too new. \
             Three nights each over twice the largest of the nights before (a gross jump) are an \
             alarm too."
        ),
    ]
}

fn page_row(row: &TrendRow) -> PageTrendRow {
    let mut columns = PageTrendDays::default();
    for day in days(row) {
        columns.day.push(number(day.day));
        let kernel = row.kernels.iter().position(|own| own == day.kernel);
        columns.kernel.push(kernel.unwrap_or(0));
        columns.runs.push(day.runs);
        columns.p99_ns.push(day.p99_ns);
        columns.usual_max_ns.push(day.usual_max_ns);
        columns.max_ns.push(day.max_ns);
    }
    PageTrendRow {
        title: title(row),
        machine: row.key.machine.clone(),
        measured: measured(row),
        policy: row.key.policy.clone(),
        series: row.key.series.clone(),
        runs: row.runs,
        kernels: row.kernels.clone(),
        days: columns,
        p99: page_figure(row, TrendFigureName::P99),
        usual_max: page_figure(row, TrendFigureName::BlockMax),
    }
}

fn page_figure(row: &TrendRow, name: TrendFigureName) -> PageTrendFigure {
    let own = row.figures.iter().find(|figure| figure.figure == name);
    let changes = own.map(|figure| figure.changes.as_slice()).unwrap_or_default();
    let alarms = own.map(|figure| figure.alarms.as_slice()).unwrap_or_default();
    PageTrendFigure {
        median_ns: own.and_then(|figure| figure.median_ns),
        is_too_short: own.is_none_or(|figure: &TrendFigure| figure.is_too_short),
        changes: changes.iter().map(page_change).collect(),
        alarms: alarms
            .iter()
            .map(|alarm| PageTrendAlarm {
                day: number(&alarm.day),
                since: number(&alarm.since),
                is_worse: alarm.is_worse,
            })
            .collect(),
    }
}

fn page_change(change: &TrendChange) -> PageTrendChange {
    PageTrendChange {
        day: number(&change.day),
        before_ns: change.before_ns,
        after_ns: change.after_ns,
        ratio: change.ratio,
        kernel: kernel(change),
        cause: causes(change.causes.as_deref()),
    }
}

/// Days since 1970-01-01.
fn number(day: &str) -> i32 {
    let epoch = date(1970, 1, 1);
    let days = day.parse::<Date>().map(|day| epoch.duration_until(day).as_hours() / 24);
    days.ok().and_then(|days| i32::try_from(days).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::trend::testing::{change, point, row};

    #[test]
    fn a_row_has_its_days_as_columns_and_its_changes_by_their_number() {
        let mut own = row("cpu0");
        own.maxima = vec![point("2026-10-01", 900_000), point("2026-10-02", 700_000)];
        own.figures[0].points = vec![point("2026-10-02", 50_000)];
        own.figures[0].changes = vec![change("2026-10-07", 1.5)];
        let page = page(&[own], "kernel=6*", Some("left out: 1 invalid run".into()), 365);
        assert_eq!(page.title, "Trends of kernel=6*");
        let row = &page.rows[0];
        assert_eq!(row.days.day, [20_727, 20_728]);
        assert_eq!(row.days.p99_ns, [None, Some(50_000)]);
        assert_eq!(row.days.max_ns, [Some(900_000), Some(700_000)]);
        assert_eq!(row.p99.changes[0].day, 20_733);
        assert_eq!(page.events.len(), 1);
        assert!(page.remarks.len() == 1 && page.meanings[2].contains("365"));
    }

    #[test]
    fn days_have_a_number() {
        assert_eq!((number("1970-01-01"), number("1969-12-31")), (0, -1));
        assert_eq!(number("2026-01-01"), 20_454);
    }
}

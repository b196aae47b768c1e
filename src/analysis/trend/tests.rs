//! Trends of made-up nights.

use super::*;
use crate::run::{CauseSum, peaks::Cause};

fn key(series: &str) -> TrendKey {
    TrendKey {
        machine: "vm".into(),
        probe: "timer".into(),
        loads: "idle".into(),
        policy: "fifo 90".into(),
        length: "60 s".into(),
        conditions: BTreeMap::new(),
        series: series.into(),
    }
}

/// Nightly runs; from `change` on they are slower by `ratio`, under another kernel.
fn nights(count: i64, change: i64, ratio: f64) -> Vec<TrendRun> {
    let run = |night: i64| {
        let is_later = night >= change;
        let noise = 1.0 + (night * 37 % 11) as f64 / 100.0;
        let ns = (50_000.0 * noise * if is_later { ratio } else { 1.0 }) as i64;
        let cause = |name: &str, ns| CauseSum { cause: Cause::Softirq, name: name.into(), ns };
        let (net, timer) = if is_later { (70, 30) } else { (10, 90) };
        let causes = vec![cause("NET_RX", net), cause("TIMER", timer)];
        TrendRun {
            started: Timestamp::from_second(1_790_000_000 + night * 86_400).unwrap(),
            kernel: if is_later { "6.13" } else { "6.12" }.into(),
            program: if is_later { "tardy 2" } else { "tardy 1" }.into(),
            p99_ns: Some(ns),
            block_max_ns: None,
            max_ns: Some(2 * ns),
            late: Some(LateDetails { ns: 100, causes }),
        }
    };
    (0..count).map(run).collect()
}

#[test]
fn a_change_has_its_day_its_size_its_kernels_and_its_causes() {
    let rows = trend(BTreeMap::from([(key("cpu0"), nights(60, 45, 1.5))]), Some(365.0));
    let row = &rows[0];
    assert_eq!((row.runs, row.days, row.kernels.len()), (60, 60, 2));
    let figure = &row.figures[0];
    let [change] = figure.changes.as_slice() else { panic!("{:?}", figure.changes) };
    assert_eq!(change.day, figure.points[45].day);
    assert!((change.ratio - 1.5).abs() < 0.03, "{change:?}");
    let (day, before, after) = (change.day.clone(), "6.12".into(), "6.13".into());
    assert_eq!(change.kernel, KernelThere::Changed { day, before, after });
    let cause = &change.causes.as_ref().unwrap()[0];
    assert_eq!((cause.name.as_str(), cause.before, cause.after), ("NET_RX", 0.1, 0.7));
    assert!(matches!(figure.alarms.as_slice(), [one] if one.is_worse && one.points_ago > 0));
    assert!(figure.alarms[0].has_change);
    assert!(row.figures[1].points.is_empty() && row.figures[1].is_too_short);
}

#[test]
fn what_is_too_small_too_short_or_without_records_is_not_made_up() {
    let mut runs = nights(60, 99, 1.0);
    // So steady that a step of 3% stands out, and yet matters to nobody.
    let level = |night: usize| if night < 30 { 50_000 } else { 51_500 };
    for (night, run) in runs.iter_mut().enumerate() {
        run.p99_ns = Some(level(night) + (night * 37 % 11) as i64);
    }
    let small = trend(BTreeMap::from([(key("cpu0"), runs)]), Some(365.0));
    assert_eq!(small[0].figures[0].changes, []);
    assert_eq!(small[0].figures[0].alarms, []);
    let short = trend(BTreeMap::from([(key("cpu0"), nights(19, 9, 9.0))]), Some(365.0));
    let figure = &short[0].figures[0];
    assert!(figure.is_too_short && figure.changes.is_empty() && figure.alarms.is_empty());
    let mut runs = nights(60, 30, 2.0);
    runs.iter_mut().take(30).for_each(|run| run.late = None);
    let rows = trend(BTreeMap::from([(key("cpu0"), runs)]), None);
    assert_eq!(rows[0].figures[0].changes[0].causes, None);
}

#[test]
fn runs_of_a_day_under_one_kernel_are_one_value() {
    let mut runs = nights(30, 99, 1.0);
    let more = TrendRun { p99_ns: Some(1), ..runs[3].clone() };
    runs.extend([more.clone(), more]);
    let rows = trend(BTreeMap::from([(key("cpu0"), runs)]), None);
    let points = &rows[0].figures[0].points;
    assert_eq!((points.len(), points[3].runs, points[3].ns), (30, 3, 1));
}

#[test]
fn of_a_day_the_largest_latency_is_kept_whole() {
    let mut runs = nights(30, 99, 1.0);
    let more = TrendRun { max_ns: Some(9_000_000), ..runs[3].clone() };
    runs.insert(0, TrendRun { max_ns: None, p99_ns: None, ..runs[5].clone() });
    runs.push(more);
    let rows = trend(BTreeMap::from([(key("cpu0"), runs)]), None);
    let maxima = &rows[0].maxima;
    assert_eq!((maxima.len(), maxima[3].runs, maxima[3].ns), (30, 2, 9_000_000));
    assert_eq!((maxima[5].runs, rows[0].max_ns), (1, Some(9_000_000)));
}

#[test]
fn rows_are_in_the_order_of_their_numbers() {
    let groups = ["cpu10", "cpu2", "cpu2#1", "rtt"].map(|name| (key(name), nights(1, 9, 1.0)));
    let rows = trend(BTreeMap::from(groups), None);
    let names: Vec<_> = rows.iter().map(|row| row.key.series.as_str()).collect();
    assert_eq!(names, ["cpu2", "cpu2#1", "cpu10", "rtt"]);
}

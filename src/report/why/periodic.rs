//! Causes that come at a beat.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    analysis::period::{Periodicity, period},
    run::{
        AttachRecord, Document,
        peaks::{Cause, EVENTS_LOST, MESSAGE_PATH, NOT_ANALYSED, WAKE_UP_PATH},
        peaks_file::Brief,
    },
};

/// The probability of a false period, over all causes of a run together.
const LEVEL: f64 = 0.01;

/// The number of causes that are examined: those with the most peaks.
const MOST_CAUSES: usize = 16;

/// A cause that comes at a beat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PeriodicCause {
    /// What kind.
    pub cause: Cause,
    /// Which one.
    pub name: String,
    /// The series that it hit.
    pub series: Vec<String>,
    /// How regularly.
    #[serde(flatten)]
    pub period: Periodicity,
}

/// The grid of series without a known period.
const DEFAULT_GRID_NS: i64 = 1_000_000;

/// An attached thread that woke up less often makes no beat by itself.
const FEWEST_WAKEUPS: u64 = 8;

/// The periodic causes among the peaks of a run (sorted by time); peaks have the cause of their
/// largest part. There can be peaks only where a thread is due: a beat that is not clearly longer
/// than the longest period of the series that a cause hit is theirs, and says nothing of the cause.
/// Those of one cause that are nearer than two periods are one event: they are the same delay on
/// several CPUs, or its end.
pub(super) fn causes(peaks: &[Brief], document: &Document) -> Vec<PeriodicCause> {
    let mut causes: BTreeMap<(Cause, &Arc<str>), OfCause<'_>> = BTreeMap::new();
    let mut grids: HashMap<&str, Option<i64>> = HashMap::new();
    for peak in peaks.iter().filter(|peak| is_of_another(peak)) {
        let grid = grids.entry(&peak.series).or_insert_with(|| grid_ns(document, &peak.series));
        // The cycle of a thread without a known period cannot be told from a beat.
        let Some(grid_ns) = *grid else { continue };
        let own = causes.entry((peak.cause, &peak.name)).or_default();
        own.grid_ns = own.grid_ns.max(grid_ns);
        own.peaks.push(peak);
    }
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(_, own)| std::cmp::Reverse(own.peaks.len()));
    causes.truncate(MOST_CAUSES);
    let level = LEVEL / causes.len().max(1) as f64;
    let of = |((cause, name), own): ((Cause, &Arc<str>), OfCause<'_>)| {
        let period = period(&events(&own.peaks, own.grid_ns), own.grid_ns, level)?;
        let mut series: Vec<String> =
            own.peaks.iter().map(|peak| peak.series.to_string()).collect();
        series.sort();
        series.dedup();
        Some(PeriodicCause { cause, name: name.to_string(), series, period })
    };
    let mut periodic: Vec<PeriodicCause> = causes.into_iter().filter_map(of).collect();
    periodic.sort_by_key(|one| std::cmp::Reverse(one.period.events));
    periodic
}

/// The peaks of one cause, and the longest period among their series.
#[derive(Default)]
struct OfCause<'a> {
    grid_ns: i64,
    peaks: Vec<&'a Brief>,
}

/// What every wake-up has, and tardy's own work and losses, come with the peaks of others; the
/// threads' own work has the beat of their cycles.
fn is_of_another(peak: &Brief) -> bool {
    ![WAKE_UP_PATH, MESSAGE_PATH, EVENTS_LOST, NOT_ANALYSED].contains(&&*peak.name)
        && !matches!(peak.cause, Cause::Tracing | Cause::OwnWork)
}

/// How far apart the peaks of a series can be at least; nothing if that is not known.
fn grid_ns(document: &Document, series: &str) -> Option<i64> {
    let name = series.split('/').next().unwrap_or(series);
    if let Some(attached) = &document.attached {
        return attached_period_ns(attached, name);
    }
    let period = |name: &str| document.series.iter().find(|own| own.name == name)?.period_ns;
    let period = period(series).or_else(|| period(name)).or_else(|| document.probe.interval_ns());
    Some(period.unwrap_or(DEFAULT_GRID_NS))
}

/// The longest period of the attached threads of a name, where those of all are known.
fn attached_period_ns(attached: &AttachRecord, name: &str) -> Option<i64> {
    let rows = || attached.rows.iter().filter(|row| row.series.split('/').next() == Some(name));
    let (threads, pooled): (Vec<_>, Vec<_>) = rows().partition(|row| row.tid.is_some());
    let all = pooled.iter().filter_map(|row| row.threads).fold(0, u64::saturating_add);
    let are_all = !threads.is_empty() && threads.len() as u64 >= all;
    let known = if are_all { threads } else { pooled };
    let counting = known.iter().filter(|row| row.wakeups >= FEWEST_WAKEUPS);
    let periods: Option<Vec<i64>> = counting.map(|row| row.period_ns).collect();
    periods?.into_iter().max()
}

fn events(peaks: &[&Brief], grid_ns: i64) -> Vec<i64> {
    let mut events: Vec<i64> = Vec::new();
    let near = grid_ns.saturating_mul(2);
    let mut last = None;
    for at_ns in peaks.iter().filter_map(|peak| peak.at_ns) {
        if last.is_none_or(|last: i64| at_ns.saturating_sub(last) >= near) {
            events.push(at_ns);
        }
        last = Some(at_ns);
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        report::fixture,
        run::{AttachedRow, AttachedTimes},
    };

    const MS: i64 = 1_000_000;

    fn peak(at_ns: i64, cpu: u32, name: &str) -> Brief {
        Brief {
            at_ns: Some(at_ns),
            latency_ns: 5 * MS / 10,
            series: format!("cpu{cpu}").into(),
            cpu,
            cause: Cause::IrqsOff,
            name: name.into(),
        }
    }

    fn timer() -> Document {
        fixture::of("timer", &[])
    }

    /// Attached threads of the name `app`, with these periods.
    fn attached(periods_ns: &[Option<i64>]) -> Document {
        let row = |(tid, period_ns): (u32, &Option<i64>)| AttachedRow {
            series: format!("app/{tid}"),
            tid: Some(tid),
            threads: None,
            period_ns: *period_ns,
            ..row_of_app()
        };
        let mut rows: Vec<AttachedRow> = (1..).zip(periods_ns).map(row).collect();
        rows.push(AttachedRow { threads: Some(periods_ns.len() as u64), ..row_of_app() });
        let record = AttachRecord { rows, ..AttachRecord::default() };
        Document { attached: Some(record), ..fixture::of("attach", &["app"]) }
    }

    fn row_of_app() -> AttachedRow {
        serde_json::from_value(serde_json::json!({
            "series": "app", "tid": null, "pid": null, "threads": 1, "latency": "lateness",
            "wakeups": 900, "by_timer": 900, "by_interrupt": 0, "by_ipi": 0, "by_task": 0,
            "by_own_timer": 900, "in_slack": 0, "slack_ns": 0, "period_ns": null,
            "preempted": 0, "unmatched": 0, "lateness": null,
            "run": AttachedTimes::default(), "ready": AttachedTimes::default(),
            "blocked": AttachedTimes::default(),
        }))
        .unwrap()
    }

    fn of_app(at_ns: i64) -> Brief {
        Brief { series: "app/response".into(), cause: Cause::Thread, ..peak(at_ns, 0, "hog") }
    }

    /// Evenly from 0 to below 1, the same for each seed.
    fn random(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    #[test]
    fn random_expiries_on_the_grid_of_a_thread_are_no_beat() {
        let document = attached(&[Some(10 * MS)]);
        let mut alarms = 0;
        for seed in 0..40 {
            let mut unit = random(seed);
            let (cycles, late) = (1_000 + (unit() * 3_000.0) as i64, 0.02 + unit() * 0.3);
            let peaks: Vec<Brief> = (0..cycles)
                .filter(|_| unit() < late)
                .map(|cycle| of_app(cycle * 10 * MS + 3 * MS))
                .collect();
            assert!(peaks.len() >= 8);
            alarms += u32::from(!causes(&peaks, &document).is_empty());
        }
        assert!(alarms <= 3, "{alarms} of 40");
    }

    #[test]
    fn a_hog_at_a_beat_is_found_on_the_grid_of_a_thread() {
        let document = attached(&[Some(10 * MS)]);
        for seed in 0..20 {
            let mut unit = random(seed);
            let begin = (unit() * 200.0) as i64 * MS;
            // It takes up to 12 ms, so that it makes the next expiry late and perhaps one more.
            let hogs = (0..100).map(|k| begin + k * 200 * MS);
            let expiry = |at: i64| (at + 10 * MS - 1) / (10 * MS) * 10 * MS;
            let peaks: Vec<Brief> = hogs
                .flat_map(|at| [(expiry(at), true), (expiry(at) + 10 * MS, unit() < 0.3)])
                .filter(|(_, is_late)| *is_late)
                .map(|(at, _)| of_app(at))
                .collect();
            let found = causes(&peaks, &document);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!((found[0].period.period_ns / 2e8 - 1.0).abs() < 2e-3, "{found:?}");
        }
    }

    #[test]
    fn a_beat_is_longer_than_the_longest_period_and_no_thread_may_be_without() {
        let peaks: Vec<Brief> = (0..100).map(|k| of_app(k * 50 * MS)).collect();
        assert_eq!(causes(&peaks, &attached(&[Some(MS), Some(10 * MS)])).len(), 1);
        assert_eq!(causes(&peaks, &attached(&[Some(MS), Some(50 * MS)])), []);
        assert_eq!(causes(&peaks, &attached(&[Some(MS), None])), []);
        assert_eq!(causes(&peaks, &attached(&[None])), []);
        let mut slow = timer();
        slow.series = vec![fixture::summary("app")];
        slow.series[0].period_ns = Some(50 * MS);
        assert_eq!(causes(&peaks, &slow), []);
        slow.series[0].period_ns = None;
        assert_eq!(causes(&peaks, &slow).len(), 1);
    }

    #[test]
    fn the_own_work_of_threads_and_what_was_lost_have_no_beat() {
        let beat = |cause, name: &str| -> Vec<Brief> {
            let one = |k: i64| Brief { cause, ..peak(k * 50 * MS, 0, name) };
            (0..60).map(one).collect()
        };
        assert_eq!(causes(&beat(Cause::OwnWork, "own work"), &timer()), []);
        assert_eq!(causes(&beat(Cause::Unexplained, EVENTS_LOST), &timer()), []);
        assert_eq!(causes(&beat(Cause::Thread, "hog"), &timer()).len(), 1);
    }

    #[test]
    fn a_cause_at_a_beat_is_found_beside_one_without() {
        let mut peaks: Vec<Brief> = (0..60)
            .flat_map(|k| [peak(k * 50 * MS, 0, "beat"), peak(k * 50 * MS, 1, "beat")])
            .collect();
        // Gaps without any period: squares modulo a prime.
        let mut at = 0;
        for k in 1..40_i64 {
            at += (k * k % 83 + 7) * MS;
            peaks.push(peak(at, 2, "noise"));
        }
        peaks.sort_by_key(|peak| peak.at_ns);
        let found = causes(&peaks, &timer());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].name.as_str(), found[0].period.events), ("beat", 60));
        assert_eq!(found[0].series, ["cpu0", "cpu1"]);
        assert!((found[0].period.period_ns / 5e7 - 1.0).abs() < 1e-3);
        assert_eq!(causes(&[], &timer()), []);
    }
}

//! Rows for the tests beside it.

use jiff::Timestamp;

use crate::analysis::trend::{
    AlarmRule, KernelThere, TrendAlarm, TrendChange, TrendFigure, TrendFigureName, TrendKey,
    TrendPoint, TrendRow,
};

pub(super) fn point(day: &str, ns: i64) -> TrendPoint {
    let (day, kernel, first) = (day.into(), "6.12".into(), Timestamp::UNIX_EPOCH);
    TrendPoint { day, kernel, runs: 1, ns, first }
}

/// From 50 us on, with a kernel that came on 2026-10-07.
pub(super) fn change(day: &str, ratio: f64) -> TrendChange {
    TrendChange {
        day: day.into(),
        before_ns: 50_000,
        after_ns: (50_000.0 * ratio).round() as i64,
        ratio,
        kernel: KernelThere::Changed {
            day: "2026-10-07".into(),
            before: "6.12".into(),
            after: "6.13".into(),
        },
        program: None,
        causes: None,
    }
}

/// Since 2026-10-07.
pub(super) fn alarm(day: &str, has_change: bool) -> TrendAlarm {
    let (day, since) = (day.into(), "2026-10-07".into());
    let rule = AlarmRule::Ranks;
    TrendAlarm { day, since, rule, is_worse: true, points_ago: 0, has_change }
}

pub(super) fn row(series: &str) -> TrendRow {
    let figure = |figure| TrendFigure {
        figure,
        points: Vec::new(),
        median_ns: None,
        is_too_short: false,
        changes: Vec::new(),
        alarms: Vec::new(),
    };
    TrendRow {
        key: TrendKey {
            machine: "vm".into(),
            probe: "timer".into(),
            loads: "idle".into(),
            policy: "fifo 90".into(),
            length: "60 s".into(),
            conditions: [].into(),
            series: series.into(),
        },
        apart: Vec::new(),
        runs: 60,
        days: 60,
        kernels: vec!["6.12".into()],
        max_ns: None,
        maxima: Vec::new(),
        figures: [TrendFigureName::P99, TrendFigureName::BlockMax].map(figure).into(),
    }
}

//! Rows, figures, kernels and causes of trends in words.

use crate::{
    analysis::trend::{
        CauseShift, KernelThere, ProgramChange, TrendChange, TrendFigureName, TrendRow,
    },
    report::{causes::words::head, words::under},
    units::{Nanos, percent},
};

/// Below this change of its share a cause is not named as one whose part changed.
const LEAST_SHIFT: f64 = 0.05;

/// What was measured, and what tells it from others that look like it: `timer, no load
/// started, 60 s, traced`.
pub(super) fn measured(row: &TrendRow) -> String {
    let key = &row.key;
    let mut words = format!("{}, {}", under(&key.probe, &key.loads), key.length);
    for own in &row.apart {
        words.push_str(", ");
        words.push_str(own);
    }
    words
}

/// A row but for its series: `vm, timer, no load started, 60 s, fifo 90`.
pub(super) fn title(row: &TrendRow) -> String {
    let words = [row.key.machine.clone(), measured(row), row.key.policy.clone()];
    words.into_iter().filter(|own| !own.is_empty()).collect::<Vec<_>>().join(", ")
}

/// A time, or that it is missing.
pub(super) fn time(ns: Option<i64>) -> String {
    ns.map_or_else(|| "-".into(), |ns| Nanos(ns).to_string())
}

/// Whether latencies became longer.
pub(super) const fn direction(is_worse: bool) -> &'static str {
    if is_worse { "worse" } else { "better" }
}

/// The figure, as people call it.
pub(super) const fn called(figure: TrendFigureName) -> &'static str {
    match figure {
        TrendFigureName::P99 => "p99",
        TrendFigureName::BlockMax => "usual max",
        TrendFigureName::Max => "max",
    }
}

/// `p99 50.0 us -> 75.0 us (x 1.50)`
pub(super) fn sizes(figure: TrendFigureName, change: &TrendChange) -> String {
    let (before, after) = (Nanos(change.before_ns), Nanos(change.after_ns));
    format!("{} {before} -> {after} (x {:.2})", called(figure), change.ratio)
}

/// What is known of the kernels around a change, and of the program that measured.
pub(super) fn kernel(change: &TrendChange) -> String {
    let kernel = match &change.kernel {
        KernelThere::Changed { day, before, after } if *day == change.day => {
            format!("the kernel changed there: {before} -> {after}")
        }
        KernelThere::Changed { day, before, after } => {
            format!("the kernel changed on {day}, which may be the same night: {before} -> {after}")
        }
        KernelThere::Same => "the kernel did not change there".into(),
        KernelThere::InTurn => "several kernels in turn there: none came with the change".into(),
    };
    kernel + &program(change)
}

/// Which program came with a change, where one did.
fn program(change: &TrendChange) -> String {
    let words = |own: &ProgramChange| {
        format!("; the program changed there: {} -> {}", own.before, own.after)
    };
    change.program.as_ref().map_or_else(String::new, words)
}

/// Whose share of late time changed.
pub(super) fn causes(causes: Option<&[CauseShift]>) -> String {
    let Some(causes) = causes else { return "causes: not recorded on both sides".into() };
    let moved = causes.iter().filter(|cause| (cause.after - cause.before).abs() >= LEAST_SHIFT);
    let shift = |cause: &CauseShift| {
        let name = format!("{} {}", head(cause.cause), cause.name);
        format!("{} {} -> {}", name.trim_end(), percent(cause.before, 0), percent(cause.after, 0))
    };
    let moved: Vec<String> = moved.map(shift).collect();
    match moved.as_slice() {
        [] => "causes: no share of late time changed by 5 points".into(),
        moved => format!("share of late time: {}", moved.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{report::trend::testing::change, run::peaks::Cause};

    #[test]
    fn a_kernel_that_came_a_night_beside_is_not_said_to_have_come_there() {
        let mut own = change("2026-10-07", 1.5);
        assert_eq!(kernel(&own), "the kernel changed there: 6.12 -> 6.13");
        own.day = "2026-10-08".into();
        assert!(kernel(&own).starts_with("the kernel changed on 2026-10-07, which may be"));
        own.kernel = KernelThere::InTurn;
        assert!(kernel(&own).contains("none came with the change"));
        let (before, after) = ("cyclictest 2.40".into(), "tardy 0.2.0".into());
        (own.kernel, own.program) = (KernelThere::Same, Some(ProgramChange { before, after }));
        let said = "the kernel did not change there; the program changed there: cyclictest 2.40 -> \
                    tardy 0.2.0";
        assert_eq!(kernel(&own), said);
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
        assert_eq!(said, "share of late time: softirq NET_RX 10% -> 70%");
        assert!(causes(Some(&[shift("TIMER", 0.2, 0.21)])).contains("no share of late time"));
        assert_eq!(causes(None), "causes: not recorded on both sides");
    }
}

//! A peak as the run keeps it.

use tardy_hot::stages::{Late, Stages};

use super::{MeasuredThread, late_wakeup::LateWakeup, timeline, waiting::Waiting};
use crate::run::peaks::{Basis, Cause, Part, Peak, StagesOf, WayOf};

/// A peak of which no more is known than what its thread found itself, and `why`.
#[must_use]
pub(super) fn lost(me: &MeasuredThread, one: &Waiting, roams: bool, why: &str) -> Peak {
    let late = &one.late;
    Peak {
        at_ns: Some(late.t_ns),
        series: me.series.clone(),
        tid: roams.then_some(me.tid),
        cpu: if late.matched { late.cpus.1 } else { me.cpu },
        latency_ns: late.latency_ns,
        stages: stages_of(late, one.ways.is_empty() && !me.works),
        ways: Vec::new(),
        blame: vec![Part {
            cause: Cause::Unexplained,
            name: why.to_owned(),
            task: None,
            ns: late.latency_ns.unsigned_abs(),
            basis: Basis::None,
            evidence: None,
            stack: Vec::new(),
        }],
        timeline: Vec::new(),
        left_out: 0,
    }
}

/// One that was analysed; `ways` are those of a message.
#[must_use]
pub(super) fn peak(wakeup: &LateWakeup<'_>, blame: Vec<Part>, ways: Vec<WayOf>) -> Peak {
    let (timeline, left_out) = timeline::timeline(wakeup);
    Peak {
        at_ns: Some(wakeup.late.t_ns),
        series: wakeup.me.series.clone(),
        tid: wakeup.wishes.roams.then_some(wakeup.me.tid),
        cpu: wakeup.history.spans.last().map_or(wakeup.me.cpu, |span| span.cpu),
        latency_ns: wakeup.late.latency_ns,
        stages: stages_of(wakeup.late, wakeup.ways.is_empty() && !wakeup.me.works),
        ways,
        blame,
        timeline,
        left_out,
    }
}

/// Those of a wake-up, where the kernel's record matched.
fn stages_of(late: &Late, is_wake_up: bool) -> Option<StagesOf> {
    (late.matched && is_wake_up).then(|| stages(&late.stages))
}

fn stages(stages: &Stages) -> StagesOf {
    StagesOf {
        irq: stages.irq_ns,
        softirq: stages.softirq_ns,
        handler: stages.handler_ns,
        dispatch: stages.dispatch_ns,
        user: stages.user_ns,
    }
}

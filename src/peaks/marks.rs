//! When a late thread's timer interrupted its CPU, when it was made runnable and when it had the
//! CPU again: by the kernel's record of the wake-up, or by its events.

use tardy_hot::stages::Late;

use super::{Event, EventKind, contexts::ns, long_functions::softirq};
use crate::kernel::vector::LOCAL_TIMER;

/// Where the stages end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks {
    /// For which the timer was programmed; not before the expiry that was meant.
    pub due_ns: i64,
    pub entry_ns: i64,
    pub softirq_ns: i64,
    pub waking_ns: i64,
    pub switch_ns: i64,
    pub woken_on: u32,
    pub switched_on: u32,
}

/// Whether nothing woke the thread for its work, as it was at other work when its timer expired,
/// and began with this one later.
pub(super) const fn is_begun_awake(late: &Late) -> bool {
    let stages = &late.stages;
    let waited = stages.irq_ns == 0 && stages.softirq_ns == 0 && stages.dispatch_ns == 0;
    late.matched && late.expires_ns != 0 && waited && stages.handler_ns > 0
}

impl Marks {
    /// By the kernel's record, which is of the last wake-up before the clock was read: where the
    /// thread had the CPU since its timer's interrupt, `events` show the wake-up by the timer.
    pub(super) fn of(tid: u32, late: &Late, events: &[Event]) -> Self {
        let marks = Self::of_stages(late);
        let is_within =
            |event: &&Event| (marks.softirq_ns..marks.waking_ns).contains(&ns(event.at_ns));
        let mut between = events.iter().filter(is_within).filter(|event| event.pid == tid);
        let waking = between.find(|event| matches!(event.kind, EventKind::Waking { .. }));
        let switch = between.find(|event| is_switch(event));
        match (waking, switch) {
            (Some(waking), Some(switch)) => Self {
                waking_ns: ns(waking.at_ns),
                woken_on: waking.cpu,
                switch_ns: ns(switch.at_ns),
                switched_on: switch.cpu,
                ..marks
            },
            _ => marks,
        }
    }

    fn of_stages(late: &Late) -> Self {
        let stages = &late.stages;
        let entry_ns = late.t_ns.saturating_add(stages.irq_ns);
        let softirq_ns = entry_ns.saturating_add(stages.softirq_ns);
        let waking_ns = softirq_ns.saturating_add(stages.handler_ns);
        let switch_ns = waking_ns.saturating_add(stages.dispatch_ns);
        let (woken_on, switched_on) = late.cpus;
        let due_ns = late.t_ns.max(late.expires_ns).min(entry_ns);
        Self { due_ns, entry_ns, softirq_ns, waking_ns, switch_ns, woken_on, switched_on }
    }

    /// From the events, where the kernel's record of the wake-up did not match.
    pub(super) fn found(tid: u32, from_ns: i64, end_ns: i64, events: &[Event]) -> Option<Self> {
        let is_within = |event: &&Event| (from_ns..=end_ns).contains(&ns(event.at_ns));
        let wakes =
            |event: &&Event| event.pid == tid && matches!(event.kind, EventKind::Waking { .. });
        // Its own timer's, where that is recorded: a lock may have let it sleep since.
        let own = |event: &&Event| match event.kind {
            EventKind::Timer { expires_ns, .. } => ns(expires_ns) == from_ns,
            _ => false,
        };
        let expired = events.iter().filter(is_within).find(own);
        let of_own = expired.and_then(|timer| {
            let mut after = events.iter().filter(|event| event.at_ns >= timer.at_ns);
            after.find(wakes)
        });
        let waking = of_own.or_else(|| events.iter().filter(is_within).rfind(wakes))?;
        let arrives = |event: &&Event| is_switch(event) && event.pid == tid;
        let mut after = events.iter().filter(is_within).filter(|e| e.at_ns >= waking.at_ns);
        let switch = after.find(arrives);
        let waking_ns = ns(waking.at_ns);
        let due_ns = due(events, waking).max(from_ns);
        let (entry_ns, softirq_ns) = match open_timer(events, waking) {
            Some(at) => (at.max(from_ns), at.max(from_ns)),
            None => raised(events, waking, due_ns).unwrap_or((waking_ns, waking_ns)),
        };
        Some(Self {
            due_ns: due_ns.min(entry_ns),
            entry_ns,
            softirq_ns,
            waking_ns,
            switch_ns: switch.map_or(end_ns, |event| ns(event.at_ns)),
            woken_on: waking.cpu,
            switched_on: switch.map_or(waking.cpu, |event| event.cpu),
        })
    }
}

/// When the timer was due whose callback was running at `waking`; 0 if none was recorded.
fn due(events: &[Event], waking: &Event) -> i64 {
    let before = events.iter().filter(|e| e.cpu == waking.cpu && e.at_ns <= waking.at_ns);
    let expiry = |event: &Event| match event.kind {
        EventKind::Timer { expires_ns, .. } => Some(Some(ns(expires_ns))),
        EventKind::VectorEntry { .. } | EventKind::Switch { .. } => Some(None),
        _ => None,
    };
    before.rev().find_map(expiry).flatten().unwrap_or(0)
}

/// Of a `waking` in the softirq of timers, where PREEMPT_RT lets most expire: entry of the timer
/// interrupt that raised it, the first that came when the timer was due, and when its callback
/// began.
fn raised(events: &[Event], waking: &Event, due_ns: i64) -> Option<(i64, i64)> {
    let here = |event: &&Event| event.cpu == waking.cpu && event.at_ns <= waking.at_ns;
    let mut before = events.iter().filter(here).rev();
    let callback = before
        .find(|event| matches!(event.kind, EventKind::Timer { .. } | EventKind::Switch { .. }))?;
    let is_callback = matches!(callback.kind, EventKind::Timer { .. });
    let of_timers = |event: &&Event| match event.kind {
        EventKind::SoftirqEntry { vector } | EventKind::SoftirqExit { vector } => {
            vector == softirq::HRTIMER
        }
        _ => false,
    };
    let softirq = before.find(of_timers)?;
    let is_open = matches!(softirq.kind, EventKind::SoftirqEntry { .. });
    let came = |event: &&Event| {
        let is_timer = matches!(event.kind, EventKind::VectorEntry { vector: LOCAL_TIMER, .. });
        is_timer && ns(event.at_ns) >= due_ns
    };
    let entry = events.iter().filter(here).find(came)?;
    (is_callback && is_open).then(|| (ns(entry.at_ns), ns(callback.at_ns)))
}

/// Entry of the timer interrupt in which `waking` happened.
fn open_timer(events: &[Event], waking: &Event) -> Option<i64> {
    let before = events.iter().filter(|e| e.cpu == waking.cpu && e.at_ns <= waking.at_ns);
    let last = before.rev().find(|event| match event.kind {
        EventKind::VectorEntry { vector, .. } | EventKind::VectorExit { vector } => {
            vector == LOCAL_TIMER
        }
        _ => false,
    })?;
    matches!(last.kind, EventKind::VectorEntry { .. }).then(|| ns(last.at_ns))
}

pub(super) fn is_switch(event: &Event) -> bool {
    matches!(event.kind, EventKind::Switch { .. })
}

//! Which programs there are, and what cannot be told without each.

/// When a program is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// In both modes.
    Always,
    /// In both modes, where timers of threads may expire in a softirq.
    SoftTimers,
    /// Only where events are recorded.
    Peaks,
}

/// One program of `recorder.bpf.c`.
#[derive(Debug)]
pub struct Program {
    pub name: &'static str,
    pub tracepoint: &'static str,
    pub used: Use,
    /// Absent for one without which nothing can be told.
    pub switches_off: Option<&'static str>,
}

const fn needed(name: &'static str, tracepoint: &'static str) -> Program {
    Program { name, tracepoint, used: Use::Always, switches_off: None }
}

/// All of them.
pub const PROGRAMS: &[Program] = &[
    needed("on_local_timer_entry", "local_timer_entry"),
    needed("on_timer", "hrtimer_expire_entry"),
    needed("on_waking", "sched_waking"),
    needed("on_switch", "sched_switch"),
    Program {
        name: "on_softirq_raise",
        tracepoint: "softirq_raise",
        used: Use::SoftTimers,
        switches_off: Some("the interrupt stage of timers that expire in a softirq"),
    },
];

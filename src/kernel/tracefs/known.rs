//! The events that are read: where each is, which of its fields, and what is not known without it.

/// What an event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Waking,
    Switch,
    TimerStart,
    TimerExpires,
    SoftirqRaise,
    SoftirqEntry,
    SoftirqExit,
    IrqEntry,
    IrqExit,
    /// Of an interrupt without a line: its number in `recorder.h`.
    VectorEntry(u32),
    VectorExit(u32),
    Idle,
    Migrate,
    Ipi,
    IpiMask,
    Nmi,
}

/// When it is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needed {
    /// Needed for stages.
    Always,
    /// For stages, where the kernel has it.
    Stages,
    /// For causes; for stages if the timer's interrupt has no separate event.
    Lines,
    /// For stages where timers may expire in a softirq, and for causes.
    Softirqs,
    /// For causes alone.
    Causes,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownEvent {
    /// Its directory below `events`.
    pub path: &'static str,
    pub kind: Kind,
    pub needed: Needed,
    /// In the order in which the decoder asks for them.
    pub fields: &'static [&'static str],
    /// What is not known without it.
    pub switches_off: &'static str,
}

const fn event(
    path: &'static str,
    kind: Kind,
    needed: Needed,
    fields: &'static [&'static str],
    switches_off: &'static str,
) -> KnownEvent {
    KnownEvent { path, kind, needed, fields, switches_off }
}

const STAGES: &str = "the stages of wake-ups";
const ENTRY: &str = "when the interrupt of a timer began";
const VECTORS: &str = "interrupts between processors, and deferred work of interrupts";
const LINES: &str = "hard interrupts of devices";
const SOFTIRQS: &str = "softirqs";
const SENDERS: &str = "who sent an interrupt to another processor";

/// All of them.
pub(super) const EVENTS: &[KnownEvent] = &[
    event(
        "sched/sched_waking",
        Kind::Waking,
        Needed::Always,
        &["pid", "prio", "target_cpu"],
        STAGES,
    ),
    event(
        "sched/sched_switch",
        Kind::Switch,
        Needed::Always,
        &["next_pid", "next_prio", "prev_state", "next_comm"],
        STAGES,
    ),
    event(
        "timer/hrtimer_start",
        Kind::TimerStart,
        Needed::Always,
        &["hrtimer", "softexpires"],
        STAGES,
    ),
    event(
        "timer/hrtimer_expire_entry",
        Kind::TimerExpires,
        Needed::Always,
        &["hrtimer", "function"],
        STAGES,
    ),
    event("irq_vectors/local_timer_entry", Kind::VectorEntry(1), Needed::Stages, &[], ENTRY),
    event("irq_vectors/local_timer_exit", Kind::VectorExit(1), Needed::Softirqs, &[], ENTRY),
    event("irq/softirq_raise", Kind::SoftirqRaise, Needed::Softirqs, &["vec"], SOFTIRQS),
    event("irq/softirq_entry", Kind::SoftirqEntry, Needed::Softirqs, &["vec"], SOFTIRQS),
    event("irq/softirq_exit", Kind::SoftirqExit, Needed::Softirqs, &["vec"], SOFTIRQS),
    event("irq/irq_handler_entry", Kind::IrqEntry, Needed::Lines, &["irq", "name"], LINES),
    event("irq/irq_handler_exit", Kind::IrqExit, Needed::Causes, &["irq"], LINES),
    event("irq_vectors/reschedule_entry", Kind::VectorEntry(2), Needed::Causes, &[], VECTORS),
    event("irq_vectors/reschedule_exit", Kind::VectorExit(2), Needed::Causes, &[], VECTORS),
    event("irq_vectors/call_function_entry", Kind::VectorEntry(3), Needed::Causes, &[], VECTORS),
    event("irq_vectors/call_function_exit", Kind::VectorExit(3), Needed::Causes, &[], VECTORS),
    event(
        "irq_vectors/call_function_single_entry",
        Kind::VectorEntry(4),
        Needed::Causes,
        &[],
        VECTORS,
    ),
    event(
        "irq_vectors/call_function_single_exit",
        Kind::VectorExit(4),
        Needed::Causes,
        &[],
        VECTORS,
    ),
    event("irq_vectors/irq_work_entry", Kind::VectorEntry(5), Needed::Causes, &[], VECTORS),
    event("irq_vectors/irq_work_exit", Kind::VectorExit(5), Needed::Causes, &[], VECTORS),
    event("power/cpu_idle", Kind::Idle, Needed::Causes, &["state"], "idle states"),
    event(
        "sched/sched_migrate_task",
        Kind::Migrate,
        Needed::Causes,
        &["pid", "prio", "orig_cpu", "dest_cpu"],
        "moves of threads to other CPUs",
    ),
    event("ipi/ipi_send_cpu", Kind::Ipi, Needed::Causes, &["cpu", "callback"], SENDERS),
    event("ipi/ipi_send_cpumask", Kind::IpiMask, Needed::Causes, &["cpumask", "callback"], SENDERS),
    event(
        "nmi/nmi_handler",
        Kind::Nmi,
        Needed::Causes,
        &["handler", "delta_ns"],
        "non-maskable interrupts",
    ),
];

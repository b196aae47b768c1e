//! What the flags of events and the numbers in them mean; `recorder.h` defines each.

use super::header;

/// Why the task before was switched out: [`super::Event::flags`] of a switch.
pub mod out {
    use super::header;

    /// It was preempted while runnable.
    pub const PREEMPTED: u8 = header::TARDY_OUT_PREEMPTED as u8;
    /// It sleeps.
    pub const SLEEPING: u8 = header::TARDY_OUT_SLEEPING as u8;
    /// It sleeps uninterruptibly.
    pub const WAITING: u8 = header::TARDY_OUT_WAITING as u8;
    /// It was stopped, or is traced.
    pub const STOPPED: u8 = header::TARDY_OUT_STOPPED as u8;
    /// It has ended.
    pub const DEAD: u8 = header::TARDY_OUT_DEAD as u8;
    /// Its control group has used up its CPU quota.
    pub const THROTTLED: u8 = header::TARDY_OUT_THROTTLED as u8;
    /// It sleeps uninterruptibly, for a device.
    pub const IO: u8 = header::TARDY_OUT_IO as u8;
    /// It sleeps in the system call futex.
    pub const FUTEX: u8 = header::TARDY_OUT_FUTEX as u8;
    /// The same, for one whose owner inherits its priority.
    pub const PI_FUTEX: u8 = header::TARDY_OUT_PI_FUTEX as u8;
    /// It sleeps for a spinlock of the kernel, which `PREEMPT_RT` lets it do.
    pub const LOCK: u8 = header::TARDY_OUT_LOCK as u8;
    /// It has used up the runtime of its deadline policy.
    pub const BUDGET: u8 = header::TARDY_OUT_BUDGET as u8;
    /// It is real-time, and such tasks have used up their time.
    pub const THROTTLING: u8 = header::TARDY_OUT_THROTTLING as u8;
    /// The bits of the reason.
    pub(in crate::kernel) const REASON: u8 = header::TARDY_OUT_REASON as u8;

    /// Whether it sleeps, for whatever.
    #[must_use]
    pub const fn is_asleep(flags: u8) -> bool {
        matches!(flags, SLEEPING | WAITING | IO | FUTEX | PI_FUTEX | LOCK)
    }
}

/// Kinds of locks of programs: [`super::Event::flags`] of a wait for one.
pub mod futex {
    use super::header;

    /// Its memory has its owner.
    pub const OWNED: u8 = header::TARDY_FUTEX_OWNED as u8;
    /// The same, and its owner inherits the priority of the waiting thread.
    pub const INHERITS: u8 = header::TARDY_FUTEX_INHERITS as u8;
    /// One of the C library, or one that has no owner.
    pub const PLAIN: u8 = header::TARDY_FUTEX_PLAIN as u8;
}

/// What is known about the task that was made runnable: [`super::Event::flags`] of a wake-up.
pub mod woken {
    use super::header;

    /// The fair server runs the task that the CPU was in.
    pub const SERVED: u8 = header::TARDY_SERVED as u8;
    /// The bits that say why a measured thread cannot run: one of the following.
    pub const HOLD: u8 = header::TARDY_HOLD as u8;
    /// Its control group has used up its CPU quota.
    pub const QUOTA: u8 = header::TARDY_HELD_BY_QUOTA as u8;
    /// It has used up the runtime of its deadline policy.
    pub const BUDGET: u8 = header::TARDY_HELD_BY_BUDGET as u8;
    /// It is real-time, and such tasks have used up their time.
    pub const THROTTLING: u8 = header::TARDY_HELD_BY_THROTTLING as u8;
}

/// Why a thread that is ready cannot run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Its control group has used up its CPU quota.
    Quota,
    /// It has used up the runtime of its deadline policy.
    Budget,
    /// It is real-time, and such tasks have used up their time.
    Throttling,
}

impl Hold {
    /// Of a thread that was switched out, by the flags of that switch.
    #[must_use]
    pub fn of_switch(flags: u8) -> Option<Self> {
        match flags {
            out::THROTTLED => Some(Self::Quota),
            out::BUDGET => Some(Self::Budget),
            out::THROTTLING => Some(Self::Throttling),
            _ => None,
        }
    }

    /// Of a thread that was woken, by the flags of that wake-up.
    #[must_use]
    pub fn of_waking(flags: u8) -> Option<Self> {
        match flags & woken::HOLD {
            woken::QUOTA => Some(Self::Quota),
            woken::BUDGET => Some(Self::Budget),
            woken::THROTTLING => Some(Self::Throttling),
            _ => None,
        }
    }
}

/// What lets a task that is not real-time run before those that are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunsAhead {
    /// The kernel's fair server runs it.
    FairServer,
    /// The real-time tasks of its CPU have used up their time.
    RealTimeThrottled,
}

impl RunsAhead {
    /// By the flags of a switch.
    pub(super) fn of(flags: u8) -> Option<Self> {
        match u32::from(flags) {
            flags if flags & header::TARDY_SERVED != 0 => Some(Self::FairServer),
            flags if flags & header::TARDY_THROTTLED != 0 => Some(Self::RealTimeThrottled),
            _ => None,
        }
    }
}

/// What is known about the interrupted code: [`super::Event::flags`] of a vector's entry.
pub mod entry {
    use super::header;

    /// It ran in user mode.
    pub const IN_USER: u8 = header::TARDY_IN_USER as u8;
    /// It had only just enabled interrupts, as the bytes before it suggest; only where the
    /// interrupt was late.
    pub const JUST_ENABLED: u8 = header::TARDY_JUST_ENABLED as u8;
    /// Preemption was disabled there.
    pub const NO_PREEMPT: u8 = header::TARDY_NO_PREEMPT as u8;
}

/// Interrupts without a line.
pub mod vector {
    use super::header;

    /// The CPU's own timer.
    pub const LOCAL_TIMER: u32 = header::TARDY_LOCAL_TIMER;
    /// Another CPU asks to switch tasks.
    pub const RESCHEDULE: u32 = header::TARDY_RESCHEDULE;
    /// Another CPU asks several for a call.
    pub const CALL_FUNCTION: u32 = header::TARDY_CALL_FUNCTION;
    /// Another CPU asks this one for a call.
    pub const CALL_FUNCTION_SINGLE: u32 = header::TARDY_CALL_FUNCTION_SINGLE;
    /// Deferred work (`irq_work`).
    pub const IRQ_WORK: u32 = header::TARDY_IRQ_WORK;
}

/// Why a stack was walked: [`super::Event::flags`] of a stack.
pub mod why {
    use super::header;

    /// The timer interrupt itself came late.
    pub const LATE_INTERRUPT: u8 = header::TARDY_LATE_INTERRUPT as u8;
    /// The task that is switched out kept the CPU after the wake-up.
    pub const LATE_DISPATCH: u8 = header::TARDY_LATE_DISPATCH as u8;
    /// A wake-up interrupted a task that had been in the kernel for long, or stacks are always
    /// walked.
    pub const SUSPECT: u8 = header::TARDY_SUSPECT as u8;
}

/// Which functions are recorded that take long: [`super::Event::flags`] of a function.
pub mod function {
    use super::header;

    /// A timer's of the timer wheel, in the softirq TIMER.
    pub const TIMER: u8 = header::TARDY_OF_TIMER as u8;
    /// A tasklet's, in the softirq HI or TASKLET.
    pub const TASKLET: u8 = header::TARDY_OF_TASKLET as u8;
    /// A poll's that is of no device, in the softirq NET_RX.
    pub const POLL: u8 = header::TARDY_OF_POLL as u8;
    /// Work of a kworker, or in the softirq HI or TASKLET.
    pub const WORK: u8 = header::TARDY_OF_WORK as u8;
    /// What another CPU asked for.
    pub const CALL: u8 = header::TARDY_OF_CALL as u8;
    /// Of shorter ones nothing is recorded, ns.
    pub const LONG_NS: i64 = header::TARDY_LONG_NS as i64;
}

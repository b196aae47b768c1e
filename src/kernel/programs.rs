//! Which programs there are, and what cannot be measured without each.

use super::{Settings, TraceLevel, WokenBy};

/// When a program is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// In both modes.
    Always,
    /// In both modes, where timers of threads may expire in a softirq.
    SoftTimers,
    /// Only where events are recorded.
    Peaks,
    /// The same; a kernel without the tracepoint is one without what it is about, or does not name
    /// it.
    PeaksIfThere,
    /// Only where events are recorded and threads are woken by their timers.
    TimerPeaks,
}

impl Use {
    /// Whether a program of this use is wanted, on a kernel where timers expire in a softirq or
    /// not.
    pub(super) fn is_wanted(self, settings: &Settings, soft_timers: bool) -> bool {
        let records = settings.mode == TraceLevel::Peaks;
        match self {
            Self::Always => true,
            Self::SoftTimers => soft_timers,
            Self::Peaks | Self::PeaksIfThere => records,
            Self::TimerPeaks => records && settings.woken_by == WokenBy::Timers,
        }
    }
}

/// One program of `recorder.bpf.c`, named after its tracepoint.
#[derive(Debug)]
pub(super) struct Program {
    pub tracepoint: &'static str,
    pub used: Use,
    /// Absent for one without which nothing can be traced.
    pub switches_off: Option<&'static str>,
}

impl Program {
    /// Of its function.
    pub(super) fn name(&self) -> String {
        format!("on_{}", self.tracepoint)
    }
}

const fn needed(tracepoint: &'static str) -> Program {
    Program { tracepoint, used: Use::Always, switches_off: None }
}

const fn extra(tracepoint: &'static str, switches_off: &'static str) -> Program {
    Program { tracepoint, used: Use::Peaks, switches_off: Some(switches_off) }
}

const fn rare(tracepoint: &'static str) -> Program {
    Program { tracepoint, used: Use::PeaksIfThere, switches_off: Some(RARE) }
}

/// What a kernel without the tracepoint does not name.
const fn newer(tracepoint: &'static str, switches_off: &'static str) -> Program {
    Program { tracepoint, used: Use::PeaksIfThere, switches_off: Some(switches_off) }
}

const RARE: &str = "rare interrupts of the processor: errors, heat, the platform's own";
const VECTORS: &str = "interrupts between processors, and deferred work of interrupts";
const LINES: &str = "hard interrupts of devices";
const SOFTIRQS: &str = "softirqs";
const SENDERS: &str = "who sent an interrupt to another processor";
const FAULTS: &str = "page faults of the measured threads";
const LOCKS: &str = "locks of the kernel that measured threads wait for";
const OWNERS: &str = "the owner of a lock that measured threads wait for";
const TIMERS: &str = "which timer's function a softirq ran";
const TASKLETS: &str = "which tasklet's function a softirq ran";
const WORK: &str = "which work a kworker did";
const FREQUENCIES: &str = "which frequency a processor was set to";
const CALLS: &str = "which function a call from another processor ran";

/// All of them.
pub(super) const PROGRAMS: &[Program] = &[
    needed("hrtimer_expire_entry"),
    needed("sched_waking"),
    needed("sched_switch"),
    extra(
        "local_timer_entry",
        "where the timer interrupts came, and when but for the kernel's clock",
    ),
    Program {
        tracepoint: "softirq_raise",
        used: Use::SoftTimers,
        switches_off: Some("the interrupt stage of timers that expire in a softirq"),
    },
    extra("local_timer_exit", "timer interrupts"),
    extra("reschedule_entry", VECTORS),
    extra("reschedule_exit", VECTORS),
    extra("call_function_entry", VECTORS),
    extra("call_function_exit", VECTORS),
    extra("call_function_single_entry", VECTORS),
    extra("call_function_single_exit", VECTORS),
    extra("irq_work_entry", VECTORS),
    extra("irq_work_exit", VECTORS),
    rare("spurious_apic_entry"),
    rare("spurious_apic_exit"),
    rare("error_apic_entry"),
    rare("error_apic_exit"),
    rare("x86_platform_ipi_entry"),
    rare("x86_platform_ipi_exit"),
    rare("threshold_apic_entry"),
    rare("threshold_apic_exit"),
    rare("deferred_error_apic_entry"),
    rare("deferred_error_apic_exit"),
    rare("thermal_apic_entry"),
    rare("thermal_apic_exit"),
    extra("irq_handler_entry", LINES),
    extra("irq_handler_exit", LINES),
    extra("softirq_entry", SOFTIRQS),
    extra("softirq_exit", SOFTIRQS),
    extra("cpu_idle", "idle states"),
    newer("cpu_frequency", FREQUENCIES),
    extra("sched_migrate_task", "moves of threads to other CPUs"),
    extra("ipi_send_cpu", SENDERS),
    newer("ipi_send_cpumask", SENDERS),
    extra("page_fault_user", FAULTS),
    extra("page_fault_kernel", FAULTS),
    extra("nmi_handler", "non-maskable interrupts"),
    extra("contention_begin", LOCKS),
    extra("contention_end", LOCKS),
    newer("sched_pi_setprio", OWNERS),
    extra("timer_expire_entry", TIMERS),
    extra("timer_expire_exit", TIMERS),
    newer("tasklet_entry", TASKLETS),
    newer("tasklet_exit", TASKLETS),
    extra("workqueue_execute_start", WORK),
    extra("workqueue_execute_end", WORK),
    newer("csd_function_entry", CALLS),
    newer("csd_function_exit", CALLS),
    Program {
        tracepoint: "napi_poll",
        used: Use::TimerPeaks,
        switches_off: Some("which network device a softirq polled"),
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use libbpf_rs::ObjectBuilder;

    use super::*;
    use crate::kernel::Stacks;

    #[test]
    fn every_program_of_the_object_is_in_the_table_and_the_other_way_round() {
        let mut builder = ObjectBuilder::default();
        let path = concat!(env!("OUT_DIR"), "/recorder.bpf.o");
        let object = builder.open_file(path).unwrap();
        let of_object = object.progs().map(|program| {
            let name = program.name().to_string_lossy().into_owned();
            (name, program.section().to_string_lossy().into_owned())
        });
        let of_table = PROGRAMS
            .iter()
            .map(|program| (program.name(), format!("tp_btf/{}", program.tracepoint)));
        assert_eq!(of_object.collect::<BTreeSet<_>>(), of_table.collect());
    }

    #[test]
    fn the_object_names_no_directory_of_the_machine_that_built_it() {
        let object = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.bpf.o"));
        for directory in [env!("CARGO_MANIFEST_DIR"), env!("OUT_DIR")] {
            let is_named = object.windows(directory.len()).any(|at| at == directory.as_bytes());
            assert!(!is_named, "{directory}");
        }
    }

    #[test]
    fn no_poll_is_traced_where_it_may_carry_the_message_that_is_measured() {
        let wanted = |mode, woken_by| {
            let settings =
                Settings { mode, stacks: Stacks::Off, woken_by, futexes: false, slots_per_cpu: 64 };
            let is_wanted = |used: Use| used.is_wanted(&settings, false);
            [Use::Always, Use::Peaks, Use::TimerPeaks, Use::SoftTimers].map(is_wanted)
        };
        let timers = WokenBy::Timers;
        assert_eq!(wanted(TraceLevel::Peaks, timers), [true, true, true, false]);
        for by_messages in [WokenBy::Messages, WokenBy::Both] {
            assert_eq!(wanted(TraceLevel::Peaks, by_messages), [true, true, false, false]);
        }
        assert_eq!(wanted(TraceLevel::Stages, timers), [true, false, false, false]);
        let poll = PROGRAMS.iter().find(|program| program.tracepoint == "napi_poll");
        assert_eq!(poll.map(|program| program.used), Some(Use::TimerPeaks));
    }
}

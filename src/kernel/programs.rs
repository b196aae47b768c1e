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

const fn extra(
    name: &'static str,
    tracepoint: &'static str,
    switches_off: &'static str,
) -> Program {
    Program { name, tracepoint, used: Use::Peaks, switches_off: Some(switches_off) }
}

const VECTORS: &str = "interrupts between processors, and deferred work of interrupts";
const LINES: &str = "hard interrupts of devices";
const SOFTIRQS: &str = "softirqs";
const FAULTS: &str = "page faults of the measured threads";
const LOCKS: &str = "locks of the kernel that measured threads wait for";

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
    extra("on_local_timer_exit", "local_timer_exit", "the duration of timer interrupts"),
    extra("on_reschedule_entry", "reschedule_entry", VECTORS),
    extra("on_reschedule_exit", "reschedule_exit", VECTORS),
    extra("on_call_function_entry", "call_function_entry", VECTORS),
    extra("on_call_function_exit", "call_function_exit", VECTORS),
    extra("on_call_function_single_entry", "call_function_single_entry", VECTORS),
    extra("on_call_function_single_exit", "call_function_single_exit", VECTORS),
    extra("on_irq_work_entry", "irq_work_entry", VECTORS),
    extra("on_irq_work_exit", "irq_work_exit", VECTORS),
    extra("on_irq_handler_entry", "irq_handler_entry", LINES),
    extra("on_irq_handler_exit", "irq_handler_exit", LINES),
    extra("on_softirq_entry", "softirq_entry", SOFTIRQS),
    extra("on_softirq_exit", "softirq_exit", SOFTIRQS),
    extra("on_cpu_idle", "cpu_idle", "idle states, and the way out of them"),
    extra("on_migrate", "sched_migrate_task", "moves of threads to other CPUs"),
    extra("on_ipi", "ipi_send_cpu", "who sent an interrupt to another processor"),
    extra("on_page_fault_user", "page_fault_user", FAULTS),
    extra("on_page_fault_kernel", "page_fault_kernel", FAULTS),
    extra("on_nmi", "nmi_handler", "non-maskable interrupts"),
    extra("on_contention_begin", "contention_begin", LOCKS),
    extra("on_contention_end", "contention_end", LOCKS),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_of_the_source_is_known_with_its_tracepoint() {
        let source = [include_str!("recorder.bpf.c"), include_str!("context.h")].join("\n");
        for program in PROGRAMS {
            let named = source.contains(&format!("int {}(u64 *ctx)", program.name));
            let made = ["VECTOR", "VECTOR_EXIT", "PLAIN"].iter().any(|maker| {
                let stem = program.tracepoint.trim_end_matches("_entry").trim_end_matches("_exit");
                source.contains(&format!("\n{maker}({stem},"))
                    || source.contains(&format!("\n{maker}({},", program.tracepoint))
            });
            assert!(named || made, "{}", program.name);
            if named {
                let place =
                    format!("SEC(\"tp_btf/{}\")\nint {}(", program.tracepoint, program.name);
                assert!(source.contains(&place), "{place}");
            }
        }
    }
}

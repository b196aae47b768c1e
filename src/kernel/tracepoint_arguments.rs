//! Whether tracepoints pass what the programs read: what the kernel checks when it loads a program
//! are structures behind pointers alone, and a number in place of an address is read all the same.

use std::collections::{HashMap, HashSet};

use super::types::KernelTypes;

/// The arguments that programs read, in their order: `*` a pointer, `=` a value, `?` either.
const READ: &[(&str, &str)] = &[
    ("sched_waking", "*"),
    ("sched_switch", "=**"),
    ("sched_migrate_task", "*="),
    ("sched_pi_setprio", "**"),
    ("sched_process_fork", "**"),
    ("sched_process_exit", "*"),
    ("sched_process_exec", "*="),
    ("task_rename", "**"),
    // A pointer to the time in 6.1 to 6.18, the time in 7.2 (include/trace/events/timer.h).
    ("hrtimer_expire_entry", "*?"),
    ("hrtimer_start", "*="),
    ("hrtimer_start_expired", "*"),
    ("softirq_raise", "="),
    ("softirq_entry", "="),
    ("softirq_exit", "="),
    ("irq_handler_entry", "=*"),
    ("irq_handler_exit", "="),
    ("cpu_idle", "="),
    ("cpu_frequency", "=="),
    ("ipi_send_cpu", "=?*"),
    ("ipi_send_cpumask", "*?*"),
    ("page_fault_user", "=*"),
    ("page_fault_kernel", "=*"),
    ("nmi_handler", "*="),
    ("contention_begin", "*="),
    ("contention_end", "*"),
    ("timer_expire_entry", "*"),
    ("tasklet_entry", "**"),
    ("workqueue_execute_start", "*"),
    ("workqueue_execute_end", "*"),
    ("csd_function_entry", "*"),
    ("napi_poll", "*=="),
];

/// How the kernel passes the arguments of those tracepoints that it has.
#[derive(Debug)]
pub(super) struct TracepointArguments(HashMap<&'static str, String>);

impl TracepointArguments {
    /// Of the kernel with these types.
    pub(super) fn of_kernel(types: &KernelTypes) -> Self {
        let found = READ.iter().filter_map(|(name, _)| Some((*name, types.arguments(name)?)));
        Self(found.collect())
    }

    /// Whether a tracepoint passes what programs read of it.
    pub(super) fn fit(&self, tracepoint: &str) -> bool {
        let read = READ.iter().find(|(name, _)| *name == tracepoint);
        match (read, self.0.get(tracepoint)) {
            (Some((_, read)), Some(passed)) => fits(read, passed),
            _ => true,
        }
    }

    /// The kernel's tracepoints that pass what programs read of them.
    pub(super) fn fitting(&self, types: &KernelTypes) -> HashSet<String> {
        types.tracepoints().filter(|name| self.fit(name)).map(str::to_owned).collect()
    }

    /// Whether `hrtimer_expire_entry` passes the time itself, and not its address.
    pub(super) fn expire_has_time(&self) -> bool {
        self.0
            .get("hrtimer_expire_entry")
            .is_some_and(|passed| passed.as_bytes().get(1) == Some(&b'='))
    }

    /// As if the kernel passed this.
    #[cfg(test)]
    pub(super) fn of(tracepoint: &'static str, passed: &str) -> Self {
        Self(HashMap::from([(tracepoint, passed.to_owned())]))
    }
}

/// Whether what is passed is what is read.
fn fits(read: &str, passed: &str) -> bool {
    let mut passed = passed.chars();
    read.chars().all(|read| passed.next().is_some_and(|is| read == '?' || read == is))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::kernel::{bootstrap::BTF, programs::PROGRAMS};

    #[test]
    fn a_value_in_place_of_an_address_does_not_fit() {
        assert!(fits("*=", "*==") && fits("*?", "*=") && fits("*?", "**"));
        assert!(!fits("*=", "**") && !fits("*", "=") && !fits("**", "*"));
        let with = TracepointArguments::of("sched_waking", "=");
        assert!(!with.fit("sched_waking") && with.fit("sched_switch"));
    }

    #[test]
    fn the_time_of_an_expiry_may_be_either() {
        let by_value = TracepointArguments::of("hrtimer_expire_entry", "*=");
        assert!(by_value.fit("hrtimer_expire_entry") && by_value.expire_has_time());
        let by_pointer = TracepointArguments::of("hrtimer_expire_entry", "**");
        assert!(by_pointer.fit("hrtimer_expire_entry") && !by_pointer.expire_has_time());
    }

    #[test]
    fn what_the_running_kernel_passes_is_what_the_programs_read() {
        if Path::new(BTF).exists() {
            let arguments =
                TracepointArguments::of_kernel(&KernelTypes::read(Path::new(BTF)).unwrap());
            assert!(arguments.0.len() > 20, "{arguments:?}");
            let wrong = READ.iter().filter(|(name, _)| !arguments.fit(name));
            assert_eq!(wrong.count(), 0, "{arguments:?}");
        }
    }

    #[test]
    fn programs_of_interrupts_and_ends_read_nothing() {
        let is_read = |name: &str| READ.iter().any(|(known, _)| *known == name);
        let unread =
            PROGRAMS.iter().map(|program| program.tracepoint).filter(|name| !is_read(name));
        for name in unread {
            assert!(name.ends_with("_entry") || name.ends_with("_exit"), "{name}");
        }
    }
}

//! What functions of a stack tell: which of them a person would name, which enables interrupts.
//!
//! A landmark is a function whose name shows the work; of several the outermost wins, because that
//! is what was asked for. Without one it is the innermost function that is not mere machinery.

/// Functions that name the work, and why.
const LANDMARKS: &[(&str, &str)] = &[
    ("console_unlock", "prints to a console, which may be a slow serial line"),
    ("console_flush_all", "the same, since 6.0"),
    ("exit_mmap", "tears down a whole address space"),
    ("__do_munmap", "unmaps memory"),
    ("do_vmi_align_munmap", "the same, since 6.1"),
    ("unmap_region", "the same, the part that frees pages"),
    ("unmap_vmas", "the same, where no caller is known"),
    ("zap_page_range_single", "madvise gives pages back"),
    ("madvise_dontneed_free", "the same"),
    ("kill_something_info", "signals many processes, under the list's lock"),
    ("__kill_pgrp_info", "signals a process group"),
    ("futex_wake", "wakes waiters of a futex, under its lock"),
    ("futex_requeue", "moves waiters of a futex"),
    ("copy_page_range", "fork copies page tables"),
    ("jbd2_journal_commit_transaction", "ext4 commits its journal"),
    ("ext4_mb_new_blocks", "ext4 looks for free blocks"),
    ("ext4_truncate", "ext4 frees a file's blocks"),
    ("ext4_evict_inode", "ext4 deletes a file"),
    ("ext4_writepages", "ext4 writes back"),
    ("truncate_inode_pages_range", "drops a file's cached pages"),
    ("shmem_undo_range", "drops pages of a tmpfs"),
    ("invalidate_mapping_pages", "drops cached pages"),
    ("shrink_node", "reclaims memory"),
    ("compact_zone", "compacts memory"),
    ("__udp4_lib_mcast_deliver", "one datagram to many sockets"),
    ("__udp6_lib_mcast_deliver", "one datagram to many sockets"),
    ("net_rx_action", "receives packets"),
    ("tcp_sendmsg", "sends, on loopback up to the receiver"),
    ("udp_sendmsg", "sends, on loopback up to the receiver"),
    ("unix_stream_sendmsg", "sends through a socket"),
    ("unix_stream_read_generic", "receives through a socket"),
    ("pipe_write", "writes to a pipe and wakes its readers"),
    ("pipe_read", "reads from a pipe"),
    ("anon_pipe_write", "writes to a pipe, since 6.14"),
    ("anon_pipe_read", "reads from a pipe, since 6.14"),
    ("__hrtimer_run_queues", "runs many timers"),
    ("run_timer_softirq", "runs many timers"),
    ("rcu_core", "frees what readers have left"),
    ("kmem_cache_free_bulk", "frees many objects"),
    ("text_poke_bp_batch", "patches the kernel's code"),
    ("smp_text_poke_batch_finish", "the same, since 6.15"),
    ("stop_machine_cpuslocked", "stops all CPUs"),
    ("proc_pid_status", "reads /proc"),
    ("show_smap", "walks page tables for /proc"),
    ("kallsyms_lookup_name", "walks all symbols of the kernel"),
    ("blk_mq_run_hw_queue", "hands requests to a disk"),
    ("virtqueue_notify", "notifies the hypervisor's device"),
    ("kdamond_fn", "DAMON samples which memory is used"),
    ("read_pages", "reads pages of a file ahead"),
    ("bpf_prog_load", "checks a BPF program"),
];

/// Beginnings of machinery: how one came in, out, or to wait, not what for.
const MACHINERY: &[&str] = &[
    "entry_SYSCALL",
    "entry_INT80",
    "do_syscall_",
    "x64_sys_call",
    "__x64_sys_",
    "__ia32_sys_",
    "ret_from_fork",
    "asm_",
    "sysvec_",
    "__sysvec_",
    "common_interrupt",
    "irqentry_",
    "irq_exit",
    "exit_to_user_mode",
    "syscall_exit_to_user",
    "syscall_return",
    "swapgs_restore",
    "restore_regs",
    "__irq_exit",
    "invoke_softirq",
    "__do_softirq",
    "handle_softirqs",
    "do_softirq",
    "schedule",
    "io_schedule",
    "process_one_work",
    "process_scheduled_works",
    "worker_thread",
    "__schedule",
    "preempt_",
    "__cond_resched",
    "_cond_resched",
    "dynamic_cond_resched",
    "finish_task_switch",
    "prepare_task_switch",
    "context_switch",
    "_raw_spin_",
    "raw_spin_",
    "_raw_read_",
    "_raw_write_",
    "_raw_",
    "__raw_",
    "do_raw_spin",
    "native_queued_spin",
    "queued_spin_",
    "__pv_queued_spin",
    "queued_read_",
    "queued_write_",
    "rcu_read_",
    "__rcu_read_",
    "__rcu_irq",
    "rcu_note",
    "memset",
    "memcpy",
    "memmove",
    "__mem",
    "clear_page",
    "copy_page_",
    "rep_",
    "clear_user",
    "_copy_",
    "copy_user_",
    "trace_",
    "__traceiter_",
    "__bpf_trace_",
    "bpf_",
    "__bpf_",
    "perf_trace_",
    "__this_module",
    "might_resched",
    "__might_resched",
    "local_bh_",
    "__local_bh_",
    "_local_bh",
    "kthread",
    "secondary_startup",
    "do_idle",
    "cpu_startup_entry",
    "start_secondary",
    "default_idle",
    "cpuidle_",
    "cpu_idle",
    "mwait_",
    "native_safe_halt",
    "pv_native_",
    "acpi_idle",
    "acpi_safe_halt",
    "hrtimer_wakeup",
    "try_to_wake_up",
    "ttwu_",
    "wake_up_process",
    "smp_apic_timer",
    "native_irq",
    "srso_",
    "__get_user",
    "__put_user",
    "debug_smp",
    "arch_",
    "native_write_msr",
];

/// Beginnings of functions that take a lock the slow way.
const LOCK_SLOW_PATHS: &[&str] = &[
    "native_queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    "queued_spin_lock_slowpath",
    "queued_read_lock_slowpath",
    "queued_write_lock_slowpath",
    "rtlock_slowlock",
    "rt_spin_lock_slowlock",
];

/// Beginnings of functions that enable interrupts, and do nothing else with them on: found
/// interrupted there, a CPU had them off.
const ENABLING: &[&str] = &[
    "_raw_spin_unlock_irq",
    "_raw_read_unlock_irq",
    "_raw_write_unlock_irq",
    "__raw_spin_unlock_irq",
    "raw_spin_rq_unlock_irq",
    "finish_lock_switch",
    "do_idle",
    "default_idle",
    "pv_native_safe_halt",
    "native_safe_halt",
    "acpi_safe_halt",
    "acpi_idle",
    "cpuidle_enter",
    "mwait_idle",
    "intel_idle",
    "irqentry_exit",
    "local_irq_enable",
    "restore_regs",
    "swapgs_restore",
];

/// Beginnings of functions that enable interrupts, and also run with them on: found interrupted
/// there, a CPU may have had them off.
const ALSO_ON: &[&str] = &[
    "finish_task_switch",
    "__do_softirq",
    "handle_softirqs",
    "do_syscall_",
    "exit_to_user_mode",
    "syscall_exit_to_user",
    "__local_bh_enable",
    "entry_SYSCALL",
    "asm_exc_",
    "exc_page_fault",
    "console_unlock",
    "console_emit",
    "console_flush",
];

/// How good a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SymbolConfidence {
    /// Machinery only.
    Machinery,
    /// A function, by its place in the stack.
    Function,
    /// One whose name shows the work.
    Landmark,
}

/// A compiler's clone of a function has the function's name: `f.isra.0`, `f.constprop.0`.
#[must_use]
pub(crate) fn plain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

fn begins(name: &str, table: &[&str]) -> bool {
    table.iter().any(|start| name.starts_with(start))
}

/// The function to name, of those of a stack, innermost first; absent for an empty stack.
#[must_use]
pub(crate) fn culprit<'a>(functions: &[&'a str]) -> Option<(&'a str, SymbolConfidence)> {
    let is_landmark = |name: &&&str| LANDMARKS.iter().any(|(mark, _)| *mark == plain(name));
    if let Some(name) = functions.iter().rfind(is_landmark) {
        return Some((plain(name), SymbolConfidence::Landmark));
    }
    if let Some(name) = functions.iter().find(|name| !begins(name, MACHINERY)) {
        return Some((plain(name), SymbolConfidence::Function));
    }
    functions.first().map(|name| (plain(name), SymbolConfidence::Machinery))
}

/// The function that waits for a spin lock, where the innermost function is that of waiting.
#[must_use]
pub(crate) fn waits_for_lock<'a>(functions: &[&'a str]) -> Option<&'a str> {
    let first = functions.first()?;
    if !begins(first, LOCK_SLOW_PATHS) {
        return None;
    }
    let taker = functions.iter().find(|name| !begins(name, MACHINERY) && !is_lock(name));
    Some(plain(taker.unwrap_or(first)))
}

fn is_lock(name: &str) -> bool {
    begins(name, LOCK_SLOW_PATHS) || name.contains("_lock") || name.contains("spin_")
}

/// What was interrupted: of a stack walked in an interrupt, innermost function first, the functions
/// outside of it; all of another stack. Each may have its offset behind a `+`.
#[must_use]
pub(crate) fn interrupted(stack: &[String]) -> &[String] {
    match stack.iter().position(|function| is_interrupt_entry(bare(function))) {
        Some(at) if at + 1 < stack.len() => stack.get(at + 1..).unwrap_or_default(),
        _ => stack,
    }
}

/// Whether interrupts of the CPU enter the kernel by this function.
#[must_use]
pub(crate) fn is_interrupt_entry(name: &str) -> bool {
    name.starts_with("asm_sysvec_") || name.starts_with("asm_common_interrupt")
}

/// The name of a function without its offset.
#[must_use]
pub(crate) fn bare(function: &str) -> &str {
    function.split('+').next().unwrap_or(function)
}

/// Whether this function enables interrupts.
#[must_use]
pub(crate) fn enables_interrupts(name: &str) -> bool {
    begins(name, ENABLING) || begins(name, ALSO_ON)
}

/// Whether it does nothing else with interrupts on, so that a CPU that is interrupted in it has
/// just enabled them.
#[must_use]
pub(crate) fn only_enables_interrupts(name: &str) -> bool {
    begins(name, ENABLING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_landmark_names_a_stack() {
        let stack = ["_raw_spin_lock", "unmap_page_range", "unmap_vmas", "exit_mmap", "do_exit"];
        assert_eq!(culprit(&stack[..4]), Some(("exit_mmap", SymbolConfidence::Landmark)));
    }

    #[test]
    fn without_a_landmark_the_innermost_real_function_does() {
        let stack = ["_raw_spin_lock_irqsave", "foo_work.isra.0", "do_syscall_64"];
        assert_eq!(culprit(&stack), Some(("foo_work", SymbolConfidence::Function)));
        let machinery = ["schedule", "exit_to_user_mode_loop", "do_syscall_64"];
        assert_eq!(culprit(&machinery), Some(("schedule", SymbolConfidence::Machinery)));
        assert_eq!(culprit(&[]), None);
    }

    #[test]
    fn a_spin_lock_is_named_by_who_takes_it() {
        let stack = ["native_queued_spin_lock_slowpath", "_raw_spin_lock", "futex_q_lock", "do_x"];
        assert_eq!(waits_for_lock(&stack), Some("do_x"));
        assert_eq!(waits_for_lock(&["do_x", "native_queued_spin_lock_slowpath"]), None);
    }

    #[test]
    fn landmarks_are_listed_once_each() {
        let names: std::collections::BTreeSet<_> = LANDMARKS.iter().map(|(n, _)| n).collect();
        assert_eq!(names.len(), LANDMARKS.len());
    }

    #[test]
    fn functions_that_enable_interrupts_are_known() {
        assert!(enables_interrupts("_raw_spin_unlock_irqrestore"));
        assert!(!enables_interrupts("unmap_page_range"));
        assert!(only_enables_interrupts("_raw_spin_unlock_irqrestore"));
        for name in ["do_syscall_64", "exc_page_fault", "handle_softirqs", "console_unlock"] {
            assert!(enables_interrupts(name) && !only_enables_interrupts(name), "{name}");
        }
    }
}

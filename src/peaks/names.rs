//! What people call interrupts, softirqs, tasks and priorities.

use std::collections::HashMap;

use super::contexts::{CurrentTask, HardirqSource};
use crate::kernel::{
    RunsAhead, out,
    vector::{CALL_FUNCTION, CALL_FUNCTION_SINGLE, LOCAL_TIMER},
};

/// As in `/proc/softirqs`, by number.
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// Names of handlers that are longer are cut in the record.
const CUT: usize = 15;

/// By `enum tardy_vector`, from 1.
const VECTORS: [&str; 11] = [
    "timer interrupt",
    "reschedule interrupt",
    "function call interrupt",
    "function call interrupt (single)",
    "irq work",
    "spurious interrupt",
    "APIC error interrupt",
    "platform interrupt",
    "machine check threshold interrupt",
    "deferred machine check interrupt",
    "thermal interrupt",
];

pub(crate) use crate::run::peaks::{EARLIER_PACKETS, KERNEL_ENTRY, MESSAGE_PATH, WAKE_UP_PATH};

/// A softirq's.
#[must_use]
pub(crate) fn softirq(vector: u32) -> String {
    match SOFTIRQS.get(vector as usize) {
        Some(name) => (*name).to_owned(),
        None => format!("softirq {vector}"),
    }
}

/// An interrupt's of the local controller.
#[must_use]
pub(crate) fn vector(vector: u32) -> String {
    let name = (vector as usize).checked_sub(1).and_then(|at| VECTORS.get(at));
    name.map_or_else(|| format!("vector {vector}"), |name| (*name).to_owned())
}

/// A hard interrupt's; of a line that of the handler that ran. `lines` are the handlers as
/// `/proc/interrupts` gave them, from which a name comes whole that was cut in the record.
#[must_use]
pub(crate) fn hard(hard: HardirqSource, lines: &HashMap<u32, Vec<String>>) -> String {
    match hard {
        HardirqSource::Vector(number) => vector(number),
        HardirqSource::Irq { line, action } => {
            handler(&comm(&action), lines.get(&line).map_or(&[][..], Vec::as_slice))
                .unwrap_or_else(|| format!("irq {line}"))
        }
    }
}

/// The one of the handlers of a line that has this name.
fn handler(name: &str, handlers: &[String]) -> Option<String> {
    if name.is_empty() {
        return Some(handlers.join(", ")).filter(|all| !all.is_empty());
    }
    let mut whole = handlers.iter().filter(|one| one.starts_with(name));
    let only = whole.next().filter(|_| name.len() >= CUT && whole.next().is_none());
    Some(only.cloned().unwrap_or_else(|| name.to_owned()))
}

/// A softirq's with what it did: a function, or the device that it polled.
#[must_use]
pub(crate) fn softirq_for(vector: u32, work: &str) -> String {
    format!("{}: {work}", softirq(vector))
}

/// A hard interrupt's with the function that it ran: a timer's, or what another CPU asked for.
#[must_use]
pub(crate) fn hard_for(
    which: HardirqSource,
    lines: &HashMap<u32, Vec<String>>,
    function: &str,
) -> String {
    match which {
        HardirqSource::Vector(LOCAL_TIMER) => format!("timer: {function}"),
        HardirqSource::Vector(CALL_FUNCTION | CALL_FUNCTION_SINGLE) => format!("IPI: {function}"),
        _ => hard(which, lines),
    }
}

/// A kworker's with its work.
#[must_use]
pub(crate) fn worker_for(task: &CurrentTask, work: &str) -> String {
    format!("{}: {work}", comm(&task.comm))
}

/// A task's, up to its first zero.
#[must_use]
pub(crate) fn comm(comm: &[u8; 16]) -> String {
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(comm.len());
    String::from_utf8_lossy(&comm[..end]).into_owned()
}

/// `name/pid`.
#[must_use]
pub(crate) fn task(task: &CurrentTask) -> String {
    format!("{}/{}", comm(&task.comm), task.pid)
}

/// What nobody is named for, where the firmware cannot be told apart from others.
#[must_use]
pub(crate) fn without_smi_count(name: &str) -> String {
    format!("{name} (SMIs not counted)")
}

/// What may have had several CPUs at once.
#[must_use]
pub(crate) fn silent(cpus: usize) -> String {
    format!("hypervisor or firmware: {cpus} CPUs silent at once")
}

/// Who sent an interrupt from another CPU: the task that was on it, or the idle task.
#[must_use]
pub(crate) fn sender(task: Option<[u8; 16]>, pid: u32, cpu: u32) -> String {
    match (pid, task) {
        (0, _) => format!("idle task on CPU {cpu}"),
        (_, Some(task)) => format!("{}/{pid} on CPU {cpu}", comm(&task)),
        (_, None) => format!("task {pid} on CPU {cpu}"),
    }
}

/// How a task went that left its CPU, by the flags of the switch.
#[must_use]
pub(super) fn left(flags: u8) -> Option<&'static str> {
    Some(match flags {
        out::PREEMPTED => "preempted",
        out::SLEEPING => "goes to sleep",
        out::WAITING => "goes to wait",
        out::IO => "goes to wait for a device",
        out::FUTEX => "goes to sleep on a futex",
        out::PI_FUTEX => "goes to sleep on a PI mutex",
        out::LOCK => "goes to wait for a lock of the kernel",
        out::STOPPED => "stopped",
        out::DEAD => "ends",
        out::THROTTLED => "used up the CPU quota of its group",
        out::BUDGET => "used up its deadline budget",
        out::THROTTLING => "held back by real-time throttling",
        _ => return None,
    })
}

/// What lets a task run before real-time ones.
#[must_use]
pub(super) fn ahead(ahead: RunsAhead) -> &'static str {
    match ahead {
        RunsAhead::FairServer => "run by the fair server",
        RunsAhead::RealTimeThrottled => "runs as real-time tasks are throttled",
    }
}

/// An idle state's.
#[must_use]
pub(crate) fn idle(state: Option<u32>) -> String {
    state.map_or_else(|| "idle".to_owned(), |state| format!("idle state {state}"))
}

/// A priority of the kernel as users know it: `fifo 90` also for `rr`, which the number hides.
#[must_use]
pub(crate) fn priority(prio: i16) -> String {
    match prio {
        ..0 => "deadline".into(),
        0..=98 => format!("fifo {}", 99 - prio),
        99 => "fifo 0".into(),
        100.. => format!("nice {}", prio - 120),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_name_is_called_by_its_number() {
        assert_eq!(softirq(3), "NET_RX");
        assert_eq!(softirq(77), "softirq 77");
        assert_eq!(vector(1), "timer interrupt");
        assert_eq!(vector(0), "vector 0");
        let irq = |line, action| hard(HardirqSource::Irq { line, action }, &HashMap::new());
        assert_eq!(irq(6, [0; 16]), "irq 6");
        assert_eq!(irq(6, *b"late_driver\0\0\0\0\0"), "late_driver", "it came since");
    }

    #[test]
    fn of_a_shared_line_the_handler_is_named_that_ran() {
        let shared = ["ehci_hcd:usb1", "snd_hda_intel:card1", "snd_hda_intel:card2"];
        let lines = HashMap::from([(5, shared.map(str::to_owned).to_vec())]);
        let named =
            |action: &[u8; 16]| hard(HardirqSource::Irq { line: 5, action: *action }, &lines);
        assert_eq!(named(b"ehci_hcd:usb1\0\0\0"), "ehci_hcd:usb1");
        assert_eq!(named(b"snd_hda_intel:c\0"), "snd_hda_intel:c", "it may be either");
        assert_eq!(named(&[0; 16]), shared.join(", "));
        let lines = HashMap::from([(5, vec!["snd_hda_intel:card1".to_owned(), "a".to_owned()])]);
        let action = *b"snd_hda_intel:c\0";
        assert_eq!(hard(HardirqSource::Irq { line: 5, action }, &lines), "snd_hda_intel:card1");
        assert_eq!(
            hard(HardirqSource::Irq { line: 5, action: *b"snd\0\0\0\0\0\0\0\0\0\0\0\0\0" }, &lines),
            "snd"
        );
    }

    #[test]
    fn every_vector_that_is_recorded_has_a_name() {
        let header = include_str!("../kernel/recorder.h");
        let all = header.split_once("enum tardy_vector {").unwrap().1.split_once('}').unwrap().0;
        let numbers: Vec<u32> =
            all.split(',').filter_map(|one| one.split_once(" = ")?.1.trim().parse().ok()).collect();
        assert_eq!(numbers, (1..=VECTORS.len() as u32).collect::<Vec<_>>());
        assert_eq!((vector(5), vector(11)), ("irq work".into(), "thermal interrupt".into()));
    }

    #[test]
    fn priorities_are_shown_as_users_set_them() {
        let named = [-1, 0, 9, 98, 100, 120, 139].map(priority);
        assert_eq!(
            named,
            ["deadline", "fifo 99", "fifo 90", "fifo 1", "nice -20", "nice 0", "nice 19"]
        );
    }
}

//! Causes in words, for tables, sentences and headlines: all words of a cause stand here.

use super::page::{PagePart, PagePeaks};
use crate::run::{
    Document,
    peaks::{Basis, Cause, EARLIER_WORK, HELD_BY, INVERSION},
};

/// A cause that has at least this share of a latency explains it.
const MAIN_SHARE: f64 = 0.3;

/// A cause as the head of a row.
#[must_use]
pub const fn head(cause: Cause) -> &'static str {
    match cause {
        Cause::IrqsOff => "interrupts off",
        Cause::Hardirq => "hard interrupt",
        Cause::Softirq => "softirq",
        Cause::Thread => "thread",
        Cause::Nonpreemptible => "non-preemptible",
        Cause::Lock => "lock",
        Cause::IdleExit => "idle exit",
        Cause::Migration => "migration",
        Cause::Throttled => "throttled",
        Cause::PageFault => "page fault",
        Cause::OwnWork => "own CPU time",
        Cause::Wait => "asleep",
        Cause::Stopped => "stopped",
        Cause::Host => "host",
        Cause::Hardware => "hardware",
        Cause::Tracing => "tracing",
        Cause::Unexplained => "unexplained",
    }
}

/// What a latency was spent on: without a name, and what follows with one, which stands for `{}`.
const fn was(cause: Cause) -> (&'static str, &'static str) {
    match cause {
        Cause::IrqsOff => ("interrupts off", " in {}"),
        Cause::Hardirq => ("hard interrupt", " {}"),
        Cause::Softirq => ("softirq", " {}"),
        // With a name it is another sentence.
        Cause::Thread => ("a task that ran first", ""),
        Cause::Nonpreemptible => ("kernel work that cannot be preempted", ": {}"),
        Cause::Lock => ("waiting for a lock", ": {}"),
        Cause::IdleExit => ("the way out of an idle state", ": {}"),
        Cause::Migration => ("the move to another CPU", ": {}"),
        Cause::Throttled => ("being held back by the scheduler", ": {}"),
        Cause::PageFault => ("page faults of the measured threads", ""),
        Cause::OwnWork => ("the threads' own CPU time", ""),
        Cause::Wait => ("sleep during the work", ", {}"),
        Cause::Stopped => ("the measured threads being stopped", ""),
        Cause::Host => ("the virtual machine's host", ": {}"),
        Cause::Hardware => ("firmware or hardware", ": {}"),
        Cause::Tracing => ("tardy's own stack walks", ""),
        Cause::Unexplained => ("unexplained", ""),
    }
}

/// Activity at the same time: the same, and the task stands for `{task}`; `None` if nobody knows.
const fn during(cause: Cause) -> Option<(&'static str, &'static str)> {
    Some(match cause {
        Cause::IrqsOff => ("interrupts were off", " in {}"),
        Cause::Hardirq => ("the CPU served interrupt", " {}"),
        Cause::Softirq => ("the CPU ran softirq", " {}"),
        Cause::Thread => ("{task} ran before it", ""),
        Cause::Nonpreemptible => ("{task} could not be preempted", " in {}"),
        Cause::Lock => ("it waited for a lock", ": {}"),
        Cause::IdleExit => ("the CPU came out of idle", ": {}"),
        Cause::Migration => ("it moved to another CPU", ""),
        Cause::Throttled => ("the scheduler held it back", ": {}"),
        Cause::PageFault => ("its own page fault was served", ""),
        Cause::OwnWork => ("it used its own CPU time", ""),
        Cause::Wait => ("it slept", ", {}"),
        Cause::Stopped => ("it was stopped", ""),
        Cause::Host => ("the host ran something else", ""),
        Cause::Hardware => ("firmware or hardware held the CPU", ""),
        Cause::Tracing => ("tardy walked a stack", ""),
        Cause::Unexplained => return None,
    })
}

/// What a name adds to the words of its cause; records call own CPU time "own work".
#[must_use]
pub fn shown(cause: Cause, name: &str) -> &str {
    match cause {
        Cause::OwnWork => name.trim_start_matches("own work").trim_start_matches(", "),
        _ if name == head(cause) => "",
        _ => name,
    }
}

/// A cause as tables write it: `interrupts off: console_unlock`.
#[must_use]
pub fn label(cause: Cause, name: &str) -> String {
    let kind = head(cause);
    if cause == Cause::Lock && name.contains(HELD_BY) {
        return name.into();
    }
    match shown(cause, name) {
        "" => kind.into(),
        name => format!("{kind}: {name}"),
    }
}

/// A cause as the end of "61% of the time was".
#[must_use]
pub fn phrase(cause: Cause, name: &str) -> String {
    let (bare, named) = was(cause);
    match (cause, shown(cause, name)) {
        (_, "") => bare.into(),
        (Cause::Thread, name) => format!("task {name}, which ran first"),
        (Cause::Lock, name) if name.starts_with(INVERSION) => name.into(),
        (Cause::OwnWork, name) if name.starts_with(EARLIER_WORK) => name.into(),
        (Cause::Lock, name) if name.contains(HELD_BY) => format!("waiting for {name}"),
        (_, name) => format!("{bare}{}", named.replace("{}", name)),
    }
}

/// Activity at the same time; nothing where nobody knows.
#[must_use]
pub fn while_words(part: &PagePart) -> Option<String> {
    let (bare, named) = during(part.cause)?;
    let name = part.name.as_str();
    let task = match (part.task.as_str(), part.cause) {
        ("", Cause::Thread) => name.to_owned(),
        ("", _) => "the kernel".to_owned(),
        // Several tasks of one name.
        (task, Cause::Thread) if !task.starts_with(name) => format!("{task} named {name}"),
        (task, _) => task.to_owned(),
    };
    let named = if name.is_empty() { String::new() } else { named.replace("{}", name) };
    let is_sent = part.cause == Cause::Hardirq && !part.task.is_empty();
    // Of an inferred one the task is the waiting task.
    let is_told = part.cause == Cause::Lock && part.name.contains(HELD_BY);
    let is_held = part.cause == Cause::Lock && part.basis == Basis::Measured && !is_told;
    let by = match part.task.as_str() {
        "" => String::new(),
        task if is_sent => format!(", sent by {task}"),
        task if is_held => format!(", which {task} had"),
        _ => String::new(),
    };
    let probably = if part.basis == Basis::Inferred { "probably " } else { "" };
    Some(format!("{probably}while {}{named}{by}", bare.replace("{task}", &task)))
}

/// Why the worst wake-up of the run was late, where its peak was kept and one cause stands out:
/// `while interrupts were off in ext4_mark_inode_dirty`.
#[must_use]
pub fn worst_in_words(document: &Document, peaks: &PagePeaks) -> Option<String> {
    let max = document.leading().into_iter().filter_map(|series| series.max).max()?;
    let worst = peaks.peaks.first().filter(|peak| peak.latency_ns == max)?;
    let (place, ns) = *worst.blame.first()?;
    let share = ns as f64 / worst.latency_ns.max(1) as f64;
    let main = peaks.parts.get(place as usize).filter(|_| share >= MAIN_SHARE)?;
    while_words(main)
}

/// A share in percent: `61%`.
pub(in crate::report) fn percent(share: f64) -> String {
    format!("{}%", figure(share))
}

/// The same without its sign: `61`, `4.1`, `<0.1`.
pub(in crate::report) fn figure(share: f64) -> String {
    match share * 100.0 {
        p if p >= 9.95 => format!("{p:.0}"),
        p if p >= 0.05 => format!("{p:.1}"),
        p if p > 0.0 => "<0.1".into(),
        _ => "0".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_two_digits() {
        let shares = [1.0, 0.614, 0.0412, 0.0004, 0.0].map(percent);
        assert_eq!(shares, ["100%", "61%", "4.1%", "<0.1%", "0%"]);
    }

    #[test]
    fn a_cause_without_a_name_of_its_own_is_a_phrase_too() {
        assert_eq!(phrase(Cause::IrqsOff, "console_unlock"), "interrupts off in console_unlock");
        assert_eq!(phrase(Cause::Unexplained, "unexplained"), "unexplained");
        assert_eq!(phrase(Cause::Host, "host"), "the virtual machine's host");
        assert_eq!(phrase(Cause::Thread, "dd"), "task dd, which ran first");
        assert_eq!(label(Cause::Softirq, "NET_RX"), "softirq: NET_RX");
        let held = "lock 0x7f00 held by worker";
        assert_eq!(phrase(Cause::Lock, held), "waiting for lock 0x7f00 held by worker");
        let inversion = format!("{INVERSION}{held}, preempted by vision (fifo 50)");
        assert_eq!(
            [phrase(Cause::Lock, &inversion), label(Cause::Lock, &inversion)],
            [&*inversion; 2]
        );
    }

    #[test]
    fn the_worst_is_put_into_words_where_one_cause_stands_out() {
        let part = |cause, task: &str| PagePart {
            cause,
            name: "ext4_x".into(),
            task: task.into(),
            basis: Basis::Measured,
            evidence: String::new(),
            stack: 0,
        };
        let words = |cause, task| while_words(&part(cause, task));
        assert_eq!(
            words(Cause::IrqsOff, "").as_deref(),
            Some("while interrupts were off in ext4_x")
        );
        assert_eq!(
            words(Cause::Nonpreemptible, "dd/7").as_deref(),
            Some("while dd/7 could not be preempted in ext4_x")
        );
        let dd = PagePart { name: "dd".into(), ..part(Cause::Thread, "dd/7") };
        assert_eq!(while_words(&dd).as_deref(), Some("while dd/7 ran before it"));
        let many = PagePart { name: "dd".into(), ..part(Cause::Thread, "9 tasks") };
        assert_eq!(while_words(&many).as_deref(), Some("while 9 tasks named dd ran before it"));
        assert_eq!(words(Cause::Unexplained, ""), None);
        assert_eq!(
            words(Cause::Lock, "dd/7").as_deref(),
            Some("while it waited for a lock: ext4_x, which dd/7 had")
        );
        assert_eq!(
            words(Cause::Hardirq, "dd/7 on CPU 1").as_deref(),
            Some("while the CPU served interrupt ext4_x, sent by dd/7 on CPU 1")
        );
    }
}

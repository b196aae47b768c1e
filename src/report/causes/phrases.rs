//! Causes in words.

use super::{super::why::word_for, PagePart, PagePeaks};
use crate::run::{Document, peaks::Cause};

/// A cause that has at least this share of a latency explains it.
const MAIN_SHARE: f64 = 0.3;

/// Why the worst wake-up of the run was late, where its peak was kept and one cause stands out:
/// `while interrupts were off in ext4_mark_inode_dirty`.
#[must_use]
pub fn worst_in_words(document: &Document, peaks: &PagePeaks) -> Option<String> {
    let max = document.wakeups().filter_map(|series| series.max).max()?;
    let worst = peaks.peaks.first().filter(|peak| peak.latency_ns == max)?;
    let main = worst.blame.first()?;
    let share = main.ns as f64 / worst.latency_ns.max(1) as f64;
    if share < MAIN_SHARE { None } else { while_words(main) }
}

/// What went on meanwhile; nothing where nobody knows.
#[must_use]
pub fn while_words(part: &PagePart) -> Option<String> {
    let name = part.name.as_str();
    let of = |words: &str| if name.is_empty() { String::new() } else { format!("{words}{name}") };
    let task = if part.task.is_empty() { name } else { part.task.as_str() };
    Some(match part.cause {
        Cause::IrqsOff => format!("while interrupts were off{}", of(" in ")),
        Cause::Hardirq => format!("while the CPU served interrupt{}", of(" ")),
        Cause::Softirq => format!("while the CPU ran softirq{}", of(" ")),
        Cause::Thread => format!("while {task} ran before it"),
        Cause::Nonpreemptible if part.task.is_empty() => {
            format!("while the kernel could not be preempted{}", of(" in "))
        }
        Cause::Nonpreemptible => format!("while {task} could not be preempted{}", of(" in ")),
        Cause::Lock => format!("while it waited for a lock{}", of(": ")),
        Cause::IdleExit => format!("while the CPU came out of idle{}", of(": ")),
        Cause::Migration => "while it moved to another CPU".into(),
        Cause::Throttled => "while real-time tasks were held back".into(),
        Cause::PageFault => "while a page fault of its own was served".into(),
        Cause::Stopped => "while it was stopped".into(),
        Cause::Host => "while the host ran something else".into(),
        Cause::Hardware => "while firmware or hardware held the CPU".into(),
        Cause::Tracing => "while tardy walked a stack".into(),
        Cause::Unexplained => return None,
    })
}

/// A cause as tables write it: `interrupts off: console_unlock`.
#[must_use]
pub fn label(cause: Cause, name: &str) -> String {
    let kind = word_for(cause);
    if name.is_empty() || name == kind { kind.into() } else { format!("{kind}: {name}") }
}

//! Selects the stack, of those walked around a late wake-up, that shows what kept the CPU.

use super::{
    Event, EventKind,
    contexts::{CurrentTask, ns},
    late_wakeup::LateWakeup,
};
use crate::{
    kernel::why,
    run::functions::{self, SymbolConfidence, bare, interrupted, is_interrupt_entry},
};

/// The longest time between a stack and the event that it belongs to.
const SOON_NS: i64 = 100_000;

/// What a stack shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StackFinding {
    /// The function to name.
    pub name: String,
    /// How good that is.
    pub worth: SymbolConfidence,
    /// The function that waits for a spin lock.
    pub lock: Option<String>,
    /// Innermost first, as `function+0x12`.
    pub stack: Vec<String>,
}

impl StackFinding {
    /// The function to name; the task's name where the stack shows mere machinery.
    #[must_use]
    pub(crate) fn name_or(&self, otherwise: &str) -> String {
        if self.worth > SymbolConfidence::Machinery {
            return self.name.clone();
        }
        // An exception names itself: a page fault of that task.
        let exception = self.stack.iter().map(|f| bare(f)).find(|f| f.starts_with("asm_exc_"));
        exception.unwrap_or(otherwise).to_owned()
    }

    /// What the last interrupt came into, of a stack that was walked in one, where that had only
    /// just enabled interrupts.
    #[must_use]
    pub(crate) fn enabled_interrupts(&self) -> Option<Self> {
        let outside = interrupted(&self.stack);
        let is_interrupt = outside.len() < self.stack.len();
        let first = outside.first().map(|function| bare(function));
        let enables = is_interrupt && first.is_some_and(functions::enables_interrupts);
        if enables { finding(outside.to_vec()) } else { None }
    }

    /// Whether its innermost function does nothing else with interrupts on.
    #[must_use]
    pub(crate) fn begins_where_interrupts_are_only_enabled(&self) -> bool {
        let first = self.stack.first().map(|function| bare(function));
        first.is_some_and(functions::only_enables_interrupts)
    }

    /// Whether its innermost function is one that enables interrupts.
    #[must_use]
    pub(crate) fn begins_where_interrupts_are_enabled(&self) -> bool {
        self.stack.first().is_some_and(|function| functions::enables_interrupts(bare(function)))
    }

    /// Whether this is what an interrupt leaves that came in user mode: interrupts alone, and the
    /// switch at their end.
    #[must_use]
    pub(crate) fn is_of_user_mode(&self) -> bool {
        let outermost = self.stack.last().map(|function| bare(function));
        self.worth == SymbolConfidence::Machinery && outermost.is_some_and(is_interrupt_entry)
    }

    /// Whether the task was in a switch, as one that comes back from it with interrupts off.
    #[must_use]
    pub(crate) fn is_in_switch(&self) -> bool {
        self.stack.iter().any(|function| is_scheduler(bare(function)))
    }
}

fn is_scheduler(name: &str) -> bool {
    ["schedule", "__schedule"].contains(&name) || name.starts_with("finish_task_switch")
}

fn finding(stack: Vec<String>) -> Option<StackFinding> {
    // Addresses name nothing.
    let names: Vec<&str> =
        stack.iter().map(|f| bare(f)).filter(|name| !name.starts_with("0x")).collect();
    let (name, worth) = functions::culprit(&names)?;
    let lock = functions::waits_for_lock(&names).map(str::to_owned);
    Some(StackFinding { name: name.to_owned(), worth, lock, stack })
}

/// The stack of the task that was interrupted by a late timer interrupt at `entry_ns`.
#[must_use]
pub(crate) fn of_interrupt(
    wakeup: &LateWakeup<'_>,
    cpu: u32,
    entry_ns: i64,
) -> Option<StackFinding> {
    let is_it = |event: &&Event| event.flags == why::LATE_INTERRUPT;
    walked(wakeup, cpu, (entry_ns, wakeup.end_ns()), is_it)
        .next()
        .and_then(|number| finding(interrupted(&wakeup.functions(number)).to_vec()))
}

/// The stack that best shows what `task` did from `from_ns` to `to_ns` on `cpu`.
#[must_use]
pub(crate) fn of_task(
    wakeup: &LateWakeup<'_>,
    cpu: u32,
    task: &CurrentTask,
    from_ns: i64,
    to_ns: i64,
) -> Option<StackFinding> {
    let of = |reason: u8| {
        let is_it = move |event: &&Event| event.flags == reason && event.pid == task.pid;
        let number = walked(wakeup, cpu, (from_ns, to_ns), is_it).next()?;
        let stack = wakeup.functions(number);
        finding(if reason == why::LATE_DISPATCH { stack } else { interrupted(&stack).to_vec() })
    };
    // A late interrupt's stack shows the task at the wake-up, too.
    let at_wake_up = of(why::SUSPECT).or_else(|| of(why::LATE_INTERRUPT));
    match (of(why::LATE_DISPATCH), at_wake_up) {
        (Some(left), Some(found)) if found.worth > left.worth => Some(found),
        (left, found) => left.or(found),
    }
}

/// Numbers of the stacks walked on a CPU from one moment until soon after another that `is_it`
/// accepts, by time.
fn walked<'a>(
    wakeup: &'a LateWakeup<'_>,
    cpu: u32,
    (from_ns, to_ns): (i64, i64),
    is_it: impl Fn(&&Event) -> bool + 'a,
) -> impl Iterator<Item = u64> + 'a {
    let events = wakeup.cpus.get(&cpu).map_or(&[][..], |cpu| &cpu.events);
    let first = events.partition_point(|event| ns(event.at_ns) < from_ns);
    let until_ns = to_ns.saturating_add(SOON_NS);
    let within = events[first..].iter().take_while(move |event| ns(event.at_ns) <= until_ns);
    within.filter(is_it).filter_map(|event| match event.kind {
        EventKind::Stack { number, .. } => Some(number),
        _ => None,
    })
}

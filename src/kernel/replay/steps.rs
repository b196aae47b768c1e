//! What the tasks of a small machine do, how long its kernel takes for it, and what happened.

/// From the expiry of a timer to the begin of its interrupt.
pub(crate) const ENTRY_NS: u64 = 1_000;
/// From there to the wake-up.
pub(crate) const WAKING_NS: u64 = 1_000;
/// From the wake-up to the switch, where the CPU is idle or the woken task preempts.
pub(crate) const DISPATCH_NS: u64 = 1_000;
/// From the expiry of its timer to the CPU: how late a task is that nobody delays.
pub(crate) const LATE_NS: u64 = ENTRY_NS + WAKING_NS + DISPATCH_NS;
/// From the switch to a task to its next step, where it was woken.
pub(crate) const RETURN_NS: u64 = 500;
/// From a step that sleeps to the switch.
pub(crate) const CALL_NS: u64 = 1_000;
/// The slack of timers of tasks that are not real-time.
pub(crate) const SLACK_NS: u64 = 50_000;

/// What a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Sleeps until the next multiple of the period, and then for the second number of ns.
    UntilNext(u64, u64),
    /// Sleeps until this long after the expiry of its last such sleep, even if that is over.
    UntilAfterLast(u64),
    /// Sleeps for a time.
    For(u64),
    /// Uses this much CPU time.
    Work(u64),
    /// Has this number of page faults, which take no time.
    Fault(u64),
    /// Takes an ordinary mutex, or lets it go.
    Lock(u32),
    Unlock(u32),
    /// The same of one with priority inheritance.
    LockPi(u32),
    UnlockPi(u32),
    /// Reads a device for so long.
    Read(u64),
    /// Waits for a message, or sends one.
    Receive(u32),
    Send(u32),
    /// Ends.
    Exit,
}

/// A task to be.
#[derive(Debug, Clone)]
pub(crate) struct TaskPlan {
    pub name: &'static str,
    /// The kernel's priority: 0 to 98 real-time, where 98 is FIFO 1; 120.
    pub prio: i32,
    pub cpu: usize,
    /// When it is started.
    pub at_ns: u64,
    /// Again and again.
    pub steps: Vec<Step>,
}

/// What happened: the tasks, and every event with its time.
#[derive(Debug)]
pub(crate) struct Happened {
    pub tasks: String,
    pub(crate) lines: Vec<(u64, String)>,
}

impl TaskPlan {
    /// A task that is not a real-time task, on CPU 0 from the beginning.
    pub(crate) fn fair(name: &'static str, steps: &[Step]) -> Self {
        Self { name, prio: 120, cpu: 0, at_ns: 1_000, steps: steps.to_vec() }
    }

    /// The same with a real-time priority of 50.
    pub(crate) fn fifo(name: &'static str, steps: &[Step]) -> Self {
        Self { prio: 49, ..Self::fair(name, steps) }
    }

    /// On another CPU.
    pub(crate) fn on(self, cpu: usize) -> Self {
        Self { cpu, ..self }
    }
}

impl Happened {
    /// The events from `from_ns` up to `to_ns`, one a line.
    pub(crate) fn between(&self, from_ns: u64, to_ns: u64) -> String {
        let first = self.lines.partition_point(|(at_ns, _)| *at_ns < from_ns);
        let last = self.lines.partition_point(|(at_ns, _)| *at_ns < to_ns);
        let lines = self.lines[first..last].iter();
        lines.fold(String::new(), |text, (_, line)| text + line + "\n")
    }

    /// All of it.
    pub(crate) fn text(&self) -> String {
        self.tasks.clone() + &self.between(0, u64::MAX)
    }
}

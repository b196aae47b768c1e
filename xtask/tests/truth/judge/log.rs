//! The injector's log: what was injected, and what of it is a delay's own.

use serde::Deserialize;

use super::LATE_NS;

/// A line of the injector's log.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Injected {
    pub kind: String,
    pub cpu: u32,
    pub at_ns: i64,
    pub ns: i64,
    pub expires_ns: i64,
    #[serde(default)]
    pub pid: u32,
}

impl Injected {
    pub(super) fn end_ns(&self) -> i64 {
        self.at_ns + self.ns
    }

    /// How long it lies over its expiry and what follows. A relative sleep is over the later by all
    /// that passes between the clock read and its arming.
    pub(super) fn over_ns(&self) -> i64 {
        if self.kind == "arming" && self.end_ns() < self.expires_ns {
            return self.ns;
        }
        self.end_ns() - self.at_ns.max(self.expires_ns)
    }

    /// Not its own delay: what came within one, or may have led to one.
    pub(super) fn is_meanwhile(&self) -> bool {
        matches!(self.kind.as_str(), "interrupt" | "softirq_run" | "irq_thread_run")
            || self.is_walk()
    }

    /// The injector had a lock of the measured process. Of those who wait for it only the measured
    /// threads are logged as delayed, but before these go others of that process, and so on a
    /// real-time kernel does the injector, raised for them.
    pub(super) fn is_walk(&self) -> bool {
        self.kind == "page_walk"
    }

    /// Began late enough after the expiry that the thread may have been awake already: its truth is
    /// unknown.
    pub(super) fn is_beside(&self) -> bool {
        self.at_ns - self.expires_ns > 20_000
    }

    /// What `why` may call it. No event shows that interrupts are off where a timer is armed or on
    /// the way into an idle state, and none what a thread does before it arms its own.
    pub(super) fn causes(&self) -> &'static [&'static str] {
        match self.kind.as_str() {
            "hardirq" | "storm" | "device" => &["hardirq"],
            "softirq" | "softirq_thread" => &["softirq"],
            "switch" | "from_idle" | "to_idle" => &["irqs_off"],
            "masked" | "masked_idle" => &["irqs_off", "unexplained"],
            "arming" => &["unexplained"],
            "hog" | "irq_thread" => &["thread"],
            "nonpreemptible" => &["nonpreemptible"],
            "exit" => &["nonpreemptible", "irqs_off"],
            "lock" | "pi_mutex" => &["lock"],
            "stop" => &["stopped"],
            "migration" => &["migration"],
            "page_fault" => &["page_fault"],
            other => panic!("the log has an unknown kind {other}"),
        }
    }

    /// Interrupts come within it, and have their own part.
    pub(super) fn is_interruptible(&self) -> bool {
        matches!(
            self.kind.as_str(),
            "softirq"
                | "softirq_thread"
                | "hog"
                | "irq_thread"
                | "nonpreemptible"
                | "exit"
                | "arming"
                | "lock"
                | "pi_mutex"
        )
    }

    /// It is not a separate event, so that it lasts until the next one.
    fn ends_unseen(&self) -> bool {
        ["switch", "from_idle", "to_idle", "masked", "masked_idle"].contains(&self.kind.as_str())
    }

    /// It lies within another delay on its CPU.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        let is_outer =
            other.cpu == self.cpu && other.is_interruptible() && !self.is_interruptible();
        is_outer && self.at_ns >= other.at_ns && self.end_ns() <= other.end_ns()
    }

    /// What of it is its own, by the log alone.
    pub(super) fn own_ns(&self, log: &[Injected]) -> i64 {
        let from = self.at_ns.max(self.expires_ns);
        let here = |kind: &'static str| {
            log.iter().filter(move |other| other.cpu == self.cpu && other.kind == kind)
        };
        if self.ends_unseen() && self.at_ns < self.expires_ns {
            let after = |other: &&Injected| other.at_ns >= self.end_ns();
            let next = here("interrupt").filter(after).map(|other| other.at_ns).min();
            // None is logged where it comes too late to be of this delay.
            return next.filter(|at| at - self.end_ns() < 200_000).unwrap_or(self.end_ns()) - from;
        }
        if !self.is_interruptible() {
            return self.over_ns();
        }
        let mut others: Vec<(i64, i64)> = here("interrupt")
            .chain(here("softirq_run").filter(|_| !self.kind.starts_with("softirq")))
            .chain(log.iter().filter(|other| other.is_within(self)))
            .filter(|other| other.at_ns < self.end_ns() && other.end_ns() > from)
            .map(|other| (other.at_ns.max(from), other.end_ns().min(self.end_ns())))
            .collect();
        // Until the timer's interrupt came: the machine's latency, not the task's.
        let first = others.iter().map(|(at, _)| *at).min();
        // But a process at its end frees pages with interrupts off, and its interrupt is not late
        // for less than that. A task that meets a lock, or arms its timer, is awake: the timer's
        // interrupt came before, or nothing waits for it.
        let is_off = |at: &i64| match self.kind.as_str() {
            "lock" | "pi_mutex" | "arming" => true,
            kind => kind == "exit" && at - from > LATE_NS,
        };
        let came = |other: &Injected| {
            other.end_ns() > self.expires_ns && other.at_ns < self.at_ns.max(self.expires_ns)
        };
        let late = first.filter(|at| !here("interrupt").any(came) && !is_off(at));
        others.extend(late.map(|at| (from, at)));
        self.over_ns() - covered(others)
    }
}

/// How much time spans cover together.
fn covered(mut spans: Vec<(i64, i64)>) -> i64 {
    spans.sort_unstable();
    let (mut sum, mut until) = (0, i64::MIN);
    for (from, to) in spans {
        sum += (to - from.max(until)).max(0);
        until = until.max(to);
    }
    sum
}

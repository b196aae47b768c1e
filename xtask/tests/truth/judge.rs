//! Holds what `tardy why` says against what was injected.
//!
//! A delay from t to t + d that lies over the expiry E makes the wake-up late by t + d - max(t, E),
//! and by what the wake-up takes anyhow. Time counts once, for what is innermost: what interrupts
//! and softirqs took within a delay that they can interrupt, and the time until the interrupt of
//! the timer came, is not the delay's. The injector logs those too, by its own clock, and they are
//! taken off. With interrupts off, the delay lasts until the first interrupt after it, for no
//! program sees more of it than that.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;

/// Delays that are shorter are not judged, ns; nor those of which less is their own.
pub(crate) const LEAST_NS: i64 = 50_000;
/// Where the steal clock leaves less of a delay, it is not judged, ns.
const LEAST_LEFT_NS: i64 = 20_000;
/// A thread that is not the injector's went first for no more than this, and is no delay, ns.
const STRANGER_NS: i64 = 100_000;
/// How `why` names time that the steal clock counted.
const STEAL: &str = "hypervisor (steal)";
/// And a peak whose events were overwritten before it was looked at.
const LOST: &str = "events overwritten before they were read";
/// A process at its end may be what keeps the interrupt for less than this, or may not: the log
/// cannot know. ns.
const LATE_NS: i64 = 150_000;
/// What a size may be wrong by beside 2 % of it: 3 us, and more on a machine whose wake-ups vary by
/// more, of which one in a hundred is later than `over_ns`.
pub(crate) fn slack_ns(over_ns: i64) -> i64 {
    (over_ns / 20).max(3_000)
}

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

/// A late wake-up as `tardy why --json` tells it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Peak {
    pub at_ns: i64,
    pub series: String,
    pub latency_ns: i64,
    pub blame: Vec<Part>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Part {
    pub cause: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub task: Option<String>,
    pub ns: i64,
    #[serde(default)]
    pub stack: Vec<String>,
}

impl Injected {
    fn end_ns(&self) -> i64 {
        self.at_ns + self.ns
    }

    /// How long it lies over its expiry and what follows.
    fn over_ns(&self) -> i64 {
        self.end_ns() - self.at_ns.max(self.expires_ns)
    }

    /// Not a delay of its own: what came within one.
    fn is_meanwhile(&self) -> bool {
        matches!(self.kind.as_str(), "interrupt" | "softirq_run")
    }

    /// Began so long after the expiry that the thread may have been awake already: no truth.
    fn is_beside(&self) -> bool {
        self.at_ns - self.expires_ns > 20_000
    }

    /// What `why` shall call it.
    fn cause(&self) -> &'static str {
        match self.kind.as_str() {
            "hardirq" | "storm" => "hardirq",
            "softirq" => "softirq",
            "switch" => "irqs_off",
            "hog" => "thread",
            "nonpreemptible" | "exit" => "nonpreemptible",
            "stop" => "stopped",
            "migration" => "migration",
            "page_fault" => "page_fault",
            other => panic!("the log has an unknown kind {other}"),
        }
    }

    /// Interrupts come within it, and have a part of their own.
    fn is_interruptible(&self) -> bool {
        matches!(self.kind.as_str(), "softirq" | "hog" | "nonpreemptible" | "exit")
    }

    /// What of it is its own, by the log alone.
    fn own_ns(&self, log: &[Injected]) -> i64 {
        let from = self.at_ns.max(self.expires_ns);
        let here = |kind: &'static str| {
            log.iter().filter(move |other| other.cpu == self.cpu && other.kind == kind)
        };
        if self.kind == "switch" && self.at_ns < self.expires_ns {
            let after = |other: &&Injected| other.at_ns >= self.end_ns();
            let next = here("interrupt").filter(after).map(|other| other.at_ns).min();
            // None is logged where it comes too late to be of this delay.
            return next.filter(|at| at - self.end_ns() < 200_000).unwrap_or(self.end_ns()) - from;
        }
        if !self.is_interruptible() {
            return self.over_ns();
        }
        let mut others: Vec<(i64, i64)> = here("interrupt")
            .chain(here("softirq_run").filter(|_| self.kind != "softirq"))
            .filter(|other| other.at_ns < self.end_ns() && other.end_ns() > from)
            .map(|other| (other.at_ns.max(from), other.end_ns().min(self.end_ns())))
            .collect();
        // Until the timer's interrupt came: the machine's latency, not the task's.
        let first = others.iter().map(|(at, _)| *at).min();
        // But a process at its end frees pages with interrupts off: so long is no interrupt late.
        let is_off = |at: &i64| self.kind == "exit" && at - from > LATE_NS;
        let late = first.filter(|at| self.at_ns < self.expires_ns && !is_off(at));
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

impl Peak {
    fn cpu(&self) -> Option<u32> {
        self.series.strip_prefix("cpu")?.parse().ok()
    }

    fn end_ns(&self) -> i64 {
        self.at_ns + self.latency_ns
    }

    /// What the steal clock counted within it.
    pub(crate) fn stolen_ns(&self) -> i64 {
        let is_steal = |part: &&Part| part.cause == "host" && part.name == STEAL;
        self.blame.iter().filter(is_steal).map(|part| part.ns).sum()
    }

    /// A thread went first of which the log knows nothing. One that would explain all is no such.
    fn met_stranger(&self) -> bool {
        let is_stranger = |part: &Part| {
            let is_own = part.task.as_deref().is_some_and(|task| task.starts_with("inject/"));
            part.cause == "thread" && !is_own && part.ns <= STRANGER_NS
        };
        self.blame.iter().any(is_stranger)
    }

    /// Its events were overwritten before it was looked at.
    fn is_lost(&self) -> bool {
        self.blame.iter().any(|part| part.name == LOST)
    }

    /// What is blamed on the cause of a delay. Of a process at its end that is what it did in the
    /// kernel, with interrupts on or off. Work that cannot be preempted has a task where it is
    /// somebody's; the wake-up's own path has none.
    fn blamed_ns(&self, delay: &Injected) -> i64 {
        let cause = delay.cause();
        let ending = format!("/{}", delay.pid);
        let is_own = |part: &&Part| match delay.kind.as_str() {
            "exit" => {
                let task = part.task.as_deref().unwrap_or_default();
                task.ends_with(&ending) && [cause, "irqs_off"].contains(&part.cause.as_str())
            }
            "nonpreemptible" => part.cause == cause && part.task.is_some(),
            _ => part.cause == cause,
        };
        self.blame.iter().filter(is_own).map(|part| part.ns).sum()
    }

    /// Blames what only the injector does here, and does not do at all between its delays: its
    /// hogs, waits in its programs, stops, faults, moves. Its other work (timers armed, processes
    /// started) is as real as anybody's, and may be blamed.
    fn blames_injector(&self) -> bool {
        let injects = |part: &Part| {
            let task = part.task.as_deref().unwrap_or_default();
            let hogs = part.cause == "thread" && task.starts_with("inject/");
            let waits = part.stack.iter().any(|function| function.contains("bpf_loop"));
            let never = ["stopped", "page_fault", "migration"].contains(&part.cause.as_str());
            hogs || waits || never
        };
        self.blame.iter().any(|part| part.ns > 20_000 && injects(part))
    }
}

/// How one kind of delay came out.
#[derive(Debug, Default)]
pub(crate) struct Row {
    /// All that were logged.
    pub injected: usize,
    /// Over an expiry, by more than 50 us of their own, and nothing else at the same time.
    pub judged: usize,
    pub found: usize,
    /// Of those found: their events were overwritten before anybody looked.
    pub lost: usize,
    /// Of those found: next to nothing is left but what the hypervisor took, or a thread went first
    /// that is no injected delay.
    pub disturbed: usize,
    pub right: usize,
    pub sized: usize,
    /// Errors of the size, ns.
    pub errors_ns: Vec<i64>,
    /// What went wrong, in words.
    pub wrong: Vec<String>,
}

/// The whole outcome.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub rows: BTreeMap<String, Row>,
    /// Late wake-ups that no delay lies over, on any CPU.
    pub clean: usize,
    /// Those of them that are blamed on an injected thing.
    pub false_blame: Vec<String>,
    /// Delays that met another one over the same expiry.
    pub mixed: usize,
}

/// Joins the log with what `why` says of all wake-ups later than `over_ns`.
pub(crate) fn judge(log: &[Injected], peaks: &[Peak], over_ns: i64) -> Outcome {
    // The wake-up has to be over the threshold by the delay alone.
    let least_ns = LEAST_NS.max(over_ns + 5_000);
    let by_expiry: BTreeMap<(u32, i64), &Peak> =
        peaks.iter().filter_map(|peak| Some(((peak.cpu()?, peak.at_ns), peak))).collect();
    let mut outcome = Outcome::default();
    for delay in log.iter().filter(|line| !line.is_meanwhile()) {
        outcome.rows.entry(delay.kind.clone()).or_default().injected += 1;
    }
    let delays: Vec<&Injected> = log.iter().filter(|line| !line.is_meanwhile()).collect();
    for delay in &delays {
        if delay.is_beside() || delay.over_ns() <= least_ns {
            continue;
        }
        let own_ns = delay.own_ns(log);
        if own_ns <= LEAST_NS {
            continue;
        }
        let others = delays.iter().filter(|other| {
            !std::ptr::eq(**other, *delay)
                && other.cpu == delay.cpu
                && other.end_ns() > delay.expires_ns
                && other.at_ns < delay.end_ns() + 20_000
        });
        // Small ones disturb nobody.
        if others.map(|other| other.ns.min(other.end_ns() - delay.expires_ns)).sum::<i64>() > 2_000
        {
            outcome.mixed += 1;
            continue;
        }
        let row = outcome.rows.entry(delay.kind.clone()).or_default();
        look(
            row,
            delay,
            own_ns,
            by_expiry.get(&(delay.cpu, delay.expires_ns)).copied(),
            slack_ns(over_ns),
        );
    }
    let overlaps = |delay: &Injected, peak: &Peak| {
        delay.at_ns < peak.end_ns() && delay.end_ns() + 20_000 > peak.at_ns
    };
    for peak in peaks.iter().filter(|peak| !delays.iter().any(|delay| overlaps(delay, peak))) {
        outcome.clean += 1;
        if peak.blames_injector() {
            outcome.false_blame.push(format!("{peak:?}"));
        }
    }
    outcome
}

/// One delay, `expected` ns of which are its own, against its wake-up.
fn look(row: &mut Row, delay: &Injected, expected: i64, peak: Option<&Peak>, slack_ns: i64) {
    row.judged += 1;
    let late_by = delay.over_ns();
    let Some(peak) = peak.filter(|peak| peak.latency_ns >= late_by - 3_000) else {
        row.wrong.push(format!("not found: {delay:?}; {peak:?}"));
        return;
    };
    row.found += 1;
    if peak.is_lost() {
        row.lost += 1;
        return;
    }
    let left = expected - peak.stolen_ns();
    if left < LEAST_LEFT_NS || peak.met_stranger() {
        row.disturbed += 1;
        return;
    }
    let blamed = peak.blamed_ns(delay);
    if blamed * 2 < left {
        row.wrong.push(format!("wrong cause: {late_by} ns of {delay:?}; {peak:?}"));
        return;
    }
    row.right += 1;
    // tardy's own walks, and what the hypervisor took, lie within or behind the delay; nobody else
    // knows where.
    let is_walk = |part: &&Part| part.cause == "tracing";
    let walks: i64 = peak.blame.iter().filter(is_walk).map(|part| part.ns).sum();
    let may_lack = walks + peak.stolen_ns();
    let error = blamed - expected;
    let may_be_late = if delay.kind == "exit" { LATE_NS } else { 0 };
    let error = if error < 0 { (error + may_lack).min(0) } else { (error - may_be_late).max(0) };
    row.errors_ns.push(error.abs());
    if error.abs() <= slack_ns.max(expected / 50) {
        row.sized += 1;
    } else {
        let case = format!("{expected} ns of {delay:?}; {peak:?}");
        row.wrong.push(format!("wrong by {error} ns: {case}"));
    }
}

impl Row {
    /// That share of the errors is not larger, us.
    fn error_us(&self, share: f64) -> f64 {
        let mut sorted = self.errors_ns.clone();
        sorted.sort_unstable();
        let at = (sorted.len() as f64 * share).ceil() as usize;
        sorted.get(at.saturating_sub(1)).map_or(0.0, |ns| *ns as f64 / 1e3)
    }
}

impl Outcome {
    fn sum(&self, of: fn(&Row) -> usize) -> usize {
        self.rows.values().map(of).sum()
    }

    /// All rows together: judged, found, cause right, size right.
    pub(crate) fn totals(&self) -> [usize; 4] {
        let of: [fn(&Row) -> usize; 4] =
            [|row| row.judged, |row| row.found, |row| row.right, |row| row.sized];
        of.map(|of| self.sum(of))
    }

    /// Those found of which no cause can be known: events lost, disturbed by the hypervisor.
    pub(crate) fn unknowable(&self) -> [usize; 2] {
        [self.sum(|row| row.lost), self.sum(|row| row.disturbed)]
    }

    /// The table, as Markdown.
    pub(crate) fn table(&self) -> String {
        let mut text = String::from(
            "| injected | delays | judged | found | events lost | disturbed | cause right | \
             size right | size error p50 / p99 |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for (kind, row) in &self.rows {
            let (p50, p99) = (row.error_us(0.5), row.error_us(0.99));
            text += &format!(
                "| {kind} | {} | {} | {} | {} | {} | {} | {} | {p50:.1} / {p99:.1} us |\n",
                row.injected, row.judged, row.found, row.lost, row.disturbed, row.right, row.sized
            );
        }
        let (clean, wrong, mixed) = (self.clean, self.false_blame.len(), self.mixed);
        text + &format!(
            "\nClean late wake-ups: {clean}, of which {wrong} blamed on an injected thing. \
             Not judged, for two delays met: {mixed}.\n"
        )
    }
}

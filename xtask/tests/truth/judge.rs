//! Holds what `tardy why` says against what was injected.
//!
//! A delay from t to t + d that lies over the expiry E makes the wake-up late by t + d - max(t, E),
//! and by what the wake-up takes anyhow. What the measured thread's own timer interrupt took within
//! a delay that can be interrupted is a hardirq's time, not the delay's: time counts once, for
//! what is innermost. So it is taken off what is expected.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Delays that are shorter are not judged, ns.
pub const LEAST_NS: i64 = 50_000;
/// What the size may be wrong by: 3 us or 2 %, whichever is more.
pub fn allowed_ns(expected_ns: i64) -> i64 {
    (expected_ns / 50).max(3_000)
}

/// A line of the injector's log.
#[derive(Debug, Clone, Deserialize)]
pub struct Injected {
    pub kind: String,
    pub cpu: u32,
    pub at_ns: i64,
    pub ns: i64,
    pub expires_ns: i64,
}

/// A late wake-up as `tardy why --json` tells it.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Peak {
    pub at_ns: i64,
    pub series: String,
    pub latency_ns: i64,
    pub stages: Option<Stages>,
    pub blame: Vec<Part>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct Stages {
    pub irq: i64,
    pub handler: i64,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct Part {
    pub cause: String,
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
}

impl Peak {
    fn cpu(&self) -> Option<u32> {
        self.series.strip_prefix("cpu")?.parse().ok()
    }

    fn end_ns(&self) -> i64 {
        self.at_ns + self.latency_ns
    }

    fn blamed_ns(&self, cause: &str) -> i64 {
        self.blame.iter().filter(|part| part.cause == cause).map(|part| part.ns).sum()
    }

    /// Blames what only the injector does here.
    fn blames_injector(&self) -> bool {
        let injects = |part: &Part| {
            let task = part.task.as_deref().unwrap_or_default();
            let named = task.starts_with("inject/") || task.starts_with("xtask/");
            let walked = part.stack.iter().any(|function| function.contains("bpf_loop"));
            named || walked || ["stopped", "page_fault", "migration"].contains(&part.cause.as_str())
        };
        self.blame.iter().any(|part| part.ns > 20_000 && injects(part))
    }
}

/// How one kind of delay came out.
#[derive(Debug, Default)]
pub struct Row {
    /// All that were logged.
    pub injected: usize,
    /// Over an expiry, by 50 us and more, and nothing else at the same time.
    pub judged: usize,
    pub found: usize,
    pub right: usize,
    pub sized: usize,
    /// Errors of the size, ns.
    pub errors_ns: Vec<i64>,
    /// What went wrong, in words.
    pub wrong: Vec<String>,
}

/// The whole outcome.
#[derive(Debug, Default)]
pub struct Outcome {
    pub rows: BTreeMap<String, Row>,
    /// Late wake-ups that no delay lies over, on any CPU.
    pub clean: usize,
    /// Those of them that are blamed on an injected thing.
    pub false_blame: Vec<String>,
    /// Delays that met another one over the same expiry.
    pub mixed: usize,
}

/// Joins the log with what `why` says.
pub fn judge(log: &[Injected], peaks: &[Peak]) -> Outcome {
    let by_expiry: BTreeMap<(u32, i64), &Peak> =
        peaks.iter().filter_map(|peak| Some(((peak.cpu()?, peak.at_ns), peak))).collect();
    let mut outcome = Outcome::default();
    for delay in log {
        outcome.rows.entry(delay.kind.clone()).or_default().injected += 1;
    }
    for delay in log.iter().filter(|delay| delay.over_ns() > LEAST_NS && !delay.is_beside()) {
        let others = log.iter().filter(|other| {
            !std::ptr::eq(*other, delay)
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
        look(row, delay, by_expiry.get(&(delay.cpu, delay.expires_ns)).copied());
    }
    let overlaps = |delay: &Injected, peak: &Peak| {
        delay.at_ns < peak.end_ns() && delay.end_ns() + 20_000 > peak.at_ns
    };
    for peak in peaks.iter().filter(|peak| !log.iter().any(|delay| overlaps(delay, peak))) {
        outcome.clean += 1;
        if peak.blames_injector() {
            outcome.false_blame.push(format!("{peak:?}"));
        }
    }
    outcome
}

/// One delay against its wake-up.
fn look(row: &mut Row, delay: &Injected, peak: Option<&Peak>) {
    row.judged += 1;
    let late_by = delay.over_ns();
    let Some(peak) = peak.filter(|peak| peak.latency_ns >= late_by - 3_000) else {
        row.wrong.push(format!("not found: {delay:?}; {peak:?}"));
        return;
    };
    row.found += 1;
    let own = peak.stages.as_ref().map_or(0, |stages| stages.irq + stages.handler);
    let nested = delay.is_interruptible() && delay.at_ns < delay.expires_ns;
    let expected = late_by - if nested { own } else { 0 };
    let blamed = peak.blamed_ns(delay.cause());
    if blamed * 2 < expected {
        row.wrong.push(format!("wrong cause: {late_by} ns of {delay:?}; {peak:?}"));
        return;
    }
    row.right += 1;
    let error = blamed - expected;
    row.errors_ns.push(error.abs());
    if error.abs() <= allowed_ns(expected) {
        row.sized += 1;
    } else {
        row.wrong.push(format!("wrong by {error} ns: {late_by} ns of {delay:?}; {peak:?}"));
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
    /// All rows together: judged, found, cause right, size right.
    pub fn totals(&self) -> [usize; 4] {
        let sum = |of: fn(&Row) -> usize| self.rows.values().map(of).sum();
        [sum(|row| row.judged), sum(|row| row.found), sum(|row| row.right), sum(|row| row.sized)]
    }

    /// The table, as Markdown.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "| injected | delays | judged | found | cause right | size within 3 us or 2 % | \
             size error p50 / p99 |\n| --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for (kind, row) in &self.rows {
            let (p50, p99) = (row.error_us(0.5), row.error_us(0.99));
            text += &format!(
                "| {kind} | {} | {} | {} | {} | {} | {p50:.1} / {p99:.1} us |\n",
                row.injected, row.judged, row.found, row.right, row.sized
            );
        }
        let (clean, wrong, mixed) = (self.clean, self.false_blame.len(), self.mixed);
        text + &format!(
            "\nClean late wake-ups: {clean}, of which {wrong} blamed on an injected thing. \
             Not judged, for two delays met: {mixed}.\n"
        )
    }
}

fn delay(kind: &str, at_ns: i64, ns: i64, expires_ns: i64) -> Injected {
    Injected { kind: kind.to_owned(), cpu: 0, at_ns, ns, expires_ns }
}

fn peak(at_ns: i64, latency_ns: i64, cause: &str, ns: i64) -> Peak {
    let part = Part { cause: cause.to_owned(), ns, ..Part::default() };
    Peak { at_ns, latency_ns, series: "cpu0".to_owned(), blame: vec![part], stages: None }
}

#[test]
fn a_delay_is_found_where_its_expiry_is_late_and_its_cause_and_size_come_back() {
    let log = [delay("hardirq", 900_000, 300_000, 1_000_000)];
    let outcome = judge(&log, &[peak(1_000_000, 210_000, "hardirq", 202_500)]);
    assert_eq!(outcome.totals(), [1, 1, 1, 1], "{outcome:?}");
    let outcome = judge(&log, &[peak(1_000_000, 210_000, "hardirq", 205_000)]);
    assert_eq!(outcome.totals(), [1, 1, 1, 0], "2 % of 200 us are 4 us");
    let outcome = judge(&log, &[peak(1_000_000, 210_000, "thread", 202_500)]);
    assert_eq!(outcome.totals(), [1, 1, 0, 0]);
    let outcome = judge(&log, &[peak(2_000_000, 210_000, "hardirq", 202_500)]);
    assert_eq!((outcome.totals(), outcome.clean), ([1, 0, 0, 0], 1));
}

#[test]
fn delays_that_are_short_or_beside_or_two_at_once_are_not_judged() {
    let short = delay("hardirq", 900_000, 140_000, 1_000_000);
    assert_eq!(judge(&[short], &[]).totals()[0], 0);
    let beside = delay("hardirq", 1_100_000, 300_000, 1_000_000);
    assert_eq!(judge(&[beside], &[]).totals()[0], 0);
    let one = delay("hardirq", 900_000, 300_000, 1_000_000);
    let other = delay("stop", 1_150_000, 300_000, 1_000_000);
    let outcome = judge(&[one, other], &[]);
    assert_eq!((outcome.totals()[0], outcome.mixed), (0, 1));
}

#[test]
fn a_clean_late_wakeup_that_is_blamed_on_the_injector_counts_as_false_blame() {
    let mut blamed = peak(5_000_000, 90_000, "thread", 60_000);
    blamed.blame[0].task = Some("inject/cpu0/77".to_owned());
    let clean = peak(7_000_000, 90_000, "thread", 60_000);
    let outcome = judge(&[], &[blamed, clean]);
    assert_eq!((outcome.clean, outcome.false_blame.len()), (2, 1));
}

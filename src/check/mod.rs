//! What on this system costs latency: findings with evidence and remedy. Reads, and changes
//! nothing. One function per finding, one table per group;
//! `docs/reference/check.md` lists every code.
//!
//! Everything is read below a [`Root`], so that a copy of another machine can be checked too.

mod clock;
mod interrupts;
mod kernel;
mod memory;
mod place;
mod power;
pub(crate) mod remedies;
mod rights;
mod scheduler;

use serde::Serialize;

use crate::sys::{cpus::Cpus, kernel_config::ConfigOptions, root::Root};

/// Whether something costs latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FindingStatus {
    /// It does not.
    Ok,
    /// It does.
    Costs,
    /// It cannot be determined; the evidence says why.
    Unknown,
}

/// How much it costs a real-time thread, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// Microseconds, or something only in special cases.
    Little,
    /// Tens to hundreds of microseconds now and then.
    Matters,
    /// A millisecond or more, or measurements are worthless.
    Serious,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// Stable name, explained in `docs/reference/check.md`.
    pub code: &'static str,
    /// Whether it costs latency.
    pub status: FindingStatus,
    /// How much it costs; `None` if it costs nothing or is unknown.
    pub severity: Option<Severity>,
    /// What was read.
    pub evidence: String,
    /// What to do: a command, a setting, a kernel option; empty where nothing is wrong.
    pub remedy: String,
}

impl Finding {
    fn ok(code: &'static str, evidence: impl Into<String>) -> Self {
        let (status, severity, remedy) = (FindingStatus::Ok, None, String::new());
        Self { code, status, severity, evidence: evidence.into(), remedy }
    }

    fn costs(
        code: &'static str,
        severity: Severity,
        evidence: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (status, severity) = (FindingStatus::Costs, Some(severity));
        Self { code, status, severity, evidence: evidence.into(), remedy: remedy.into() }
    }

    /// `why` it cannot be determined, and what would help.
    fn unknown(code: &'static str, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (status, severity) = (FindingStatus::Unknown, None);
        Self { code, status, severity, evidence: why.into(), remedy: remedy.into() }
    }

    /// Whether this finding alone causes exit code 1.
    #[must_use]
    pub(crate) fn is_serious(&self) -> bool {
        self.severity == Some(Severity::Serious)
    }
}

/// The machine that is checked.
#[derive(Debug)]
pub(crate) struct CheckedMachine {
    root: Root,
    /// The CPUs that must respond in time.
    cpus: Cpus,
    /// Whether the user named them; otherwise they are all online CPUs.
    named: bool,
    config: ConfigOptions,
    cmdline: String,
}

impl CheckedMachine {
    /// The machine below `root`; checks `cpus`, or all online CPUs.
    #[must_use]
    pub(crate) fn new(root: Root, cpus: Option<Cpus>) -> Self {
        let named = cpus.is_some();
        let online = || root.value("/sys/devices/system/cpu/online").unwrap_or_default();
        let cpus = cpus.unwrap_or_else(online);
        let config = ConfigOptions::read(&root);
        let cmdline = root.read("/proc/cmdline").unwrap_or_default();
        Self { root, cpus, named, config, cmdline }
    }

    /// The CPUs that are checked.
    #[must_use]
    pub(crate) const fn cpus(&self) -> &Cpus {
        &self.cpus
    }

    /// Whether they are all online CPUs.
    fn is_everything(&self) -> bool {
        let online = self.root.value::<Cpus>("/sys/devices/system/cpu/online");
        online.is_some_and(|online| online.without(&self.cpus).is_empty())
    }

    /// The value of an option on the kernel's command line; the last occurrence counts.
    fn option(&self, name: &str) -> Option<&str> {
        let mut words = self.cmdline.split_ascii_whitespace().rev();
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }
}

/// One check.
type Look = fn(&CheckedMachine) -> Finding;

/// Runs all checks. The order is: worst first, then unknown, then fine; within these, that of the
/// tables.
#[must_use]
pub(crate) fn check(subject: &CheckedMachine) -> Vec<Finding> {
    let mut findings: Vec<Finding> = looks(subject.named).map(|look| look(subject)).collect();
    let unknown = |finding: &Finding| finding.status == FindingStatus::Unknown;
    findings.sort_by_key(|finding| std::cmp::Reverse((finding.severity, unknown(finding))));
    findings
}

fn looks(named: bool) -> impl Iterator<Item = &'static Look> {
    let of_named = |group: &'static [Look]| if named { group } else { &[] };
    let groups: [&[Look]; 10] = [
        of_named(scheduler::OF_NAMED),
        of_named(interrupts::OF_NAMED),
        kernel::LOOKS,
        clock::LOOKS,
        place::LOOKS,
        rights::LOOKS,
        power::LOOKS,
        scheduler::LOOKS,
        interrupts::LOOKS,
        memory::LOOKS,
    ];
    groups.into_iter().flatten()
}

/// How many names are written out at most.
const NAMES: usize = 4;

/// The first names, and the number of the others.
fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests;

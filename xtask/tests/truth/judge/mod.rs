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
mod log;
mod outcome;
mod peak;

use std::collections::BTreeMap;

pub(crate) use log::Injected;
pub(crate) use outcome::{Outcome, Row};
pub(crate) use peak::{Part, Peak};

/// Delays that are shorter are not judged, ns; nor those of which less is their own.
pub(crate) const LEAST_NS: i64 = 50_000;
/// A thread that is not the injector's ran first for no more than this, and is not a delay, ns.
const STRANGER_NS: i64 = 100_000;
/// How `why` names time that the steal clock counted.
const STEAL: &str = "hypervisor (steal)";
/// And a peak whose events were overwritten before it was looked at.
const LOST: &str = "events overwritten before they were read";
/// And one without its wake-up in the record.
const NOT_RECORDED: &str = "wake-up not recorded";
/// From a clock read to the timer's arming in a system call, ns.
const ENTRY_NS: i64 = 50_000;
/// A process at its end may be what keeps the interrupt for less than this, or may not: the log
/// cannot know. ns.
const LATE_NS: i64 = 150_000;
/// What a size may be wrong by beside 2% of it: 3 us, and more on a machine whose wake-ups vary by
/// more, of which one in a hundred is later than `over_ns`.
pub(crate) fn slack_ns(over_ns: i64) -> i64 {
    (over_ns / 20).max(3_000)
}

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadConfig {
    /// `why` knows all wake-ups that are later, ns.
    pub over_ns: i64,
    /// By a thread of a real-time policy.
    pub real_time: bool,
    /// Where nothing disturbs that the injector does not log: each delay that is found is judged.
    pub alone: bool,
}

/// Joins the log with what `why` says of all late wake-ups.
pub(crate) fn judge(log: &[Injected], peaks: &[Peak], terms: ThreadConfig) -> Outcome {
    let over_ns = terms.over_ns;
    // The wake-up has to be over the threshold by the delay alone.
    let least_ns = LEAST_NS.max(over_ns + 5_000);
    let by_expiry: BTreeMap<(u32, i64), &Peak> =
        peaks.iter().filter_map(|peak| Some(((peak.cpu()?, peak.at_ns), peak))).collect();
    let machines = peaks.iter().filter(|peak| peak.blames_machine());
    let mut outcome = Outcome {
        machines: machines.map(|peak| format!("{peak:?}")).collect(),
        ..Outcome::default()
    };
    let delays: Vec<&Injected> = log.iter().filter(|line| !line.is_meanwhile()).collect();
    for delay in &delays {
        let row = outcome.rows.entry(row_name(delay, &delays)).or_default();
        row.injected += 1;
        if delay.is_beside() || was_beside(delay, peaks) || delay.over_ns() <= least_ns {
            continue;
        }
        let own_ns = delay.own_ns(log);
        if own_ns <= LEAST_NS {
            continue;
        }
        if met_another(delay, &delays) {
            outcome.mixed += 1;
            continue;
        }
        let peak = woken(&by_expiry, delay);
        let more_ns = peak.map_or(0, |peak| more_of_its_kind(delay, peak, log));
        look(row, delay, (own_ns, more_ns), peak, terms);
    }
    let overlaps = |delay: &Injected, peak: &Peak| {
        delay.at_ns < peak.end_ns() && delay.end_ns() + 20_000 > peak.at_ns
    };
    let met = |peak: &&Peak| {
        let mut lines = log.iter().filter(|line| !line.is_meanwhile() || line.is_walk());
        lines.any(|line| overlaps(line, peak))
    };
    for peak in peaks.iter().filter(|peak| !met(peak)) {
        // A stall of the host puts off the injector's own steps: they are logged where they should
        // have been, and delay others where they are.
        if peak.stolen_ns() > 0 {
            outcome.clean_stolen += 1;
            continue;
        }
        outcome.clean += 1;
        if peak.blames_injector(terms.real_time) {
            outcome.false_blame.push(format!("{peak:?}"));
        }
    }
    outcome
}

/// The kind of a delay, and whether it is one of two.
fn row_name(delay: &Injected, delays: &[&Injected]) -> String {
    let is_one_of_two = delays.iter().any(|other| other.is_within(delay) || delay.is_within(other));
    let overlaps = if is_one_of_two { ", one of two" } else { "" };
    format!("{}{overlaps}", delay.kind)
}

/// Whether it met another delay over its expiry that does not lie wholly in it.
fn met_another(delay: &Injected, delays: &[&Injected]) -> bool {
    let others = delays.iter().filter(|other| {
        !std::ptr::eq(**other, delay)
            && other.cpu == delay.cpu
            && !other.is_within(delay)
            && !delay.is_within(other)
            && other.end_ns() > delay.expires_ns
            && other.at_ns < delay.end_ns() + 20_000
    });
    // Small ones disturb nobody.
    others.map(|other| other.ns.min(other.end_ns() - delay.expires_ns)).sum::<i64>() > 2_000
}

/// Whether a delay was not of the wake-up from its expiry: one before was still under way, as the
/// log cannot know where a timer is armed before its thread has woken up; or its thread met a lock
/// and had read the clock already.
fn was_beside(delay: &Injected, peaks: &[Peak]) -> bool {
    let here = |peak: &&Peak| peak.cpu() == Some(delay.cpu);
    let is_of = |peak: &Peak| (peak.at_ns - delay.expires_ns).abs() < ENTRY_NS;
    let is_before = |peak: &Peak| {
        peak.at_ns < delay.expires_ns - ENTRY_NS
            && (peak.at_ns..peak.end_ns()).contains(&(delay.at_ns + delay.ns / 2))
    };
    let met_lock_later = delay.kind == "lock" && delay.at_ns > delay.expires_ns;
    delay.kind != "arming" && peaks.iter().filter(here).any(is_before)
        || met_lock_later && !peaks.iter().filter(here).any(is_of)
}

/// The wake-up from the expiry of a delay. The log has the kernel's expiry; of a relative sleep,
/// the thread's own lies before that, by what it took to get there.
fn woken<'a>(by_expiry: &BTreeMap<(u32, i64), &'a Peak>, delay: &Injected) -> Option<&'a Peak> {
    let before_ns = if delay.kind == "arming" { delay.ns } else { 0 } + ENTRY_NS;
    let near = (delay.cpu, delay.expires_ns - before_ns)..=(delay.cpu, delay.expires_ns);
    by_expiry.range(near).next_back().map(|(_, peak)| *peak)
}

/// How much a wake-up has, by the log, of what a delay is called as well, ns: other interrupts, or
/// what else the thread of an interrupt did.
fn more_of_its_kind(delay: &Injected, peak: &Peak, log: &[Injected]) -> i64 {
    let kind = match delay.kind.as_str() {
        "irq_thread" => "irq_thread_run",
        _ if delay.causes() == ["hardirq"] => "interrupt",
        _ => return 0,
    };
    let is_other = |other: &&Injected| {
        other.kind == kind
            && other.cpu == delay.cpu
            && other.end_ns() > peak.at_ns
            && other.at_ns < peak.end_ns()
    };
    log.iter().filter(is_other).map(|other| other.ns).sum()
}

/// One delay, with what of it is its own and what else may be called so, against its wake-up.
fn look(
    row: &mut Row,
    delay: &Injected,
    (expected, more_ns): (i64, i64),
    peak: Option<&Peak>,
    terms: ThreadConfig,
) {
    row.judged += 1;
    let late_by = delay.over_ns();
    let Some(peak) = peak.filter(|peak| peak.latency_ns >= late_by - 3_000) else {
        row.wrong.push(format!("not found: {delay:?}; {peak:?}"));
        return;
    };
    row.found += 1;
    if peak.is_lost() || !terms.alone && peak.is_unrecorded() {
        row.lost += 1;
        return;
    }
    if !terms.alone && (peak.stolen_ns() > 0 || peak.met_stranger()) {
        row.disturbed += 1;
        return;
    }
    let blamed = peak.blamed_ns(delay, terms.real_time);
    if blamed * 2 < expected {
        row.wrong.push(format!("wrong cause: {late_by} ns of {delay:?}; {peak:?}"));
        return;
    }
    row.right += 1;
    // tardy's own walks lie within or behind the delay; nobody else knows where.
    let is_walk = |part: &&Part| part.cause == "tracing";
    let walks: i64 = peak.blame.iter().filter(is_walk).map(|part| part.ns).sum();
    let may_lack = walks + peak.shared_ns(delay);
    let error = blamed - expected;
    let may_be_late = if delay.kind == "exit" { LATE_NS } else { 0 };
    let error =
        if error < 0 { (error + may_lack).min(0) } else { (error - may_be_late - more_ns).max(0) };
    row.errors_ns.push(error.abs());
    if error.abs() <= slack_ns(terms.over_ns).max(expected / 50) {
        row.sized += 1;
    } else {
        let case = format!("{expected} ns of {delay:?}; {peak:?}");
        row.wrong.push(format!("wrong by {error} ns: {case}"));
    }
}

//! What the threads of one program do to each other: who waited for whom, on what and for how long,
//! and who kept the one that was waited for from the CPU. From the sums of late cycles, whose
//! causes have that in their names.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use serde::{Deserialize, Serialize};

use crate::run::{
    peaks::{Blame, Cause, HELD_BY, INVERSION, LatencyBucket, Peak},
    series_name::whole_of_response,
};

/// The most rows: threads of hundreds of names may wait for each other.
const MOST_ROWS: usize = 100;

/// The most tasks that are named in one row.
const MOST_TASKS: usize = 3;

/// What stands before who ended a wait, and who kept a holder from the CPU.
const WOKEN_BY: &str = "woken by ";
const PREEMPTED_BY: &str = ", preempted by ";
/// What stands behind a holder that slept itself.
const ASLEEP: &str = ", asleep";

/// One thread that waited for another one, or all of its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BetweenThreads {
    /// Who waited.
    pub who: String,
    /// For whom: the task that had what it wanted, or woke it.
    pub whom: String,
    /// On what: `CPU`, which the other one had; a lock with its address, where that is known;
    /// `futex`, `I/O`; `wake-up` if all that is known is who ended the wait.
    pub on: String,
    /// In how many late cycles at least, or of threads without a deadline late wake-ups, of those
    /// that were analysed.
    pub times: u64,
    /// How long together, ns.
    pub ns: u64,
    /// Who kept the one that was waited for from the CPU meanwhile, longest first.
    pub preempted_by: Vec<HolderPreempted>,
}

/// A task that kept the holder of a lock from the CPU while a thread waited for that lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HolderPreempted {
    /// Its name, with its policy and priority: `vision (fifo 50)`.
    pub task: String,
    /// How long together, ns.
    pub ns: u64,
    /// Whether it ranks below the thread that waits: a priority inversion.
    pub is_inversion: bool,
}

/// A wait as the name of a cause tells it.
struct NamedWait<'a> {
    whom: &'a str,
    on: &'a str,
    /// Who kept it from the CPU.
    preempter: Option<&'a str>,
    is_inversion: bool,
}

/// What threads of these names did to each other, the longest waits first.
#[must_use]
pub fn between(blame: &Blame, peaks: &[Peak], known: &BTreeSet<&str>) -> Vec<BetweenThreads> {
    let tasks = tasks_of(peaks);
    let mut rows: BTreeMap<[&str; 3], BetweenThreads> = BTreeMap::new();
    for bucket in late(blame) {
        // One cycle may wait for one lock in several ways: the most of them is the least number.
        let mut times: HashMap<[&str; 3], u64> = HashMap::new();
        for (cause, count, ns) in &bucket.parts {
            let Some(of) = blame.causes.get(*cause as usize) else { continue };
            let Some(wait) = named(of.cause, &of.name) else { continue };
            let is_task = of.cause != Cause::Thread && tasks.contains(wait.whom);
            if !(known.contains(wait.whom) || is_task || of.name.contains(HELD_BY)) {
                continue;
            }
            let who = whole_of_response(&of.series).unwrap_or(&of.series);
            let key = [who, wait.whom, wait.on];
            let most = times.entry(key).or_default();
            *most = (*most).max(*count);
            add(rows.entry(key).or_insert_with(|| empty(key)), &wait, *ns);
        }
        for (key, count) in times {
            if let Some(row) = rows.get_mut(&key) {
                row.times = row.times.saturating_add(count);
            }
        }
    }
    let mut rows: Vec<BetweenThreads> = rows.into_values().collect();
    rows.sort_by_key(|row| Reverse(row.ns));
    rows.truncate(MOST_ROWS);
    for row in &mut rows {
        row.preempted_by.sort_by_key(|own| Reverse(own.ns));
        row.preempted_by.truncate(MOST_TASKS);
    }
    rows
}

/// Cycles, which begin with wake-ups; of threads without a deadline these.
fn late(blame: &Blame) -> &[LatencyBucket] {
    if blame.responses.is_empty() { &blame.buckets } else { &blame.responses }
}

/// The names of tasks that threads waited for in these peaks: not those of interrupts.
fn tasks_of(peaks: &[Peak]) -> BTreeSet<&str> {
    let parts = peaks.iter().flat_map(|peak| &peak.blame);
    let waits = parts.filter(|part| matches!(part.cause, Cause::Wait | Cause::Lock));
    waits.filter_map(|part| Some(part.task.as_deref()?.rsplit_once('/')?.0)).collect()
}

/// What the name of a cause says of a wait for another thread.
fn named(cause: Cause, name: &str) -> Option<NamedWait<'_>> {
    if cause == Cause::Thread {
        return Some(NamedWait { whom: name, on: "CPU", preempter: None, is_inversion: false });
    }
    if !matches!(cause, Cause::Wait | Cause::Lock) {
        return None;
    }
    let (name, is_inversion) = match name.strip_prefix(INVERSION) {
        Some(name) => (name, true),
        None => (name, false),
    };
    let (name, preempter) = match name.split_once(PREEMPTED_BY) {
        Some((name, preempter)) => (name, Some(preempter)),
        None => (name.strip_suffix(ASLEEP).unwrap_or(name), None),
    };
    if let Some((on, whom)) = name.split_once(HELD_BY) {
        return Some(NamedWait { whom, on, preempter, is_inversion });
    }
    let (on, whom) = name.split_once(WOKEN_BY)?;
    let on = on.strip_suffix(", ").unwrap_or(on);
    let on = if on.is_empty() { "wake-up" } else { on };
    Some(NamedWait { whom, on, preempter, is_inversion })
}

fn empty([who, whom, on]: [&str; 3]) -> BetweenThreads {
    let [who, whom, on] = [who, whom, on].map(str::to_owned);
    BetweenThreads { who, whom, on, times: 0, ns: 0, preempted_by: Vec::new() }
}

fn add(row: &mut BetweenThreads, wait: &NamedWait<'_>, ns: u64) {
    row.ns = row.ns.saturating_add(ns);
    let Some(task) = wait.preempter else { return };
    match row.preempted_by.iter_mut().find(|own| own.task == task) {
        Some(own) => {
            own.ns = own.ns.saturating_add(ns);
            own.is_inversion |= wait.is_inversion;
        }
        None => {
            let (task, is_inversion) = (task.to_owned(), wait.is_inversion);
            row.preempted_by.push(HolderPreempted { task, ns, is_inversion });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::peaks::{Basis, CauseOf, Part};

    fn cause(series: &str, cause: Cause, name: &str) -> CauseOf {
        CauseOf { series: series.into(), cause, name: name.into(), basis: Basis::Measured }
    }

    fn bucket(wakeups: u64, parts: &[(u32, u64, u64)]) -> LatencyBucket {
        LatencyBucket { low_ns: 1, wakeups, ns: 9, parts: parts.to_vec() }
    }

    /// A peak that slept until a task woke it.
    fn woken_by(task: &str) -> Peak {
        let part = Part {
            cause: Cause::Wait,
            name: format!("woken by {task}"),
            task: Some(format!("{task}/8")),
            ns: 9,
            basis: Basis::Measured,
            evidence: None,
            stack: Vec::new(),
        };
        Peak {
            at_ns: Some(5),
            series: "ctl/response".into(),
            tid: Some(7),
            cpu: 1,
            latency_ns: 9,
            stages: None,
            ways: Vec::new(),
            blame: vec![part],
            timeline: Vec::new(),
            left_out: 0,
        }
    }

    #[test]
    fn who_waited_for_whom_is_told_with_who_kept_that_one_from_the_cpu() {
        let causes = vec![
            cause("ctl/response", Cause::Lock, "lock 0x7f00 held by worker"),
            cause(
                "ctl/response",
                Cause::Lock,
                "priority inversion: lock 0x7f00 held by worker, preempted by vision (fifo 50)",
            ),
            cause("ctl/response", Cause::Lock, "lock 0x7f00 held by worker, asleep"),
            cause("ctl/response", Cause::Wait, "woken by timer: hrtimer_wakeup"),
            cause("worker/response", Cause::Thread, "vision"),
            cause("worker/response", Cause::Thread, "rustc"),
            cause("worker/response", Cause::OwnWork, "own work"),
        ];
        let parts = [(0, 3, 700), (1, 2, 5_000), (2, 1, 300), (3, 1, 50)];
        let others = [(4, 4, 9_000), (5, 2, 90_000), (6, 4, 1)];
        let responses = vec![bucket(3, &parts), bucket(4, &others), bucket(1, &[(1, 1, 1_000)])];
        let blame = Blame { causes, responses, ..Blame::default() };
        let rows = between(&blame, &[], &BTreeSet::from(["ctl", "worker", "vision"]));
        let told: Vec<_> =
            rows.iter().map(|row| (&*row.who, &*row.whom, &*row.on, row.times, row.ns)).collect();
        assert_eq!(
            told,
            [("worker", "vision", "CPU", 4, 9_000), ("ctl", "worker", "lock 0x7f00", 4, 7_000)],
            "neither interrupts nor other programs"
        );
        let vision =
            HolderPreempted { task: "vision (fifo 50)".into(), ns: 6_000, is_inversion: true };
        assert_eq!(rows[1].preempted_by, [vision]);
    }

    #[test]
    fn a_task_that_ended_a_wait_is_told_and_an_interrupt_is_not() {
        let causes = vec![
            cause("ctl/response", Cause::Wait, "futex, woken by helper"),
            cause("ctl/response", Cause::Wait, "woken by helper"),
            cause("ctl/response", Cause::Wait, "I/O, woken by virtio1-req.0"),
            cause("ctl/response", Cause::Wait, "asleep, who woke it is not recorded"),
        ];
        let parts = [(0, 1, 70), (1, 1, 60), (2, 1, 50), (3, 1, 40)];
        let blame = Blame { causes, responses: vec![bucket(1, &parts)], ..Blame::default() };
        let rows = between(&blame, &[woken_by("helper")], &BTreeSet::from(["ctl"]));
        let told: Vec<_> = rows.iter().map(|row| (&*row.whom, &*row.on)).collect();
        assert_eq!(told, [("helper", "futex"), ("helper", "wake-up")]);
    }

    #[test]
    fn without_cycles_it_is_of_late_wake_ups() {
        let causes = vec![cause("log", Cause::Thread, "ctl")];
        let blame = Blame { causes, buckets: vec![bucket(2, &[(0, 2, 8)])], ..Blame::default() };
        let rows = between(&blame, &[], &BTreeSet::from(["ctl", "log"]));
        assert_eq!((rows.len(), rows[0].who.as_str(), rows[0].times), (1, "log", 2));
    }
}

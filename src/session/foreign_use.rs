//! What other programs used of the measured CPUs, and which: neither tardy and what it started, nor
//! the processes that it looks at.

use std::collections::{HashMap, HashSet};

use crate::{
    run::conditions::{ForeignRecord, ForeignUser},
    sys::{
        cpus::Cpus,
        processes::{self, Process, clock_ticks_per_second},
        root::Root,
    },
};

/// The programs that are named.
const NAMED: usize = 3;

/// A program that used less of one CPU is not named.
const LEAST_NAMED: f64 = 0.01;

/// Parents are followed so far up.
const GENERATIONS: usize = 64;

/// The processes at the begin and at the end.
#[derive(Debug, Default)]
pub(super) struct ForeignWatch {
    begun_ns: i64,
    ended_ns: i64,
    before: Vec<Process>,
    after: Vec<Process>,
}

impl ForeignWatch {
    /// Begins with those that are there.
    pub(super) fn begin(root: &Root, now_ns: i64) -> Self {
        Self { begun_ns: now_ns, before: processes::all(root), ..Self::default() }
    }

    /// Ends with those that are there, and may use one of these CPUs.
    pub(super) fn end(&mut self, root: &Root, cpus: &Cpus, now_ns: i64) {
        self.after = processes::all(root);
        self.after.retain(|process| processes::may_use_any(root, process.pid, cpus));
        self.ended_ns = now_ns;
    }

    /// What others used. `own` is this process; `known` are those that are looked at; `free` is the
    /// mean share of the measured CPUs that others can have used at the most.
    pub(super) fn record(
        &self,
        (own, known): (i32, &HashSet<i32>),
        cpus: usize,
        free: f64,
    ) -> Option<ForeignRecord> {
        let length_s = (self.ended_ns - self.begun_ns) as f64 / 1e9;
        if length_s <= 0.0 || cpus == 0 {
            return None;
        }
        let used = self.used(own, known);
        let cpus_of = |ticks: u64| ticks as f64 / clock_ticks_per_second() as f64 / length_s;
        let all: u64 = used.values().map(|own| own.ticks).sum();
        let mut users: Vec<ForeignUser> = used
            .into_iter()
            .map(|(name, own)| ForeignUser {
                name: name.to_owned(),
                processes: own.processes,
                cpus: (cpus_of(own.ticks) * 1e3).round() / 1e3,
            })
            .filter(|user| user.cpus >= LEAST_NAMED)
            .collect();
        users.sort_by(|a, b| b.cpus.total_cmp(&a.cpus).then_with(|| a.name.cmp(&b.name)));
        users.truncate(NAMED);
        let share = (cpus_of(all) / cpus as f64).min(free).clamp(0.0, 1.0);
        Some(ForeignRecord { share: (share * 1e3).round() / 1e3, users })
    }

    /// By name. The time of children that ended meanwhile is their parent's.
    fn used(&self, own: i32, known: &HashSet<i32>) -> HashMap<&str, Used> {
        let before: HashMap<i32, &Process> =
            self.before.iter().map(|process| (process.pid, process)).collect();
        let parents: HashMap<i32, i32> =
            self.before.iter().chain(&self.after).map(|own| (own.pid, own.parent)).collect();
        let is_own = |pid: i32| {
            let line = std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
            line.take(GENERATIONS).any(|pid| pid == own || known.contains(&pid))
        };
        let earlier = self.earlier(&before);
        let mut used: HashMap<&str, Used> = HashMap::new();
        for process in self.after.iter().filter(|process| !is_own(process.pid)) {
            let first = before.get(&process.pid).filter(|first| first.start == process.start);
            let mut ticks = process.ticks - first.map_or(0, |first| first.ticks.min(process.ticks));
            if let Some(first) = first {
                let children = process.children_ticks.saturating_sub(first.children_ticks);
                ticks += children.saturating_sub(earlier.get(&process.pid).copied().unwrap_or(0));
            }
            if ticks > 0 {
                let own = used.entry(&process.name).or_default();
                own.ticks += ticks;
                own.processes += 1;
            }
        }
        used
    }
}

impl ForeignWatch {
    /// What processes that ended had used before the begin, by whose children they were at last: it
    /// is not of this run.
    fn earlier(&self, before: &HashMap<i32, &Process>) -> HashMap<i32, u64> {
        let is_there = |process: &Process| self.after.iter().any(|own| is_same(own, process));
        let gone: HashSet<i32> =
            self.before.iter().filter(|own| !is_there(own)).map(|own| own.pid).collect();
        let mut earlier = HashMap::new();
        for ended in self.before.iter().filter(|own| gone.contains(&own.pid)) {
            let line =
                std::iter::successors(Some(ended.parent), |pid| Some(before.get(pid)?.parent));
            if let Some(heir) = line.take(GENERATIONS).find(|pid| !gone.contains(pid)) {
                *earlier.entry(heir).or_default() += ended.ticks + ended.children_ticks;
            }
        }
        earlier
    }
}

/// Numbers of processes are given again.
const fn is_same(one: &Process, other: &Process) -> bool {
    one.pid == other.pid && one.start == other.start
}

#[derive(Default)]
struct Used {
    ticks: u64,
    processes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, name: &str, ticks: u64) -> Process {
        Process { pid, parent, start: 1, name: name.into(), ticks, children_ticks: 0 }
    }

    /// Ten seconds, over two CPUs.
    fn watched(before: Vec<Process>, after: Vec<Process>) -> ForeignWatch {
        ForeignWatch { begun_ns: 0, ended_ns: 10_000_000_000, before, after }
    }

    fn of(watch: &ForeignWatch, free: f64) -> (f64, Vec<(String, u64, f64)>) {
        let found = watch.record((100, &HashSet::from([200])), 2, free).unwrap();
        let user = |user: ForeignUser| (user.name, user.processes, user.cpus);
        (found.share, found.users.into_iter().map(user).collect())
    }

    #[test]
    fn what_neither_tardy_nor_what_it_looks_at_used_is_foreign() {
        let second = clock_ticks_per_second();
        let at = |times: u64| {
            let spin = |pid: i32| process(pid, 1, "spin", 50 * second + times * 3 * second);
            let mut all: Vec<Process> = (10..16).map(spin).collect();
            all.push(process(100, 1, "tardy", times * 9 * second));
            all.push(process(101, 100, "load", times * 9 * second));
            all.push(process(102, 101, "worker", times * 9 * second));
            all.push(process(200, 1, "attached", times * 9 * second));
            all
        };
        let watch = watched(at(0), at(1));
        assert_eq!(of(&watch, 1.0), (0.9, vec![("spin".into(), 6, 1.8)]));
        // No more than the measured CPUs had for others.
        assert_eq!(of(&watch, 0.25).0, 0.25);
        assert_eq!(of(&watch, -0.1).0, 0.0);
        assert_eq!(of(&watched(at(1), at(1)), 1.0), (0.0, vec![]));
    }

    #[test]
    fn children_that_ended_count_for_their_parent_from_the_begin_on() {
        let second = clock_ticks_per_second();
        let make = |children: u64| Process {
            children_ticks: children * second,
            ..process(20, 1, "make", 0)
        };
        // One that had used 30 s before ended, after 2 s more, and others came and went.
        let watch = watched(vec![make(40), process(21, 20, "cc", 30 * second)], vec![make(76)]);
        assert_eq!(of(&watch, 1.0), (0.3, vec![("make".into(), 1, 0.6)]));
        // Its own children had used 3 s, and it ended after them.
        let grandchild = process(22, 21, "as", 3 * second);
        let watch =
            watched(vec![make(40), process(21, 20, "cc", 27 * second), grandchild], vec![make(76)]);
        assert_eq!(of(&watch, 1.0), (0.3, vec![("make".into(), 1, 0.6)]));
        // A number that was given again is another process.
        let again = Process { start: 2, ..process(21, 20, "cc", second) };
        let watch = watched(vec![process(21, 20, "cc", 30 * second)], vec![again]);
        assert_eq!(of(&watch, 1.0), (0.05, vec![("cc".into(), 1, 0.1)]));
    }
}

//! What is known of the attached threads: each one's counts, added to those of its name.

use std::{
    collections::{BTreeMap, HashSet},
    sync::mpsc::Sender,
};

use super::{
    followed::Followed,
    policies::Policies,
    schedule::ScheduleKept,
    series_of_name,
    sums::{Sums, latency_of},
};
use crate::{
    kernel::{AttachedThread, AttachedTime},
    probes::{TracedThread, found_series::FoundSeriesList},
    run::{AttachedBudget, AttachedLatency, AttachedRow},
};

/// Most threads with their own series in one run.
const MOST_OWN: usize = 1_000;

/// What a thread's series has is settled after this number of wake-ups; or after a few, once it has
/// lived for so long. The timer of the first one was armed before it was looked at, so that of very
/// few too many are not by its own.
const SETTLED_WAKEUPS: u64 = 64;
const FEW_WAKEUPS: u64 = 8;
const SETTLED_NS: i64 = 1_000_000_000;

/// Its late wake-ups are explained after so many: by then it shows what wakes it.
const TRACED_WAKEUPS: u64 = 8;

/// One that ended without a sleep is told of where it was there for this part of the time.
const TOLD_PART: u64 = 10;

/// Periods of threads of one name are one where they differ by less than this part.
const SAME_PERIOD: u64 = 1_000;

/// All threads of one name.
#[derive(Debug, Default)]
struct Pool {
    sums: Sums,
    threads: u64,
    /// The period of those that have one; `None` if they differ.
    period_ns: Option<Option<u64>>,
    kept: ScheduleKept,
    /// That of all its threads; `None` if they differ.
    policy: Option<Option<String>>,
}

impl Pool {
    /// The one that all its threads have that have one.
    fn period_ns(&self) -> Option<i64> {
        self.period_ns.flatten().and_then(|ns| i64::try_from(ns).ok())
    }
}

/// A thread with its own series that has ended, or whose run has.
#[derive(Debug)]
struct Ended {
    name: String,
    sums: Sums,
    row: AttachedRow,
    policies: Policies,
    kept: Option<ScheduleKept>,
}

/// Every thread that was measured.
#[derive(Debug, Default)]
pub(super) struct Threads {
    found: FoundSeriesList,
    traced: Option<Sender<TracedThread>>,
    /// The name, as series have it, of the only threads that are meant.
    only: Option<String>,
    /// What threads of other names did.
    others: Sums,
    pools: BTreeMap<String, Pool>,
    ended: Vec<Ended>,
    /// Those that have their own series.
    own: HashSet<String>,
    traces: usize,
    threads: u64,
    pooled_only: u64,
    /// Those that were awake all the time, and how long that was of one that has ended, ns.
    never_slept: Vec<(String, Option<u64>)>,
}

/// Whether it has lived for long enough to be told of by itself.
fn is_old(followed: &Followed, now_ns: i64) -> bool {
    now_ns - followed.since_ns >= SETTLED_NS
}

impl Threads {
    /// Series go into this list.
    ///
    /// Those whose late wake-ups are to be explained go to `traced`. With `only`, threads of other
    /// names have neither a series nor a row.
    pub(super) fn new(
        found: FoundSeriesList,
        traced: Option<Sender<TracedThread>>,
        only: Option<&str>,
    ) -> Self {
        let only = only.map(series_of_name);
        Self { found, traced, only, ..Self::default() }
    }

    fn is_meant(&self, followed: &Followed) -> bool {
        self.only.as_ref().is_none_or(|only| *only == followed.name)
    }

    /// Takes what has come of one thread, and makes series of it once it is known of what.
    pub(super) fn take(
        &mut self,
        followed: &mut Followed,
        thread: &AttachedThread<'_>,
        now_ns: i64,
    ) {
        if !self.is_meant(followed) {
            followed.take(thread, now_ns, &mut self.others);
            return;
        }
        let pool = self.pools.entry(followed.name.clone()).or_default();
        followed.take(thread, now_ns, &mut pool.sums);
        let of_name = pool.sums.latency;
        let is_old = is_old(followed, now_ns);
        let (wakeups, by_own) = followed.wakeups;
        self.publish_response(followed, thread.prio());
        if followed.sums.latency.is_some() || wakeups == 0 {
            followed.tell_usual(thread.prio());
            return;
        }
        if wakeups >= TRACED_WAKEUPS {
            self.begin_trace(followed, thread.prio());
        }
        if wakeups < if is_old { FEW_WAKEUPS } else { SETTLED_WAKEUPS } {
            return;
        }
        self.publish(followed, latency_of(by_own, wakeups, of_name), thread.prio());
    }

    /// Makes series of the cycles of a thread that has some, and of its name.
    fn publish_response(&mut self, followed: &mut Followed, prio: i16) {
        if followed.sums.latency.is_some()
            && let Some(begin) = followed.cycle_begin()
        {
            let name = followed.series();
            if followed.sums.publish_response(&name, begin, &self.found)
                && let (Some(traced), Some(cycles)) =
                    (&self.traced, followed.begin_cycle_trace(prio))
            {
                let _ = traced.send(cycles);
            }
            if let Some(pool) = self.pools.get_mut(&followed.name) {
                pool.sums.publish_response(&followed.name, begin, &self.found);
            }
        }
    }

    /// A thread that begins; where it had gone, and comes back, it continues what it was.
    pub(super) fn resume(&mut self, mut followed: Followed, prio: i16) -> Followed {
        let name = followed.series();
        let is_it = |ended: &Ended| {
            ended.row.tid == Some(followed.tid)
                && ended.row.pid == Some(followed.pid)
                && ended.name == name
        };
        let Some(at) = self.ended.iter().position(is_it) else { return followed };
        let ended = self.ended.swap_remove(at);
        self.threads -= 1;
        if let Some(pool) = self.pools.get_mut(&followed.name) {
            pool.threads -= 1;
        }
        followed.resume(ended.sums, ended.policies, ended.kept);
        self.begin_trace(&mut followed, prio);
        if let (Some(traced), Some(cycles)) = (&self.traced, followed.resume_cycle_trace(prio)) {
            let _ = traced.send(cycles);
        }
        followed
    }

    /// Has the late wake-ups of a thread explained from now on.
    fn begin_trace(&mut self, followed: &mut Followed, prio: i16) {
        if let Some(traced) = &self.traced
            && !followed.is_traced()
            && self.traces < MOST_OWN
        {
            self.traces += 1;
            // Where nobody listens, nobody wants to know.
            let _ = traced.send(followed.begin_trace(prio));
        }
    }

    /// Makes series of a thread, and of its name where that has none.
    fn publish(&mut self, followed: &mut Followed, latency: AttachedLatency, prio: i16) {
        if let Some(pool) = self.pools.get_mut(&followed.name)
            && pool.sums.latency.is_none()
        {
            pool.sums.publish(&followed.name, latency, &self.found);
        }
        // Another one of that name may have had the number before.
        let name = followed.series();
        if self.own.len() < MOST_OWN && self.own.insert(name.clone()) {
            followed.sums.publish(&name, latency, &self.found);
            self.begin_trace(followed, prio);
        }
    }

    /// The thread has ended, and all was taken.
    pub(super) fn end(&mut self, followed: Followed, now_ns: i64) {
        let is_told = is_old(&followed, now_ns);
        self.note_sleepless(&followed);
        self.sum_up(followed, is_told);
    }

    /// Notes it where it never slept; of one that has ended, where that was not soon.
    fn note_sleepless(&mut self, followed: &Followed) {
        let lived_ns = followed.awake.has_ended().then_some(followed.awake.lived_ns);
        if !self.is_meant(followed) {
            return;
        }
        let is_short = lived_ns.is_some_and(|ns| ns < SETTLED_NS.cast_unsigned());
        if !is_short && followed.never_slept() {
            self.never_slept.push((followed.series(), lived_ns));
        }
    }

    /// The names of those that were awake all the time, of `length_ns`: not of short work that
    /// others came after.
    pub(super) fn never_slept(&mut self, length_ns: u64) -> Vec<String> {
        let is_told = |lived_ns: Option<u64>| lived_ns.is_none_or(|ns| ns >= length_ns / TOLD_PART);
        let all = std::mem::take(&mut self.never_slept).into_iter();
        let mut told: Vec<_> =
            all.filter(|(_, lived_ns)| is_told(*lived_ns)).map(|(name, _)| name).collect();
        told.sort();
        told.dedup();
        told
    }

    /// The run has ended, and all was taken.
    pub(super) fn end_of_run(&mut self, followed: Followed) {
        self.note_sleepless(&followed);
        self.sum_up(followed, true);
    }

    /// At the end of the run also one is told of that was not there for long.
    fn sum_up(&mut self, mut followed: Followed, is_told: bool) {
        if !self.is_meant(&followed) {
            return;
        }
        let wakeups = followed.sums.count(AttachedTime::Dispatch);
        let pool = self.pools.entry(followed.name.clone()).or_default();
        // One that never ran in the measured time was not measured.
        if wakeups == 0 && followed.sums.latency.is_none() {
            return;
        }
        self.threads += 1;
        pool.threads += 1;
        let own = followed.policies.words();
        let policy = pool.policy.get_or_insert_with(|| own.clone());
        *policy = policy.take().filter(|known| Some(known) == own.as_ref());
        if let Some(period_ns) = followed.period_ns() {
            let same = |known: u64| known.abs_diff(period_ns) <= known / SAME_PERIOD;
            let known = pool.period_ns.unwrap_or(Some(period_ns));
            pool.period_ns = Some(known.filter(|known| same(*known)));
            pool.kept = pool.kept.plus(&followed.kept(0));
        }
        if followed.sums.latency.is_none()
            && let (true, Some(latency)) = (is_told, followed.sums.likely(pool.sums.latency))
        {
            self.publish(&mut followed, latency, 0);
        }
        if followed.sums.latency.is_none() {
            self.pooled_only += 1;
            return;
        }
        self.publish_response(&mut followed, 0);
        let name = followed.series();
        let mut row = followed.sums.row(&name);
        (row.tid, row.pid) = (Some(followed.tid), Some(followed.pid));
        row.policy = own;
        row.budget = followed.budget.map(|budget| AttachedBudget {
            runtime_ns: budget.runtime_ns,
            deadline_ns: budget.deadline_ns,
            period_ns: budget.period_ns,
        });
        let kept = followed.schedule();
        if let Some(kept) = &kept {
            row.period_ns = Some(kept.period_ns);
            (row.missed, row.unsure_periods) = (Some(kept.missed), Some(kept.unsure));
            row.period_changed = kept.changed;
            followed.sums.set_schedule(kept);
        }
        let (sums, policies) = (followed.sums, followed.policies);
        self.ended.push(Ended { name, sums, row, policies, kept });
    }

    /// The largest latency of all that is known by now, ns: of threads whose work is measured the
    /// largest response.
    pub(super) fn worst_ns(&self) -> i64 {
        let worst = |pool: &Pool| {
            let of = |time| pool.sums.of(time).totals().max_ns;
            match pool.sums.latency {
                Some(AttachedLatency::Lateness) => of(AttachedTime::Lateness),
                _ => of(AttachedTime::Dispatch),
            }
        };
        let worst = |pool: &Pool| pool.sums.worst_response_ns().unwrap_or_else(|| worst(pool));
        self.pools.values().map(worst).max().unwrap_or(0)
    }

    /// Those of each name, for figures.
    pub(super) fn pools(&self) -> impl Iterator<Item = (&str, &Sums)> {
        self.pools.iter().map(|(name, pool)| (name.as_str(), &pool.sums))
    }

    /// Those that have ended and have their own series, for figures.
    pub(super) fn own(&self) -> impl Iterator<Item = (&str, &Sums)> {
        self.ended.iter().map(|ended| (ended.name.as_str(), &ended.sums))
    }

    /// Gives a series to names that have none, as their threads were short.
    pub(super) fn finish(&mut self) {
        for (name, pool) in &mut self.pools {
            if pool.sums.latency.is_none()
                && let Some(latency) = pool.sums.likely(None)
            {
                pool.sums.publish(name, latency, &self.found);
            }
            if let Some(period_ns) = pool.period_ns() {
                pool.sums.set_schedule(&ScheduleKept { period_ns, ..pool.kept });
            }
        }
    }

    /// What the record says, the names first: how many threads there were, how many of them are
    /// only in the series of their name, and the rows.
    pub(super) fn rows(&mut self) -> (u64, u64, Vec<AttachedRow>) {
        let mut rows = Vec::new();
        for (name, pool) in self.pools.iter().filter(|(_, pool)| pool.threads > 0) {
            let mut row = pool.sums.row(name);
            row.threads = Some(pool.threads);
            row.policy = pool.policy.clone().flatten();
            row.period_ns = pool.period_ns();
            // Also where its threads have different ones.
            let some = pool.period_ns.map(|_| pool.kept);
            row.missed = some.map(|kept| kept.missed);
            row.unsure_periods = some.map(|kept| kept.unsure);
            row.period_changed = some.is_some_and(|kept| kept.changed);
            rows.push(row);
        }
        self.ended.sort_by(|a, b| {
            let key = |one: &Ended| (std::cmp::Reverse(one.row.wakeups), one.row.tid);
            key(a).cmp(&key(b))
        });
        rows.extend(self.ended.iter().map(|ended| ended.row.clone()));
        (self.threads, self.pooled_only, rows)
    }
}

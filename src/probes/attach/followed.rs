//! One attached thread: what has come of it since it was read the last time.

use std::{
    fs,
    sync::{Arc, LazyLock, atomic::Ordering::Relaxed},
};

use tardy_hot::{
    ring::{Reader, Writer, ring},
    stages::Late,
    traced::TraceControl,
    wakeup::Series,
};

use super::{
    awake::Awake,
    late::late_of,
    policies::Policies,
    reading::{Reading, Totals, middle_ns},
    schedule::ScheduleKept,
    sums::Sums,
};
use crate::{
    kernel::{
        AttachedCounts, AttachedCycles, AttachedLate, AttachedThread, AttachedTime, FoundPeriod,
    },
    probes::{AttachedUsual, TracedSamples, TracedThread},
    run::{AttachedLatency, CycleBegin, RESPONSE, series_name::name_of_task},
    sys::sched::{Budget, budget_of, raw_of_thread},
};

/// Late wake-ups of one thread that wait to be blamed: of those between two looks, many times more
/// than come.
const LATE_RING: usize = 128;

/// What is late until that is known, ns; as for threads of tardy's own.
const LATE_AT_FIRST_NS: i64 = 50_000;

/// The number of wake-ups after which medians, and the late ones, follow.
const ENOUGH: u64 = 100;

/// What a measuring thread would record in: these threads are not tardy's.
static NOTHING: LazyLock<Arc<Series>> = LazyLock::new(Arc::default);

/// Timers have a period if at least this number of expiries follow it, and nearly all.
const PERIOD_HITS: u64 = 16;
const PERIOD_MISSES: u64 = 16;

/// A thread that is woken more often in one period is woken by others mainly, and what its timer is
/// for is not what it is there for.
const WAITS_PER_CYCLE: u64 = 8;

/// Where its late wake-ups go, or its long cycles.
#[derive(Debug)]
struct Trace {
    late: Writer<Late>,
    control: Arc<TraceControl>,
    usual: Arc<AttachedUsual>,
}

/// One thread at its place.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) tid: u32,
    pub(super) pid: u32,
    /// Its name, escaped.
    pub(super) name: String,
    pub(super) since_ns: i64,
    read: [Reading; AttachedTime::ALL.len()],
    counts: AttachedCounts,
    /// Of the warm-up.
    warmup: FoundPeriod,
    /// Wake-ups by now, those of the warm-up included, and those of them by its own timers.
    pub(super) wakeups: (u64, u64),
    pub(super) sums: Sums,
    traced: Option<Trace>,
    traced_cycles: Option<Trace>,
    period: FoundPeriod,
    /// How long ago the last expiry was that it was woken by, ns, where it passed others since.
    behind_ns: u64,
    pub(super) awake: Awake,
    /// Its schedule when it was there before.
    before: Option<ScheduleKept>,
    cycles: AttachedCycles,
    /// What it is given of `SCHED_DEADLINE`.
    pub(super) budget: Option<Budget>,
    /// Its policies, as they were read, and the kernel's priority by then.
    pub(super) policies: Policies,
    prio: Option<i16>,
}

impl Trace {
    /// With the end where they are read.
    fn new() -> (Self, Reader<Late>) {
        let (late, reader) = ring(LATE_RING);
        (Self { late, control: Arc::default(), usual: Arc::default() }, reader)
    }
}

impl Followed {
    /// `cycles` says whether its work is measured, by its name and number.
    pub(super) fn new(
        thread: &AttachedThread<'_>,
        cycles: impl Fn((&str, u32)) -> AttachedCycles,
        now_ns: i64,
    ) -> Self {
        let name = name_of_task(&thread.comm());
        let cycles = cycles((&name, thread.tid()));
        let mut one = Self {
            tid: thread.tid(),
            pid: thread.pid(),
            name,
            since_ns: now_ns,
            read: Default::default(),
            counts: AttachedCounts::default(),
            warmup: FoundPeriod::default(),
            wakeups: (0, 0),
            sums: Sums::default(),
            traced: None,
            traced_cycles: None,
            period: FoundPeriod::default(),
            behind_ns: 0,
            awake: Awake::default(),
            before: None,
            cycles,
            budget: None,
            policies: Policies::default(),
            prio: None,
        };
        one.find_budget(thread);
        one.find_policy(thread.prio());
        one
    }

    /// Reads what it is given of `SCHED_DEADLINE`: where nothing else was asked for that is its
    /// deadline.
    fn find_budget(&mut self, thread: &AttachedThread<'_>) {
        self.budget = budget_of(self.tid.cast_signed());
        let AttachedCycles::Measured(asked_ns) = self.cycles else {
            // It may have had another name, and a deadline.
            return thread.set_deadline(0);
        };
        let deadline_ns = asked_ns.or(self.budget.map(|budget| budget.deadline_ns));
        thread.set_deadline(deadline_ns.unwrap_or(0));
        (self.sums.has_response, self.sums.deadline_ns) = (true, deadline_ns);
    }

    /// Reads its policy, where its priority is another than it was.
    fn find_policy(&mut self, prio: i16) {
        if self.prio.replace(prio) != Some(prio)
            && let Ok(found) = raw_of_thread(self.tid.cast_signed())
        {
            self.policies.note(found.words());
        }
    }

    /// It was there before, with these sums, and continues.
    pub(super) fn resume(&mut self, sums: Sums, policies: Policies, before: Option<ScheduleKept>) {
        (self.sums, self.before) = (sums, before);
        self.policies.resume(policies);
    }

    /// Whether it was awake all the time, or has been for most of it.
    pub(super) fn never_slept(&self) -> bool {
        let runs = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.tid)).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'))
        };
        self.awake.never_slept(self.sums.count(AttachedTime::Dispatch), runs)
    }

    /// The name of its series, where it has one.
    pub(super) fn series(&self) -> String {
        format!("{}/{}", self.name, self.tid)
    }

    /// Whether this is still the thread at that place.
    pub(super) fn is(&self, thread: &AttachedThread<'_>) -> bool {
        self.tid == thread.tid() && self.name == name_of_task(&thread.comm())
    }

    /// Passes over what was counted so far: it is of the warm-up.
    pub(super) fn skip(&mut self, thread: &AttachedThread<'_>) {
        self.read_times(thread, |_, _, _| {});
        self.count_wakeups(thread.counts());
        self.warmup = thread.period();
        self.find_policy(thread.prio());
        self.policies.forget_earlier();
        thread.reset_extremes();
    }

    /// Takes what has come since the last time, also for all threads of its name.
    pub(super) fn take(&mut self, thread: &AttachedThread<'_>, now_ns: i64, all: &mut Sums) {
        // It may have become one of that policy since.
        if self.budget.is_none() && thread.prio() < 0 {
            self.find_budget(thread);
        }
        self.find_policy(thread.prio());
        all.join_deadline(self.sums.has_response, self.sums.deadline_ns);
        let (own, pool) = (self.sums.times.clone(), all.times.clone());
        self.read_times(thread, |time, delta, totals| {
            for counts in [&own[time as usize], &pool[time as usize]] {
                match (delta, totals) {
                    (Some((bucket, count)), _) => counts.add(middle_ns(bucket), count.into()),
                    (_, Some((count, sum, extremes, above))) => {
                        counts.add_totals(count, sum, extremes, above);
                    }
                    _ => {}
                }
            }
        });
        let now = thread.counts();
        let since = now.since(&self.counts);
        self.count_wakeups(now);
        self.sums.counts = self.sums.counts.plus(&since);
        all.counts = all.counts.plus(&since);
        self.period = thread.period();
        self.note_where_it_is(thread, now_ns.cast_unsigned());
    }

    /// How far it is behind its period, and since when it has not slept.
    fn note_where_it_is(&mut self, thread: &AttachedThread<'_>, now_ns: u64) {
        let since_ns = self.since_ns.cast_unsigned();
        let seen = (thread.is_awake(), thread.has_ended);
        self.awake.look(seen, thread.switched_ns(), (since_ns, now_ns));
        let (met_ns, is_awake) = (thread.met_ns(), self.awake.is_now());
        // A thread that has slept for something else since, or has ended, may have done something
        // else than to be late; only what it slept until when that was over is known.
        let until_ns = match is_awake && thread.is_by_own_timer() {
            true => now_ns,
            false => thread.overdue_ns(),
        };
        self.behind_ns = if met_ns > 0 { until_ns.saturating_sub(met_ns) } else { 0 };
    }

    /// Hands over what has come: buckets first, then the totals, of each time that has something.
    fn read_times(
        &mut self,
        thread: &AttachedThread<'_>,
        mut each: impl FnMut(AttachedTime, Option<(u32, u32)>, Option<Totals>),
    ) {
        for time in AttachedTime::ALL {
            let last = &mut self.read[time as usize];
            last.take(thread, time, |bucket, totals| each(time, bucket, totals));
        }
    }

    /// Takes what has come by now of its wake-ups.
    fn count_wakeups(&mut self, now: AttachedCounts) {
        let of = |time| self.read[time as usize].count;
        self.counts = now;
        self.wakeups = (of(AttachedTime::Dispatch), of(AttachedTime::Lateness) + now.asides);
    }

    /// From now on its late wake-ups are to be explained: what others must know for that.
    pub(super) fn begin_trace(&mut self, prio: i16) -> TracedThread {
        let (trace, late) = Trace::new();
        trace.usual.p99_ns.store(LATE_AT_FIRST_NS, Relaxed);
        let samples = TracedSamples::Attached { usual: Arc::clone(&trace.usual), late };
        // Causes are those of a name, as its latencies are.
        let traced = self.traced_as(self.name.clone(), &trace, samples);
        self.traced = Some(trace);
        self.tell_usual(prio);
        traced
    }

    /// The same of its cycles over the deadline.
    pub(super) fn begin_cycle_trace(&mut self, prio: i16) -> Option<TracedThread> {
        let deadline_ns = i64::try_from(self.sums.deadline_ns?).ok()?;
        let (trace, late) = Trace::new();
        trace.usual.p99_ns.store(deadline_ns, Relaxed);
        let samples = TracedSamples::Cycles { usual: Arc::clone(&trace.usual), late };
        let traced = self.traced_as(format!("{}/{RESPONSE}", self.name), &trace, samples);
        self.traced_cycles = Some(trace);
        self.tell_usual(prio);
        Some(traced)
    }

    /// The same of one that has come back, where it had that.
    pub(super) fn resume_cycle_trace(&mut self, prio: i16) -> Option<TracedThread> {
        if self.sums.cycles.is_some() { self.begin_cycle_trace(prio) } else { None }
    }

    fn traced_as(&self, name: String, trace: &Trace, samples: TracedSamples) -> TracedThread {
        TracedThread {
            name,
            cpu: 0,
            tid: self.tid.cast_signed(),
            // Any: the kernel's record follows it by its number, whatever its priority.
            priority: (139, false),
            warmup: Arc::clone(&NOTHING),
            total: Arc::clone(&NOTHING),
            control: Arc::clone(&trace.control),
            samples,
        }
    }

    /// Whether its late wake-ups are explained.
    pub(super) const fn is_traced(&self) -> bool {
        self.traced.is_some()
    }

    /// Whether what is late is its lateness, by what is known of it so far.
    fn is_lateness(&self) -> bool {
        let (wakeups, by_own) = self.wakeups;
        match self.sums.latency {
            Some(latency) => latency == AttachedLatency::Lateness,
            None => by_own * 2 >= wakeups,
        }
    }

    /// Tells who explains them what is usual by now.
    pub(super) fn tell_usual(&self, prio: i16) {
        let traces = || self.traced.iter().chain(&self.traced_cycles);
        traces().for_each(|trace| trace.usual.prio.store(prio.into(), Relaxed));
        let is_lateness = self.is_lateness();
        let own = if is_lateness { AttachedTime::Lateness } else { AttachedTime::Dispatch };
        let own = self.sums.of(own);
        if own.totals().count < ENOUGH {
            return;
        }
        let of = |time| self.sums.of(time).quantile(500).unwrap_or(0);
        let dispatch_ns = of(AttachedTime::Dispatch);
        let irq_ns = if is_lateness { of(AttachedTime::Lateness) - dispatch_ns } else { 0 };
        for Trace { usual, .. } in traces() {
            usual.dispatch_ns.store(dispatch_ns, Relaxed);
            usual.irq_ns.store(irq_ns.max(0), Relaxed);
        }
        if let Some(Trace { usual, .. }) = &self.traced {
            usual.p99_ns.store(own.quantile(990).unwrap_or(i64::MAX), Relaxed);
        }
    }

    /// Tells the programs what is late.
    pub(super) fn set_threshold(&self, thread: &AttachedThread<'_>) {
        let Some(Trace { control, .. }) = &self.traced else { return };
        let late_ns = match control.late_over_ns.load(Relaxed) {
            i64::MAX => 0,
            over_ns => u64::try_from(over_ns.max(1)).unwrap_or(0),
        };
        thread.set_late(late_ns, self.is_lateness());
    }

    /// A late wake-up, or a long cycle, goes to who explains it.
    pub(super) fn hand_over(&mut self, late: &AttachedLate) {
        let to = if late.done_ns.is_some() { &mut self.traced_cycles } else { &mut self.traced };
        if let Some(traced) = to {
            traced.late.push(late_of(late));
        }
    }

    /// The period of its timers, where they have one.
    pub(super) fn period_ns(&self) -> Option<u64> {
        let FoundPeriod { period_ns, hits, misses, .. } = self.period;
        (hits >= PERIOD_HITS && misses * PERIOD_MISSES <= hits).then_some(period_ns)
    }

    /// Its period and how it was kept, in all the time that it was there.
    pub(super) fn schedule(&self) -> Option<ScheduleKept> {
        let now = self.period_ns().and_then(|ns| i64::try_from(ns).ok());
        let before = self.before.unwrap_or_default();
        now.map(|period_ns| self.kept(period_ns).plus(&before)).or(self.before)
    }

    /// What begins its cycles. It works from one expiry of its timer to the next where it is woken
    /// by that mostly, or it has a period, and waits for others only a few times in each; else
    /// whenever others wake it. `None` while it has no cycle.
    pub(super) fn cycle_begin(&self) -> Option<CycleBegin> {
        let (wakeups, by_own) = self.wakeups;
        let is_periodic = self.period_ns().is_some() && by_own * WAITS_PER_CYCLE >= wakeups;
        let has = |time| self.sums.has_response && self.sums.count(time) > 0;
        match by_own * 2 >= wakeups || is_periodic {
            true => has(AttachedTime::Response).then_some(CycleBegin::Timer),
            false => has(AttachedTime::Stage).then_some(CycleBegin::WakeUp),
        }
    }

    /// How this period was kept in the measured time: expiries that passed since it slept last have
    /// woken nobody either.
    pub(super) fn kept(&self, period_ns: i64) -> ScheduleKept {
        // Another candidate since the warm-up counts from nought.
        let is_same = self.period.hits >= self.warmup.hits;
        let passed = self.behind_ns.checked_div(self.period.period_ns).unwrap_or(0);
        let before = if is_same { self.warmup } else { FoundPeriod::default() };
        ScheduleKept {
            period_ns,
            met: self.period.hits.saturating_sub(before.hits),
            missed: self.period.missed.saturating_sub(before.missed) + passed,
            unsure: self.period.unsure.saturating_sub(before.unsure),
            changed: self.period.changed,
        }
    }
}

//! One attached thread: what has come of it since it was read the last time.

use std::sync::{Arc, LazyLock, atomic::Ordering::Relaxed};

use tardy_hot::{
    ring::{Reader, Writer, ring},
    stages::{Late, Stages},
    traced::TraceControl,
    wakeup::Series,
};

use super::sums::Sums;
use crate::{
    kernel::{
        AttachedCounts, AttachedCycles, AttachedLate, AttachedThread, AttachedTime, FoundPeriod,
        bucket_bounds,
    },
    probes::{AttachedUsual, TracedSamples, TracedThread},
    run::{AttachedLatency, RESPONSE},
    sys::sched::{Budget, budget_of},
};

/// Late wake-ups of one thread that wait to be blamed: of those between two looks, many times more
/// than come.
const LATE_RING: usize = 128;

/// What is late until that is known, ns; as for threads of tardy's own.
const LATE_AT_FIRST_NS: i64 = 50_000;

/// Medians, and what is late, follow after so many wake-ups.
const ENOUGH: u64 = 100;

/// What a measuring thread would record in: these threads are not tardy's.
static NOTHING: LazyLock<Arc<Series>> = LazyLock::new(Arc::default);

/// Timers have a period where so many expiries follow it, and nearly all.
const PERIOD_HITS: u64 = 16;
const PERIOD_MISSES: u64 = 16;

/// A thread that is woken more often in one period is woken by others mainly, and what its timer is
/// for is not what it is there for.
const WAITS_PER_CYCLE: u64 = 8;

/// What was read of one histogram the last time.
#[derive(Debug, Default)]
struct Read {
    count: u64,
    sum_ns: u64,
    above: u64,
    /// By bucket, in order, modulo 2^32.
    buckets: Vec<(u32, u32)>,
}

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
    read: [Read; AttachedTime::ALL.len()],
    counts: AttachedCounts,
    missed: FoundPeriod,
    /// Wake-ups by now, those of the warm-up included, and those of them by its own timers.
    pub(super) wakeups: (u64, u64),
    pub(super) sums: Sums,
    traced: Option<Trace>,
    traced_cycles: Option<Trace>,
    period: FoundPeriod,
    cycles: AttachedCycles,
    /// What it is given of `SCHED_DEADLINE`.
    pub(super) budget: Option<Budget>,
}

impl Trace {
    /// With the end where they are read.
    fn new() -> (Self, Reader<Late>) {
        let (late, reader) = ring(LATE_RING);
        (Self { late, control: Arc::default(), usual: Arc::default() }, reader)
    }
}

impl Followed {
    pub(super) fn new(thread: &AttachedThread<'_>, cycles: AttachedCycles, now_ns: i64) -> Self {
        let mut one = Self {
            tid: thread.tid(),
            pid: thread.pid(),
            name: escaped(&thread.comm()),
            since_ns: now_ns,
            read: Default::default(),
            counts: AttachedCounts::default(),
            missed: FoundPeriod::default(),
            wakeups: (0, 0),
            sums: Sums::default(),
            traced: None,
            traced_cycles: None,
            period: FoundPeriod::default(),
            cycles,
            budget: None,
        };
        one.find_budget(thread);
        one
    }

    /// Reads what it is given of `SCHED_DEADLINE`: where nothing else was asked for that is its
    /// deadline.
    fn find_budget(&mut self, thread: &AttachedThread<'_>) {
        self.budget = budget_of(self.tid.cast_signed());
        let AttachedCycles::Measured(asked_ns) = self.cycles else { return };
        let deadline_ns = asked_ns.or(self.budget.map(|budget| budget.deadline_ns));
        thread.set_deadline(deadline_ns.unwrap_or(0));
        (self.sums.has_response, self.sums.deadline_ns) = (true, deadline_ns);
    }

    /// The name of its series, where it has one.
    pub(super) fn series(&self) -> String {
        format!("{}/{}", self.name, self.tid)
    }

    /// Whether this is still the thread at that place.
    pub(super) fn is(&self, thread: &AttachedThread<'_>) -> bool {
        self.tid == thread.tid() && self.name == escaped(&thread.comm())
    }

    /// Passes over what was counted so far: it is of the warm-up.
    pub(super) fn skip(&mut self, thread: &AttachedThread<'_>) {
        self.read_times(thread, |_, _, _| {});
        self.counts = thread.counts();
        self.missed = thread.period();
        thread.reset_extremes();
    }

    /// Takes what has come since the last time, also for all threads of its name.
    pub(super) fn take(&mut self, thread: &AttachedThread<'_>, all: &mut Sums) {
        // It may have become one of that policy since.
        if self.budget.is_none() && thread.prio() < 0 {
            self.find_budget(thread);
        }
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
        self.counts = now;
        self.sums.counts = self.sums.counts.plus(&since);
        all.counts = all.counts.plus(&since);
        self.period = thread.period();
    }

    /// Hands over what has come: buckets first, then the totals, of each time that has something.
    fn read_times(
        &mut self,
        thread: &AttachedThread<'_>,
        mut each: impl FnMut(AttachedTime, Option<(u32, u32)>, Option<Totals>),
    ) {
        for time in AttachedTime::ALL {
            let read = &mut self.read[time as usize];
            let [count, sum_ns, min_ns, max_ns, above] = thread.totals(time);
            if count == read.count {
                continue;
            }
            let mut before = std::mem::take(&mut read.buckets).into_iter().peekable();
            let mut now = Vec::new();
            thread.buckets(time, |bucket, count| {
                let mut last = 0;
                while let Some((_, then)) = before.next_if(|(then, _)| *then <= bucket) {
                    last = then;
                }
                now.push((bucket, count));
                let fresh = count.wrapping_sub(last);
                if fresh > 0 {
                    each(time, Some((bucket, fresh)), None);
                }
            });
            let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
            let sum = signed(sum_ns.wrapping_sub(read.sum_ns));
            let extremes = (signed(min_ns), signed(max_ns));
            let fresh = (count - read.count, sum, extremes, above - read.above);
            each(time, None, Some(fresh));
            *read = Read { count, sum_ns, above, buckets: now };
        }
        let of = |time| self.read[time as usize].count;
        self.wakeups = (of(AttachedTime::Dispatch), of(AttachedTime::Lateness));
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

    /// Whether it works from one expiry of its timer to the next: it is woken by that mostly, or it
    /// has a period, and waits for others only a few times in each.
    pub(super) fn has_cycles(&self) -> bool {
        let (wakeups, by_own) = self.wakeups;
        let is_periodic = self.period_ns().is_some() && by_own * WAITS_PER_CYCLE >= wakeups;
        let has_some = self.sums.has_response && self.sums.count(AttachedTime::Response) > 0;
        has_some && (by_own * 2 >= wakeups || is_periodic)
    }

    /// Periods that were missed in the measured time.
    pub(super) fn missed(&self) -> u64 {
        // Another candidate since the warm-up counts from nought.
        let is_same = self.period.hits >= self.missed.hits;
        self.period.missed.saturating_sub(if is_same { self.missed.missed } else { 0 })
    }
}

/// With its stages: from the expiry, or where its dispatch was late from the wake-up on.
fn late_of(late: &AttachedLate) -> Late {
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let (waking_ns, switch_ns) = (signed(late.waking_ns), signed(late.switch_ns));
    let t_ns = late.hard_ns.map_or(waking_ns, signed);
    // A cycle may have begun within the slack.
    let switch_ns = switch_ns.max(t_ns);
    let waking_ns = waking_ns.clamp(t_ns, switch_ns);
    let end_ns = late.done_ns.map_or(switch_ns, signed);
    let entry_ns = match late.hard_ns {
        Some(_) => signed(late.entry_ns).clamp(t_ns, waking_ns),
        None => t_ns,
    };
    Late {
        t_ns,
        latency_ns: end_ns - t_ns,
        expires_ns: if late.hard_ns.is_some() { t_ns } else { 0 },
        stages: Stages {
            irq_ns: entry_ns - t_ns,
            softirq_ns: 0,
            handler_ns: waking_ns - entry_ns,
            dispatch_ns: switch_ns - waking_ns,
            user_ns: end_ns - switch_ns,
        },
        matched: true,
        cpus: late.cpus,
        stopped_ns: (0, 0),
    }
}

type Totals = (u64, i64, (i64, i64), u64);

/// What stands for the values of a bucket.
const fn middle_ns(bucket: u32) -> u64 {
    let (low, next) = bucket_bounds(bucket);
    low + (next - low) / 2
}

/// A name in which nothing separates fields, `%2F` for a slash.
pub(super) fn escaped(comm: &[u8]) -> String {
    let mut name = String::new();
    for &byte in comm {
        match byte {
            b'%' | b',' | b'/' | b'<' | b'=' | b'"' | b'\\' => name += &format!("%{byte:02X}"),
            b'!'..=b'~' => name.push(char::from(byte)),
            _ => name += &format!("%{byte:02X}"),
        }
    }
    if name.is_empty() { "%00".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_nothing_that_separates_fields() {
        assert_eq!(escaped(b"kworker/0:1H-x"), "kworker%2F0:1H-x");
        assert_eq!(escaped(b"a, b%"), "a%2C%20b%25");
        assert_eq!(escaped("n\u{e9}".as_bytes()), "n%C3%A9");
        assert_eq!(escaped(b""), "%00");
        assert_eq!(escaped(b"p99<=1"), "p99%3C%3D1");
    }

    #[test]
    fn the_middle_of_a_bucket_stands_for_its_values() {
        assert_eq!((middle_ns(0), middle_ns(63)), (0, 63));
        let (low, next) = bucket_bounds(500);
        assert!(low < middle_ns(500) && middle_ns(500) < next);
    }
}

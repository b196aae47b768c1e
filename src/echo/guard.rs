//! Notices real-time threads that leave their CPU no rest, and makes ordinary tasks of them: a
//! stream of bytes that is always there keeps one awake, or several in turn. They would have their
//! CPU for themselves until the kernel throttles them, 950 ms of every second.
//!
//! What counts is what all threads of a CPU take together, of which a fifth of its time must be
//! left. First those go that take it; where others take their place, all of them, and for a time
//! no thread becomes real-time there: the next one would be the next to take the CPU.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::sys::{faults::ThreadUsage, sched, usage::thread_cpu_time};

/// How long threads may leave their CPU no rest. A message takes some 10 us, and between two
/// messages an honest peer's thread sleeps.
const RESTLESS: Duration = Duration::from_millis(200);

/// The divisor of the time of a CPU that is left to others.
const SHARE: u32 = 5;

/// A thread that sleeps less often hardly does.
const SLEEP_EVERY: Duration = Duration::from_millis(10);

/// Minimum time between two looks: any packet at the door makes the echo look.
const LOOK: Duration = Duration::from_millis(40);

/// Once its threads left a CPU no rest, the time during which they may not do so for longer than
/// two looks: of a thread that was not asked before it is not known whether it sleeps.
const STRICT: Duration = Duration::from_secs(10);

/// Stands for a thread that has ended.
const GONE: i32 = -1;

/// A real-time thread of the echo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GuardedThread {
    /// The kernel's number.
    pub tid: i32,
    /// The one CPU that it runs on.
    pub cpu: u32,
}

/// What a thread has done by a look.
#[derive(Debug, Clone, Copy)]
struct Seen {
    used: Duration,
    /// `None` if its CPU was not busy, so that nobody asked, or if nobody could say.
    slept: Option<u64>,
}

/// What a thread did from one look to the next.
#[derive(Debug, Clone, Copy)]
struct Spent {
    tid: i32,
    used: Duration,
    slept: u64,
}

/// What is known from one look to the next.
#[derive(Debug, Default)]
pub(super) struct SleepGuard {
    looked: Option<Instant>,
    /// Of each thread.
    seen: BTreeMap<i32, Seen>,
    /// CPUs whose threads leave them no rest, or did not long ago.
    cpus: BTreeMap<u32, WatchedCpu>,
    /// Whether CPUs are closed, for threads that are about to become real-time.
    closed_flags: BTreeMap<u32, ClosedFlag>,
    /// Threads that have ended since the last look, and what each had used.
    ended: Vec<(GuardedThread, Duration)>,
}

/// Whether a CPU is closed, as of the last look.
pub(super) type ClosedFlag = Arc<AtomicBool>;

/// A CPU whose threads leave it no rest, or did not long ago.
#[derive(Debug, Clone, Copy, Default)]
struct WatchedCpu {
    /// What they have taken of the part that is for others, less what they left of theirs since.
    /// A look with a little rest does not count as a rest.
    debt: Duration,
    /// When threads of it were last made ordinary tasks.
    calmed: Option<Instant>,
    /// Whether those were all, after others had been.
    is_closed: bool,
}

impl WatchedCpu {
    fn is_strict(&self, now: Instant) -> bool {
        self.calmed.is_some_and(|calmed| now.saturating_duration_since(calmed) < STRICT)
    }

    /// Which of its threads, the busiest first, go after what they took since the last look.
    fn judge(&mut self, now: Instant, threads: Vec<Spent>, passed: Duration) -> Vec<i32> {
        let own = passed - passed / SHARE;
        self.debt = (self.debt + taken(&threads, passed)).saturating_sub(own);
        let is_strict = self.is_strict(now);
        let patience = if is_strict { LOOK * 2 } else { RESTLESS };
        if self.debt < patience / SHARE {
            return Vec::new();
        }
        // What stays real-time begins anew: it may have waited for those that go.
        *self = Self { debt: Duration::ZERO, calmed: Some(now), is_closed: is_strict };
        let all: Vec<i32> = threads.iter().map(|thread| thread.tid).collect();
        let culprits = if is_strict { Vec::new() } else { restless(threads, passed) };
        // At this look they may have left a little.
        if culprits.is_empty() { all } else { culprits }
    }
}

impl SleepGuard {
    /// Takes what a thread used that has ended: nobody can ask for it any more. Many sessions that
    /// are shorter than a look would go unseen.
    pub(super) fn add_ended(&mut self, thread: GuardedThread, used: Duration) {
        self.ended.push((thread, used));
    }

    /// Says at any time whether a thread may not become real-time on this CPU, because those there
    /// left it no rest, and when the worst had gone again. To be asked at the last moment: a thread
    /// that began before may have waited for its CPU since.
    pub(super) fn closed_flag(&mut self, cpu: u32) -> ClosedFlag {
        Arc::clone(self.closed_flags.entry(cpu).or_default())
    }

    fn is_closed(&self, cpu: u32, now: Instant) -> bool {
        self.cpus.get(&cpu).is_some_and(|cpu| cpu.is_closed && cpu.is_strict(now))
    }

    /// Makes ordinary tasks of those of `threads` that have left their CPU no rest for too long,
    /// so that it has time for others. Returns which.
    pub(super) fn calm(&mut self, threads: &[GuardedThread]) -> Vec<i32> {
        let sleeps = |tid| ThreadUsage::of_thread(tid).map(|usage| usage.voluntary_switches);
        let culprits = self.look(threads, Instant::now(), thread_cpu_time, sleeps);
        culprits.into_iter().filter(|tid| sched::make_last(*tid).is_ok()).collect()
    }

    /// Which of `threads` are to become ordinary tasks. `used` says how much CPU time one has used
    /// so far, and `sleeps` how often it has slept: that takes files of `/proc`, and is asked only
    /// on a CPU that is busy. A thread of which it is not known has not slept.
    fn look(
        &mut self,
        threads: &[GuardedThread],
        now: Instant,
        used: impl Fn(i32) -> Option<Duration>,
        sleeps: impl Fn(i32) -> Option<u64>,
    ) -> Vec<i32> {
        let passed = self.looked.map_or(LOOK, |then| now.saturating_duration_since(then));
        if passed < LOOK {
            return Vec::new();
        }
        self.looked = Some(now);
        let before = mem::take(&mut self.seen);
        let spent = self.spent(threads, &before, used);
        // Those without a thread have rest.
        self.cpus.retain(|cpu, of| spent.contains_key(cpu) || of.is_strict(now));
        let mut culprits = Vec::new();
        for (cpu, mut threads) in spent {
            if is_busy(&threads, passed) {
                threads.iter_mut().for_each(|thread| self.ask(thread, &before, &sleeps));
            }
            threads.sort_by_key(|thread| Reverse(thread.used));
            culprits.extend(self.cpus.entry(cpu).or_default().judge(now, threads, passed));
        }
        for (cpu, flag) in &self.closed_flags {
            flag.store(self.is_closed(*cpu, now), Ordering::Release);
        }
        culprits.retain(|tid| *tid != GONE);
        culprits
    }

    /// What the threads of each CPU have used since `before`, those that have ended as well; all
    /// that it has used of one that was not there yet.
    fn spent(
        &mut self,
        threads: &[GuardedThread],
        before: &BTreeMap<i32, Seen>,
        used: impl Fn(i32) -> Option<Duration>,
    ) -> BTreeMap<u32, Vec<Spent>> {
        let mut spent = BTreeMap::<u32, Vec<Spent>>::new();
        let known = |tid: i32| before.get(&tid).map_or(Duration::ZERO, |seen| seen.used);
        for (GuardedThread { tid, cpu }, used) in self.ended.drain(..) {
            let used = used.saturating_sub(known(tid));
            spent.entry(cpu).or_default().push(Spent { tid: GONE, used, slept: 0 });
        }
        for &GuardedThread { tid, cpu } in threads {
            // Else it has ended.
            let Some(used) = used(tid) else { continue };
            self.seen.insert(tid, Seen { used, slept: None });
            let used = used.saturating_sub(known(tid));
            spent.entry(cpu).or_default().push(Spent { tid, used, slept: 0 });
        }
        spent
    }

    /// Asks how often a thread has slept.
    fn ask(
        &mut self,
        thread: &mut Spent,
        before: &BTreeMap<i32, Seen>,
        sleeps: impl Fn(i32) -> Option<u64>,
    ) {
        let slept = sleeps(thread.tid);
        let known = before.get(&thread.tid).and_then(|seen| seen.slept);
        thread.slept = slept.zip(known).map_or(0, |(slept, known)| slept.saturating_sub(known));
        self.seen.entry(thread.tid).and_modify(|seen| seen.slept = slept);
    }
}

/// The threads of one CPU, the busiest first, that must become ordinary tasks so that those that
/// stay leave it rest; none where all of them do.
fn restless(mut threads: Vec<Spent>, passed: Duration) -> Vec<i32> {
    let mut culprits = Vec::new();
    while let Some(place) = culprit(&threads, passed) {
        culprits.push(threads.remove(place).tid);
    }
    culprits
}

/// Which of `threads`, the busiest first, is the first to go. Together they leave no rest where
/// those that hardly sleep run most of the time, and where all of them run more than their part of
/// it: they may wake each other, and each sleep often.
fn culprit(threads: &[Spent], passed: Duration) -> Option<usize> {
    if are_awake(threads, passed) {
        return threads.iter().position(|thread| hardly_sleeps(thread, passed));
    }
    (used(threads) > passed - passed / SHARE).then_some(0)
}

/// What they took of a CPU: all where those that hardly sleep run most of the time, as what else
/// they would use is spent on interrupts, or by the host of a guest.
fn taken(threads: &[Spent], passed: Duration) -> Duration {
    if are_awake(threads, passed) { passed } else { used(threads).min(passed) }
}

fn are_awake(threads: &[Spent], passed: Duration) -> bool {
    let awake = threads.iter().filter(|thread| hardly_sleeps(thread, passed));
    awake.map(|thread| thread.used).sum::<Duration>() * 2 >= passed
}

fn hardly_sleeps(thread: &Spent, passed: Duration) -> bool {
    u128::from(thread.slept) < passed.as_millis() / SLEEP_EVERY.as_millis()
}

/// Whether they may leave no rest, so that it matters how often they slept.
fn is_busy(threads: &[Spent], passed: Duration) -> bool {
    used(threads) * 2 >= passed
}

fn used(threads: &[Spent]) -> Duration {
    threads.iter().map(|thread| thread.used).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOKED: Duration = Duration::from_millis(50);

    /// The threads that must go, of threads 0, 1, ... of one CPU that used and slept this long in
    /// 50 ms.
    fn culprits(threads: &[(u64, u64)]) -> Vec<i32> {
        let spent = threads.iter().zip(0..).map(|(&(used_ms, slept), tid)| Spent {
            tid,
            used: Duration::from_millis(used_ms),
            slept,
        });
        let mut spent: Vec<_> = spent.collect();
        spent.sort_by_key(|thread| Reverse(thread.used));
        restless(spent, LOOKED)
    }

    #[test]
    fn threads_that_leave_their_cpu_no_rest_go_the_busiest_first_until_it_has_some() {
        for (threads, expected) in [
            // A third each, in turn; one that stays leaves enough.
            (&[(16, 0), (17, 1), (16, 0)][..], &[1, 0][..]),
            (&[(10, 4), (10, 4), (10, 4)], &[0]),
            (&[(50, 0)], &[0]),
            // Each wakes the other: both sleep often.
            (&[(20, 900), (27, 900)], &[1]),
            // Who sleeps stays, and so does who hardly runs, because others do.
            (&[(10, 500), (35, 0), (1, 0), (0, 0)], &[1]),
            (&[(46, 500), (1, 2)], &[0]),
            // They leave time for others.
            (&[(40, 10)], &[]),
            (&[(13, 500), (13, 500), (13, 500)], &[]),
            (&[(14, 500), (14, 500), (14, 500)], &[0]),
            (&[(8, 0), (8, 0), (8, 0)], &[]),
            (&[], &[]),
        ] {
            assert_eq!(culprits(threads), expected, "{threads:?}");
        }
    }

    /// Looks at threads with these CPUs, `look` apart for a second. Every 50 ms each uses and
    /// sleeps the given time more. Returns those that must go, as places in `threads`, the first
    /// time some do.
    fn first_calmed(
        threads: &[(u32, u32, Option<u64>)],
        look: Duration,
    ) -> Option<(Duration, Vec<i32>)> {
        let (mut guard, start) = (SleepGuard::default(), Instant::now());
        let places = 0..threads.len() as i32;
        let guarded: Vec<_> =
            places.map(|tid| GuardedThread { tid, cpu: threads[tid as usize].0 }).collect();
        let looks = Duration::from_secs(1).as_millis() / look.as_millis();
        (0..looks as u32).find_map(|number| {
            let passed = look * number;
            let periods = (passed.as_millis() / 50) as u64;
            let of = |tid: i32| threads[tid as usize];
            let used = |tid| Some(passed * of(tid).1 / 50);
            let sleeps = |tid| Some(of(tid).2? * periods);
            let gone = guard.look(&guarded, start + passed, used, sleeps);
            (!gone.is_empty()).then_some((passed, gone))
        })
    }

    #[test]
    fn a_thread_that_hardly_sleeps_is_noticed_and_one_that_does_or_waits_is_not() {
        // Strangers at the door make it look more often.
        for look in [50, 7, 1].map(Duration::from_millis) {
            let is_noticed = |used_ms, slept| first_calmed(&[(0, used_ms, slept)], look).is_some();
            let [none, one, ten] = [0, 1, 10].map(Some);
            assert!(
                is_noticed(50, none) && is_noticed(30, none) && is_noticed(49, one),
                "{look:?}"
            );
            assert!(!is_noticed(35, ten), "busy, and asleep now and then: {look:?}");
            let often = Some(50);
            assert!(is_noticed(50, often), "asleep now and then, and never idle: {look:?}");
            assert!(!is_noticed(0, none), "asleep all the time: {look:?}");
            assert!(!is_noticed(20, none), "it waits for its CPU, which others have: {look:?}");
            assert!(is_noticed(40, None), "whether it sleeps is not known: {look:?}");
        }
    }

    #[test]
    fn threads_are_judged_by_what_they_use_together_of_one_cpu() {
        let look = Duration::from_millis(50);
        let third = |cpu| (cpu, 16, Some(0));
        let (_, gone) = first_calmed(&[third(1), third(1), third(1), third(2)], look).unwrap();
        assert_eq!(gone, [0, 1]);
        assert_eq!(first_calmed(&[third(1), third(2), third(3)], look), None);
    }

    /// Threads of one CPU that want it all the time, each `LOOKED` another `number` of them where
    /// the guard lets threads become real-time: how long they had it until `end`, and who still
    /// may.
    fn hogs(first: i32, number: i32, end: Duration) -> (Duration, Vec<i32>) {
        let (mut guard, start) = (SleepGuard::default(), Instant::now());
        let (mut used, mut taken) = (BTreeMap::<i32, Duration>::new(), Duration::ZERO);
        let (mut real_time, mut next): (Vec<i32>, i32) = ((1..=first).collect(), first + 1);
        let mut passed = Duration::ZERO;
        while passed < end {
            let guarded: Vec<_> =
                real_time.iter().map(|tid| GuardedThread { tid: *tid, cpu: 1 }).collect();
            let of = |tid| used.get(&tid).copied().or(Some(Duration::ZERO));
            let gone = guard.look(&guarded, start + passed, of, |_| Some(0));
            real_time.retain(|tid| !gone.contains(tid));
            if !guard.closed_flag(1).load(Ordering::Acquire) {
                real_time.extend(next..next + number);
                next += number;
            }
            // As under SCHED_FIFO: the first has it until it sleeps.
            if let Some(first) = real_time.first() {
                *used.entry(*first).or_default() += LOOKED;
                taken += LOOKED;
            }
            passed += LOOKED;
        }
        (taken, real_time)
    }

    #[test]
    fn many_that_would_take_turns_lose_their_cpu_together() {
        let (taken, real_time) = hogs(16, 0, Duration::from_secs(5));
        assert!(taken <= RESTLESS * 2, "{taken:?}");
        assert_eq!(real_time, [0; 0]);
    }

    #[test]
    fn threads_that_become_real_time_one_after_the_other_lose_their_cpu_too() {
        // Each waits for its CPU before it can become real-time there.
        let (mut guard, start) = (SleepGuard::default(), Instant::now());
        let (mut used, mut own, mut taken) = (Duration::ZERO, 1, Duration::ZERO);
        let flag = guard.closed_flag(1);
        for number in 0..100 {
            let threads = [GuardedThread { tid: own, cpu: 1 }];
            let guarded: &[_] = if flag.load(Ordering::Acquire) { &[] } else { &threads };
            let gone = guard.look(guarded, start + LOOKED * number, |_| Some(used), |_| Some(0));
            if !gone.is_empty() {
                (used, own) = (Duration::ZERO, own + 1);
            }
            if !flag.load(Ordering::Acquire) {
                (used, taken) = (used + LOOKED, taken + LOOKED);
            }
        }
        assert!(taken <= RESTLESS * 2, "{taken:?}");
    }

    #[test]
    fn a_little_rest_at_one_look_or_another_is_none() {
        // One that sleeps often, and leaves a twentieth or a seventh of its CPU, in turns.
        let (mut guard, start) = (SleepGuard::default(), Instant::now());
        let threads = [GuardedThread { tid: 1, cpu: 1 }];
        let noticed = (0..40_u32).find(|number| {
            let used = Duration::from_millis(u64::from(number / 2 * 90 + number % 2 * 47));
            let sleeps = |_| Some(u64::from(*number) * 100);
            !guard.look(&threads, start + LOOKED * *number, |_| Some(used), sleeps).is_empty()
        });
        assert!(noticed.is_some_and(|number| number <= 16), "{noticed:?}");
    }

    #[test]
    fn who_comes_again_and_again_leaves_most_of_a_cpu_to_others() {
        let (end, one) = (Duration::from_secs(60), hogs(1, 0, Duration::from_secs(60)).0);
        assert!(one <= RESTLESS + LOOKED * 2, "{one:?}");
        let (taken, _) = hogs(1, 1, end);
        assert!(taken * 20 <= end, "{taken:?} of {end:?}");
        assert!(taken > one * 2, "real-time threads may begin again after a while: {taken:?}");
    }

    #[test]
    fn sessions_that_end_before_anybody_looks_count_and_one_of_them_does_no_harm() {
        let closed_after = |sessions: u32| {
            let (mut guard, start) = (SleepGuard::default(), Instant::now());
            for number in 0..20 {
                if number < sessions {
                    let thread = GuardedThread { tid: 5 + number as i32, cpu: 1 };
                    guard.add_ended(thread, Duration::from_millis(45));
                }
                let now = start + LOOKED * number;
                assert_eq!(guard.look(&[], now, |_| None, |_| None), [0; 0], "none is left");
            }
            guard.closed_flag(1);
            guard.look(&[], start + LOOKED * 20, |_| None, |_| None);
            guard.closed_flag(1).load(Ordering::Acquire)
        };
        assert!(closed_after(20) && !closed_after(1));
    }

    #[test]
    fn nobody_goes_before_its_time_and_who_has_ended_is_forgotten() {
        let look = Duration::from_millis(50);
        let (passed, _) = first_calmed(&[(0, 50, Some(0))], look).unwrap();
        assert!(passed >= RESTLESS, "{passed:?}");
        let (mut guard, start) = (SleepGuard::default(), Instant::now());
        for number in 0..100 {
            // Each is gone at the next look but one; the CPU rests between them.
            let tid = (number / 3) as i32;
            let passed = look * number;
            let used = |_| (number % 3 < 2).then_some(look * (number % 3));
            let threads = [GuardedThread { tid, cpu: 0 }];
            assert_eq!(guard.look(&threads, start + passed, used, |_| None), [0; 0]);
            assert!(guard.seen.len() <= 1, "{guard:?}");
        }
    }
}

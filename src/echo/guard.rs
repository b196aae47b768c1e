//! Notices real-time threads that leave their CPU no rest, and makes ordinary tasks of them: a
//! stream of bytes that is always there keeps one awake, or several in turn. They would have their
//! CPU for themselves until the kernel throttles them, 950 ms of every second.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    mem,
    time::{Duration, Instant},
};

use crate::sys::{faults::ThreadUsage, sched, usage::thread_cpu_time};

/// How long threads may leave their CPU no rest. A message takes some 10 us, and between two
/// messages an honest peer's thread sleeps.
const RESTLESS: Duration = Duration::from_millis(200);

/// A thread that sleeps more seldom hardly does.
const SLEEP_EVERY: Duration = Duration::from_millis(10);

/// Looks that come sooner are none: whoever knocks at the door makes the echo look.
const LOOK: Duration = Duration::from_millis(40);

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
    /// Absent where its CPU was not busy, so that nobody asked, and where nobody could say.
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
    /// Since when the threads of a CPU leave it no rest.
    restless: BTreeMap<u32, Instant>,
}

impl SleepGuard {
    /// Makes ordinary tasks of those of `threads` that have left their CPU no rest for too long,
    /// so that it has time for others. Returns which.
    pub(super) fn calm(&mut self, threads: &[GuardedThread]) -> Vec<i32> {
        let sleeps = |tid| ThreadUsage::of_thread(tid).map(|usage| usage.voluntary_switches);
        let culprits = self.look(threads, Instant::now(), thread_cpu_time, sleeps);
        culprits.into_iter().filter(|tid| sched::make_ordinary(*tid).is_ok()).collect()
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
        let (before, since) = (mem::take(&mut self.seen), mem::take(&mut self.restless));
        let mut culprits = Vec::new();
        for (cpu, mut threads) in self.spent(threads, &before, used) {
            if is_busy(&threads, passed) {
                threads.iter_mut().for_each(|thread| self.ask(thread, &before, &sleeps));
            }
            let of_cpu = restless(threads, passed);
            if of_cpu.is_empty() {
                continue;
            }
            let since = since.get(&cpu).copied().unwrap_or(now);
            if now - since < RESTLESS {
                self.restless.insert(cpu, since);
            } else {
                // What stays real-time begins anew: it may have waited for those that go.
                culprits.extend(of_cpu);
            }
        }
        culprits
    }

    /// What the threads of each CPU have used since `before`; all that it has used of one that was
    /// not there yet.
    fn spent(
        &mut self,
        threads: &[GuardedThread],
        before: &BTreeMap<i32, Seen>,
        used: impl Fn(i32) -> Option<Duration>,
    ) -> BTreeMap<u32, Vec<Spent>> {
        let mut spent = BTreeMap::<u32, Vec<Spent>>::new();
        for &GuardedThread { tid, cpu } in threads {
            // Else it has ended.
            let Some(used) = used(tid) else { continue };
            self.seen.insert(tid, Seen { used, slept: None });
            let used =
                used.saturating_sub(before.get(&tid).map_or(Duration::ZERO, |seen| seen.used));
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

/// The threads of one CPU that must become ordinary tasks so that those that stay leave it rest;
/// none where all of them do.
fn restless(mut threads: Vec<Spent>, passed: Duration) -> Vec<i32> {
    threads.sort_by_key(|thread| Reverse(thread.used));
    let mut culprits = Vec::new();
    while let Some(place) = culprit(&threads, passed) {
        culprits.push(threads.remove(place).tid);
    }
    culprits
}

/// Which of `threads`, the busiest first, is the first to go. Together they leave no rest where
/// those that hardly sleep run most of the time (what else they would use is spent on interrupts,
/// or by the host of a guest), and where all of them run nearly all of the time: they may wake each
/// other, and each sleep often.
fn culprit(threads: &[Spent], passed: Duration) -> Option<usize> {
    let enough = passed.as_millis() / SLEEP_EVERY.as_millis();
    let hardly_sleeps = |thread: &Spent| u128::from(thread.slept) < enough;
    let awake = threads.iter().filter(|thread| hardly_sleeps(thread)).map(|thread| thread.used);
    if awake.sum::<Duration>() * 2 >= passed {
        return threads.iter().position(hardly_sleeps);
    }
    (used(threads) * 10 >= passed * 9).then_some(0)
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

    /// Who goes of threads 0, 1, ... of one CPU that used and slept so much in 50 ms.
    fn culprits(threads: &[(u64, u64)]) -> Vec<i32> {
        let spent = threads.iter().zip(0..).map(|(&(used_ms, slept), tid)| Spent {
            tid,
            used: Duration::from_millis(used_ms),
            slept,
        });
        restless(spent.collect(), LOOKED)
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
            (&[(14, 500), (14, 500), (14, 500)], &[]),
            (&[(8, 0), (8, 0), (8, 0)], &[]),
            (&[], &[]),
        ] {
            assert_eq!(culprits(threads), expected, "{threads:?}");
        }
    }

    /// Looks at threads with these CPUs, so far apart for a second in which each, every 50 ms, uses
    /// and sleeps so much more. Those that must go, as places in `threads`, the first time some do.
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
            assert!(!is_noticed(40, ten), "busy, and asleep now and then: {look:?}");
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

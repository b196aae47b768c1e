//! The loops of the `interactive` probe: what they count beside a hog of known duty in simulated
//! time, and, counted and not timed, that they allocate nothing and take no page fault.

use std::sync::Arc;

use super::{
    alloc,
    faults::{page_faults, undisturbed},
};
use tardy_hot::{
    clock::now_ns,
    frames::{
        Bursts, BusyTask, Even, FrameCounts, Frames, Rising, STEPS, TaskCpu, ThisCpu, flat_out,
        periodic,
    },
    stop::Stop,
    wakeup::{Counted, Ended, Series, Until},
};

const MS: i64 = 1_000_000;

/// A CPU that a hog has from the start of each of its periods for `busy_ns`, before all others. A
/// loop of work takes 1 ns.
struct Simulated {
    now_ns: i64,
    busy_ns: i64,
    period_ns: i64,
}

impl Simulated {
    fn beside(busy_ns: i64, period_ns: i64) -> Self {
        Self { now_ns: 0, busy_ns, period_ns }
    }

    /// Waits until the hog leaves the CPU.
    fn dispatch(&mut self) {
        let into_ns = self.now_ns % self.period_ns;
        self.now_ns += (self.busy_ns - into_ns).max(0);
    }
}

impl TaskCpu for Simulated {
    fn now_ns(&mut self) -> i64 {
        self.now_ns
    }

    fn sleep_until(&mut self, t_ns: i64) -> Result<(), i32> {
        self.now_ns = self.now_ns.max(t_ns);
        self.dispatch();
        Ok(())
    }

    fn work(&mut self, loops: u64) {
        let mut left_ns = i64::try_from(loops).unwrap();
        while left_ns > 0 {
            self.dispatch();
            let free_ns = self.period_ns - self.now_ns % self.period_ns;
            let own_ns = left_ns.min(free_ns);
            self.now_ns += own_ns;
            left_ns -= own_ns;
        }
    }
}

fn until(end_ns: i64) -> Until {
    Until { end_ns, samples: u64::MAX, stop_over_ns: i64::MAX }
}

/// The counts of a task with `work_ns` in each of its periods, and its series, after 10 s.
fn periodic_beside(
    mut place: Simulated,
    period_ns: i64,
    work_ns: u64,
) -> (FrameCounts, Arc<Series>) {
    let series: Arc<Series> = Arc::default();
    let mut frames = Frames::new(0, period_ns, Even(work_ns));
    let mut sink = Counted(Arc::clone(&series));
    let ended = periodic(&mut frames, &mut place, &mut sink, until(10_000 * MS), &Stop::new());
    assert_eq!(ended, (Ended::Done, u64::MAX - series.tally.totals().count));
    assert!(frames.next_ns >= 10_000 * MS);
    (frames.counts, series)
}

#[test]
fn a_game_has_what_a_hog_of_known_duty_leaves() {
    for (busy_ms, left) in [(0, 100.0), (3, 70.0), (7, 30.0)] {
        let mut place = Simulated::beside(busy_ms * MS, 10 * MS);
        let series: Arc<Series> = Arc::default();
        let task = BusyTask { loops: 100 * MS as u64, frame_ns: 100 * MS };
        let mut sink = Counted(Arc::clone(&series));
        let end = flat_out(task, &mut place, &mut sink, until(10_000 * MS), &Stop::new());
        let totals = series.tally.totals();
        assert_eq!(end, (Ended::Done, u64::MAX - totals.count));
        let share = (totals.count * 10_000) as f64 / (place.now_ns / MS) as f64;
        assert!((share - left).abs() < 2.0, "{share}% beside a hog of {busy_ms} ms in 10");
        // What it did not have is how late its frames were.
        let late_ns = place.now_ns - totals.count as i64 * 100 * MS;
        assert_eq!(totals.sum_ns, late_ns);
    }
}

#[test]
fn frames_that_fit_beside_a_hog_are_all_done_in_time_and_begin_as_late_as_it_makes_them() {
    // Each begins with the hog: 3 ms late, and done after 3 + 2.5 ms.
    let (counts, series) = periodic_beside(Simulated::beside(3 * MS, 10 * MS), 50 * MS, 2_500_000);
    assert_eq!(counts, FrameCounts { met: 200, loops: 200 * 2_500_000, ..FrameCounts::default() });
    let totals = series.tally.totals();
    assert_eq!((totals.count, totals.min_ns, totals.max_ns), (200, 3 * MS, 3 * MS));
}

#[test]
fn of_frames_that_do_not_fit_those_are_left_out_that_begin_before_the_one_before_is_done() {
    // 6 ms of work in 20 ms, beside a hog that leaves 3 of 10: done after 20 ms, in time.
    let (counts, _) = periodic_beside(Simulated::beside(7 * MS, 10 * MS), 20 * MS, 6_000_000);
    assert_eq!((counts.met, counts.overrun), (500, 0));
    // One more makes it 28 ms: 8 late, and the next is left out.
    let (counts, _) = periodic_beside(Simulated::beside(7 * MS, 10 * MS), 20 * MS, 7_000_000);
    let late =
        FrameCounts { met: 0, overrun: 250, overrun_ns: 250 * 8 * MS, loops: 250 * 7_000_000 };
    assert_eq!(counts, late);
}

#[test]
fn a_frame_whose_period_is_over_when_the_task_wakes_up_is_left_out_with_those_that_began() {
    // Of each second the hog has 230 ms: woken once in that time, 230 ms late, after five starts.
    let (counts, series) =
        periodic_beside(Simulated::beside(230 * MS, 1_000 * MS), 50 * MS, 2_500_000);
    assert_eq!((counts.met, counts.overrun), (10 * 15, 0));
    let totals = series.tally.totals();
    assert_eq!((totals.count, totals.max_ns), (10 * 16, 230 * MS));
}

#[test]
fn bursts_rise_by_hundredths_and_go_on_where_frames_were_left_out() {
    let mut bursts = Rising::new(5);
    let round: Vec<u64> = (0..STEPS).map(|_| bursts.take()).collect();
    assert_eq!((round[0], round[1], round[100]), (0, 5, 500));
    assert_eq!(bursts.take(), 0);
    bursts.skip(99);
    assert_eq!((bursts.take(), bursts.take()), (500, 0));
    let mut even = Even(7);
    even.skip(3);
    assert_eq!(even.take(), 7);
}

#[test]
fn a_latency_over_the_limit_and_a_number_of_samples_end_it() {
    let stop = Stop::new();
    let mut place = Simulated::beside(3 * MS, 10 * MS);
    let mut frames = Frames::new(0, 20 * MS, Even(1));
    let mut sink = Counted(Arc::default());
    let three = Until { end_ns: i64::MAX, samples: 3, stop_over_ns: 3 * MS };
    let ended = periodic(&mut frames, &mut place, &mut sink, three, &stop);
    assert_eq!((ended, frames.next_ns), ((Ended::Done, 0), 60 * MS));
    let over = Until { stop_over_ns: 3 * MS - 1, ..three };
    assert_eq!(periodic(&mut frames, &mut place, &mut sink, over, &stop), (Ended::Stopped, 3));
    let task = BusyTask { loops: 1, frame_ns: 1 };
    assert_eq!(flat_out(task, &mut place, &mut sink, three, &stop), (Ended::Stopped, 2));
}

/// What `end` finds after `begin` and a hundred frames of each loop, the first of which warmed up.
fn between<T>(begin: impl Fn() -> T, end: impl Fn(T) -> u64) -> [u64; 2] {
    let (stop, mut sink) = (Stop::new(), Counted(Arc::default()));
    let samples = |samples| Until { samples, ..until(i64::MAX) };
    let mut frames = Frames::new(now_ns(), 20_000, Rising::new(1));
    let task = BusyTask { loops: 100, frame_ns: 100 };
    periodic(&mut frames, &mut ThisCpu, &mut sink, samples(3), &stop);
    flat_out(task, &mut ThisCpu, &mut sink, samples(3), &stop);
    let before = begin();
    let ended = periodic(&mut frames, &mut ThisCpu, &mut sink, samples(100), &stop);
    let of_periodic = end(before);
    assert_eq!(ended, (Ended::Done, 0));
    let before = begin();
    let ended = flat_out(task, &mut ThisCpu, &mut sink, samples(100), &stop);
    let found = [of_periodic, end(before)];
    assert_eq!(ended, (Ended::Done, 0));
    found
}

#[test]
fn no_turn_allocates() {
    assert_eq!(between(|| alloc::arm(3), |()| alloc::disarm()), [0, 0], "allocations");
}

#[test]
fn no_turn_takes_a_page_fault() {
    page_faults();
    let count = || between(page_faults, |before| page_faults() - before);
    assert_eq!(undisturbed(count, |found| *found == [0, 0]), [0, 0], "page faults");
}

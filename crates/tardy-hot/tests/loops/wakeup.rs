//! The loop's decisions, with made-up waits: when it continues, when it ends, what it counts.

use core::ffi::c_int;
use std::{collections::VecDeque, sync::Arc};

use tardy_hot::{
    clock::now_ns,
    ring::ring,
    stop::Stop,
    wakeup::{Absolute, Counted, Ended, Kept, Periodic, Series, Until, Wake, run},
};

const MS: i64 = 1_000_000;
const FOREVER: Until = Until { end_ns: i64::MAX, samples: u64::MAX, stop_over_ns: i64::MAX };

/// What one made-up wait comes to.
enum Turn {
    /// A wake-up this late, in ns; the loop's own clock read adds a little.
    Late(i64),
    /// A wait that failed.
    Fails(c_int),
    /// As `Fails`, while somebody sets the flag.
    FailsAndStops(c_int, Arc<Stop>),
}

/// Waits as scripted; the time of expiry `n` is `n` for the loop's end.
struct ScriptedWake {
    turns: VecDeque<Turn>,
    waits: u64,
    next_ns: i64,
    misses: u64,
}

impl ScriptedWake {
    fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self { turns: turns.into_iter().collect(), waits: 0, next_ns: 0, misses: 0 }
    }
}

impl Wake for ScriptedWake {
    fn wait(&mut self) -> Result<i64, c_int> {
        self.waits += 1;
        match self.turns.pop_front().expect("the loop waits more often than it should") {
            Turn::Late(late_ns) => Ok(now_ns() - late_ns),
            Turn::Fails(errno) => Err(errno),
            Turn::FailsAndStops(errno, stop) => {
                stop.set();
                Err(errno)
            }
        }
    }

    fn advance(&mut self, _latency_ns: i64) -> u64 {
        self.next_ns += 1;
        self.misses
    }

    fn next_ns(&self) -> i64 {
        self.next_ns
    }
}

fn late(ns: &[i64]) -> ScriptedWake {
    ScriptedWake::new(ns.iter().map(|ns| Turn::Late(*ns)))
}

fn measure(wake: &mut ScriptedWake, until: Until) -> (Ended, Arc<Series>, bool) {
    let (series, stop) = (Arc::new(Series::default()), Stop::new());
    let ended = run(wake, &mut Counted(Arc::clone(&series)), until, &stop);
    (ended, series, stop.is_set())
}

#[test]
fn absolute_skips_the_periods_that_have_passed_and_counts_them() {
    for (latency, missed) in [
        (-MS, 0),
        (0, 0),
        (MS - 1, 0),
        (MS, 1),
        (MS + 1, 1),
        (2 * MS - 1, 1),
        (2 * MS, 2),
        (1_000 * MS, 1_000),
    ] {
        let mut wake = Absolute::new(5 * MS, MS);
        assert_eq!(wake.advance(latency), missed, "late by {latency}");
        let next = wake.next_ns();
        assert_eq!(next, 5 * MS + (missed as i64 + 1) * MS, "late by {latency}");
        assert!(next > 5 * MS + latency, "the next expiry lies ahead");
    }
}

#[test]
fn the_loop_passes_missed_periods_on() {
    let mut wake = late(&[0, 0, 0]);
    wake.misses = 7;
    let (_, series, _) = measure(&mut wake, Until { samples: 3, ..FOREVER });
    assert_eq!(series.tally.totals().missed, 21);
}

#[test]
fn an_early_wakeup_is_kept_with_its_sign_and_counted_apart() {
    let mut wake = late(&[-3_600_000 * MS, MS]);
    let (_, series, _) = measure(&mut wake, Until { samples: 2, ..FOREVER });
    let totals = series.tally.totals();
    assert_eq!((totals.count, totals.early), (2, 1));
    assert!(totals.min_ns < -3_000_000 * MS && totals.max_ns >= MS, "{totals:?}");
}

#[test]
fn the_first_latency_over_the_limit_is_recorded_and_ends_every_loop() {
    let mut wake = late(&[0, 0, 7_200_000 * MS, 0]);
    let (ended, series, stopped) =
        measure(&mut wake, Until { stop_over_ns: 3_600_000 * MS, ..FOREVER });
    assert_eq!((ended, stopped), (Ended::Stopped, true));
    assert_eq!((wake.waits, series.tally.totals().count), (3, 3));
}

#[test]
fn no_more_samples_are_taken_than_asked_for() {
    for samples in [0, 1, 5] {
        let mut wake = late(&[0; 9]);
        let (ended, series, stopped) = measure(&mut wake, Until { samples, ..FOREVER });
        assert_eq!((ended, stopped), (Ended::Done, false));
        assert_eq!((wake.waits, series.tally.totals().count), (samples, samples));
    }
}

#[test]
fn no_expiry_at_or_after_the_end_is_waited_for() {
    let mut wake = late(&[0; 9]);
    let (ended, series, _) = measure(&mut wake, Until { end_ns: 4, ..FOREVER });
    assert_eq!((ended, series.tally.totals().count), (Ended::Done, 4));
}

#[test]
fn periods_after_the_end_are_not_missed() {
    // The first of them was due 10 ms ago, and the end was 4 periods after that.
    let first_ns = tardy_hot::clock::now_ns() - 10 * MS;
    for (end_ns, missed) in [(first_ns + 4 * MS, 3), (first_ns + 4 * MS + 1, 4), (first_ns + 1, 0)]
    {
        let series = Arc::new(Series::default());
        let mut wake = Absolute::new(first_ns, MS);
        let until = Until { end_ns, ..FOREVER };
        run(&mut wake, &mut Counted(Arc::clone(&series)), until, &Stop::new());
        let totals = series.tally.totals();
        assert_eq!((totals.count, totals.missed), (1, missed), "{end_ns}");
    }
}

#[test]
fn a_wait_that_a_signal_ended_is_taken_up_again() {
    let turns = [Turn::Late(0), Turn::Fails(libc::EINTR), Turn::Fails(libc::EINTR), Turn::Late(0)];
    let mut wake = ScriptedWake::new(turns);
    let (ended, series, _) = measure(&mut wake, Until { samples: 2, ..FOREVER });
    assert_eq!((ended, wake.waits, series.tally.totals().count), (Ended::Done, 4, 2));
}

#[test]
fn a_signal_after_the_flag_was_set_ends_the_loop_without_a_sample() {
    for errno in [libc::EINTR, libc::EINVAL] {
        let stop = Arc::new(Stop::new());
        let turns = [Turn::Late(0), Turn::FailsAndStops(errno, Arc::clone(&stop))];
        let (mut wake, series) = (ScriptedWake::new(turns), Arc::new(Series::default()));
        let ended = run(&mut wake, &mut Counted(Arc::clone(&series)), FOREVER, &stop);
        assert_eq!((ended, series.tally.totals().count), (Ended::Stopped, 1));
    }
}

#[test]
fn a_wait_that_fails_ends_the_loop_with_its_number() {
    let mut wake = ScriptedWake::new([Turn::Late(0), Turn::Fails(libc::EINVAL)]);
    let (ended, series, stopped) = measure(&mut wake, FOREVER);
    assert_eq!((ended, stopped), (Ended::Failed(libc::EINVAL), false));
    assert_eq!(series.tally.totals().count, 1, "what was measured before stays");
}

#[test]
fn a_flag_that_is_set_beforehand_ends_the_loop_after_one_turn() {
    let (series, stop) = (Arc::new(Series::default()), Stop::new());
    stop.set();
    let mut wake = late(&[0; 3]);
    let ended = run(&mut wake, &mut Counted(Arc::clone(&series)), FOREVER, &stop);
    assert_eq!((ended, wake.waits), (Ended::Stopped, 1));
}

#[test]
fn kept_samples_are_counted_and_handed_on_with_their_expiry() {
    let (series, stop) = (Arc::new(Series::default()), Stop::new());
    let (writer, mut reader) = ring(8);
    let mut sink = Kept(Arc::clone(&series), writer);
    let before = now_ns();
    let until = Until { samples: 3, ..FOREVER };
    // Early by more than any machine stands still.
    run(&mut late(&[0, MS, -3_600_000 * MS]), &mut sink, until, &stop);
    let mut kept = Vec::new();
    reader.drain(|sample| kept.push(sample));
    let totals = series.tally.totals();
    assert_eq!((kept.len(), totals.count, totals.early), (3, 3, 1));
    assert_eq!(kept.iter().map(|sample| sample.latency_ns).sum::<i64>(), totals.sum_ns);
    let woke = kept.iter().map(|sample| sample.t_ns + sample.latency_ns);
    assert!(woke.collect::<Vec<_>>().is_sorted_by(|a, b| before <= *a && a <= b));
}

/// The kernel tells of these expiries only at the next read; they are the same stall's all the
/// same, not a second late sample.
#[test]
fn a_stall_between_the_read_and_the_clock_is_reported_once() {
    // SAFETY: has no preconditions.
    let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
    let first_ns = now_ns() + 5 * MS;
    let at = |ns| tardy_hot::clock::to_timespec(ns);
    let setting = libc::itimerspec { it_interval: at(MS), it_value: at(first_ns) };
    let (flags, none) = (libc::TFD_TIMER_ABSTIME, core::ptr::null_mut());
    // SAFETY: `setting` is valid, and no old value is asked for.
    assert_eq!(unsafe { libc::timerfd_settime(timer, flags, &raw const setting, none) }, 0);
    let mut wake = Periodic::new(timer, first_ns, MS);
    let (mut periods, mut stalled_until) = (0, 0);
    for turn in 0..20 {
        let expiry_ns = wake.wait().expect("a timerfd that works");
        assert!(expiry_ns > stalled_until, "turn {turn}: an expiry in a stall that was reported");
        if turn % 5 == 0 {
            let until_ns = now_ns() + 7 * MS;
            while now_ns() < until_ns {}
        }
        stalled_until = now_ns();
        let missed = wake.advance(stalled_until - expiry_ns);
        assert!(turn % 5 != 0 || missed >= 6, "turn {turn}: {missed} periods missed");
        periods += 1 + missed as i64;
        assert_eq!(wake.next_ns(), first_ns + periods * MS, "every period is reported once");
    }
    // SAFETY: the descriptor is this test's own.
    unsafe { libc::close(timer) };
}

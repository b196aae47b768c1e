//! When a helper of a run works: its ticks on a grid, and its pauses in between.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use tardy_hot::{clock::now_ns, pause::Pause, stop::Stop};

use super::{cadence::Cadence, helper_use::HelperUse};

/// Work in steps pauses after so long, ns.
const PIECE_NS: i64 = 500_000;

/// Waits until a helper may begin another piece of work.
pub(super) fn step_aside(cadence: Cadence, used: &mut HelperUse, finished: &AtomicBool) {
    if let Some(next_ns) = cadence.before_next_piece(now_ns()) {
        used.rest();
        wait_until(next_ns, finished);
    }
}

/// For work in steps: waits after one where together they took as long as a piece of work may, or
/// where the next could last until after an expiry.
pub(super) fn pauses(
    cadence: Cadence,
    used: &mut HelperUse,
    finished: &AtomicBool,
) -> impl FnMut() {
    let mut since_ns = now_ns();
    move || {
        let now = now_ns();
        if now - since_ns >= PIECE_NS || cadence.is_tight(now) {
            step_aside(cadence, used, finished);
            since_ns = now_ns();
        }
    }
}

/// How long a helper waits for a pause of the measuring loop, ns: longer than most round trips.
const PATIENCE_NS: i64 = 10_000_000;

/// Does `work` while the measuring loop pauses, if `pausing` says that it can; `work` is told
/// whether it does. In the middle of a message a helper would keep waiting what carries it:
/// ksoftirqd is an ordinary task.
pub(super) fn in_pause<R>(pausing: Option<&Stop>, work: impl FnOnce(bool) -> R) -> R {
    let pause = pausing.map(Stop::pause).filter(|pause| pause.begin(PATIENCE_NS));
    let done = work(pause.is_some());
    pause.into_iter().for_each(Pause::end);
    done
}

/// The length of an interval that begins `elapsed_ns` after the start: as planned, and a thousandth
/// of the run so far if that was to be shorter, or to have no end.
pub(super) const fn interval_ns(planned_ns: i64, elapsed_ns: i64) -> i64 {
    let grown_ns = elapsed_ns / 1000;
    if grown_ns > planned_ns { grown_ns } else { planned_ns }
}

/// The first moment after `now` that lies whole steps after `due_ns`: a tick that comes a little
/// late must not put off the next one by a whole step.
pub(super) fn on_grid(due_ns: i64, step_ns: i64, now: i64) -> i64 {
    let step_ns = step_ns.max(1);
    due_ns + ((now - due_ns).max(0) / step_ns + 1) * step_ns
}

/// Sleeps until `due_ns`, or until everything has been measured: then true.
pub(super) fn wait_until(due_ns: i64, finished: &AtomicBool) -> bool {
    loop {
        if finished.load(Ordering::Acquire) {
            return true;
        }
        let left_ns = due_ns - now_ns();
        if left_ns <= 0 {
            return false;
        }
        thread::park_timeout(Duration::from_nanos(left_ns.unsigned_abs()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    /// Intervals that a run of this length has where one of them ends at each tick that is due.
    fn intervals(planned_ns: i64, length_ns: i64) -> usize {
        let tick_ns = planned_ns.min(SECOND_NS);
        let (mut due_ns, mut now, mut written) = (planned_ns, 0, 0);
        while now < length_ns {
            now += tick_ns;
            if now >= due_ns {
                due_ns = on_grid(due_ns, interval_ns(planned_ns, now), now);
                written += 1;
            }
        }
        written
    }

    #[test]
    fn a_run_of_any_length_has_a_few_thousand_intervals() {
        assert_eq!(intervals(SECOND_NS, 1_000 * SECOND_NS), 1_000, "as planned");
        let days = |days: i64| intervals(SECOND_NS, days * 86_400 * SECOND_NS);
        assert!((3_000..6_000).contains(&days(1)), "{}", days(1));
        assert!((5_000..10_000).contains(&days(30)), "{}", days(30));
        assert_eq!(intervals(86_400_000_000, 86_400 * SECOND_NS), 1_000, "a day that was planned");
    }
}

//! How much work a CPU does in a millisecond: measured before the run, and again after it.
//!
//! By the CPU time that the kernel accounts to the thread, not by the clock, so that a load which
//! takes turns with it does not count. What shares its core, or takes the CPU from the whole
//! machine, still does: of several times the shortest is taken.

use std::{io, sync::mpsc::Sender, thread};

use tardy_hot::{clock::now_ns, frames::work};

use super::FigureValue;
use crate::{run::WORK_REPEATS, setup::threads::ThreadConfig, sys::clock::thread_cpu_ns};

/// One time is about so long, ns.
const TRIAL_NS: i64 = 1_000_000;
/// The number of trials, of which the shortest counts.
const TRIALS: usize = 4;
/// The CPU works for this time before it is timed: it may have to reach its frequency, ns.
const WARM_UP_NS: i64 = 20_000_000;

/// CPU time of `loops`, ns.
fn cpu_ns_of(loops: u64) -> i64 {
    let before_ns = thread_cpu_ns();
    work(loops);
    (thread_cpu_ns() - before_ns).max(1)
}

/// [`WORK_REPEATS`] measurements of the loops that the calling thread does in a millisecond.
pub(super) fn measure() -> Vec<f64> {
    let (mut loops, mut warm_ns) = (1_000_u64, 0);
    while warm_ns < WARM_UP_NS {
        let took_ns = cpu_ns_of(loops);
        warm_ns += took_ns;
        // At most twice as many: the first times may be too short to be worth anything.
        let share = TRIAL_NS as f64 / took_ns as f64;
        loops = ((loops as f64 * share.clamp(0.5, 2.0)) as u64).max(1_000);
    }
    let best = || (0..TRIALS).map(|_| cpu_ns_of(loops)).min().unwrap_or(TRIAL_NS);
    (0..WORK_REPEATS).map(|_| loops as f64 * 1e6 / best() as f64).collect()
}

/// The same by a thread that runs on `terms`.
///
/// # Errors
/// The thread cannot be made, or not run on these terms.
pub(super) fn measure_on(terms: &ThreadConfig) -> io::Result<Vec<f64>> {
    let terms = terms.clone();
    let measuring = move || terms.apply().map(|_| measure());
    let thread = thread::Builder::new().name("tardy/work".into()).spawn(measuring)?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that measures work died")))
}

/// Says in the figure at this place how fast the CPU was `before` the run, which began at
/// `start_ns`, and how fast it is now that nothing is measured.
pub(super) fn send((figure, to): (usize, &Sender<FigureValue>), before: &[f64], start_ns: i64) {
    let after = measure();
    let ended_ns = now_ns();
    let both = before.iter().map(|value| (start_ns, *value));
    for (end_ns, value) in both.chain(after.into_iter().map(|value| (ended_ns, value))) {
        // A receiver that is gone does not need the value.
        let _ = to.send(FigureValue { figure, end_ns, value });
    }
}

/// The fastest of them, in whole loops per millisecond.
pub(super) fn fastest(speeds: &[f64]) -> u64 {
    speeds.iter().copied().fold(1.0, f64::max) as u64
}

/// The loops of work that takes `work_ns` alone; at least one if it takes any time.
pub(super) fn loops_of(work_ns: i64, loops_per_ms: u64) -> u64 {
    let loops = u128::from(work_ns.unsigned_abs()) * u128::from(loops_per_ms) / 1_000_000;
    u64::try_from(loops).unwrap_or(u64::MAX).max(u64::from(work_ns > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_as_long_as_its_loops() {
        let speeds = measure();
        assert_eq!(speeds.len(), WORK_REPEATS);
        let speed = fastest(&speeds);
        assert!(speed > 1_000 && speeds.iter().all(|each| *each <= speed as f64 + 1.0));
        // By the same clock, and by no other: what else the machine does takes turns. A core that
        // another one shared, but only while the speed was measured, is measured again.
        let is_as_long = || {
            let speed = fastest(&measure());
            (0..8).all(|_| cpu_ns_of(4 * speed) > 3 * TRIAL_NS)
        };
        assert!((0..1_000).any(|_| is_as_long()), "work is too short each time");
    }
}

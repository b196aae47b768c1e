//! Sink for wake-ups with a computation phase. It wraps another sink.
//!
//! Per turn it does a given number of loops of [`crate::frames::work`], reads the clock once more,
//! and records the response: from the programmed expiry to the end of the work. All of that lies
//! after the clock read of the wake-up.

use std::sync::Arc;

use crate::{
    clock,
    frames::work,
    ring::Sample,
    wakeup::{Series, Sink},
};

/// Does the work of each turn, and hands every sample to `inner`.
#[derive(Debug)]
pub struct Worked<S> {
    /// Keeps the wake-ups.
    pub inner: S,
    /// Takes the responses.
    pub response: Arc<Series>,
    /// The work of each turn.
    pub loops: u64,
    /// The period, ns; 0 without a period.
    pub period_ns: i64,
    /// Periods that the last wake-up alone has missed.
    pub wakeup_missed: u64,
}

impl<S: Sink> Sink for Worked<S> {
    #[inline(always)]
    fn take(&mut self, sample: Sample) {
        self.inner.take(sample);
    }

    #[inline(always)]
    fn end_turn(&mut self, sample: Sample) -> i64 {
        work(self.loops);
        let response_ns = clock::now_ns() - sample.t_ns;
        self.response.record(response_ns);
        self.wakeup_missed =
            sample.latency_ns.checked_div(self.period_ns).unwrap_or(0).max(0) as u64;
        response_ns
    }

    /// The first of them, those that the wake-up alone has missed, are those of `inner` too.
    #[inline(always)]
    fn miss(&mut self, periods: u64) {
        self.response.tally.add_missed(periods);
        self.inner.miss(self.wakeup_missed.min(periods));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        stop::Stop,
        wakeup::{Absolute, Counted, Ended, Until, run},
    };

    #[test]
    fn a_response_ends_with_the_work_and_its_periods_are_missed_where_that_takes_longer() {
        let [wakeups, response]: [Arc<Series>; 2] = Default::default();
        let period_ns = 1_000_000;
        // Longer than a period on any machine: the least of some, for a stall makes one look long.
        let least_ns = |loops| {
            let took_ns = || {
                let before_ns = clock::now_ns();
                work(loops);
                clock::now_ns() - before_ns
            };
            (0..5).map(|_| took_ns()).min().unwrap_or(0)
        };
        let mut loops = 1_000;
        while least_ns(loops) <= 4 * period_ns {
            loops *= 2;
        }
        let inner = Counted(Arc::clone(&wakeups));
        let mut sink =
            Worked { inner, response: Arc::clone(&response), loops, period_ns, wakeup_missed: 0 };
        let mut wake = Absolute::new(clock::now_ns() + period_ns, period_ns);
        let until = Until { end_ns: i64::MAX, samples: 20, stop_over_ns: i64::MAX };
        assert_eq!(run(&mut wake, &mut sink, until, &Stop::new()), Ended::Done);
        let (wakeups, response) = (wakeups.tally.totals(), response.tally.totals());
        assert_eq!((wakeups.count, response.count), (20, 20));
        assert!(response.missed >= 20, "{response:?}");
        assert!(response.missed >= wakeups.missed + 20, "{wakeups:?} {response:?}");
        assert!(response.sum_ns > wakeups.sum_ns, "{wakeups:?} {response:?}");
    }
}

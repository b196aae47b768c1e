//! The order of tasks: the tasks of a run execute one after another, each in its share of the time.

use std::sync::atomic::{AtomicUsize, Ordering};

use tardy_hot::{
    clock::now_ns,
    frames::{TaskCpu, ThisCpu},
    stop::Stop,
};

/// A task begins this long before its turn to look whether the one before it has ended, ns.
const AHEAD_NS: i64 = 1_000_000;

/// The turn that may begin: all before it have ended.
#[derive(Debug, Default)]
pub(super) struct TaskOrder(AtomicUsize);

impl TaskOrder {
    /// Sleeps until shortly before the time `from_ns` of turn `number`, and on until all before it
    /// have ended; or `stop` is set. Returns when it may begin.
    pub(super) fn wait(&self, number: usize, from_ns: i64, stop: &Stop) -> i64 {
        let mut look_ns = from_ns - AHEAD_NS;
        while !stop.is_set() {
            let is_next = self.0.load(Ordering::Acquire) >= number;
            if is_next && now_ns() >= look_ns {
                break;
            }
            if now_ns() >= look_ns {
                look_ns = now_ns() + AHEAD_NS;
            }
            // A signal that ends it early comes with the stop flag, or changes nothing.
            let _ = ThisCpu.sleep_until(look_ns);
        }
        let now = now_ns();
        if now < from_ns { from_ns } else { now + AHEAD_NS }
    }

    /// Turn `number` has ended.
    pub(super) fn ended(&self, number: usize) {
        self.0.fetch_max(number + 1, Ordering::AcqRel);
    }
}

/// The share of turn `number` of `of` in the time from `from_ns` to `to_ns`, which may have no end.
pub(super) const fn share(from_ns: i64, to_ns: i64, number: usize, of: usize) -> (i64, i64) {
    if to_ns == i64::MAX {
        return (from_ns, to_ns);
    }
    let each_ns = (to_ns - from_ns) / of as i64;
    let own_ns = from_ns + each_ns * number as i64;
    (own_ns, if number + 1 == of { to_ns } else { own_ns + each_ns })
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    #[test]
    fn shares_are_even_follow_each_other_and_end_with_the_whole() {
        let shares: Vec<_> = (0..3).map(|number| share(100, 201, number, 3)).collect();
        assert_eq!(shares, [(100, 133), (133, 166), (166, 201)]);
        assert_eq!(share(100, i64::MAX, 0, 1), (100, i64::MAX));
    }

    #[test]
    fn a_turn_begins_when_all_before_it_have_ended_however_late_that_is() {
        let (order, stop) = (Arc::new(TaskOrder::default()), Arc::new(Stop::new()));
        let long_ago_ns = now_ns() - 1_000_000_000;
        let (others, flag) = (Arc::clone(&order), Arc::clone(&stop));
        let second = thread::spawn(move || (others.wait(1, long_ago_ns, &flag), now_ns()));
        let ended_ns = now_ns();
        order.ended(0);
        let (first_ns, woken_ns) = second.join().unwrap();
        assert!(first_ns > ended_ns && woken_ns > ended_ns);
        let later_ns = now_ns() + 3_000_000;
        assert!(order.wait(1, later_ns, &stop) >= later_ns);
        stop.set();
        // Does not wait for turn 4, which never ends.
        order.wait(5, later_ns, &stop);
    }
}

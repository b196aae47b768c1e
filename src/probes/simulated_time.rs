//! Time that is not waited for: who records samples lets those who make them up continue to a time,
//! and writes down what came until then before the next step.

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use tardy_hot::stop::Stop;

/// How often the stop flag is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(50);

/// The side of who records; clones are of one time.
#[derive(Debug, Clone, Default)]
pub struct SimulatedTime(Arc<Shared>);

/// The side of who makes samples up. One that is dropped has ended.
#[derive(Debug)]
pub struct Follower {
    shared: Arc<Shared>,
    /// Up to here nothing need be asked.
    until_ns: AtomicI64,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Samples before this may be made up.
    until_ns: i64,
    /// Followers that have not ended.
    running: usize,
    /// Those of them that wait for a later time.
    waiting: usize,
    /// The latest time at which one ended.
    ended_ns: i64,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SimulatedTime {
    /// Stands at its beginning, with nobody to follow it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One more who follows it.
    #[must_use]
    pub fn follow(&self) -> Follower {
        self.0.state().running += 1;
        Follower { shared: Arc::clone(&self.0), until_ns: AtomicI64::new(i64::MIN) }
    }

    /// Lets all continue to `until_ns`, and waits until they are there: false once all have ended.
    #[must_use]
    pub fn advance(&self, until_ns: i64) -> bool {
        let mut state = self.0.state();
        state.until_ns = until_ns;
        state.waiting = 0;
        self.0.changed.notify_all();
        while state.waiting < state.running {
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.running > 0
    }

    /// The latest time at which one has ended.
    #[must_use]
    pub fn ended_ns(&self) -> i64 {
        self.0.state().ended_ns
    }

    /// Lets all continue as far as they like: nobody records any more.
    pub fn let_go(&self) {
        self.0.state().until_ns = i64::MAX;
        self.0.changed.notify_all();
    }
}

impl Follower {
    /// Waits until `t_ns` may be simulated, or for the stop flag.
    pub fn wait_for(&self, t_ns: i64, stop: &Stop) {
        if t_ns < self.until_ns.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.shared.state();
        let mut waits_for = None;
        while state.until_ns <= t_ns && !stop.is_set() {
            // Once for each step.
            if waits_for != Some(state.until_ns) {
                waits_for = Some(state.until_ns);
                state.waiting += 1;
                self.shared.changed.notify_all();
            }
            let waited = self.shared.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.until_ns.store(state.until_ns, Ordering::Relaxed);
    }

    /// It has made up all samples before `t_ns`, and makes up no more.
    pub fn end(&self, t_ns: i64) {
        let mut state = self.shared.state();
        state.ended_ns = state.ended_ns.max(t_ns);
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.shared.state().running -= 1;
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, thread};

    use super::*;

    #[test]
    fn nobody_is_ahead_of_the_time_and_nothing_is_left_behind_a_step() {
        let (time, made) = (SimulatedTime::new(), Arc::new(Mutex::new(Vec::new())));
        let stop = Arc::new(Stop::new());
        let maker = |end_ns: i64| {
            let (own, made, stop) = (time.follow(), Arc::clone(&made), Arc::clone(&stop));
            thread::spawn(move || {
                for t_ns in 0..end_ns {
                    own.wait_for(t_ns, &stop);
                    made.lock().unwrap().push(t_ns);
                }
                own.end(end_ns);
            })
        };
        let makers = [maker(35), maker(20)];
        let count = || made.lock().unwrap().len();
        assert_eq!((time.advance(10), count()), (true, 20));
        assert_eq!((time.advance(20), count()), (true, 40));
        assert_eq!((time.advance(30), count()), (true, 50));
        assert_eq!((time.advance(40), count()), (false, 55));
        assert_eq!(time.ended_ns(), 35);
        makers.into_iter().for_each(|maker| maker.join().unwrap());
    }

    #[test]
    fn who_waits_goes_on_when_all_is_stopped_or_nobody_records() {
        let (time, stop) = (SimulatedTime::new(), Arc::new(Stop::new()));
        let own = time.follow();
        let seen = Arc::clone(&stop);
        let waits = thread::spawn(move || own.wait_for(5, &seen));
        stop.set();
        waits.join().unwrap();
        let (own, stop) = (time.follow(), Stop::new());
        time.let_go();
        own.wait_for(5, &stop);
        drop(own);
        assert!(!time.advance(9));
    }
}

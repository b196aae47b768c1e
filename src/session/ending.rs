//! What is left of a run when nothing is measured any more: late samples that still wait to be
//! explained have a bounded time for that, and a signal ends it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::peaks::BlameScope;

/// Once nothing more comes, what still waits is explained for so long, ns.
const ALL_NS: i64 = 500_000_000;

/// And the peaks among them for so long.
const PEAKS_NS: i64 = 2_000_000_000;

/// Whether there was a signal is asked so often.
const LOOK: Duration = Duration::from_millis(5);

/// How a run ends.
pub(super) struct Ending<'a> {
    /// Somebody waits for it: a signal ended the measured time.
    pub is_awaited: bool,
    /// Whether a signal came since.
    pub is_hurried: &'a mut dyn FnMut() -> bool,
}

impl fmt::Debug for Ending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ending").field("is_awaited", &self.is_awaited).finish_non_exhaustive()
    }
}

/// What the thread that explains is told of it.
#[derive(Debug, Clone, Default)]
pub(super) struct TimeLeft {
    is_awaited: Arc<AtomicBool>,
    is_hurried: Arc<AtomicBool>,
}

impl TimeLeft {
    /// Before the thread is told that nothing more comes.
    pub(super) fn begin(&self, ending: &Ending<'_>) {
        self.is_awaited.store(ending.is_awaited, Ordering::Relaxed);
    }

    /// Waits until the thread has ended, and tells it of a signal.
    pub(super) fn wait<T>(&self, handle: &JoinHandle<T>, ending: &mut Ending<'_>) {
        while !handle.is_finished() {
            if (ending.is_hurried)() {
                self.is_hurried.store(true, Ordering::Relaxed);
            }
            thread::sleep(LOOK);
        }
    }

    /// What may still be done `waited_ns` after the end.
    pub(super) fn effort(&self, waited_ns: i64) -> BlameScope {
        let peaks_ns = if self.is_awaited.load(Ordering::Relaxed) { ALL_NS } else { PEAKS_NS };
        match waited_ns {
            _ if self.is_hurried.load(Ordering::Relaxed) => BlameScope::Nothing,
            ..ALL_NS => BlameScope::All,
            waited_ns if waited_ns < peaks_ns => BlameScope::Peaks,
            _ => BlameScope::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn efforts(is_awaited: bool) -> [BlameScope; 4] {
        let left = TimeLeft::default();
        left.begin(&Ending { is_awaited, is_hurried: &mut || false });
        [0, ALL_NS, PEAKS_NS - 1, PEAKS_NS].map(|waited_ns| left.effort(waited_ns))
    }

    #[test]
    fn what_is_left_has_a_bounded_time_and_less_where_somebody_waits() {
        let [all, peaks, nothing] = [BlameScope::All, BlameScope::Peaks, BlameScope::Nothing];
        assert_eq!(efforts(false), [all, peaks, peaks, nothing]);
        assert_eq!(efforts(true), [all, nothing, nothing, nothing]);
    }

    #[test]
    fn a_signal_ends_it_at_once() {
        let left = TimeLeft::default();
        let own = left.clone();
        // It would never end by itself.
        let handle = thread::spawn(move || {
            while own.effort(0) != BlameScope::Nothing {
                thread::yield_now();
            }
        });
        let mut asked = 0;
        let mut is_hurried = || {
            asked += 1;
            asked > 3
        };
        left.wait(&handle, &mut Ending { is_awaited: false, is_hurried: &mut is_hurried });
        handle.join().unwrap();
        assert!(asked > 3, "{asked}");
    }
}

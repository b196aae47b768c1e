//! What every measuring thread does around its loops, in whichever process it is: it takes on its
//! policy and CPU, touches its stack, counts what it uses while it measures, and checks at the end
//! that it still ran as planned.

use std::io;

use tardy_hot::{clock::now_ns, wakeup::Ended};

use super::ThreadReport;
use crate::{
    setup::threads::{Found, ThreadConfig},
    sys::{faults::ThreadUsage, memory, sched},
};

/// What came of the loops of a thread.
#[derive(Debug)]
pub(super) struct LoopEnd {
    /// Why the last of them ended.
    pub ended: Ended,
    /// What the thread used in the measured one.
    pub usage: ThreadUsage,
    /// What came after this is not measured time, `CLOCK_MONOTONIC` ns; `i64::MAX` for all is.
    pub end_ns: i64,
    /// Turns of the measured one, where that never sleeps.
    pub turns: Option<u64>,
}

impl LoopEnd {
    /// Of a measured loop that has just ended, before which the thread had used `before`.
    pub(super) fn since(before: ThreadUsage, ended: Ended) -> Self {
        let usage = ThreadUsage::of_this_thread().since(before);
        Self { ended, usage, end_ns: i64::MAX, turns: None }
    }

    /// Of a thread that never came to its measured loop.
    pub(super) fn unmeasured(ended: Ended) -> Self {
        Self { ended, usage: ThreadUsage::default(), end_ns: i64::MAX, turns: None }
    }

    /// Runs the measured loop, unless the warm-up, which `warmed` is the end of, was the last.
    pub(super) fn after_warm_up(warmed: Ended, measured: impl FnOnce() -> Ended) -> Self {
        if warmed != Ended::Done {
            return Self::unmeasured(warmed);
        }
        let before = ThreadUsage::of_this_thread();
        Self::since(before, measured())
    }
}

/// Makes the calling thread run on `terms`; without any it stays as it was born. What it runs as.
///
/// # Errors
/// What the kernel refuses.
pub(super) fn set_up(terms: Option<&ThreadConfig>) -> io::Result<Found> {
    terms.map_or_else(Found::of_this_thread, ThreadConfig::apply)
}

/// Runs the loops of the calling thread, which was `found` to run as it does after [`set_up`], and
/// reports under `name` how they went.
pub(super) fn measure(
    name: &str,
    terms: Option<&ThreadConfig>,
    found: &Found,
    loops: impl FnOnce() -> LoopEnd,
) -> ThreadReport {
    memory::touch_stack();
    let migrations_before = terms.and_then(|_| sched::migrations_of_this_thread());
    let LoopEnd { ended, usage, end_ns, turns } = loops();
    let ended_ns = now_ns().min(end_ns);
    // Others may change threads while they run, so the end counts too.
    let at_end = Found::of_this_thread().ok();
    let broken = terms
        .and_then(|terms| terms.broken_by(found).or_else(|| terms.broken_by(at_end.as_ref()?)));
    let migrations =
        sched::migrations_of_this_thread().and_then(|after| after.checked_sub(migrations_before?));
    ThreadReport { usage, broken, migrations, ended_ns, turns, ..ThreadReport::of(name, ended) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        run::Deviation,
        sys::{cpus::Cpus, sched::Policy},
    };

    fn terms() -> ThreadConfig {
        let cpu = Cpus::allowed().unwrap().iter().next().unwrap();
        ThreadConfig { policy: Policy::Other, priority: 0, cpu, slack_ns: 77 }
    }

    #[test]
    fn what_a_thread_used_and_ran_as_is_reported() {
        let terms = terms();
        let found = set_up(Some(&terms)).unwrap();
        let slept = || {
            std::thread::sleep(std::time::Duration::from_millis(1));
            Ended::Done
        };
        let report = measure("cpu0", Some(&terms), &found, || LoopEnd {
            end_ns: 5,
            ..LoopEnd::after_warm_up(Ended::Done, slept)
        });
        assert_eq!((report.ended, report.ended_ns, &report.broken), (Ended::Done, 5, &None));
        assert!(report.usage.voluntary_switches >= 1, "{report:?}");
    }

    /// The timer slack that was found instead of 77 ns.
    fn slack_found(report: &ThreadReport) -> Option<u64> {
        match &report.broken {
            Some(Deviation::Differs { found, asked, .. }) if asked.timer_slack_ns == Some(77) => {
                found.timer_slack_ns
            }
            _ => None,
        }
    }

    #[test]
    fn what_changed_before_or_within_the_loops_is_reported() {
        let terms = terms();
        let found = set_up(Some(&terms)).unwrap();
        let at_start = Found { timer_slack_ns: 78, ..found.clone() };
        let ended = || LoopEnd::unmeasured(Ended::Stopped);
        let report = measure("cpu0", Some(&terms), &at_start, ended);
        assert_eq!(slack_found(&report), Some(78));
        let report = measure("cpu0", Some(&terms), &found, || {
            crate::sys::timer::set_slack(79).unwrap();
            LoopEnd::unmeasured(Ended::Stopped)
        });
        assert_eq!(slack_found(&report), Some(79));
        let report = measure("cpu0", None, &found, || LoopEnd::unmeasured(Ended::Stopped));
        assert_eq!((report.broken, report.migrations), (None, None), "nothing was asked for");
    }

    #[test]
    fn a_warm_up_that_did_not_end_by_itself_is_the_last_loop() {
        for ended in [Ended::Stopped, Ended::Failed(5)] {
            let never = || panic!("not after {ended:?}");
            assert_eq!(LoopEnd::after_warm_up(ended, never).ended, ended);
        }
    }
}

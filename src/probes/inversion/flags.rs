//! Options of the inversion probe, and what its threads have to be.

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::{Inversion, period_ns};
use crate::{
    probes::request::{
        MeasuredCpus, PlannedProbe, ProbeFlags, ProbeRequest, SharedOptions, ThreadPriority,
    },
    setup::{
        Choice, Requested,
        threads::{self, ThreadConfig},
    },
    sys::sched::Policy,
    units::{Nanos, typed::positive},
};

/// The shortest and the longest time that one of the helpers may work in a round, ns. Real-time
/// threads that work longer at a stretch keep everything else from their CPU too long.
const WORK_NS: std::ops::RangeInclusive<i64> = 10_000..=100_000_000;

const DEFAULT_HOLD_NS: i64 = 500_000;
const DEFAULT_HOG_NS: i64 = 5_000_000;

/// The low thread has the priority 2 below that of the high one, and needs at least 1.
const LEAST_PRIORITY: u32 = 3;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Probe")]
pub(in crate::probes) struct InversionFlags {
    /// CPU time for which the low-priority thread holds the mutex [default: 500us]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    hold: Option<Nanos>,
    /// CPU time that the medium-priority thread uses meanwhile [default: 5ms]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    hog: Option<Nanos>,
}

impl ProbeFlags for InversionFlags {}

impl ProbeRequest for InversionFlags {
    fn check(&self, _: &SharedOptions<'_>) -> Result<()> {
        let given = [("--hold", self.hold), ("--hog", self.hog)];
        for (flag, time) in given.into_iter().filter_map(|(flag, time)| Some((flag, time?))) {
            ensure!(
                WORK_NS.contains(&time.0),
                "{flag} {time}: use a time from 10us to 100ms; a real-time thread that works \
                 longer keeps everything else from its CPU"
            );
        }
        Ok(())
    }

    /// Its three threads can run only under this policy, at these priorities.
    fn settle(&self, policy: Choice<Policy>, priority: Choice<u32>) -> Result<ThreadPriority> {
        ensure!(
            policy.value == Policy::Fifo,
            "--policy {} is not supported with inversion: its three threads need fixed \
             priorities, one above the other; leave it out, or use --policy fifo",
            policy.value
        );
        ensure!(
            priority.value >= LEAST_PRIORITY,
            "--priority {}: the other two threads of inversion have the priorities below it; use \
             {LEAST_PRIORITY} or more",
            priority.value
        );
        let (found_policy, found_priority, refused) =
            threads::settle(Choice { explicit: true, ..policy }, priority)
                .context("inversion needs three real-time priorities")?;
        Ok(ThreadPriority {
            policy: Requested { asked: policy, granted: found_policy },
            priority: Requested { asked: priority, granted: found_priority },
            refused,
        })
    }

    fn plan(
        &self,
        terms: ThreadConfig,
        cpus: &MeasuredCpus,
        _: &SharedOptions<'_>,
    ) -> Result<PlannedProbe> {
        let hold_ns = self.hold.map_or(DEFAULT_HOLD_NS, |time| time.0);
        let hog_ns = self.hog.map_or(DEFAULT_HOG_NS, |time| time.0);
        let priority = terms.priority;
        let inversion = Inversion { cpus: cpus.all.clone(), hold_ns, hog_ns, priority };
        // From one wait for a mutex to the next one for the same.
        Ok(PlannedProbe::new(inversion, 2 * period_ns(hold_ns, hog_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::request::tests::with_shared;

    #[test]
    fn times_have_bounds() {
        let check = |ns| {
            let flags = InversionFlags { hog: Some(Nanos(ns)), hold: None };
            with_shared(|shared| flags.check(shared))
        };
        check(100_000_000).unwrap();
        for ns in [1, 100_000_001] {
            let refused = check(ns).unwrap_err().to_string();
            assert!(refused.contains("--hog") && refused.contains("10us to 100ms"), "{refused}");
        }
    }

    #[test]
    fn threads_without_room_below_them_are_refused() {
        let refused = |policy, priority| {
            let wishes = (Choice::new(Some(policy), Policy::Fifo), Choice::new(Some(priority), 90));
            InversionFlags::default().settle(wishes.0, wishes.1).unwrap_err().to_string()
        };
        assert!(refused(Policy::Other, 90).contains("use --policy fifo"));
        assert!(refused(Policy::Fifo, 2).contains("use 3 or more"));
    }
}

//! Flags of the inversion probe, and what its threads have to be.

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use super::flags::positive;
use crate::{
    probes::inversion,
    run::{
        OsError,
        probes::{ProbeInfo, Rhythm},
    },
    setup::{Wish, threads},
    sys::sched::Policy,
    units::Nanos,
};

/// The shortest and the longest time that one of the helpers may work in a round, ns. Real-time
/// threads that work longer at a stretch keep everything else from their CPU too long.
const WORK_NS: std::ops::RangeInclusive<i64> = 10_000..=100_000_000;

const DEFAULT_HOLD_NS: i64 = 500_000;
const DEFAULT_HOG_NS: i64 = 5_000_000;

/// The low thread has the priority 2 below that of the high one, and needs at least 1.
const LEAST_PRIORITY: u32 = 3;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Inversion")]
pub(super) struct InversionFlags {
    /// CPU time for which the low-priority thread holds the mutex [default: 500us]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    hold: Option<Nanos>,
    /// CPU time that the medium-priority thread uses meanwhile [default: 5ms]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    hog: Option<Nanos>,
}

impl InversionFlags {
    /// What the low and the medium thread work in a round, ns.
    pub(super) fn work_ns(&self) -> (i64, i64) {
        let of = |time: Option<Nanos>, usual| time.map_or(usual, |time| time.0);
        (of(self.hold, DEFAULT_HOLD_NS), of(self.hog, DEFAULT_HOG_NS))
    }

    /// The time from one wait for a mutex to the next one for the same, ns.
    pub(super) fn pace_ns(&self) -> i64 {
        let (hold_ns, hog_ns) = self.work_ns();
        2 * inversion::period_ns(hold_ns, hog_ns)
    }

    /// Refuses the flags for a probe that does not use them, and invalid times.
    ///
    /// # Errors
    /// Names the flag.
    pub(super) fn check(&self, probe: &ProbeInfo) -> Result<()> {
        let given = [("--hold", self.hold), ("--hog", self.hog)];
        for (flag, time) in given.into_iter().filter_map(|(flag, time)| Some((flag, time?))) {
            if probe.rhythm != Rhythm::Contest {
                bail!(
                    "{flag} is not supported with {}; leave it out, or measure inversion",
                    probe.name
                );
            }
            ensure!(
                WORK_NS.contains(&time.0),
                "{flag} {time}: use a time from 10us to 100ms; a real-time thread that works \
                 longer keeps everything else from its CPU"
            );
        }
        Ok(())
    }
}

/// The policy and the priority under which its three threads can run at all.
///
/// # Errors
/// The user asked for others, or this process has no right to them; with the remedy.
pub(super) fn settle(
    policy: Wish<Policy>,
    priority: Wish<u32>,
) -> Result<(Policy, u32, Option<OsError>)> {
    ensure!(
        policy.value == Policy::Fifo,
        "--policy {} is not supported with inversion: its three threads need fixed priorities, one \
         above the other; leave it out, or use --policy fifo",
        policy.value
    );
    ensure!(
        priority.value >= LEAST_PRIORITY,
        "--priority {}: the other two threads of inversion have the priorities below it; use \
         {LEAST_PRIORITY} or more",
        priority.value
    );
    threads::settle(Wish { explicit: true, ..policy }, priority)
        .context("inversion needs three real-time priorities")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::probes::DEFAULT_PROBE;

    #[test]
    fn times_have_bounds_and_are_for_this_probe_alone() {
        let inversion = ProbeInfo::find("inversion").unwrap();
        let hog = |ns| InversionFlags { hog: Some(Nanos(ns)), hold: None };
        hog(100_000_000).check(inversion).unwrap();
        assert_eq!(hog(20_000).work_ns(), (DEFAULT_HOLD_NS, 20_000));
        for ns in [1, 100_000_001] {
            let refused = hog(ns).check(inversion).unwrap_err().to_string();
            assert!(refused.contains("--hog") && refused.contains("10us to 100ms"), "{refused}");
        }
        let refused = hog(20_000).check(DEFAULT_PROBE).unwrap_err().to_string();
        assert!(refused.contains("or measure inversion"), "{refused}");
    }

    #[test]
    fn threads_without_room_below_them_are_refused() {
        let refused = |policy, priority| {
            let wishes = (Wish::new(Some(policy), Policy::Fifo), Wish::new(Some(priority), 90));
            settle(wishes.0, wishes.1).unwrap_err().to_string()
        };
        assert!(refused(Policy::Other, 90).contains("use --policy fifo"));
        assert!(refused(Policy::Fifo, 2).contains("use 3 or more"));
    }
}

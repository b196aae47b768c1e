//! Flags of the noise probe, and the policies that a thread which never sleeps may have.

use anyhow::{Result, ensure};
use clap::Args;

use super::flags::positive;
use crate::{
    run::probes::{ProbeInfo, Rhythm},
    sys::{cpus::Cpus, sched::Policy},
    units::Nanos,
};

/// As if a gap came so often, ns: that sizes what keeps every single one of them.
const PACE_NS: i64 = 50_000;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Noise")]
pub(super) struct NoiseFlags {
    /// Shortest time between two clock reads that counts as an interruption [default: 1us]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    gap_over: Option<Nanos>,
}

impl NoiseFlags {
    /// The longest time between two clock reads that is not a gap, ns.
    pub(super) fn gap_over_ns(&self) -> i64 {
        self.gap_over.map_or(1_000, |over| over.0)
    }

    /// Refuses the flags for a probe that does not use them.
    ///
    /// # Errors
    /// Names the flag.
    pub(super) fn check(&self, probe: &ProbeInfo) -> Result<()> {
        ensure!(
            self.gap_over.is_none() || probe.rhythm == Rhythm::Spin,
            "--gap-over is not supported with {}; leave it out, or measure noise",
            probe.name
        );
        Ok(())
    }
}

/// The approximate time between two samples of threads that never sleep, ns; absent for others.
pub(super) fn pace_ns(probe: &ProbeInfo) -> Option<i64> {
    (probe.rhythm == Rhythm::Spin).then_some(PACE_NS)
}

/// The policy of the measured threads where the user names none. Real-time threads that never sleep
/// are throttled, and starve what serves them.
pub(super) fn usual_policy(probe: &ProbeInfo) -> Policy {
    match probe.rhythm {
        Rhythm::Spin | Rhythm::Rounds | Rhythm::Tasks | Rhythm::Attached => Policy::Other,
        Rhythm::Interval
        | Rhythm::Messages
        | Rhythm::Contest
        | Rhythm::Interrupts
        | Rhythm::Cycles => Policy::Fifo,
    }
}

/// A policy under which threads that never sleep on the CPUs `measured` leave the machine usable:
/// one that goes before all others needs a CPU of `allowed` that is left to these.
///
/// # Errors
/// Names the flag and the remedy.
pub(super) fn check_policy(policy: Policy, measured: &Cpus, allowed: &Cpus) -> Result<()> {
    ensure!(
        !matches!(policy, Policy::Deadline(_)),
        "--policy deadline is not supported with noise: its threads never sleep, and would use up \
         their runtime at once; use other, fifo or rr"
    );
    check_left("noise", policy, measured, allowed)
}

/// The second half of that, for `what` fills its CPUs.
///
/// # Errors
/// Names the flag and the remedy.
pub(super) fn check_left(
    what: &str,
    policy: Policy,
    measured: &Cpus,
    allowed: &Cpus,
) -> Result<()> {
    ensure!(
        !policy.is_real_time() || !allowed.without(measured).is_empty(),
        "--policy {policy} with {what} on all CPUs ({measured}): it does not sleep, and would keep \
         everything else from them; leave a CPU out by --cpus, or use --policy other"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_never_sleep_go_before_others_only_where_a_cpu_is_left() {
        let of = |cpus: &[u32]| cpus.iter().copied().collect::<Cpus>();
        check_policy(Policy::Other, &of(&[0, 1]), &of(&[0, 1])).unwrap();
        check_policy(Policy::Fifo, &of(&[1]), &of(&[0, 1])).unwrap();
        for policy in [Policy::Fifo, Policy::Rr] {
            let refused = check_policy(policy, &of(&[0, 1]), &of(&[0, 1])).unwrap_err();
            assert!(refused.to_string().contains("leave a CPU out by --cpus"), "{refused}");
        }
    }
}

//! Options of the noise probe.

use anyhow::{Result, ensure};
use clap::Args;

use super::Noise;
use crate::{
    probes::request::{
        MeasuredCpus, PlannedProbe, ProbeFlags, ProbeRequest, SharedOptions, check_cpu_left,
    },
    setup::threads::ThreadConfig,
    sys::sched::Policy,
    units::{Nanos, typed::positive},
};

/// As if a gap came so often, ns: that sizes what keeps every single one of them.
const PACE_NS: i64 = 50_000;

/// The longest time between two clock reads that is not a gap, ns.
const DEFAULT_GAP_NS: i64 = 1_000;

#[derive(Debug, Args)]
#[command(next_help_heading = "Probe")]
pub(in crate::probes) struct NoiseFlags {
    /// Shortest time between two clock reads that counts as an interruption [default: 1us]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    gap_over: Option<Nanos>,
}

impl ProbeFlags for NoiseFlags {}

impl ProbeRequest for NoiseFlags {
    /// Real-time threads that never sleep are throttled, and starve what serves them.
    fn usual_policy(&self) -> Policy {
        Policy::Other
    }

    fn check_policy(
        &self,
        policy: Policy,
        _: u32,
        cpus: &MeasuredCpus,
        shared: &SharedOptions<'_>,
    ) -> Result<()> {
        ensure!(
            !matches!(policy, Policy::Deadline(_)),
            "--policy deadline is not supported with noise: its threads never sleep, and would use \
             up their runtime at once; use other, fifo or rr"
        );
        check_cpu_left("noise", policy, &cpus.all, shared.allowed)
    }

    fn plan(
        &self,
        terms: ThreadConfig,
        cpus: &MeasuredCpus,
        _: &SharedOptions<'_>,
    ) -> Result<PlannedProbe> {
        let ThreadConfig { policy, priority, slack_ns, .. } = terms;
        let over_ns = self.gap_over.map_or(DEFAULT_GAP_NS, |over| over.0);
        let noise = Noise { cpus: cpus.all.clone(), over_ns, policy, priority, slack_ns };
        Ok(PlannedProbe::new(noise, PACE_NS))
    }
}

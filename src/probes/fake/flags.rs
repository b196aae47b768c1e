//! Options of the fake probe.

use anyhow::{Result, ensure};
use clap::Args;

use super::{Distribution, Fake};
use crate::{
    probes::request::{
        DEFAULT_INTERVAL_NS, MeasuredCpus, PlannedProbe, ProbeFlags, ProbeRequest, SharedOptions,
    },
    setup::threads::ThreadConfig,
    units::{Nanos, typed::interval},
};

#[derive(Debug, Args)]
#[command(next_help_heading = "Probe")]
pub(in crate::probes) struct FakeFlags {
    /// Time between two samples [default: 1ms]
    #[arg(long, value_name = "TIME", value_parser = interval, allow_hyphen_values = true)]
    interval: Option<Nanos>,
    /// Feed samples as fast as possible
    #[arg(long)]
    unpaced: bool,
    /// What samples are drawn from, in simulated time: pareto:index=4,seed=1
    #[arg(long, value_name = "NAME", conflicts_with = "unpaced")]
    distribution: Option<Distribution>,
}

impl ProbeFlags for FakeFlags {}

impl ProbeRequest for FakeFlags {
    /// Loads work in real time.
    fn check(&self, shared: &SharedOptions<'_>) -> Result<()> {
        let Some(own) = self.distribution else { return Ok(()) };
        ensure!(
            !shared.has_loads,
            "--distribution {own}: its time is simulated, in which no load works; leave out one of \
             them"
        );
        Ok(())
    }

    fn interval_ns(&self) -> i64 {
        self.interval.map_or(DEFAULT_INTERVAL_NS, |interval| interval.0)
    }

    /// Its threads are bound to their CPUs only where a policy was asked for.
    fn plan(
        &self,
        terms: ThreadConfig,
        cpus: &MeasuredCpus,
        shared: &SharedOptions<'_>,
    ) -> Result<PlannedProbe> {
        let interval_ns = self.interval_ns();
        let fake = Fake {
            cpus: cpus.all.clone(),
            interval_ns,
            unpaced: self.unpaced,
            distribution: self.distribution,
            scheduling: shared.names_policy.then_some((terms.policy, terms.priority)),
        };
        Ok(PlannedProbe::new(fake, interval_ns))
    }
}

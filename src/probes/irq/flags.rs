//! Options of the irq probe.

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use super::{InterruptPlan, Irq, PeriodicSource};
use crate::{
    probes::request::{
        MeasuredCpus, PlannedProbe, ProbeFlags, ProbeRequest, SharedOptions, named_or_allowed,
    },
    setup::threads::ThreadConfig,
    units::{Nanos, typed::time},
};

const DEFAULT_HZ: u32 = 1_024;
const DEFAULT_LOOP_NS: i64 = 100_000;

#[derive(Debug, Args)]
#[command(next_help_heading = "Probe")]
pub(in crate::probes) struct IrqFlags {
    /// What interrupts [default: rtc]
    #[arg(long, value_enum, value_name = "SOURCE")]
    source: Option<Source>,
    /// Interrupts per second [default: 1024]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(64..=8_192))]
    frequency: Option<u32>,
    /// Work after each wake-up, as its duration without disturbance; 0us for none [default: 100us]
    #[arg(long, value_name = "TIME", value_parser = time)]
    cpu_loop: Option<Nanos>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Source {
    /// The periodic interrupt of /dev/rtc, for one thread on one CPU
    Rtc,
    /// A periodic timerfd on each CPU: a timer in place of a device
    Timerfd,
}

impl ProbeFlags for IrqFlags {}

impl ProbeRequest for IrqFlags {
    /// Work leaves room until the next interrupt.
    fn check(&self, _: &SharedOptions<'_>) -> Result<()> {
        let plan = self.interrupts();
        let most = Nanos(plan.period_ns() / 2);
        ensure!(
            plan.loop_ns <= most.0,
            "--cpu-loop {}: at {} interrupts a second the work of each may take at most {most}, \
             half of the period; use less, or a lower --frequency",
            Nanos(plan.loop_ns),
            plan.rate_hz
        );
        Ok(())
    }

    /// The first one where one device interrupts, unless the user named some.
    fn cpus(&self, shared: &SharedOptions<'_>) -> Result<MeasuredCpus> {
        let found = named_or_allowed(shared);
        if self.interrupts().source == PeriodicSource::Timerfd {
            return Ok(MeasuredCpus::each(found));
        }
        ensure!(
            shared.cpus.is_none() || found.iter().count() == 1,
            "--cpus {found}: a real-time clock has one interrupt, and one thread reads it; name \
             one CPU, or use --source timerfd"
        );
        Ok(MeasuredCpus::each(found.iter().take(1).collect()))
    }

    fn plan(
        &self,
        terms: ThreadConfig,
        cpus: &MeasuredCpus,
        _: &SharedOptions<'_>,
    ) -> Result<PlannedProbe> {
        let ThreadConfig { policy, priority, slack_ns, .. } = terms;
        let plan = self.interrupts();
        let irq = Irq { cpus: cpus.all.clone(), interrupts: plan, policy, priority, slack_ns };
        Ok(PlannedProbe::new(irq, plan.period_ns()))
    }

    fn keeps_peaks_over_deadline(&self) -> bool {
        true
    }
}

impl IrqFlags {
    /// What interrupts, how often, and what follows.
    fn interrupts(&self) -> InterruptPlan {
        InterruptPlan {
            source: match self.source {
                None | Some(Source::Rtc) => PeriodicSource::Rtc,
                Some(Source::Timerfd) => PeriodicSource::Timerfd,
            },
            rate_hz: self.frequency.unwrap_or(DEFAULT_HZ),
            loop_ns: self.cpu_loop.map_or(DEFAULT_LOOP_NS, |time| time.0),
        }
    }
}

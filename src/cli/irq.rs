//! Flags of the irq probe.

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};

use super::flags::time;
use crate::{
    probes::irq::{InterruptPlan, PeriodicSource},
    run::probes::{ProbeInfo, Rhythm},
    sys::cpus::Cpus,
    units::Nanos,
};

const DEFAULT_HZ: u32 = 1_024;
const DEFAULT_LOOP_NS: i64 = 100_000;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Interrupts (irq)")]
pub(super) struct IrqFlags {
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

impl IrqFlags {
    /// What interrupts, how often, and what follows.
    pub(super) fn interrupts(&self) -> InterruptPlan {
        InterruptPlan {
            source: match self.source {
                None | Some(Source::Rtc) => PeriodicSource::Rtc,
                Some(Source::Timerfd) => PeriodicSource::Timerfd,
            },
            rate_hz: self.frequency.unwrap_or(DEFAULT_HZ),
            loop_ns: self.cpu_loop.map_or(DEFAULT_LOOP_NS, |time| time.0),
        }
    }

    /// Refuses the flags for a probe that does not use them, and work that leaves no room.
    ///
    /// # Errors
    /// Names the flag.
    pub(super) fn check(&self, probe: &ProbeInfo) -> Result<()> {
        let given = [
            ("--source", self.source.is_some()),
            ("--frequency", self.frequency.is_some()),
            ("--cpu-loop", self.cpu_loop.is_some()),
        ];
        if probe.rhythm != Rhythm::Interrupts {
            if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
                bail!("{flag} is not supported with {}; leave it out, or measure irq", probe.name);
            }
            return Ok(());
        }
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

    /// The CPUs of its threads: of those `found` the first where one device interrupts, unless the
    /// user named some.
    ///
    /// # Errors
    /// The user named several for one device.
    pub(super) fn cpus(&self, found: Cpus, is_asked: bool) -> Result<Cpus> {
        if self.interrupts().source == PeriodicSource::Timerfd {
            return Ok(found);
        }
        ensure!(
            !is_asked || found.iter().count() == 1,
            "--cpus {found}: a real-time clock has one interrupt, and one thread reads it; name \
             one CPU, or use --source timerfd"
        );
        Ok(found.iter().take(1).collect())
    }
}

//! Flags of the timer, and where the threads of any probe run.

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};

use super::flags::{CpuList, interval};
use crate::{
    probes::timer::{Timer, WakeKind},
    setup::threads::Terms,
    sys::cpus::Cpus,
    units::Nanos,
};

#[derive(Debug, Args)]
#[command(next_help_heading = "Probe")]
pub struct TimerFlags {
    /// Time from one expiry to the next, the same on every CPU [default: 1ms]
    #[arg(long, value_name = "TIME", value_parser = interval, allow_hyphen_values = true)]
    interval: Option<Nanos>,
    /// CPUs to measure, as 0-3,7; of messages: those of the near and the far end, as 2,3
    ///
    /// By default all that this process may use; the first two of them for messages.
    #[arg(long, value_name = "CPUS")]
    pub cpus: Option<CpuList>,
    /// How threads wait for an expiry [default: nanosleep]
    #[arg(long, value_enum, value_name = "KIND")]
    wake: Option<Wake>,
    /// Threads per CPU [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: Option<u32>,
    /// How much the priority falls from one thread of a CPU to the next [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=98))]
    priority_step: Option<u32>,
    /// How much later each thread expires than the one before it [default: 0us]
    #[arg(long, value_name = "TIME")]
    distance: Option<Nanos>,
    /// Feed the fake probe as fast as possible
    #[arg(long, hide = true)]
    pub unpaced: bool,
}

impl TimerFlags {
    /// From one expiry to the next, ns.
    pub fn interval_ns(&self) -> i64 {
        self.interval.map_or(1_000_000, |interval| interval.0)
    }

    /// Refuses what only a timer has, for any other probe.
    ///
    /// # Errors
    /// Names the flag.
    pub fn check(&self, probe: &str) -> Result<()> {
        let given = [
            ("--interval", self.interval.is_some()),
            ("--wake", self.wake.is_some()),
            ("--threads", self.threads.is_some()),
            ("--priority-step", self.priority_step.is_some()),
            ("--distance", self.distance.is_some()),
        ];
        if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
            bail!("{flag} has no meaning with {probe}; leave it out, or measure timer");
        }
        Ok(())
    }

    /// Refuses priorities that fall below those there are.
    ///
    /// # Errors
    /// Names the flags.
    pub fn check_step(&self, priority: u32) -> Result<()> {
        let (step, threads) = (self.priority_step.unwrap_or(0), self.threads.unwrap_or(1));
        ensure!(
            step * (threads - 1) < priority,
            "--priority-step {step}: the last of {threads} threads would have a priority below 1; \
             use a smaller step, fewer --threads or a higher --priority than {priority}"
        );
        Ok(())
    }

    /// The timer that these flags describe.
    pub fn timer(&self, cpus: Cpus, terms: &Terms) -> Timer {
        Timer {
            cpus,
            threads_per_cpu: self.threads.unwrap_or(1),
            interval_ns: self.interval_ns(),
            distance_ns: self.distance.map_or(0, |distance| distance.0),
            wake: match self.wake {
                None | Some(Wake::Nanosleep) => WakeKind::Nanosleep,
                Some(Wake::Relative) => WakeKind::Relative,
                Some(Wake::Timerfd) => WakeKind::Timerfd,
            },
            policy: terms.policy,
            priority: terms.priority,
            priority_step: self.priority_step.unwrap_or(0),
            slack_ns: terms.slack_ns,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Wake {
    /// Absolute clock_nanosleep, as cyclictest does
    Nanosleep,
    /// Relative clock_nanosleep: entering the call counts, no period can be missed
    Relative,
    /// Reads of a periodic timerfd; missed periods are the kernel's overrun count
    Timerfd,
}

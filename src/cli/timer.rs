//! Flags of the timer probe, and the CPUs on which the threads of any probe run.

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum, builder::PossibleValue};

use super::flags::{CpuList, interval};
use crate::{
    probes::{
        fake::Distribution,
        timer::{Timer, WakeKind},
    },
    run::probes::{ProbeInfo, Rhythm},
    setup::threads::Terms,
    sys::cpus::Cpus,
    units::Nanos,
};

#[derive(Debug, Args)]
#[command(next_help_heading = "Probe")]
pub(super) struct TimerFlags {
    /// Timer period, the same on every CPU, or that of the task custom [default: 1ms]
    #[arg(long, value_name = "TIME", value_parser = interval, allow_hyphen_values = true)]
    interval: Option<Nanos>,
    /// CPUs to measure, e.g. 0-3,7; for messages LOCAL,REMOTE, e.g. 2,3
    ///
    /// Default: all CPUs that this process may use; for messages the first two of them.
    #[arg(long, value_name = "CPUS")]
    pub cpus: Option<CpuList>,
    /// How threads wait for the next expiry [default: nanosleep]
    #[arg(long, value_enum, value_name = "KIND")]
    wake: Option<WakeKind>,
    /// Threads per CPU [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: Option<u32>,
    /// Priority step between threads on the same CPU [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=98))]
    priority_step: Option<u32>,
    /// Offset of each thread's expiries after those of the thread before [default: 0us]
    #[arg(long, value_name = "TIME")]
    distance: Option<Nanos>,
    /// Feed the fake probe as fast as possible
    #[arg(long, hide = true)]
    pub unpaced: bool,
    /// Distribution of the fake probe, in simulated time: pareto:index=4,seed=1
    #[arg(long, value_name = "NAME", hide = true, conflicts_with = "unpaced")]
    pub distribution: Option<Distribution>,
}

impl TimerFlags {
    /// The timer period, ns.
    pub(super) fn interval_ns(&self) -> i64 {
        self.interval.map_or(1_000_000, |interval| interval.0)
    }

    /// The timer period where one is given, ns.
    pub(super) fn own_interval_ns(&self) -> Option<i64> {
        self.interval.map(|interval| interval.0)
    }

    /// Refuses the flags of the timer for any other probe.
    ///
    /// # Errors
    /// Names the flag.
    pub(super) fn check(&self, probe: &ProbeInfo) -> Result<()> {
        let given = [
            ("--interval", self.interval.is_some() && probe.rhythm != Rhythm::Tasks),
            ("--wake", self.wake.is_some()),
            ("--threads", self.threads.is_some()),
            ("--priority-step", self.priority_step.is_some()),
            ("--distance", self.distance.is_some()),
        ];
        if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
            bail!("{flag} is not supported with {}; leave it out, or measure timer", probe.name);
        }
        Ok(())
    }

    /// Refuses the flags of the fake probe for one that measures, and simulated time beside loads,
    /// which work in real time.
    ///
    /// # Errors
    /// Names the flag.
    pub(super) fn check_fake(&self, probe: &str, has_loads: bool) -> Result<()> {
        ensure!(probe == "fake" || !self.unpaced, "--unpaced is for the probe fake; leave it out");
        let Some(own) = self.distribution else { return Ok(()) };
        ensure!(probe == "fake", "--distribution {own} is for the probe fake; leave it out");
        ensure!(
            !has_loads,
            "--distribution {own}: its time is simulated, in which no load works; leave out one of \
             them"
        );
        Ok(())
    }

    /// Refuses priorities that would fall below 1.
    ///
    /// # Errors
    /// Names the flags.
    pub(super) fn check_step(&self, priority: u32) -> Result<()> {
        let (step, threads) = (self.priority_step.unwrap_or(0), self.threads.unwrap_or(1));
        ensure!(
            step * (threads - 1) < priority,
            "--priority-step {step}: the last of {threads} threads would have a priority below 1; \
             use a smaller step, fewer --threads or a higher --priority than {priority}"
        );
        Ok(())
    }

    /// The timer that these flags describe.
    pub(super) fn timer(&self, cpus: Cpus, terms: &Terms) -> Timer {
        Timer {
            cpus,
            threads_per_cpu: self.threads.unwrap_or(1),
            interval_ns: self.interval_ns(),
            distance_ns: self.distance.map_or(0, |distance| distance.0),
            wake: self.wake.unwrap_or(WakeKind::Nanosleep),
            policy: terms.policy,
            priority: terms.priority,
            priority_step: self.priority_step.unwrap_or(0),
            slack_ns: terms.slack_ns,
            work: None,
        }
    }
}

impl ValueEnum for WakeKind {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Nanosleep => "Absolute clock_nanosleep, as cyclictest does",
            Self::Relative => {
                "Relative clock_nanosleep: includes entering the call; no period can be missed"
            }
            Self::Timerfd => {
                "Reads of a periodic timerfd; missed periods are the overruns that the kernel \
                 counts"
            }
            Self::Ppoll => {
                "Time-outs of ppoll until the next expiry: includes entering the call, and 0.1% \
                 slack"
            }
            Self::Pselect => "The same with pselect6",
            Self::Epoll => "The same with epoll_pwait2, which needs Linux 5.11 or later",
            Self::Signal => "The signal of a periodic POSIX timer, received by sigwaitinfo",
            Self::Uring => {
                "Time-outs of io_uring until the next expiry: one call submits and waits"
            }
        };
        Some(PossibleValue::new(self.as_str()).help(help))
    }
}

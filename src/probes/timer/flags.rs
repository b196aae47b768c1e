//! Options of the timer probe.

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum, builder::PossibleValue};

use super::{ThreadCount, Timer, TimerWork, WakeKind};
use crate::{
    probes::request::{
        DEFAULT_INTERVAL_NS, MeasuredCpus, PlannedProbe, ProbeFlags, ProbeRequest, SharedOptions,
    },
    setup::threads::ThreadConfig,
    sys::sched::Policy,
    units::{
        Nanos,
        typed::{interval, positive},
    },
};

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Probe")]
pub(in crate::probes) struct TimerFlags {
    /// Timer period, the same on every CPU [default: 1ms]
    #[arg(long, value_name = "TIME", value_parser = interval, allow_hyphen_values = true)]
    interval: Option<Nanos>,
    /// How much longer the period of each thread is than that of the thread before [default: 0us]
    #[arg(long, value_name = "TIME")]
    interval_step: Option<Nanos>,
    /// How threads wait for the next expiry [default: nanosleep]
    #[arg(long, value_enum, value_name = "KIND")]
    wake: Option<WakeKind>,
    /// Threads per CPU [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: Option<u32>,
    /// Threads in total, on one CPU after another, and again from the first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    #[arg(conflicts_with = "threads")]
    total_threads: Option<u32>,
    /// Priority step between threads on the same CPU [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=98))]
    priority_step: Option<u32>,
    /// Offset of each thread's expiries after those of the thread before [default: 0us]
    #[arg(long, value_name = "TIME")]
    distance: Option<Nanos>,
    /// CPU time of work after each wake-up
    ///
    /// The series cpu0/response has the time from the expiry to the end of the work. --deadline
    /// judges it.
    #[arg(long, value_name = "TIME", value_parser = positive)]
    work: Option<Nanos>,
    /// Loops per millisecond of work, from the metric `work` of another run
    ///
    /// Default: measured on this CPU before the run. Give the same number to runs at other
    /// frequencies or on other machines, so that they do the same work.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    loops_per_ms: Option<u64>,
}

impl ProbeFlags for TimerFlags {}

impl ProbeRequest for TimerFlags {
    fn check(&self, _: &SharedOptions<'_>) -> Result<()> {
        ensure!(
            self.work.is_some() || self.loops_per_ms.is_none(),
            "--loops-per-ms says how much work a millisecond is; add --work, or leave it out"
        );
        Ok(())
    }

    fn interval_ns(&self) -> i64 {
        self.interval.map_or(DEFAULT_INTERVAL_NS, |interval| interval.0)
    }

    /// Priorities do not fall below 1.
    fn check_policy(
        &self,
        policy: Policy,
        priority: u32,
        cpus: &MeasuredCpus,
        _: &SharedOptions<'_>,
    ) -> Result<()> {
        let threads = self.threads(cpus)?.most_on_one(&cpus.all);
        let step = self.priority_step.unwrap_or(0);
        ensure!(
            !policy.is_real_time() || step * (threads - 1) < priority,
            "--priority-step {step}: the last of {threads} threads would have a priority below 1; \
             use a smaller step, fewer --threads or a higher --priority than {priority}"
        );
        Ok(())
    }

    fn plan(
        &self,
        terms: ThreadConfig,
        cpus: &MeasuredCpus,
        shared: &SharedOptions<'_>,
    ) -> Result<PlannedProbe> {
        let pace_ns = self.interval_ns();
        let timer = Timer {
            cpus: cpus.all.clone(),
            threads: self.threads(cpus)?,
            interval_ns: pace_ns,
            interval_step_ns: self.interval_step.map_or(0, |step| step.0),
            distance_ns: self.distance.map_or(0, |distance| distance.0),
            wake: self.wake.unwrap_or(WakeKind::Nanosleep),
            policy: terms.policy,
            priority: terms.priority,
            priority_step: self.priority_step.unwrap_or(0),
            slack_ns: terms.slack_ns,
            work: self.work(shared.deadlines.all_ns, cpus)?,
        };
        Ok(PlannedProbe::new(timer, pace_ns))
    }
}

impl TimerFlags {
    /// How many threads.
    ///
    /// # Errors
    /// A CPU would have none, or more than 64.
    fn threads(&self, cpus: &MeasuredCpus) -> Result<ThreadCount> {
        let Some(total) = self.total_threads else {
            return Ok(ThreadCount::OnEach(self.threads.unwrap_or(1)));
        };
        let there = cpus.all.iter().count();
        ensure!(
            (there..=there * 64).contains(&(total as usize)),
            "--total-threads {total}: {there} CPUs take {there} to {} threads; use another number, \
             or other --cpus",
            there * 64
        );
        Ok(ThreadCount::InTotal(total))
    }

    /// The work of each thread.
    ///
    /// # Errors
    /// It could never be done in time, or ordinary tasks would get no CPU.
    fn work(&self, deadline_ns: Option<i64>, cpus: &MeasuredCpus) -> Result<Option<TimerWork>> {
        let Some(work) = self.work else { return Ok(None) };
        let threads = self.threads(cpus)?.most_on_one(&cpus.all);
        let period = Nanos(self.interval_ns());
        let all_ns = work.0.saturating_mul(threads.into());
        ensure!(
            all_ns <= period.0 / 10 * 9,
            "--work {work}: the threads of a CPU ({threads}) would take more than 90% of the \
             --interval of {period}; use a longer interval, or less work"
        );
        let in_time = deadline_ns.is_none_or(|deadline_ns| deadline_ns > work.0);
        ensure!(
            in_time,
            "--deadline {}: the work alone takes {work} (--work); use a later deadline, or less \
             work",
            Nanos(deadline_ns.unwrap_or(0))
        );
        let (work_ns, loops_per_ms) = (work.0, self.loops_per_ms);
        Ok(Some(TimerWork { work_ns, loops_per_ms, deadline_ns }))
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

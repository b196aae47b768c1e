//! The flags of `run` that set up the machine and the threads, and how they are parsed.

use anyhow::{Result, bail, ensure};
use clap::Args;

use super::{Exit, output};
use crate::{
    run::{Caveat, Document, LEFT_CHANGED, NOT_PUT_BACK},
    setup::{
        Choice,
        arrange::SetupRequest,
        journal::{self, JournalPath, Recovered, Undone},
        settings::SettingChoice,
    },
    sys::{
        cpus::{CpuList, Cpus},
        root::Root,
        sched::{Budget, Policy},
    },
    units::Nanos,
};

#[derive(Debug, Args)]
#[command(next_help_heading = "Setup")]
pub(super) struct SetupFlags {
    /// CPUs to measure, e.g. 0-3,7; for messages LOCAL,REMOTE, e.g. 2,3
    ///
    /// Default: all CPUs that this process may use; for messages the first two of them.
    #[arg(long, value_name = "CPUS")]
    pub cpus: Option<CpuList>,
    /// Scheduling policy of the measured threads: fifo, rr, deadline or other
    ///
    /// Default: fifo; for noise, bandwidth and interactive: other. Threads of noise and bandwidth
    /// never sleep, and the tasks of interactive are ordinary programs.
    #[arg(long, value_name = "POLICY")]
    policy: Option<Policy>,
    /// Real-time priority of the measured threads, 1 to 99 [default: 90]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub priority: Option<u32>,
    /// CPU time for each thread of policy deadline [default: half of each interval]
    ///
    /// RUNTIME/DEADLINE/PERIOD, e.g. 100us/1ms/1ms. A deadline thread that is pinned to one CPU
    /// needs that CPU for itself: --cpus 3 --shield.
    #[arg(long, value_name = "TIMES", value_parser = budget)]
    deadline_params: Option<Budget>,
    /// Timer slack of the measured threads; only affects policy other
    #[arg(long, value_name = "TIME", default_value = "1ns")]
    timer_slack: Nanos,
    /// Keep tasks, interrupts and kernel work off the measured CPUs
    ///
    /// tardy restores everything at the end; after a kill, `tardy restore` does.
    #[arg(long)]
    shield: bool,
    /// CPUs for loads and recording threads [default: those not measured; for loads all]
    #[arg(long, value_name = "CPUS")]
    housekeeping: Option<Cpus>,
    /// Frequency governor of the measured CPUs, e.g. performance
    #[arg(long, value_name = "GOVERNOR")]
    governor: Option<String>,
    /// Keep CPUs out of idle states (C-states) with an exit latency above this [default: 0us]
    #[arg(long, value_name = "TIME", conflicts_with = "no_dma_latency")]
    max_idle_latency: Option<Nanos>,
    /// Let CPUs enter deep idle states: do not hold /dev/cpu_dma_latency
    #[arg(long)]
    pub no_dma_latency: bool,
    /// Take hardware threads offline that share a core with a measured CPU
    #[arg(long)]
    no_smt_sibling: bool,
    /// Change a system setting for the duration of the run, NAME=VALUE; repeatable
    ///
    /// tardy restores the old value at the end; after a kill, `tardy restore` does. NAME=now keeps
    /// the present value. In both cases the run is invalid if the setting changed during the run.
    /// docs/reference/settings.md lists the names.
    #[arg(long = "set", value_name = "SETTING")]
    settings: Vec<SettingChoice>,
}

impl SetupFlags {
    /// The policy, with its budget where it has one.
    /// `usual` is that of the probe.
    pub(super) fn policy(&self, interval: Nanos, usual: Policy) -> Result<Choice<Policy>> {
        let wish = Choice::new(self.policy, usual);
        let Policy::Deadline(_) = wish.value else {
            if self.deadline_params.is_some() {
                bail!("--deadline-params needs --policy deadline");
            }
            return Ok(wish);
        };
        let interval_ns = u64::try_from(interval.0).unwrap_or(0);
        let budget = self.deadline_params.unwrap_or(Budget {
            runtime_ns: interval_ns / 2,
            deadline_ns: interval_ns,
            period_ns: interval_ns,
        });
        Ok(Choice { value: Policy::Deadline(budget), ..wish })
    }

    /// Refuses CPUs that cannot be measured.
    ///
    /// # Errors
    /// Names them.
    pub(super) fn check_cpus(&self, allowed: &Cpus) -> Result<()> {
        let Some(CpuList { cpus, .. }) = &self.cpus else { return Ok(()) };
        let refused = cpus.without(allowed);
        ensure!(
            refused.is_empty(),
            "--cpus {cpus}: CPU {refused} is not online or not allowed for this process; allowed \
             are {allowed}"
        );
        Ok(())
    }

    /// The timer slack of the measured threads, ns.
    pub(super) fn slack_ns(&self) -> u64 {
        u64::try_from(self.timer_slack.0).unwrap_or(1).max(1)
    }

    /// Whether the user named a policy.
    pub(super) fn says_policy(&self) -> bool {
        self.policy.is_some()
    }

    /// Each setting once, and none that another flag sets.
    fn checked_settings(&self) -> Result<Vec<SettingChoice>> {
        for (number, choice) in self.settings.iter().enumerate() {
            let earlier = self.settings.iter().take(number);
            let is_again = earlier.into_iter().any(|other| other.name == choice.name);
            ensure!(!is_again, "--set {}: it is set twice; name it once", choice.name);
            ensure!(
                choice.name != "governor" || self.governor.is_none(),
                "--governor and --set governor are the same setting; use one of them"
            );
        }
        Ok(self.settings.clone())
    }

    /// The setup requested while the CPUs `measured` are measured.
    pub(super) fn wishes(&self, measured: &Cpus) -> Result<SetupRequest> {
        let housekeeping = self.housekeeping.clone();
        if let Some(cpus) = &housekeeping {
            let both = cpus.common(measured);
            ensure!(
                both.is_empty() || !self.shield,
                "--housekeeping {cpus}: CPU {both} is measured, and --shield keeps everything \
                 else off it; name others"
            );
        }
        let longest_us = |time: Nanos| i32::try_from(time.0 / 1_000).unwrap_or(i32::MAX);
        Ok(SetupRequest {
            shield: self.shield,
            governor: self.governor.clone(),
            max_idle_latency_us: self.max_idle_latency.map(longest_us),
            no_smt_sibling: self.no_smt_sibling,
            housekeeping,
            settings: self.checked_settings()?,
        })
    }
}

/// Reads `RUNTIME/DEADLINE/PERIOD`.
fn budget(text: &str) -> Result<Budget, String> {
    let times: Vec<&str> = text.split('/').collect();
    let [runtime, deadline, period] = times.as_slice() else {
        return Err("write RUNTIME/DEADLINE/PERIOD, as in 100us/1ms/1ms".into());
    };
    let ns = |text: &str| -> Result<u64, String> {
        let time: Nanos =
            text.parse().map_err(|error: crate::units::UnitError| error.to_string())?;
        u64::try_from(time.0).map_err(|_| format!("{time} is not a valid time"))
    };
    let (runtime_ns, deadline_ns, period_ns) = (ns(runtime)?, ns(deadline)?, ns(period)?);
    if !(1_000..=deadline_ns).contains(&runtime_ns) || deadline_ns > period_ns {
        return Err("required: 1us <= RUNTIME <= DEADLINE <= PERIOD".into());
    }
    Ok(Budget { runtime_ns, deadline_ns, period_ns })
}

/// Restores what a killed tardy left changed and reports it, unless `quiet`. Returns the result:
/// what could not be restored, and what a running tardy holds, are caveats.
pub(super) fn recover_first(quiet: bool) -> Recovered {
    let recovered = journal::recover(&JournalPath::usual(), &Root::default());
    let recovered = recovered.unwrap_or_else(|error| Recovered::Unknown(error.reason()));
    if let Recovered::Undone(Undone { put_back, .. }) = &recovered
        && !put_back.is_empty()
        && !quiet
    {
        let what = put_back.join("; ");
        output::notice(&format!("Restored what a killed tardy had changed: {what}."));
    }
    tell_left(&recovered);
    recovered
}

/// After children that may have changed the machine: restores what they could not, or says what
/// stays changed, however quiet, which is an error.
pub(super) fn recover_last() -> Exit {
    let recovered = journal::recover(&JournalPath::usual(), &Root::default());
    match recovered.is_ok_and(|recovered| tell_left(&recovered)) {
        true => Exit::Failed,
        false => Exit::Done,
    }
}

/// Says what could not be restored; whether there is something.
fn tell_left(recovered: &Recovered) -> bool {
    let Recovered::Undone(Undone { failed, .. }) = recovered else { return false };
    for what in failed {
        output::notice(&format!("not restored: {what}; `tardy restore` tries again"));
    }
    !failed.is_empty()
}

/// The exit code of a run if something of the machine stays changed, which is said however quiet:
/// what a killed tardy had left before the run is said already.
pub(super) fn exit_of_setup(document: &Document) -> Exit {
    let left = |caveat: &&Caveat| [LEFT_CHANGED, NOT_PUT_BACK].contains(&caveat.code.as_str());
    document.caveats.iter().filter(left).fold(Exit::Done, |_, caveat| {
        if caveat.code == NOT_PUT_BACK {
            output::notice(&format!("not restored: {} {}", caveat.text, caveat.remedy));
        }
        Exit::Failed
    })
}

/// Adds to an error which tardy has changed the machine: for example, the CPUs behind the shield of
/// another tardy cannot be used.
pub(super) fn name_holder(error: anyhow::Error, left: &Recovered) -> anyhow::Error {
    match left {
        Recovered::Alive(owner) => {
            error.context(format!("another tardy has changed this machine, {}", owner.words()))
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_has_three_times_in_order() {
        let read = budget("100us/1ms/2ms").unwrap();
        assert_eq!(
            (read.runtime_ns, read.deadline_ns, read.period_ns),
            (100_000, 1_000_000, 2_000_000)
        );
        for (text, why) in [
            ("100us", "RUNTIME/DEADLINE/PERIOD"),
            ("2ms/1ms/1ms", "RUNTIME <= DEADLINE"),
            ("1us/2ms/1ms", "DEADLINE <= PERIOD"),
            ("1us/2ms/x", "x"),
            ("0us/1ms/1ms", "1us <="),
        ] {
            assert!(budget(text).unwrap_err().contains(why), "{text}");
        }
    }
}

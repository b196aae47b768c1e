//! What a probe is asked to measure: its options on the command line, and what follows from them
//! before anything of the machine is changed.
//!
//! Each probe has its options in its `flags.rs`, behind [`ProbeRequest`]. `options` has
//! the table of all.

use std::fmt::Debug;

use anyhow::{Result, ensure};
use clap::Args;

use super::Probe;
use crate::{
    run::{Deadlines, Document, OsError, TraceMode},
    setup::{
        Choice, Requested,
        threads::{self, ThreadConfig},
    },
    sys::{
        cpus::{CpuList, Cpus},
        sched::Policy,
    },
    units::typed::HowLong,
};

/// Options that are not for every probe, which a probe refuses with a reason.
#[derive(Debug, Clone, Copy)]
pub struct Unsupported {
    /// Their names, without dashes.
    pub options: &'static [&'static str],
    /// Why, as the end of a sentence.
    pub why: &'static str,
}

/// The options of a probe, as its type.
pub trait ProbeFlags: Args + ProbeRequest + 'static {
    /// Options of all probes that it does not support.
    const UNSUPPORTED: &'static [Unsupported] = &[];
}

/// What the options that all probes share say.
#[derive(Debug)]
pub struct SharedOptions<'a> {
    /// The CPUs of `--cpus`.
    pub cpus: Option<&'a CpuList>,
    /// Those that this process may use.
    pub allowed: &'a Cpus,
    /// The number of samples, where one is asked for.
    pub samples: Option<u64>,
    /// How long, where no number of samples is asked for.
    pub duration: HowLong,
    /// The deadlines to judge by.
    pub deadlines: &'a Deadlines,
    /// What to trace.
    pub trace: TraceMode,
    /// Whether loads run meanwhile.
    pub has_loads: bool,
    /// Whether a policy is asked for by name.
    pub names_policy: bool,
    /// Whether standard output is for the result alone.
    pub to_stderr: bool,
}

/// The CPUs of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredCpus {
    /// All that are measured.
    pub all: Cpus,
    /// The first, and that of the local endpoint.
    pub near: u32,
    /// That of the remote endpoint; without one the same.
    pub far: u32,
}

impl MeasuredCpus {
    /// A thread on each of these.
    #[must_use]
    pub fn each(all: Cpus) -> Self {
        let near = all.iter().next().unwrap_or(0);
        Self { all, near, far: near }
    }

    /// One of them.
    #[must_use]
    pub fn one(cpu: u32) -> Self {
        Self::ends(cpu, cpu)
    }

    /// An end on each of two, or both on one.
    #[must_use]
    pub fn ends(near: u32, far: u32) -> Self {
        Self { all: [near, far].into_iter().collect(), near, far }
    }
}

/// Policy and priority of the measured threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadPriority {
    /// As requested and as available.
    pub policy: Requested<Policy>,
    /// The same.
    pub priority: Requested<u32>,
    /// What the kernel says where they differ.
    pub refused: Option<OsError>,
}

/// A probe, planned.
pub struct PlannedProbe {
    /// What measures.
    pub probe: Box<dyn Probe>,
    /// The approximate time between two samples, ns: it sizes what keeps every single one.
    pub pace_ns: i64,
}

impl PlannedProbe {
    /// By its plan.
    pub fn new(probe: impl Probe + 'static, pace_ns: i64) -> Self {
        Self { probe: Box::new(probe), pace_ns }
    }
}

/// The options of one probe, read.
pub trait ProbeRequest: Debug {
    /// Refuses what cannot be measured, before anything else is looked at.
    ///
    /// # Errors
    /// Names the option and the remedy.
    fn check(&self, _: &SharedOptions<'_>) -> Result<()> {
        Ok(())
    }

    /// The policy of the measured threads where the user names none.
    fn usual_policy(&self) -> Policy {
        Policy::Fifo
    }

    /// The period for the budget of the policy deadline, ns.
    fn interval_ns(&self) -> i64 {
        DEFAULT_INTERVAL_NS
    }

    /// The CPUs to measure.
    ///
    /// # Errors
    /// `--cpus` has more than it can use.
    fn cpus(&self, shared: &SharedOptions<'_>) -> Result<MeasuredCpus> {
        Ok(MeasuredCpus::each(named_or_allowed(shared)))
    }

    /// Refuses a policy, or a priority, that its threads cannot have on these CPUs.
    ///
    /// # Errors
    /// Names the option and the remedy.
    fn check_policy(
        &self,
        _policy: Policy,
        _priority: u32,
        _cpus: &MeasuredCpus,
        _shared: &SharedOptions<'_>,
    ) -> Result<()> {
        Ok(())
    }

    /// What is available of policy and priority.
    ///
    /// # Errors
    /// The user asked for more by name.
    fn settle(&self, policy: Choice<Policy>, priority: Choice<u32>) -> Result<ThreadPriority> {
        let (found_policy, found_priority, refused) = threads::settle(policy, priority)?;
        Ok(ThreadPriority {
            policy: Requested { asked: policy, granted: found_policy },
            priority: Requested { asked: priority, granted: found_priority },
            refused,
        })
    }

    /// The probe: `terms` are those of its threads, or of the local endpoint.
    ///
    /// # Errors
    /// Names the option that cannot be used, and the remedy.
    fn plan(
        &self,
        terms: ThreadConfig,
        cpus: &MeasuredCpus,
        shared: &SharedOptions<'_>,
    ) -> Result<PlannedProbe>;

    /// Whether a run lasts as long as what it looks at, if no length is given.
    fn lasts_as_its_command(&self) -> bool {
        false
    }

    /// Whether peaks over the deadline are kept, rather than the worst ones.
    fn keeps_peaks_over_deadline(&self) -> bool {
        false
    }

    /// What the blocks of a comparison have besides what was typed: the name of each option, and
    /// its value.
    fn defaults_of_blocks(&self, _is_prepared: bool) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// What it looks at may come only before it measures.
    fn targets_may_come(&mut self) {}

    /// Whether the run counts as failed by an option of its own.
    fn has_failed(&self, _: &Document) -> bool {
        false
    }
}

/// The timer period by default, ns.
pub const DEFAULT_INTERVAL_NS: i64 = 1_000_000;

/// The CPUs of `--cpus`, or else all that are allowed.
pub fn named_or_allowed(shared: &SharedOptions<'_>) -> Cpus {
    shared.cpus.map_or(shared.allowed, |named| &named.cpus).clone()
}

/// The one CPU of `--cpus`, or the first that is allowed; `why` says why there is only one.
///
/// # Errors
/// The user named several.
pub fn one_cpu(shared: &SharedOptions<'_>, why: &str) -> Result<MeasuredCpus> {
    let Some(asked) = shared.cpus else {
        return Ok(MeasuredCpus::one(shared.allowed.iter().next().unwrap_or(0)));
    };
    ensure!(asked.in_order.len() == 1, "--cpus {}: {why}", asked.cpus);
    Ok(MeasuredCpus::one(asked.in_order.first().copied().unwrap_or(0)))
}

/// Refuses threads that fill their CPUs at a real-time policy where no CPU is left; `what` fills
/// them.
///
/// # Errors
/// Names the option and the remedy.
pub fn check_cpu_left(what: &str, policy: Policy, measured: &Cpus, allowed: &Cpus) -> Result<()> {
    ensure!(
        !policy.is_real_time() || !allowed.without(measured).is_empty(),
        "--policy {policy} with {what} on all CPUs ({measured}): it does not sleep, and would keep \
         everything else from them; leave a CPU out by --cpus, or use --policy other"
    );
    Ok(())
}

#[cfg(test)]
pub(in crate::probes) mod tests {
    use super::*;
    use crate::units::Nanos;

    /// With options as of a command line that has none, on a machine of CPUs 0 and 1.
    pub(in crate::probes) fn with_shared<T>(act: impl FnOnce(&SharedOptions<'_>) -> T) -> T {
        on_cpus(None, "0-1", act)
    }

    /// The same with these CPUs asked for, and allowed.
    pub(in crate::probes) fn on_cpus<T>(
        asked: Option<&str>,
        allowed: &str,
        act: impl FnOnce(&SharedOptions<'_>) -> T,
    ) -> T {
        let asked: Option<CpuList> = asked.map(|text| text.parse().unwrap());
        act(&SharedOptions {
            cpus: asked.as_ref(),
            allowed: &allowed.parse().unwrap(),
            samples: None,
            duration: HowLong::Time(Nanos(1_000_000_000)),
            deadlines: &Deadlines::default(),
            trace: TraceMode::Auto,
            has_loads: false,
            names_policy: false,
            to_stderr: false,
        })
    }

    #[test]
    fn a_probe_of_one_thread_runs_on_one_cpu() {
        let cpu = |asked, allowed| {
            on_cpus(asked, allowed, |shared| one_cpu(shared, "name one")).map(|found| found.near)
        };
        assert_eq!(cpu(None, "2-5").unwrap(), 2);
        assert_eq!(cpu(Some("4"), "2-5").unwrap(), 4);
        let error = cpu(Some("2,3"), "2-5").unwrap_err().to_string();
        assert!(error.contains("--cpus 2-3") && error.contains("name one"), "{error}");
    }

    #[test]
    fn what_never_sleeps_goes_before_others_only_where_a_cpu_is_left() {
        let of = |cpus: &[u32]| cpus.iter().copied().collect::<Cpus>();
        let check = |policy, on: &[u32]| check_cpu_left("noise", policy, &of(on), &of(&[0, 1]));
        check(Policy::Other, &[0, 1]).unwrap();
        check(Policy::Fifo, &[1]).unwrap();
        for policy in [Policy::Fifo, Policy::Rr] {
            let refused = check(policy, &[0, 1]).unwrap_err();
            assert!(refused.to_string().contains("leave a CPU out by --cpus"), "{refused}");
        }
    }
}

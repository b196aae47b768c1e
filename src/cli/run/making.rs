//! Which CPUs a run measures, and its probe, from the flags.

use anyhow::{Context, Result, ensure};

use super::{
    RunFlags,
    length::{DEFAULT_DURATION, LengthFlags},
};
use crate::{
    cli::{
        attach, audio,
        bandwidth::ROUND_NS,
        flags::{CpuList, HowLong},
        interactive::{self, FRAME_NS},
        inversion, messages, noise,
    },
    probes::{CpuPlan, Probe, interactive::Interactive, on_cpus},
    run::{
        OsError,
        probes::{ProbeInfo, Rhythm},
    },
    setup::{
        Wish,
        threads::{self, Terms},
    },
    sys::{cpus::Cpus, sched::Policy},
};

/// A policy and a priority, and why they are not those that were wished, if so.
type AvailablePolicy = (Policy, u32, Option<OsError>);

impl RunFlags {
    /// The CPUs to measure, and the CPUs of the local and the remote endpoint of messages.
    pub(super) fn measured_cpus(&self, probe: &ProbeInfo) -> Result<(Cpus, (u32, u32))> {
        let allowed = allowed_cpus()?;
        let asked = self.timer.cpus.as_ref();
        if let Some(CpuList { cpus, .. }) = asked {
            let refused = cpus.without(&allowed);
            ensure!(
                refused.is_empty(),
                "--cpus {cpus}: CPU {refused} is not online or not allowed for this process; \
                 allowed are {allowed}"
            );
        }
        if matches!(probe.rhythm, Rhythm::Messages | Rhythm::Rounds) {
            let places = messages::places(probe.name, asked, &allowed, self.messages.to.is_none())?;
            return Ok(([places.0, places.1].into_iter().collect(), places));
        }
        if probe.rhythm == Rhythm::Tasks {
            let cpu = interactive::cpu(asked, &allowed)?;
            return Ok(([cpu].into_iter().collect(), (cpu, cpu)));
        }
        if probe.rhythm == Rhythm::Cycles {
            let cpu = audio::cpu(asked, &allowed)?;
            return Ok(([cpu].into_iter().collect(), (cpu, cpu)));
        }
        let mut cpus = asked.map_or(allowed, |asked| asked.cpus.clone());
        if probe.rhythm == Rhythm::Interrupts {
            cpus = self.irq.cpus(cpus, asked.is_some())?;
        }
        let first = cpus.iter().next().unwrap_or(0);
        Ok((cpus, (first, first)))
    }

    /// The probe that these flags describe, and the approximate time between its samples, ns.
    pub(super) fn probe(
        &self,
        probe: &ProbeInfo,
        cpus: &Cpus,
        terms: Terms,
        far_cpu: u32,
    ) -> Result<(Box<dyn Probe>, i64)> {
        match probe.rhythm {
            Rhythm::Messages => {
                return self.messages.probe(probe.name, terms, far_cpu, &allowed_cpus()?);
            }
            Rhythm::Rounds => {
                return Ok((Box::new(self.bandwidth.bandwidth(terms, far_cpu)?), ROUND_NS));
            }
            Rhythm::Tasks => return Ok((Box::new(self.tasks(terms)?), FRAME_NS)),
            Rhythm::Cycles => {
                let audio = self.audio.audio(terms.cpu)?;
                let period_ns = audio.facts.period_ns();
                return Ok((Box::new(audio), period_ns));
            }
            Rhythm::Attached => {
                let deadlines = self.deadline.asked();
                let made = self.attach.attach(self.format.is_json(), deadlines)?;
                return Ok((Box::new(made), attach::PACE_NS));
            }
            Rhythm::Interval | Rhythm::Spin | Rhythm::Contest | Rhythm::Interrupts => {}
        }
        let mut timer = self.timer.timer(cpus.clone(), &terms);
        timer.work = self.interactive.of_timer(&timer, self.deadline.all_ns())?;
        let plan = CpuPlan {
            timer,
            says_policy: self.setup.says_policy(),
            unpaced: self.timer.unpaced,
            distribution: self.timer.distribution,
            gap_over_ns: self.noise.gap_over_ns(),
            contest_ns: self.inversion.work_ns(),
            interrupts: self.irq.interrupts(),
        };
        let made = on_cpus(probe.name, plan);
        let made = made.with_context(|| format!("no constructor for the probe {}", probe.name))?;
        let pace_ns = match probe.rhythm {
            Rhythm::Contest => self.inversion.pace_ns(),
            Rhythm::Interrupts => self.irq.interrupts().period_ns(),
            _ => noise::pace_ns(probe).unwrap_or_else(|| self.timer.interval_ns()),
        };
        Ok((made, pace_ns))
    }

    /// Policy and priority as they are asked for, and what of them is available, with what the
    /// kernel said if that is not the same.
    pub(super) fn settle(
        &self,
        probe: &ProbeInfo,
        policy: Wish<Policy>,
        priority: Wish<u32>,
    ) -> Result<(Wish<Policy>, Wish<u32>, AvailablePolicy)> {
        let available = match probe.rhythm {
            Rhythm::Contest => inversion::settle(policy, priority)?,
            Rhythm::Cycles => {
                let (policy, priority) = self.audio.settle(policy, priority)?;
                // The server has given them.
                return Ok((policy, priority, (policy.value, priority.value, None)));
            }
            _ => threads::settle(policy, priority)?,
        };
        Ok((policy, priority, available))
    }

    fn tasks(&self, terms: Terms) -> Result<Interactive> {
        self.interactive.interactive(terms, self.timer.own_interval_ns())
    }

    /// Refuses what simulated tasks cannot do under this policy on these CPUs.
    pub(super) fn check_tasks(&self, policy: Policy, cpus: &Cpus) -> Result<()> {
        let terms = Terms { policy, priority: 0, cpu: 0, slack_ns: 1 };
        let Interactive { tasks, .. } = self.tasks(terms)?;
        interactive::check_policy(&tasks, policy, cpus, &allowed_cpus()?)?;
        let LengthFlags { duration, samples, .. } = self.length;
        let duration = duration.unwrap_or(HowLong::Time(DEFAULT_DURATION));
        interactive::check_length(&tasks, samples, duration)?;
        self.trace.check_tasks()
    }
}

pub(super) fn allowed_cpus() -> Result<Cpus> {
    Cpus::allowed().context("cannot read which CPUs this process may use")
}

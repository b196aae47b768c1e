//! Options of the attach probe: whose threads.

use std::{
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, bail, ensure};
use clap::Args;

use super::{Attach, AttachTarget, series_of_name};
use crate::{
    probes::request::{
        MeasuredCpus, PlannedProbe, ProbeFlags, ProbeRequest, SharedOptions, Unsupported,
    },
    run::{Deadlines, Document, TraceMode},
    setup::threads::ThreadConfig,
    sys::{root::Root, sched::Policy},
    units::{Nanos, typed::positive},
};

/// About the time between two wake-ups of a thread, where nobody knows it, ns.
const PACE_NS: i64 = 1_000_000;

/// Which threads, and how a run ends that looks at them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Your own program")]
pub(in crate::probes) struct AttachFlags {
    /// Follow all threads of this process, including new ones
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Follow only this thread
    #[arg(long, value_name = "TID", value_parser = clap::value_parser!(u32).range(1..))]
    tid: Option<u32>,
    /// Follow all threads of this name, including new ones
    ///
    /// This is the name that `ps -eLo comm` shows; the kernel keeps its first 15 bytes. With --
    /// COMMAND, only the threads of COMMAND with this name are measured.
    #[arg(long, value_name = "COMM")]
    comm: Option<String>,
    /// Follow all threads of this control group and those below it
    ///
    /// PATH is a directory such as /sys/fs/cgroup/system.slice/my.service. Threads that are moved
    /// into it are followed within a second.
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
    /// Wait up to this time until such threads exist
    ///
    /// Use it for a program that is being started or restarted. `tardy ab` waits up to 10 s by
    /// default if it has a prepare command.
    #[arg(long, value_name = "TIME", value_parser = positive)]
    wait_for_threads: Option<Nanos>,
    /// Start this command, and follow its threads and those of its child processes
    ///
    /// Measuring starts with the command (unless you give --warmup), and stops when it ends or
    /// after --duration. tardy then sends it SIGTERM. The record has its exit code; tardy's exit
    /// code is independent of it. With --json, its output goes to standard error.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Exit with 1 if the command does not end with exit code 0
    ///
    /// The same applies if a signal ends it or it cannot be started. A command that tardy stops at
    /// the end of the run passes.
    #[arg(long)]
    require_exit_0: bool,
    /// They may come later: this is only looked through.
    #[arg(skip)]
    may_come: bool,
}

/// Between two looks for threads that are waited for.
const LOOK: Duration = Duration::from_millis(50);

impl ProbeFlags for AttachFlags {
    const UNSUPPORTED: &'static [Unsupported] = &[Unsupported {
        options: &[
            "policy",
            "priority",
            "deadline_params",
            "timer_slack",
            "shield",
            "calibrate",
            "cpus",
            "raw",
            "samples",
        ],
        why: "the threads are another program's, and are not touched",
    }];
}

impl ProbeRequest for AttachFlags {
    fn check(&self, shared: &SharedOptions<'_>) -> Result<()> {
        ensure!(
            !self.require_exit_0 || self.has_command(),
            "--require-exit-0: there is no command whose exit code could be 0; write it after --, \
             or leave the option out"
        );
        ensure!(
            shared.trace != TraceMode::Stages,
            "--trace stages is not supported with attach: the threads are another program's, and \
             are not touched; leave it out"
        );
        Ok(())
    }

    /// They have their own.
    fn usual_policy(&self) -> Policy {
        Policy::Other
    }

    fn plan(
        &self,
        _: ThreadConfig,
        _: &MeasuredCpus,
        shared: &SharedOptions<'_>,
    ) -> Result<PlannedProbe> {
        let plan = self.attach(shared.to_stderr, shared.deadlines.clone())?;
        self.wait(&plan)?;
        Ok(PlannedProbe::new(plan, PACE_NS))
    }

    fn lasts_as_its_command(&self) -> bool {
        self.has_command()
    }

    /// Threads that run already need little warm-up; after a prepare command they may be just
    /// starting.
    fn defaults_of_blocks(&self, is_prepared: bool) -> Vec<(&'static str, &'static str)> {
        let waits = is_prepared.then_some(("wait_for_threads", "--wait-for-threads=10s"));
        [Some(("warmup", "--warmup=100ms")), waits].into_iter().flatten().collect()
    }

    fn targets_may_come(&mut self) {
        self.may_come = true;
    }

    /// Its command failed, and was to end with exit code 0.
    fn has_failed(&self, document: &Document) -> bool {
        let command = document.attached.as_ref().and_then(|record| record.command.as_ref());
        self.require_exit_0 && command.is_some_and(|command| command.failure().is_some())
    }
}

impl AttachFlags {
    /// Returns once there are such threads, also of each name that has a deadline.
    fn wait(&self, plan: &Attach) -> Result<()> {
        if self.may_come {
            return Ok(());
        }
        let patience = self.wait_for_threads.map_or(0, |time| u64::try_from(time.0).unwrap_or(0));
        let end = Instant::now() + Duration::from_nanos(patience);
        let root = Root::default();
        loop {
            let found = plan.check(&root);
            // A control group is there before its threads are.
            let is_there = found.is_ok() && (patience == 0 || plan.has_threads(&root));
            if is_there || Instant::now() >= end {
                return found.map_err(|why| anyhow!(why));
            }
            thread::sleep(LOOK);
        }
    }

    fn targets(&self) -> Vec<(&'static str, AttachTarget)> {
        let command =
            (!self.command.is_empty()).then(|| AttachTarget::Command(self.command.clone()));
        [
            ("--pid", self.pid.map(AttachTarget::Process)),
            ("--tid", self.tid.map(AttachTarget::Thread)),
            ("--comm", self.comm.clone().map(AttachTarget::Name)),
            ("--cgroup", self.cgroup.clone().map(AttachTarget::Group)),
            ("-- COMMAND", command),
        ]
        .into_iter()
        .filter_map(|(flag, target)| Some((flag, target?)))
        .collect()
    }

    /// Whether tardy starts what it looks at.
    const fn has_command(&self) -> bool {
        !self.command.is_empty()
    }

    /// Whose threads, once they are there.
    ///
    /// # Errors
    /// No threads are named, or they are in two ways, or no such threads exist.
    fn attach(&self, to_stderr: bool, deadlines: Deadlines) -> Result<Attach> {
        let mut targets = self.targets();
        let is_name = |(flag, _): &(&str, AttachTarget)| *flag == "--comm";
        let only = self.comm.clone().filter(|_| self.has_command());
        targets.retain(|target| only.is_none() || !is_name(target));
        ensure!(
            targets.len() < 2,
            "{} and {}: whose threads? Name them in one way",
            targets.first().map_or("", |one| one.0),
            targets.get(1).map_or("", |one| one.0)
        );
        let Some((_, target)) = targets.pop() else {
            bail!(
                "attach: whose threads? Name them by --pid PID, --tid TID, --comm NAME or --cgroup \
                 PATH, or let tardy start the program: tardy run attach -- COMMAND"
            );
        };
        if let Some(only) = &only {
            let asked = deadlines.of_threads.iter().find(|own| own.name != series_of_name(only));
            let other = asked.map_or("", |own| own.name.as_str());
            ensure!(
                asked.is_none(),
                "--deadline: {other} is not measured, as --comm {only} names other threads; leave \
                 one of them out"
            );
        }
        Ok(Attach { target, only, to_stderr, deadlines })
    }
}

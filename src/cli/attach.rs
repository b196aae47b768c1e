//! Flags of the attach probe: whose threads, and which flags it does not support.

use std::{
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, bail, ensure};
use clap::Args;

use super::{Exit, flags::positive};
use crate::{
    probes::attach::{Attach, AttachTarget, series_of_name},
    run::{
        AttachedCommand, Deadlines, Document,
        probes::{ProbeInfo, Rhythm},
    },
    sys::root::Root,
    units::Nanos,
};

/// About the time between two wake-ups of a thread, where nobody knows it, ns.
pub(super) const PACE_NS: i64 = 1_000_000;

/// Which threads that are there.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Your own program (attach)")]
pub(super) struct AttachedFlags {
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
    /// They may come later: this is only looked through.
    #[arg(skip)]
    may_come: bool,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Your own program (attach)")]
pub(super) struct AttachFlags {
    #[command(flatten)]
    there: AttachedFlags,
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
}

/// Between two looks for threads that are waited for.
const LOOK: Duration = Duration::from_millis(50);

impl AttachedFlags {
    /// Returns once there are such threads, also of each name that has a deadline.
    fn wait(&self, plan: &Attach) -> Result<()> {
        if self.may_come {
            return Ok(());
        }
        let patience = self.wait_for_threads.map_or(0, |time| u64::try_from(time.0).unwrap_or(0));
        let end = Instant::now() + Duration::from_nanos(patience);
        loop {
            match plan.check(&Root::default()) {
                Err(_) if Instant::now() < end => thread::sleep(LOOK),
                found => return found.map_err(|why| anyhow!(why)),
            }
        }
    }
}

impl AttachFlags {
    /// Accepts targets whose threads do not exist yet.
    pub(super) const fn may_come(&mut self) {
        self.there.may_come = true;
    }

    fn targets(&self) -> Vec<(&'static str, AttachTarget)> {
        let command =
            (!self.command.is_empty()).then(|| AttachTarget::Command(self.command.clone()));
        [
            ("--pid", self.there.pid.map(AttachTarget::Process)),
            ("--tid", self.there.tid.map(AttachTarget::Thread)),
            ("--comm", self.there.comm.clone().map(AttachTarget::Name)),
            ("--cgroup", self.there.cgroup.clone().map(AttachTarget::Group)),
            ("-- COMMAND", command),
        ]
        .into_iter()
        .filter_map(|(flag, target)| Some((flag, target?)))
        .collect()
    }

    /// What a failed command means for the exit code of tardy.
    pub(super) fn exit(&self, document: &Document) -> Exit {
        let command = document.attached.as_ref().and_then(|record| record.command.as_ref());
        match command.and_then(AttachedCommand::failure) {
            Some(_) if self.require_exit_0 => Exit::No,
            _ => Exit::Done,
        }
    }

    /// Whether tardy starts what it looks at.
    pub(super) fn has_command(&self) -> bool {
        !self.command.is_empty()
    }

    /// Refuses the flags for any other probe, and for it those of threads of tardy's own, of which
    /// `given` says which are given.
    ///
    /// # Errors
    /// Names the flag.
    pub(super) fn check(&self, probe: &ProbeInfo, given: &[(&str, bool)]) -> Result<()> {
        let targets = self.targets();
        ensure!(
            !self.require_exit_0 || self.has_command(),
            "--require-exit-0: there is no command whose exit code could be 0; write it after --, \
             or leave the option out"
        );
        if probe.rhythm != Rhythm::Attached {
            if let Some((flag, _)) = targets.first() {
                bail!(
                    "{flag} is not supported with {}; leave it out, or measure attach",
                    probe.name
                );
            }
            return Ok(());
        }
        if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
            bail!(
                "{flag} is not supported with attach: the threads are another program's, and are \
                 not touched; leave it out"
            );
        }
        Ok(())
    }

    /// The probe that these flags describe.
    ///
    /// # Errors
    /// No threads are named, or they are in two ways, or no such threads exist.
    pub(super) fn attach(&self, to_stderr: bool, deadlines: Deadlines) -> Result<Attach> {
        let mut targets = self.targets();
        let is_name = |(flag, _): &(&str, AttachTarget)| *flag == "--comm";
        let only = self.there.comm.clone().filter(|_| self.has_command());
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
        let plan = Attach { target, only, to_stderr, deadlines };
        self.there.wait(&plan)?;
        Ok(plan)
    }
}

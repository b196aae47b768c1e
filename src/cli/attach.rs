//! Flags of the attach probe: whose threads, and which flags it does not support.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail, ensure};
use clap::Args;

use crate::{
    probes::attach::{Attach, AttachTarget},
    run::probes::{ProbeInfo, Rhythm},
    sys::root::Root,
};

/// About the time between two wake-ups of a thread, where nobody knows it, ns.
pub(super) const PACE_NS: i64 = 1_000_000;

/// Which threads that are there.
#[derive(Debug, Default, Args)]
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
    /// It is the name that `ps -eLo comm` shows; the kernel keeps its first 15 bytes.
    #[arg(long, value_name = "COMM")]
    comm: Option<String>,
    /// Follow all threads of this control group and those below it
    ///
    /// PATH is a directory such as /sys/fs/cgroup/system.slice/my.service. Threads that are moved
    /// into it are followed after a second at most.
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Your own program (attach)")]
pub(super) struct AttachFlags {
    #[command(flatten)]
    there: AttachedFlags,
    /// Start this command and look at its threads and at all that it starts
    ///
    /// It is measured from its start on, unless --warmup says otherwise, and until it ends, or
    /// --duration is over: then it is asked to end by SIGTERM. Its exit code is in the record; that
    /// of tardy is tardy's own. With --json what it prints goes to the standard error.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl AttachFlags {
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
    pub(super) fn attach(&self, to_stderr: bool, deadline_ns: Option<i64>) -> Result<Attach> {
        let mut targets = self.targets();
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
        target.check(&Root::default()).map_err(|why| anyhow!(why))?;
        Ok(Attach { target, to_stderr, deadline_ns })
    }
}

//! One run as a child: `tardy run` as a user would type it, and whether it measured.

use std::{
    fs::File,
    io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use super::{
    commands::quoted,
    process::{AtQuit, ChildWaiter, words},
};
use crate::{run::RunDirectory, sys::child};

/// Exit codes of a run that was measured: done, stopped over a limit, and invalid.
const MEASURED: [i32; 3] = [0, 1, 4];

/// Starts runs, one after the other.
#[derive(Debug)]
pub(super) struct ChildRuns {
    log: File,
}

/// What a run is to be.
#[derive(Debug)]
pub(super) struct ChildOrder<'a> {
    /// The options of `tardy run`.
    pub words: &'a [String],
    /// How long it measures, ns; `None` if the options say it.
    pub length_ns: Option<i64>,
    /// Its id.
    pub id: &'a str,
    /// Its run directory, new and empty, which the child is given open.
    pub directory: &'a RunDirectory,
    /// Where that is.
    pub path: &'a Path,
    /// Its name.
    pub name: &'a str,
    /// Where other runs are.
    pub store: &'a Path,
}

impl ChildRuns {
    /// With a new file in `directory` for what they print on standard error.
    pub(super) fn new(directory: &RunDirectory, log: &str) -> io::Result<Self> {
        Ok(Self { log: directory.create(log)? })
    }

    /// Runs one to its end; whether it measured, or was asked to end as the user wants all to end.
    ///
    /// # Errors
    /// It could not be measured: what it said.
    pub(super) fn measure(
        &self,
        order: &ChildOrder<'_>,
        watch: &ChildWaiter,
        show: (Option<Duration>, &mut dyn FnMut()),
    ) -> Result<bool> {
        let from = self.log.metadata().map_or(0, |about| about.len());
        let mut command = self.command(order).context("cannot write the log of the runs")?;
        let mut run = command.spawn().context("cannot start this program again")?;
        drop(command);
        let ended = watch.wait(&mut run, AtQuit::Ask, None, show);
        let ended = ended.with_context(|| format!("cannot wait for {}", order.name))?;
        if ended.was_asked {
            return Ok(false);
        }
        if ended.status.code().is_some_and(|code| MEASURED.contains(&code)) {
            return Ok(true);
        }
        let said = quoted(&self.log, from, 0);
        let said = said.strip_prefix("error: ").unwrap_or(&said);
        bail!("{} could not be measured ({}): {said}", order.name, words(ended.status))
    }

    /// It ends in order also where this process is killed, and puts the machine back.
    fn command(&self, order: &ChildOrder<'_>) -> io::Result<Command> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("tardy").arg("run").args(order.words);
        if let Some(length_ns) = order.length_ns {
            command.arg(format!("--duration={}ms", length_ns / 1_000_000));
        }
        command.arg("--output").arg(order.path).arg(format!("--name={}", order.name));
        // Whatever has that path by then: the directory that was made for it is the one it gets.
        let directory = vec![order.directory.descriptor()?];
        let number = child::numbers(&directory).first().copied().unwrap_or_default();
        command.arg(format!("--part-of={number}:{}", order.id));
        child::hand_over(&mut command, directory);
        command.arg("--store").arg(order.store).arg("--quiet");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(self.log.try_clone()?);
        // Ctrl-C goes to this process's group; the run gets one signal, from here.
        command.process_group(0);
        child::ask_to_end_with_this_thread(&mut command);
        Ok(command)
    }
}

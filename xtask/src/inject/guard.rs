//! Restores what a delay may leave behind when the injector is killed: a stopped process, a thread
//! on a CPU that is not its own.
//!
//! The guard is a process that waits for the end of a pipe. Whatever ends the injector closes it.

use std::{
    io::Read,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result};
use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use tardy::sys::cpus::Cpus;

/// Ends with the pipe in it.
pub(super) struct Guard(Child);

/// Starts the guard of a process and of its threads with their CPUs.
pub(super) fn post(target: i32, threads: &[(i32, u32)]) -> Result<Guard> {
    let mut words = vec!["inject-guard".to_owned(), target.to_string()];
    words.extend(threads.iter().map(|(tid, cpu)| format!("{tid}:{cpu}")));
    let child = Command::new(std::env::current_exe()?)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .context("the guard cannot be started")?;
    Ok(Guard(child))
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Restores what a killed injector left
#[derive(Debug, Args)]
pub(crate) struct GuardFlags {
    pid: i32,
    /// Its measured threads and their CPUs, as TID:CPU
    #[arg(value_parser = thread)]
    threads: Vec<(i32, Cpus)>,
}

fn thread(text: &str) -> Result<(i32, Cpus)> {
    let (tid, cpu) = text.split_once(':').context("not TID:CPU")?;
    Ok((tid.parse()?, cpu.parse()?))
}

/// The guard itself.
pub(crate) fn run(flags: &GuardFlags) -> Result<()> {
    // An end of any kind will do.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    for (tid, cpu) in &flags.threads {
        // It may have ended.
        let _ = cpu.pin(*tid);
    }
    if let Some(pid) = Pid::from_raw(flags.pid) {
        let _ = kill_process(pid, Signal::CONT);
    }
    Ok(())
}

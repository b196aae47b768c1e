//! Processes that are measured from outside: how long, how much memory, how much CPU per wake-up.

use std::{
    fs, io,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

/// How a process fared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fared {
    pub took: Duration,
    /// The most memory it had resident, bytes. Never less than what this process had when it
    /// started the other one: the kernel keeps that mark over an exec.
    pub peak_bytes: u64,
}

/// Runs `command` to its end without its output.
pub(super) fn run(command: &mut Command) -> Result<Fared> {
    let begun = Instant::now();
    let child = start(command)?;
    let (code, peak_bytes) = wait(&child)?;
    let took = begun.elapsed();
    ensure!(code == 0, "{} ended with status {code}", shown(command));
    Ok(Fared { took, peak_bytes })
}

/// Starts `command` without its output.
pub(super) fn start(command: &mut Command) -> Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().with_context(|| format!("cannot start {}", shown(command)))
}

/// Waits for a child, with what it used.
fn wait(child: &Child) -> Result<(i32, u64)> {
    let pid = i32::try_from(child.id())?;
    let mut status = 0;
    // SAFETY: an rusage of zeros is a valid value; the kernel fills it in.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: `status` and `usage` are writable, and `pid` is a child that nobody waited for.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    if waited != pid {
        bail!("cannot wait for process {pid}: {}", io::Error::last_os_error());
    }
    let code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 };
    Ok((code, u64::try_from(usage.ru_maxrss)? * 1024))
}

fn shown(command: &Command) -> String {
    format!("{command:?}").replace('"', "")
}

/// What the measuring threads of a process have used by now.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Used {
    /// Time on a CPU, ns.
    pub cpu_ns: u64,
    /// Times they went to sleep.
    pub sleeps: u64,
}

impl Used {
    /// Of all threads of `pid` for which `counts` is true, by its name and whether it is the first.
    ///
    /// CPU time is the first number of `schedstat`: ns, user and kernel mode, counted by the
    /// scheduler and not by sampled ticks. Sleeps are voluntary context switches: one a wake-up,
    /// whatever the program says of itself.
    pub(super) fn of(pid: u32, counts: impl Fn(&str, bool) -> bool) -> Result<Self> {
        let mut all = Self::default();
        let mut threads = 0;
        for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
            let entry = entry?;
            let first = entry.file_name().to_str() == Some(&pid.to_string());
            // A thread may go between the listing and the look.
            let Ok(name) = fs::read_to_string(entry.path().join("comm")) else {
                continue;
            };
            if counts(name.trim_end(), first) {
                let own = Self::of_thread(&entry.path())?;
                all.cpu_ns += own.cpu_ns;
                all.sleeps += own.sleeps;
                threads += 1;
            }
        }
        ensure!(threads > 0, "process {pid} has no measuring thread");
        Ok(all)
    }

    fn of_thread(task: &Path) -> Result<Self> {
        let schedstat = fs::read_to_string(task.join("schedstat"))
            .context("this kernel has no schedstat (CONFIG_SCHED_INFO)")?;
        let status = fs::read_to_string(task.join("status"))?;
        let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        Ok(Self {
            cpu_ns: schedstat.split(' ').next().context("schedstat is empty")?.parse()?,
            sleeps: sleeps.context("no voluntary_ctxt_switches")?.trim().parse()?,
        })
    }

    /// CPU time per wake-up between `earlier` and this, ns.
    pub(super) fn per_wakeup_since(self, earlier: Self) -> Result<f64> {
        let sleeps = self.sleeps.saturating_sub(earlier.sleeps);
        ensure!(sleeps > 100, "only {sleeps} wake-ups between two reads");
        Ok(self.cpu_ns.saturating_sub(earlier.cpu_ns) as f64 / sleeps as f64)
    }
}

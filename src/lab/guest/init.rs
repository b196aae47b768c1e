//! The first process of a guest: mounts, loads modules, runs one command, powers off.
//!
//! The command's standard output goes out through [`super::output_port`], which nothing else writes
//! to; its standard error joins the kernel's messages on the serial port. The last line of the
//! output is [`END`] and the exit code. Where the job names a directory to hand out, both are kept
//! and go with its files through [`super::result_port`]. Ends with the machine; nothing is
//! restored.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use rustix::{
    mount::{MountFlags, mount},
    process::{Pid, WaitOptions, wait},
    system::{RebootCommand, finit_module, reboot, sethostname},
};
use serde::{Deserialize, Serialize};

use super::{
    nodes,
    output_port::{OutputPort, Relay},
    result_port::ResultPort,
    transfer::FAILED,
};
use crate::sys::namespace::raise_loopback;

/// Where a guest finds its job.
pub const JOB: &str = "/job/job.json";

/// Begins a line about a file that the job wants back.
pub const KEPT: &str = "guest-kept ";

/// Begins the last line: how the command ended.
pub const END: &str = "guest-end ";

/// This program, inside.
pub const OWN: &str = "/init";

/// Where both of its streams are kept until they are handed out.
const SAID: &str = "/run/said";

/// What a guest is to do.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Its environment.
    pub environment: BTreeMap<String, String>,
    /// Modules to load before, in this order.
    pub modules: Vec<Module>,
    /// Files whose lines are written out at the end.
    pub kept: Vec<PathBuf>,
    /// How long to wait before the command starts, ns.
    pub wait_ns: u64,
    /// The directory whose files are handed out at the end.
    pub handed_out: Option<PathBuf>,
    /// Arguments of the tardy in the second box; none where there is one box.
    #[serde(default)]
    pub far: Vec<String>,
}

/// A module and what it is given.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Where it lies in the guest.
    pub file: PathBuf,
    /// `name=value`, as for `insmod`.
    pub parameters: String,
}

/// Source, target, kind, options. `/tmp` stays what the archive made it: programs may lie there.
const MOUNTS: [(&str, &str, &str, &str); 9] = [
    ("proc", "/proc", "proc", ""),
    ("sysfs", "/sys", "sysfs", ""),
    ("devtmpfs", "/dev", "devtmpfs", "mode=755"),
    ("devpts", "/dev/pts", "devpts", "ptmxmode=666"),
    ("tmpfs", "/dev/shm", "tmpfs", "mode=1777"),
    ("tmpfs", "/run", "tmpfs", "mode=755"),
    ("cgroup2", "/sys/fs/cgroup", "cgroup2", ""),
    ("tracefs", "/sys/kernel/tracing", "tracefs", ""),
    ("debugfs", "/sys/kernel/debug", "debugfs", ""),
];

/// Whether this process is the first of a guest. The first of a PID namespace within a guest has
/// that number too, and sees the same job; but the kernel starts its own before there is a `/proc`.
pub fn is_me() -> bool {
    std::process::id() == 1 && Path::new(JOB).exists() && !Path::new("/proc/self").exists()
}

/// Does the job and powers off; returns only where that is impossible.
pub fn run() -> Result<()> {
    // Before anything that may fail: the waiting host must learn that the kernel got this far.
    let mut port = ResultPort::open();
    let ended = work(&mut port);
    if let Err(error) = &ended {
        // Goes to the console, beside the kernel's messages.
        let _ = writeln!(std::io::stderr(), "the guest's first process: {error:#}");
    }
    if !port.is_used() {
        tell_end(&ended);
    }
    reboot(RebootCommand::PowerOff).context("cannot power off")
}

/// The last line.
fn tell_end(ended: &Result<i32>) {
    let line = match ended {
        Ok(code) => format!("{END}{code}"),
        Err(error) => format!("{END}failed: {error:#}").replace('\n', " "),
    };
    if let Ok(mut output) = OutputPort::open() {
        let _ = output.line(&line);
        output.drain();
    }
}

fn work(port: &mut ResultPort) -> Result<i32> {
    mount_all()?;
    let job = fs::read(JOB).with_context(|| format!("cannot read {JOB}"))?;
    let job: Job = serde_json::from_slice(&job).with_context(|| format!("cannot read {JOB}"))?;
    let Some(directory) = &job.handed_out else {
        prepare(&job)?;
        return relayed(&job);
    };
    let said = Path::new(SAID);
    let ended = prepare(&job).and_then(|()| {
        let output = fs::File::create(said).with_context(|| format!("cannot make {SAID}"))?;
        let errors = output.try_clone()?;
        let mut words = output.try_clone()?;
        let code = command(&job, output.into(), errors.into())?;
        let far = nodes::said();
        if code == FAILED && !far.is_empty() {
            writeln!(words, "The second box printed: {far}")?;
        }
        Ok(code)
    });
    port.hand(&ended, directory, said)?;
    ended
}

/// Loads modules, brings the network up, starts the second box, and waits for the phase offset.
fn prepare(job: &Job) -> Result<()> {
    for Module { file: module, parameters } in &job.modules {
        let file = fs::File::open(module);
        let file = file.with_context(|| format!("cannot open {}", module.display()))?;
        let parameters = std::ffi::CString::new(parameters.as_str())?;
        finit_module(&file, &parameters, 0)
            .with_context(|| format!("cannot load {}", module.display()))?;
    }
    raise_loopback().context("cannot bring up the loopback device")?;
    if !job.far.is_empty() {
        // It ends with the machine.
        nodes::start(OWN, &job.far)?;
    }
    std::thread::sleep(Duration::from_nanos(job.wait_ns));
    Ok(())
}

fn mount_all() -> Result<()> {
    for (source, target, kind, options) in MOUNTS {
        fs::create_dir_all(target).with_context(|| format!("cannot make {target}"))?;
        let options = std::ffi::CString::new(options)?;
        mount(source, target, kind, MountFlags::empty(), Some(options.as_c_str()))
            .with_context(|| format!("cannot mount {kind} on {target}"))?;
    }
    for (name, target) in [("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1")] {
        std::os::unix::fs::symlink(target, Path::new("/dev").join(name))?;
    }
    sethostname(b"guest").context("cannot set the name of the machine")
}

/// Runs the command, whose output goes out meanwhile, and writes out what is kept.
fn relayed(job: &Job) -> Result<i32> {
    let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
    let relay = Relay::start(reader, OutputPort::open()?);
    let code = command(job, writer.into(), Stdio::inherit());
    let output = relay.end()?;
    keep(&job.kept, output)?;
    code
}

/// Runs the command; meanwhile reaps the orphans that are reparented to the first process.
fn command(job: &Job, output: Stdio, errors: Stdio) -> Result<i32> {
    let Some((program, arguments)) = job.command.split_first() else {
        bail!("{JOB} has no command");
    };
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(&job.environment)
        .current_dir("/root")
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .with_context(|| format!("cannot start {program}: it is not in the guest"))?;
    let own = Pid::from_raw(i32::try_from(child.id())?);
    loop {
        let ended = wait(WaitOptions::empty()).context("cannot wait for the command")?;
        if let Some((pid, status)) = ended
            && Some(pid) == own
        {
            let status = std::process::ExitStatus::from_raw(status.as_raw());
            return Ok(code_of(status));
        }
    }
}

/// As shells count: the exit code, or 128 and the signal.
fn code_of(status: std::process::ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

fn keep(files: &[PathBuf], mut output: OutputPort) -> Result<()> {
    for file in files {
        // One that was never written has no lines.
        for line in fs::read_to_string(file).unwrap_or_default().lines() {
            output.line(&format!("{KEPT}{}\t{line}", file.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_themselves_are_no_guest() {
        assert!(!is_me());
    }

    #[test]
    fn a_job_survives_the_way_into_the_guest() {
        let job = Job {
            command: ["sh", "-c", "echo \"a\tb\""].map(str::to_owned).into(),
            environment: [("PATH".to_owned(), "/usr/bin".to_owned())].into(),
            modules: [Module { file: "/job/veth.ko".into(), parameters: "a=1".into() }].into(),
            kept: ["/tmp/skips".into()].into(),
            wait_ns: 7,
            handed_out: Some("/run/lab".into()),
            far: ["echo".to_owned()].into(),
        };
        let text = serde_json::to_vec(&job).unwrap();
        assert_eq!(serde_json::from_slice::<Job>(&text).unwrap(), job);
    }

    #[test]
    fn an_end_by_a_signal_is_reported_as_shells_do() {
        let ended = |script: &str| Command::new("sh").args(["-c", script]).status().unwrap();
        assert_eq!(code_of(ended("exit 7")), 7);
        assert_eq!(code_of(ended("kill -TERM $$")), 143);
    }
}

//! What the CPUs of a guest that hangs are doing, asked of QEMU while it is still there: a guest
//! that is silent can no longer tell. QEMU answers by its machine protocol (QMP, `qmp-spec` in
//! QEMU's documentation).

use std::{
    fs,
    io::{self, BufRead, BufReader, Write as _},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::Path,
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// How long QEMU may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time between two looks: a CPU that is at the same place in both does not move.
const BETWEEN: Duration = Duration::from_secs(2);

/// The flag of RFLAGS that lets interrupts in.
const INTERRUPTS: u64 = 1 << 9;

/// A line to a QEMU that is about to be started.
#[derive(Debug)]
pub(super) struct Qmp(UnixStream);

impl Qmp {
    /// By the standard input and output of this command.
    pub(super) fn connect(command: &mut Command) -> io::Result<Self> {
        let (own, other) = UnixStream::pair()?;
        own.set_read_timeout(Some(PATIENCE))?;
        own.set_write_timeout(Some(PATIENCE))?;
        command.args(["-qmp", "stdio"]);
        command.stdin(Stdio::from(OwnedFd::from(other.try_clone()?)));
        command.stdout(Stdio::from(OwnedFd::from(other)));
        Ok(Self(own))
    }

    /// Looks twice at each of `cpus` CPUs, leaves the complete answers in `file`, and returns a
    /// line for each.
    pub(super) fn look(self, cpus: u8, file: &Path) -> Result<Vec<String>> {
        let mut session = QmpSession::begin(&self.0)?;
        let mut answers = session.answers(cpus)?;
        let mut lines = states("", &answers);
        sleep(BETWEEN);
        let later = session.answers(cpus)?;
        lines.extend(states(&format!("{} s later, ", BETWEEN.as_secs()), &later));
        answers.push_str(&later);
        fs::write(file, answers)?;
        Ok(lines)
    }
}

/// A QEMU that answers.
struct QmpSession<'a> {
    reader: BufReader<&'a UnixStream>,
    writer: &'a UnixStream,
}

impl<'a> QmpSession<'a> {
    fn begin(stream: &'a UnixStream) -> Result<Self> {
        let mut session = Self { reader: BufReader::new(stream), writer: stream };
        session.execute(&json!({"execute": "qmp_capabilities"}))?;
        Ok(session)
    }

    /// The registers of all CPUs, and the interrupts that wait at each.
    fn answers(&mut self, cpus: u8) -> Result<String> {
        let mut text = self.human("info registers -a")?;
        for cpu in 0..cpus {
            text.push_str(&self.human(&format!("info lapic {cpu}"))?);
        }
        Ok(text)
    }

    /// What QEMU's monitor prints for people.
    fn human(&mut self, line: &str) -> Result<String> {
        let arguments = json!({"command-line": line});
        let said = json!({"execute": "human-monitor-command", "arguments": arguments});
        let answer = self.execute(&said)?;
        answer.as_str().map(str::to_owned).context("QEMU answers without text")
    }

    fn execute(&mut self, command: &Value) -> Result<Value> {
        writeln!(self.writer, "{command}").context("QEMU takes no command")?;
        loop {
            let mut line = String::new();
            let length = self.reader.read_line(&mut line).context("QEMU does not answer")?;
            if length == 0 {
                bail!("QEMU has ended");
            }
            let mut answer: Value = serde_json::from_str(&line)?;
            if let Some(error) = answer.get("error") {
                bail!("QEMU refuses {command}: {error}");
            }
            // What else comes are its greeting, and events.
            if answer.get("return").is_some() {
                return Ok(answer["return"].take());
            }
        }
    }
}

/// A line for each CPU of `info registers -a`, and its timer.
fn states(prefix: &str, answers: &str) -> Vec<String> {
    let timers = answers.lines().filter(|line| line.starts_with("Timer")).map(Some);
    let mut timers = timers.chain(std::iter::repeat(None));
    let parts = answers.split("CPU#").skip(1);
    let line = |part: &str| {
        let state = state(part)?;
        let timer = timers.next().flatten().map(shortened).unwrap_or_default();
        Some(format!("{prefix}CPU {state}{timer}"))
    };
    parts.filter_map(line).collect()
}

/// The timer of a CPU, of the many spaces of a table.
fn shortened(timer: &str) -> String {
    let words: Vec<&str> = timer.split_whitespace().collect();
    format!("; {}", words.join(" "))
}

/// What a CPU is doing: its number, where, and whether it waits.
fn state(part: &str) -> Option<String> {
    let number = part.split_whitespace().next()?;
    let field = |name: &str| part.split_whitespace().find_map(|word| word.strip_prefix(name));
    let (at, level) = (field("RIP=")?, field("CPL=")?);
    let flags = u64::from_str_radix(field("RFL=")?, 16).ok()?;
    let space = if level == "0" { "the kernel" } else { "user space" };
    let halted = if field("HLT=") == Some("1") { ", halted" } else { "" };
    let masked = if flags & INTERRUPTS == 0 { ", interrupts off" } else { "" };
    Some(format!("{number} in {space} at {at}{halted}{masked}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWERS: &str = "\r
CPU#0\r
RAX=0000000000000000 RBX=ffffffff82a1a940\r
RIP=ffffffff81c0f3eb RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1\r
\r
CPU#1\r
RIP=00005599b6a1c0de RFL=00000046 [---Z-P-] CPL=3 II=0 A20=1 SMM=0 HLT=0\r
dumping local APIC state for CPU 0\r
\r
Timer\t\t DCR=0x3 (divide by 16) initial_count = 624 current_count = 12\r
SPIV\t\t 0x000001ff APIC enabled\r
";

    #[test]
    fn a_cpu_is_said_to_be_where_qemu_says() {
        assert_eq!(
            states("2 s later, ", ANSWERS),
            [
                "2 s later, CPU 0 in the kernel at ffffffff81c0f3eb, halted; \
                 Timer DCR=0x3 (divide by 16) initial_count = 624 current_count = 12",
                "2 s later, CPU 1 in user space at 00005599b6a1c0de, interrupts off",
            ]
        );
    }

    #[test]
    fn a_qemu_that_is_not_there_or_says_no_is_an_error() {
        let (own, other) = UnixStream::pair().unwrap();
        let place = tempfile::tempdir().unwrap();
        writeln!(&other, r#"{{"QMP": {{}}}}"#).unwrap();
        writeln!(&other, r#"{{"error": {{"desc": "not now"}}}}"#).unwrap();
        let refused = Qmp(own).look(2, &place.path().join("cpus")).unwrap_err();
        assert!(refused.to_string().contains("not now"), "{refused:#}");
        let (own, _) = UnixStream::pair().unwrap();
        assert!(Qmp(own).look(2, &place.path().join("cpus")).is_err());
    }
}

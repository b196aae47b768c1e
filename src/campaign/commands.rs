//! The user's own commands: what changes the machine before a block, and what restores it.
//!
//! `sh -c` runs each in its own process group. What they print goes into a file, not a pipe: a
//! daemon that one of them starts keeps it open, and is not waited for.

use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::{fs::FileExt as _, process::CommandExt as _, process::ExitStatusExt as _},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use super::process::{AtQuit, ChildWaiter, Ended, words};
use crate::{
    plain::plain,
    run::{AbCommand, RunDirectory},
    sys::child,
    units::span,
};

/// What they print, of a campaign that is not resumed.
pub(super) const LOG: &str = "commands.log";

/// The last bytes of a command's output that an error quotes.
const QUOTED: u64 = 2_000;

/// The log, and the waiting thread.
#[derive(Debug)]
pub(super) struct Commands {
    log: File,
    /// What a command may take at most: the whole budget.
    limit: Duration,
}

/// A command of the user.
#[derive(Debug, Clone, Copy)]
pub(super) struct UserCommand<'a> {
    /// `prepare-a`, `prepare-b`, `prepare` or `undo`.
    pub what: &'static str,
    /// As errors name it: its flag, or its key in a plan.
    pub shown: &'static str,
    /// What `sh -c` runs.
    pub text: &'a str,
    /// The block before which it runs.
    pub block: Option<&'a str>,
}

impl Commands {
    /// With a new log in `directory`.
    pub(super) fn new(directory: &RunDirectory, log: &str, limit: Duration) -> io::Result<Self> {
        Ok(Self { log: directory.create(log)?, limit })
    }

    /// Runs it to its end, and hands over what is recorded of it and how it ended.
    ///
    /// # Errors
    /// It cannot be started or waited for.
    pub(super) fn run(&self, command: UserCommand<'_>, watch: &ChildWaiter) -> Result<Done> {
        let is_undo = command.what == "undo";
        let before = command.block.map(|block| format!(" before {block}")).unwrap_or_default();
        // The log is for people; where it cannot be written, the command says so too.
        let _ = writeln!(&self.log, "# {}{before}: {}", command.what, command.text);
        let from = self.log.metadata().map_or(0, |about| about.len());
        let flag = || format!("{}: cannot run sh", command.shown);
        let start = Instant::now();
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command.text).stdin(Stdio::null());
        shell.stdout(self.log.try_clone().with_context(flag)?);
        shell.stderr(self.log.try_clone().with_context(flag)?).process_group(0);
        if !is_undo {
            child::ask_to_end_with_this_thread(&mut shell);
        }
        let mut shell = shell.spawn().with_context(flag)?;
        // What was begun to be restored is restored, also after a second Ctrl-C.
        let at_quit = if is_undo { AtQuit::Wait } else { AtQuit::End };
        let ended = watch.wait(&mut shell, at_quit, Some(self.limit), (None, &mut || {}));
        let ended = ended.with_context(|| format!("{}: cannot wait for it", command.shown))?;
        let _ = writeln!(&self.log, "# {}: {}", command.what, words(ended.status));
        let record = AbCommand {
            what: command.what.into(),
            block: command.block.map(str::to_owned),
            exit_code: ended.status.code(),
            signal: ended.status.signal(),
            taken_ns: u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
        };
        Ok(Done { record, ended, from })
    }

    /// Refuses to continue after a command that failed.
    ///
    /// # Errors
    /// Its flag, how it ended, and the end of what it printed.
    pub(super) fn check(&self, command: UserCommand<'_>, done: &Done) -> Result<()> {
        if done.ended.status.success() {
            return Ok(());
        }
        let (what, text) = (command.shown, plain(command.text));
        let how = if done.ended.was_late {
            format!("was ended as it took longer than {}", span(self.limit.as_secs_f64()))
        } else {
            format!("failed ({})", words(done.ended.status))
        };
        let said = quoted(&self.log, done.from, 1);
        let said = if said.is_empty() { "it printed nothing".into() } else { said };
        bail!("{what} {text:?} {how}; {said}");
    }
}

/// A command that has ended.
#[derive(Debug)]
pub(super) struct Done {
    /// What is kept of it.
    pub record: AbCommand,
    /// How it ended.
    pub ended: Ended,
    /// Where in the log begins what it printed.
    from: u64,
}

/// The end of what was written into `log` from the byte `from` on, but for the last `less` lines.
pub(super) fn quoted(log: &File, from: u64, less: usize) -> String {
    let end = log.metadata().map_or(0, |about| about.len());
    let begin = from.max(end.saturating_sub(QUOTED));
    let length = usize::try_from(end.saturating_sub(begin)).unwrap_or(0);
    let mut bytes = vec![0; length];
    // Nothing of it where it cannot be read: the error that quotes it has its own cause.
    let read = log.read_at(&mut bytes, begin).unwrap_or(0);
    bytes.truncate(read);
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let kept = lines.len().saturating_sub(less);
    lines.get(..kept).unwrap_or_default().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::signals::Quit;

    fn commands(limit: Duration) -> (tempfile::TempDir, Commands, ChildWaiter) {
        let place = tempfile::tempdir().unwrap();
        let directory = RunDirectory::make(&place.path().join("ab")).unwrap();
        let commands = Commands::new(&directory, LOG, limit).unwrap();
        (place, commands, ChildWaiter::new(Quit::listen().unwrap()).unwrap())
    }

    fn run(text: &str, limit: Duration) -> (AbCommand, Result<()>) {
        let (_place, commands, watch) = commands(limit);
        let command =
            UserCommand { what: "prepare-b", shown: "--prepare-b", text, block: Some("0003-b") };
        let done = commands.run(command, &watch).unwrap();
        let checked = commands.check(command, &done);
        (done.record, checked)
    }

    #[test]
    fn a_command_that_fails_is_quoted_with_what_it_printed() {
        let (record, checked) =
            run("echo to out; echo to err >&2; exit 3", Duration::from_secs(60));
        assert_eq!((record.exit_code, record.signal), (Some(3), None));
        assert_eq!(record.block.as_deref(), Some("0003-b"));
        let error = checked.unwrap_err().to_string();
        assert!(error.starts_with("--prepare-b \"echo to out"), "{error}");
        assert!(error.ends_with("failed (exit code 3); to out\nto err"), "{error}");
        let (_, silent) = run("exit 1", Duration::from_secs(60));
        assert!(silent.unwrap_err().to_string().ends_with("it printed nothing"));
    }

    #[test]
    fn a_daemon_that_keeps_the_output_open_is_not_waited_for() {
        let (place, commands, watch) = commands(Duration::from_secs(600));
        let pid = place.path().join("pid");
        let text = format!("sleep 600 & echo $! >{}; echo started", pid.display());
        let command =
            UserCommand { what: "prepare-a", shown: "--prepare-a", text: &text, block: None };
        let done = commands.run(command, &watch).unwrap();
        let daemon = std::fs::read_to_string(&pid).unwrap();
        let daemon: i32 = daemon.trim().parse().unwrap();
        let daemon = rustix::process::Pid::from_raw(daemon).unwrap();
        // It is still there, and is this test's own.
        rustix::process::kill_process(daemon, rustix::process::Signal::KILL).unwrap();
        commands.check(command, &done).unwrap();
        assert!(done.record.taken_ns < 600_000_000_000);
    }

    #[test]
    fn a_command_that_does_not_end_is_ended_with_its_group() {
        let (record, checked) = run("sleep 600; true", Duration::from_millis(50));
        assert_eq!(record.signal, Some(15));
        let error = checked.unwrap_err().to_string();
        assert!(error.contains("was ended as it took longer than 50 ms"), "{error}");
    }
}

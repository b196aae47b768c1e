//! The command that tardy starts to look at it.

use std::{
    io,
    os::{fd::AsFd as _, unix::process::ExitStatusExt as _},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{
    run::AttachedCommand,
    sys::{child, process},
};

/// The time that a command has to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// It, from its start to its end.
#[derive(Debug)]
pub(super) struct StartedCommand {
    record: AttachedCommand,
    child: Option<Child>,
}

impl StartedCommand {
    /// Not started yet.
    pub(super) fn new(argv: &[String]) -> Self {
        let argv = argv.to_vec();
        let record = AttachedCommand { argv, ended: None, exit_code: None, ended_by_tardy: false };
        Self { record, child: None }
    }

    /// Starts it; what it prints is the standard error's where `to_stderr`. It ends with tardy,
    /// however that ends.
    pub(super) fn start(&mut self, to_stderr: bool) {
        let Some((program, arguments)) = self.record.argv.split_first() else { return };
        let mut command = Command::new(program);
        command.args(arguments);
        if to_stderr && let Ok(error) = io::stderr().as_fd().try_clone_to_owned() {
            command.stdout(Stdio::from(error));
        }
        child::ask_to_end_with_this_thread(&mut command);
        match command.spawn() {
            Ok(child) => self.child = Some(child),
            Err(error) => self.record.ended = Some(format!("not started: {error}")),
        }
    }

    /// Its number, once it was started.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Whether it has ended, or was never there.
    pub(super) fn has_ended(&mut self) -> bool {
        if self.record.ended.is_some() {
            return true;
        }
        let Some(child) = &mut self.child else { return false };
        match child.try_wait() {
            Ok(None) => false,
            Ok(Some(status)) => {
                self.record.exit_code = status.code();
                let of_signal = status.signal().map(|number| format!("signal {number}"));
                let of_code = || format!("exit {}", status.code().unwrap_or(0));
                self.record.ended = Some(of_signal.unwrap_or_else(of_code));
                true
            }
            Err(error) => {
                self.record.ended = Some(format!("not known: {error}"));
                true
            }
        }
    }

    /// Ends it where it has not ended, and says how it did.
    pub(super) fn finish(mut self) -> AttachedCommand {
        if self.has_ended() || self.child.is_none() {
            return self.record;
        }
        self.record.ended_by_tardy = true;
        if let Some(child) = &mut self.child {
            process::terminate(process::Pid::from_child(child));
        }
        let until = Instant::now() + PATIENCE;
        while !self.has_ended() {
            if Instant::now() > until
                && let Some(child) = &mut self.child
            {
                let _ = child.kill();
            }
            sleep(PAUSE);
        }
        self.record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(argv: &[&str]) -> AttachedCommand {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        let mut command = StartedCommand::new(&argv);
        command.start(true);
        while !command.has_ended() {
            sleep(PAUSE);
        }
        command.finish()
    }

    #[test]
    fn its_end_is_known_by_code_by_signal_and_where_there_was_no_begin() {
        let code = ended(&["sh", "-c", "exit 7"]);
        assert_eq!((code.ended.as_deref(), code.exit_code), (Some("exit 7"), Some(7)));
        let signal = ended(&["sh", "-c", "kill -9 $$"]);
        assert_eq!((signal.ended.as_deref(), signal.exit_code), (Some("signal 9"), None));
        let never = ended(&["/nonexistent/program"]);
        assert!(never.ended.unwrap().starts_with("not started: No such file"));
    }

    #[test]
    fn one_that_goes_on_is_ended_and_the_record_says_by_whom() {
        let mut command = StartedCommand::new(&["sleep".into(), "1000".into()]);
        command.start(true);
        assert!(!command.has_ended() && command.pid().is_some());
        let record = command.finish();
        assert_eq!((record.ended.as_deref(), record.ended_by_tardy), (Some("signal 15"), true));
    }
}

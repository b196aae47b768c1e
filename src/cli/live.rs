//! `tardy run --live`: the view of `tardy top` as its own process, so that it takes nothing from
//! what measures, and dies without it.

use std::{
    ffi::OsString,
    io::{self, IsTerminal as _},
    os::fd::AsFd as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::{
    process::{Pid, getpgrp},
    termios::{Termios, tcgetattr, tcgetpgrp},
};

use super::top::{FAREWELL, give_back};
use crate::sys::{child, process, timeout_writer::TimeoutWriter};

/// How long the view has to give the terminal back.
const PATIENCE: Duration = Duration::from_secs(2);

/// The view of a run, which this process has started.
#[derive(Debug)]
pub(super) struct LiveChild {
    child: Child,
    /// The terminal as it was.
    before: Termios,
    is_over: bool,
}

impl LiveChild {
    /// Starts it for the run that will be in `directory`: before anything is measured, as to start
    /// a process slows this one down for a while.
    ///
    /// # Errors
    /// Why there can be none, for the user.
    pub(super) fn start(directory: &Path) -> Result<Self, String> {
        let before = terminal().ok_or("no terminal")?;
        let program = Path::new("/proc/self/exe");
        let mut of_run = OsString::from("--of-run=");
        of_run.push(directory);
        // Standard output is for the result, and may lead elsewhere.
        let screen = io::stderr().as_fd().try_clone_to_owned();
        let screen = screen.map_err(|error| format!("standard error: {error}"))?;
        let mut command = Command::new(program);
        command.arg("top").arg(of_run).stdout(Stdio::from(screen));
        child::ask_to_end_with_this_thread(&mut command);
        let started = child::start(&mut command);
        let child = started.map_err(|error| format!("it cannot be started: {error}"))?;
        Ok(Self { child, before, is_over: false })
    }

    /// Whether it has gone: it was left, or it died.
    pub(super) fn has_gone(&mut self) -> bool {
        if !self.is_over
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.note(status);
        }
        self.is_over
    }

    fn note(&mut self, status: ExitStatus) {
        self.is_over = true;
        child::forget(&self.child);
        if !status.success() {
            // The run must not wait for a terminal that nobody reads.
            if let Ok(mut screen) = TimeoutWriter::new(io::stderr(), |waited| waited > FAREWELL) {
                give_back(&mut screen, &self.before);
            }
        }
    }

    /// Ends it, and does not come back before the terminal is free.
    fn end(&mut self) {
        if self.has_gone() {
            return;
        }
        process::terminate(Pid::from_child(&self.child));
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if self.has_gone() {
                return;
            }
            sleep(Duration::from_millis(5));
        }
        process::kill(Pid::from_child(&self.child));
        if let Ok(status) = self.child.wait() {
            self.note(status);
        }
    }
}

impl Drop for LiveChild {
    fn drop(&mut self) {
        self.end();
    }
}

/// How the terminal is set, where there is one for keys and frames and it is this program's: not
/// that of one in the background.
fn terminal() -> Option<Termios> {
    let (keys, frames) = (io::stdin(), io::stderr());
    let is_ours = tcgetpgrp(keys.as_fd()).is_ok_and(|leader| leader == getpgrp());
    if !keys.is_terminal() || !frames.is_terminal() || !is_ours {
        return None;
    }
    tcgetattr(keys.as_fd()).ok()
}

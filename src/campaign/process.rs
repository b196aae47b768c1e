//! A child that is waited for: until it has ended, or somebody wants all to end.

use std::{
    io,
    os::{fd::AsFd as _, unix::process::ExitStatusExt as _},
    process::{Child, ExitStatus},
    time::{Duration, Instant},
};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use crate::sys::{notifier::Notifier, signals::Quit};

/// How often is asked whether a child has ended, where the kernel cannot tell it (before 5.3).
const POLL: Duration = Duration::from_millis(200);

/// A process that was asked to end is killed after this time.
const PATIENCE: Duration = Duration::from_secs(5);

/// Wakes up when a child has ended or the user wants all to end.
#[derive(Debug)]
pub(crate) struct ChildWaiter {
    bell: Notifier,
    quit: Quit,
}

/// What is done when the user wants all to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtQuit {
    /// A run ends in order by itself, however long that takes: it puts the machine back.
    Ask,
    /// A command gets SIGTERM with its process group, and SIGKILL if it does not end.
    End,
    /// It is waited for all the same.
    Wait,
}

/// How a child ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    /// Its exit code or signal.
    pub status: ExitStatus,
    /// Whether it was asked to, as the user wanted all to end.
    pub was_asked: bool,
    /// Whether it was ended as it took too long.
    pub was_late: bool,
}

impl ChildWaiter {
    /// Listens for both.
    ///
    /// # Errors
    /// What the kernel says to a signal handler.
    pub(crate) fn new(quit: Quit) -> io::Result<Self> {
        let bell = Notifier::new()?;
        quit.rings(&bell)?;
        Ok(Self { bell, quit })
    }

    /// Whether the user wants all to end.
    pub(super) fn is_quit(&self) -> bool {
        self.quit.seen().is_some()
    }

    /// Waits until `child`, the leader of its process group, has ended; calls `each` every `pace`.
    /// After `limit` it is ended.
    pub(super) fn wait(
        &self,
        child: &mut Child,
        at_quit: AtQuit,
        limit: Option<Duration>,
        (pace, each): (Option<Duration>, &mut dyn FnMut()),
    ) -> io::Result<Ended> {
        let start = Instant::now();
        let mut asked = Asked::default();
        let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok();
        let polling = pidfd.is_none().then_some(POLL);
        loop {
            if let Some(status) = child.try_wait()? {
                let Asked { was_quit, was_late, .. } = asked;
                return Ok(Ended { status, was_asked: was_quit, was_late });
            }
            let left = limit.map(|limit| limit.saturating_sub(start.elapsed()));
            if asked.at.is_none() {
                let is_quit = at_quit != AtQuit::Wait && self.is_quit();
                asked.end(child, at_quit, is_quit, left == Some(Duration::ZERO));
            } else if at_quit != AtQuit::Ask {
                asked.insist(child, at_quit);
            }
            let again = asked.at.map(|_| Duration::from_secs(1));
            let left = left.filter(|_| asked.at.is_none());
            let pause = [pace, left, again, polling].into_iter().flatten().min();
            let pause = pause.map(|pause| i64::try_from(pause.as_nanos()).unwrap_or(i64::MAX));
            self.bell.wait_beside(pidfd.as_ref().map(|pidfd| pidfd.as_fd()), pause);
            each();
        }
    }
}

/// Whether a child was asked to end, when, and why.
#[derive(Debug, Default)]
struct Asked {
    at: Option<Instant>,
    was_quit: bool,
    was_late: bool,
}

impl Asked {
    /// Asks it to end, where there is a reason.
    fn end(&mut self, child: &Child, at_quit: AtQuit, is_quit: bool, is_late: bool) {
        if !(is_quit || is_late) {
            return;
        }
        *self = Self { at: Some(Instant::now()), was_quit: is_quit, was_late: !is_quit };
        send(child, at_quit, Signal::TERM);
    }

    /// Kills it, where it has had its time.
    fn insist(&self, child: &Child, at_quit: AtQuit) {
        if self.at.is_some_and(|at| at.elapsed() > PATIENCE) {
            send(child, at_quit, Signal::KILL);
        }
    }
}

/// A run has to hear of it alone: what it started it ends by itself.
fn send(child: &Child, at_quit: AtQuit, signal: Signal) {
    let pid = Pid::from_child(child);
    // It has not been waited for, so that the number is still its own. One that is gone is not an
    // error.
    let _ = match at_quit {
        AtQuit::Ask => kill_process(pid, signal),
        AtQuit::End | AtQuit::Wait => kill_process_group(pid, signal),
    };
}

/// "exit code 3", "signal 9".
pub(super) fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown end".into(),
    }
}

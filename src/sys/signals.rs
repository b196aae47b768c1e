//! Signals: noticing a request to end the run, and waking a thread out of its sleep.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
};

use rustix::process::Signal;
use signal_hook::{
    consts::{
        SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGVTALRM, SIGWINCH,
        SIGXCPU, SIGXFSZ,
    },
    low_level::emulate_default_handler,
};
use tardy_hot::clock::now_ns;

use super::notifier::Notifier;

/// What [`Quit`] listens for, so that the machine is restored: all signals that end a process and
/// are sent from outside, but SIGKILL.
const LISTENED: [i32; 12] = [
    SIGHUP,
    SIGINT,
    SIGTERM,
    SIGQUIT,
    SIGUSR1,
    SIGALRM,
    SIGVTALRM,
    SIGPROF,
    SIGXCPU,
    SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
];

/// Those that a user repeats to end a run that hangs.
const REPEATED: [i32; 4] = [SIGHUP, SIGINT, SIGTERM, SIGQUIT];

/// A second signal within this time is the first one once more: timeout(1) sends its signal to the
/// program and then to its process group, ns.
const SAME_REQUEST_NS: i64 = 1_000_000_000;

/// Notes signals that ask a process to end, instead of dying of them. A signal that is ignored
/// stays so: `nohup` starts programs without SIGHUP, and a shell those in its background without
/// SIGINT.
#[derive(Debug, Clone)]
pub struct Quit {
    seen: Arc<AtomicUsize>,
    /// Those that are not ignored.
    heard: Vec<i32>,
}

impl Quit {
    /// Begins to listen. A second SIGHUP, SIGINT, SIGTERM or SIGQUIT kills as usual if it comes a
    /// second later or more, so that a run that hangs can be ended by hand.
    ///
    /// # Errors
    /// What the kernel says to a signal handler.
    pub fn listen() -> io::Result<Self> {
        Self::listen_to(|_| true)
    }

    /// As [`Quit::listen`], where SIGUSR1 means something else.
    ///
    /// # Errors
    /// What the kernel says to a signal handler.
    pub fn listen_without_user_signal() -> io::Result<Self> {
        Self::listen_to(|signal| signal != SIGUSR1)
    }

    fn listen_to(is_meant: impl Fn(i32) -> bool) -> io::Result<Self> {
        let seen = Arc::new(AtomicUsize::new(0));
        let mut heard = Vec::new();
        for signal in LISTENED.into_iter().filter(|signal| is_meant(*signal)) {
            if is_ignored(signal)? {
                continue;
            }
            heard.push(signal);
            let number = usize::try_from(signal).unwrap_or(0);
            signal_hook::flag::register_usize(signal, Arc::clone(&seen), number)?;
            if !REPEATED.contains(&signal) {
                continue;
            }
            let first_ns = AtomicI64::new(0);
            let again = move || {
                if is_again(&first_ns, now_ns()) {
                    let _ = emulate_default_handler(signal);
                }
            };
            // SAFETY: the handler reads the clock and a number, and makes the calls by which a
            // signal kills, which are all allowed in a handler.
            unsafe { signal_hook::low_level::register(signal, again) }?;
        }
        Ok(Self { seen, heard })
    }

    /// Rings `bell` at each of these signals from now on, after [`Quit::seen`] has it.
    ///
    /// # Errors
    /// What the kernel says to a signal handler.
    pub fn rings(&self, bell: &Notifier) -> io::Result<()> {
        for &signal in &self.heard {
            let own = bell.clone();
            // SAFETY: the handler makes one system call, which is allowed in a handler.
            unsafe { signal_hook::low_level::register(signal, move || own.ring()) }?;
        }
        Ok(())
    }

    /// The signal that came, if one came.
    #[must_use]
    pub fn seen(&self) -> Option<usize> {
        match self.seen.load(Ordering::SeqCst) {
            0 => None,
            signal => Some(signal),
        }
    }
}

/// Rings `bell` whenever the terminal of this process changes its size.
///
/// # Errors
/// What the kernel says to a signal handler.
pub fn ring_at_resize(bell: &Notifier) -> io::Result<()> {
    let own = bell.clone();
    // SAFETY: the handler makes one system call, which is allowed in a handler.
    unsafe { signal_hook::low_level::register(SIGWINCH, move || own.ring()) }.map(drop)
}

/// Whether a signal at `now_ns` is not the first, and no repetition of it. Keeps the time of the
/// first, which is 0 before.
fn is_again(first_ns: &AtomicI64, now_ns: i64) -> bool {
    let first = first_ns.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed);
    first.is_err_and(|first_ns| now_ns - first_ns >= SAME_REQUEST_NS)
}

/// Whether SIGUSR1 came, from now on; without this it ends a process.
///
/// # Errors
/// What the kernel says to a signal handler.
pub fn note_user_signal() -> io::Result<Arc<AtomicBool>> {
    let came = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGUSR1, Arc::clone(&came))?;
    Ok(came)
}

/// Lets a write beyond `RLIMIT_FSIZE` fail (`EFBIG`), as one to a full disk does, instead of ending
/// this process (setrlimit(2)). Programs that it starts are ended as usual.
///
/// # Errors
/// What the kernel says to a signal handler.
pub fn survive_large_files() -> io::Result<()> {
    let unread = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGXFSZ, unread).map(drop)
}

/// Whether this process ignores a signal now.
fn is_ignored(signal: i32) -> io::Result<bool> {
    // SAFETY: a sigaction of zeros is valid.
    let mut now: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: no new action is given, and the current one is written to a live local.
    let failed = unsafe { libc::sigaction(signal, core::ptr::null(), &raw mut now) };
    if failed == 0 {
        Ok(now.sa_sigaction == libc::SIG_IGN)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The signal that interrupts a sleeping thread; what it does is nothing.
const NUDGE: i32 = libc::SIGUSR2;

/// Makes [`nudge`] harmless in this process. Call before threads that may be nudged begin.
///
/// # Errors
/// What the kernel says to a signal handler.
pub fn accept_nudges() -> io::Result<()> {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: a sigaction of zeros is valid: no flags, so no SA_RESTART, and an empty mask.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = nothing as *const () as usize;
    // SAFETY: the handler does nothing, and so is safe at any moment.
    let failed = unsafe { libc::sigaction(NUDGE, &raw const action, core::ptr::null_mut()) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends the sleep of thread `tid` of this process with EINTR. A thread that is gone is not an
/// error.
pub fn nudge(tid: i32) {
    let own = std::process::id();
    // SAFETY: sends a signal that this process has made harmless, to one of its threads; the
    // kernel checks that `tid` belongs to `own`.
    unsafe { libc::syscall(libc::SYS_tgkill, own, tid, NUDGE) };
}

/// The signal of [`hold_calls`].
pub const CALL: Signal = Signal::USR1;

/// Lets [`CALL`] wait for [`wait_for_call`] instead of killing this process and its later forks.
///
/// # Errors
/// What the kernel says to the mask; nothing is known to happen.
pub fn hold_calls() -> io::Result<()> {
    let set = calls();
    // SAFETY: both sets are valid: one is made below, and the former mask is not asked for.
    let failed =
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, core::ptr::null_mut()) };
    if failed == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(failed)) }
}

/// Sleeps until this process, which holds its calls, is sent [`CALL`].
///
/// # Errors
/// What the kernel says; an interruption is waited out.
pub fn wait_for_call() -> io::Result<()> {
    let set = calls();
    loop {
        // SAFETY: the set is valid, and what is known of the signal is not asked for.
        if unsafe { libc::sigwaitinfo(&raw const set, core::ptr::null_mut()) } >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn calls() -> libc::sigset_t {
    // SAFETY: a signal set is an array of integers, of which zeros are values.
    let mut set: libc::sigset_t = unsafe { core::mem::zeroed() };
    // SAFETY: writes to the set, which lives longer.
    unsafe { libc::sigemptyset(&raw mut set) };
    // SAFETY: as above; the number is that of a signal.
    unsafe { libc::sigaddset(&raw mut set, CALL.as_raw()) };
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_signal_counts_from_a_second_after_the_first_on() {
        let first_ns = AtomicI64::new(0);
        let at = |ms: i64| is_again(&first_ns, 7_000_000 + ms * 1_000_000);
        assert_eq!([0, 0, 1, 999, 1_000, 5_000].map(at), [false, false, false, false, true, true]);
    }
}

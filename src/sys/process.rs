//! Processes: fork, death with the parent, reaping with resource usage, and ending every
//! descendant. Knows nothing about loads. Changes nothing but the calling process and its children.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::linux::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{self, Signal};

pub use rustix::process::Pid;

/// The shortest and the longest pause between two checks whether all descendants are gone.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Gives the calling thread its own table of descriptors, a copy of that of its process. While
/// threads share one, the kernel counts each use of a descriptor (`__fdget`, `fs/file.c`), which
/// makes a short call a fifth slower. What other threads open or close later is not seen here.
///
/// # Errors
/// The system's.
pub fn own_descriptors() -> io::Result<()> {
    // SAFETY: descriptors keep their numbers, so that whatever this thread holds stays what it is.
    match unsafe { libc::unshare(libc::CLONE_FILES) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    /// It returned this code.
    Exit(i32),
    /// This signal ended it.
    Signal(i32),
}

impl ProcessEnd {
    fn from_status(status: i32) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Signal(libc::WTERMSIG(status))
        } else {
            Self::Exit(libc::WEXITSTATUS(status))
        }
    }
}

impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit {code}"),
            Self::Signal(number) => write!(f, "signal {number}"),
        }
    }
}

/// What ended processes have used, with their threads and the children they waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Voluntary and involuntary context switches.
    pub context_switches: u64,
    /// Time on a CPU, in user and in kernel mode.
    pub cpu: Duration,
}

impl ProcessUsage {
    fn from_rusage(usage: &libc::rusage) -> Self {
        let switches = usage.ru_nvcsw.saturating_add(usage.ru_nivcsw);
        Self {
            context_switches: u64::try_from(switches).unwrap_or(0),
            cpu: from_timeval(usage.ru_utime) + from_timeval(usage.ru_stime),
        }
    }
}

impl std::ops::AddAssign for ProcessUsage {
    fn add_assign(&mut self, other: Self) {
        self.context_switches += other.context_switches;
        self.cpu += other.cpu;
    }
}

fn from_timeval(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// What [`reap`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaped {
    /// This child ended; it is gone now.
    One {
        /// Who.
        pid: Pid,
        /// How.
        end: ProcessEnd,
        /// What it had used.
        usage: ProcessUsage,
    },
    /// There are children, and all of them are alive.
    AllAlive,
    /// No child exists.
    NoChild,
}

/// Collects one ended child, without waiting.
///
/// # Errors
/// Those of `wait4`; having no child is not one.
pub fn reap() -> io::Result<Reaped> {
    let mut status = 0;
    let mut usage = no_usage();
    // SAFETY: both pointers lead to live, writable locals of the types that wait4 fills.
    let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage) };
    match Pid::from_raw(pid.max(0)) {
        Some(pid) => Ok(Reaped::One {
            pid,
            end: ProcessEnd::from_status(status),
            usage: ProcessUsage::from_rusage(&usage),
        }),
        None if pid == 0 => Ok(Reaped::AllAlive),
        None => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ECHILD) => Ok(Reaped::NoChild),
            error => Err(error),
        },
    }
}

fn no_usage() -> libc::rusage {
    // SAFETY: rusage consists of integers only, for which all bits zero is a value.
    unsafe { std::mem::zeroed() }
}

/// Forks, runs `work` in the child and ends it with the code that `work` returns: no destructor,
/// no exit handler and no buffer of the parent runs twice. A panic in `work` is exit code 101.
///
/// # Errors
/// `Unsupported` where the calling process has more than one thread: another one may hold a lock
/// that would never be released in the child. Otherwise those of fork; `WouldBlock` means that
/// a limit on processes or memory was met.
pub fn fork(work: impl FnOnce() -> u8) -> io::Result<Pid> {
    if !is_single_threaded()? {
        let why = "cannot fork: the process has more than one thread";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    // SAFETY: there is one thread, so the child is a whole copy of this process; it never returns
    // from this function, so nothing of the parent's is dropped in it.
    match unsafe { libc::fork() } {
        0 => exit_now(catch_unwind(AssertUnwindSafe(work)).unwrap_or(101)),
        pid => Pid::from_raw(pid.max(0)).ok_or_else(io::Error::last_os_error),
    }
}

/// A stat and no more, since it precedes each of possibly thousands of forks: the link count of
/// the task directory is the number of threads and two.
fn is_single_threaded() -> io::Result<bool> {
    Ok(fs::metadata("/proc/self/task")?.st_nlink() == 3)
}

/// Ends the calling process with all its threads at once; no destructor or exit handler runs.
pub fn exit_now(code: u8) -> ! {
    // SAFETY: _exit takes any code, touches no memory and does not return.
    unsafe { libc::_exit(i32::from(code)) }
}

/// Makes the calling process the new parent of orphans among its descendants, so that it can reap
/// whatever they leave.
///
/// # Errors
/// Those of `prctl`.
pub fn become_subreaper() -> io::Result<()> {
    Ok(process::set_child_subreaper(Some(process::getpid()))?)
}

/// Lets the kernel kill the calling process when `parent`, which forked it, ends in any way.
///
/// # Errors
/// `NotFound` where `parent` has ended already: the kernel would never send the signal.
pub fn die_with(parent: Pid) -> io::Result<()> {
    process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // Only after the signal is set can no end of the parent be missed any more.
    if process::getppid() == Some(parent) {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::NotFound, "the parent process has ended"))
    }
}

/// Gives the calling process an empty standard input, and the standard error for its standard
/// output.
///
/// # Errors
/// Those of opening `/dev/null`, and of `dup2`.
pub fn detach_from_pipes() -> io::Result<()> {
    let nothing = fs::File::open("/dev/null")?;
    duplicate(nothing.as_fd(), libc::STDIN_FILENO)?;
    duplicate(io::stderr().as_fd(), libc::STDOUT_FILENO)
}

fn duplicate(from: BorrowedFd<'_>, to: i32) -> io::Result<()> {
    // SAFETY: both callers replace a standard stream, which no value owns and which may be
    // replaced.
    match unsafe { libc::dup2(from.as_raw_fd(), to) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Puts SIGCHLD back to its default. Where it is ignored (inherited over exec) the kernel reaps
/// children itself, and their usage is lost.
///
/// # Errors
/// Those of `signal`.
pub fn reset_child_signal() -> io::Result<()> {
    // SAFETY: the default action is not a function of ours, so nothing can be called wrongly.
    match unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// How far the calling process comes before its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentPriority {
    /// `SCHED_FIFO` priority 1.
    RealTime,
    /// Nice -20.
    Nice,
    /// None: there was no right to either.
    Equal,
}

/// Puts the calling process before its children, as far as its rights go. Children are born with
/// `SCHED_OTHER` and nice 0 in any case.
pub fn take_precedence() -> ParentPriority {
    if set_policy(libc::SCHED_FIFO, 1).is_ok() {
        return ParentPriority::RealTime;
    }
    // Resetting the children's nice value needs the flag, and the flag needs no right.
    let reset = set_policy(libc::SCHED_OTHER, 0);
    match reset.and(process::setpriority_process(None, -20).map_err(io::Error::from)) {
        Ok(()) => ParentPriority::Nice,
        Err(_) => ParentPriority::Equal,
    }
}

/// Takes [`take_precedence`] back, as far as the real-time policy goes.
pub fn step_back() {
    // One that never had it keeps what it has.
    let _ = set_policy(libc::SCHED_OTHER, 0);
}

fn set_policy(policy: i32, priority: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameter is a live local that the kernel only reads; 0 is the caller itself.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Kills `pid`. That it is gone already, or was never ours, is not an error: the caller checks
/// again.
pub fn kill(pid: Pid) {
    let _ = process::kill_process(pid, Signal::KILL);
}

/// Asks `pid` to end. That it is gone already is not an error.
pub fn terminate(pid: Pid) {
    let _ = process::kill_process(pid, Signal::TERM);
}

/// Kills the process group that `leader` leads, itself included. `leader` must be a child of the
/// caller that was not waited for yet: only so can the number not mean another group by now.
pub fn kill_group(leader: Pid) {
    let _ = process::kill_process_group(leader, Signal::KILL);
}

/// Children of the calling process: all that `/proc` shows.
///
/// # Errors
/// Those of reading the directory `/proc`.
pub fn children() -> io::Result<Vec<Pid>> {
    let own = process::getpid();
    Ok(parents()?.remove(&own).unwrap_or_default())
}

/// Waits for the end of that child.
///
/// # Errors
/// It did not end with exit code 0, which the error says; or what `waitpid` says.
pub fn wait_for(child: Pid) -> io::Result<()> {
    loop {
        match process::waitpid(Some(child), process::WaitOptions::empty()) {
            Ok(Some((_, status))) => {
                let end = ProcessEnd::from_status(status.as_raw());
                let is_good = end == ProcessEnd::Exit(0);
                let failed = || io::Error::other(format!("a child of the worker: {end}"));
                return if is_good { Ok(()) } else { Err(failed()) };
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Collects that child if it has ended, without waiting; whether it is gone.
#[must_use]
pub fn reap_one(pid: Pid) -> bool {
    let waited = process::waitpid(Some(pid), process::WaitOptions::NOHANG);
    !matches!(waited, Ok(None) | Err(rustix::io::Errno::INTR))
}

/// All descendants of `ancestor` that `/proc` shows.
///
/// `/proc/PID/task/TID/children` would be shorter, but many kernels are built without it.
///
/// # Errors
/// Those of reading the directory `/proc`; a process that ends meanwhile is left out.
pub fn descendants(ancestor: Pid) -> io::Result<Vec<Pid>> {
    let mut children = parents()?;
    let mut found = children.remove(&ancestor).unwrap_or_default();
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        found.extend(children.remove(&pid).unwrap_or_default());
        next += 1;
    }
    Ok(found)
}

/// Every process with its children.
fn parents() -> io::Result<HashMap<Pid, Vec<Pid>>> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    Ok(children)
}

fn parent_of(pid: Pid) -> Option<Pid> {
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    parent_in_stat(&stat)
}

/// The fourth field. The second is a name that may hold spaces and brackets, and no UTF-8.
fn parent_in_stat(stat: &[u8]) -> Option<Pid> {
    let after_name = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(after_name + 1..)?).ok()?;
    Pid::from_raw(rest.split_ascii_whitespace().nth(1)?.parse().ok()?)
}

/// Kills all descendants of the calling process until none is left, and hands each one it reaps
/// to `reaped`. `children` are known ones, killed without reading `/proc` first.
///
/// The caller must be a subreaper; only then does "no child" mean "no descendant". It returns
/// only when that is so: a descendant that hangs in the kernel is waited for.
pub fn end_descendants(children: &[Pid], mut reaped: impl FnMut(Pid, ProcessEnd, ProcessUsage)) {
    children.iter().copied().for_each(kill);
    let mut pause = PAUSE_MIN;
    loop {
        loop {
            match reap() {
                Ok(Reaped::One { pid, end, usage }) => reaped(pid, end, usage),
                Ok(Reaped::AllAlive) | Err(_) => break,
                Ok(Reaped::NoChild) => return,
            }
        }
        sleep(pause);
        // Between reading and the signal a process may fork or end: therefore the loop.
        descendants(process::getpid()).unwrap_or_default().into_iter().for_each(kill);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_found_behind_a_name_full_of_brackets() {
        let stat = b"42 (a) b (\xff) ) S 17 42 42 0 -1";
        assert_eq!(parent_in_stat(stat), Pid::from_raw(17));
        assert_eq!(parent_in_stat(b"42 (x) S 0 0 0"), None);
        assert_eq!(parent_in_stat(b"42 (x"), None);
        assert_eq!(parent_in_stat(b""), None);
    }

    #[test]
    fn a_child_is_among_the_descendants_of_its_parent() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let found = descendants(process::getpid());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.unwrap().contains(&pid));
    }

    #[test]
    fn a_process_with_threads_is_not_forked() {
        // The harness runs each test in its own thread beside its main thread.
        std::thread::scope(|scope| {
            let fork = scope.spawn(|| fork(|| 0).unwrap_err().kind());
            assert_eq!(fork.join().unwrap(), io::ErrorKind::Unsupported);
        });
    }

    #[test]
    fn ends_read_like_the_record_of_a_run() {
        assert_eq!(ProcessEnd::Exit(1).to_string(), "exit 1");
        assert_eq!(ProcessEnd::Signal(9).to_string(), "signal 9");
    }
}

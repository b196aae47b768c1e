//! Scheduling policy and priority of threads: set, and read back from the kernel.

use std::{fmt, io, str::FromStr, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// The highest real-time priority there is (sched(7)).
pub const HIGHEST: u32 = 99;

/// A scheduling policy that tardy can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// `SCHED_OTHER`, the ordinary one; no priority.
    Other,
    /// `SCHED_FIFO`: runs until it sleeps or something of higher priority wants to run.
    Fifo,
    /// `SCHED_RR`: as `fifo`, in turns among equals.
    Rr,
    /// `SCHED_DEADLINE`: a budget of time in each period, before everything else.
    Deadline(Budget),
}

/// What a thread of `SCHED_DEADLINE` is given: `runtime_ns` of each `period_ns`, within
/// `deadline_ns` of its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Time on a CPU, ns.
    pub runtime_ns: u64,
    /// From the start of a period until that time has been given, ns.
    pub deadline_ns: u64,
    /// From one start to the next, ns.
    pub period_ns: u64,
}

impl Policy {
    /// Whether it has a priority from 1 to 99.
    #[must_use]
    pub const fn is_real_time(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Other => "other",
            Self::Fifo => "fifo",
            Self::Rr => "rr",
            Self::Deadline(_) => "deadline",
        })
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // As the kernel and its tools write them: `FIFO`, `SCHED_FIFO`.
        let lower = text.to_ascii_lowercase();
        match lower.strip_prefix("sched_").unwrap_or(&lower) {
            "other" => Ok(Self::Other),
            "fifo" => Ok(Self::Fifo),
            "rr" => Ok(Self::Rr),
            "deadline" => Ok(Self::Deadline(Budget::default())),
            _ => Err(format!("\"{text}\" is not a policy; use fifo, rr, deadline or other")),
        }
    }
}

/// What the kernel says of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduling {
    /// `other`, `fifo`, `rr`, `deadline`, or the kernel's number for any other.
    pub policy: String,
    /// Real-time priority, 0 for `other`.
    pub priority: u32,
    /// Nice value.
    pub nice: i32,
}

impl Scheduling {
    /// The priority as the kernel counts, `prio` of its tasks: lower runs first. 0 to 98 are
    /// real-time (98 is FIFO 1), from 100 on fair; -1 goes before all, for `deadline`.
    #[must_use]
    pub fn kernel_priority(&self) -> i16 {
        match self.policy.as_str() {
            "deadline" => -1,
            "fifo" | "rr" => 99 - i16::try_from(self.priority).unwrap_or(0),
            _ => 120 + i16::try_from(self.nice).unwrap_or(0),
        }
    }
}

/// Sets policy and priority of the calling thread; children do not inherit them.
///
/// # Errors
/// `EPERM` without the right (`CAP_SYS_NICE` or `RLIMIT_RTPRIO`), `EINVAL` for a priority that the
/// policy has not.
pub fn set_this_thread(policy: Policy, priority: u32) -> io::Result<()> {
    let number = match policy {
        Policy::Other => libc::SCHED_OTHER,
        Policy::Fifo => libc::SCHED_FIFO,
        Policy::Rr => libc::SCHED_RR,
        Policy::Deadline(budget) => return set_deadline(budget),
    };
    let parameter = libc::sched_param { sched_priority: i32::try_from(priority).unwrap_or(-1) };
    let flags = if policy.is_real_time() { libc::SCHED_RESET_ON_FORK } else { 0 };
    // SAFETY: `parameter` is a valid sched_param; pid 0 is the calling thread.
    let failed = unsafe { libc::sched_setscheduler(0, number | flags, &raw const parameter) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `EPERM` also for a thread that may not run on every CPU of its scheduling domain, `EBUSY` where
/// the CPUs have no such time left to give.
fn set_deadline(budget: Budget) -> io::Result<()> {
    // SAFETY: sched_attr consists of integers only, for which all bits zero is a value.
    let mut attributes: libc::sched_attr = unsafe { core::mem::zeroed() };
    attributes.size = size_of::<libc::sched_attr>() as u32;
    attributes.sched_policy = libc::SCHED_DEADLINE as u32;
    attributes.sched_flags = libc::SCHED_FLAG_RESET_ON_FORK as u64;
    attributes.sched_runtime = budget.runtime_ns;
    attributes.sched_deadline = budget.deadline_ns;
    attributes.sched_period = budget.period_ns;
    // SAFETY: `attributes` is a valid sched_attr of the size it says; 0 is the calling thread.
    let failed = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What thread `tid` is given of `SCHED_DEADLINE`, by sched_getattr(2); `None` if it has another
/// policy, or is gone.
#[must_use]
pub fn budget_of(tid: i32) -> Option<Budget> {
    // SAFETY: sched_attr consists of integers only, for which all bits zero is a value.
    let mut attributes: libc::sched_attr = unsafe { core::mem::zeroed() };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: `attributes` is writable and has the size that is said.
    let failed = unsafe {
        libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attributes, size as u32, 0_u32)
    };
    let is_deadline = attributes.sched_policy == libc::SCHED_DEADLINE as u32;
    (failed == 0 && is_deadline).then_some(Budget {
        runtime_ns: attributes.sched_runtime,
        deadline_ns: attributes.sched_deadline,
        // If none was asked for it is the deadline.
        period_ns: attributes.sched_period.max(attributes.sched_deadline),
    })
}

/// Makes thread `tid` of this process an ordinary one. The flag by which its children do not
/// inherit its policy stays: a thread without the privilege for real-time policy may not take it
/// away.
///
/// # Errors
/// What the kernel says; `ESRCH` where it is gone.
pub fn make_ordinary(tid: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: 0 };
    let policy = libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameter` is a valid sched_param, and the kernel checks `tid`.
    let failed = unsafe { libc::sched_setscheduler(tid, policy, &raw const parameter) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The nice value of [`make_last`]: a tenth of what ordinary tasks have beside it.
const LAST: i32 = 10;

/// As [`make_ordinary`], and one that leaves most of its CPU to other ordinary tasks, also where
/// there are several such.
///
/// # Errors
/// As [`make_ordinary`].
pub fn make_last(tid: i32) -> io::Result<()> {
    make_ordinary(tid)?;
    // The kernel takes the number of a thread, too. Refused is it only where the value is higher.
    let _ = rustix::process::setpriority_process(rustix::process::Pid::from_raw(tid), LAST);
    Ok(())
}

/// Makes the calling thread one of `SCHED_BATCH`, which preempts nobody when it wakes up, with the
/// nice value of [`make_last`]. Refused is neither to anybody.
pub fn stand_back() {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameter` is a valid sched_param; pid 0 is the calling thread.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameter) };
    let _ = rustix::process::setpriority_process(None, LAST);
}

/// Bounds the CPU time that the calling process may take under a real-time policy without ever
/// sleeping: beyond it the kernel ends it with SIGXCPU. Children inherit the limit, which is
/// returned as it was before; the hard limit stays.
///
/// # Errors
/// Those of `setrlimit`.
pub fn bound_real_time(bound: Duration) -> io::Result<Rlimit> {
    let before = getrlimit(Resource::Rttime);
    let bound_us = u64::try_from(bound.as_micros()).unwrap_or(u64::MAX);
    let current = before.current.map_or(bound_us, |current| current.min(bound_us));
    let limit = Rlimit { current: Some(current), maximum: before.maximum };
    setrlimit(Resource::Rttime, limit)?;
    Ok(before)
}

/// Takes back what [`bound_real_time`] did, which returned `before`.
///
/// # Errors
/// Those of `setrlimit`.
pub fn unbound_real_time(before: Rlimit) -> io::Result<()> {
    Ok(setrlimit(Resource::Rttime, before)?)
}

/// Policy, priority and nice value of the calling thread, as the kernel has them.
///
/// # Errors
/// None are known for one's own thread; what the kernel says.
pub fn of_this_thread() -> io::Result<Scheduling> {
    of_thread(thread_id())
}

/// Policy, priority and nice value of thread `tid`, as the kernel has them.
///
/// # Errors
/// `ESRCH` for a thread that is gone.
pub fn of_thread(tid: i32) -> io::Result<Scheduling> {
    // SAFETY: reads a number.
    let number = unsafe { libc::sched_getscheduler(tid) };
    let mut parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameter` is writable.
    let failed = unsafe { libc::sched_getparam(tid, &raw mut parameter) };
    if number < 0 || failed != 0 {
        return Err(io::Error::last_os_error());
    }
    let policy = match number & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_OTHER => "other".to_owned(),
        libc::SCHED_FIFO => "fifo".to_owned(),
        libc::SCHED_RR => "rr".to_owned(),
        libc::SCHED_DEADLINE => "deadline".to_owned(),
        other => other.to_string(),
    };
    // On Linux a nice value belongs to a thread.
    let nice = rustix::process::getpriority_process(rustix::process::Pid::from_raw(tid))?;
    Ok(Scheduling { policy, priority: u32::try_from(parameter.sched_priority).unwrap_or(0), nice })
}

/// Policy and priority of a thread in the kernel's numbers, as they are restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawScheduling {
    /// `SCHED_OTHER` and the like, with the flag `SCHED_RESET_ON_FORK`.
    pub policy: i32,
    /// 1 to 99 for real-time policies, else 0.
    pub priority: i32,
}

impl RawScheduling {
    /// What a thread of `SCHED_OTHER` has.
    pub const ORDINARY: Self = Self { policy: libc::SCHED_OTHER, priority: 0 };

    /// Whether [`set_raw`] can set it: a policy that policy and priority describe whole, which
    /// deadline is not.
    #[must_use]
    pub fn is_plausible(self) -> bool {
        match self.policy & !libc::SCHED_RESET_ON_FORK {
            libc::SCHED_FIFO | libc::SCHED_RR => (1..=99).contains(&self.priority),
            libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE => self.priority == 0,
            _ => false,
        }
    }

    /// "fifo 50", "other"
    #[must_use]
    pub fn words(self) -> String {
        match self.policy & !libc::SCHED_RESET_ON_FORK {
            libc::SCHED_OTHER => "other".into(),
            libc::SCHED_FIFO => format!("fifo {}", self.priority),
            libc::SCHED_RR => format!("rr {}", self.priority),
            libc::SCHED_BATCH => "batch".into(),
            libc::SCHED_IDLE => "idle".into(),
            libc::SCHED_DEADLINE => "deadline".into(),
            other => format!("policy {other}"),
        }
    }
}

/// Policy and priority of thread `tid`, as the kernel has them.
///
/// # Errors
/// `ESRCH` for a thread that is gone.
pub fn raw_of_thread(tid: i32) -> io::Result<RawScheduling> {
    // SAFETY: reads a number.
    let policy = unsafe { libc::sched_getscheduler(tid) };
    let mut parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameter` is writable.
    let failed = unsafe { libc::sched_getparam(tid, &raw mut parameter) };
    if policy < 0 || failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(RawScheduling { policy, priority: parameter.sched_priority })
}

/// Sets policy and priority of thread `tid`; its nice value stays.
///
/// # Errors
/// `EPERM` without the right, `ESRCH` where it is gone, `EINVAL` for what no policy has.
pub fn set_raw(tid: i32, wanted: RawScheduling) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: wanted.priority };
    // SAFETY: `parameter` is a valid sched_param, and the kernel checks `tid` and the policy.
    let failed = unsafe { libc::sched_setscheduler(tid, wanted.policy, &raw const parameter) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// How often the calling thread has been moved to another CPU; `None` if the kernel does not say
/// (`CONFIG_SCHED_DEBUG`). Reads a file, so it is not for a measuring loop.
#[must_use]
pub fn migrations_of_this_thread() -> Option<u64> {
    migrations(&super::text::read("/proc/thread-self/sched")?)
}

/// "se.nr_migrations                 :                    3"
fn migrations(sched: &str) -> Option<u64> {
    let line = sched.lines().find(|line| line.starts_with("se.nr_migrations"))?;
    line.split_once(':')?.1.trim().parse().ok()
}

/// Gives the calling thread the nice value -20, or what of it the limits allow.
///
/// # Errors
/// `EACCES` or `EPERM` without `CAP_SYS_NICE` and without `RLIMIT_NICE`.
pub fn raise_nice() -> io::Result<()> {
    // On Linux a nice value belongs to a thread, and "process 0" names the calling one.
    Ok(rustix::process::setpriority_process(None, -20)?)
}

/// Takes that back: the calling thread gets the nice value 0, which every thread with a lower one
/// may set.
pub fn level_nice() {
    let _ = rustix::process::setpriority_process(None, 0);
}

/// The kernel's number of the calling thread.
#[must_use]
pub fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_read_where_the_kernel_tells() {
        let sched = "head (28902, #threads: 1)\nse.nr_migrations          :            3\n";
        assert_eq!(migrations(sched), Some(3));
        assert_eq!(migrations("nr_switches : 1\n"), None);
    }

    #[test]
    fn the_kernel_counts_priorities_from_the_most_urgent() {
        let of = |policy: &str, priority, nice| {
            Scheduling { policy: policy.into(), priority, nice }.kernel_priority()
        };
        assert_eq!((of("fifo", 90, 0), of("rr", 1, 0), of("deadline", 0, 0)), (9, 98, -1));
        assert_eq!((of("other", 0, 0), of("other", 0, -20)), (120, 100));
    }

    #[test]
    fn a_real_time_thread_is_made_ordinary_without_any_right() {
        use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
        let none = CapabilitySet::empty();
        // Of the calling thread alone.
        let give_up = move || {
            let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
            set_capabilities(None, none).unwrap();
        };
        let (sender, receiver) = std::sync::mpsc::channel();
        let (end, until_end) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let risen = set_this_thread(Policy::Fifo, 1);
            give_up();
            let _ = sender.send(risen.map(|()| thread_id()));
            let _ = until_end.recv();
        });
        match receiver.recv().unwrap() {
            Ok(tid) => {
                let other = std::thread::spawn(move || {
                    give_up();
                    make_ordinary(tid)
                });
                other.join().unwrap().unwrap();
                assert_eq!(of_thread(tid).unwrap().policy, "other");
            }
            Err(error) => eprintln!("skipped: no right to real-time policy: {error}"),
        }
        drop(end);
        thread.join().unwrap();
    }

    #[test]
    fn a_thread_that_is_made_the_last_is_an_ordinary_task_that_yields() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            sender.send(thread_id()).unwrap();
            let _ = ended.recv();
        });
        let (tid, before) = (receiver.recv().unwrap(), of_this_thread().unwrap());
        make_last(tid).unwrap();
        let found = of_thread(tid).unwrap();
        assert_eq!((found.policy.as_str(), found.nice), ("other", LAST));
        assert_eq!(of_this_thread().unwrap(), before, "it alone");
        drop(end);
        thread.join().unwrap();
    }

    #[test]
    fn a_thread_that_is_gone_is_an_error() {
        let gone = std::thread::spawn(thread_id).join().unwrap();
        assert!(make_last(gone).is_err());
        assert!(of_thread(gone).is_err());
        assert_eq!(of_this_thread().unwrap(), of_thread(thread_id()).unwrap());
    }
}

//! Policy, priority, affinity and timer slack of threads: set, and read back from the kernel.

use std::{io, thread};

use serde::{Deserialize, Serialize};

use super::{Choice, SetupError};
use crate::{
    run::{Deviation, OsError, ThreadTerms},
    sys::{
        control_groups::RealTimeBan,
        cpus::Cpus,
        root::Root,
        sched::{self, Policy, Scheduling},
        timer,
    },
    units,
};

/// What a measured thread is to run as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadConfig {
    /// Scheduling policy.
    pub policy: Policy,
    /// Real-time priority; 0 for `other`.
    pub priority: u32,
    /// The one CPU it runs on.
    pub cpu: u32,
    /// Timer slack in ns.
    pub slack_ns: u64,
}

/// What a measured thread runs as, as the kernel says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The kernel's number of the thread.
    pub tid: i32,
    /// Policy, priority and nice value.
    #[serde(flatten)]
    pub scheduling: Scheduling,
    /// Its CPUs.
    pub cpus: String,
    /// Its timer slack in ns.
    pub timer_slack_ns: u64,
}

impl Found {
    /// What the calling thread runs as.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn of_this_thread() -> io::Result<Self> {
        Ok(Self {
            tid: sched::thread_id(),
            scheduling: sched::of_this_thread()?,
            cpus: Cpus::allowed()?.to_string(),
            timer_slack_ns: timer::slack()?,
        })
    }
}

impl From<&Found> for ThreadTerms {
    fn from(found: &Found) -> Self {
        let Scheduling { policy, priority, nice } = found.scheduling.clone();
        Self {
            policy,
            priority,
            nice: Some(nice),
            cpus: found.cpus.clone(),
            timer_slack_ns: Some(found.timer_slack_ns),
        }
    }
}

impl From<&ThreadConfig> for ThreadTerms {
    fn from(terms: &ThreadConfig) -> Self {
        Self {
            policy: terms.policy.to_string(),
            priority: if terms.policy.is_real_time() { terms.priority } else { 0 },
            nice: None,
            cpus: terms.cpu.to_string(),
            // Real-time threads have no slack; what is stored does not act then.
            timer_slack_ns: (terms.policy == Policy::Other).then_some(terms.slack_ns.max(1)),
        }
    }
}

impl ThreadConfig {
    /// Makes the calling thread run on these terms, and reads back the result.
    ///
    /// # Errors
    /// What the kernel says to the first of them that it refuses.
    pub fn apply(&self) -> io::Result<Found> {
        [self.cpu].into_iter().collect::<Cpus>().pin_this_thread()?;
        timer::set_slack(self.slack_ns)?;
        sched::set_this_thread(self.policy, self.priority)
            .map_err(|error| self.deadline_refused(error))?;
        Found::of_this_thread()
    }

    /// What the kernel's short answer means for a thread of `SCHED_DEADLINE`.
    fn deadline_refused(&self, error: io::Error) -> io::Error {
        let (Policy::Deadline(_), Some(errno)) = (self.policy, error.raw_os_error()) else {
            return error;
        };
        let (why, cpu) = (plain(&error), self.cpu);
        io::Error::other(match errno {
            libc::EPERM => format!(
                "--policy deadline: {why}: the kernel gives SCHED_DEADLINE only to root, and only \
                 to threads that may use every CPU of their scheduling domain. Measure one CPU \
                 that has a separate domain: --cpus {cpu} --shield"
            ),
            libc::EBUSY => format!(
                "--policy deadline: {why}: CPU {cpu} has not that much time to give. Ask for a \
                 smaller RUNTIME with --deadline-params"
            ),
            _ => format!(
                "--policy deadline: {why}: --deadline-params wants 1us <= RUNTIME <= DEADLINE <= \
                 PERIOD, and a PERIOD from 100us to 4s"
            ),
        })
    }

    /// In what `found` differs from these terms; nothing where it does not.
    #[must_use]
    pub fn broken_by(&self, found: &Found) -> Option<Deviation> {
        Deviation::between(found.into(), self.into(), None)
    }
}

/// `fifo 90`, `other`.
#[must_use]
pub fn describe(policy: Policy, priority: u32) -> String {
    if policy.is_real_time() { format!("{policy} {priority}") } else { policy.to_string() }
}

/// `fifo 90 on CPU 2`, `other nice -5 on CPUs 0-3`.
#[must_use]
pub fn describe_found(found: &Found) -> String {
    let Scheduling { policy, priority, nice } = &found.scheduling;
    let how = match (priority, nice) {
        (0, 0) => policy.clone(),
        (0, nice) => format!("{policy} nice {nice}"),
        _ => format!("{policy} {priority}"),
    };
    format!("{how} on {}", units::cpus(&found.cpus))
}

/// Finds out whether the wanted policy and priority are available, before anything is started.
/// Returns what is available, and the kernel's error if that is not what was wanted.
///
/// # Errors
/// They were asked for explicitly and the kernel refuses them.
pub fn settle(
    policy: Choice<Policy>,
    priority: Choice<u32>,
) -> Result<(Policy, u32, Option<OsError>), SetupError> {
    if !policy.value.is_real_time() {
        return Ok((policy.value, 0, None));
    }
    let (wanted, highest) = (policy.value, priority.value);
    let tried = thread::scope(|scope| {
        // Its own thread: the caller's policy stays as it is.
        let set = move || sched::set_this_thread(wanted, highest);
        let trial = thread::Builder::new().spawn_scoped(scope, set)?;
        trial.join().unwrap_or_else(|_| Err(io::Error::other("the trial thread died")))
    });
    let Err(error) = tried else {
        return Ok((wanted, highest, None));
    };
    let ban = (error.raw_os_error() == Some(libc::EPERM))
        .then(|| RealTimeBan::find(&Root::default()))
        .flatten();
    let error = named(OsError::from(&error), ban.as_ref());
    if policy.explicit || priority.explicit {
        let flags = match (policy.explicit, priority.explicit) {
            (true, false) => format!("--policy {}", policy.value),
            (false, _) => format!("--priority {highest}"),
            (true, true) => format!("--policy {} --priority {highest}", policy.value),
        };
        let remedy = ban.map_or_else(|| RIGHTS.into(), |ban| ban.remedy());
        return Err(SetupError::Policy { flags, why: error.text, remedy });
    }
    Ok((Policy::Other, 0, Some(error)))
}

/// What gives a program real-time priorities.
const RIGHTS: &str = "Run as root, give the program CAP_SYS_NICE (setcap \
                      cap_sys_nice,cap_ipc_lock+ep $(which tardy)), or add `@group - rtprio 95` to \
                      /etc/security/limits.conf and log in again";

/// An error with the control group that it comes from, if there is one.
fn named(error: OsError, ban: Option<&RealTimeBan>) -> OsError {
    match ban {
        Some(ban) => OsError { text: format!("{}: {}", error.text, ban.text()), ..error },
        None => error,
    }
}

/// An error without "(os error 1)".
#[must_use]
pub fn plain(error: &io::Error) -> String {
    OsError::from(error).text
}

/// Makes the calling thread one that records: below the measured threads (of priority `measured`, 0
/// where they are ordinary tasks) and above every load, off the measured CPUs where others are
/// left.
///
/// # Errors
/// What the kernel says; the thread then runs as it did.
pub fn become_helper(measured: u32, housekeeping: &Cpus) -> io::Result<()> {
    if !housekeeping.is_empty() {
        housekeeping.pin_this_thread()?;
    }
    match measured {
        0 | 1 => sched::raise_nice(),
        _ => sched::set_this_thread(Policy::Fifo, HELPER_PRIORITY.min(measured - 1))
            .or_else(|refused| sched::raise_nice().map_err(|_| refused)),
    }
}

/// Above the supervisors of loads, which have 1.
const HELPER_PRIORITY: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_thread_gets_its_cpu_and_slack_without_any_right() {
        let cpu = Cpus::allowed().unwrap().iter().next().unwrap();
        let terms = ThreadConfig { policy: Policy::Other, priority: 0, cpu, slack_ns: 1 };
        let found = thread::spawn({
            let terms = terms.clone();
            move || terms.apply().unwrap()
        })
        .join()
        .unwrap();
        assert_eq!(terms.broken_by(&found), None);
        let moved = ThreadConfig { cpu: cpu + 1, ..terms };
        let Some(Deviation::Differs { found, asked, at_ns: None }) = moved.broken_by(&found) else {
            panic!("the CPU differs")
        };
        assert_eq!((found.cpus, asked.cpus), (cpu.to_string(), (cpu + 1).to_string()));
    }

    #[test]
    fn what_was_not_asked_for_is_left_out_and_what_was_becomes_an_error() {
        let impossible = 100;
        let default =
            settle(Choice::new(None, Policy::Fifo), Choice::new(None, impossible)).unwrap();
        assert!(matches!(default, (Policy::Other, 0, Some(OsError { errno: Some(_), .. }))));
        let asked = settle(Choice::new(None, Policy::Fifo), Choice::new(Some(impossible), 90));
        assert!(asked.unwrap_err().to_string().starts_with("--priority 100 is not available"));
    }
}

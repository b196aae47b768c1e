//! What the calling thread has used: page faults, context switches, CPU time.

use std::fs;

use serde::{Deserialize, Serialize};

/// Usage of one thread since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUsage {
    /// Page faults served without the disk.
    pub minor_faults: u64,
    /// Page faults served from the disk.
    pub major_faults: u64,
    /// Times it went to sleep voluntarily.
    pub voluntary_switches: u64,
    /// Times it was made to leave the CPU.
    pub involuntary_switches: u64,
    /// CPU time in user and kernel mode, ns.
    pub cpu_ns: u64,
}

impl ThreadUsage {
    /// Usage of the calling thread so far.
    #[must_use]
    pub fn of_this_thread() -> Self {
        // SAFETY: an rusage of zeros is a valid value; the kernel fills it in.
        let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
        // SAFETY: `usage` is writable, and RUSAGE_THREAD exists on every Linux.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
        let count = |n: i64| u64::try_from(n).unwrap_or(0);
        let time = |t: libc::timeval| count(t.tv_sec * 1_000_000_000 + t.tv_usec * 1_000);
        Self {
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
            cpu_ns: time(usage.ru_utime) + time(usage.ru_stime),
        }
    }

    /// Usage of thread `tid` of this process so far, as seen from another one; `None` if it is
    /// gone.
    #[must_use]
    pub fn of_thread(tid: i32) -> Option<Self> {
        let read = |name: &str| fs::read_to_string(format!("/proc/self/task/{tid}/{name}")).ok();
        let (stat, status, schedstat) = (read("stat")?, read("status")?, read("schedstat"));
        // The name before may have blanks and brackets in it.
        let (_, after_name) = stat.rsplit_once(')')?;
        let mut fields = after_name.split_ascii_whitespace();
        let minor_faults = fields.nth(7)?.parse().ok()?;
        let major_faults = fields.nth(1)?.parse().ok()?;
        let count = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            line.trim().parse().ok()
        };
        let cpu_ns = schedstat.and_then(|text| text.split(' ').next()?.parse().ok());
        Some(Self {
            minor_faults,
            major_faults,
            voluntary_switches: count("voluntary_ctxt_switches:")?,
            involuntary_switches: count("nonvoluntary_ctxt_switches:")?,
            cpu_ns: cpu_ns.unwrap_or(0),
        })
    }

    /// What was used between `earlier` and `self`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::sched;

    #[test]
    fn a_thread_is_seen_from_outside_as_it_sees_itself() {
        let before = ThreadUsage::of_this_thread();
        let mut seen = ThreadUsage::of_thread(sched::thread_id()).unwrap();
        let after = ThreadUsage::of_this_thread();
        assert!((before.minor_faults..=after.minor_faults).contains(&seen.minor_faults));
        assert!(seen.voluntary_switches >= before.voluntary_switches);
        assert!(seen.voluntary_switches <= after.voluntary_switches);
        while seen.cpu_ns == 0 {
            // The kernel adds up in steps.
            seen = ThreadUsage::of_thread(sched::thread_id()).unwrap();
        }
        let after = ThreadUsage::of_this_thread();
        assert!((before.major_faults..=after.major_faults).contains(&seen.major_faults));
        assert_eq!(ThreadUsage::of_thread(1 << 22), None);
    }
}

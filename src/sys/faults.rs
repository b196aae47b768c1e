//! What the calling thread has used: page faults, context switches, CPU time.

/// Usage of one thread since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Page faults served without the disk.
    pub minor_faults: u64,
    /// Page faults served from the disk.
    pub major_faults: u64,
    /// Times it went to sleep of its own accord.
    pub voluntary_switches: u64,
    /// Times it was made to leave the CPU.
    pub involuntary_switches: u64,
    /// CPU time in user and kernel mode, ns.
    pub cpu_ns: u64,
}

impl Usage {
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

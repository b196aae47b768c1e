//! Page faults of the calling thread, but for those by which it gets pages back that the kernel
//! has taken from it.

use std::fs;

/// So far.
pub(crate) fn page_faults() -> u64 {
    // SAFETY: an rusage of zeros is a valid value; the kernel fills it in.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: `usage` is writable, and RUSAGE_THREAD exists on every Linux.
    let failed = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    assert_eq!(failed, 0);
    u64::try_from(usage.ru_minflt + usage.ru_majflt).unwrap()
}

/// Counts again where there were faults and the kernel was looking for pages meanwhile, or moved
/// some.
pub(crate) fn undisturbed<T>(mut count: impl FnMut() -> T, has_none: impl Fn(&T) -> bool) -> T {
    loop {
        let before = disturbances();
        let found = count();
        if has_none(&found) || disturbances() == before {
            return found;
        }
    }
}

/// Pages of the whole machine that were looked at to be taken, or moved (`/proc/vmstat`).
fn disturbances() -> u64 {
    const KINDS: [&str; 5] =
        ["pgscan", "pgsteal", "pgmigrate_success", "numa_pte_updates", "thp_collapse_alloc"];
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let of = |line: &str| {
        let is_it = KINDS.iter().any(|kind| line.starts_with(kind));
        line.rsplit(' ').next().filter(|_| is_it)?.parse::<u64>().ok()
    };
    text.lines().filter_map(of).sum()
}

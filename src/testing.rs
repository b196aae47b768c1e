//! What unit tests of several modules share.

use std::{fs, hint::black_box, path::Path};

use rustix::time::{ClockId, clock_gettime};

/// The names in a directory, sorted.
pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// CPU time of this thread for `work`, ns: the least of three times. It tells how a time grows with
/// the size of its input, and nothing about how fast anything is.
pub(crate) fn cpu_ns<T>(work: impl Fn() -> T) -> i128 {
    let now_ns = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
    };
    let once = |_| {
        let before_ns = now_ns();
        black_box(work());
        now_ns() - before_ns
    };
    (0..3).map(once).min().unwrap_or(0).max(1)
}

//! What unit tests of several modules share.

use std::{
    fs,
    hint::black_box,
    path::Path,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

/// The names in a directory, sorted.
pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Whether it comes true within two minutes, or a multiple of them: `TARDY_TEST_PATIENCE`.
pub(crate) fn eventually(mut is_true: impl FnMut() -> bool) -> bool {
    let times = std::env::var("TARDY_TEST_PATIENCE").ok().and_then(|text| text.parse().ok());
    let deadline = Instant::now() + Duration::from_secs(120) * times.unwrap_or(1);
    while !is_true() {
        if Instant::now() > deadline {
            return false;
        }
    }
    true
}

/// CPU time of this thread for `work`, ns: the least of three times. It tells how a time grows with
/// the size of its input, [`eventually`] so, as what a host takes of a guest may be in it; and
/// nothing about how fast anything is.
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

//! The environment that a program was started with: what it believes, and what libraries read.

use std::ffi::OsString;

/// Forgets tardy's own variables (`TARDY_...`) where this program has rights that whoever started
/// it does not have, by file capabilities or as another user: `AT_SECURE` of `getauxval(3)`.
///
/// To be called first in `main`, as long as there is one thread.
pub fn distrust() {
    if !is_secure() {
        return;
    }
    let is_own = |name: &OsString| name.as_encoded_bytes().starts_with(b"TARDY_");
    let names: Vec<OsString> = std::env::vars_os().map(|(name, _)| name).filter(is_own).collect();
    for name in names {
        // SAFETY: no other thread exists yet that could read the environment meanwhile.
        unsafe { std::env::remove_var(name) };
    }
}

/// Keeps OpenPGM, which ZeroMQ uses for multicast, from writing its warnings to standard output,
/// where tardy's results belong. A level that the user has set stays.
///
/// To be called as [`distrust`].
pub fn silence_libraries() {
    const LEVEL: &str = "PGM_MIN_LOG_LEVEL";
    if std::env::var_os(LEVEL).is_none() {
        // SAFETY: no other thread exists yet that could read the environment meanwhile.
        unsafe { std::env::set_var(LEVEL, "FATAL") };
    }
}

fn is_secure() -> bool {
    // SAFETY: reads a number that the kernel gave to this process at its start.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

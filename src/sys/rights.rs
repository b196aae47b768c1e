//! Drops root and capabilities before the process talks to untrusted peers.

use std::io;

use rustix::{
    process::{Resource, Rlimit, setrlimit},
    thread::{
        CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_keep_capabilities,
        set_no_new_privs,
    },
};

/// `nobody` and `nogroup`: the kernel's default numbers for those it does not know.
pub const NOBODY: u32 = 65_534;

/// Whether the calling process is root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Privileges that could not be dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptRights {
    /// Why root could not become nobody: it keeps its name, and the files that belong to it.
    pub root: Option<String>,
    /// Capabilities kept because the equivalent resource limits could not be raised.
    pub capabilities: Vec<&'static str>,
}

/// Gives up root, capabilities and the way back to them, permanently. What later threads need for
/// their work, real-time priority and locked memory, is kept by limits where those can be raised,
/// and by its capability where not. Where root cannot become nobody in a user namespace, which may
/// have no such user, it keeps its name and loses its capabilities. Tells what stays.
///
/// To be called while the process has one thread: the kernel keeps most of this per thread.
///
/// # Errors
/// What the kernel says; what was given up until then stays so.
pub fn give_up() -> io::Result<KeptRights> {
    let all = |most| Rlimit { current: most, maximum: most };
    let mut kept = CapabilitySet::empty();
    if setrlimit(Resource::Rtprio, all(Some(99))).is_err() {
        kept |= CapabilitySet::SYS_NICE;
    }
    if setrlimit(Resource::Memlock, all(None)).is_err() {
        kept |= CapabilitySet::IPC_LOCK;
    }
    let mut root = None;
    if is_root() {
        // Else the kernel takes all of them with the name; what is too much goes below.
        set_keep_capabilities(true)?;
        root = match become_nobody() {
            Err(error) if is_namespace() => Some(error.to_string()),
            done => done.map(|()| None)?,
        };
    }
    let kept = kept & capabilities(None)?.permitted;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })?;
    set_no_new_privs(true)?;
    Ok(KeptRights { root, capabilities: names(kept) })
}

fn names(kept: CapabilitySet) -> Vec<&'static str> {
    let all =
        [(CapabilitySet::SYS_NICE, "CAP_SYS_NICE"), (CapabilitySet::IPC_LOCK, "CAP_IPC_LOCK")];
    all.into_iter().filter(|(one, _)| kept.contains(*one)).map(|(_, name)| name).collect()
}

/// Whether this is a user namespace with less than all users; none where that cannot be known.
fn is_namespace() -> bool {
    let map = super::text::read("/proc/self/uid_map").unwrap_or_default();
    let words: Vec<&str> = map.split_ascii_whitespace().collect();
    !words.is_empty() && words != ["0", "0", "4294967295"]
}

/// Groups first: afterwards the privilege is gone.
fn become_nobody() -> io::Result<()> {
    // SAFETY: a list of no groups; nothing is read.
    checked(unsafe { libc::setgroups(0, core::ptr::null()) })?;
    // SAFETY: takes integers.
    checked(unsafe { libc::setresgid(NOBODY, NOBODY, NOBODY) })?;
    // SAFETY: takes integers.
    checked(unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) })
}

fn checked(result: i32) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

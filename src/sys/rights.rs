//! Giving up what this process may do beyond an ordinary user, before strangers talk to it.

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

/// Gives up root, capabilities and the way back to them, permanently. What later threads need for
/// their work, real-time priority and locked memory, is kept by limits where those can be raised,
/// and by its capability where not. Where root cannot become nobody (a user namespace without such
/// a user), it keeps its name and loses its capabilities.
///
/// To be called while the process has one thread: the kernel keeps most of this per thread.
///
/// # Errors
/// What the kernel says; what was given up until then stays so.
pub fn give_up() -> io::Result<()> {
    let all = |most| Rlimit { current: most, maximum: most };
    let mut kept = CapabilitySet::empty();
    if setrlimit(Resource::Rtprio, all(Some(99))).is_err() {
        kept |= CapabilitySet::SYS_NICE;
    }
    if setrlimit(Resource::Memlock, all(None)).is_err() {
        kept |= CapabilitySet::IPC_LOCK;
    }
    if is_root() {
        // Else the kernel takes all of them with the name; what is too much goes below.
        set_keep_capabilities(true)?;
        let _ = become_nobody();
    }
    let kept = kept & capabilities(None)?.permitted;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })?;
    Ok(set_no_new_privs(true)?)
}

/// Groups first: afterwards there is no right to it.
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

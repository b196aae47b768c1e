//! The limit of the stack of the first thread: whether tardy fits in.

use rustix::process::{Resource, getrlimit};
use thiserror::Error;

/// What tardy needs. Its first thread builds the command line of all commands, which takes 350 KiB
/// in a debug build.
const LEAST_BYTES: u64 = 1 << 20;

/// A limit under which tardy would be ended by the kernel at some moment.
#[derive(Debug, Error)]
#[error(
    "the stack is limited to {} KiB, and tardy needs {} KiB: `ulimit -s 8192`",
    .0 / 1024, LEAST_BYTES / 1024
)]
pub struct StackLimit(u64);

/// Refuses a limit that is too low.
///
/// # Errors
/// It is too low.
pub fn check() -> Result<(), StackLimit> {
    match getrlimit(Resource::Stack).current {
        Some(bytes) if bytes < LEAST_BYTES => Err(StackLimit(bytes)),
        _ => Ok(()),
    }
}

//! One process at a time reads the journal and decides whose it is.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::fs::{FlockOperation, flock};

/// Longer than putting everything back takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A lock beside the journal until dropped; the kernel lets go of it when the process ends.
#[derive(Debug)]
pub(super) struct JournalLock(#[expect(dead_code, reason = "held, not read")] File);

impl JournalLock {
    /// Waits for it.
    ///
    /// # Errors
    /// It cannot be opened, or another process holds it for too long.
    pub(super) fn over(directory: &Path) -> io::Result<Self> {
        // No other user may open it, and so hold it against root.
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.open(directory.join("lock"))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(file)),
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                    sleep(Duration::from_millis(10));
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(io::Error::other("another tardy is putting settings back"));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

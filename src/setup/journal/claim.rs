//! One process at a time reads the journal and decides whose it is.

use std::{
    fs::File,
    io,
    thread::sleep,
    time::{Duration, Instant},
};

use super::{
    JournalPath,
    place::{LOCK, Place, take_lock},
};

/// Longer than putting everything back takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A lock beside the journal until dropped; the kernel lets go of it when the process ends.
#[derive(Debug)]
pub(super) struct JournalLock(File);

impl JournalLock {
    /// Waits for it, in the journal's directory, which is made where it is missing: whoever has
    /// put everything back takes the directory away.
    ///
    /// # Errors
    /// As [`JournalLock::over`], or the directory cannot be made or is not believed.
    pub(super) fn within(path: &JournalPath) -> io::Result<(Place, Self)> {
        loop {
            let place = Place::make(path)?;
            match Self::over(&place) {
                Ok(lock) if rustix::fs::fstat(&lock.0)?.st_nlink > 0 => return Ok((place, lock)),
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                // It was taken away meanwhile.
                _ => {}
            }
        }
    }

    /// Waits for it.
    ///
    /// # Errors
    /// It cannot be opened, or another process holds it for too long.
    pub(super) fn over(place: &Place) -> io::Result<Self> {
        // No other user may open it, and so hold it against root.
        let file = place.beside(LOCK)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match take_lock(&file) {
                Ok(()) => return Ok(Self(file)),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Err(_) if Instant::now() < deadline => sleep(Duration::from_millis(10)),
                Err(_) => {
                    return Err(io::Error::other("another tardy is putting settings back"));
                }
            }
        }
    }
}

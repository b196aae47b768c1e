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
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A lock beside the journal until dropped; the kernel lets go of it when the process ends.
#[derive(Debug)]
pub(super) struct JournalLock(File);

impl JournalLock {
    /// Waits for it, in the journal's directory, which is made if it is missing: a process that has
    /// restored everything takes the directory away.
    ///
    /// # Errors
    /// As [`JournalLock::over`], or the directory cannot be made or is not believed.
    pub(super) fn within(path: &JournalPath) -> io::Result<(Place, Self)> {
        loop {
            let place = Place::make(path)?;
            if let Some(lock) = Self::over(&place)? {
                return Ok((place, lock));
            }
        }
    }

    /// Waits for it; nothing where it was taken away meanwhile, with the place or out of it: who
    /// holds that one keeps out nobody.
    ///
    /// # Errors
    /// It cannot be opened, or another process holds it for too long.
    pub(super) fn over(place: &Place) -> io::Result<Option<Self>> {
        // No other user may open it, and so hold it against root.
        let file = match place.beside(LOCK) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let deadline = Instant::now() + PATIENCE;
        loop {
            match take_lock(&file) {
                Ok(()) => return Self(file).if_there(),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Err(_) if Instant::now() < deadline => sleep(Duration::from_millis(10)),
                Err(_) => {
                    return Err(io::Error::other("another tardy is putting settings back"));
                }
            }
        }
    }

    fn if_there(self) -> io::Result<Option<Self>> {
        let names = rustix::fs::fstat(&self.0)?.st_nlink;
        Ok((names > 0).then_some(self))
    }
}

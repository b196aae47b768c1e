//! Directories of guests, which are removed when their guests end, or by the next lab where whoever
//! watched them was killed.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::Duration,
};

use tempfile::TempDir;

/// Begins their names.
const SCRATCH: &str = "guest-";

/// A directory in use: no sweep removes it as long as its lock is held.
pub struct GuestScratch {
    directory: TempDir,
    _lock: File,
}

impl GuestScratch {
    /// Makes one in `place`.
    ///
    /// # Errors
    /// What the disk says.
    pub(super) fn create(place: &Path) -> io::Result<Self> {
        loop {
            let directory = TempDir::with_prefix_in(SCRATCH, place)?;
            // Before it had its lock, another lab's sweep may have taken it for left over.
            if let Some(lock) = hold(directory.path())? {
                return Ok(Self { directory, _lock: lock });
            }
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// In a guest's directory, locked by the process that watches the guest.
const LOCK: &str = "lock";

/// Takes the lock of a new directory; none where a sweep has it, or had it and has removed it.
fn hold(directory: &Path) -> io::Result<Option<File>> {
    let lock = match File::create(directory.join(LOCK)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        made => made?,
    };
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
        Ok(()) => {}
    }
    Ok((lock.metadata()?.nlink() > 0).then_some(lock))
}

/// Young directories may not have their lock yet.
const YOUNG: Duration = Duration::from_secs(60);

/// Removes what guests left whose watchers were killed.
pub(super) fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(SCRATCH) {
            continue;
        }
        // Held until it is gone: a process that has just made it sees that it belongs to another.
        let lock = File::open(entry.path().join(LOCK));
        let is_dead = match &lock {
            Ok(lock) => lock.try_lock().is_ok(),
            Err(_) => {
                let age = entry.metadata().and_then(|data| data.modified()).map(|at| at.elapsed());
                age.is_ok_and(|age| age.is_ok_and(|age| age > YOUNG))
            }
        };
        if is_dead {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_guests_without_a_watcher_are_swept_away() {
        let place = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let guest = place.path().join(name);
            fs::create_dir(&guest).unwrap();
            guest
        };
        let (alive, dead) = (make("guest-alive"), make("guest-dead"));
        let (young, other) = (make("guest-young"), make("other"));
        let lock = File::create(alive.join(LOCK)).unwrap();
        lock.lock().unwrap();
        File::create(dead.join(LOCK)).unwrap();
        sweep(place.path());
        let left = [&alive, &dead, &young, &other].map(|guest| guest.exists());
        assert_eq!(left, [true, false, true, true]);
    }

    #[test]
    fn a_directory_that_a_sweep_takes_before_it_has_its_lock_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let guest = place.path().join("guest-new");
        fs::create_dir(&guest).unwrap();
        let swept = File::create(guest.join(LOCK)).unwrap();
        swept.lock().unwrap();
        assert!(hold(&guest).unwrap().is_none(), "a sweep has it");
        drop(swept);
        assert!(hold(&guest).unwrap().is_some());
        fs::remove_dir_all(&guest).unwrap();
        assert!(hold(&guest).unwrap().is_none(), "a sweep has removed it");
    }
}

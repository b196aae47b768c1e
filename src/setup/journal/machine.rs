//! One tardy at a time changes the machine, also if two have each their own `/run`: a container or
//! a private mount namespace. Each would take what the other has set for the old value.
//!
//! So the owner of a journal also holds a lock on a file of sysfs, which is the same file in all
//! mounts of one network namespace. Only root may open it, so that no other user can hold it.

use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use super::place::take_lock;

/// Written only by root, and present in every kernel. To open it changes nothing.
const FILE: &str = "/sys/bus/cpu/drivers_probe";

/// How long one that was killed may hold it, until the kernel has taken it away.
const PATIENCE: Duration = Duration::from_secs(2);

/// The lock, until dropped. Nothing is held if the file cannot be opened: sysfs may be read-only,
/// and then few settings can be changed.
#[derive(Debug)]
pub(super) struct MachineLock {
    _held: Option<File>,
}

impl MachineLock {
    /// Without a lock.
    pub(super) const fn none() -> Self {
        Self { _held: None }
    }

    /// Takes the lock of this machine.
    ///
    /// # Errors
    /// `WouldBlock` if another tardy holds it.
    pub(super) fn take() -> io::Result<Self> {
        Self::over(Path::new(FILE), PATIENCE)
    }

    fn over(file: &Path, patience: Duration) -> io::Result<Self> {
        let Ok(file) = OpenOptions::new().write(true).open(file) else { return Ok(Self::none()) };
        let deadline = Instant::now() + patience;
        loop {
            match take_lock(&file) {
                Ok(()) => return Ok(Self { _held: Some(file) }),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Ok(Self::none()),
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => sleep(Duration::from_millis(10)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_at_a_time_and_a_machine_without_the_file_has_no_lock() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        MachineLock::over(&file, Duration::ZERO).unwrap();
        std::fs::write(&file, "").unwrap();
        let held = MachineLock::over(&file, Duration::ZERO).unwrap();
        let refused = MachineLock::over(&file, Duration::ZERO).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(held);
        MachineLock::over(&file, Duration::ZERO).unwrap();
    }
}

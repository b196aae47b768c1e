//! Files of loads: directories that the next start finds and removes when everything was killed,
//! and files that have no name at all.
//!
//! A directory is locked while a process of its load lives; one without a lock is left over.
//! Changes the directory that it is given, and nothing else.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};

/// How the name of every such directory begins.
const PREFIX: &str = ".tardy-load-";

/// A directory of one load.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    /// Held by the supervisor and, since they are forked, by its workers.
    _lock: File,
}

impl Scratch {
    /// Makes one in `parent`, after removing those that killed loads have left there.
    ///
    /// # Errors
    /// `parent` is no directory, or nothing can be made in it.
    pub(super) fn create(parent: &Path) -> io::Result<Self> {
        sweep(parent);
        loop {
            let path = parent.join(format!("{PREFIX}{:016x}", random()?));
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            // Between the two steps another load's sweep may have taken it for left over.
            if let Some(lock) = lock(&path)? {
                return Ok(Self { path, _lock: lock });
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it and what is in it.
    ///
    /// # Errors
    /// Those of removing.
    pub(super) fn remove(self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)
    }
}

fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

/// The lock of the directory at `path`; none where somebody holds it, or it is gone by now.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        locked => locked?,
    }
    let inode = |found: &fs::Metadata| (found.dev(), found.ino());
    let held = inode(&file.metadata()?);
    let is_there = fs::symlink_metadata(path).is_ok_and(|found| inode(&found) == held);
    Ok(is_there.then_some(file))
}

/// Removes what loads of this user have left in `parent`; how many are held by somebody.
fn sweep(parent: &Path) -> usize {
    let mut held = 0;
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_named_so = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        // In a directory that all may write to, another user may make what has our name.
        let is_own = |found: fs::Metadata| found.is_dir() && found.uid() == geteuid().as_raw();
        if !is_named_so || !entry.metadata().is_ok_and(is_own) {
            continue;
        }
        match lock(&entry.path()) {
            Ok(Some(_lock)) => {
                // A later start finds what cannot be removed now.
                let _ = fs::remove_dir_all(entry.path());
            }
            _ => held += 1,
        }
    }
    held
}

/// Removes what a load has left in `parent` whose supervisor was killed; its workers may take a
/// moment to be gone. A directory of another load that still runs stays, after the same wait.
pub(super) fn sweep_within(parent: &Path, patience: Duration) {
    let deadline = Instant::now() + patience;
    while sweep(parent) > 0 && Instant::now() < deadline {
        sleep(Duration::from_millis(20));
    }
}

/// A new file in `parent` that has no name, so that nothing is left however the load ends.
///
/// # Errors
/// Those of making it; `InvalidInput` where the file system refuses direct access.
pub(super) fn nameless(parent: &Path, is_direct: bool) -> io::Result<File> {
    let direct = if is_direct { OFlags::DIRECT } else { OFlags::empty() };
    match open(parent, OFlags::TMPFILE | direct) {
        // The errors of file systems and kernels without support for such files.
        Err(error) if has_no_nameless(&error) => unlinked(parent, direct),
        opened => opened,
    }
}

fn has_no_nameless(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT))
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    OpenOptions::new().read(true).write(true).mode(0o600).custom_flags(flags).open(path)
}

/// The same by way of a name that it has for a moment, in a directory that a sweep would find.
fn unlinked(parent: &Path, direct: OFlags) -> io::Result<File> {
    let scratch = Scratch::create(parent)?;
    let file = open(&scratch.path().join("file"), OFlags::CREATE | OFlags::EXCL | direct);
    scratch.remove()?;
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(parent: &Path) -> Vec<String> {
        let entries = fs::read_dir(parent).unwrap().map(Result::unwrap);
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn what_is_left_over_is_swept_and_what_is_held_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let held = Scratch::create(parent.path()).unwrap();
        let left = Scratch::create(parent.path()).unwrap();
        fs::write(left.path().join("f"), "x").unwrap();
        fs::create_dir(left.path().join("d")).unwrap();
        fs::create_dir(parent.path().join("other")).unwrap();
        drop(left);
        // What another test starts at this moment holds the lock as well, until it is executed.
        let deadline = Instant::now() + Duration::from_secs(30);
        while sweep(parent.path()) > 1 && Instant::now() < deadline {
            sleep(Duration::from_millis(5));
        }
        assert_eq!(sweep(parent.path()), 1);
        assert_eq!(names(parent.path()).len(), 2, "the held one and the other");
        assert!(held.path().exists() && parent.path().join("other").exists());
        held.remove().unwrap();
        assert_eq!(names(parent.path()), ["other"]);
    }

    #[test]
    fn a_link_of_that_name_is_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let target = tempfile::tempdir().unwrap();
        fs::write(target.path().join("precious"), "x").unwrap();
        let link = parent.path().join(format!("{PREFIX}0"));
        std::os::unix::fs::symlink(target.path(), link).unwrap();
        sweep(parent.path());
        assert!(target.path().join("precious").exists());
    }

    #[test]
    fn a_nameless_file_can_be_written_and_is_not_seen_by_either_way() {
        let parent = tempfile::tempdir().unwrap();
        let files = [nameless(parent.path(), false), unlinked(parent.path(), OFlags::empty())];
        for file in files {
            io::Write::write_all(&mut file.unwrap(), b"x").unwrap();
            assert_eq!(names(parent.path()), [""; 0]);
        }
        nameless(&parent.path().join("none"), false).unwrap_err();
    }
}

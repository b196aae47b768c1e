//! Files of loads: directories that the next start finds and removes when everything was killed,
//! and files that have no name at all.
//!
//! A directory is locked while a process of its load lives; one without a lock is left over.
//! Changes the directory that it is given, and nothing else.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, mkdirat, openat,
    statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};

/// How the name of every such directory begins.
const PREFIX: &str = ".tardy-load-";

/// A directory that may be listed, and is not a link.
const LISTED: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory of one load, held open: the one above may be another user's, who can put something
/// else in its place.
#[derive(Debug)]
pub(super) struct Scratch {
    above: OwnedFd,
    name: OsString,
    path: PathBuf,
    /// Locked. Held by the supervisor and, since they are forked, by its workers.
    directory: OwnedFd,
}

impl Scratch {
    /// Makes one in `parent`, after removing those that killed loads have left there.
    ///
    /// # Errors
    /// `parent` is not a directory, or nothing can be made in it; or another user has replaced what
    /// was made.
    pub(super) fn create(parent: &Path) -> io::Result<Self> {
        sweep(parent);
        let above = opened(parent)?;
        loop {
            let name = OsString::from(format!("{PREFIX}{:016x}", random()?));
            match mkdirat(&above, &name, Mode::RWXU) {
                Err(Errno::EXIST) => continue,
                made => made?,
            }
            // Between the two steps another load's sweep may have taken it for left over.
            let locked = lock(&above, &name).inspect_err(|_| {
                let _ = unlinkat(&above, &name, AtFlags::REMOVEDIR);
            })?;
            if let Some(directory) = locked {
                return Ok(Self { path: parent.join(&name), above, name, directory });
            }
        }
    }

    /// Where it was made; what is there by now may be something else.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory.
    pub(super) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// Removes it and what is in it.
    ///
    /// # Errors
    /// Those of removing.
    pub(super) fn remove(self) -> io::Result<()> {
        remove(&self.above, &self.name, &self.directory)
    }
}

fn opened(parent: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, parent, flags, Mode::empty())?)
}

fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

/// The locked directory of this name; none where somebody holds the lock, or it is gone by now.
fn lock(above: &OwnedFd, name: &OsStr) -> io::Result<Option<OwnedFd>> {
    let directory = match openat(above, name, LISTED, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    let owner = fstat(&directory)?.st_uid;
    if owner != geteuid().as_raw() {
        return Err(io::Error::other(format!("{} belongs to user {owner}", name.display())));
    }
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(None),
        locked => locked?,
    }
    Ok(is_there(above, name, &directory)?.then_some(directory))
}

/// Whether this directory has the name still.
fn is_there(above: &OwnedFd, name: &OsStr, directory: &OwnedFd) -> io::Result<bool> {
    let held = fstat(directory)?;
    let is_it = |found: Stat| (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino);
    Ok(statat(above, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(is_it))
}

/// Removes what is in a directory, and then itself where it has its name still.
fn remove(above: &OwnedFd, name: &OsStr, directory: &OwnedFd) -> io::Result<()> {
    for name in names(directory)? {
        match unlinkat(directory, &name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {
                let below = openat(directory, &name, LISTED, Mode::empty())?;
                remove(directory, &name, &below)?;
            }
            Err(Errno::NOENT) => {}
            removed => removed?,
        }
    }
    if !is_there(above, name, directory)? {
        return Err(io::Error::other("it was moved or replaced by somebody"));
    }
    Ok(unlinkat(above, name, AtFlags::REMOVEDIR)?)
}

fn names(directory: impl AsFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_bytes().to_owned();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}

/// Removes what loads of this user have left in `parent`; how many are held by somebody.
fn sweep(parent: &Path) -> usize {
    let Ok(listed) = openat(CWD, parent, LISTED.difference(OFlags::NOFOLLOW), Mode::empty()) else {
        return 0;
    };
    let mut held = 0;
    for name in names(&listed).unwrap_or_default() {
        let is_named_so = name.as_encoded_bytes().starts_with(PREFIX.as_bytes());
        // In a directory that all may write to, another user may make what has our name.
        let is_own = |found: Stat| {
            FileType::from_raw_mode(found.st_mode) == FileType::Directory
                && found.st_uid == geteuid().as_raw()
        };
        let found = statat(&listed, &name, AtFlags::SYMLINK_NOFOLLOW);
        if !is_named_so || !found.is_ok_and(is_own) {
            continue;
        }
        match lock(&listed, &name) {
            Ok(Some(left)) => {
                // A later start finds what cannot be removed now.
                let _ = remove(&listed, &name, &left);
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
    match open(CWD, parent, OFlags::TMPFILE | direct) {
        // The errors of file systems and kernels without support for such files.
        Err(error) if has_no_nameless(&error) => unlinked(parent, direct),
        opened => opened,
    }
}

fn has_no_nameless(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT))
}

fn open(above: impl AsFd, path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(openat(above, path, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// The same by way of a name that it has for a moment, in a directory that a sweep would find.
fn unlinked(parent: &Path, direct: OFlags) -> io::Result<File> {
    let scratch = Scratch::create(parent)?;
    let flags = OFlags::CREATE | OFlags::EXCL | direct;
    let file = open(scratch.directory(), Path::new("file"), flags);
    scratch.remove()?;
    file
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn names(parent: &Path) -> Vec<String> {
        let entries = fs::read_dir(parent).unwrap().map(Result::unwrap);
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn what_takes_its_place_gets_nothing_and_loses_nothing() {
        let (parent, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(other.path().join("precious"), "x").unwrap();
        let scratch = Scratch::create(parent.path()).unwrap();
        fs::rename(scratch.path(), parent.path().join("moved")).unwrap();
        symlink(other.path(), scratch.path()).unwrap();
        mkdirat(scratch.directory(), "d", Mode::RWXU).unwrap();
        open(scratch.directory(), Path::new("d/f"), OFlags::CREATE | OFlags::EXCL).unwrap();
        assert!(parent.path().join("moved/d/f").exists());
        let error = scratch.remove().unwrap_err();
        assert!(error.to_string().contains("moved or replaced"), "{error}");
        assert_eq!(names(&parent.path().join("moved")), [""; 0], "its own files are gone");
        assert_eq!(names(other.path()), ["precious"]);
    }

    #[test]
    fn another_users_directory_in_its_place_is_refused() {
        if !geteuid().is_root() {
            return eprintln!("skipped: needs root");
        }
        let parent = tempfile::tempdir().unwrap();
        fs::create_dir(parent.path().join("theirs")).unwrap();
        chown(parent.path().join("theirs"), Some(65_534), None).unwrap();
        let error = lock(&opened(parent.path()).unwrap(), OsStr::new("theirs")).unwrap_err();
        assert_eq!(error.to_string(), "theirs belongs to user 65534");
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
        let deadline = Instant::now() + Duration::from_secs(120);
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

//! A file whole or not at all: written under a random name beside the place that it takes at the
//! end.
//!
//! A draft is made, placed and removed relative to its directory, which is held open: a directory
//! that is renamed or replaced meanwhile leads nowhere else. It is always a new file, so that no
//! link which another user put there is followed.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write as _},
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat},
    io::Errno,
    rand::{GetRandomFlags, getrandom},
};

/// Names that are tried, where one after the other is taken.
const ATTEMPTS: u32 = 16;

/// A file that is not in its place yet; removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Draft {
    file: File,
    scrap: Scrap,
    target: OsString,
}

/// The name of a draft as long as it is one.
#[derive(Debug)]
struct Scrap {
    directory: OwnedFd,
    name: Option<OsString>,
}

impl Draft {
    /// A draft of the file at `path`, which may exist.
    ///
    /// # Errors
    /// A path that names no file, or what the system says of its directory.
    pub(crate) fn beside(path: &Path) -> io::Result<Self> {
        let is_file = matches!(path.components().next_back(), Some(Component::Normal(_)));
        let (true, Some(target)) = (is_file, path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, parent.unwrap_or(Path::new(".")), flags, Mode::empty())?;
        Self::within(directory, target)
    }

    /// A draft of the file `target` of an open directory.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn within(directory: OwnedFd, target: &OsStr) -> io::Result<Self> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // As of every file that is made: less what the umask takes.
        let mode = Mode::from_raw_mode(0o666);
        for _ in 0..ATTEMPTS {
            let name = random_name(target)?;
            match openat(directory.as_fd(), &name, flags, mode) {
                Ok(file) => {
                    let scrap = Scrap { directory, name: Some(name) };
                    return Ok(Self { file: file.into(), scrap, target: target.into() });
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::EXIST.into())
    }

    /// The file to be written.
    #[must_use]
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Puts it in its place, where it replaces what was there; hands over the file, still open.
    ///
    /// # Errors
    /// What the system says; then what was there before still is.
    pub(crate) fn place(mut self) -> io::Result<File> {
        let directory = self.scrap.directory.as_fd();
        if let Some(name) = &self.scrap.name {
            renameat(directory, name, directory, &self.target)?;
        }
        self.scrap.name = None;
        Ok(self.file)
    }
}

impl Drop for Scrap {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = unlinkat(self.directory.as_fd(), name, AtFlags::empty());
        }
    }
}

/// Replaces the file at `path` by one that holds `bytes`, or makes it.
///
/// # Errors
/// What the system says; then what was there before still is.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut draft = Draft::beside(path)?;
    draft.file().write_all(bytes)?;
    draft.place().map(drop)
}

/// The file of which this is the name of a draft: `run.json` of `.run.json.9f86d081884c7d65.tmp`.
pub(crate) fn target_of(name: &str) -> Option<&str> {
    let (target, random) = name.strip_prefix('.')?.strip_suffix(".tmp")?.rsplit_once('.')?;
    let is_random = random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_random.then_some(target)
}

/// `.run.json.9f86d081884c7d65.tmp`: hidden, and known as a draft where a kill leaves it behind.
fn random_name(target: &OsStr) -> io::Result<OsString> {
    let mut random = [0; 8];
    getrandom(&mut random, GetRandomFlags::empty())?;
    let mut name = OsString::from(".");
    name.push(target);
    name.push(format!(".{:016x}.tmp", u64::from_ne_bytes(random)));
    Ok(name)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;
    use crate::testing::names_in;

    #[test]
    fn there_is_the_old_file_until_the_new_one_takes_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        fs::write(&path, "old").unwrap();
        let mut draft = Draft::beside(&path).unwrap();
        draft.file().write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert!(names_in(directory.path())[0].starts_with(".f."));
        draft.place().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names_in(directory.path()), ["f"]);
    }

    #[test]
    fn a_draft_that_is_given_up_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        drop(Draft::beside(&directory.path().join("f")).unwrap());
        assert!(names_in(directory.path()).is_empty());
        // A directory cannot be replaced by a file.
        fs::create_dir(directory.path().join("d")).unwrap();
        replace(&directory.path().join("d"), b"x").unwrap_err();
        assert_eq!(names_in(directory.path()), ["d"]);
    }

    #[test]
    fn a_link_in_the_place_is_replaced_and_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("f"), directory.path().join("other"));
        fs::write(&other, "other").unwrap();
        symlink(&other, &path).unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "other");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }

    #[test]
    fn a_directory_that_is_moved_meanwhile_still_gets_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let (here, there) = (directory.path().join("here"), directory.path().join("there"));
        fs::create_dir(&here).unwrap();
        let draft = Draft::beside(&here.join("f")).unwrap();
        fs::rename(&here, &there).unwrap();
        fs::create_dir(&here).unwrap();
        draft.place().unwrap();
        assert_eq!((names_in(&here).len(), names_in(&there)), (0, vec!["f".to_owned()]));
    }

    #[test]
    fn what_names_no_file_is_refused() {
        for path in ["", "/", "..", "/nonexistent/f"] {
            assert!(Draft::beside(Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn a_draft_is_known_by_its_name() {
        let name = random_name(OsStr::new("run.json")).unwrap().into_string().unwrap();
        assert_eq!(target_of(&name), Some("run.json"));
        for other in ["run.json", ".run.json.tmp", ".run.json.xyz.tmp", ".0123456789abcdef.tmp"] {
            assert_eq!(target_of(other), None, "{other}");
        }
    }
}

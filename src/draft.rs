//! A file whole or not at all: written under a random name beside the place that it takes at the
//! end.
//!
//! A draft is made, placed and removed relative to its directory, which is held open: a directory
//! that is renamed or replaced meanwhile leads nowhere else. It is always a new file, so that no
//! link which another user put there is followed. A device or a pipe is written through instead.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, FileType},
    io::{self, Write as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::FileTypeExt as _,
    },
    path::{Component, Path},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat},
    io::Errno,
    rand::{GetRandomFlags, getrandom},
};

/// Directories whose names stand for devices and open files.
const OF_DEVICES: [&str; 3] = ["/dev", "/dev/fd", "/proc/self/fd"];

/// Names that are tried, where one after the other is taken.
const ATTEMPTS: u32 = 16;

/// A file that is not in its place yet; removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Draft {
    file: File,
    /// None where what is there is written through.
    scrap: Option<Scrap>,
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
        if let Some(file) = through(path)? {
            return Ok(Self { file, scrap: None, target: target.into() });
        }
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
                    let (file, scrap) = (file.into(), Some(scrap));
                    return Ok(Self { file, scrap, target: target.into() });
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
        if let Some(scrap) = &mut self.scrap
            && let Some(name) = &scrap.name
        {
            let directory = scrap.directory.as_fd();
            renameat(directory, name, directory, &self.target)?;
            scrap.name = None;
        }
        Ok(self.file)
    }
}

/// A device or a pipe, to be written through: a file in its place would take it from everybody, as
/// `/dev/null`. Nothing where there is a file, or nothing yet.
///
/// # Errors
/// It is something else, or what the system says.
fn through(path: &Path) -> io::Result<Option<File>> {
    let is_of_devices = path.parent().is_some_and(|own| OF_DEVICES.iter().any(|it| own == *it));
    let kind = fs::symlink_metadata(path).map(|there| there.file_type());
    let is_stream = |kind: FileType| kind.is_fifo() || kind.is_char_device();
    if !is_of_devices && !kind.is_ok_and(is_stream) {
        return Ok(None);
    }
    // Only there every link is the system's.
    let follow = if is_of_devices { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC | follow;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    let kind = file.metadata()?.file_type();
    // A redirected standard output is a file.
    if is_stream(kind) || kind.is_file() {
        return Ok(Some(file));
    }
    let what = "it is a device that holds data of its own; name a file";
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
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
    use std::os::unix::fs::symlink;

    use rustix::fs::mknodat;

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
    fn a_pipe_or_a_device_is_written_through_and_stays_what_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        mknodat(CWD, &path, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let (from, all) = (path.clone(), b"all of it");
        let reader = std::thread::spawn(move || fs::read(from).unwrap());
        replace(&path, all).unwrap();
        assert_eq!(reader.join().unwrap(), all);
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
        assert_eq!(names_in(directory.path()), ["pipe"]);
        replace(Path::new("/dev/null"), all).unwrap();
        replace(Path::new("/dev/full"), all).unwrap_err();
        for device in ["/dev/null", "/dev/full"] {
            assert!(fs::metadata(device).unwrap().file_type().is_char_device(), "{device}");
        }
        replace(Path::new("/dev/tardy-nonexistent"), all).unwrap_err();
        assert!(!Path::new("/dev/tardy-nonexistent").exists());
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

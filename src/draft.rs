//! A file whole or not at all: written under a random name beside the place that it takes at the
//! end.
//!
//! A draft is made, placed and removed relative to its directory, which is held open: a directory
//! that is renamed or replaced meanwhile leads nowhere else. It is always a new file, so that no
//! link which another user put there is followed. A character device is written through instead,
//! and what `/dev` and `/dev/fd` name; a pipe elsewhere is refused: whoever made it would get what
//! is written, and it does not open before somebody reads.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File},
    io::{self, Write as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{DirBuilderExt as _, FileTypeExt as _},
    },
    path::{Component, Path},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, fcntl_setfl, fstat, mkdirat, openat, renameat, unlinkat},
    io::Errno,
    process::geteuid,
    rand::{GetRandomFlags, getrandom},
};

/// Directories whose names stand for devices and open files.
const OF_DEVICES: [&str; 3] = ["/dev", "/dev/fd", "/proc/self/fd"];

/// Opens a directory for what is in it.
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

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
        let directory = openat(CWD, parent.unwrap_or(Path::new(".")), DIRECTORY, Mode::empty())?;
        Self::within(directory, target)
    }

    /// A draft of the file `target` of an open directory.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn within(directory: OwnedFd, target: &OsStr) -> io::Result<Self> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Less what the umask takes, and never to be written by others.
        let mode = Mode::from_raw_mode(0o644);
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

    /// As [`Draft::place`], once the disk has it: a disk that fails says so only then.
    ///
    /// # Errors
    /// As there, and what the disk says.
    pub(crate) fn place_on_disk(self) -> io::Result<()> {
        // A stream that is written through has no disk.
        if self.scrap.is_some() {
            self.file.sync_data()?;
        }
        self.place().map(drop)
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

/// A device, or a stream that `/dev` names, to be written through: a file in its place would take
/// it from everybody, as `/dev/null`. Nothing where there is a file, or nothing yet.
///
/// # Errors
/// It is something else, or what the system says.
fn through(path: &Path) -> io::Result<Option<File>> {
    let refused = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    let is_of_devices = path.parent().is_some_and(|own| OF_DEVICES.iter().any(|it| own == *it));
    let kind = fs::symlink_metadata(path).map(|there| there.file_type());
    if !is_of_devices {
        match kind {
            Ok(kind) if kind.is_fifo() => {
                return refused(
                    "it is a FIFO, and whoever made it would get what is written; name a file, or \
                     /dev/stdout",
                );
            }
            Ok(kind) if kind.is_char_device() => {}
            _ => return Ok(None),
        }
    }
    // Only there every link is the system's.
    let follow = if is_of_devices { OFlags::empty() } else { OFlags::NOFOLLOW };
    // A FIFO that took the place meanwhile is not waited for.
    let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC | follow;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    let kind = file.metadata()?.file_type();
    let is_stream = kind.is_char_device() || is_of_devices && kind.is_fifo();
    // A redirected standard output is a file.
    if is_stream || is_of_devices && kind.is_file() {
        // All of it is written, however slow the reader is.
        fcntl_setfl(&file, OFlags::empty())?;
        return Ok(Some(file));
    }
    refused("it is a device that holds data; name a file")
}

/// A directory for files that are made beside each other, held open: it and all above it may be
/// renamed or replaced meanwhile. It belongs to the caller, and is not a link.
#[derive(Debug)]
pub(crate) struct DraftDirectory(OwnedFd);

impl DraftDirectory {
    /// That at `path`, which is made where it is absent, with those above it.
    ///
    /// # Errors
    /// It is a link, a file, or another user's directory; or what the system says.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let is_named = matches!(path.components().next_back(), Some(Component::Normal(_)));
        let (true, Some(name)) = (is_named, path.file_name()) else {
            return Self::checked(openat(CWD, path, DIRECTORY, Mode::empty())?);
        };
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o755).create(above)?;
        Self(openat(CWD, above, DIRECTORY, Mode::empty())?).below(name)
    }

    /// A directory in it, which is made where it is absent.
    ///
    /// # Errors
    /// As [`DraftDirectory::at`].
    pub(crate) fn below(&self, name: &OsStr) -> io::Result<Self> {
        let is_new = match mkdirat(&self.0, name, Mode::from_raw_mode(0o755)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        match openat(&self.0, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(open) => Self::checked(open),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let what = format!("{} is a link or a file", name.to_string_lossy());
                Err(io::Error::new(io::ErrorKind::NotADirectory, what))
            }
            Err(error) => {
                if is_new {
                    let _ = unlinkat(&self.0, name, AtFlags::REMOVEDIR);
                }
                Err(error.into())
            }
        }
    }

    /// Replaces a file of it, or makes it.
    ///
    /// # Errors
    /// What the system says; then what was there before still is.
    pub(crate) fn replace(&self, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
        let mut draft = Draft::within(self.0.try_clone()?, name)?;
        draft.file().write_all(bytes)?;
        draft.place_on_disk()
    }

    /// The same of a file below it; directories on the way are made where they are absent.
    ///
    /// # Errors
    /// As [`DraftDirectory::at`]; a place that leads elsewhere.
    pub(crate) fn replace_below(&self, place: &Path, bytes: &[u8]) -> io::Result<()> {
        let is_plain = place.components().all(|part| matches!(part, Component::Normal(_)));
        let (true, Some(way), Some(name)) = (is_plain, place.parent(), place.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut below: Option<Self> = None;
        for part in way {
            below = Some(below.as_ref().unwrap_or(self).below(part)?);
        }
        below.as_ref().unwrap_or(self).replace(name, bytes)
    }

    fn checked(open: OwnedFd) -> io::Result<Self> {
        let uid = fstat(&open)?.st_uid;
        if uid == geteuid().as_raw() {
            return Ok(Self(open));
        }
        let what = format!("it belongs to user {uid}, who could replace what is written there");
        Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
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
    draft.place_on_disk()
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
    fn a_device_is_written_through_and_stays_what_it_is() {
        replace(Path::new("/dev/null"), b"all of it").unwrap();
        replace(Path::new("/dev/full"), b"all of it").unwrap_err();
        for device in ["/dev/null", "/dev/full"] {
            assert!(fs::metadata(device).unwrap().file_type().is_char_device(), "{device}");
        }
        replace(Path::new("/dev/tardy-nonexistent"), b"all of it").unwrap_err();
        assert!(!Path::new("/dev/tardy-nonexistent").exists());
    }

    #[test]
    fn a_pipe_is_written_only_where_this_process_was_given_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        mknodat(CWD, &path, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        // Nobody reads it, and it is not waited for.
        let refused = replace(&path, b"secret").unwrap_err().to_string();
        assert!(refused.starts_with("it is a FIFO"), "{refused}");
        assert_eq!(names_in(directory.path()), ["pipe"]);
        let (mut reader, writer) = io::pipe().unwrap();
        let given = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
        // More than a pipe holds: it is written as fast as it is read.
        let all = vec![b'x'; 1 << 20];
        let read = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut reader, &mut bytes).map(|_| bytes)
        });
        replace(Path::new(&given), &all).unwrap();
        drop(writer);
        assert_eq!(read.join().unwrap().unwrap().len(), all.len());
    }

    #[test]
    fn files_beside_each_other_go_into_no_link_and_no_other_users_directory() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let pages = DraftDirectory::at(&at("new/x.pages")).unwrap();
        pages.replace(OsStr::new("1.html"), b"one").unwrap();
        assert_eq!(fs::read_to_string(at("new/x.pages/1.html")).unwrap(), "one");
        fs::create_dir(at("other")).unwrap();
        fs::write(at("other/1.html"), "kept").unwrap();
        symlink(at("other"), at("link")).unwrap();
        let refused = DraftDirectory::at(&at("link")).unwrap_err().to_string();
        assert_eq!(refused, "link is a link or a file");
        fs::rename(at("new/x.pages"), at("moved")).unwrap();
        symlink(at("other"), at("new/x.pages")).unwrap();
        pages.replace(OsStr::new("1.html"), b"two").unwrap();
        assert_eq!(fs::read_to_string(at("moved/1.html")).unwrap(), "two");
        assert_eq!(fs::read_to_string(at("other/1.html")).unwrap(), "kept");
        if geteuid().is_root() {
            std::os::unix::fs::chown(at("other"), Some(65_534), None).unwrap();
            let refused = DraftDirectory::at(&at("other")).unwrap_err().to_string();
            assert!(refused.contains("belongs to user 65534"), "{refused}");
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

//! Where the journal lies: a directory that is held open, and what is believed of what is in it.
//!
//! A journal decides what is written as root. So it is read only where nobody else can have written
//! it: its directory and itself belong to root or to whoever reads, nobody else may write to
//! either, and neither is a link.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, Permissions},
    io,
    os::{fd::OwnedFd, unix::fs::PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, mkdirat, openat,
        renameat, statat, unlinkat,
    },
    io::Errno,
    process::geteuid,
};

use crate::draft::Draft;

/// Where the journal lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalPath(PathBuf);

const USUAL: &str = "/run/tardy/journal";

impl JournalPath {
    /// Another path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// `/run/tardy/journal`, which a reboot clears, or what `TARDY_JOURNAL` says: tests use that.
    #[must_use]
    pub fn usual() -> Self {
        Self(std::env::var_os("TARDY_JOURNAL").map_or_else(|| USUAL.into(), PathBuf::from))
    }

    /// Whether it is that of the machine, and not one that a test has to itself.
    pub(super) fn is_of_machine(&self) -> bool {
        self.0 == Path::new(USUAL)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn directory(&self) -> &Path {
        self.0.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}

/// The file beside the journal that whoever decides whose it is has locked.
pub(super) const LOCK: &str = "lock";

/// Read by its owner alone.
const PRIVATE: u32 = 0o600;

const UNFOLLOWED: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// The journal's directory, held open.
#[derive(Debug)]
pub(super) struct Place {
    directory: OwnedFd,
    path: PathBuf,
    name: OsString,
}

impl Place {
    /// Opens the directory, and makes it where it is missing: nobody else may look into it.
    ///
    /// # Errors
    /// What the system says, or why it is not believed.
    pub(super) fn make(path: &JournalPath) -> io::Result<Self> {
        if let Some(above) = path.directory().parent() {
            fs::create_dir_all(above)?;
        }
        match mkdirat(CWD, path.directory(), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Self::open(path),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the directory.
    ///
    /// # Errors
    /// As [`Place::make`]; `NotFound` where it is missing.
    pub(super) fn open(path: &JournalPath) -> io::Result<Self> {
        let name = path.0.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | UNFOLLOWED;
        let directory = openat(CWD, path.directory(), flags, Mode::empty())?;
        believe("its directory", &fstat(&directory)?)?;
        Ok(Self { directory, path: path.directory().to_owned(), name })
    }

    /// The journal, for reading.
    ///
    /// # Errors
    /// The system's error, `NotFound` without a journal, or the reason why it is not trusted.
    pub(super) fn journal(&self) -> io::Result<File> {
        self.open_file(&self.name, OFlags::RDONLY)
    }

    /// A new journal.
    ///
    /// # Errors
    /// What the system says; there is one already.
    pub(super) fn new_journal(&self) -> io::Result<File> {
        self.open_file(&self.name, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL)
    }

    /// The file of this name beside the journal, made where it is missing.
    ///
    /// # Errors
    /// What the system says, or why it is not believed.
    pub(super) fn beside(&self, name: &str) -> io::Result<File> {
        self.open_file(OsStr::new(name), OFlags::RDWR | OFlags::CREATE)
    }

    fn open_file(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        let mode = Mode::from_raw_mode(PRIVATE);
        let file = openat(&self.directory, name, flags | UNFOLLOWED, mode)?;
        let about = fstat(&file)?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile || about.st_nlink > 1 {
            return Err(io::Error::other("it is not a plain file with one name"));
        }
        believe("it", &about)?;
        Ok(file.into())
    }

    /// Whether the journal is this file still.
    pub(super) fn holds(&self, file: &File) -> bool {
        let there = statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        let same = |a: Stat, b: Stat| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino);
        matches!((there, fstat(file)), (Ok(there), Ok(own)) if same(there, own))
    }

    /// Removes the journal.
    pub(super) fn remove(&self) {
        let _ = unlinkat(&self.directory, &self.name, AtFlags::empty());
    }

    /// Takes away the directory where nothing is left in it to restore, so that whoever may not
    /// look into it need not wonder. It stays where another process is at work in it.
    pub(super) fn retire(&self) {
        let lock = self.beside(LOCK).and_then(|file| take_lock(&file).map(|()| file));
        let has_journal = self.journal().is_ok();
        if let (Ok(_held), false) = (lock, has_journal) {
            let _ = unlinkat(&self.directory, LOCK, AtFlags::empty());
            let _ = fs::remove_dir(&self.path);
        }
    }

    /// Moves the journal out of the way of the next one; the new name.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn set_aside(&self) -> io::Result<OsString> {
        let aside = Path::new(&self.name).with_extension("damaged").into_os_string();
        renameat(&self.directory, &self.name, &self.directory, &aside)?;
        Ok(aside)
    }

    /// Puts another journal in the place of this one, in one step.
    ///
    /// # Errors
    /// What the system says; then the old one stays.
    pub(super) fn replace(&self, text: &str) -> io::Result<()> {
        let mut fresh = Draft::within(self.directory.try_clone()?, &self.name)?;
        fresh.file().set_permissions(Permissions::from_mode(PRIVATE))?;
        io::Write::write_all(fresh.file(), text.as_bytes())?;
        fresh.file().sync_all()?;
        fresh.place().map(drop)
    }
}

/// Whether this is what only root or this process's own user can have written.
fn believe(what: &str, about: &Stat) -> io::Result<()> {
    let (owner, own) = (about.st_uid, geteuid().as_raw());
    if owner != own && owner != 0 {
        return Err(io::Error::other(format!("{what} belongs to user {owner}")));
    }
    if about.st_mode & 0o022 != 0 {
        let mode = about.st_mode & 0o7777;
        return Err(io::Error::other(format!("others may write to {what} (mode {mode:o})")));
    }
    Ok(())
}

/// Takes the lock of a file, which one open file has at a time: released when this process ends,
/// however it ends, and when the file is closed, which a program started from here does.
///
/// # Errors
/// `WouldBlock` where another has it; what a file system without locks says.
pub(super) fn take_lock(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn directory() -> (tempfile::TempDir, JournalPath) {
        let directory = tempfile::tempdir().unwrap();
        let path = JournalPath::at(directory.path().join("run/journal"));
        (directory, path)
    }

    fn why(place: io::Result<File>) -> String {
        place.unwrap_err().to_string()
    }

    #[test]
    fn nobody_else_may_look_into_what_is_made() {
        let (directory, path) = directory();
        let place = Place::make(&path).unwrap();
        place.new_journal().unwrap();
        place.beside("lock").unwrap();
        place.replace("x").unwrap();
        let mode = |name: &str| {
            let about = fs::metadata(directory.path().join(name)).unwrap();
            about.permissions().mode() & 0o7777
        };
        // Whatever the umask allows: it only ever takes.
        assert_eq!(mode("run") & 0o077, 0);
        assert_eq!(mode("run/lock") & 0o177, 0);
        assert_eq!(mode("run/journal"), 0o600);
    }

    #[test]
    fn what_others_may_write_is_not_believed() {
        let (directory, path) = directory();
        let place = Place::make(&path).unwrap();
        place.new_journal().unwrap();
        let set = |name: &str, mode: u32| {
            let name = directory.path().join(name);
            fs::set_permissions(name, Permissions::from_mode(mode)).unwrap();
        };
        set("run/journal", 0o620);
        assert!(why(place.journal()).contains("others may write to it (mode 620)"));
        set("run/journal", 0o644);
        place.journal().unwrap();
        set("run", 0o777);
        let error = Place::open(&path).unwrap_err().to_string();
        assert!(error.contains("others may write to its directory (mode 777)"), "{error}");
    }

    #[test]
    fn what_belongs_to_another_user_is_not_believed() {
        if !geteuid().is_root() {
            return;
        }
        let (directory, path) = directory();
        let place = Place::make(&path).unwrap();
        place.new_journal().unwrap();
        chown(path.path(), Some(7), None).unwrap();
        assert!(why(place.journal()).contains("it belongs to user 7"));
        chown(directory.path().join("run"), Some(7), None).unwrap();
        let error = Place::open(&path).unwrap_err().to_string();
        assert!(error.contains("its directory belongs to user 7"), "{error}");
    }

    #[test]
    fn links_and_pipes_are_not_followed() {
        let (directory, path) = directory();
        let place = Place::make(&path).unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("other"), "kept").unwrap();
        fs::set_permissions(at("other"), Permissions::from_mode(0o600)).unwrap();
        symlink(at("other"), path.path()).unwrap();
        symlink(at("other"), at("run/lock")).unwrap();
        why(place.journal());
        why(place.new_journal());
        why(place.beside("lock"));
        fs::remove_file(path.path()).unwrap();
        fs::hard_link(at("other"), path.path()).unwrap();
        assert!(why(place.journal()).contains("not a plain file with one name"));
        fs::remove_file(path.path()).unwrap();
        rustix::fs::mknodat(CWD, path.path(), FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(why(place.journal()).contains("not a plain file"));
        fs::rename(at("run"), at("moved")).unwrap();
        symlink(at("moved"), at("run")).unwrap();
        Place::open(&path).unwrap_err();
        assert_eq!(fs::read_to_string(at("other")).unwrap(), "kept");
    }
}

//! A run directory that its maker holds open: files are made, replaced and removed relative to it.
//!
//! tardy runs as root in places where others may write. A file is always a new one, so that no link
//! is followed that somebody put there; and whatever takes the place of this directory, or of one
//! above it, gets nothing.

mod entries;
mod left;
mod own;

use std::{
    ffi::{OsStr, OsString},
    fs::{DirBuilder, File},
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::DirBuilderExt as _,
    },
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, fchmod, fdatasync, fsync, mkdirat, openat, renameat,
        unlinkat,
    },
    io::Errno,
};
use thiserror::Error;

use self::entries::{empty, entries};
use super::{author::Author, files};
use crate::draft::Draft;

/// Why a run directory could not be made.
#[derive(Debug, Error)]
pub enum MakeError {
    /// Something is there already.
    #[error(
        "{} exists and is not an empty directory; nothing was overwritten. Choose another place \
         or name",
        .0.display()
    )]
    Exists(PathBuf),
    /// It is another user's, and the maker is root.
    #[error(
        "{} belongs to user {uid}, who could replace what root writes there; nothing was written. \
         Choose another place, or make it root's own (chown root)",
        .path.display()
    )]
    OtherOwner {
        /// The directory.
        path: PathBuf,
        /// The number of its owner.
        uid: u32,
    },
    /// It cannot be written.
    #[error(
        "{} cannot be written: {source}{}",
        .path.display(), other_place(source)
    )]
    Unwritable {
        /// What could not be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What is to be done where the place is at fault.
fn other_place(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => "",
        _ => ". Choose another place with -o or --store",
    }
}

/// A file of a run that the disk may not hold.
#[derive(Debug)]
pub struct Unsynced {
    /// Its name.
    pub file: String,
    /// What the system said.
    pub error: io::Error,
}

/// Opens a directory so that it can be listed.
const LISTED: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A run directory, held open; clones share it.
#[derive(Debug, Clone)]
pub struct RunDirectory {
    open: Arc<OwnedFd>,
    /// The directory above and the name in it, where this one did not exist before.
    made: Option<(Arc<OwnedFd>, OsString)>,
}

impl RunDirectory {
    /// Makes it, and those above it; one that is there already must be empty, and root's own where
    /// root is the maker.
    ///
    /// # Errors
    /// Something else is there, or it cannot be made.
    pub fn make(path: &Path) -> Result<Self, MakeError> {
        let unwritable = |source| MakeError::Unwritable { path: path.into(), source };
        let is_named = matches!(path.components().next_back(), Some(Component::Normal(_)));
        let (true, Some(name)) = (is_named, path.file_name()) else {
            // `.` and the like are there already.
            let open = openat(CWD, path, LISTED, Mode::empty());
            return Self::checked(path, open.map_err(|error| unwritable(error.into()))?);
        };
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(own::SHARED_DIRECTORY.as_raw_mode()).create(above);
        made.map_err(unwritable)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let above = openat(CWD, above, flags, Mode::empty());
        let above = above.map_err(|error| unwritable(error.into()))?;
        let is_new = match mkdirat(&above, name, own::SHARED_DIRECTORY) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(unwritable(error.into())),
        };
        let open = match openat(&above, name, LISTED | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(open) => Self::checked(path, open),
            // A file or a link.
            Err(Errno::NOTDIR | Errno::LOOP) => Err(MakeError::Exists(path.into())),
            Err(error) => Err(unwritable(error.into())),
        };
        let mut directory = open.inspect_err(|error| {
            // What another user has put there instead stays his.
            if is_new && matches!(error, MakeError::Unwritable { .. }) {
                let _ = unlinkat(&above, name, AtFlags::REMOVEDIR);
            }
        })?;
        directory.made = is_new.then(|| (Arc::new(above), name.to_owned()));
        Ok(directory)
    }

    /// Opens one that is there, whatever it holds; a link to one is refused.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // Without the slash at its end, by which a link would be followed.
        let path: PathBuf = path.components().collect();
        let is_named = matches!(path.components().next_back(), Some(Component::Normal(_)));
        let flags = if is_named { LISTED | OFlags::NOFOLLOW } else { LISTED };
        Ok(Self { open: Arc::new(openat(CWD, &path, flags, Mode::empty())?), made: None })
    }

    /// Its owner, where root would write and it is not root's own.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn other_owner(&self) -> io::Result<Option<u32>> {
        other_owner(&self.open)
    }

    /// One that is as it must be. A new one is looked at too: whoever owns the directory above may
    /// have put his own in its place before it was opened.
    fn checked(path: &Path, open: OwnedFd) -> Result<Self, MakeError> {
        let unwritable = |source| MakeError::Unwritable { path: path.into(), source };
        if let Some(uid) = other_owner(&open).map_err(unwritable)? {
            return Err(MakeError::OtherOwner { path: path.into(), uid });
        }
        if !entries(&open).map_err(unwritable)?.is_empty() {
            return Err(MakeError::Exists(path.into()));
        }
        Ok(Self { open: Arc::new(open), made: None })
    }

    /// A path to it, wherever it was moved, that this process alone can use: for those who read by
    /// paths.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.open.as_raw_fd()).into()
    }

    /// A new file, to be appended to.
    ///
    /// # Errors
    /// Something has this name already, if only a link; or what the disk says.
    pub fn create(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let is_private = self.is_private()?;
        let mode = if is_private { own::PRIVATE_FILE } else { own::SHARED_FILE };
        let file: File = openat(&*self.open, name.as_ref(), flags, mode)?.into();
        if is_private {
            own::keep_private(&file)?;
        }
        Ok(file)
    }

    /// A new directory in it.
    ///
    /// # Errors
    /// As [`RunDirectory::create`]; or another user has put his own in its place.
    pub fn subdirectory(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = name.as_ref();
        self.made_below(name)?;
        let entered = self.entered(name).and_then(|entered| {
            if self.is_private()? {
                fchmod(&*entered.open, own::PRIVATE_DIRECTORY)?;
            }
            Ok(entered)
        });
        let entered = entered.inspect_err(|error| {
            // What another user has put there instead stays his.
            if error.kind() != io::ErrorKind::PermissionDenied {
                let _ = self.remove_directory(name);
            }
        })?;
        Ok(Self { made: Some((Arc::clone(&self.open), name.to_owned())), ..entered })
    }

    /// A directory that is there, for what is in it.
    ///
    /// # Errors
    /// It is not one.
    pub(super) fn around(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { open: Arc::new(openat(CWD, path, flags, Mode::empty())?), made: None })
    }

    /// A directory in it that is there.
    ///
    /// # Errors
    /// It does not exist or is a link, or belongs to another user and root enters it.
    pub(super) fn entered(&self, name: &OsStr) -> io::Result<Self> {
        let open = openat(&*self.open, name, LISTED | OFlags::NOFOLLOW, Mode::empty())?;
        let Some(uid) = other_owner(&open)? else {
            return Ok(Self { open: Arc::new(open), made: None });
        };
        let refused = format!("{} belongs to user {uid}", name.to_string_lossy());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, refused))
    }

    /// A new directory somewhere below it; those on the way may be there already.
    ///
    /// # Errors
    /// As [`RunDirectory::subdirectory`]; on the way is a link, or another user's directory where
    /// root is the maker; a place that leads elsewhere.
    pub fn below(&self, place: &Path) -> io::Result<Self> {
        let is_plain = place.components().all(|part| matches!(part, Component::Normal(_)));
        let (true, Some(way), Some(name)) = (is_plain, place.parent(), place.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut above = self.clone();
        for part in way {
            above = match above.subdirectory(part) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    above.entered(part)?
                }
                made => made?,
            };
        }
        above.subdirectory(name)
    }

    /// Opens a file of it for reading.
    ///
    /// # Errors
    /// What the disk says; anything but a regular file is refused.
    pub(super) fn read(&self, name: &str) -> io::Result<File> {
        // A FIFO in its place would never open without NONBLOCK.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        files::regular(openat(&*self.open, name, flags | OFlags::CLOEXEC, Mode::empty())?.into())
    }

    /// A draft of the file `name`.
    ///
    /// # Errors
    /// What the disk says.
    pub(super) fn draft(&self, name: &str) -> io::Result<Draft> {
        let mut draft = Draft::within(self.open.try_clone()?, OsStr::new(name))?;
        if self.is_private()? {
            own::keep_private(draft.file())?;
        }
        Ok(draft)
    }

    /// Replaces a file by one that holds `bytes`, or makes it.
    ///
    /// # Errors
    /// What the disk says; then what was there before still is.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut draft = self.draft(name)?;
        io::Write::write_all(draft.file(), bytes)?;
        draft.place().map(drop)
    }

    /// The names in it, and what each is.
    ///
    /// # Errors
    /// What the disk says.
    pub(super) fn listed(&self) -> io::Result<Vec<(OsString, FileType)>> {
        entries(&self.open)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// What the disk says.
    pub(super) fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(unlinkat(&*self.open, name.as_ref(), AtFlags::empty())?)
    }

    /// Removes an empty directory in it.
    ///
    /// # Errors
    /// It is not empty; or what the disk says.
    pub(super) fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&*self.open, name, AtFlags::REMOVEDIR)?)
    }

    /// Gives a file another name; what has that is replaced.
    ///
    /// # Errors
    /// What the disk says.
    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&*self.open, from, &*self.open, to)?)
    }

    /// Waits until the disk holds all files of it but `except`, with their names.
    ///
    /// # Errors
    /// The first file that the disk does not take.
    pub(super) fn sync(&self, except: &str) -> Result<(), Unsynced> {
        let entries = entries(&self.open).map_err(|error| unsynced(OsStr::new("."), error))?;
        for (name, kind) in entries {
            let open = |flags: OFlags| {
                let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                openat(&*self.open, &name, flags, Mode::empty()).map_err(io::Error::from)
            };
            if kind == FileType::Directory {
                let open = open(LISTED).map_err(|error| unsynced(&name, error))?;
                Self { open: Arc::new(open), made: None }.sync("")?;
            } else if kind == FileType::RegularFile && name != except {
                let synced = open(OFlags::RDONLY).and_then(|file| asked(fdatasync(file)));
                synced.map_err(|error| unsynced(&name, error))?;
            }
        }
        self.sync_names().map_err(|error| unsynced(OsStr::new("."), error))
    }

    /// Waits until the disk holds which files there are.
    ///
    /// # Errors
    /// What the disk says.
    pub(super) fn sync_names(&self) -> io::Result<()> {
        asked(fsync(&*self.open))?;
        // Its own name is in the directory above.
        let Some((above, _)) = &self.made else { return Ok(()) };
        let above = openat(&**above, ".", LISTED, Mode::empty())?;
        asked(fsync(above))
    }

    /// Takes away what is in it, where nothing was measured, and itself where it did not exist
    /// before.
    pub fn discard(&self) {
        // What cannot be removed is in nobody's way: the next maker says that something is there.
        empty(&self.open);
        if let Some((above, name)) = &self.made {
            let _ = unlinkat(&**above, name, AtFlags::REMOVEDIR);
        }
    }
}

fn unsynced(name: &OsStr, error: io::Error) -> Unsynced {
    Unsynced { file: name.to_string_lossy().into_owned(), error }
}

/// Some file systems cannot be asked to sync, which is not a fault of the disk.
pub(super) fn asked(synced: rustix::io::Result<()>) -> io::Result<()> {
    match synced {
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The owner of a directory, where root is the maker and it is not root's: who owns it can replace
/// all that is in it.
fn other_owner(directory: &OwnedFd) -> io::Result<Option<u32>> {
    Ok(Author::of(directory)?.other_owner())
}

#[cfg(test)]
mod tests;

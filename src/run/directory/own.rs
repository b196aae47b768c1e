//! A directory of which every file is its owner's alone: of a plan, a comparison, and their runs.
//!
//! What lies in it is executed: commands of a plan, words of its cells. So it is believed only
//! where the caller owns it and nobody else can write it, asked of open descriptors on the whole
//! way; and made so that this holds, whatever the umask.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{Mode, OFlags, fchmod, fstat, openat};

use super::{LISTED, MakeError, RunDirectory, entries};
use crate::{
    plain::shell_word,
    run::{author::Author, files},
};

/// The owner's alone: of directories, and of files.
pub(super) const PRIVATE_DIRECTORY: Mode = Mode::RWXU;
pub(super) const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Never to be written by others, and less what the umask takes.
pub(super) const SHARED_DIRECTORY: Mode = Mode::from_raw_mode(0o755);
pub(super) const SHARED_FILE: Mode = Mode::from_raw_mode(0o644);

impl RunDirectory {
    /// As [`RunDirectory::make`], for its owner alone.
    ///
    /// # Errors
    /// As there; or its mode cannot be changed.
    pub fn make_private(path: &Path) -> Result<Self, MakeError> {
        let made = Self::make(path)?;
        if let Err(error) = fchmod(&*made.open, PRIVATE_DIRECTORY) {
            made.discard();
            return Err(MakeError::Unwritable { path: path.into(), source: error.into() });
        }
        Ok(made)
    }

    /// Opens one that is there to continue with it: the caller's own, which nobody else can write.
    ///
    /// # Errors
    /// It is a link or another user's, or others can write it: with the `chmod` that helps.
    pub(crate) fn open_private(path: &Path) -> io::Result<Self> {
        let open = Self::open(path)?;
        if let Some(distrust) = Author::of(&*open.open)?.distrust() {
            return Err(distrust.refusal(&shell_word(path)));
        }
        fchmod(&*open.open, PRIVATE_DIRECTORY)?;
        Ok(open)
    }

    /// One that the process which started this one has made and holds open, for a run in it.
    ///
    /// # Errors
    /// It is not an empty directory that belongs to the caller.
    pub fn handed_over(open: OwnedFd) -> io::Result<Self> {
        // What can be listed, whatever it was opened for.
        let open = openat(&open, ".", LISTED, Mode::empty())?;
        if let Some(distrust) = Author::of(&open)?.distrust() {
            return Err(distrust.refusal("the directory of the run"));
        }
        if !entries(&open)?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        Ok(Self { open: Arc::new(open), made: None })
    }

    /// Another descriptor of it, to be handed over.
    ///
    /// # Errors
    /// What the system says.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.open.try_clone()
    }

    /// A directory below it, of which each part of the way is the caller's own.
    ///
    /// # Errors
    /// A link, a place that leads out, or a directory that somebody else owns or can write.
    pub fn own_below(&self, place: &Path) -> io::Result<Self> {
        let (mut open, mut way) = (Arc::clone(&self.open), PathBuf::new());
        for part in place.components() {
            let Component::Normal(name) = part else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            way.push(name);
            let below = openat(&*open, name, LISTED | OFlags::NOFOLLOW, Mode::empty())?;
            if let Some(distrust) = Author::of(&below)?.distrust() {
                return Err(distrust.refusal(&self.typed(&way)));
            }
            open = Arc::new(below);
        }
        Ok(Self { open, made: None })
    }

    /// Opens a file of it for reading: the caller's own, which nobody else can write.
    ///
    /// # Errors
    /// What the disk says; another user's file, one that others can write, and anything but a
    /// regular file are refused.
    pub fn own_file(&self, name: &str) -> io::Result<File> {
        let file = self.read(name)?;
        match Author::of(&file)?.distrust() {
            Some(distrust) => Err(distrust.refusal(&self.typed(Path::new(name)))),
            None => Ok(file),
        }
    }

    /// A file to be locked, made where it is absent.
    ///
    /// # Errors
    /// As [`RunDirectory::own_file`].
    pub fn lock_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = flags | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = files::regular(openat(&*self.open, name, flags, PRIVATE_FILE)?.into())?;
        match Author::of(&file)?.distrust() {
            Some(distrust) => Err(distrust.refusal(&self.typed(Path::new(name)))),
            None => Ok(file),
        }
    }

    /// A place in it as a word of a command: with where it is, as far as the kernel says.
    fn typed(&self, place: &Path) -> String {
        let directory = fs::read_link(self.path()).unwrap_or_default();
        shell_word(&directory.join(place))
    }

    /// Whether something has this name in it, if only a link.
    #[must_use]
    pub fn holds(&self, name: &str) -> bool {
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::statat(&*self.open, name, flags).is_ok()
    }

    /// Removes it where it was made here and nothing is in it.
    pub fn remove_if_empty(&self) {
        if let Some((above, name)) = &self.made {
            let _ = rustix::fs::unlinkat(&**above, name, rustix::fs::AtFlags::REMOVEDIR);
        }
    }

    /// Whether nobody but its owner may look into it: what is made in it is the owner's alone, too.
    pub(super) fn is_private(&self) -> io::Result<bool> {
        let mode = Mode::from_raw_mode(fstat(&*self.open)?.st_mode);
        Ok(!mode.intersects(Mode::RWXG | Mode::RWXO))
    }

    /// A new directory in it, with its mode.
    pub(super) fn made_below(&self, name: &OsStr) -> io::Result<()> {
        let is_private = self.is_private()?;
        let mode = if is_private { PRIVATE_DIRECTORY } else { SHARED_DIRECTORY };
        Ok(rustix::fs::mkdirat(&*self.open, name, mode)?)
    }
}

/// Gives a file that is the owner's alone its mode, whatever the umask took.
pub(super) fn keep_private(file: &File) -> io::Result<()> {
    Ok(fchmod(file, PRIVATE_FILE)?)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, chown, symlink},
        process::Command,
    };

    use rustix::{
        fs::{FileType, mknodat},
        process::geteuid,
    };

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn all_in_a_private_directory_is_its_owners_alone() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("plan");
        let plan = RunDirectory::make_private(&path).unwrap();
        plan.create("cells.log").unwrap();
        plan.replace("plan.json", b"{}").unwrap();
        plan.lock_file("plan.lock").unwrap();
        let cell = plan.subdirectory("cells").unwrap().subdirectory("0001").unwrap();
        cell.replace("run.json", b"{}").unwrap();
        for name in ["cells.log", "plan.json", "plan.lock", "cells/0001/run.json"] {
            assert_eq!(mode(&path.join(name)), 0o600, "{name}");
        }
        for name in ["", "cells", "cells/0001"] {
            assert_eq!(mode(&path.join(name)), 0o700, "{name}");
        }
        // One that was there, empty, becomes so.
        let there = place.path().join("there");
        fs::create_dir(&there).unwrap();
        set_mode(&there, 0o777);
        RunDirectory::make_private(&there).unwrap();
        assert_eq!(mode(&there), 0o700);
    }

    #[test]
    fn what_others_can_write_is_not_gone_on_with_and_the_remedy_is_named() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a plan");
        fs::create_dir_all(path.join("cells/0001")).unwrap();
        fs::write(path.join("plan.json"), "{}").unwrap();
        for (name, own) in [("", 0o700), ("cells", 0o755), ("cells/0001", 0o755)] {
            set_mode(&path.join(name), own);
        }
        set_mode(&path.join("plan.json"), 0o644);
        let open = || -> io::Result<()> {
            let plan = RunDirectory::open_private(&path)?;
            plan.own_file("plan.json")?;
            plan.own_below(Path::new("cells/0001"))?;
            Ok(())
        };
        open().unwrap();
        for (name, bad, good) in [
            ("plan.json", 0o666, 0o600),
            ("plan.json", 0o664, 0o600),
            ("cells", 0o777, 0o755),
            ("cells/0001", 0o1777, 0o755),
            ("", 0o770, 0o700),
        ] {
            set_mode(&path.join(name), bad);
            let refused = open().unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{name}: {refused}");
            // The command works as it is printed.
            let refused = refused.to_string();
            let (_, command) = refused.split_once("if nobody has changed it: ").unwrap();
            assert!(command.starts_with("chmod go-w "), "{refused}");
            let done = Command::new("sh").args(["-c", command]).status().unwrap();
            assert!(done.success() && open().is_ok(), "{refused}");
            set_mode(&path.join(name), good);
        }
        open().unwrap();
        if !geteuid().is_root() {
            return eprintln!("skipped: the rest needs root");
        }
        for name in ["plan.json", "cells", "cells/0001", ""] {
            chown(path.join(name), Some(65_534), None).unwrap();
            let refused = open().unwrap_err().to_string();
            assert!(refused.contains("belongs to user 65534"), "{name}: {refused}");
            chown(path.join(name), Some(0), None).unwrap();
        }
    }

    /// Whoever owns the directory above can put another in its place at any time.
    #[test]
    fn what_takes_the_place_of_a_directory_that_was_checked_is_neither_read_nor_written() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let plan = RunDirectory::make_private(&at("plan")).unwrap();
        plan.replace("plan.json", b"own").unwrap();
        plan.subdirectory("cells").unwrap().subdirectory("0001").unwrap();
        let forged = RunDirectory::make_private(&at("forged")).unwrap();
        forged.replace("plan.json", b"forged").unwrap();
        let cells = forged.subdirectory("cells").unwrap();
        cells.subdirectory("0001").unwrap().replace("run.json", b"forged").unwrap();
        let open = RunDirectory::open_private(&at("plan")).unwrap();
        fs::rename(at("plan"), at("moved")).unwrap();
        fs::rename(at("forged"), at("plan")).unwrap();
        let read = files::read_whole(&open.own_file("plan.json").unwrap(), 1 << 20).unwrap();
        assert_eq!(read, b"own");
        let cell = open.own_below(Path::new("cells/0001")).unwrap();
        assert!(cell.own_file("run.json").is_err(), "it has none");
        open.lock_file("plan.lock").unwrap();
        assert!(at("moved/plan.lock").exists() && !at("plan/plan.lock").exists());
    }

    #[test]
    fn links_and_pipes_in_it_are_refused_at_once() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let plan = RunDirectory::make_private(&at("plan")).unwrap();
        fs::create_dir_all(at("other/0001")).unwrap();
        fs::write(at("other/plan.json"), "{}").unwrap();
        symlink(at("other/plan.json"), at("plan/plan.json")).unwrap();
        symlink(at("other/new"), at("plan/plan.lock")).unwrap();
        symlink(at("other"), at("plan/cells")).unwrap();
        mknodat(&*plan.open, "pipe", FileType::Fifo, PRIVATE_FILE, 0).unwrap();
        for name in ["plan.json", "pipe"] {
            assert!(plan.own_file(name).is_err(), "{name}");
        }
        for name in ["plan.lock", "pipe"] {
            assert!(plan.lock_file(name).is_err(), "{name}");
        }
        assert!(!at("other/new").exists(), "nothing was made through the link");
        for name in ["cells/0001", "cells", "../other", "/nonexistent", "cells/../other"] {
            assert!(plan.own_below(Path::new(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn a_directory_that_is_handed_over_is_empty_and_the_callers_own() {
        let place = tempfile::tempdir().unwrap();
        let plan = RunDirectory::make_private(&place.path().join("plan")).unwrap();
        let cell = plan.subdirectory("0001").unwrap();
        RunDirectory::handed_over(cell.descriptor().unwrap()).unwrap();
        cell.create("x").unwrap();
        assert!(RunDirectory::handed_over(cell.descriptor().unwrap()).is_err());
        cell.remove_if_empty();
        assert!(plan.holds("0001"), "something is in it");
        cell.remove("x").unwrap();
        set_mode(&place.path().join("plan/0001"), 0o777);
        assert!(RunDirectory::handed_over(cell.descriptor().unwrap()).is_err());
        cell.remove_if_empty();
        assert!(!plan.holds("0001"));
        let file = fs::File::open("/dev/null").unwrap();
        assert!(RunDirectory::handed_over(file.into()).is_err());
    }
}

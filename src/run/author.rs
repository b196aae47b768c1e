//! Who can have written what a descriptor is open on: the owner and the mode of the open file, so
//! that nothing which takes its name meanwhile is asked instead.
//!
//! A record may come from anywhere. Readers show it, whoever wrote it. A command, a path or an
//! address is taken from it only where the caller alone can have written it.

use std::{fmt, io, os::fd::AsFd};

use rustix::{fs::fstat, process::geteuid};

/// Bits of a mode that let others than the owner write. Those of access control lists show as the
/// group's.
const OTHERS_WRITE: u32 = 0o022;

/// Who can have written an open file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Author {
    /// The number of its owner.
    uid: u32,
    /// Its permissions.
    mode: u32,
    /// Whether what was written came from elsewhere, and the owner has only saved it.
    is_received: bool,
}

/// Why what was written is not taken for the caller's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distrust {
    /// It belongs to this user.
    OtherOwner(u32),
    /// Others may write it: its mode.
    Writable(u32),
    /// It came in a bundle from elsewhere.
    Received,
}

impl Author {
    /// That of what `open` is open on.
    ///
    /// # Errors
    /// What the system says.
    pub fn of(open: impl AsFd) -> io::Result<Self> {
        let about = fstat(open)?;
        Ok(Self { uid: about.st_uid, mode: about.st_mode & 0o7777, is_received: false })
    }

    /// The same of a record that says itself that it came from elsewhere.
    #[must_use]
    pub(super) const fn of_received(self, is_received: bool) -> Self {
        Self { is_received, ..self }
    }

    /// Why it is not the caller's own; nothing where the caller alone can have written it.
    #[must_use]
    pub fn distrust(self) -> Option<Distrust> {
        self.distrust_of(geteuid().as_raw())
    }

    /// The number of the owner, where root asks and it is another user's.
    #[must_use]
    pub fn other_owner(self) -> Option<u32> {
        (geteuid().is_root() && self.uid != 0).then_some(self.uid)
    }

    const fn distrust_of(self, caller: u32) -> Option<Distrust> {
        match self {
            Self { uid, .. } if uid != caller => Some(Distrust::OtherOwner(uid)),
            Self { mode, .. } if mode & OTHERS_WRITE != 0 => Some(Distrust::Writable(mode)),
            Self { is_received: true, .. } => Some(Distrust::Received),
            _ => None,
        }
    }
}

impl Distrust {
    /// What to do where `what` is trusted all the same.
    #[must_use]
    pub fn remedy(self, what: &str) -> String {
        match self {
            Self::OtherOwner(_) => format!("copy {what} with `cp -r` if you trust it"),
            Self::Writable(_) => format!("if nobody has changed it: chmod go-w {what}"),
            Self::Received => format!("if you trust its maker: set `received` in {what} to false"),
        }
    }

    /// The error that refuses `what`.
    pub(super) fn refusal(self, what: &str) -> io::Error {
        let said = format!("{what} {self}; {}", self.remedy(what));
        io::Error::new(io::ErrorKind::PermissionDenied, said)
    }
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherOwner(uid) => write!(f, "belongs to user {uid}"),
            Self::Writable(mode) => write!(f, "can be written by others (mode {mode:04o})"),
            Self::Received => f.write_str("came in a bundle from elsewhere"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn only_what_the_caller_alone_can_write_is_the_callers_own() {
        let own = |uid, mode| Author { uid, mode, is_received: false };
        let of = |uid, mode| own(uid, mode).distrust_of(1_000);
        let received = own(1_000, 0o600).of_received(true);
        assert_eq!(received.distrust_of(1_000), Some(Distrust::Received));
        for mode in [0o600, 0o644, 0o755, 0o700, 0o444] {
            assert_eq!(of(1_000, mode), None, "{mode:o}");
            // Root's word is root's: the caller is asked to run it.
            assert_eq!(of(0, mode), Some(Distrust::OtherOwner(0)), "{mode:o}");
        }
        for mode in [0o664, 0o646, 0o666, 0o777, 0o1777, 0o620, 0o602] {
            assert_eq!(of(1_000, mode), Some(Distrust::Writable(mode)), "{mode:o}");
        }
    }

    #[test]
    fn the_open_file_is_asked_and_not_what_has_its_name() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("run.json");
        fs::write(&path, "{}").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let open = fs::File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "{}").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let found = Author::of(&open).unwrap().distrust().unwrap();
        assert_eq!(found, Distrust::Writable(0o666));
        let refusal = found.refusal("plan.json").to_string();
        assert!(refusal.contains("mode 0666") && refusal.contains("chmod go-w plan.json"));
    }
}

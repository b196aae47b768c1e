//! The journal: every change of the machine is written down with its old value, and synced, before
//! it is made. So it can be undone however tardy ends.
//!
//! One file, `/run/tardy/journal`, JSON lines: first who changes (boot, process, its start), then a
//! change a line. Only one tardy at a time changes the machine; the file is its claim, and it holds
//! a lock on it as long as it lives. What a killed one left is restored by `tardy restore`, and by
//! the next tardy that changes or reads settings.

mod change;
mod claim;
mod content;
mod files;
mod machine;
mod owner;
mod place;

use std::{
    fs::File,
    io::{self, Seek as _, Write},
    thread::sleep,
    time::{Duration, Instant},
};

use serde::Serialize;
use thiserror::Error;

pub use change::{Change, HOUSEKEEPING, SHIELD};
use claim::{JournalLock, PATIENCE};
use content::read;
pub use content::{JournalContent, parse};
pub use files::KnownFile;
use machine::MachineLock;
pub use owner::Owner;
pub use place::JournalPath;
use place::{Place, take_lock};

use super::threads::plain;
use crate::sys::{abort_handler, root::Root};

/// Why nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JournalError {
    /// Another tardy holds the machine changed.
    #[error(
        "another tardy has changed settings of this machine: {}. Wait for its end, or end it{}; \
         it restores what it changed", .0.words(), .0.how_to_end()
    )]
    Busy(Owner),
    /// Another tardy, with a journal that is not seen from here.
    #[error(
        "another tardy, which has its own /run (a container, or a private mount namespace), has \
         changed settings of this machine. Wait for its end, or end it; it restores what it changed"
    )]
    Elsewhere,
    /// The journal cannot be written, and without it nothing is changed.
    #[error(
        "old values cannot be written down in {path}: {why}; without that nothing is changed. Run \
         as root, with room on a writable /run"
    )]
    Write {
        /// The file.
        path: String,
        /// What the system said.
        why: String,
    },
    /// There may be a journal, and it cannot be read or is not believed.
    #[error(
        "whether a tardy has changed settings of this machine cannot be read from {path}: {why}. \
         Run as root; if that file is not of root's tardy, remove it"
    )]
    Unread {
        /// The file.
        path: String,
        /// What the system said, or why it is not believed.
        why: String,
    },
    /// Without it nobody can say whether a journal is of this boot.
    #[error(
        "/proc/sys/kernel/random/boot_id cannot be read, which tells whether settings in a journal \
         are of this boot; nothing is changed or restored. Mount /proc"
    )]
    NoBootId,
    /// What a killed tardy left cannot be restored.
    #[error(
        "a tardy that was killed left settings changed, and they cannot be restored: {what}. \
         Put them back by hand (docs/reference/setup.md), then remove {path}"
    )]
    Left {
        /// What stays changed.
        what: String,
        /// The journal.
        path: String,
    },
}

impl JournalError {
    /// Why it is so, without what to do.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Write { path, why } | Self::Unread { path, why } => format!("{path}: {why}"),
            other => other.to_string(),
        }
    }
}

/// What undoing did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undone {
    /// What was restored.
    pub put_back: Vec<String>,
    /// What could not be, and why.
    pub failed: Vec<String>,
}

/// What became of a journal that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Recovered {
    /// It did not exist.
    #[default]
    Nothing,
    /// Its owner lives.
    Alive(Owner),
    /// It was of another boot: the machine has forgotten those changes.
    OtherBoot,
    /// Its owner is gone; this came of undoing.
    Undone(Undone),
    /// It could not be looked at, and why.
    Unknown(String),
}

/// The claim to change this machine, with everything changed so far.
#[derive(Debug)]
pub struct Journal {
    root: Root,
    path: JournalPath,
    place: Place,
    owner: Owner,
    /// Locked as long as it is open: its owner lives.
    file: File,
    /// Held as long, against those whose `/run` is another.
    _machine: MachineLock,
    changes: Vec<Change>,
    /// Not undone yet.
    open: bool,
}

impl Journal {
    /// Claims the machine: first restores what a killed tardy left.
    ///
    /// # Errors
    /// Another tardy holds it, the journal cannot be written, or what was left cannot be restored.
    pub fn claim(path: &JournalPath, root: &Root, command: &str) -> Result<Self, JournalError> {
        let write = |error: io::Error| write_error(path, &error);
        let (place, _held) = JournalLock::within(path).map_err(write)?;
        match put_back(path, &place, root)? {
            Recovered::Alive(owner) => return Err(JournalError::Busy(owner)),
            Recovered::Undone(Undone { failed, .. }) if !failed.is_empty() => {
                let path = path.path().display().to_string();
                return Err(JournalError::Left { what: failed.join("; "), path });
            }
            _ => {}
        }
        let is_machine = root.is_this_machine() && path.is_of_machine();
        let lock = if is_machine { MachineLock::take() } else { Ok(MachineLock::none()) };
        let machine = lock.map_err(|_| JournalError::Elsewhere)?;
        let owner = Owner::this_process(root, command).ok_or(JournalError::NoBootId)?;
        let file = place.new_journal().map_err(write)?;
        let (root, path, changes) = (root.clone(), path.clone(), Vec::new());
        let mut journal =
            Self { root, path, place, owner, file, _machine: machine, changes, open: true };
        // Nobody else can have opened it: the lock beside it is held.
        take_lock(&journal.file).map_err(|error| write_error(&journal.path, &error))?;
        let header = line(&journal.owner);
        journal.append(&header)?;
        abort_handler::hold_changes(true);
        Ok(journal)
    }

    /// Writes down changes that are about to be made; when this returns they are on the disk.
    ///
    /// # Errors
    /// They are not, and must not be made.
    pub fn note(&mut self, changes: Vec<Change>) -> Result<(), JournalError> {
        if changes.is_empty() {
            return Ok(());
        }
        let text: String = changes.iter().map(line).collect();
        self.append(&text)?;
        self.changes.extend(changes);
        Ok(())
    }

    fn append(&mut self, text: &str) -> Result<(), JournalError> {
        let before = self.file.metadata().map_or(0, |metadata| metadata.len());
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_all());
        written.map_err(|error| {
            // Half a line would be skipped anyway.
            let _ = self.file.set_len(before);
            write_error(&self.path, &error)
        })
    }

    /// Undoes everything, last change first. What cannot be restored stays in the journal.
    pub fn undo(&mut self) -> Undone {
        self.open = false;
        let changes = std::mem::take(&mut self.changes);
        let (undone, kept) = undo_all(&self.root, &changes);
        // One that was removed by hand may be another tardy's by now.
        if self.place.holds(&self.file) {
            keep(&self.place, &self.owner, &kept);
            self.place.retire();
        }
        abort_handler::hold_changes(false);
        undone
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.open {
            self.undo();
        }
    }
}

/// Restores what a killed tardy left, if one did.
///
/// # Errors
/// The journal cannot be read or is not believed, or whether it is of this boot is not known; then
/// it stays.
pub fn recover(path: &JournalPath, root: &Root) -> Result<Recovered, JournalError> {
    loop {
        let place = match Place::open(path) {
            Ok(place) => place,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Recovered::Nothing),
            Err(error) => return Err(unread(path, &error)),
        };
        match place.journal() {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // The lock of one that was killed before it had a journal.
                place.retire();
                return Ok(Recovered::Nothing);
            }
            Err(error) => return Err(unread(path, &error)),
        }
        let lock = JournalLock::over(&place).map_err(|error| unread(path, &error))?;
        // Where somebody has put everything back meanwhile, another may have begun to change.
        let Some(held) = lock else { continue };
        let recovered = put_back(path, &place, root);
        drop(held);
        place.retire();
        return recovered;
    }
}

/// To be called by who holds the lock beside the journal.
fn put_back(path: &JournalPath, place: &Place, root: &Root) -> Result<Recovered, JournalError> {
    let mut file = match place.journal() {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Recovered::Nothing),
        Err(error) => return Err(unread(path, &error)),
    };
    // Its owner holds it, in whatever PID namespace; and no lock outlives a boot.
    let is_held = is_held(path, &mut file).map_err(|error| unread(path, &error))?;
    let (owner, changes, damaged) = read(path, &mut file).map_err(|error| unread(path, &error))?;
    match owner {
        Some(owner) if is_held => Ok(Recovered::Alive(owner)),
        None if is_held => {
            let why = format!("its owner is alive, and {}", damaged.join("; "));
            Err(JournalError::Unread { path: path.path().display().to_string(), why })
        }
        None if damaged.is_empty() => {
            // Not even the first line was synced: nothing was changed.
            place.remove();
            Ok(Recovered::Nothing)
        }
        None => Ok(Recovered::Undone(aside(path, place, Undone::default(), damaged))),
        Some(owner) => undo_of(path, place, root, &owner, &changes, damaged),
    }
}

/// Whether its owner holds the journal. One that was killed is waited for: as long as the kernel
/// takes it away, its files are open.
fn is_held(path: &JournalPath, file: &mut File) -> io::Result<bool> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match take_lock(file) {
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        let (owner, ..) = read(path, file)?;
        file.rewind()?;
        if !owner.is_some_and(|owner| owner.is_ending()) || Instant::now() > deadline {
            return Ok(true);
        }
        sleep(Duration::from_millis(10));
    }
}

/// Undoes the changes of a process that is gone.
fn undo_of(
    path: &JournalPath,
    place: &Place,
    root: &Root,
    owner: &Owner,
    changes: &[Change],
    damaged: Vec<String>,
) -> Result<Recovered, JournalError> {
    if !owner.is_of_this_boot(root).ok_or(JournalError::NoBootId)? {
        place.remove();
        return Ok(Recovered::OtherBoot);
    }
    // One of an older version holds no lock.
    if owner.is_seen() && !owner.is_this_process() {
        return Ok(Recovered::Alive(owner.clone()));
    }
    let (undone, kept) = undo_all(root, changes);
    if damaged.is_empty() {
        keep(place, owner, &kept);
        return Ok(Recovered::Undone(undone));
    }
    Ok(Recovered::Undone(aside(path, place, undone, damaged)))
}

/// Moves a damaged journal out of the way of the next one, for inspection.
fn aside(path: &JournalPath, place: &Place, mut undone: Undone, damaged: Vec<String>) -> Undone {
    let name = place.set_aside().ok();
    let there = name.map_or_else(|| path.path().into(), |name| path.path().with_file_name(name));
    let look = |what: String| format!("{what}; look into {}", there.display());
    undone.failed.extend(damaged.into_iter().map(look));
    undone
}

/// Undoes changes, the last one first, and continues after one that fails. Also returns what is to
/// be kept, in the order in which it was made.
fn undo_all(root: &Root, changes: &[Change]) -> (Undone, Vec<Change>) {
    let (mut undone, mut kept) = (Undone::default(), Vec::new());
    for change in changes.iter().rev() {
        match change.undo(root) {
            Ok(words) => undone.put_back.extend(words),
            Err(why) => {
                undone.failed.push(why);
                kept.push(change.clone());
            }
        }
    }
    kept.reverse();
    (undone, kept)
}

/// Leaves only `changes` in the journal: removes it if they are empty.
fn keep(place: &Place, owner: &Owner, changes: &[Change]) {
    if changes.is_empty() {
        place.remove();
        return;
    }
    let text: String = std::iter::once(line(owner)).chain(changes.iter().map(line)).collect();
    // Where this fails the old journal stays, and undoing twice does no harm.
    let _ = place.replace(&text);
}

fn line(value: &impl Serialize) -> String {
    // Strings and numbers only: this cannot fail.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

fn write_error(path: &JournalPath, error: &io::Error) -> JournalError {
    JournalError::Write { path: path.path().display().to_string(), why: plain(error) }
}

fn unread(path: &JournalPath, error: &io::Error) -> JournalError {
    JournalError::Unread { path: path.path().display().to_string(), why: plain(error) }
}

#[cfg(test)]
pub(crate) mod tests;

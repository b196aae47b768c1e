//! The journal: every change of the machine is written down with its old value, and synced, before
//! it is made. So it can be undone however tardy ends.
//!
//! One file, `/run/tardy/journal`, JSON lines: first who changes (boot, process, its start), then a
//! change a line. Only one tardy at a time changes the machine; the file is its claim. What a
//! killed one left is put back by `tardy restore`, and by the next tardy that changes or reads
//! settings.

mod change;
mod claim;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use change::Change;
use claim::JournalLock;

use super::threads::plain;
use crate::{
    draft::Draft,
    sys::{root::Root, tasks},
};

/// Where the journal lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalPath(PathBuf);

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

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn directory(&self) -> &Path {
        self.0.parent().unwrap_or(Path::new("/"))
    }
}

const USUAL: &str = "/run/tardy/journal";

/// Who holds the machine changed: the first line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The boot in which it runs.
    pub boot_id: String,
    /// Its number.
    pub pid: i32,
    /// Clock ticks from boot to its start: a number alone may be another process by now.
    pub start: u64,
    /// What was typed.
    pub command: String,
}

impl Owner {
    fn this_process(root: &Root, command: &str) -> Self {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        // Of itself, also where another tree stands for the machine.
        let start = tasks::start(&Root::default(), pid).unwrap_or(0);
        Self { boot_id: boot_id(root), pid, start, command: command.into() }
    }

    fn is_alive(&self) -> bool {
        tasks::start(&Root::default(), self.pid) == Some(self.start)
    }
}

fn boot_id(root: &Root) -> String {
    root.read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Why nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JournalError {
    /// Another tardy holds the machine changed.
    #[error(
        "another tardy has changed settings of this machine: process {} ({}). Wait for its end, or \
         end it (kill {}); it puts back what it changed", .0.pid, .0.command, .0.pid
    )]
    Busy(Owner),
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
    /// What a killed tardy left cannot be put back.
    #[error(
        "a tardy that was killed left settings changed, and they cannot be put back: {what}. \
         Put them back by hand (docs/setup.md), then remove {path}"
    )]
    Left {
        /// What stays changed.
        what: String,
        /// The journal.
        path: String,
    },
}

/// What undoing did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undone {
    /// What was put back.
    pub put_back: Vec<String>,
    /// What could not be, and why.
    pub failed: Vec<String>,
}

/// What became of a journal that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Recovered {
    /// There was none.
    #[default]
    Nothing,
    /// Its owner lives.
    Alive(Owner),
    /// It was of another boot: the machine has forgotten those changes.
    OtherBoot,
    /// Its owner is gone; this came of undoing.
    Undone(Undone),
}

/// The claim to change this machine, with everything changed so far.
#[derive(Debug)]
pub struct Journal {
    root: Root,
    place: JournalPath,
    owner: Owner,
    file: File,
    changes: Vec<Change>,
    /// Not undone yet.
    open: bool,
}

impl Journal {
    /// Claims the machine: first puts back what a killed tardy left.
    ///
    /// # Errors
    /// Another tardy holds it, the journal cannot be written, or what was left cannot be put back.
    pub fn claim(place: &JournalPath, root: &Root, command: &str) -> Result<Self, JournalError> {
        let write = |error: io::Error| write_error(place, &error);
        fs::create_dir_all(place.directory()).map_err(write)?;
        let _held = JournalLock::over(place.directory()).map_err(write)?;
        match put_back(place, root) {
            Recovered::Alive(owner) => return Err(JournalError::Busy(owner)),
            Recovered::Undone(Undone { failed, .. }) if !failed.is_empty() => {
                let path = place.path().display().to_string();
                return Err(JournalError::Left { what: failed.join("; "), path });
            }
            _ => {}
        }
        let owner = Owner::this_process(root, command);
        let file =
            OpenOptions::new().append(true).create_new(true).open(place.path()).map_err(write)?;
        let mut journal = Self {
            root: root.clone(),
            place: place.clone(),
            owner,
            file,
            changes: Vec::new(),
            open: true,
        };
        let header = line(&journal.owner);
        journal.append(&header)?;
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
            // Half a line would be passed over anyway.
            let _ = self.file.set_len(before);
            write_error(&self.place, &error)
        })
    }

    /// Undoes everything, last change first. What cannot be put back stays in the journal.
    pub fn undo(&mut self) -> Undone {
        self.open = false;
        let changes = std::mem::take(&mut self.changes);
        let (undone, kept) = undo_all(&self.root, &changes);
        keep(&self.place, &self.owner, &kept);
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

/// Puts back what a killed tardy left, if one did.
///
/// # Errors
/// The journal cannot be locked.
pub fn recover(place: &JournalPath, root: &Root) -> Result<Recovered, JournalError> {
    if !place.path().exists() {
        return Ok(Recovered::Nothing);
    }
    let _held = match JournalLock::over(place.directory()) {
        Ok(held) => Some(held),
        // Without the right to lock there is none to change either, but what it holds is shown.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
        Err(error) => return Err(write_error(place, &error)),
    };
    Ok(put_back(place, root))
}

fn put_back(place: &JournalPath, root: &Root) -> Recovered {
    let (owner, changes, damaged) = match read(place.path()) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Recovered::Nothing,
        Err(error) => {
            let failed = vec![format!("{}: {}", place.path().display(), plain(&error))];
            return Recovered::Undone(Undone { put_back: Vec::new(), failed });
        }
    };
    match &owner {
        Some(owner) if owner.boot_id != boot_id(root) => {
            let _ = fs::remove_file(place.path());
            return Recovered::OtherBoot;
        }
        Some(owner) if owner.is_alive() => return Recovered::Alive(owner.clone()),
        _ => {}
    }
    let (mut undone, kept) = undo_all(root, &changes);
    if let (Some(owner), true) = (&owner, damaged.is_empty()) {
        keep(place, owner, &kept);
        return Recovered::Undone(undone);
    }
    if damaged.is_empty() {
        // Not even the first line was synced: nothing was changed.
        let _ = fs::remove_file(place.path());
        return Recovered::Nothing;
    }
    // Out of the way of the next one, and kept for inspection.
    let aside = place.path().with_extension("damaged");
    let moved = fs::rename(place.path(), &aside).is_ok();
    let aside = if moved { aside.display() } else { place.path().display() };
    undone.failed.extend(damaged.iter().map(|what| format!("{what}; look into {aside}")));
    Recovered::Undone(undone)
}

/// Undoes changes, the last one first, and goes on after one that fails. Also returns what is to be
/// kept, in the order in which it was made.
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

/// Leaves only `changes` in the journal: removes it where there are none.
fn keep(place: &JournalPath, owner: &Owner, changes: &[Change]) {
    if changes.is_empty() {
        let _ = fs::remove_file(place.path());
        return;
    }
    let text: String = std::iter::once(line(owner)).chain(changes.iter().map(line)).collect();
    // Where this fails the old journal stays, and undoing twice does no harm.
    let _ = Draft::beside(place.path()).and_then(|mut fresh| {
        fresh.file().write_all(text.as_bytes())?;
        fresh.file().sync_all()?;
        fresh.place()
    });
}

/// The owner where its line can be read, the changes, and what is wrong with other lines.
type Read = (Option<Owner>, Vec<Change>, Vec<String>);

/// Reads a journal. A last line without its end was never synced, so that its change was never
/// made.
fn read(path: &Path) -> io::Result<Read> {
    let bytes = fs::read(path)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let text = String::from_utf8_lossy(bytes.get(..whole).unwrap_or_default()).into_owned();
    let mut lines = text.lines();
    let owner = lines.next().and_then(|line| serde_json::from_str::<Owner>(line).ok());
    let (mut changes, mut damaged) = (Vec::new(), Vec::new());
    if owner.is_none() && whole > 0 {
        // Nor a boot: what follows may be what another one needed.
        damaged.push(format!("line 1 of {} names no owner", path.display()));
        return Ok((None, changes, damaged));
    }
    for (number, line) in lines.enumerate() {
        match serde_json::from_str::<Change>(line) {
            Ok(change) if change.is_plausible() => changes.push(change),
            Ok(_) => damaged.push(format!(
                "line {} of {} is no change that tardy makes",
                number + 2,
                path.display()
            )),
            Err(_) => {
                damaged.push(format!("line {} of {} is damaged", number + 2, path.display()));
            }
        }
    }
    Ok((owner, changes, damaged))
}

fn line(value: &impl Serialize) -> String {
    // Strings and numbers only: this cannot fail.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

fn write_error(place: &JournalPath, error: &io::Error) -> JournalError {
    JournalError::Write { path: place.path().display().to_string(), why: plain(error) }
}

#[cfg(test)]
mod tests;

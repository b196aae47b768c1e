//! What a killed supervisor leaves: descendants that have moved into separate process groups and
//! sessions. tardy adopts them, and so finds and ends them.
//!
//! Changes the calling process: it becomes a subreaper, which its own end undoes.

use std::collections::HashSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::sys::{
    child::is_kept,
    process::{self, Pid},
};

/// Supervisors that live; nothing while orphans are not adopted.
static SUPERVISORS: Mutex<Option<HashSet<Pid>>> = Mutex::new(None);

/// Makes this process the parent of what a killed supervisor leaves. From now on all its
/// children are supervisors or such orphans, and the latter are killed: so it does nothing for a
/// process that has children already, which a shell may have left it (`sleep 9 & exec tardy`).
pub fn adopt_orphans() {
    let mut supervisors = lock();
    let has_children = process::children().map_or(true, |children| !children.is_empty());
    // Where it is refused, only the supervisor's process group can be found.
    if supervisors.is_none() && !has_children && process::become_subreaper().is_ok() {
        *supervisors = Some(HashSet::new());
    }
}

/// Starts a supervisor and records it.
///
/// # Errors
/// It cannot be started.
pub(super) fn start(command: &mut Command) -> io::Result<Child> {
    // Held over the start, so that no thread takes it for an orphan before it is recorded.
    let mut supervisors = lock();
    let child = command.spawn()?;
    if let Some(known) = supervisors.as_mut() {
        known.insert(Pid::from_child(&child));
    }
    Ok(child)
}

/// A supervisor has ended and was waited for. Where it was `killed`, kills what it has left, until
/// nothing is left or the time limit is reached.
pub(super) fn ended(supervisor: Pid, killed: bool, patience: Duration) {
    let mut supervisors = lock();
    let Some(known) = supervisors.as_mut() else { return };
    known.remove(&supervisor);
    let deadline = Instant::now() + patience;
    while killed && end_others(known) > 0 && Instant::now() < deadline {
        sleep(Duration::from_millis(5));
    }
}

/// Kills all children but these, and everything below them; how many there were.
fn end_others(known: &HashSet<Pid>) -> usize {
    let mut others = process::children().unwrap_or_default();
    others.retain(|child| !known.contains(child) && !is_kept(*child));
    for &orphan in &others {
        for below in process::descendants(orphan).unwrap_or_default() {
            process::kill(below);
        }
        process::kill(orphan);
        // A process that is still dying is seen again; its children are reparented to this process.
        let _ = process::reap_one(orphan);
    }
    others.len()
}

fn lock() -> MutexGuard<'static, Option<HashSet<Pid>>> {
    SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The lock on `run.json` that says "its maker is alive".
//!
//! It belongs to the process: the kernel drops it however the process ends, children do not inherit
//! it, and readers can ask without taking it. It is a lock for writing, which nobody can take who
//! may not write the record. One for reading is open to all who may read it, and says nothing.
//!
//! One for reading on `series.hlog` says "somebody looks at this run while it is in progress".
//! Whoever may read the run can take it, nothing is written for it, and it goes with its holder.
//! All that its maker does for it is to write more often what is read then.

use std::{fs::File, io};

use rustix::{
    fs::{FlockOperation, fcntl_lock},
    process::{Flock, FlockType, fcntl_getlk},
};

/// Takes the lock for this process. Closing *any* descriptor of the same file drops it again, so a
/// maker opens its own `run.json` only once.
///
/// # Errors
/// `EAGAIN` or `EACCES` where another process has it; what a file system without locks says.
pub fn take(file: &File) -> io::Result<()> {
    Ok(fcntl_lock(file, FlockOperation::NonBlockingLockExclusive)?)
}

/// Whether another process holds the lock.
///
/// # Errors
/// What a file system without locks says.
pub fn is_held(file: &File) -> io::Result<bool> {
    // Only a lock for writing is in the way of one for reading.
    let asked: Flock = FlockType::ReadLock.into();
    Ok(fcntl_getlk(file, &asked)?.is_some())
}

/// Says to the maker of a run, by its `series.hlog`, that this process looks at it. Closing *any*
/// descriptor of the same file takes that back.
///
/// # Errors
/// What a file system without locks says.
pub fn watch(log: &File) -> io::Result<()> {
    Ok(fcntl_lock(log, FlockOperation::NonBlockingLockShared)?)
}

/// Whether another process watches the run whose `series.hlog` this is. Without locks this is
/// unknown, and the answer is no.
#[must_use]
pub fn is_watched(log: &File) -> bool {
    // Locks for reading are in the way of one for writing.
    let asked: Flock = FlockType::WriteLock.into();
    fcntl_getlk(log, &asked).is_ok_and(|held| held.is_some())
}

#[cfg(test)]
mod tests {
    use std::{
        env,
        fs::OpenOptions,
        io::{BufRead as _, BufReader, Read as _},
        path::Path,
        process::{Command, Stdio},
    };

    use super::*;

    const FILE: &str = "TARDY_TEST_LOCKED";
    const SHARED: &str = "TARDY_TEST_LOCKED_SHARED";

    /// Whether the file is taken for held, and for watched, while another process, this test again,
    /// has it locked.
    fn is_held_by_another(file: &Path, shared: bool) -> (bool, bool) {
        let name = "run::lock::tests::only_the_lock_of_a_writer_is_that_of_a_maker";
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", name, "--nocapture"]).env(FILE, file);
        if shared {
            command.env(SHARED, "1");
        }
        let mut other = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
        let mut said = lines.by_ref().map_while(Result::ok);
        assert!(said.any(|line| line.contains("it is locked")));
        let opened = File::open(file).unwrap();
        let found = (is_held(&opened).unwrap(), is_watched(&opened));
        drop(other.stdin.take());
        assert!(other.wait().unwrap().success());
        found
    }

    fn hold(file: &Path, shared: bool) {
        let file = OpenOptions::new().read(true).write(!shared).open(file).unwrap();
        match shared {
            true => watch(&file).unwrap(),
            false => take(&file).unwrap(),
        }
        println!("it is locked");
        io::stdin().read_to_string(&mut String::new()).unwrap();
    }

    #[test]
    fn only_the_lock_of_a_writer_is_that_of_a_maker() {
        if let Some(file) = env::var_os(FILE) {
            return hold(Path::new(&file), env::var_os(SHARED).is_some());
        }
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("run.json");
        std::fs::write(&file, "{}").unwrap();
        assert!(is_held_by_another(&file, false).0);
        let shared = is_held_by_another(&file, true);
        assert_eq!(shared, (false, true), "whoever may read it may lock it so");
        let opened = File::open(&file).unwrap();
        assert!(!is_held(&opened).unwrap() && !is_watched(&opened));
    }
}

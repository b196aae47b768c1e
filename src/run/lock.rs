//! The lock on `run.json` that says "its maker is alive".
//!
//! It belongs to the process: the kernel drops it however the process ends, children do not inherit
//! it, and readers can ask without taking it.

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
    let asked: Flock = FlockType::WriteLock.into();
    Ok(fcntl_getlk(file, &asked)?.is_some())
}

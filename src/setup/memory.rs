//! Locks memory for the time of a run.
//!
//! With the right to lock without limit, everything is locked before arming, also what is allocated
//! later. Without it only what exists after arming is locked: locking the future under a limit
//! would make later allocations fail.

use crate::{
    run::{LockedMemory, MemoryLock, OsError},
    sys::memory,
};

/// Memory that is locked until this is dropped.
#[derive(Debug)]
pub struct Locked {
    whole: bool,
    refused: Option<OsError>,
}

impl Locked {
    /// To be called before anything is armed.
    #[must_use]
    pub fn before_arming() -> Self {
        let whole = memory::may_lock_without_limit() && memory::lock_all(true).is_ok();
        Self { whole, refused: None }
    }

    /// To be called when everything that a loop will touch exists.
    pub fn after_arming(&mut self) {
        if !self.whole {
            self.refused = memory::lock_all(false).err().as_ref().map(OsError::from);
        }
    }

    /// Its result, as the kernel counts.
    #[must_use]
    pub fn found(&self) -> MemoryLock {
        let locked = match (self.whole, &self.refused) {
            (true, _) => LockedMemory::All,
            (false, None) => LockedMemory::Existing,
            (false, Some(_)) => LockedMemory::None,
        };
        MemoryLock { locked, bytes: memory::locked_bytes() }
    }

    /// What the kernel said where it refused.
    #[must_use]
    pub const fn refused(&self) -> Option<&OsError> {
        self.refused.as_ref()
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // The process may continue to other things; nothing can be done about a failure.
        let _ = memory::unlock_all();
    }
}

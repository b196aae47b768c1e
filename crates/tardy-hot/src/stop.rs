//! The flag that ends a loop.

use crate::sync::{AtomicBool, Ordering};

/// Set once, by any thread with a reason to stop; loops read it each turn.
#[derive(Debug)]
pub struct Stop(AtomicBool);

impl Stop {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Asks every loop that checks this flag to end. What was stored before is visible to those
    /// who see it set.
    #[inline(always)]
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether the loops must end.
    #[inline(always)]
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

//! Which wake-ups system management interrupts may explain.

use crate::run::peaks::{Cause, Part};

/// What the counter of system management interrupts says of a wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SmiEvidence {
    /// One came since it was read before, and explains nothing yet.
    Came,
    /// None that explains nothing yet.
    NoneLeft,
    /// Nothing counts them here.
    NotCounted,
}

/// System management interrupts, which come without an event: each explains one wake-up at the
/// most, of those that were late since the counter was read the last time.
#[derive(Debug, Default)]
pub(super) struct Smis {
    /// So far; `None` if they are not counted.
    count: Option<u64>,
    /// Came since the reading before, and explain nothing yet.
    left: u64,
}

impl Smis {
    /// A reading of the counter.
    pub(super) fn read(&mut self, now: Option<u64>) {
        self.left = now.zip(self.count).map_or(0, |(now, then)| now.saturating_sub(then));
        self.count = now;
    }

    /// A reading before which nothing counts.
    pub(super) fn begin(&mut self, now: Option<u64>) {
        *self = Self { count: now, left: 0 };
    }

    /// What is known of them for the next wake-up.
    #[must_use]
    pub(super) fn evidence(&self) -> SmiEvidence {
        match (self.count, self.left) {
            (None, _) => SmiEvidence::NotCounted,
            (Some(_), 0) => SmiEvidence::NoneLeft,
            (Some(_), _) => SmiEvidence::Came,
        }
    }

    /// Takes off what these parts of a latency are blamed on.
    pub(super) fn explains(&mut self, parts: &[Part]) {
        let explains_one = parts.iter().any(|part| part.cause == Cause::Hardware);
        self.left = self.left.saturating_sub(u64::from(explains_one));
    }
}

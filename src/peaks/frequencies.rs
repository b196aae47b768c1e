//! How fast a CPU was that a thread worked on, as far as the kernel set that: what the processor
//! makes of it, as with turbo or a limit of heat, has no event.

use super::contexts::ns;
use crate::kernel::SetFrequency;

/// What the kernel set one CPU to around a late response.
#[derive(Debug, Default)]
pub(crate) struct Frequencies {
    /// By time, and the last one before.
    set: Vec<SetFrequency>,
    /// The highest that it can have; `None` if its driver does not tell each change.
    highest_khz: Option<u32>,
}

impl Frequencies {
    /// `set` by time, where `highest_khz` is the highest that the CPU can have.
    #[must_use]
    pub(crate) fn new(set: Vec<SetFrequency>, highest_khz: Option<u32>) -> Self {
        Self { set, highest_khz }
    }

    /// All that are known.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &SetFrequency> {
        self.set.iter()
    }

    /// The highest that the CPU can have, kHz.
    #[must_use]
    pub(crate) const fn highest_khz(&self) -> Option<u32> {
        self.highest_khz
    }

    /// Whether it was set to less than that at this time; not if that is not known.
    #[must_use]
    pub(crate) fn is_below_highest(&self, at_ns: i64) -> bool {
        let last = self.set.iter().rfind(|set| ns(set.at_ns) <= at_ns);
        let both = last.zip(self.highest_khz);
        both.is_some_and(|(set, highest_khz)| set.khz < highest_khz)
    }
}

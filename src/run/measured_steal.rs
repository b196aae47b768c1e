//! Which parts of a latency the steal counter says were the hypervisor's, and a peak without them.

use super::peaks::{Cause, Part, Peak};

/// Name of the part of a latency in which the steal counter says that the hypervisor had the CPU.
pub const MEASURED_STEAL: &str = "hypervisor (steal)";

impl Part {
    /// Whether the steal counter says that this was the hypervisor's.
    #[must_use]
    pub fn is_measured_steal(&self) -> bool {
        self.cause == Cause::Host && self.name == MEASURED_STEAL
    }
}

/// How much of a latency with these parts the steal counter says was the hypervisor's, ns.
#[must_use]
pub fn stolen_ns(parts: &[Part]) -> u64 {
    let own = parts.iter().filter(|part| part.is_measured_steal());
    own.map(|part| part.ns).fold(0, u64::saturating_add)
}

impl Peak {
    /// This peak without the time that was stolen from it. In which stage or way that was is not
    /// recorded, so that a peak with such time has none of them any more.
    #[must_use]
    pub fn without_stolen(mut self) -> Self {
        let stolen_ns = stolen_ns(&self.blame);
        if stolen_ns > 0 {
            self.latency_ns = self.latency_ns.saturating_sub_unsigned(stolen_ns).max(0);
            self.blame.retain(|part| !part.is_measured_steal());
            (self.stages, self.ways) = (None, Vec::new());
        }
        self
    }
}

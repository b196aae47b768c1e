//! What this process is allowed to do beyond an ordinary user.

use rustix::thread::{CapabilitySet, capabilities};

/// Whether programs that see the whole kernel may be loaded: `CAP_BPF` and `CAP_PERFMON`, or
/// `CAP_SYS_ADMIN`. In a user namespace the kernel may still refuse.
#[must_use]
pub fn may_trace() -> bool {
    let tracing = CapabilitySet::BPF | CapabilitySet::PERFMON;
    capabilities(None).is_ok_and(|sets| {
        sets.effective.contains(tracing) || sets.effective.contains(CapabilitySet::SYS_ADMIN)
    })
}

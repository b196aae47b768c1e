//! What the measured thread itself was held up by: locks, from one event to another.

use super::{Event, EventKind, contexts::ns, late_wakeup::LateWakeup, names};

/// A wait of the measured thread.
pub(crate) struct LockWait {
    /// From.
    pub from_ns: i64,
    /// Until it had the lock and the CPU; `i64::MAX` where that is not recorded.
    pub until_ns: i64,
    /// Which lock.
    pub name: String,
    /// Who had it, as `name/pid`: known where its priority was raised to the thread's.
    pub owner: Option<String>,
    /// Where it began to wait.
    cpu: u32,
}

/// Whether a piece ends at this event of the measured thread.
#[must_use]
pub(crate) fn cuts(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::PageFault { .. } | EventKind::LockBegin { .. } | EventKind::LockEnd { .. }
    )
}

/// What the thread waited for, by time. One lock may be made of two: the first wait is the lock's.
#[must_use]
pub(crate) fn locks(wakeup: &LateWakeup<'_>) -> Vec<LockWait> {
    let mut found: Vec<LockWait> = Vec::new();
    let mut open: Option<LockWait> = None;
    for event in wakeup.events().iter() {
        let (at_ns, is_mine) = (ns(event.at_ns), event.pid == wakeup.me.tid);
        match (event.kind, &mut open) {
            (EventKind::LockBegin { lock, .. }, None) if is_mine => {
                let name = wakeup.source.symbol(lock).map_or("a lock", |(name, _)| name).to_owned();
                let (from_ns, until_ns, cpu) = (at_ns, i64::MAX, event.cpu);
                open = Some(LockWait { from_ns, until_ns, name, owner: None, cpu });
            }
            (EventKind::LockEnd { .. }, Some(_)) if is_mine => {
                found.extend(open.take().map(|wait| LockWait { until_ns: at_ns, ..wait }));
            }
            // The thread is on its CPU until it has said so.
            (EventKind::LockOwner { comm }, Some(wait)) if wait.cpu == event.cpu => {
                let owner = format!("{}/{}", names::comm(&comm), event.pid);
                wait.owner.get_or_insert(owner);
            }
            _ => {}
        }
    }
    found.extend(open);
    found
}

//! What the measured thread itself was held up by: locks, from one event to another.

use super::{Event, EventKind, contexts::ns, late_wakeup::LateWakeup, mutexes::mutexes, names};

/// The name of a lock that the kernel has no address of.
pub(super) const PI_MUTEX: &str = "PI mutex";

/// A wait of the measured thread.
pub(crate) struct LockWait {
    /// From.
    pub from_ns: i64,
    /// Until it had the lock and the CPU; `i64::MAX` if that is not recorded.
    pub until_ns: i64,
    /// Which lock.
    pub name: String,
    /// Who had it, as `name/pid`: known where its priority was raised to the thread's.
    pub owner: Option<String>,
}

/// Whether a piece ends at this event of the measured thread.
#[must_use]
pub(crate) fn cuts(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::PageFault { .. } | EventKind::LockBegin { .. } | EventKind::LockEnd { .. }
    )
}

/// What the thread waited for, by time; `events` are those of all CPUs. One lock may be made of
/// two: the first wait is the lock's.
#[must_use]
pub(crate) fn locks(wakeup: &LateWakeup<'_>, events: &[Event]) -> Vec<LockWait> {
    let mut found: Vec<LockWait> = Vec::new();
    // With the CPU on which it began to wait.
    let mut open: Option<(u32, LockWait)> = None;
    for event in events {
        let (at_ns, is_mine) = (ns(event.at_ns), event.pid == wakeup.me.tid);
        match (event.kind, &mut open) {
            (EventKind::LockBegin { lock, .. }, None) if is_mine => {
                let known = wakeup.source.symbol(lock).map(|(name, _)| name.into_owned());
                let name = known.unwrap_or_else(|| "a lock".to_owned());
                let (from_ns, until_ns) = (at_ns, i64::MAX);
                open = Some((event.cpu, LockWait { from_ns, until_ns, name, owner: None }));
            }
            (EventKind::LockEnd { .. }, Some(_)) if is_mine => {
                found.extend(open.take().map(|(_, wait)| LockWait { until_ns: at_ns, ..wait }));
            }
            // The thread is on its CPU until it has said so.
            (EventKind::LockOwner { comm }, Some((cpu, wait))) if *cpu == event.cpu => {
                let owner = format!("{}/{}", names::comm(&comm), event.pid);
                wait.owner.get_or_insert(owner);
            }
            _ => {}
        }
    }
    found.extend(open.map(|(_, wait)| wait));
    found.extend(mutexes(wakeup.me.tid, events).into_iter().map(|wait| LockWait {
        from_ns: wait.from_ns,
        until_ns: wait.until_ns,
        name: PI_MUTEX.to_owned(),
        owner: Some(wait.owner),
    }));
    found
}

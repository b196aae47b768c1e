//! What the measured thread itself was held up by: locks, from one event to another.

use super::{Event, EventKind, contexts::ns, late_wakeup::LateWakeup};

/// Whether a piece ends at this event of the measured thread.
#[must_use]
pub(crate) fn cuts(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::PageFault { .. } | EventKind::LockBegin { .. } | EventKind::LockEnd { .. }
    )
}

/// From when until when the thread waited for which lock; `events` are its own, by time.
#[must_use]
pub(crate) fn locks(wakeup: &LateWakeup<'_>, events: &[Event]) -> Vec<(i64, i64, String)> {
    let mut found: Vec<(i64, i64, String)> = Vec::new();
    let mut open: Option<(i64, String)> = None;
    for event in events {
        match event.kind {
            EventKind::LockBegin { lock, .. } if open.is_none() => {
                let name = wakeup.source.symbol(lock).map_or("a lock", |(name, _)| name);
                open = Some((ns(event.at_ns), name.to_owned()));
            }
            EventKind::LockEnd { .. } => {
                found.extend(open.take().map(|(from, name)| (from, ns(event.at_ns), name)));
            }
            _ => {}
        }
    }
    found.extend(open.map(|(from, name)| (from, i64::MAX, name)));
    found
}

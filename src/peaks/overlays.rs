//! Time taken from any context: steal time, NMIs, and tardy's own stack walks.

use super::{Event, EventKind, contexts::ns};

/// What overlays a span of a CPU's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverlayKind {
    /// The hypervisor ran something else.
    Steal,
    /// A non-maskable interrupt.
    Nmi,
    /// tardy walked a stack.
    Walk,
}

/// A covered span of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overlay {
    /// From; `CLOCK_MONOTONIC` ns.
    pub from_ns: i64,
    /// Up to.
    pub to_ns: i64,
    /// By what.
    pub kind: OverlayKind,
}

/// The overlays of one CPU; `events` are its own, by time.
#[must_use]
pub(crate) fn overlays(events: &[Event]) -> Vec<Overlay> {
    let mut overlays = Vec::new();
    for event in events {
        let at_ns = ns(event.at_ns);
        match event.kind {
            EventKind::Nmi { took_ns, .. } => {
                let from_ns = at_ns.saturating_sub(ns(took_ns));
                overlays.push(Overlay { from_ns, to_ns: at_ns, kind: OverlayKind::Nmi });
            }
            // Its time is that at which the walk began.
            EventKind::Stack { took_ns, .. } => {
                let to_ns = at_ns.saturating_add(ns(took_ns));
                overlays.push(Overlay { from_ns: at_ns, to_ns, kind: OverlayKind::Walk });
            }
            EventKind::Steal { ns: stolen, since_ns } => {
                overlays.extend(stolen_spans(events, ns(since_ns), at_ns, ns(stolen)));
            }
            _ => {}
        }
    }
    overlays
}

/// Where a CPU was away for `stolen_ns` between two readings of that counter: in the shortest gap
/// between its events that holds all of it, or else in the longest ones; at their ends, because
/// what was held up comes at once when it is back.
fn stolen_spans(events: &[Event], since_ns: i64, at_ns: i64, mut stolen_ns: i64) -> Vec<Overlay> {
    let first = events.partition_point(|event| ns(event.at_ns) < since_ns);
    let within = events[first..].iter().map(|event| ns(event.at_ns));
    let mut times = vec![since_ns];
    times.extend(within.take_while(|at| *at <= at_ns));
    times.push(at_ns);
    let mut gaps: Vec<(i64, i64)> = times.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let fit = |(from, to): &(i64, i64)| {
        let length = to - from;
        if length >= stolen_ns { (0, length) } else { (1, -length) }
    };
    gaps.sort_by_key(fit);
    let mut spans = Vec::new();
    for (from, to) in gaps {
        if stolen_ns <= 0 || to <= from {
            break;
        }
        let length = stolen_ns.min(to - from);
        spans.push(Overlay { from_ns: to - length, to_ns: to, kind: OverlayKind::Steal });
        stolen_ns -= length;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peaks::test_events::{at, nmi, stack, steal, switch};

    #[test]
    fn stolen_time_lies_in_the_shortest_gap_that_holds_it() {
        let events = [
            at(100, switch(1, 120, "a")),
            at(200, switch(2, 120, "b")),
            at(900, switch(1, 120, "a")),
            at(1000, steal(500, 50)),
        ];
        assert_eq!(
            overlays(&events),
            [Overlay { from_ns: 400, to_ns: 900, kind: OverlayKind::Steal }]
        );
    }

    #[test]
    fn more_than_the_longest_gap_goes_on_in_the_next() {
        let events = [at(500, switch(1, 120, "a")), at(1000, steal(800, 0))];
        let total: i64 =
            overlays(&events).iter().map(|overlay| overlay.to_ns - overlay.from_ns).sum();
        assert_eq!(total, 800);
    }

    #[test]
    fn a_walk_begins_and_an_nmi_ends_when_it_is_recorded() {
        let named = overlays(&[at(1000, stack(5, 1, 1, 80)), at(2000, nmi(30))]);
        assert_eq!(
            (named[0].from_ns, named[0].to_ns, named[0].kind),
            (1000, 1080, OverlayKind::Walk)
        );
        assert_eq!(
            (named[1].from_ns, named[1].to_ns, named[1].kind),
            (1970, 2000, OverlayKind::Nmi)
        );
    }
}

//! What a late wake-up is blamed on: `docs/explanation/blame.md` has the rules as a table.
//!
//! The span from the programmed expiry to the wake-up is cut wherever the thread, its CPU or what
//! overlays it changes; each piece has one cause, so that the parts sum to the latency.

use super::{
    contexts::{Segment, ns},
    cycle,
    late_wakeup::LateWakeup,
    overlays::{Overlay, OverlayKind},
    piece::{NamedCause, Piece, earlier_packets, own_path, stopped},
    rules::CauseClassifier,
    state_history::StateSpan,
};
use crate::run::peaks::Part;

/// The parts of a latency, largest first; they sum to it.
#[must_use]
pub(crate) fn parts(wakeup: &LateWakeup<'_>) -> Vec<Part> {
    let classifier = CauseClassifier::new(wakeup);
    let mut parts: Vec<Part> = Vec::new();
    let mut earlier_ns = wakeup.earlier.most_ns;
    for span in &wakeup.history.spans {
        let mut path_ns = classifier.own_path_ns();
        for piece in pieces(wakeup, &classifier, span) {
            let mut length = u64::try_from(piece.ns()).unwrap_or(0);
            if wakeup.me.works && classifier.runs_by_itself(&piece) {
                let own = match piece.to_ns <= wakeup.begun_ns() {
                    true => classifier.sleeps.earlier_work(),
                    false => cycle::own_work(is_below_highest(wakeup, &piece)),
                };
                add(&mut parts, own, length);
                continue;
            }
            if classifier.runs_by_itself(&piece) {
                if piece.to_ns <= wakeup.earlier.until_ns {
                    let ns = length.min(earlier_ns);
                    add(&mut parts, earlier_packets(), ns);
                    (earlier_ns, length) = (earlier_ns - ns, length - ns);
                }
                let own_ns = length.min(path_ns);
                add(&mut parts, own_path(wakeup), own_ns);
                (path_ns, length) = (path_ns - own_ns, length - own_ns);
            }
            add(&mut parts, classifier.why(&piece), length);
        }
    }
    sort(&mut parts);
    parts
}

/// The largest first.
pub(super) fn sort(parts: &mut [Part]) {
    parts.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.name.cmp(&b.name)));
}

fn add(parts: &mut Vec<Part>, why: NamedCause, ns: u64) {
    let NamedCause { cause, name, task, basis, evidence, stack } = why;
    join(
        parts,
        Part { cause, name, task, ns, basis, evidence: evidence.map(str::to_owned), stack },
    );
}

/// Adds a part to those of one latency.
pub(super) fn join(parts: &mut Vec<Part>, more: Part) {
    if more.ns == 0 {
        return;
    }
    let is_same = |part: &&mut Part| {
        (part.cause, part.basis) == (more.cause, more.basis)
            && part.name == more.name
            && part.task == more.task
            && part.evidence == more.evidence
    };
    match parts.iter_mut().find(is_same) {
        Some(part) => {
            part.ns += more.ns;
            if part.stack.is_empty() {
                part.stack = more.stack;
            }
        }
        None => parts.push(more),
    }
}

/// A span, cut wherever something changes.
fn pieces<'a>(
    wakeup: &'a LateWakeup<'_>,
    classifier: &CauseClassifier<'_>,
    span: &'a StateSpan,
) -> Vec<Piece<'a>> {
    let Some(cpu) = wakeup.cpus.get(&span.cpu) else {
        return vec![piece(span, span.from_ns, span.to_ns, None, None, false)];
    };
    let is_near = |overlay: &&Overlay| overlay.from_ns < span.to_ns && overlay.to_ns > span.from_ns;
    let overlays: Vec<Overlay> = cpu.overlays.iter().filter(is_near).copied().collect();
    let first = cpu.segments.partition_point(|segment| segment.to_ns <= span.from_ns);
    let segments = cpu.segments[first..].iter().take_while(|s| s.from_ns < span.to_ns);
    let mut cuts = vec![span.from_ns, span.to_ns, cpu.known_from_ns];
    cuts.extend(segments.flat_map(|segment| [segment.from_ns, segment.to_ns]));
    cuts.extend(overlays.iter().flat_map(|overlay| [overlay.from_ns, overlay.to_ns]));
    let near = cpu.functions.iter().filter(|f| f.from_ns <= span.to_ns && f.to_ns >= span.from_ns);
    cuts.extend(near.flat_map(|function| [function.from_ns, function.to_ns]));
    cuts.extend(cpu.frequencies.changes().map(|set| ns(set.at_ns)));
    let (stopped, until) = stopped(wakeup);
    cuts.extend([stopped, until]);
    classifier.cuts(span, &mut cuts);
    cuts.retain(|at| (span.from_ns..=span.to_ns).contains(at));
    cuts.sort_unstable();
    cuts.dedup();
    let cut = |pair: &[i64]| {
        let (from_ns, to_ns) = (pair[0], pair[1]);
        let at = cpu.segments.partition_point(|segment| segment.to_ns <= from_ns);
        let segment = cpu.segments.get(at).filter(|segment| segment.from_ns <= from_ns);
        let over = overlays.iter().filter(|c| c.from_ns <= from_ns && c.to_ns >= to_ns);
        let overlay =
            over.map(|overlay| overlay.kind).min_by_key(|kind| *kind != OverlayKind::Steal);
        piece(span, from_ns, to_ns, segment, overlay, from_ns < cpu.known_from_ns)
    };
    cuts.windows(2).map(cut).collect()
}

/// Whether the kernel had set the CPU of a piece to less than its highest frequency.
fn is_below_highest(wakeup: &LateWakeup<'_>, piece: &Piece<'_>) -> bool {
    let cpu = wakeup.cpus.get(&piece.span.cpu);
    cpu.is_some_and(|cpu| cpu.frequencies.is_below_highest(piece.from_ns))
}

fn piece<'a>(
    span: &'a StateSpan,
    from_ns: i64,
    to_ns: i64,
    segment: Option<&'a Segment>,
    overlay: Option<OverlayKind>,
    is_overwritten: bool,
) -> Piece<'a> {
    Piece { from_ns, to_ns, span, segment, overlay, is_overwritten }
}

//! What the hardware threads were at that share a core with the CPUs of a late wake-up. They slow
//! each other down, by how much no event says: this is shown beside the blame, and is not a cause.

use super::{
    contexts::Segment,
    late_wakeup::{Cpu, LateWakeup},
};

/// One hardware thread.
pub(super) struct Sibling {
    /// Which.
    pub cpu: u32,
    /// Whose core it shares.
    pub of: u32,
    /// What it was at; `None` if it is one of the wake-up's CPUs.
    pub seen: Option<Cpu>,
    /// In words, how much of the latency it was busy.
    pub busy: String,
}

/// Those of which events are recorded, by number.
pub(super) fn siblings(wakeup: &LateWakeup<'_>) -> Vec<Sibling> {
    let mut found: Vec<Sibling> = Vec::new();
    for of in wakeup.cpus.keys().copied() {
        for cpu in wakeup.wishes.siblings.get(&of).into_iter().flatten().copied() {
            let is_known = found.iter().any(|sibling| sibling.cpu == cpu);
            if is_known || wakeup.source.recorded(cpu).is_empty() {
                continue;
            }
            let seen = (!wakeup.cpus.contains_key(&cpu)).then(|| wakeup.read(cpu));
            let segments = seen.as_ref().or_else(|| wakeup.cpus.get(&cpu));
            let busy = busy(wakeup, segments.map_or(&[], |cpu| &cpu.segments));
            found.push(Sibling { cpu, of, seen, busy });
        }
    }
    found.sort_by_key(|sibling| sibling.cpu);
    found
}

fn busy(wakeup: &LateWakeup<'_>, segments: &[Segment]) -> String {
    let (from_ns, to_ns) = (wakeup.late.t_ns, wakeup.end_ns());
    let length =
        |segment: &Segment| (segment.to_ns.min(to_ns) - segment.from_ns.max(from_ns)).max(0);
    let within =
        |is: fn(&Segment) -> bool| segments.iter().filter(|it| is(it)).map(length).sum::<i64>();
    let whole_ns = (to_ns - from_ns).max(1);
    if within(|segment| !segment.is_unknown()) < whole_ns {
        return "not all of it recorded".into();
    }
    format!("busy {:.0}% of the time", within(is_busy) as f64 / whole_ns as f64 * 100.0)
}

fn is_busy(segment: &Segment) -> bool {
    let is_idle = segment.task.is_some_and(|task| task.pid == 0);
    segment.hard.is_some() || segment.softirq.is_some() || !(is_idle || segment.is_unknown())
}

//! The holder of the lock of a program for which one of its threads sleeps, and what keeps the
//! holder from letting it go.

use std::collections::HashMap;

use super::{
    Event, EventKind,
    contexts::{CurrentTask, ns},
    late_wakeup::LateWakeup,
    names,
    piece::{NamedCause, Piece},
    precedence::is_stopper,
};
use crate::{
    kernel::{futex, out},
    run::peaks::{Cause, HELD_BY, INVERSION},
};

const LET_GO: &str = "the task that woke it; who had the lock before is not in its memory";

/// A sleep of the thread for a lock.
struct LockSleep {
    from_ns: i64,
    /// When it was woken.
    to_ns: i64,
    /// Kind and address.
    lock: String,
    owner: u32,
    /// Only who let it go is known.
    is_inferred: bool,
    /// What the holder did, by time; each up to the next.
    holder: Vec<(i64, Holder)>,
}

/// What the holder does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    Runs,
    /// It is ready, and has not got this CPU.
    Ready(u32),
    Sleeps,
    Unknown,
}

/// Those of one cycle.
#[derive(Default)]
pub(super) struct LockSleeps(Vec<LockSleep>);

impl LockSleeps {
    /// Those of a thread; `events` are of all CPUs, by time.
    pub(super) fn of(tid: u32, events: &[Event]) -> Self {
        let begin = |(at, event): (usize, &Event)| match event.kind {
            EventKind::FutexWait { lock, owner } if event.pid == tid => {
                sleep(tid, &events[at..], (event.flags, lock, owner), events)
            }
            _ => None,
        };
        Self(events.iter().enumerate().filter_map(begin).collect())
    }

    fn at(&self, at_ns: i64) -> Option<&LockSleep> {
        self.0.iter().find(|sleep| (sleep.from_ns..sleep.to_ns).contains(&at_ns))
    }

    /// Where what the holder does changes, or who runs in its place, within the sleep at that time.
    pub(super) fn cuts(&self, wakeup: &LateWakeup<'_>, at_ns: i64, into: &mut Vec<i64>) {
        let Some(sleep) = self.at(at_ns) else { return };
        into.extend(sleep.holder.iter().map(|(at_ns, _)| *at_ns));
        for (_, state) in &sleep.holder {
            let Holder::Ready(cpu) = state else { continue };
            let segments = wakeup.cpus.get(cpu).map_or(&[][..], |cpu| &cpu.segments);
            let first = segments.partition_point(|one| one.to_ns <= sleep.from_ns);
            let within = segments[first..].iter().take_while(|one| one.from_ns < sleep.to_ns);
            into.extend(within.map(|segment| segment.from_ns));
        }
    }

    /// Why a piece of such a sleep passed; `None` for other sleeps.
    pub(super) fn why(
        &self,
        wakeup: &LateWakeup<'_>,
        piece: &Piece<'_>,
        tasks: &HashMap<u32, [u8; 16]>,
    ) -> Option<NamedCause> {
        let sleep = self.at(piece.span.from_ns)?;
        let owner =
            tasks.get(&sleep.owner).map_or_else(|| format!("task {}", sleep.owner), names::comm);
        let held = format!("{}{HELD_BY}{owner}", sleep.lock);
        let state = sleep.holder.iter().take_while(|(at_ns, _)| *at_ns <= piece.from_ns).last();
        let other = match state {
            Some((_, Holder::Ready(cpu))) => runs_on(wakeup, *cpu, piece.from_ns),
            _ => None,
        };
        let other = other.filter(|task| ![0, sleep.owner, wakeup.me.tid].contains(&task.pid));
        let name = match (other, state) {
            (Some(task), _) => preempted(wakeup, &held, &task),
            (None, Some((_, Holder::Sleeps))) => format!("{held}, asleep"),
            _ => held,
        };
        let task = match other {
            Some(task) => names::task(&task),
            None => format!("{owner}/{}", sleep.owner),
        };
        let why = NamedCause { task: Some(task), ..NamedCause::measured(Cause::Lock, name) };
        Some(if sleep.is_inferred { why.inferred_from(LET_GO) } else { why })
    }
}

/// An inversion only where the thread ranks above the task that runs.
fn preempted(wakeup: &LateWakeup<'_>, held: &str, task: &CurrentTask) -> String {
    let (me, other) = (wakeup.me, names::comm(&task.comm));
    let ranks_below = me.real_time && task.prio > me.prio && !is_stopper(task);
    let before = if ranks_below { INVERSION } else { "" };
    format!("{before}{held}, preempted by {other} ({})", names::priority(task.prio))
}

fn runs_on(wakeup: &LateWakeup<'_>, cpu: u32, at_ns: i64) -> Option<CurrentTask> {
    let segments = wakeup.cpus.get(&cpu).map_or(&[][..], |cpu| &cpu.segments);
    let at = segments.partition_point(|one| one.to_ns <= at_ns);
    segments.get(at).filter(|one| one.from_ns <= at_ns)?.task
}

/// The sleep that begins with the first of `rest`, which says so.
fn sleep(
    tid: u32,
    rest: &[Event],
    (kind, address, told): (u8, u64, u32),
    events: &[Event],
) -> Option<LockSleep> {
    let from_ns = ns(rest.first()?.at_ns);
    let waking = rest.iter().find_map(|event| match event.kind {
        EventKind::Waking { by, .. } if event.pid == tid => Some((ns(event.at_ns), by)),
        _ => None,
    });
    let (to_ns, by) = waking.unwrap_or((i64::MAX, 0));
    // A lock of another library has something else there: no task did anything under that number.
    let is_task = |pid: u32| {
        events
            .iter()
            .any(|event| event.pid == pid && matches!(event.kind, EventKind::Switch { .. }))
    };
    let is_told = told != 0 && told != tid && (told == by || is_task(told));
    let owner = if is_told { told } else { by };
    if owner == 0 {
        return None;
    }
    let word = match kind {
        futex::INHERITS => "PI mutex",
        futex::OWNED => "robust lock",
        _ => "lock",
    };
    let holder = follow(owner, events, from_ns, to_ns);
    let lock = format!("{word} {address:#x}");
    Some(LockSleep { from_ns, to_ns, lock, owner, is_inferred: !is_told, holder })
}

/// What a task did from then to then.
fn follow(owner: u32, events: &[Event], from_ns: i64, to_ns: i64) -> Vec<(i64, Holder)> {
    let mut current: HashMap<u32, u32> = HashMap::new();
    let mut found: Vec<(i64, Holder)> = vec![(i64::MIN, Holder::Unknown)];
    for event in events.iter().take_while(|event| ns(event.at_ns) < to_ns) {
        let is_mine = event.pid == owner;
        let before = found.last().map_or(Holder::Unknown, |(_, state)| *state);
        let now = match event.kind {
            EventKind::Switch { .. } => {
                let was = current.insert(event.cpu, event.pid);
                match (is_mine, was == Some(owner)) {
                    (true, _) => Some(Holder::Runs),
                    (false, true) if out::is_asleep(event.flags) => Some(Holder::Sleeps),
                    (false, true) => Some(Holder::Ready(event.cpu)),
                    (false, false) => None,
                }
            }
            EventKind::Waking { cpu, .. } if is_mine => Some(Holder::Ready(cpu)),
            EventKind::Migrate { to, .. } if is_mine && before != Holder::Sleeps => {
                Some(Holder::Ready(to))
            }
            _ => None,
        };
        let Some(now) = now else { continue };
        // The first that is seen of it shows what it did before.
        if let [(_, first)] = &mut found[..] {
            *first = match (event.kind, now) {
                (EventKind::Waking { .. }, _) => Holder::Sleeps,
                (EventKind::Switch { .. }, Holder::Runs) => Holder::Ready(event.cpu),
                _ => Holder::Unknown,
            };
        }
        found.push((ns(event.at_ns), now));
    }
    let first = found.iter().rposition(|(at_ns, _)| *at_ns <= from_ns).unwrap_or(0);
    found.split_off(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peaks::test_events::{at, flagged, futex_wait, switch, waking};

    const ME: u32 = 77;

    fn of(told: u32, kind: u8) -> (String, u32, bool) {
        let events = [
            (50, switch(600, 120, "owner")),
            (100, switch(ME, 9, "timer")),
            (300, flagged(kind, futex_wait(ME, 0x7f00, told))),
            (300, flagged(out::FUTEX, switch(600, 120, "owner"))),
            (800, waking(ME, 600)),
            (900, switch(ME, 9, "timer")),
        ];
        let events: Vec<Event> = events.iter().map(|(ns, event)| at(*ns, *event)).collect();
        let mut found = LockSleeps::of(ME, &events).0;
        assert_eq!(found.len(), 1);
        let LockSleep { from_ns, to_ns, lock, owner, is_inferred, holder } = found.remove(0);
        assert_eq!((from_ns, to_ns, holder), (300, 800, vec![(300, Holder::Runs)]));
        (lock, owner, is_inferred)
    }

    #[test]
    fn the_owner_is_the_one_in_the_memory_of_the_lock_or_else_who_let_it_go() {
        let is = |lock: &str, is_inferred| (format!("{lock} 0x7f00"), 600, is_inferred);
        assert_eq!(of(600, futex::PLAIN), is("lock", false));
        assert_eq!(of(600, futex::OWNED), is("robust lock", false));
        // None there, the thread itself, and a number without a task.
        for told in [0, ME, 12_345] {
            assert_eq!(of(told, futex::PLAIN), is("lock", true), "{told}");
        }
    }

    #[test]
    fn what_the_holder_did_before_its_first_event_follows_from_that() {
        let of = |events: &[(u64, Event)]| {
            let events: Vec<Event> = events.iter().map(|(ns, event)| at(*ns, *event)).collect();
            follow(600, &events, 300, 1_000)
        };
        let switched = of(&[(500, switch(600, 120, "owner"))]);
        assert_eq!(switched, [(i64::MIN, Holder::Ready(0)), (500, Holder::Runs)]);
        let woken = of(&[(500, waking(600, 9)), (600, switch(600, 120, "owner"))]);
        assert_eq!(woken[0], (i64::MIN, Holder::Sleeps));
        assert_eq!(of(&[]), [(i64::MIN, Holder::Unknown)]);
    }
}

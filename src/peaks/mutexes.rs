//! Mutexes with priority inheritance that the measured thread waited for in user space (futexes).
//!
//! The kernel has no event where such a wait begins or ends. What it has: it raises the owner's
//! priority to the thread's, where that is higher, then the thread is switched out asleep, or turns
//! in a loop on its CPU as long as the owner runs on another (`rtmutex_spin_on_owner`), and the
//! owner wakes it up. All of that has to be there.

use super::{Event, EventKind, contexts::ns, names};
use crate::kernel::out;

/// A wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MutexWait {
    /// From.
    pub from_ns: i64,
    /// Until it had the CPU again; of one that did not sleep, until the owner let go.
    pub until_ns: i64,
    /// Who had the mutex, as `name/pid`.
    pub owner: String,
}

impl MutexWait {
    /// Whether the thread waited then.
    pub(crate) fn is_at(&self, at_ns: i64) -> bool {
        (self.from_ns..self.until_ns).contains(&at_ns)
    }
}

/// How far a wait has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It has not slept yet.
    Begun,
    Asleep,
    /// Woken by the owner.
    LetGo,
}

/// Those of a thread, by time.
#[must_use]
pub(crate) fn mutexes(tid: u32, events: &[Event]) -> Vec<MutexWait> {
    let mut found = Vec::new();
    let (mut on_cpu, mut locks): (Option<u32>, u32) = (None, 0);
    let mut open: Option<(Step, u32, MutexWait)> = None;
    for event in events {
        let (at_ns, is_mine) = (ns(event.at_ns), event.pid == tid);
        match (event.kind, &mut open) {
            // A lock of the kernel's own has an event, and what follows is about that.
            (EventKind::LockBegin { .. }, _) if is_mine => locks += 1,
            (EventKind::LockEnd { .. }, _) if is_mine => locks = locks.saturating_sub(1),
            (EventKind::LockOwner { comm }, _) if locks == 0 && on_cpu == Some(event.cpu) => {
                let owner = format!("{}/{}", names::comm(&comm), event.pid);
                let wait = MutexWait { from_ns: at_ns, until_ns: i64::MAX, owner };
                open = Some((Step::Begun, event.pid, wait));
            }
            (EventKind::Switch { .. }, _) if is_mine => {
                on_cpu = Some(event.cpu);
                // Woken by another it has not got the mutex; it had slept for that or not.
                open = match open.take() {
                    Some((Step::LetGo, _, wait)) => {
                        found.push(MutexWait { until_ns: at_ns, ..wait });
                        None
                    }
                    Some((Step::Asleep, ..)) => None,
                    begun => begun,
                };
            }
            (EventKind::Switch { .. }, wait) if on_cpu == Some(event.cpu) => {
                on_cpu = None;
                if let Some((step, ..)) = wait
                    && out::is_asleep(event.flags)
                {
                    *step = Step::Asleep;
                }
            }
            (EventKind::Waking { by, .. }, Some((step, owner, wait)))
                if is_mine && by == *owner =>
            {
                match *step {
                    Step::Asleep => *step = Step::LetGo,
                    // It has the CPU.
                    Step::Begun if on_cpu.is_some() => {
                        found.push(MutexWait { until_ns: at_ns, ..wait.clone() });
                        open = None;
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peaks::test_events::{at, flagged, lock, lock_end, lock_owner, on, switch, waking};

    const ME: u32 = 77;

    fn spans(events: &[(u64, Event)]) -> Vec<(i64, i64, String)> {
        let events: Vec<Event> = events.iter().map(|(ns, event)| at(*ns, *event)).collect();
        let waits = mutexes(ME, &events).into_iter();
        waits.map(|wait| (wait.from_ns, wait.until_ns, wait.owner)).collect()
    }

    fn wait(out: u8, by: u32) -> Vec<(u64, Event)> {
        vec![
            (100, switch(ME, 9, "timer")),
            (200, lock_owner(600, "owner")),
            (300, flagged(out, switch(600, 9, "owner"))),
            (800, waking(ME, by)),
            (900, switch(ME, 9, "timer")),
        ]
    }

    #[test]
    fn a_mutex_is_waited_for_from_where_its_owner_is_raised_until_the_owner_wakes_the_thread() {
        let owner = || "owner/600".to_owned();
        assert_eq!(spans(&wait(out::SLEEPING, 600)), [(200, 900, owner())]);
        // Preempted first.
        let mut events = wait(out::SLEEPING, 600);
        let preempted = (210, flagged(out::PREEMPTED, switch(700, 1, "hog")));
        events.splice(2..2, [preempted, (250, switch(ME, 9, "timer"))]);
        assert_eq!(spans(&events), [(200, 900, owner())]);
    }

    #[test]
    fn as_long_as_the_owner_runs_elsewhere_the_thread_waits_on_its_cpu() {
        let mut events = wait(out::SLEEPING, 600);
        events.truncate(2);
        events.extend([(800, on(1, waking(ME, 600))), (900, flagged(1, switch(0, 120, "idle")))]);
        assert_eq!(spans(&events), [(200, 800, "owner/600".to_owned())]);
        events[2].1 = on(1, waking(ME, 500));
        assert_eq!(spans(&events), [], "somebody else woke it");
    }

    #[test]
    fn what_does_not_have_all_of_that_is_no_wait_for_a_mutex() {
        let none: [(i64, i64, String); 0] = [];
        assert_eq!(spans(&wait(out::SLEEPING, 500)), none, "somebody else woke it");
        assert_eq!(spans(&wait(out::PREEMPTED, 600)), none, "it did not sleep");
        let mut elsewhere = wait(out::SLEEPING, 600);
        elsewhere[1].1 = on(1, elsewhere[1].1);
        assert_eq!(spans(&elsewhere), none, "the owner of what a thread on another CPU wants");
        let mut kernels = wait(out::SLEEPING, 600);
        kernels.insert(1, (150, lock(ME)));
        kernels.push((950, lock_end(ME)));
        assert_eq!(spans(&kernels), none, "a lock of the kernel's, which has its own events");
    }
}

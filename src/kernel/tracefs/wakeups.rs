//! The wake-ups of the measured threads, out of the events of all CPUs in the order of time: the
//! same rules as those of the BPF programs, which see each event as it happens.

use std::collections::{HashMap, VecDeque};

use super::decoder::{Timed, TraceEvent};
use crate::kernel::{
    event::{Event, EventKind},
    event_flags::vector,
};

/// The softirq in which timers expire.
const HRTIMER_SOFTIRQ: u32 = 8;
/// Timers that are programmed and whose expiry is not forgotten.
const MOST_TIMERS: usize = 1 << 16;
/// Wake-ups of a thread that wait for their sample.
const MOST_WAKEUPS: usize = 1 << 14;

/// One wake-up of a measured thread by its timer. Times are `CLOCK_MONOTONIC` ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerWakeup {
    /// When the timer was due.
    pub expires_ns: u64,
    /// The interrupt began; the callback, where that was not seen.
    pub entry_ns: u64,
    /// The timer's callback began.
    pub callback_ns: u64,
    /// Whether that was in a softirq.
    pub in_softirq: bool,
    /// The thread was made runnable.
    pub waking_ns: u64,
    /// It was switched in.
    pub switch_ns: u64,
    /// The CPU on which it was woken, and that on which it was switched in.
    pub cpus: (u32, u32),
}

/// A timer whose callback began on a CPU and has woken no measured thread yet.
#[derive(Debug, Clone, Copy)]
struct Expired {
    expires_ns: u64,
    entry_ns: u64,
    callback_ns: u64,
}

#[derive(Debug, Default)]
struct CpuState {
    /// The last interrupt that may be of a timer.
    entry_ns: u64,
    /// That which raised the softirq of timers, and when it did.
    raised_ns: u64,
    raised_at_ns: u64,
    in_interrupt: bool,
    in_softirq: bool,
    hard: Option<Expired>,
    soft: Option<Expired>,
}

#[derive(Debug, Default)]
struct ThreadState {
    pending: Option<TimerWakeup>,
    /// Whole ones, the oldest first.
    done: VecDeque<TimerWakeup>,
}

/// What is known of all of them.
#[derive(Debug, Default)]
pub(super) struct Wakeups {
    threads: HashMap<u32, usize>,
    states: Vec<ThreadState>,
    cpus: Vec<CpuState>,
    timers: HashMap<u64, u64>,
    /// Whether timers have a separate interrupt vector; else that of any line may be one.
    has_vector: bool,
    /// Whether timers may expire in a softirq.
    has_soft_timers: bool,
}

impl Wakeups {
    /// Of these threads, by their numbers in the kernel.
    #[must_use]
    pub(super) fn new(tids: &[u32], has_vector: bool, has_soft_timers: bool) -> Self {
        Self {
            threads: tids.iter().enumerate().map(|(number, tid)| (*tid, number)).collect(),
            states: tids.iter().map(|_| ThreadState::default()).collect(),
            has_vector,
            has_soft_timers,
            ..Self::default()
        }
    }

    /// The next event of `cpu`, and when its timer is due where it is the expiry of one.
    pub(super) fn take(&mut self, cpu: u32, timed: &Timed) -> Option<u64> {
        let Timed { at_ns, event } = *timed;
        match event {
            TraceEvent::TimerStart { timer, expires_ns } => {
                if self.timers.len() >= MOST_TIMERS {
                    self.timers.clear();
                }
                self.timers.insert(timer, expires_ns);
                None
            }
            TraceEvent::TimerExpires { timer, .. } => {
                // Without its start its expiry is not known: nothing matches it.
                let expires_ns = self.timers.get(&timer).copied().unwrap_or(0);
                self.expire(cpu, expires_ns, at_ns);
                Some(expires_ns)
            }
            TraceEvent::Lost => {
                self.lost(cpu);
                None
            }
            TraceEvent::SoftirqRaise { vector } => {
                let state = self.cpu(cpu);
                if vector == HRTIMER_SOFTIRQ {
                    (state.raised_ns, state.raised_at_ns) = (state.entry_ns, at_ns);
                }
                None
            }
            TraceEvent::Event(event) => {
                self.take_event(cpu, &event);
                None
            }
        }
    }

    fn take_event(&mut self, cpu: u32, event: &Event) {
        let at_ns = event.at_ns;
        match event.kind {
            EventKind::VectorEntry { vector: vector::LOCAL_TIMER, .. } => {
                let state = self.cpu(cpu);
                (state.entry_ns, state.in_interrupt) = (at_ns, true);
            }
            EventKind::VectorExit { vector: vector::LOCAL_TIMER } => {
                self.cpu(cpu).in_interrupt = false;
            }
            EventKind::IrqEntry { .. } if !self.has_vector => self.cpu(cpu).entry_ns = at_ns,
            EventKind::SoftirqEntry { vector: HRTIMER_SOFTIRQ } => self.cpu(cpu).in_softirq = true,
            EventKind::SoftirqExit { vector: HRTIMER_SOFTIRQ } => self.cpu(cpu).in_softirq = false,
            EventKind::Waking { by, .. } => self.wake(cpu, event, by),
            EventKind::Switch { .. } => self.switch_in(cpu, event),
            _ => {}
        }
    }

    fn cpu(&mut self, cpu: u32) -> &mut CpuState {
        let cpu = cpu as usize;
        if self.cpus.len() <= cpu {
            self.cpus.resize_with(cpu + 1, CpuState::default);
        }
        &mut self.cpus[cpu]
    }

    fn expire(&mut self, cpu: u32, expires_ns: u64, at_ns: u64) {
        let has_soft_timers = self.has_soft_timers;
        let state = self.cpu(cpu);
        let is_soft = has_soft_timers && state.in_softirq && !state.in_interrupt;
        // Interrupts of timers that are not the CPU's own have no event: then what came last was
        // before the timer was due. So it is where another clock than the trace's was programmed.
        let came = |entry_ns: &u64| *entry_ns >= expires_ns || expires_ns > at_ns;
        let entry_ns = match is_soft {
            true => [state.raised_ns, state.raised_at_ns].into_iter().find(came),
            false => Some(state.entry_ns).filter(came),
        };
        let entry_ns = entry_ns.unwrap_or(if is_soft { expires_ns } else { at_ns });
        let expired = Some(Expired { expires_ns, entry_ns, callback_ns: at_ns });
        match is_soft {
            true => state.soft = expired,
            false => state.hard = expired,
        }
    }

    /// One callback wakes one measured thread: where that timer has woken one already, somebody
    /// else wakes this one, such as the owner of a lock.
    fn wake(&mut self, cpu: u32, event: &Event, by: u32) {
        let Some(&number) = self.threads.get(&event.pid) else { return };
        let state = self.cpu(cpu);
        let called_ns = |expired: &Option<Expired>| expired.map_or(0, |one| one.callback_ns);
        let in_softirq = called_ns(&state.soft) > called_ns(&state.hard);
        let expired = if in_softirq { state.soft.take() } else { state.hard.take() };
        let Some(Expired { expires_ns, entry_ns, callback_ns }) = expired else { return };
        let waking_ns = event.at_ns;
        let wakeup = TimerWakeup {
            expires_ns,
            entry_ns,
            callback_ns,
            in_softirq,
            waking_ns,
            switch_ns: waking_ns,
            cpus: (cpu, cpu),
        };
        let Some(thread) = self.states.get_mut(number) else { return };
        // One whose switch was not seen is not known: what the thread did meanwhile is not, either.
        thread.pending = None;
        // Woken on its way to sleep: it keeps the CPU, and no switch follows.
        match by == event.pid {
            true => thread.finish(wakeup),
            false => thread.pending = Some(wakeup),
        }
    }

    fn switch_in(&mut self, cpu: u32, event: &Event) {
        let Some(&number) = self.threads.get(&event.pid) else { return };
        let Some(thread) = self.states.get_mut(number) else { return };
        if let Some(wakeup) = thread.pending.take() {
            let cpus = (wakeup.cpus.0, cpu);
            thread.finish(TimerWakeup { switch_ns: event.at_ns, cpus, ..wakeup });
        }
    }

    /// Forgets which activity had begun on `cpu`, and which task was switched in there.
    fn lost(&mut self, cpu: u32) {
        *self.cpu(cpu) = CpuState::default();
        for thread in &mut self.states {
            thread.pending = None;
        }
    }

    /// The wake-up of thread `number` from an expiry between `from_ns` and `within_ns` after it,
    /// which the thread had run after at `to_ns`; those before it are forgotten.
    pub(super) fn matching(
        &mut self,
        number: usize,
        (from_ns, within_ns): (u64, u64),
        to_ns: u64,
    ) -> Option<TimerWakeup> {
        let done = &mut self.states.get_mut(number)?.done;
        while let Some(first) = done.front() {
            if first.expires_ns >= from_ns || first.waking_ns >= from_ns {
                break;
            }
            done.pop_front();
        }
        let is_it = |one: &&TimerWakeup| {
            let after_ns = one.expires_ns.wrapping_sub(from_ns);
            after_ns <= within_ns && one.switch_ns <= to_ns
        };
        done.iter().find(is_it).copied()
    }
}

impl ThreadState {
    fn finish(&mut self, wakeup: TimerWakeup) {
        if self.done.len() >= MOST_WAKEUPS {
            self.done.pop_front();
        }
        self.done.push_back(wakeup);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMER: u64 = 0xffff_8000;

    fn plain(at_ns: u64, cpu: u32, pid: u32, kind: EventKind) -> Timed {
        let event = Event { at_ns, cpu, prio: 9, pid, flags: 0, kind };
        Timed { at_ns, event: TraceEvent::Event(event) }
    }

    fn entry(at_ns: u64, cpu: u32) -> (u32, Timed) {
        let kind = EventKind::VectorEntry { vector: vector::LOCAL_TIMER, address: 0 };
        (cpu, plain(at_ns, cpu, 0, kind))
    }

    fn expires(at_ns: u64, cpu: u32) -> (u32, Timed) {
        let event = TraceEvent::TimerExpires { timer: TIMER, callback: 1 };
        (cpu, Timed { at_ns, event })
    }

    fn waking(at_ns: u64, cpu: u32, by: u32) -> (u32, Timed) {
        (cpu, plain(at_ns, cpu, 7, EventKind::Waking { by, cpu }))
    }

    fn switch(at_ns: u64, cpu: u32) -> (u32, Timed) {
        (cpu, plain(at_ns, cpu, 7, EventKind::Switch { comm: [0; 16], ahead: None }))
    }

    fn start(expires_ns: u64) -> (u32, Timed) {
        (0, Timed { at_ns: 1, event: TraceEvent::TimerStart { timer: TIMER, expires_ns } })
    }

    fn after(events: &[(u32, Timed)]) -> Wakeups {
        let mut wakeups = Wakeups::new(&[3, 7], true, false);
        for (cpu, event) in events {
            wakeups.take(*cpu, event);
        }
        wakeups
    }

    #[test]
    fn a_wakeup_is_followed_from_its_timer_to_its_switch_on_another_cpu() {
        let events = [start(100), entry(110, 0), expires(120, 0), waking(130, 0, 0)];
        let mut wakeups = after(&[&events[..], &[switch(150, 2)]].concat());
        let found = wakeups.matching(1, (100, 0), 200).unwrap();
        let times = [found.expires_ns, found.entry_ns, found.callback_ns, found.waking_ns];
        assert_eq!((times, found.switch_ns, found.cpus), ([100, 110, 120, 130], 150, (0, 2)));
        assert_eq!(wakeups.matching(1, (100, 0), 149), None, "it had not run by then");
        assert_eq!(wakeups.matching(1, (99, 0), 200), None, "another expiry");
        assert!(wakeups.matching(1, (99, 1), 200).is_some(), "within a nanosecond");
        assert_eq!(wakeups.matching(0, (100, 0), 200), None, "another thread");
    }

    #[test]
    fn a_wakeup_whose_switch_was_not_seen_is_not_known_and_the_next_one_is() {
        let events = [start(100), entry(110, 0), expires(120, 0), waking(130, 0, 0)];
        let more = [start(1100), entry(1110, 0), expires(1120, 0), waking(1130, 0, 0)];
        let mut wakeups = after(&[&events[..], &more[..], &[switch(1150, 0)]].concat());
        assert_eq!(wakeups.matching(1, (100, 0), 500), None);
        assert_eq!(wakeups.matching(1, (1100, 0), 1200).unwrap().switch_ns, 1150);
    }

    #[test]
    fn an_interrupt_that_no_event_tells_of_begins_at_the_callback_at_the_latest() {
        let of = |before: &[(u32, Timed)]| {
            let events = [start(100), expires(120, 0), waking(130, 0, 0), switch(150, 0)];
            after(&[before, &events[..]].concat()).matching(1, (100, 0), 200).unwrap().entry_ns
        };
        assert_eq!([of(&[]), of(&[entry(50, 0)]), of(&[entry(110, 0)])], [120, 120, 110]);
    }

    #[test]
    fn who_is_woken_on_its_way_to_sleep_keeps_the_cpu() {
        let mut wakeups = after(&[start(100), entry(110, 0), expires(120, 0), waking(130, 0, 7)]);
        assert_eq!(wakeups.matching(1, (100, 0), 200).unwrap().switch_ns, 130);
    }

    #[test]
    fn a_timer_wakes_one_thread_and_lost_events_leave_nothing_half() {
        let events = [start(100), entry(110, 0), expires(120, 0), waking(130, 0, 0)];
        let again = [switch(140, 0), waking(160, 0, 5), switch(170, 0)];
        let mut wakeups = after(&[&events[..], &again[..]].concat());
        assert_eq!(wakeups.matching(1, (100, 0), 200).unwrap().switch_ns, 140);
        let lost = (1, Timed { at_ns: 140, event: TraceEvent::Lost });
        let mut wakeups = after(&[&events[..], &[lost, switch(150, 0)]].concat());
        assert_eq!(wakeups.matching(1, (100, 0), 200), None);
    }

    #[test]
    fn a_timer_that_expires_in_a_softirq_has_the_interrupt_that_raised_it() {
        let mut wakeups = Wakeups::new(&[7], true, true);
        let soft = |at_ns, kind| (0, plain(at_ns, 0, 0, kind));
        let raise = TraceEvent::SoftirqRaise { vector: HRTIMER_SOFTIRQ };
        let exit = EventKind::VectorExit { vector: vector::LOCAL_TIMER };
        let events = [
            start(100),
            entry(110, 0),
            (0, Timed { at_ns: 115, event: raise }),
            soft(120, exit),
            entry(130, 0),
            soft(131, exit),
            soft(140, EventKind::SoftirqEntry { vector: HRTIMER_SOFTIRQ }),
            expires(150, 0),
            waking(160, 0, 0),
            switch(170, 0),
        ];
        for (cpu, event) in &events {
            wakeups.take(*cpu, event);
        }
        let found = wakeups.matching(0, (100, 0), 200).unwrap();
        assert_eq!((found.entry_ns, found.callback_ns, found.in_softirq), (110, 150, true));
    }
}

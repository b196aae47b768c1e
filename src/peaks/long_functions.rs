//! Which function a CPU was in, within a softirq, an interrupt or a kworker's turn: of those that
//! took long, from its events.
//!
//! Timers of the timer wheel, tasklets, polls, kworkers' work and calls from other CPUs are
//! recorded at their end. Of the functions of high-resolution timers only the begin is recorded:
//! each counts until the next one begins, or its interrupt or softirq ends.

use super::{
    Event, EventKind,
    contexts::{HardirqSource, Segment, ns},
};
use crate::kernel::{function, vector};

/// Numbers of softirqs, as in `/proc/softirqs`.
pub(super) mod softirq {
    pub(in crate::peaks) const HI: u32 = 0;
    pub(in crate::peaks) const TIMER: u32 = 1;
    pub(in crate::peaks) const NET_RX: u32 = 3;
    pub(in crate::peaks) const TASKLET: u32 = 6;
    pub(in crate::peaks) const HRTIMER: u32 = 8;
}

/// What a function runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The timer's interrupt.
    TimerInterrupt,
    /// The interrupt by which another CPU asks for a call.
    Call,
    /// This softirq.
    Softirq(u32),
    /// The softirq HI or TASKLET; these also run works.
    Tasklet,
    /// This task, a kworker.
    Work(u32),
}

impl Place {
    /// Whether a CPU that is in this segment may be there.
    fn has(self, segment: &Segment) -> bool {
        match (segment.hard, segment.softirq) {
            (Some(HardirqSource::Vector(number)), _) => match self {
                Self::TimerInterrupt => number == vector::LOCAL_TIMER,
                Self::Call => {
                    [vector::CALL_FUNCTION, vector::CALL_FUNCTION_SINGLE].contains(&number)
                }
                _ => false,
            },
            (Some(HardirqSource::Irq { .. }), _) => false,
            (None, Some(number)) => match self {
                Self::Softirq(own) => own == number,
                Self::Tasklet => is_tasklet(number),
                _ => false,
            },
            (None, None) => match self {
                Self::Work(pid) => segment.task.is_some_and(|task| task.pid == pid),
                _ => false,
            },
        }
    }
}

/// What names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkSource {
    /// The function at this address.
    Function(u64),
    /// A network device.
    Device {
        /// Its name, padded with zeros.
        name: [u8; 16],
        /// Packets of one poll.
        packets: i16,
        /// How many it may have had; 255 for more.
        budget: u8,
    },
}

/// A span in which a CPU was in one function, but for what interrupted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LongFunction {
    /// From; `CLOCK_MONOTONIC` ns.
    pub from_ns: i64,
    /// Up to.
    pub to_ns: i64,
    /// In what.
    pub place: Place,
    /// Which.
    pub work: WorkSource,
    /// The latest end of it and all that began before it.
    latest_ns: i64,
}

/// The last to begin of these, by beginning, that the CPU was in from `from_ns` to `to_ns`, all of
/// which lies in `segment`.
#[must_use]
pub(crate) fn spanning<'a>(
    functions: &'a [LongFunction],
    (from_ns, to_ns): (i64, i64),
    segment: &Segment,
) -> Option<&'a LongFunction> {
    let begun = functions.partition_point(|one| one.from_ns <= from_ns);
    let mut before = functions[..begun].iter().rev().take_while(|one| one.latest_ns >= to_ns);
    before.find(|one| one.spans(from_ns, to_ns, segment))
}

impl LongFunction {
    /// Whether the CPU was in it from `from_ns` to `to_ns`, all of which lies in `segment`.
    #[must_use]
    fn spans(&self, from_ns: i64, to_ns: i64, segment: &Segment) -> bool {
        self.from_ns <= from_ns && to_ns <= self.to_ns && self.place.has(segment)
    }
}

fn is_tasklet(vector: u32) -> bool {
    [softirq::HI, softirq::TASKLET].contains(&vector)
}

/// Those of one CPU that took long; `events` are its own, by time.
#[must_use]
pub(crate) fn long_functions(events: &[Event]) -> Vec<LongFunction> {
    let mut timers = Timers::default();
    for event in events {
        timers.follow(event);
    }
    let mut found = timers.found;
    let mut softirqs = OpenSoftirq::default();
    found.extend(events.iter().filter_map(|event| {
        softirqs.follow(event);
        ended(event).map(|one| softirqs.place(one))
    }));
    found.retain(|one| one.to_ns - one.from_ns >= function::LONG_NS);
    found.sort_by_key(|one| one.from_ns);
    let mut latest_ns = i64::MIN;
    for one in &mut found {
        latest_ns = latest_ns.max(one.to_ns);
        one.latest_ns = latest_ns;
    }
    found
}

/// The softirq that a CPU is in, and since when, as far as that is sure.
#[derive(Debug, Default)]
struct OpenSoftirq(Option<(u32, i64)>);

impl OpenSoftirq {
    fn follow(&mut self, event: &Event) {
        match event.kind {
            EventKind::SoftirqEntry { vector } => self.0 = Some((vector, ns(event.at_ns))),
            // On PREEMPT_RT a task that is in one may be preempted.
            EventKind::SoftirqExit { .. } | EventKind::Switch { .. } => self.0 = None,
            _ => {}
        }
    }

    /// A work that began and ended in the softirq of tasklets ran there; the task of its event is
    /// the one that was interrupted.
    fn place(&self, one: LongFunction) -> LongFunction {
        let is_within = self.0.is_some_and(|(vector, since)| {
            matches!(one.place, Place::Work(_)) && is_tasklet(vector) && since <= one.from_ns
        });
        if is_within { LongFunction { place: Place::Tasklet, ..one } } else { one }
    }
}

/// A function of which the end was recorded.
fn ended(event: &Event) -> Option<LongFunction> {
    let to_ns = ns(event.at_ns);
    let (took_ns, place, work) = match event.kind {
        EventKind::Poll { took_ns, device, packets, budget } => {
            let work = WorkSource::Device { name: device, packets, budget };
            (u64::from(took_ns), Place::Softirq(softirq::NET_RX), work)
        }
        EventKind::Function { took_ns, address } => {
            let place = match event.flags {
                function::TIMER => Place::Softirq(softirq::TIMER),
                function::TASKLET => Place::Tasklet,
                function::POLL => Place::Softirq(softirq::NET_RX),
                function::WORK => Place::Work(event.pid),
                function::CALL => Place::Call,
                _ => return None,
            };
            (took_ns, place, WorkSource::Function(address))
        }
        _ => return None,
    };
    let from_ns = to_ns.saturating_sub(ns(took_ns));
    Some(LongFunction { from_ns, to_ns, place, work, latest_ns: to_ns })
}

/// The functions of high-resolution timers, from begin to begin.
#[derive(Debug, Default)]
struct Timers {
    /// The timer's interrupt has the CPU, and the softirq of timers lies below it or has the CPU.
    in_interrupt: bool,
    in_softirq: bool,
    /// Since when, and the address of the function.
    interrupt: Option<(i64, u64)>,
    softirq: Option<(i64, u64)>,
    found: Vec<LongFunction>,
}

impl Timers {
    fn follow(&mut self, event: &Event) {
        let at_ns = ns(event.at_ns);
        match event.kind {
            EventKind::Timer { callback, .. } if self.in_interrupt => {
                self.end_interrupt(at_ns);
                self.interrupt = Some((at_ns, callback));
            }
            EventKind::Timer { callback, .. } if self.in_softirq => {
                self.end_softirq(at_ns);
                self.softirq = Some((at_ns, callback));
            }
            EventKind::VectorEntry { vector: vector::LOCAL_TIMER, .. } => {
                // The end of the one before was lost.
                (self.in_interrupt, self.interrupt) = (true, None);
            }
            EventKind::VectorExit { vector: vector::LOCAL_TIMER } => {
                self.end_interrupt(at_ns);
                self.in_interrupt = false;
            }
            EventKind::SoftirqEntry { vector } => {
                (self.in_interrupt, self.interrupt, self.softirq) = (false, None, None);
                self.in_softirq = vector == softirq::HRTIMER;
            }
            EventKind::SoftirqExit { .. } => {
                (self.in_interrupt, self.interrupt) = (false, None);
                self.end_softirq(at_ns);
                self.in_softirq = false;
            }
            EventKind::Switch { .. } => {
                let found = std::mem::take(&mut self.found);
                // Where a task runs the softirq, it is not known whether it continues.
                *self = Self { found, ..Self::default() };
            }
            _ => {}
        }
    }

    fn end_interrupt(&mut self, at_ns: i64) {
        let ended = self.interrupt.take();
        self.end(ended, at_ns, Place::TimerInterrupt);
    }

    fn end_softirq(&mut self, at_ns: i64) {
        let ended = self.softirq.take();
        self.end(ended, at_ns, Place::Softirq(softirq::HRTIMER));
    }

    fn end(&mut self, ended: Option<(i64, u64)>, to_ns: i64, place: Place) {
        if let Some((from_ns, address)) = ended {
            let work = WorkSource::Function(address);
            self.found.push(LongFunction { from_ns, to_ns, place, work, latest_ns: to_ns });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peaks::test_events::{
        at, callback, function_end, poll_end, softirq, softirq_end, switch, vector, vector_end,
    };

    /// From, up to, in what, and the address.
    fn shapes(events: &[Event]) -> Vec<(i64, i64, Place, u64)> {
        let address = |work| match work {
            WorkSource::Function(address) => address,
            WorkSource::Device { .. } => 0,
        };
        let shape = |one: &LongFunction| (one.from_ns, one.to_ns, one.place, address(one.work));
        long_functions(events).iter().map(shape).collect()
    }

    #[test]
    fn what_ended_began_as_long_before_as_it_took() {
        let events = [
            at(90_000, function_end(function::TIMER, 7, 40_000, 0x10)),
            at(95_000, poll_end("eth0", 5_000)),
            at(99_000, function_end(function::WORK, 8, 9_000, 0x20)),
            at(99_500, function_end(77, 8, 9_000, 0x30)),
        ];
        let expected = [
            (50_000, 90_000, Place::Softirq(1), 0x10),
            (90_000, 95_000, Place::Softirq(3), 0),
            (90_000, 99_000, Place::Work(8), 0x20),
        ];
        assert_eq!(shapes(&events), expected);
    }

    #[test]
    fn a_timers_function_ends_with_the_next_or_with_its_interrupt() {
        let events = [
            at(10_000, vector(1, 0, 0)),
            at(11_000, callback(0x10)),
            at(21_000, callback(0x20)),
            at(22_000, callback(0x30)),
            at(40_000, vector_end(1)),
            // No interrupt's, as far as is known.
            at(41_000, callback(0x40)),
            at(90_000, vector(1, 0, 0)),
        ];
        let expected = [
            (11_000, 21_000, Place::TimerInterrupt, 0x10),
            (22_000, 40_000, Place::TimerInterrupt, 0x30),
        ];
        assert_eq!(shapes(&events), expected, "0x20 took too little");
    }

    #[test]
    fn a_timers_function_in_a_softirq_goes_on_after_an_interrupt_and_is_lost_at_a_switch() {
        let events = [
            at(10_000, softirq(8)),
            at(11_000, callback(0x10)),
            at(15_000, vector(1, 0, 0)),
            at(16_000, callback(0x20)),
            at(30_000, vector_end(1)),
            at(50_000, softirq_end(8)),
            at(60_000, softirq(8)),
            at(61_000, callback(0x30)),
            at(70_000, switch(9, 50, "other")),
            at(90_000, softirq_end(8)),
        ];
        let expected = [
            (11_000, 50_000, Place::Softirq(8), 0x10),
            (16_000, 30_000, Place::TimerInterrupt, 0x20),
        ];
        assert_eq!(shapes(&events), expected);
    }

    #[test]
    fn a_function_is_only_in_what_it_runs_in() {
        let segment = |softirq, hard| {
            let (from_ns, to_ns, task, idle_state) = (0, 100, None, None);
            Segment { from_ns, to_ns, task, softirq, hard, idle_state }
        };
        let timer = segment(None, Some(HardirqSource::Vector(vector::LOCAL_TIMER)));
        let line = segment(Some(1), Some(HardirqSource::Irq { line: 9, action: [0; 16] }));
        assert!(Place::TimerInterrupt.has(&timer) && !Place::Call.has(&timer));
        assert!(!Place::Softirq(1).has(&line), "the line interrupted it");
        assert!(Place::Softirq(1).has(&segment(Some(1), None)));
        assert!(Place::Tasklet.has(&segment(Some(6), None)) && !Place::Tasklet.has(&line));
        assert!(!Place::Work(5).has(&segment(Some(6), None)), "a softirq interrupted it");
        assert!(!Place::Work(5).has(&segment(None, None)), "no task is known");
    }
}

//! What the programs recorded, typed; `recorder.h` defines each.

use super::{
    event_flags::{RunsAhead, out, vector},
    header,
};

/// One event of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// `CLOCK_MONOTONIC` ns.
    pub at_ns: u64,
    /// The CPU that recorded it.
    pub cpu: u32,
    /// The kernel's priority of the task it is about: -1 deadline, 0 to 98 real-time (98 is
    /// FIFO 1), 100 to 139 fair; 0 where it is about none.
    pub prio: i16,
    /// The task it is about, 0 where it is about none.
    pub pid: u32,
    /// Depends on the kind.
    pub flags: u8,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The task was switched in; `flags`: why the one before was switched out, see [`super::out`].
    Switch {
        /// Its name, padded with zeros.
        comm: [u8; 16],
        /// What lets it run before real-time tasks, if something does.
        ahead: Option<RunsAhead>,
    },
    /// The task was made runnable; `flags`: see [`super::woken`].
    Waking {
        /// The task that ran on the CPU.
        by: u32,
        /// Where the woken one ran last, and will run if it stays.
        cpu: u32,
    },
    /// The task was moved.
    Migrate {
        /// From this CPU.
        from: u32,
        /// To this one.
        to: u32,
    },
    /// The handler of an interrupt line begins.
    IrqEntry {
        /// As in /proc/interrupts.
        line: u32,
        /// Its name, padded with zeros, as far as it fits; all zeros if it is not known.
        action: [u8; 16],
    },
    /// And ends.
    IrqExit {
        /// As in /proc/interrupts.
        line: u32,
    },
    /// A softirq begins.
    SoftirqEntry {
        /// 0 to 9, as in /proc/softirqs.
        vector: u32,
    },
    /// And ends.
    SoftirqExit {
        /// 0 to 9, as in /proc/softirqs.
        vector: u32,
    },
    /// An interrupt without a line begins; `flags`: see [`super::entry`].
    VectorEntry {
        /// See [`super::vector`].
        vector: u32,
        /// The interrupted instruction; 0 where not known.
        address: u64,
    },
    /// And ends.
    VectorExit {
        /// See [`super::vector`].
        vector: u32,
    },
    /// A timer's callback begins.
    Timer {
        /// When it was due, by the timer's own clock.
        expires_ns: u64,
        /// Address of the callback.
        callback: u64,
    },
    /// The CPU enters an idle state, or leaves it.
    Idle {
        /// [`Event::NOT_IDLE`] when it leaves.
        state: u32,
    },
    /// The task sent an interrupt to another CPU.
    Ipi {
        /// That CPU.
        to: u32,
        /// Address of what is called there; 0 where it only asks for a switch of tasks.
        callback: u64,
    },
    /// The task sent an interrupt to several CPUs, some of which are these; `flags`: n.
    IpiMask {
        /// Those of the CPUs from 64 n on, a bit each.
        cpus: u64,
        /// As of one CPU.
        callback: u64,
    },
    /// A measured thread faulted.
    PageFault {
        /// The address that it accessed.
        address: u64,
        /// The instruction that did.
        instruction: u64,
    },
    /// An NMI's handler ended.
    Nmi {
        /// How long it took.
        took_ns: u64,
        /// Its address.
        handler: u64,
    },
    /// The hypervisor took time from this CPU.
    Steal {
        /// How much.
        ns: u64,
        /// When the kernel's counter was read before.
        since_ns: u64,
    },
    /// A measured thread begins to wait for a lock.
    LockBegin {
        /// Its address.
        lock: u64,
        /// 1 spinning, 2 reading, 4 writing, 8 real-time, 16 per CPU, 32 mutex.
        flags: u64,
    },
    /// And has acquired it, or has given up.
    LockEnd {
        /// Its address.
        lock: u64,
    },
    /// The task has the lock for which the measured thread on this CPU is about to wait, and gets
    /// its priority; [`Event::prio`] is its own.
    LockOwner {
        /// Its name, padded with zeros.
        comm: [u8; 16],
    },
    /// The task, a measured thread, leaves its CPU to wait for a lock of its program; `flags`: see
    /// [`super::futex`].
    FutexWait {
        /// Its address.
        lock: u64,
        /// The thread that has it, as its memory says; 0 where it does not.
        owner: u32,
    },
    /// The task, of this CPU, has another priority from now on, [`Event::prio`]: that of a waiter
    /// for its lock, or its own again. Another CPU may have recorded it.
    Priority {
        /// The task that gave it.
        by: u32,
    },
    /// A stack was walked, beginning at this time; `flags`: see [`super::why`].
    Stack {
        /// For [`super::EventReader::stack`].
        number: u64,
        /// How long the walk took.
        took_ns: u64,
    },
    /// A function ended that took long; the task is the one it ran in; `flags`: see
    /// [`super::function`].
    Function {
        /// How long it took.
        took_ns: u64,
        /// Its address.
        address: u64,
    },
    /// The poll of a network device ended that took long.
    Poll {
        /// How long it took.
        took_ns: u32,
        /// The device's name, padded with zeros.
        device: [u8; 16],
        /// Packets that it handled.
        packets: i16,
        /// How many it may handle at most; 255 for more.
        budget: u8,
    },
}

impl Event {
    /// The idle state of a CPU that is not idle.
    pub const NOT_IDLE: u32 = u32::MAX;

    /// Where this sends an interrupt to `cpu`: the address of what is called there, 0 where it only
    /// asks for a switch of tasks.
    #[must_use]
    pub fn sends_to(&self, cpu: u32) -> Option<u64> {
        match self.kind {
            EventKind::Ipi { to, callback } if to == cpu => Some(callback),
            EventKind::IpiMask { callback, .. } if self.recipients().any(|to| to == cpu) => {
                Some(callback)
            }
            _ => None,
        }
    }

    /// The CPUs to which this sends an interrupt.
    pub fn recipients(&self) -> impl Iterator<Item = u32> + use<> {
        let (first, cpus) = match self.kind {
            EventKind::Ipi { to, .. } => (to, 1),
            EventKind::IpiMask { cpus, .. } => (64 * u32::from(self.flags), cpus),
            _ => (0, 0),
        };
        (0..64).filter(move |bit| cpus >> bit & 1 == 1).map(move |bit| first + bit)
    }

    /// Decodes the words of `struct tardy_event`; `None` if they are not a known event.
    pub(super) fn decode(cpu: u32, words: [u64; 4]) -> Option<Self> {
        let [at_ns, head, a, b] = words;
        let [kind, flags, low, high, pid @ ..] = head.to_le_bytes();
        let (prio, pid) = (i16::from_le_bytes([low, high]), u32::from_le_bytes(pid));
        if u32::from(kind) == header::TARDY_POLL {
            // About no task: the fields of one hold something else.
            let kind =
                EventKind::Poll { took_ns: pid, device: comm(a, b), packets: prio, budget: flags };
            return Some(Self { at_ns, cpu, prio: 0, pid: 0, flags: 0, kind });
        }
        if u32::from(kind) == header::TARDY_IRQ_ENTRY {
            // About no task, too.
            let kind = EventKind::IrqEntry { line: pid, action: comm(a, b) };
            return Some(Self { at_ns, cpu, prio: 0, pid: 0, flags: 0, kind });
        }
        if u32::from(kind) == header::TARDY_SWITCH {
            let kind = EventKind::Switch { comm: comm(a, b), ahead: RunsAhead::of(flags) };
            return Some(Self { at_ns, cpu, prio, pid, flags: flags & out::REASON, kind });
        }
        Some(Self { at_ns, cpu, prio, pid, flags, kind: EventKind::decode(kind, a, b)? })
    }

    /// The entry of the interrupt of which these words hold the end, where they hold both.
    pub(super) fn decode_entry(cpu: u32, words: [u64; 4]) -> Option<Self> {
        let [exit_ns, head, took_ns, address] = words;
        let [kind, flags, ..] = head.to_le_bytes();
        let is_both = u32::from(kind) == header::TARDY_TIMER_INTERRUPT;
        let kind = EventKind::VectorEntry { vector: vector::LOCAL_TIMER, address };
        let at_ns = exit_ns.saturating_sub(took_ns);
        is_both.then_some(Self { at_ns, cpu, prio: 0, pid: 0, flags, kind })
    }

    /// The CPU leaves its idle state: no program records that, but an interrupt or a switch that
    /// comes next says so.
    pub(super) fn idle_exit(&self) -> Self {
        let kind = EventKind::Idle { state: Self::NOT_IDLE };
        Self { prio: 0, pid: 0, flags: 0, kind, ..*self }
    }
}

impl EventKind {
    #[expect(clippy::cast_possible_truncation, reason = "the programs store 32 bits there")]
    fn decode(kind: u8, a: u64, b: u64) -> Option<Self> {
        Some(match u32::from(kind) {
            header::TARDY_WAKING => Self::Waking { by: a as u32, cpu: b as u32 },
            header::TARDY_MIGRATE => Self::Migrate { from: a as u32, to: b as u32 },
            header::TARDY_IRQ_EXIT => Self::IrqExit { line: a as u32 },
            header::TARDY_SOFTIRQ_ENTRY => Self::SoftirqEntry { vector: a as u32 },
            header::TARDY_SOFTIRQ_EXIT => Self::SoftirqExit { vector: a as u32 },
            header::TARDY_VECTOR_ENTRY => Self::VectorEntry { vector: a as u32, address: b },
            header::TARDY_VECTOR_EXIT => Self::VectorExit { vector: a as u32 },
            header::TARDY_TIMER => Self::Timer { expires_ns: a, callback: b },
            header::TARDY_IDLE => Self::Idle { state: a as u32 },
            header::TARDY_IPI => Self::Ipi { to: a as u32, callback: b },
            header::TARDY_IPI_MASK => Self::IpiMask { cpus: a, callback: b },
            header::TARDY_PAGE_FAULT => Self::PageFault { address: a, instruction: b },
            header::TARDY_NMI => Self::Nmi { took_ns: a, handler: b },
            header::TARDY_STEAL => Self::Steal { ns: a, since_ns: b },
            header::TARDY_LOCK_BEGIN => Self::LockBegin { lock: a, flags: b },
            header::TARDY_LOCK_END => Self::LockEnd { lock: a },
            header::TARDY_LOCK_OWNER => Self::LockOwner { comm: comm(a, b) },
            header::TARDY_FUTEX_WAIT => Self::FutexWait { lock: a, owner: b as u32 },
            header::TARDY_PRIORITY => Self::Priority { by: a as u32 },
            header::TARDY_STACK => Self::Stack { number: a, took_ns: b },
            header::TARDY_FUNCTION => Self::Function { took_ns: a, address: b },
            header::TARDY_TIMER_INTERRUPT => Self::VectorExit { vector: vector::LOCAL_TIMER },
            _ => return None,
        })
    }
}

fn comm(a: u64, b: u64) -> [u8; 16] {
    let mut comm = [0; 16];
    comm[..8].copy_from_slice(&a.to_le_bytes());
    comm[8..].copy_from_slice(&b.to_le_bytes());
    comm
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::layout::Layout;

    /// An event as a program writes it: each of these fields where the compiler has put it.
    fn words(fields: &[(&str, u64)]) -> [u64; 4] {
        let layout = Layout::of("tardy_event");
        let mut bytes = vec![0; layout.size];
        for (name, value) in fields {
            let (at, length) = layout.field(name);
            bytes[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
        }
        let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        words.collect::<Vec<_>>().try_into().unwrap()
    }

    #[test]
    fn a_switch_has_name_and_priority() {
        let [at_ns, head, ..] = words(&[
            ("at_ns", 99),
            ("kind", header::TARDY_SWITCH.into()),
            ("flags", header::TARDY_OUT_WAITING.into()),
            ("prio", u64::from((-1_i16).cast_unsigned())),
            ("pid", 4711),
        ]);
        let name = [*b"kworker/", *b"0:1\0\0\0\0\0"].map(u64::from_le_bytes);
        let event = Event::decode(3, [at_ns, head, name[0], name[1]]).unwrap();
        let comm = *b"kworker/0:1\0\0\0\0\0";
        let kind = EventKind::Switch { comm, ahead: None };
        let expected = Event { at_ns: 99, cpu: 3, prio: -1, pid: 4711, flags: out::WAITING, kind };
        assert_eq!(event, expected);
    }

    #[test]
    fn an_interrupt_for_several_cpus_goes_to_those_whose_bits_are_set() {
        let event = |kind, flags| Event { at_ns: 9, cpu: 0, prio: 0, pid: 7, flags, kind };
        let mask = event(EventKind::IpiMask { cpus: 1 << 63 | 0b101, callback: 0x70 }, 1);
        assert_eq!(mask.recipients().collect::<Vec<_>>(), [64, 66, 127]);
        assert_eq!([66, 65, 2].map(|cpu| mask.sends_to(cpu)), [Some(0x70), None, None]);
        let one = event(EventKind::Ipi { to: 300, callback: 0 }, 0);
        assert_eq!([300, 1].map(|cpu| one.sends_to(cpu)), [Some(0), None]);
        let none = event(EventKind::Idle { state: 1 }, 0);
        assert_eq!((none.recipients().count(), none.sends_to(0)), (0, None));
    }

    #[test]
    fn a_poll_is_about_a_device_and_no_task() {
        let [at_ns, head, ..] = words(&[
            ("at_ns", 99),
            ("kind", header::TARDY_POLL.into()),
            ("flags", 64),
            ("prio", 63),
            ("pid", 70_000),
        ]);
        let name = u64::from_le_bytes(*b"enp3s0\0\0");
        let event = Event::decode(3, [at_ns, head, name, 0]).unwrap();
        let device = *b"enp3s0\0\0\0\0\0\0\0\0\0\0";
        let kind = EventKind::Poll { took_ns: 70_000, device, packets: 63, budget: 64 };
        assert_eq!(event, Event { at_ns: 99, cpu: 3, prio: 0, pid: 0, flags: 0, kind });
    }

    #[test]
    fn an_interrupt_has_the_name_of_its_handler() {
        let [at_ns, head, ..] =
            words(&[("at_ns", 99), ("kind", header::TARDY_IRQ_ENTRY.into()), ("pid", 24)]);
        let name = u64::from_le_bytes(*b"ahci\0\0\0\0");
        let event = Event::decode(3, [at_ns, head, name, 0]).unwrap();
        let kind = EventKind::IrqEntry { line: 24, action: *b"ahci\0\0\0\0\0\0\0\0\0\0\0\0" };
        assert_eq!(event, Event { at_ns: 99, cpu: 3, prio: 0, pid: 0, flags: 0, kind });
    }

    #[test]
    fn the_two_words_of_an_event_are_its_last() {
        let layout = Layout::of("tardy_event");
        assert_eq!((layout.size, layout.field("")), (32, (16, 16)));
    }

    #[test]
    fn every_kind_of_the_header_is_known_and_no_other() {
        let header = include_str!("recorder.h");
        let kinds = header.split_once("enum tardy_kind {").unwrap().1.split_once('}').unwrap().0;
        let count = kinds.matches(" = ").count();
        let known = |kind: &u64| Event::decode(0, [0, *kind, 0, 0]).is_some();
        assert_eq!((0..=255).filter(known).count(), count - 1, "all but TARDY_NOTHING");
    }
}

//! What the blame asks of this machine: the kernel's events and stacks, names, and SMIs.

use crate::{
    kernel::{self, Symbols},
    peaks::{Event, EventKind, Source},
    sys::{cpus::Cpus, perf::SmiCount, root::Root},
};

/// The kernel's record of this machine.
pub(super) struct ThisMachine {
    recorder: kernel::Recorder,
    symbols: Symbols,
    /// Counted on a CPU that is not measured, because reading it interrupts that CPU; the firmware
    /// stops all CPUs at once.
    smis: Option<SmiCount>,
}

impl ThisMachine {
    pub(super) fn new(recorder: kernel::Recorder, symbols: Symbols, free: &Cpus) -> Self {
        let one: Cpus = free.iter().take(1).collect();
        let smis = (!one.is_empty()).then(|| SmiCount::begin(&Root::default(), &one)).flatten();
        Self { recorder, symbols, smis }
    }
}

impl Source for ThisMachine {
    fn events(&self, cpu: u32, from_ns: u64, to_ns: u64, into: &mut Vec<Event>) -> bool {
        let mut events = Vec::new();
        let whole = self.recorder.events(cpu, from_ns, to_ns, &mut events);
        into.extend(events.into_iter().map(event));
        whole
    }

    fn stack(&self, number: u64) -> Option<Vec<u64>> {
        self.recorder.stack(number)
    }

    fn symbol(&self, address: u64) -> Option<(String, u64)> {
        self.symbols.name(address).map(|(name, offset)| (name.to_owned(), offset))
    }

    fn lost(&self) -> u64 {
        self.recorder.lost()
    }

    fn smis(&mut self, _: u32) -> Option<u64> {
        self.smis.as_ref().and_then(SmiCount::read)
    }
}

/// The same event in the words of the blame.
fn event(event: kernel::Event) -> Event {
    let kernel::Event { at_ns, cpu, prio, pid, flags, kind } = event;
    Event { at_ns, cpu, prio, pid, flags, kind: event_kind(kind) }
}

fn event_kind(kind: kernel::EventKind) -> EventKind {
    use kernel::EventKind as From;
    match kind {
        From::Switch { comm } => EventKind::Switch { comm },
        From::Waking { by, cpu } => EventKind::Waking { by, cpu },
        From::Migrate { from, to } => EventKind::Migrate { from, to },
        From::IrqEntry { line } => EventKind::IrqEntry { line },
        From::IrqExit { line } => EventKind::IrqExit { line },
        From::SoftirqEntry { vector } => EventKind::SoftirqEntry { vector },
        From::SoftirqExit { vector } => EventKind::SoftirqExit { vector },
        From::VectorEntry { vector, address } => EventKind::VectorEntry { vector, address },
        From::VectorExit { vector } => EventKind::VectorExit { vector },
        From::Timer { expires_ns, callback } => EventKind::Timer { expires_ns, callback },
        From::Idle { state } => EventKind::Idle { state },
        From::Ipi { to } => EventKind::Ipi { to },
        From::PageFault { address, instruction } => EventKind::PageFault { address, instruction },
        From::Nmi { took_ns, handler } => EventKind::Nmi { took_ns, handler },
        From::Steal { ns, since_ns } => EventKind::Steal { ns, since_ns },
        From::LockBegin { lock, flags } => EventKind::LockBegin { lock, flags },
        From::LockEnd { lock } => EventKind::LockEnd { lock },
        From::Stack { number, took_ns } => EventKind::Stack { number, took_ns },
    }
}

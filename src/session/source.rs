//! What the blame asks of this machine: the kernel's events and stacks, names, and SMIs.

use std::ops::Range;

use crate::{
    kernel::{Event, EventReader, Symbols},
    peaks::EventSource,
    sys::{cpus::Cpus, perf::SmiCount, root::Root},
};

/// The kernel's record of this machine.
pub(super) struct ThisMachine {
    recorder: EventReader,
    symbols: Symbols,
    /// Counted on a CPU that is not measured, where there is one, because reading it interrupts
    /// that CPU; the firmware stops all CPUs at once.
    smis: Option<SmiCount>,
}

impl ThisMachine {
    pub(super) fn new(
        recorder: EventReader,
        symbols: Symbols,
        free: &Cpus,
        measured: &Cpus,
    ) -> Self {
        let one: Cpus = free.iter().chain(measured.iter()).take(1).collect();
        let smis = (!one.is_empty()).then(|| SmiCount::begin(&Root::default(), &one)).flatten();
        Self { recorder, symbols, smis }
    }
}

impl EventSource for ThisMachine {
    fn events(&self, cpu: u32, from_ns: u64, to_ns: u64, into: &mut Vec<Event>) -> bool {
        self.recorder.events(cpu, from_ns, to_ns, into)
    }

    fn cpus(&self) -> u32 {
        self.recorder.cpus()
    }

    fn recorded(&self, cpu: u32) -> Range<u64> {
        self.recorder.recorded(cpu)
    }

    fn stack(&self, number: u64) -> Option<Vec<u64>> {
        self.recorder.stack(number)
    }

    fn symbol(&self, address: u64) -> Option<(&str, u64)> {
        self.symbols.name(address)
    }

    fn lost(&self) -> u64 {
        self.recorder.lost()
    }

    fn smis(&mut self, _: u32) -> Option<u64> {
        self.smis.as_ref().and_then(SmiCount::read)
    }
}

//! What the blame asks of this machine: the kernel's events and stacks, names, and SMIs.

use std::{collections::HashMap, ops::Range};

use crate::{
    kernel::{Event, EventReader, Symbols},
    peaks::{BlameOptions, EventSource},
    setup::siblings::siblings_of,
    sys::{
        counters::interrupt_sources, cpus::Cpus, idle::exit_latencies_ns, perf::SmiCount,
        root::Root,
    },
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

    fn counts_steal(&self) -> bool {
        self.recorder.counts_steal()
    }

    fn smis(&mut self, _: u32) -> Option<u64> {
        self.smis.as_ref().and_then(SmiCount::read)
    }
}

/// What the machine says to the blamer, and the user wishes of it.
pub(super) fn wishes(
    cpus: &Cpus,
    (keep, peak_over_ns): (usize, Option<i64>),
    virtual_machine: bool,
    roams: bool,
) -> BlameOptions {
    let root = Root::default();
    let sources = interrupt_sources(&root);
    let lines = sources.into_iter().filter_map(|source| {
        let number = source.name.parse().ok()?;
        // Chip, line and kind, then the handlers.
        let name = source.description.rsplit(' ').next().unwrap_or_default().to_owned();
        Some((number, name))
    });
    let interrupt_names: HashMap<u32, String> = lines.collect();
    let idle_exit_ns = exit_latencies_ns(&root, cpus);
    let siblings = cpus.iter().map(|cpu| (cpu, siblings_of(&root, cpu).iter().collect())).collect();
    BlameOptions {
        keep,
        peak_over_ns,
        virtual_machine,
        roams,
        interrupt_names,
        idle_exit_ns,
        siblings,
    }
}

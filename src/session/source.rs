//! What the blame asks of this machine: the kernel's events and stacks, names, and SMIs.

use std::{
    borrow::Cow,
    collections::HashMap,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::traced_by::TracedBy;
use crate::{
    kernel::{Event, EventReader, KernelNames, SetFrequency, tracefs::EventStore},
    peaks::{BlameOptions, EventSource, HoldEvidence},
    setup::siblings::siblings_of,
    sys::{
        conditions::{has_fair_server, may_idle_beside_ready, throttles_groups},
        counters::interrupt_sources,
        cpus::Cpus,
        frequencies::highest_where_told_khz,
        idle::exit_latencies_ns,
        perf::SmiCount,
        root::Root,
    },
};

/// The events, whoever recorded them.
pub(super) enum TracedEvents {
    /// The BPF programs.
    Bpf(EventReader),
    /// The kernel's own tracer.
    Tracefs(Arc<Mutex<EventStore>>),
}

impl TracedEvents {
    /// How it tells what holds real-time threads back.
    pub(super) fn holds(&self, root: &Root) -> HoldEvidence {
        match (self, has_fair_server(root), throttles_groups(root)) {
            (Self::Bpf(_), ..) => HoldEvidence::Recorded,
            (Self::Tracefs(_), Some(false), _) => HoldEvidence::OnlyThrottling,
            (Self::Tracefs(_), Some(true), Some(false)) => HoldEvidence::OnlyFairServer,
            (Self::Tracefs(_), ..) => HoldEvidence::Missing,
        }
    }

    /// What this records.
    pub(super) fn of(source: &TracedBy) -> Self {
        match source {
            TracedBy::Bpf(tracer) => Self::Bpf(tracer.recorder()),
            TracedBy::Tracefs(matcher) => Self::Tracefs(matcher.tracer.store()),
        }
    }
}

/// Nobody panics while he holds it.
fn of(store: &Mutex<EventStore>) -> MutexGuard<'_, EventStore> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kernel's record of this machine.
pub(super) struct ThisMachine {
    events: TracedEvents,
    names: KernelNames,
    /// Counted on a CPU that is not measured, where there is one, because reading it interrupts
    /// that CPU; the firmware stops all CPUs at once.
    smis: Option<SmiCount>,
}

impl ThisMachine {
    pub(super) fn new(
        events: TracedEvents,
        names: KernelNames,
        free: &Cpus,
        measured: &Cpus,
    ) -> Self {
        let one: Cpus = free.iter().chain(measured.iter()).take(1).collect();
        let smis = (!one.is_empty()).then(|| SmiCount::begin(&Root::default(), &one)).flatten();
        Self { events, names, smis }
    }
}

impl EventSource for ThisMachine {
    fn events(&self, cpu: u32, from_ns: u64, to_ns: u64, into: &mut Vec<Event>) -> bool {
        match &self.events {
            TracedEvents::Bpf(reader) => reader.events(cpu, from_ns, to_ns, into),
            TracedEvents::Tracefs(store) => of(store).events(cpu, from_ns, to_ns, into),
        }
    }

    fn frequencies(&self, cpu: u32, from_ns: u64, to_ns: u64) -> Vec<SetFrequency> {
        match &self.events {
            TracedEvents::Bpf(reader) => reader.frequencies(cpu, from_ns, to_ns),
            // Nobody works there.
            TracedEvents::Tracefs(_) => Vec::new(),
        }
    }

    fn cpus(&self) -> u32 {
        match &self.events {
            TracedEvents::Bpf(reader) => reader.cpus(),
            TracedEvents::Tracefs(store) => of(store).cpus(),
        }
    }

    fn recorded(&self, cpu: u32) -> Range<u64> {
        match &self.events {
            TracedEvents::Bpf(reader) => reader.recorded(cpu),
            TracedEvents::Tracefs(store) => of(store).recorded(cpu),
        }
    }

    fn stack(&self, number: u64) -> Option<Vec<u64>> {
        match &self.events {
            TracedEvents::Bpf(reader) => reader.stack(number),
            TracedEvents::Tracefs(_) => None,
        }
    }

    fn symbol(&self, address: u64) -> Option<(Cow<'_, str>, u64)> {
        self.names.name(address)
    }

    fn lost(&self) -> u64 {
        match &self.events {
            TracedEvents::Bpf(reader) => reader.lost(),
            // Told by CPU.
            TracedEvents::Tracefs(_) => 0,
        }
    }

    fn counts_steal(&self) -> bool {
        match &self.events {
            TracedEvents::Bpf(reader) => reader.counts_steal(),
            TracedEvents::Tracefs(_) => false,
        }
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
    let lines = sources.into_iter().filter(|source| !source.handlers.is_empty());
    let interrupt_names = lines
        .filter_map(|source| Some((source.name.parse().ok()?, source.handlers)))
        .collect::<HashMap<u32, Vec<String>>>();
    let idle_exit_ns = exit_latencies_ns(&root, cpus);
    let highest_khz = highest_where_told_khz(&root, cpus);
    let siblings = cpus.iter().map(|cpu| (cpu, siblings_of(&root, cpu).iter().collect())).collect();
    BlameOptions {
        keep,
        peak_over_ns,
        stop_over_ns: None,
        virtual_machine,
        roams,
        holds: HoldEvidence::default(),
        idles_beside_ready: may_idle_beside_ready(&root),
        interrupt_names,
        idle_exit_ns,
        highest_khz,
        siblings,
    }
}

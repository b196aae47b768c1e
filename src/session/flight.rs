//! The flight recorder alone: the kernel writes down what every CPU does, and nothing is measured.

use std::ops::Range;

use tardy_hot::clock::now_ns;

use super::source::{ThisMachine, TracedEvents, wishes};
use crate::{
    kernel::{KernelNames, Settings, Stacks, TraceLevel, Tracer, TracingUnavailable, WokenBy},
    peaks::{BlameOptions, EventSource, recording::recording},
    run::recording::Recording,
    setup::facts,
    sys::{cpus::Cpus, root::Root},
};

/// The programs at work. They end when it is dropped, and with this process.
pub(crate) struct FlightRecorder {
    tracer: Tracer,
    source: ThisMachine,
    wishes: BlameOptions,
    start_ns: i64,
}

impl FlightRecorder {
    /// Begins to record, on all CPUs.
    ///
    /// # Errors
    /// Missing rights, or a kernel that cannot be traced; each text names the remedy.
    pub(crate) fn start() -> Result<Self, TracingUnavailable> {
        let mut tracer = Tracer::load(&Settings {
            mode: TraceLevel::Peaks,
            stacks: Stacks::Off,
            woken_by: WokenBy::Timers,
            futexes: false,
            slots_per_cpu: Settings::SLOTS_TO_RECORD,
        })?;
        let (none, root) = (Cpus::default(), Root::default());
        let all: Cpus = (0..tracer.recorder().cpus()).collect();
        let virtual_machine = facts::virtualisation(&root).is_some();
        let wishes = wishes(&all, (0, None), virtual_machine, false);
        let events = TracedEvents::Bpf(tracer.recorder());
        let source = ThisMachine::new(events, KernelNames::of_kernel(), &none, &none);
        tracer.attach()?;
        Ok(Self { tracer, source, wishes, start_ns: now_ns() })
    }

    /// Ends, with the events of the last `last_ns`, and the numbers of lost events and stacks.
    pub(crate) fn finish(mut self, last_ns: i64) -> (Recording, u64) {
        self.tracer.detach();
        let found = recording(&self.source, &self.wishes, self.last(last_ns, now_ns()));
        (found, self.source.lost())
    }

    /// Nothing is known of the time before it began.
    fn last(&self, last_ns: i64, now_ns: i64) -> Range<i64> {
        now_ns.saturating_sub(last_ns).max(self.start_ns)..now_ns
    }
}

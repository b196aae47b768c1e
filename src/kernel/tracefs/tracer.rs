//! Switches the trace on and off, and reads it.

use std::{
    collections::BTreeMap,
    process,
    sync::{Arc, Mutex, PoisonError},
};

use tardy_hot::clock::now_ns;

use super::{
    TimerWakeup, TracefsUnavailable,
    decoder::{Decoder, Timed, TraceEvent},
    instance::{self, Instance, Pipe},
    known::{EVENTS, Kind, KnownEvent, Needed},
    store::EventStore,
    wakeups::Wakeups,
};
use crate::{
    kernel::{
        Missing, TraceLevel, TracingUnavailable, bootstrap,
        event::{Event, EventKind},
    },
    sys::root::Root,
};

/// An event may have been begun and not ended this long before now, ns: later ones wait, so that
/// those of all CPUs come in the order of time.
const SETTLED_NS: u64 = 200_000;

/// Tasks of a smaller number are real-time.
const MAX_RT_PRIO: i16 = 100;

/// The number of threads that fit into a filter, whose text is limited to a page; of more, all are
/// recorded.
const MOST_FILTERED: usize = 64;

/// The softirq in which timers expire.
const HRTIMER_SOFTIRQ: u32 = 8;

/// Pages of one CPU that are read before the next one's turn.
const PAGES_AT_ONCE: usize = 1024;

/// Events that were lost on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostOfCpu {
    /// The CPU.
    pub cpu: u32,
    /// How many, at least.
    pub events: u64,
}

/// The kernel's trace, for the threads that are followed.
#[derive(Debug)]
pub struct TracefsTracer {
    level: TraceLevel,
    path: String,
    decoder: Decoder,
    events: Vec<&'static KnownEvent>,
    missing: Vec<Missing>,
    has_soft_timers: bool,
    instance: Option<Instance>,
    pipes: Vec<Pipe>,
    wakeups: Wakeups,
    /// Read, and too new to be in the order of time.
    waiting: Vec<(u32, Timed)>,
    store: Arc<Mutex<EventStore>>,
    lost: BTreeMap<u32, u64>,
    is_damaged: bool,
    page: Vec<u8>,
}

impl TracefsTracer {
    /// Looks whether this kernel can be traced so; changes nothing.
    ///
    /// # Errors
    /// What is missing.
    pub fn new(level: TraceLevel) -> Result<Self, TracefsUnavailable> {
        bootstrap::own_namespaces().map_err(|lack| match lack {
            TracingUnavailable::TimeNamespace => TracefsUnavailable::TimeNamespace,
            _ => TracefsUnavailable::PidNamespace,
        })?;
        let has_soft_timers = bootstrap::timers_expire_in_softirq(&Root::default());
        let causes = level == TraceLevel::Peaks;
        let asked = |event: &&KnownEvent| match event.needed {
            Needed::Always | Needed::Stages | Needed::Lines => true,
            Needed::Softirqs => has_soft_timers || causes,
            Needed::Causes => causes,
        };
        let (decoder, lacks) = instance::describe(EVENTS.iter().filter(asked))?;
        if let Some(lack) = lacks.iter().find(|event| event.needed == Needed::Always) {
            return Err(TracefsUnavailable::NoEvent { event: lack.path.into() });
        }
        let has_vector = decoder.knows(Kind::VectorEntry(1));
        let is_used = |event: &&KnownEvent| match event.needed {
            Needed::Lines => causes || !has_vector,
            _ => asked(event),
        };
        let is_there = |event: &&KnownEvent| decoder.knows(event.kind);
        let events = EVENTS.iter().filter(is_used).filter(is_there).collect();
        let missing = lacks.into_iter().filter(is_used).map(missing).collect();
        Ok(Self {
            level,
            path: instance::path_of(process::id()),
            page: vec![0; decoder.page_bytes()],
            decoder,
            events,
            missing,
            has_soft_timers,
            instance: None,
            pipes: Vec::new(),
            wakeups: Wakeups::default(),
            waiting: Vec::new(),
            store: Arc::default(),
            lost: BTreeMap::new(),
            is_damaged: false,
        })
    }

    /// The instance that [`TracefsTracer::make`] makes: to be journalled before.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Makes the instance. Who journalled it removes it, once this is detached.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn make(&mut self) -> Result<(), TracefsUnavailable> {
        self.instance = Some(Instance::make(&self.path)?);
        Ok(())
    }

    /// Events that this kernel lacks; the rest works.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// How much is traced.
    #[must_use]
    pub const fn level(&self) -> TraceLevel {
        self.level
    }

    /// What was lost on each CPU that lost something.
    #[must_use]
    pub fn lost(&self) -> Vec<LostOfCpu> {
        self.lost.iter().map(|(&cpu, &events)| LostOfCpu { cpu, events }).collect()
    }

    /// Whether a page was not what the kernel's description says.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// The last events of all CPUs; none where only stages are traced.
    #[must_use]
    pub fn store(&self) -> Arc<Mutex<EventStore>> {
        Arc::clone(&self.store)
    }

    /// Switches the trace on, for these threads.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn attach(&mut self, tids: &[u32]) -> Result<(), TracefsUnavailable> {
        let Some(instance) = &self.instance else { return Ok(()) };
        instance.write("tracing_on", "0")?;
        instance.clear()?;
        for event in &self.events {
            instance.enable(event.path, &self.filter(event.kind, tids))?;
        }
        self.wakeups =
            Wakeups::new(tids, self.decoder.knows(Kind::VectorEntry(1)), self.has_soft_timers);
        self.waiting.clear();
        self.pipes = instance.pipes()?;
        instance.write("tracing_on", "1")
    }

    /// Switches it off. What was recorded can be read until it is dropped or attached again.
    pub fn stop(&mut self) {
        if let Some(instance) = &self.instance {
            let _ = instance.write("tracing_on", "0");
        }
    }

    /// Switches it off and lets go of its pages: the instance can be removed.
    pub fn detach(&mut self) {
        self.stop();
        self.pipes.clear();
    }

    /// Which events of a kind are recorded, in the kernel's words; empty for all.
    fn filter(&self, kind: Kind, tids: &[u32]) -> String {
        let causes = self.level == TraceLevel::Peaks;
        if tids.len() > MOST_FILTERED {
            return String::new();
        }
        let any = |field: &str| {
            let each = tids.iter().map(|tid| format!("{field} == {tid}"));
            each.collect::<Vec<_>>().join(" || ")
        };
        match kind {
            Kind::Waking | Kind::Migrate if causes => {
                format!("prio < {MAX_RT_PRIO} || {}", any("pid"))
            }
            Kind::Waking => any("pid"),
            Kind::Switch if !causes => any("next_pid"),
            Kind::TimerStart if !causes => any("common_pid"),
            Kind::SoftirqRaise => format!("vec == {HRTIMER_SOFTIRQ}"),
            Kind::SoftirqEntry | Kind::SoftirqExit if !causes => {
                format!("vec == {HRTIMER_SOFTIRQ}")
            }
            _ => String::new(),
        }
    }

    /// Reads what has come. Takes in, in the order of time, all that is older than a moment: until
    /// when, `CLOCK_MONOTONIC` ns. After [`TracefsTracer::stop`], all.
    pub fn poll(&mut self, is_over: bool) -> u64 {
        let settled_ns = match is_over {
            true => u64::MAX,
            false => now_ns().cast_unsigned().saturating_sub(SETTLED_NS),
        };
        let mut found = Vec::new();
        for pipe in &mut self.pipes {
            for _ in 0..PAGES_AT_ONCE {
                let Ok(Some(bytes)) = pipe.read(&mut self.page) else { break };
                found.clear();
                let page = self.page.get(..bytes).unwrap_or_default();
                let end = self.decoder.read(pipe.cpu, page, &mut found);
                self.is_damaged |= end.is_damaged;
                if end.lost > 0 {
                    *self.lost.entry(pipe.cpu).or_default() += end.lost;
                    let at_ns = found.first().map_or(settled_ns, |first| first.at_ns);
                    // In its place among those of the other CPUs.
                    self.waiting.push((pipe.cpu, Timed { at_ns, event: TraceEvent::Lost }));
                }
                self.waiting.extend(found.iter().map(|timed| (pipe.cpu, *timed)));
            }
        }
        self.take_in(settled_ns);
        settled_ns
    }

    fn take_in(&mut self, settled_ns: u64) {
        self.waiting.sort_by_key(|(_, timed)| timed.at_ns);
        let end = self.waiting.partition_point(|(_, timed)| timed.at_ns <= settled_ns);
        let mut store = store(&self.store);
        for (cpu, timed) in self.waiting.drain(..end) {
            let expires_ns = self.wakeups.take(cpu, &timed);
            if timed.event == TraceEvent::Lost {
                store.lost(cpu, timed.at_ns);
            }
            if self.level == TraceLevel::Peaks
                && let Some(event) = recorded(cpu, &timed, expires_ns)
            {
                store.push(event);
            }
        }
    }

    /// The wake-up of the `number`-th thread from an expiry between `from_ns` and `within_ns` after
    /// it, where the thread ran at `to_ns`; `None` if that was not seen whole.
    pub fn matching(
        &mut self,
        number: usize,
        (from_ns, within_ns): (u64, u64),
        to_ns: u64,
    ) -> Option<TimerWakeup> {
        self.wakeups.matching(number, (from_ns, within_ns), to_ns)
    }
}

/// Nobody panics while he holds it; if one did, what is there is as good as before.
fn store(shared: &Mutex<EventStore>) -> std::sync::MutexGuard<'_, EventStore> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the blame knows of an event. That a CPU leaves its idle state shows in what it does next.
fn recorded(cpu: u32, timed: &Timed, expires_ns: Option<u64>) -> Option<Event> {
    let at_ns = timed.at_ns;
    match timed.event {
        TraceEvent::Event(Event { kind: EventKind::Idle { state: Event::NOT_IDLE }, .. })
        | TraceEvent::TimerStart { .. }
        | TraceEvent::SoftirqRaise { .. }
        | TraceEvent::Lost => None,
        TraceEvent::Event(event) => Some(event),
        TraceEvent::TimerExpires { callback, .. } => {
            let kind = EventKind::Timer { expires_ns: expires_ns.unwrap_or(0), callback };
            Some(Event { at_ns, cpu, prio: 0, pid: 0, flags: 0, kind })
        }
    }
}

fn missing(event: &KnownEvent) -> Missing {
    let name = event.path.rsplit('/').next().unwrap_or_default();
    Missing {
        what: name.into(),
        switches_off: event.switches_off.into(),
        why: "the kernel's trace has no such event".into(),
    }
}

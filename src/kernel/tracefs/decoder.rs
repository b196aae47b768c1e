//! Pages of the trace, typed.

use std::collections::HashMap;

use super::{
    format::{EventFormat, Field, HeaderFormat, PageFormat},
    known::{EVENTS, Kind},
    page::{Page, RawEvent},
};
use crate::kernel::{
    event::{Event, EventKind},
    event_flags::out,
};

/// The kernel's bits of a state that a task sleeps, waits, is stopped or traced, and is dead in
/// (`TASK_REPORT`, the same since 4.14). Those above say that it is runnable and was preempted.
const STATE: u64 = 0xff;
const WAITING: u64 = 0x02;
const STOPPED: u64 = 0x0c;
const DEAD: u64 = 0x30;

/// What an event of the trace says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceEvent {
    /// What the BPF programs record, too.
    Event(Event),
    /// A timer was programmed.
    TimerStart {
        /// Its address.
        timer: u64,
        /// When it is due, `CLOCK_MONOTONIC` ns.
        expires_ns: u64,
    },
    /// Its callback begins.
    TimerExpires {
        /// Its address.
        timer: u64,
        /// That of the callback.
        callback: u64,
    },
    /// Events of this CPU before this time were lost; no event of the kernel's.
    Lost,
    /// A softirq is asked for.
    SoftirqRaise {
        /// 0 to 9, as in /proc/softirqs.
        vector: u32,
    },
}

/// One event with its time, by the clock of the trace, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timed {
    /// When.
    pub at_ns: u64,
    /// What.
    pub event: TraceEvent,
}

/// Reads pages as this kernel writes them.
#[derive(Debug)]
pub struct Decoder {
    page: PageFormat,
    header: HeaderFormat,
    /// The fields that every event begins with.
    kind: Field,
    pid: Field,
    layouts: HashMap<u64, (Kind, Vec<Field>)>,
}

/// What became of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageEnd {
    /// Events that were lost before it.
    pub lost: u64,
    /// It, or an event of it, is not what the formats say.
    pub is_damaged: bool,
}

impl Decoder {
    /// Of the files `header_page`, `header_event` and, by the path of its directory below `events`,
    /// `format` of each event; `None` if one of the first two, or a field that every event has,
    /// cannot be understood.
    #[must_use]
    pub fn new(page: &str, header: &str, formats: &[(&str, String)]) -> Option<Self> {
        let (page, header) = (PageFormat::parse(page)?, HeaderFormat::parse(header)?);
        let mut common = None;
        let mut layouts = HashMap::new();
        for (path, text) in formats {
            let Some(format) = EventFormat::parse(text) else { continue };
            let Some(known) = EVENTS.iter().find(|known| known.path == *path) else { continue };
            let fields: Option<Vec<Field>> =
                known.fields.iter().map(|name| format.field(name)).collect();
            let Some(fields) = fields else { continue };
            common = common.or(format.field("common_type").zip(format.field("common_pid")));
            layouts.insert(format.id, (known.kind, fields));
        }
        let (kind, pid) = common?;
        Some(Self { page, header, kind, pid, layouts })
    }

    /// Whether events of this kind can be read.
    pub(super) fn knows(&self, kind: Kind) -> bool {
        self.layouts.values().any(|(known, _)| *known == kind)
    }

    /// Bytes of a page.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.page.bytes()
    }

    /// Appends the events of a page of `cpu` to `into`.
    pub fn read(&self, cpu: u32, bytes: &[u8], into: &mut Vec<Timed>) -> PageEnd {
        let Some(mut page) = Page::new(&self.page, self.header, bytes) else {
            return PageEnd { lost: 0, is_damaged: true };
        };
        let mut is_damaged = false;
        for raw in page.by_ref() {
            is_damaged |= self.typed(cpu, &raw, into).is_err();
        }
        PageEnd { lost: page.lost, is_damaged: is_damaged || page.is_damaged }
    }

    /// Appends nothing for an event of another kind; an error for one that is too short.
    fn typed(&self, cpu: u32, raw: &RawEvent<'_>, into: &mut Vec<Timed>) -> Result<(), ()> {
        let id = self.kind.value(raw.data).ok_or(())?;
        let Some((kind, fields)) = self.layouts.get(&id) else { return Ok(()) };
        let by = self.pid.value(raw.data).ok_or(())?;
        let reader = EventData { fields, data: raw.data, at_ns: raw.at_ns, cpu, by: by as u32 };
        if *kind == Kind::IpiMask {
            return reader.ipi_masks(into).ok_or(());
        }
        into.push(reader.timed(reader.typed(*kind).ok_or(())?));
        Ok(())
    }
}

/// The data of one event, with who ran when it was written.
struct EventData<'a> {
    fields: &'a [Field],
    data: &'a [u8],
    at_ns: u64,
    cpu: u32,
    by: u32,
}

#[expect(clippy::cast_possible_truncation, reason = "the kernel has 32 bits there, or fewer")]
impl EventData<'_> {
    fn value(&self, n: usize) -> Option<u64> {
        self.fields.get(n)?.value(self.data)
    }

    fn number(&self, n: usize) -> Option<u32> {
        self.value(n).map(|value| value as u32)
    }

    fn event(&self, kind: EventKind) -> Event {
        let Self { at_ns, cpu, .. } = *self;
        Event { at_ns, cpu, prio: 0, pid: 0, flags: 0, kind }
    }

    /// An event about a task, whose number is field 0 and whose priority field 1.
    fn about_task(&self, kind: EventKind) -> Option<Event> {
        let prio = self.value(1)?.cast_signed() as i16;
        Some(Event { pid: self.number(0)?, prio, ..self.event(kind) })
    }

    fn switch(&self) -> Option<Event> {
        let mut comm = [0; 16];
        let name = self.fields.get(3)?.bytes(self.data)?;
        let length = name.len().min(comm.len());
        comm[..length].copy_from_slice(name.get(..length)?);
        let flags = match self.value(2)? & STATE {
            0 => out::PREEMPTED,
            state if state & DEAD != 0 => out::DEAD,
            state if state & STOPPED != 0 => out::STOPPED,
            state if state & WAITING != 0 => out::WAITING,
            _ => out::SLEEPING,
        };
        Some(Event { flags, ..self.about_task(EventKind::Switch { comm, ahead: None })? })
    }

    fn irq_entry(&self) -> Option<Event> {
        let mut action = [0; 16];
        let name = self.fields.get(1)?.referred(self.data)?;
        // The last byte is a zero, as of names that fit.
        let length = name.len().min(action.len() - 1);
        action[..length].copy_from_slice(name.get(..length)?);
        Some(self.event(EventKind::IrqEntry { line: self.number(0)?, action }))
    }

    fn timed(&self, event: TraceEvent) -> Timed {
        Timed { at_ns: self.at_ns, event }
    }

    /// One event for each 64 CPUs of which one is in the mask: it has as many words as the kernel
    /// can have CPUs (`ipi_send_cpumask`, include/trace/events/ipi.h).
    fn ipi_masks(&self, into: &mut Vec<Timed>) -> Option<()> {
        let (mask, callback) = (self.fields.first()?.referred(self.data)?, self.value(1)?);
        for (flags, part) in (0..=u8::MAX).zip(mask.chunks(8)) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            let cpus = u64::from_le_bytes(word);
            let kind = EventKind::IpiMask { cpus, callback };
            let event = Event { pid: self.by, flags, ..self.event(kind) };
            into.extend((cpus != 0).then(|| self.timed(TraceEvent::Event(event))));
        }
        Some(())
    }

    fn typed(&self, kind: Kind) -> Option<TraceEvent> {
        let event = match kind {
            Kind::TimerStart => {
                let (timer, expires_ns) = (self.value(0)?, self.value(1)?);
                return Some(TraceEvent::TimerStart { timer, expires_ns });
            }
            Kind::TimerExpires => {
                let (timer, callback) = (self.value(0)?, self.value(1)?);
                return Some(TraceEvent::TimerExpires { timer, callback });
            }
            Kind::SoftirqRaise => {
                return Some(TraceEvent::SoftirqRaise { vector: self.number(0)? });
            }
            Kind::Waking => {
                self.about_task(EventKind::Waking { by: self.by, cpu: self.number(2)? })?
            }
            Kind::Switch => self.switch()?,
            Kind::Migrate => {
                let kind = EventKind::Migrate { from: self.number(2)?, to: self.number(3)? };
                self.about_task(kind)?
            }
            Kind::SoftirqEntry => self.event(EventKind::SoftirqEntry { vector: self.number(0)? }),
            Kind::SoftirqExit => self.event(EventKind::SoftirqExit { vector: self.number(0)? }),
            Kind::IrqEntry => self.irq_entry()?,
            Kind::IrqExit => self.event(EventKind::IrqExit { line: self.number(0)? }),
            Kind::VectorEntry(vector) => self.event(EventKind::VectorEntry { vector, address: 0 }),
            Kind::VectorExit(vector) => self.event(EventKind::VectorExit { vector }),
            Kind::Idle => self.event(EventKind::Idle { state: self.number(0)? }),
            Kind::Ipi => {
                let kind = EventKind::Ipi { to: self.number(0)?, callback: self.value(1)? };
                Event { pid: self.by, ..self.event(kind) }
            }
            // Several events.
            Kind::IpiMask => return None,
            Kind::Nmi => {
                self.event(EventKind::Nmi { took_ns: self.value(1)?, handler: self.value(0)? })
            }
        };
        Some(TraceEvent::Event(event))
    }
}

#[cfg(test)]
mod tests;

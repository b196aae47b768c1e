//! A timeline for ui.perfetto.dev and its trace processor: track events of
//! `protos/perfetto/trace` of github.com/google/perfetto.

use std::io;

use super::{
    protobuf::Message,
    timeline::{TraceEntry, TraceTimeline, TrackGroup},
};

/// Fields of `message TracePacket`.
mod packet {
    pub(super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE_ID: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const TIMESTAMP_CLOCK: u32 = 58;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
}

/// Fields of `message TrackDescriptor`.
mod track {
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PARENT: u32 = 5;
    pub(super) const CHILD_ORDERING: u32 = 11;
    pub(super) const RANK: u32 = 12;
    /// A `ChildTracksOrdering`: by rank.
    pub(super) const EXPLICIT: u64 = 3;
}

/// Fields of `message TrackEvent`.
mod event {
    pub(super) const ANNOTATION: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const TRACK: u32 = 11;
    pub(super) const NAME: u32 = 23;
}

/// `TrackEvent.Type`.
#[derive(Clone, Copy)]
enum Kind {
    Begin = 1,
    End = 2,
    Instant = 3,
}

/// `BuiltinClock`: `CLOCK_MONOTONIC`.
const MONOTONIC: u64 = 3;
/// All of it comes from one writer.
const SEQUENCE: u64 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: nothing was said before.
const BEGINS: u64 = 1;

/// The trace; its clock is `CLOCK_MONOTONIC`.
pub(super) fn write(timeline: &TraceTimeline) -> io::Result<Vec<u8>> {
    let mut trace = Trace::default();
    trace.clock(timeline.entries.first().map_or(0, |entry| entry.at_ns));
    trace.tracks(timeline);
    let mut open: Vec<Vec<&TraceEntry>> = timeline.tracks.iter().map(|_| Vec::new()).collect();
    for entry in &timeline.entries {
        let open = &mut open[entry.track];
        while let Some(ended) = open.pop_if(|span| span.end_ns() <= entry.at_ns) {
            trace.event(ended, Kind::End);
        }
        match entry.ns {
            Some(_) => {
                trace.event(entry, Kind::Begin);
                open.push(entry);
            }
            None => trace.event(entry, Kind::Instant),
        }
    }
    for mut open in open {
        while let Some(ended) = open.pop() {
            trace.event(ended, Kind::End);
        }
    }
    Ok(trace.0.into_bytes())
}

/// `message Trace`: packets.
#[derive(Default)]
struct Trace(Message);

impl Trace {
    fn packet(&mut self, mut packet: Message) {
        packet.number(packet::SEQUENCE_ID, SEQUENCE);
        self.0.inner(1, &packet);
    }

    /// Times are those of the monotonic clock, and so are those that a viewer shows.
    fn clock(&mut self, at_ns: i64) {
        let mut clock = Message::default();
        clock.number(1, MONOTONIC);
        clock.number(2, unsigned(at_ns));
        let mut snapshot = Message::default();
        snapshot.inner(1, &clock);
        snapshot.number(2, MONOTONIC);
        let mut first = Message::default();
        first.inner(packet::CLOCK_SNAPSHOT, &snapshot);
        first.number(packet::SEQUENCE_FLAGS, BEGINS);
        self.packet(first);
    }

    fn tracks(&mut self, timeline: &TraceTimeline) {
        let mut last = None;
        for (rank, track) in timeline.tracks.iter().enumerate() {
            if last != Some(track.group) {
                last = Some(track.group);
                let mut of = Message::default();
                of.number(track::UUID, track.group.number());
                let name = match track.group {
                    TrackGroup::Late => format!("{}: {}", timeline.name, track.group.name()),
                    TrackGroup::Cpu(_) => track.group.name(),
                };
                of.text(track::NAME, &name);
                of.number(track::CHILD_ORDERING, track::EXPLICIT);
                of.number(track::RANK, rank as u64);
                self.descriptor(&of);
            }
            let mut of = Message::default();
            of.number(track::UUID, track_number(rank));
            of.number(track::PARENT, track.group.number());
            of.text(track::NAME, &track.name.1);
            of.number(track::RANK, rank as u64);
            self.descriptor(&of);
        }
    }

    fn descriptor(&mut self, descriptor: &Message) {
        let mut packet = Message::default();
        packet.inner(packet::TRACK_DESCRIPTOR, descriptor);
        self.packet(packet);
    }

    fn event(&mut self, entry: &TraceEntry, kind: Kind) {
        let mut event = Message::default();
        event.number(event::TYPE, kind as u64);
        event.number(event::TRACK, track_number(entry.track));
        let is_end = matches!(kind, Kind::End);
        if !is_end {
            event.text(event::NAME, &entry.name);
            for (name, text) in &entry.details {
                let mut annotation = Message::default();
                annotation.text(10, name);
                annotation.text(6, text);
                event.inner(event::ANNOTATION, &annotation);
            }
        }
        let mut packet = Message::default();
        let at_ns = if is_end { entry.end_ns() } else { entry.at_ns };
        packet.number(packet::TIMESTAMP, unsigned(at_ns));
        packet.number(packet::TIMESTAMP_CLOCK, MONOTONIC);
        packet.inner(packet::TRACK_EVENT, &event);
        self.packet(packet);
    }
}

/// None that a group has.
fn track_number(track: usize) -> u64 {
    (1 << 40) + track as u64
}

/// The clock counts from the boot on.
fn unsigned(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::export::{protobuf::tests::fields, timeline::tests::two_late};

    #[test]
    fn spans_begin_and_end_within_each_other() {
        let timeline = two_late();
        let trace = write(&timeline).unwrap();
        let mut open: Vec<Vec<u64>> = vec![Vec::new(); timeline.tracks.len()];
        let mut ended = 0;
        for packet in fields(&trace) {
            let packet = fields(&packet.2);
            let number = |field: u32| packet.iter().find(|one| one.0 == u64::from(field));
            let Some(event) = number(packet::TRACK_EVENT) else { continue };
            let at_ns = number(packet::TIMESTAMP).unwrap().1;
            let event = fields(&event.2);
            let of = |field: u32| event.iter().find(|one| one.0 == u64::from(field)).unwrap().1;
            let open = &mut open[(of(event::TRACK) - track_number(0)) as usize];
            match of(event::TYPE) {
                1 => open.push(at_ns),
                2 => {
                    assert!(open.pop().unwrap() <= at_ns);
                    ended += 1;
                }
                _ => {}
            }
        }
        assert!(open.iter().all(Vec::is_empty));
        let spans = timeline.entries.iter().filter(|entry| entry.ns.is_some());
        assert_eq!(ended, spans.count());
    }
}

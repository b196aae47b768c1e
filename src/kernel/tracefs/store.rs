//! The last events of every CPU, as the blame asks for them.

use std::{collections::VecDeque, ops::Range};

use crate::kernel::{event::Event, window::Window};

/// Events that are kept of each CPU.
const KEPT: usize = 1 << 15;

#[derive(Debug, Default)]
struct OfCpu {
    events: VecDeque<Event>,
    /// What is older than this is not whole: events were lost or forgotten, ns.
    whole_from_ns: u64,
}

/// Events of all CPUs, each in the order of time. Times are `CLOCK_MONOTONIC` ns.
#[derive(Debug, Default)]
pub struct EventStore {
    cpus: Vec<OfCpu>,
}

impl EventStore {
    fn of(&mut self, cpu: u32) -> &mut OfCpu {
        let cpu = cpu as usize;
        if self.cpus.len() <= cpu {
            self.cpus.resize_with(cpu + 1, OfCpu::default);
        }
        &mut self.cpus[cpu]
    }

    /// Keeps one.
    pub(super) fn push(&mut self, event: Event) {
        let own = self.of(event.cpu);
        if own.events.len() >= KEPT {
            own.events.pop_front();
            let first_ns = own.events.front().map_or(0, |first| first.at_ns);
            own.whole_from_ns = own.whole_from_ns.max(first_ns);
        }
        own.events.push_back(event);
    }

    /// Events of `cpu` were lost before `at_ns`.
    pub(super) fn lost(&mut self, cpu: u32, at_ns: u64) {
        self.of(cpu).whole_from_ns = at_ns;
    }

    /// As [`super::super::EventReader::cpus`].
    #[must_use]
    pub fn cpus(&self) -> u32 {
        u32::try_from(self.cpus.len()).unwrap_or(u32::MAX)
    }

    /// As [`super::super::EventReader::recorded`].
    #[must_use]
    pub fn recorded(&self, cpu: u32) -> Range<u64> {
        let Some(own) = self.cpus.get(cpu as usize) else { return 0..0 };
        let to_ns = own.events.back().map_or(0, |last| last.at_ns);
        own.whole_from_ns.min(to_ns)..to_ns
    }

    /// As [`super::super::EventReader::events`].
    #[must_use]
    pub fn events(&self, cpu: u32, from_ns: u64, to_ns: u64, into: &mut Vec<Event>) -> bool {
        let Some(own) = self.cpus.get(cpu as usize) else { return false };
        let end = own.events.partition_point(|event| event.at_ns <= to_ns);
        let mut window = Window::new(from_ns, to_ns);
        let mut index = end;
        while index > 0 && !window.is_complete() {
            index -= 1;
            window.take(index as u64, own.events[index]);
        }
        let reaches = window.reaches_back() || own.whole_from_ns == 0;
        window.into_order(into);
        reaches && own.whole_from_ns <= from_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::event::EventKind;

    fn switch(at_ns: u64, pid: u32) -> Event {
        let kind = EventKind::Switch { comm: [0; 16], ahead: None };
        Event { at_ns, cpu: 1, prio: 120, pid, flags: 0, kind }
    }

    #[test]
    fn a_time_has_its_events_and_the_last_switch_before_it() {
        let mut store = EventStore::default();
        for at_ns in [100, 200, 300, 400] {
            store.push(switch(at_ns, 1));
        }
        let mut found = Vec::new();
        assert!(store.events(1, 250, 350, &mut found));
        assert_eq!(found.iter().map(|event| event.at_ns).collect::<Vec<_>>(), [200, 300]);
        assert_eq!((store.cpus(), store.recorded(1), store.recorded(7)), (2, 0..400, 0..0));
        assert!(!store.events(7, 0, 9, &mut found), "no such CPU");
    }

    #[test]
    fn what_was_lost_or_forgotten_is_not_whole() {
        let mut store = EventStore::default();
        store.push(switch(100, 1));
        store.lost(1, 200);
        store.push(switch(200, 1));
        let mut found = Vec::new();
        assert!(!store.events(1, 150, 250, &mut found));
        for at_ns in 0..KEPT as u64 {
            store.push(switch(1000 + at_ns, 1));
        }
        assert_eq!(store.recorded(1).start, 1000);
        store.lost(1, 2000);
        store.push(switch(9_000_000, 1));
        assert_eq!(store.recorded(1).start, 2000, "also once others are forgotten");
        assert!(!store.events(1, 1500, 1600, &mut found));
        assert!(store.events(1, 2500, 2600, &mut found));
    }
}

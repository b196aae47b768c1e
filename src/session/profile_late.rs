//! Which samples of a profile were taken while an attached thread worked in a cycle that missed its
//! deadline. That is known when the cycle has ended, so that samples wait for it.

use std::{
    collections::{HashMap, VecDeque},
    sync::mpsc::Receiver,
};

use crate::{probes::LateCycle, run::profile::CpuContext};

/// Samples wait for the end of their cycle, and cycles for samples, at most this time, ns. Of a
/// longer cycle the beginning is lost.
const HELD_NS: u64 = 2_000_000_000;

/// Samples that wait at the most; others are in no cycle.
const MOST_HELD: usize = 200_000;

/// What a sample shows: where, of which task and which stack, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SampleKey {
    pub cpu: u32,
    pub task: u32,
    pub context: CpuContext,
    pub stack: u32,
}

/// A sample that waits.
#[derive(Debug)]
struct HeldSample {
    at_ns: u64,
    tid: u32,
    key: SampleKey,
    weight: u64,
}

/// The late cycles, and the samples that were taken in them.
#[derive(Debug, Default)]
pub(super) struct LateSamples {
    ended: Option<Receiver<LateCycle>>,
    /// Of each thread, in the order in which they ended.
    cycles: HashMap<u32, VecDeque<LateCycle>>,
    held: VecDeque<HeldSample>,
    newest_ns: u64,
    count: u64,
    rows: HashMap<SampleKey, (u64, u64)>,
}

impl LateSamples {
    /// Of the cycles that come here.
    pub(super) fn of(ended: Option<Receiver<LateCycle>>) -> Self {
        Self { ended, ..Self::default() }
    }

    /// Keeps a sample of a task until its cycle has ended.
    pub(super) fn hold(&mut self, (at_ns, tid): (u64, u32), key: SampleKey, weight: u64) {
        self.newest_ns = self.newest_ns.max(at_ns);
        if self.ended.is_some() && self.held.len() < MOST_HELD {
            self.held.push_back(HeldSample { at_ns, tid, key, weight });
        }
    }

    /// Takes the cycles that have ended since, and adds up the samples in them.
    pub(super) fn settle(&mut self) {
        let Some(ended) = &self.ended else { return };
        for cycle in ended.try_iter() {
            self.count += 1;
            self.cycles.entry(cycle.tid).or_default().push_back(cycle);
        }
        let oldest_ns = self.newest_ns.saturating_sub(HELD_NS);
        let (cycles, rows) = (&self.cycles, &mut self.rows);
        self.held.retain(|sample| {
            let is_late =
                cycles.get(&sample.tid).is_some_and(|cycles| is_within(cycles, sample.at_ns));
            if is_late {
                let (samples, weight) = rows.entry(sample.key).or_default();
                *samples += 1;
                *weight = weight.saturating_add(sample.weight);
            }
            !is_late && sample.at_ns >= oldest_ns
        });
        self.cycles.retain(|_, cycles| {
            while cycles.front().is_some_and(|cycle| cycle.end_ns < oldest_ns) {
                cycles.pop_front();
            }
            !cycles.is_empty()
        });
    }

    /// The late cycles, and the samples in them with their weight.
    pub(super) fn finish(mut self) -> (u64, HashMap<SampleKey, (u64, u64)>) {
        self.settle();
        (self.count, self.rows)
    }
}

/// Whether one of these cycles was under way. Those that end together begin one after the other.
fn is_within(cycles: &VecDeque<LateCycle>, at_ns: u64) -> bool {
    let first = cycles.partition_point(|cycle| cycle.end_ns < at_ns);
    cycles.get(first).is_some_and(|cycle| cycle.begin_ns <= at_ns)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    const MS: u64 = 1_000_000;

    fn key(stack: u32) -> SampleKey {
        SampleKey { cpu: 0, task: 1, context: CpuContext::User, stack }
    }

    fn cycle(tid: u32, begin_ms: u64, end_ms: u64) -> LateCycle {
        LateCycle { tid, begin_ns: begin_ms * MS, end_ns: end_ms * MS }
    }

    fn made() -> (Sender<LateCycle>, LateSamples) {
        let (ends, ended) = channel();
        (ends, LateSamples::of(Some(ended)))
    }

    #[test]
    fn samples_in_late_cycles_of_their_thread_count_whichever_comes_first() {
        let (ends, mut late) = made();
        let at = |ms: u64, tid: u32| (ms * MS, tid);
        late.hold(at(5, 7), key(1), 10);
        late.hold(at(6, 8), key(1), 10);
        late.hold(at(9, 7), key(2), 10);
        ends.send(cycle(7, 4, 8)).unwrap();
        late.settle();
        // Its cycle has ended, and the sample comes late from another CPU.
        late.hold(at(7, 7), key(3), 10);
        late.settle();
        // Two that were read together.
        ends.send(cycle(7, 20, 30)).unwrap();
        ends.send(cycle(7, 24, 30)).unwrap();
        late.hold(at(25, 7), key(1), 10);
        late.hold(at(30, 7), key(1), 10);
        let (count, rows) = late.finish();
        assert_eq!(count, 3);
        let mut rows: Vec<_> = rows.into_iter().map(|(key, sum)| (key.stack, sum)).collect();
        rows.sort_unstable();
        assert_eq!(rows, [(1, (3, 30)), (3, (1, 10))]);
    }

    #[test]
    fn what_waits_is_bounded_in_time_and_number() {
        let (ends, mut late) = made();
        for ms in 0..10_000 {
            late.hold((ms * MS, 7), key(1), 1);
            ends.send(cycle(8, ms, ms)).unwrap();
        }
        late.settle();
        assert_eq!((late.held.len(), late.cycles[&8].len()), (2_001, 2_001));
        for _ in 0..MOST_HELD + 10 {
            late.hold((9_999 * MS, 7), key(1), 1);
        }
        assert_eq!(late.held.len(), MOST_HELD);
        // Without a deadline nothing waits.
        let mut none = LateSamples::of(None);
        none.hold((1, 7), key(1), 1);
        assert_eq!((none.held.len(), none.finish().0), (0, 0));
    }
}

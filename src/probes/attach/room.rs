//! The choice of threads that have a place if more threads match than there are places: the most
//! active.
//!
//! How active one is, is how often it wakes up between two looks; the further back, the less that
//! counts. Of a thread without a place it is how often it went to sleep, by `/proc`.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use super::target::FoundTask;
use crate::sys::{root::Root, tasks};

/// What a wake-up since the last look counts; at the next one half of that.
const ONE: u64 = 16;

/// A place that was taken away is given to nobody for so long, so that no program still writes in
/// it.
const REST_NS: i64 = 50_000_000;

/// How active a thread is.
#[derive(Debug, Clone, Copy, Default)]
struct Activity {
    /// How often it had woken up by the last look.
    count: u64,
    recent: u64,
}

impl Activity {
    fn at(self, count: u64) -> Self {
        let fresh = count.saturating_sub(self.count);
        Self { count, recent: (self.recent + ONE.saturating_mul(fresh)) / 2 }
    }
}

/// Threads with a place and those without.
#[derive(Debug, Default)]
pub(super) struct AttachSlots {
    waiting: HashMap<u32, Activity>,
    placed: HashMap<u32, Activity>,
    /// Threads that never had one.
    never: HashSet<u32>,
    /// Threads that were found without one, and how many of them in the measured time.
    seen: HashSet<u32>,
    found: u64,
    /// Threads that lost theirs to more active ones.
    gave_way: HashSet<u32>,
    /// Those whose places rest, until then.
    resting: HashMap<u32, i64>,
}

impl AttachSlots {
    /// The measured time begins.
    pub(super) fn begin(&mut self) {
        self.never.retain(|tid| self.waiting.contains_key(tid));
        self.found = 0;
    }

    /// Whether some thread was without a place at the last look.
    pub(super) fn is_short(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The threads that have no place now, and how often each has gone to sleep; gives them back,
    /// the most active first.
    pub(super) fn look(&mut self, without: Vec<(FoundTask, u64)>) -> Vec<FoundTask> {
        let before = std::mem::take(&mut self.waiting);
        let mut order = Vec::new();
        for (task, count) in without {
            if self.seen.insert(task.tid) && !self.gave_way.contains(&task.tid) {
                self.found += 1;
            }
            let known = before.get(&task.tid).map(|known| known.at(count));
            let activity = known.unwrap_or(Activity { count, recent: 0 });
            self.waiting.insert(task.tid, activity);
            order.push((activity, task));
        }
        order.sort_by_key(|(activity, task)| Reverse((activity.recent, activity.count, task.tid)));
        order.into_iter().map(|(_, task)| task).collect()
    }

    /// Threads that have no place, in that order, without another look.
    pub(super) fn in_order(&self, mut without: Vec<FoundTask>) -> Vec<FoundTask> {
        let recent = |task: &FoundTask| self.waiting.get(&task.tid).map_or(0, |one| one.recent);
        without.sort_by_key(|task| Reverse((recent(task), task.tid)));
        without
    }

    /// This thread has a place now.
    pub(super) fn placed(&mut self, tid: u32) {
        self.waiting.remove(&tid);
        self.never.remove(&tid);
    }

    /// This one found none.
    pub(super) fn full(&mut self, tid: u32) {
        if !self.gave_way.contains(&tid) {
            self.never.insert(tid);
        }
    }

    /// The threads that have places, and how often each has woken up: those that are to give theirs
    /// up, as others without one are more than twice as active, and have woken up more than once.
    pub(super) fn leaving(
        &mut self,
        placed: impl Iterator<Item = (u32, u64)>,
        now_ns: i64,
    ) -> Vec<u32> {
        // Those whose places are still to be given away are enough.
        if !self.resting.is_empty() {
            return Vec::new();
        }
        let before = std::mem::take(&mut self.placed);
        let mut idle = Vec::new();
        for (tid, count) in placed {
            // One whose place is new shows at the next look how active it is.
            let known = before.get(&tid).map(|known| known.at(count));
            self.placed.insert(tid, known.unwrap_or(Activity { count, recent: 0 }));
            idle.extend(known.map(|known| (known.recent, tid)));
        }
        idle.sort_unstable();
        let mut wanting: Vec<u64> = self.waiting.values().map(|one| one.recent).collect();
        wanting.sort_unstable_by_key(|recent| Reverse(*recent));
        let pairs = idle.into_iter().zip(wanting);
        let worse = pairs.take_while(|((idle, _), active)| *active > 2 * idle + ONE);
        let leaving: Vec<u32> = worse.map(|((_, tid), _)| tid).collect();
        for tid in &leaving {
            self.placed.remove(tid);
            self.resting.insert(*tid, now_ns + REST_NS);
            self.gave_way.insert(*tid);
        }
        leaving
    }

    /// Whether the place of a thread that has ended may be given to another one.
    pub(super) fn may_release(&self, tid: u32, now_ns: i64) -> bool {
        self.resting.get(&tid).is_none_or(|until_ns| *until_ns <= now_ns)
    }

    /// Whether a thread may be given a place: not while one that it gave up rests.
    pub(super) fn may_have(&self, tid: u32) -> bool {
        !self.resting.contains_key(&tid)
    }

    /// Whether a place was taken away and its rest is over: somebody is to have it.
    pub(super) fn is_to_fill(&self, now_ns: i64) -> bool {
        !self.resting.is_empty() && self.resting.values().all(|until_ns| *until_ns <= now_ns)
    }

    /// Forgets the places that were taken away.
    pub(super) fn filled(&mut self) {
        self.resting.clear();
    }

    /// Threads that gave up their places.
    pub(super) fn gave_way(&self) -> u64 {
        self.gave_way.len() as u64
    }

    /// Threads that never had one, of those that were found without, and of `refused`, which began
    /// without: those that were not found afterwards had ended by then.
    pub(super) fn never(&self, refused: u64) -> u64 {
        refused.saturating_sub(self.found) + self.never.len() as u64
    }
}

/// Whether this is still the thread that was found.
pub(super) fn is_there(root: &Root, task: &FoundTask) -> bool {
    i32::try_from(task.tid).is_ok_and(|tid| tasks::start(root, tid).is_some())
        && root.path(format!("/proc/{}/task/{}", task.pid, task.tid)).exists()
}

/// How often a thread went to sleep so far.
pub(super) fn sleeps(root: &Root, task: &FoundTask) -> u64 {
    let status = root.read(format!("/proc/{}/task/{}/status", task.pid, task.tid));
    let of = |line: &str| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse().ok();
    status.unwrap_or_default().lines().find_map(of).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(tid: u32) -> FoundTask {
        FoundTask { tid, pid: 1, comm: b"x".to_vec() }
    }

    fn order(room: &mut AttachSlots, without: &[(u32, u64)]) -> Vec<u32> {
        let without = without.iter().map(|(tid, count)| (task(*tid), *count)).collect();
        room.look(without).iter().map(|task| task.tid).collect()
    }

    #[test]
    fn the_idle_give_way_to_the_more_active_by_more_than_twice() {
        let mut room = AttachSlots::default();
        // At the first look all that is known is what they did before.
        assert_eq!(order(&mut room, &[(10, 5), (11, 900), (12, 0)]), [11, 10, 12]);
        [10, 11, 12].iter().for_each(|tid| room.full(*tid));
        assert_eq!(room.leaving([(1, 50), (2, 7), (3, 0)].into_iter(), 0), [0; 0]);
        // 10 wakes up 100 times, 12 three times; of those with a place 1 does it 60 times.
        assert_eq!(order(&mut room, &[(10, 105), (11, 900), (12, 3)]), [10, 12, 11]);
        let placed = [(1, 110), (2, 7), (3, 0), (4, 0)];
        assert_eq!(room.leaving(placed.into_iter(), 1), [2, 3], "4 is new");
        assert!(!room.may_release(2, 1) && room.may_release(2, 1 + REST_NS));
        assert!(room.may_release(1, 1) && !room.is_to_fill(1) && room.is_to_fill(1 + REST_NS));
        room.filled();
        room.placed(10);
        room.placed(12);
        assert_eq!((room.gave_way(), room.never(0)), (2, 1), "11 never had one");
    }

    #[test]
    fn as_active_ones_keep_what_they_have() {
        let mut room = AttachSlots::default();
        for look in 0..20 {
            order(&mut room, &[(10, 150 * look), (11, look)]);
            let leaving = room.leaving([(1, 100 * look), (2, 80 * look)].into_iter(), 0);
            assert_eq!(leaving, [0; 0], "{look}");
        }
    }

    #[test]
    fn who_began_without_a_place_and_was_found_later_is_counted_once() {
        let mut room = AttachSlots::default();
        order(&mut room, &[(10, 0)]);
        room.full(10);
        room.begin();
        order(&mut room, &[(10, 0), (11, 0), (12, 0)]);
        room.placed(11);
        [10, 12].iter().for_each(|tid| room.full(*tid));
        // Four began without; two of them were found.
        assert_eq!(room.never(4), 2 + 2);
    }
}

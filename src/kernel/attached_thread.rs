//! One attached thread in the memory that the programs fill: `struct tardy_attach_thread`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{
    attached_counts::{AttachedCounts, BEGINS, OverCounts, WAITS},
    header,
};

const BUCKETS: usize = header::TARDY_ATTACH_BUCKETS as usize;
const HISTS: usize = header::TARDY_ATTACH_HISTS as usize;
const SUB_BITS: u32 = header::TARDY_ATTACH_SUB_BITS;

// Offsets in words of 8 bytes, of `struct tardy_attach_thread` and what it contains.
pub(super) const TID_PID: usize = 0;
pub(super) const STATE_PRIO: usize = 1;
pub(super) const START: usize = 2;
pub(super) const COMM: usize = 3;
const WAKING: usize = 5;
const OUT: usize = 7;
const READY: usize = 8;
const IN: usize = 9;
const HARD: usize = 13;
const SOFT: usize = 14;
const WOKEN: usize = 15;
const PREEMPTED: usize = 19;
const UNMATCHED: usize = 20;
const IN_SLACK: usize = 21;
const SLACK: usize = 22;
const LAST: usize = 23;
const PERIOD: usize = 24;
const FIRST: usize = 25;
const HITS: usize = 26;
const MISSES: usize = 27;
const MISSED: usize = 28;
const VOTES_RELATIVE: usize = 29;
const WANTED: usize = 32;
const LATE: usize = 33;
const WOKEN_NS: usize = 34;
const SWITCHED: usize = 35;
const DUE: usize = 36;
const DUE_SOFT: usize = 37;
pub(super) const DEADLINE: usize = 53;
const UNSURE: usize = 54;
const ASIDES: usize = UNSURE + 4 + WAITS;
const OVERDUE: usize = ASIDES + 2;
const WAIT_KEY: usize = OVERDUE + 11;
/// The others are for the programs alone.
const OVERS: usize = OVERDUE + 26;
const OVER_WAITS: usize = 6;
const OVER_TOLD: usize = OVER_WAITS + WAITS;
const OVER: usize = OVER_TOLD + 4;
const HISTS_AT: usize = OVERS + BEGINS * OVER;
const HIST_HEAD: usize = 6;
const HIST: usize = HIST_HEAD + BUCKETS / 2;
/// All of it.
pub(super) const THREAD: usize = HISTS_AT + HISTS * HIST;

/// What is counted of a thread; `enum tardy_attach_hist`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttachedTime {
    /// Wake-up to running.
    Dispatch,
    /// Hard expiry of the own timer to running; 0 where that was before it.
    Lateness,
    /// Time on a CPU, of a wake-up.
    Run,
    /// Ready but not running, of a wake-up that was preempted.
    Ready,
    /// Asleep, up to a wake-up.
    Blocked,
    /// Hard expiry of the own timer to the end of the work that follows.
    Response,
    /// Wake-up by others to the next wait.
    Stage,
    /// Of an event loop: the same of work that is not its timer's.
    Other,
    /// Hard expiry of its timer to where such work ended, of those that it kept waiting.
    Kept,
}

impl AttachedTime {
    /// In the order of their numbers.
    pub const ALL: [Self; HISTS] = [
        Self::Dispatch,
        Self::Lateness,
        Self::Run,
        Self::Ready,
        Self::Blocked,
        Self::Response,
        Self::Stage,
        Self::Other,
        Self::Kept,
    ];
}

/// The lowest value of a bucket, ns, and the lowest of the next one.
#[must_use]
pub const fn bucket_bounds(bucket: u32) -> (u64, u64) {
    let row = (bucket >> SUB_BITS).saturating_sub(1);
    let within = (bucket - (row << SUB_BITS)) as u64;
    (within << row, (within + 1) << row)
}

/// A thread at its place.
#[derive(Debug, Clone, Copy)]
pub struct AttachedThread<'a> {
    /// Which place.
    pub place: usize,
    /// It has ended, or is another one by its name: nothing more is counted.
    pub has_ended: bool,
    pub(super) words: &'a [AtomicU64],
}

/// What its timers repeat by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FoundPeriod {
    /// From one programmed expiry to the next, ns; 0 where there were fewer than two.
    pub period_ns: u64,
    /// Expiries that came one period, or a few, after the one before.
    pub hits: u64,
    /// Other ones.
    pub misses: u64,
    /// Periods without an expiry.
    pub missed: u64,
    /// Periods of which that is not known: something that the thread did was not seen, or it armed
    /// its timer for a later expiry than the next one.
    pub unsure: u64,
    /// It had another period before: the counts are of both.
    pub changed: bool,
}

/// A wake-up that was late, or a cycle that was too long; `struct tardy_attach_late`. Times are
/// `CLOCK_MONOTONIC` ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachedLate {
    /// Hard expiry of the own timer that woke the thread; `None` if its dispatch was late.
    pub hard_ns: Option<u64>,
    /// Begin of the interrupt in which that expired.
    pub entry_ns: u64,
    /// From there to the softirq in which that expired; 0 without one.
    pub softirq_ns: u32,
    /// When it was woken.
    pub waking_ns: u64,
    /// When it was switched in.
    pub switch_ns: u64,
    /// The thread, and its place.
    pub tid: u32,
    /// Which place.
    pub place: usize,
    /// The CPU on which it was woken, and the one on which it was switched in.
    pub cpus: (u32, u32),
    /// Of a cycle: when its work ended. Absent for a wake-up.
    pub done_ns: Option<u64>,
}

impl AttachedLate {
    /// Decodes a program's record; `None` if the bytes are invalid.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let long = |word: usize| {
            let bytes = bytes.get(8 * word..8 * word + 8)?;
            bytes.try_into().ok().map(u64::from_ne_bytes)
        };
        let halves = |word: usize| long(word).map(|both| (both as u32, (both >> 32) as u32));
        let (tid, place) = halves(4)?;
        Some(Self {
            hard_ns: long(0).filter(|ns| *ns > 0),
            entry_ns: long(1)?,
            softirq_ns: halves(6)?.1,
            waking_ns: long(2)?,
            switch_ns: long(3)?,
            tid,
            place: place as usize,
            cpus: halves(5)?,
            done_ns: long(7).filter(|ns| *ns > 0),
        })
    }
}

impl AttachedThread<'_> {
    fn load(&self, at: usize) -> u64 {
        self.words.get(at).map_or(0, |word| word.load(Relaxed))
    }

    /// The kernel's number of it.
    #[must_use]
    pub fn tid(&self) -> u32 {
        self.load(TID_PID) as u32
    }

    /// That of its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        (self.load(TID_PID) >> 32) as u32
    }

    /// Its name.
    #[must_use]
    pub fn comm(&self) -> Vec<u8> {
        let bytes = [self.load(COMM), self.load(COMM + 1)].map(u64::to_ne_bytes).concat();
        bytes.into_iter().take_while(|byte| *byte != 0).collect()
    }

    fn over(&self, at: usize) -> OverCounts {
        OverCounts {
            cycles: self.load(at),
            parts_ns: [1, 2, 3, 4, 5].map(|part| self.load(at + part)),
            waits_ns: [0, 1, 2, 3].map(|kind| self.load(at + OVER_WAITS + kind)),
            told: self.load(at + OVER_TOLD),
            faulted: self.load(at + OVER_TOLD + 1),
            faults: [2, 3].map(|kind| self.load(at + OVER_TOLD + kind)),
        }
    }

    /// Its counts.
    #[must_use]
    pub fn counts(&self) -> AttachedCounts {
        AttachedCounts {
            woken: [0, 1, 2, 3].map(|by| self.load(WOKEN + by)),
            preempted: self.load(PREEMPTED),
            unmatched: self.load(UNMATCHED),
            in_slack: self.load(IN_SLACK),
            slack_ns: self.load(SLACK),
            over: [0, 1].map(|begin| self.over(OVERS + begin * OVER)),
            asides: self.load(ASIDES),
        }
    }

    /// The period of its timers: of the candidate the mean over all of its time.
    #[must_use]
    pub fn period(&self) -> FoundPeriod {
        let (hits, missed, unsure) = (self.load(HITS), self.load(MISSED), self.load(UNSURE));
        let span_ns = self.load(LAST).saturating_sub(self.load(FIRST));
        let periods = hits + missed + unsure;
        let misses = self.load(MISSES);
        let flags = (self.load(VOTES_RELATIVE) >> 32) as u32;
        let changed = flags & header::TARDY_ATTACH_CHANGED != 0;
        let mean_ns = if misses == 0 && !changed { span_ns.checked_div(periods) } else { None };
        FoundPeriod {
            period_ns: mean_ns.unwrap_or(self.load(PERIOD)),
            hits,
            misses,
            missed,
            unsure,
            changed,
        }
    }

    /// Whether it has a CPU or waits for one; `None` if nothing that it did was seen.
    #[must_use]
    pub fn is_awake(&self) -> Option<bool> {
        let is_awake = [WAKING, READY, IN].iter().any(|word| self.load(*word) > 0);
        (is_awake || self.load(OUT) > 0).then_some(is_awake)
    }

    /// Whether its own timer woke it last.
    #[must_use]
    pub fn is_by_own_timer(&self) -> bool {
        self.load(if self.load(WAKING) > 0 { HARD } else { DUE }) > 0
    }

    /// When it had the CPU for its last wake-up, ns; 0 for none.
    #[must_use]
    pub fn switched_ns(&self) -> u64 {
        // Its present wake-up is counted when it leaves the CPU.
        let since_ns = self.load(IN);
        if self.load(WAKING) > 0 && since_ns > 0 { since_ns } else { self.load(SWITCHED) }
    }

    /// The last expiry that was over when the thread slept until that, ns; 0 for none.
    #[must_use]
    pub fn overdue_ns(&self) -> u64 {
        self.load(OVERDUE)
    }

    /// The system call in which its own timer finds it, by its number on x86-64; `None` for a
    /// sleep in which no event loop waits.
    #[must_use]
    pub fn waits_in(&self) -> Option<u32> {
        (self.load(WAIT_KEY) >> 48).checked_sub(1).and_then(|number| number.try_into().ok())
    }

    /// The last programmed expiry by which it was woken until a time; 0 for none.
    #[must_use]
    pub fn met_ns(&self) -> u64 {
        let relative = (self.load(VOTES_RELATIVE) >> 32) as u32;
        let was_for = |flag: u32| relative & flag != 0;
        if self.load(WAKING) > 0 && self.load(HARD) > 0 {
            let is_until = !was_for(header::TARDY_ATTACH_SLEPT_FOR);
            return self.load(if is_until { SOFT } else { LAST });
        }
        // The wake-up whose work continues is not counted yet.
        let is_open = self.load(WOKEN_NS) > 0 && self.load(DUE) > 0;
        let is_until = is_open && !was_for(header::TARDY_ATTACH_DUE_FOR);
        self.load(if is_until { DUE_SOFT } else { LAST })
    }

    /// How often a time was counted, their sum, the smallest and the largest, and those longer than
    /// an hour; ns.
    #[must_use]
    pub fn totals(&self, of: AttachedTime) -> [u64; 5] {
        let at = HISTS_AT + of as usize * HIST;
        [0, 1, 2, 3, 4].map(|word| self.load(at + word))
    }

    /// The kernel's priority of it as it last went to sleep: -1 deadline, 0 to 98 real-time.
    #[must_use]
    pub fn prio(&self) -> i16 {
        ((self.load(STATE_PRIO) >> 32) as u32).cast_signed() as i16
    }

    /// The CPU on which it was woken last.
    #[must_use]
    pub fn woken_on(&self) -> u32 {
        self.load(WANTED) as u32
    }

    /// Has wake-ups handed over that are later than this, ns; of lateness, or of dispatch.
    pub fn set_late(&self, over_ns: u64, of_lateness: bool) {
        if let (Some(late), Some(wanted)) = (self.words.get(LATE), self.words.get(WANTED)) {
            let both = wanted.load(Relaxed) as u32;
            wanted.store(u64::from(both) | u64::from(of_lateness) << 32, Relaxed);
            late.store(over_ns, Relaxed);
        }
    }

    /// Its cycles are not to be longer than this, ns.
    pub fn set_deadline(&self, deadline_ns: u64) {
        if let Some(word) = self.words.get(DEADLINE) {
            word.store(deadline_ns, Relaxed);
        }
    }

    /// Begins the smallest and the largest again.
    pub fn reset_extremes(&self) {
        for hist in 0..HISTS {
            let at = HISTS_AT + hist * HIST;
            for (word, value) in [(2, u64::MAX), (3, 0)] {
                if let Some(word) = self.words.get(at + word) {
                    word.store(value, Relaxed);
                }
            }
        }
    }

    /// Hands over every bucket that is not empty, with its count modulo 2^32.
    pub fn buckets(&self, of: AttachedTime, mut each: impl FnMut(u32, u32)) {
        let at = HISTS_AT + of as usize * HIST;
        let bounds = self.load(at + 5);
        let (lowest, highest) = (bounds as u32, (bounds >> 32) as u32);
        for pair in lowest / 2..=(highest / 2).min(BUCKETS as u32 / 2 - 1) {
            let counts = self.load(at + HIST_HEAD + pair as usize);
            for (bucket, count) in
                [(2 * pair, counts as u32), (2 * pair + 1, (counts >> 32) as u32)]
            {
                if count > 0 {
                    each(bucket, count);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::layout::Layout;

    fn layout(name: &str) -> Layout {
        Layout::in_object(concat!(env!("OUT_DIR"), "/attach.bpf.o"), name)
    }

    #[test]
    fn fields_of_a_thread_are_where_they_are_looked_for() {
        let thread = layout("tardy_attach_thread");
        assert_eq!(thread.size, THREAD * 8);
        for (field, at) in [
            ("tid", TID_PID),
            ("state", STATE_PRIO),
            ("start_ns", START),
            ("comm", COMM),
            ("woken", WOKEN),
            ("preempted", PREEMPTED),
            ("unmatched", UNMATCHED),
            ("in_slack", IN_SLACK),
            ("slack_ns", SLACK),
            ("last_ns", LAST),
            ("period_ns", PERIOD),
            ("first_ns", FIRST),
            ("hits", HITS),
            ("misses", MISSES),
            ("missed", MISSED),
            ("woken_on", WANTED),
            ("late_ns", LATE),
            ("deadline_ns", DEADLINE),
            ("unsure", UNSURE),
            ("asides", ASIDES),
            ("overdue_ns", OVERDUE),
            ("wait_key", WAIT_KEY),
            ("over", OVERS),
            ("hists", HISTS_AT),
        ] {
            assert_eq!(thread.field(field).0, at * 8, "{field}");
        }
        let over = layout("tardy_attach_over");
        assert_eq!(over.size, OVER * 8);
        for (field, at) in [("unseen_ns", 5), ("waits_ns", OVER_WAITS), ("told", OVER_TOLD)] {
            assert_eq!(over.field(field).0, at * 8, "{field}");
        }
        let hist = layout("tardy_attach_hist_data");
        assert_eq!((hist.size, hist.field("buckets").0), (HIST * 8, HIST_HEAD * 8));
    }

    #[test]
    fn a_late_wake_up_is_read_as_the_program_lays_it_out() {
        // The compiler of the program checks the places of the fields.
        let words = [7_u64, 8, 9, 10, 12 | 13 << 32, 1 | 2 << 32, 0, 0];
        let bytes = words.map(u64::to_ne_bytes).concat();
        let read = AttachedLate::decode(&bytes).unwrap();
        assert_eq!((read.hard_ns, read.switch_ns, read.cpus), (Some(7), 10, (1, 2)));
        assert_eq!((read.tid, read.place, read.done_ns), (12, 13, None));
        assert_eq!(AttachedLate::decode(&bytes[..40]), None);
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap_and_are_at_most_one_part_in_64_wide() {
        let mut before = 0;
        for bucket in 0..BUCKETS as u32 {
            let (low, next) = bucket_bounds(bucket);
            assert_eq!(low, before, "{bucket}");
            assert!((next - low) * 64 <= low.max(64), "{bucket}");
            before = next;
        }
        assert!(before > 3_600_000_000_000, "an hour");
    }
}

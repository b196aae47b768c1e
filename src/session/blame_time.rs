//! How long the recorder may blame at a time. It goes before all loads, and before measured
//! threads and carriers of messages that are ordinary tasks: what it takes is missing elsewhere.

use tardy_hot::clock::now_ns;

use super::cadence::Cadence;
use crate::peaks::BlameScope;

/// The recorder looks so often. The kernel's events last ten times as long.
pub(super) const TICK_NS: i64 = 5_000_000;

/// Where measured threads are ordinary tasks on its own CPU, or an ordinary task may carry messages
/// there, its longest uninterrupted work, ns, and no longer than until their next
/// expiry; but for one wake-up it does not stop within, and if there is not even time for one.
const PIECE_NS: i64 = 1_000_000;

/// The divisor of the time for blaming: below real-time threads, and beside ordinary ones, before
/// which it runs.
const SHARE: i64 = 10;
const ORDINARY_SHARE: i64 = 20;

/// The same for peaks, which are few or asked for by `--peak-over`, and for all others together.
const PEAKS_SHARE: i64 = 2;
const ORDINARY_PEAKS_SHARE: i64 = 10;

/// Time that was not needed is there later, up to this, ns; more of it for peaks.
const MOST_SAVED_NS: i64 = 20_000_000;
const MOST_SAVED_FOR_PEAKS_NS: i64 = 100_000_000;

/// The longest time that peaks took and that others make up for, ns.
const MOST_OWED_NS: i64 = 100_000_000;

/// What blaming may take, and what it took.
#[derive(Debug)]
pub(super) struct BlameTime {
    cadence: Cadence,
    /// Whether an ordinary task must have its turn: a measured thread, or who carries messages.
    ordinary: bool,
    /// Divisors of the time: for all, and for peaks.
    shares: (i64, i64),
    /// What blaming may still take, ns; less than nothing where it took more.
    allowance_ns: i64,
    /// What blaming peaks may still take, with what others took, ns.
    for_peaks_ns: i64,
    looked_ns: i64,
    /// What one wake-up took the last time, with writing it down, ns.
    one_ns: i64,
    /// Those of the piece of work in progress, since when, and until when it continues.
    piece: (i64, i64, i64),
}

impl BlameTime {
    /// From now on. `measured_priority` is that of the measured threads, 0 where they are ordinary
    /// tasks.
    pub(super) fn new(cadence: Cadence, measured_priority: u32) -> Self {
        let (now, ordinary) = (now_ns(), measured_priority == 0 || cadence.has_breaks());
        let shares = match measured_priority {
            0 => (ORDINARY_SHARE, ORDINARY_PEAKS_SHARE),
            _ => (SHARE, PEAKS_SHARE),
        };
        Self {
            cadence,
            ordinary,
            shares,
            allowance_ns: MOST_SAVED_NS,
            for_peaks_ns: MOST_SAVED_FOR_PEAKS_NS,
            looked_ns: now,
            one_ns: 0,
            piece: (0, now, now),
        }
    }

    /// A piece of work begins. A share of the time since the last one is for blaming.
    pub(super) fn begin_piece(&mut self) {
        let now = now_ns();
        self.earn(now - self.looked_ns);
        self.looked_ns = now;
        self.piece = (0, now, self.piece_until_ns(now));
    }

    fn earn(&mut self, rested_ns: i64) {
        let (all, peaks) = self.shares;
        self.allowance_ns = (self.allowance_ns + rested_ns / all).min(MOST_SAVED_NS);
        self.for_peaks_ns = (self.for_peaks_ns + rested_ns / peaks).min(MOST_SAVED_FOR_PEAKS_NS);
    }

    /// Whether anything at all may be blamed now; else it rests.
    pub(super) fn may_work(&self) -> bool {
        self.for_peaks_ns > 0
    }

    /// What may be done now; asked before the first wake-up of a piece, and after each.
    pub(super) fn effort(&mut self) -> BlameScope {
        self.spend();
        let (asked, _, until_ns) = self.piece;
        self.piece.0 += 1;
        match self.allowance_ns > 0 {
            _ if !self.may_work() => BlameScope::Nothing,
            // One is always looked at: else where that takes long none ever would be.
            _ if asked > 0 && self.looked_ns >= until_ns => BlameScope::Nothing,
            true => BlameScope::All,
            false => BlameScope::Peaks,
        }
    }

    /// A piece of work is over: all of it is written down.
    pub(super) fn end_piece(&mut self) {
        self.spend();
        let (asked, since_ns, _) = self.piece;
        if asked > 1 {
            self.one_ns = (self.looked_ns - since_ns) / (asked - 1);
        }
    }

    /// Until when it rests between two pieces of work where ordinary tasks on its own CPU must have
    /// their turn by then.
    pub(super) fn rested_ns(&self, now_ns: i64) -> Option<i64> {
        self.cadence.before_next_piece(now_ns).filter(|_| self.ordinary)
    }

    /// Until when it works without a rest: where measured threads are ordinary tasks on its own
    /// CPU so that it is done before their next expiry.
    fn piece_until_ns(&self, now_ns: i64) -> i64 {
        let piece_ns = now_ns + PIECE_NS;
        match self.cadence.next_expiry_ns(now_ns).filter(|_| self.ordinary) {
            Some(expiry_ns) => piece_ns.min(expiry_ns - self.one_ns),
            None if self.cadence.has_breaks() => piece_ns,
            None => now_ns + TICK_NS,
        }
    }

    /// What was taken since the last look is spent.
    fn spend(&mut self) {
        let now = now_ns();
        self.pay(now - self.looked_ns);
        self.looked_ns = now;
    }

    fn pay(&mut self, worked_ns: i64) {
        self.allowance_ns = (self.allowance_ns - worked_ns).max(-MOST_OWED_NS);
        self.for_peaks_ns -= worked_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::ExpiryGrid;

    fn time(is_shared: bool, measured_priority: u32) -> BlameTime {
        let grid = ExpiryGrid { interval_ns: 1_000_000, phases_ns: vec![0] };
        BlameTime::new(Cadence::new(0, Some(&grid), is_shared), measured_priority)
    }

    #[test]
    fn ordinary_threads_on_its_own_cpu_have_their_turn_between_two_pieces_of_work() {
        assert_eq!(time(true, 0).rested_ns(5_300_000), Some(6_100_000));
        assert_eq!(time(true, 90).rested_ns(5_300_000), None, "these do not wait for it");
        assert_eq!(time(false, 0).rested_ns(5_300_000), None);
    }

    #[test]
    fn a_piece_of_work_is_over_before_ordinary_threads_on_its_own_cpu_wake_up() {
        let mut time = time(true, 0);
        assert_eq!(time.piece_until_ns(5_100_000), 6_000_000);
        time.one_ns = 150_000;
        assert_eq!(time.piece_until_ns(5_100_000), 5_850_000, "the last of them fits in");
        time.one_ns = 2_000_000;
        assert!(time.piece_until_ns(5_100_000) < 5_100_000, "one takes longer than that");
    }

    #[test]
    fn who_carries_messages_has_its_turn_whatever_the_measured_threads_are() {
        let time = BlameTime::new(Cadence::new(0, None, true), 90);
        assert_eq!(time.piece_until_ns(5_100_000), 6_100_000);
        assert!(time.rested_ns(5_300_000).is_some_and(|rested_ns| rested_ns > 5_300_000));
    }

    #[test]
    fn others_are_looked_after_once_a_tick() {
        for (is_shared, priority) in [(true, 90), (false, 0)] {
            assert_eq!(time(is_shared, priority).piece_until_ns(5_100_000), 10_100_000);
        }
    }

    #[test]
    fn one_is_looked_at_even_where_there_is_no_time_and_then_none() {
        let mut time = time(true, 0);
        time.one_ns = i64::MAX / 4;
        time.begin_piece();
        assert_eq!(time.effort(), BlameScope::All);
        assert_eq!(time.effort(), BlameScope::Nothing);
        time.end_piece();
        assert!(time.one_ns < i64::MAX / 4, "what the one took is known now");
    }

    #[test]
    fn where_peaks_took_more_than_there_is_others_wait() {
        let mut time = time(true, 90);
        time.allowance_ns = -MOST_OWED_NS;
        time.begin_piece();
        assert_eq!(time.effort(), BlameScope::Peaks);
    }

    #[test]
    fn where_peaks_took_all_that_there_is_they_wait_too() {
        let mut time = time(true, 0);
        time.pay(MOST_SAVED_FOR_PEAKS_NS + 1_000_000_000);
        time.begin_piece();
        assert_eq!((time.effort(), time.may_work()), (BlameScope::Nothing, false));
    }

    /// The time that blaming takes of `length_ns`, if each late wake-up takes `one_ns` and all are
    /// peaks that never end.
    fn taken_ns(mut time: BlameTime, one_ns: i64, length_ns: i64) -> i64 {
        let (mut at_ns, mut taken_ns) = (0, 0);
        while at_ns < length_ns {
            while time.may_work() {
                time.pay(one_ns);
                (at_ns, taken_ns) = (at_ns + one_ns, taken_ns + one_ns);
            }
            time.earn(TICK_NS);
            at_ns += TICK_NS;
        }
        taken_ns
    }

    #[test]
    fn however_many_peaks_there_are_and_whatever_one_takes_the_share_is_kept() {
        let length_ns = 60_000_000_000;
        for one_ns in [20_000, 3_000_000, 700_000_000] {
            let saved_ns = MOST_SAVED_FOR_PEAKS_NS + one_ns;
            let ordinary_ns = taken_ns(time(true, 0), one_ns, length_ns);
            assert!(ordinary_ns <= length_ns / ORDINARY_PEAKS_SHARE + saved_ns, "{ordinary_ns}");
            assert!(ordinary_ns >= length_ns / ORDINARY_PEAKS_SHARE / 2, "{ordinary_ns}");
            let below_ns = taken_ns(time(true, 90), one_ns, length_ns);
            assert!(below_ns <= length_ns / PEAKS_SHARE + saved_ns, "{below_ns}");
        }
    }
}

//! Late wake-ups that wait to be blamed, and which of them are given up where that falls behind:
//! those whose events were overwritten meanwhile, and the least late of too many.

use std::{cmp::Reverse, ops::Range};

use tardy_hot::stages::Late;

use super::{MessageWay, contexts::ns};

/// Maximum number of waiting wake-ups, without peaks.
pub(crate) const MOST: usize = 4_096;

/// Maximum number with peaks.
pub(crate) const MOST_WITH_PEAKS: usize = 65_536;

/// A late wake-up or message, and whose: the number of a thread.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    /// Number of the thread.
    pub thread: usize,
    /// The wake-up, or the whole of the message.
    pub late: Late,
    /// Of a message.
    pub ways: Vec<MessageWay>,
}

impl Waiting {
    /// Whether one before it waited for the same: a stall makes very many of these, and the first
    /// of them tells most of it.
    #[must_use]
    pub(crate) fn follows_later(&self) -> bool {
        self.ways.iter().any(|way| way.follows_later)
    }
}

/// Orders those that wait by lateness, the latest first, and takes out those to be given up:
/// those that `is_lost` names and, beyond [`MOST`], the least late that `is_peak` does not. Those
/// of which `is_work` says so and the others have turns: work is longer than the wake-up that it
/// begins with, and where all of it is late there would be room and time for nothing else.
pub(crate) fn drop_backlog(
    waiting: &mut Vec<Waiting>,
    is_work: impl Fn(&Waiting) -> bool,
    is_lost: impl Fn(&Waiting) -> bool,
    is_peak: impl Fn(&Waiting) -> bool,
) -> Vec<Waiting> {
    // What is left of the last time is in order already, which this sort makes use of.
    waiting.sort_by_key(|one| Reverse(one.late.latency_ns));
    take_turns(waiting, is_work);
    let (mut stay, mut given_up) = (0, Vec::new());
    waiting.retain(|one| {
        let has_room = stay < MOST || (stay < MOST_WITH_PEAKS && is_peak(one));
        let stays = has_room && !is_lost(one);
        if stays {
            stay += 1;
        } else {
            given_up.push(one.clone());
        }
        stays
    });
    given_up
}

fn take_turns(waiting: &mut Vec<Waiting>, is_work: impl Fn(&Waiting) -> bool) {
    let (work, others): (Vec<_>, Vec<_>) = waiting.drain(..).partition(is_work);
    let all = work.len() + others.len();
    let (mut work, mut others) = (work.into_iter(), others.into_iter());
    while waiting.len() < all {
        waiting.extend(others.next().into_iter().chain(work.next()));
    }
}

/// Whether the events of a wake-up were overwritten before it was analysed: `recorded` is what a
/// record still holds. One that lasts longer than the record reaches back is lost only as a whole:
/// of the others, what there is can be named.
#[must_use]
pub(crate) fn is_lost(recorded: &Range<u64>, late: &Late) -> bool {
    let (from_ns, to_ns) = (ns(recorded.start), ns(recorded.end));
    let would_fit = late.latency_ns <= to_ns.saturating_sub(from_ns);
    let is_over = late.t_ns.saturating_add(late.latency_ns) <= from_ns;
    from_ns > late.t_ns && (would_fit || is_over)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(t_ns: i64, latency_ns: i64) -> Late {
        Late { t_ns, latency_ns, ..Late::default() }
    }

    #[test]
    fn a_wake_up_is_lost_where_the_record_held_it_and_holds_it_no_longer() {
        assert!(!is_lost(&(0..0), &late(50, 10)), "nothing is recorded, and nothing overwritten");
        assert!(!is_lost(&(0..900), &late(50, 10)));
        assert!(!is_lost(&(500..900), &late(500, 300)));
        assert!(is_lost(&(500..900), &late(499, 300)), "its beginning is missing");
        assert!(!is_lost(&(500..900), &late(100, 700)), "no record holds that as a whole");
        assert!(is_lost(&(5000..5400), &late(100, 700)));
    }

    #[test]
    fn the_least_late_of_too_many_go_but_no_peaks() {
        let one = |latency_ns| Waiting { thread: 0, late: late(5, latency_ns), ways: Vec::new() };
        let count = MOST as i64 + 100;
        let mut waiting: Vec<Waiting> = (1..=count).map(one).collect();
        let given_up =
            drop_backlog(&mut waiting, |_| false, |_| false, |one| one.late.latency_ns <= 30);
        let gone: Vec<i64> = given_up.iter().map(|one| one.late.latency_ns).collect();
        assert_eq!(gone, (31..=100).rev().collect::<Vec<i64>>());
        assert_eq!(waiting.len(), MOST + 30);
        assert_eq!(waiting[0].late.latency_ns, count, "the latest comes first");
        let given_up =
            drop_backlog(&mut waiting, |_| false, |one| one.late.latency_ns == 500, |_| false);
        assert_eq!((given_up.len(), given_up[0].late.latency_ns), (30, 500));
    }
}

//! The blame falls behind: what it leaves out, and what it never does.

use std::borrow::Cow;

use super::*;

/// Late wake-ups in one batch.
const BATCH: i64 = 10_000;
/// From one programmed expiry to the next.
const APART: i64 = 2_000_000;

/// A record of one wake-up after the other, each kept waiting by a task that runs first; what lies
/// before `from_ns` was overwritten.
#[derive(Clone, Copy, Default)]
struct Overwritten {
    from_ns: i64,
}

/// How late the n-th is, ns: up to 1 ms, and no two the same.
fn latency_ns(n: i64) -> i64 {
    20_000 + n * 7_919 % BATCH * 97
}

fn nth(n: i64) -> Late {
    let latency_ns = latency_ns(n);
    let mut late = case([2_000, 0, 1_000, latency_ns - 5_000, 2_000], Vec::new()).late;
    late.t_ns = (n + 1) * APART;
    late
}

impl EventSource for Overwritten {
    fn events(&self, _: u32, from_ns: u64, to_ns: u64, into: &mut Vec<Event>) -> bool {
        let [from_ns, to_ns] = [from_ns, to_ns].map(u64::cast_signed);
        for n in (from_ns / APART - 1).max(0)..=(to_ns / APART - 1).min(BATCH - 1) {
            let at_ns = (n + 1) * APART;
            let switch_at = latency_ns(n) - 2_000;
            let hog = switch(600, 4, "hog");
            let events = wake_up(hog, 1, 2_000, 3_000, switch_at).into_iter();
            let timed = events.map(|(after_ns, event)| at((at_ns + after_ns) as u64, event));
            into.extend(timed.filter(|event| event.at_ns.cast_signed() >= self.from_ns));
        }
        from_ns >= self.from_ns
    }

    fn frequencies(&self, _: u32, _: u64, _: u64) -> Vec<SetFrequency> {
        Vec::new()
    }

    fn cpus(&self) -> u32 {
        1
    }

    fn recorded(&self, _: u32) -> Range<u64> {
        let to_ns = (BATCH + 1) * APART;
        self.from_ns.cast_unsigned()..to_ns.cast_unsigned()
    }

    fn stack(&self, _: u64) -> Option<Vec<u64>> {
        None
    }

    fn symbol(&self, _: u64) -> Option<(Cow<'_, str>, u64)> {
        None
    }

    fn lost(&self) -> u64 {
        0
    }

    fn smis(&mut self, _: u32) -> Option<u64> {
        None
    }
}

/// A blamer that has the whole batch to work at.
fn blamer(from_ns: i64, wishes: BlameOptions) -> Blamer {
    let me = case([0; 5], Vec::new()).me;
    let mut blamer = Blamer::new(vec![me], wishes, Box::new(Overwritten { from_ns }));
    blamer.begin(0, 10_000, 10_000);
    (0..BATCH).for_each(|n| blamer.add(0, nth(n)));
    blamer
}

fn wishes(keep: usize) -> BlameOptions {
    BlameOptions { keep, ..BlameOptions::default() }
}

/// `All` `left` times, then peaks alone.
fn effort(mut left: u64) -> impl FnMut() -> BlameScope {
    move || {
        let effort = if left > 0 { BlameScope::All } else { BlameScope::Peaks };
        left = left.saturating_sub(1);
        effort
    }
}

/// The latencies of the batch, the latest first.
fn ordered(from: i64) -> Vec<i64> {
    let mut all: Vec<i64> = (from..BATCH).map(latency_ns).collect();
    all.sort_unstable_by_key(|latency_ns| std::cmp::Reverse(*latency_ns));
    all
}

fn unexplained(record: &crate::run::peaks::Blame) -> usize {
    record.causes.iter().filter(|cause| cause.cause == Cause::Unexplained).count()
}

#[test]
fn with_no_time_at_all_the_worst_are_kept_and_blamed_and_the_others_passed_over() {
    let mut blamer = blamer(0, wishes(10));
    let peaks = blamer.work(effort(0));
    let latencies: Vec<i64> = peaks.iter().map(|peak| peak.latency_ns).collect();
    assert_eq!(latencies, ordered(0)[..10]);
    assert!(peaks.iter().all(|peak| peak.blame[0].cause == Cause::Thread), "{peaks:?}");
    assert!(!blamer.is_behind() && blamer.give_up().is_empty());
    let record = blamer.record();
    assert_eq!((record.blamed, record.passed_over), (10, BATCH.cast_unsigned() - 10));
    assert_eq!(unexplained(&record), 0, "{:?}", record.causes);
}

#[test]
fn with_little_time_the_least_late_are_left_out() {
    let mut blamer = blamer(0, wishes(10));
    blamer.work(effort(500));
    blamer.give_up();
    let record = blamer.record();
    assert_eq!((record.blamed, record.passed_over), (500, BATCH.cast_unsigned() - 500));
    let least = super::super::sums::low_ns(ordered(0)[499]);
    assert_eq!(record.buckets[0].low_ns, least, "none that is less late was blamed");
}

#[test]
fn what_was_overwritten_is_passed_over_and_never_unexplained() {
    let half = BATCH / 2;
    let mut blamer = blamer((half + 1) * APART - 500_000, wishes(10));
    let peaks = blamer.work(|| BlameScope::All);
    let record = blamer.record();
    assert_eq!((record.blamed, record.passed_over), (5_000, 5_000));
    assert_eq!(unexplained(&record), 0, "{:?}", record.causes);
    for peak in &peaks {
        let was_lost = peak.at_ns.unwrap() <= half * APART;
        let named = &peak.blame[0];
        assert_eq!(named.name == crate::run::peaks::EVENTS_LOST, was_lost, "{peak:?}");
        assert_eq!(named.cause == Cause::Thread, !was_lost, "{peak:?}");
        assert!(!was_lost || (peak.stages.is_some() && named.ns == peak.latency_ns as u64));
    }
    let mut kept: Vec<i64> = peaks.iter().map(|peak| peak.latency_ns).collect();
    kept.sort_unstable_by_key(|latency_ns| std::cmp::Reverse(*latency_ns));
    assert_eq!(kept[..10], ordered(0)[..10], "the worst are kept, lost or not");
}

#[test]
fn peaks_over_a_fixed_threshold_are_all_blamed_however_many() {
    let over_ns = 300_000;
    let mut blamer = blamer(0, BlameOptions { peak_over_ns: Some(over_ns), ..wishes(0) });
    let peaks = blamer.work(effort(0));
    let wanted = ordered(0).into_iter().filter(|latency_ns| *latency_ns > over_ns).count();
    assert_eq!(peaks.len(), wanted);
    assert!(peaks.iter().all(|peak| peak.blame[0].cause == Cause::Thread));
    assert_eq!(blamer.record().blamed, wanted as u64);
}

#[test]
fn later_ones_may_come_while_peaks_wait() {
    let mut blamer = blamer(0, wishes(10));
    let mut left = 4;
    let peaks = blamer.work(|| {
        left -= 1;
        if left > 0 { BlameScope::All } else { BlameScope::Nothing }
    });
    assert_eq!((peaks.len(), blamer.is_behind()), (3, true));
    blamer.add(0, Late { latency_ns: 1_500_000, ..nth(BATCH - 1) });
    assert_eq!(blamer.work(|| BlameScope::Peaks)[0].latency_ns, 1_500_000);
}

#[test]
fn the_threshold_rises_while_many_are_passed_over_and_falls_again() {
    let mut blamer = blamer(0, wishes(0));
    assert_eq!(blamer.threshold_ns(0), 10_000);
    blamer.give_up();
    blamer.follow_p99(0, 10_000);
    assert_eq!(blamer.threshold_ns(0), 12_500);
    blamer.follow_p99(0, 10_000);
    assert_eq!(blamer.threshold_ns(0), 10_000);
}

/// A stall of 1 ms, in which a message was due every 10 us; all but the first wait behind another.
fn stall() -> (Blamer, usize) {
    let me = MeasuredThread {
        series: "there".into(),
        cpu: 0,
        tid: ME,
        prio: 9,
        real_time: true,
        spins: false,
        works: false,
    };
    let wishes = BlameOptions { keep: 100, ..BlameOptions::default() };
    let fake = Fake { events: vec![at(T, switch(ME, 9, "me"))], ..Fake::default() };
    let mut blamer = Blamer::new(vec![me], wishes, Box::new(fake));
    blamer.begin(0, 0, 0);
    let due = (0..100).map(|n| 10_000 * n);
    for after_ns in due.clone() {
        let t_ns = T.cast_signed() + after_ns;
        let late = Late { t_ns, latency_ns: 1_000_000 - after_ns, ..Late::default() };
        let (from_ns, to_ns) = (t_ns, t_ns + late.latency_ns);
        let follows_later = after_ns > 0;
        let way = MessageWay { from_ns, to_ns, follows_later, ..MessageWay::default() };
        blamer.add_message(0, late, vec![way]);
    }
    (blamer, due.count())
}

#[test]
fn of_messages_that_wait_for_the_same_the_first_is_a_peak_whatever_that_takes() {
    let (mut blamer, _) = stall();
    assert!(blamer.is_behind());
    let peaks = blamer.work(|| BlameScope::Peaks);
    let kept: Vec<i64> = peaks.iter().map(|peak| peak.latency_ns).collect();
    assert_eq!((kept, blamer.is_behind()), (vec![1_000_000], false));
    assert_eq!(blamer.give_up().len(), 0, "those behind it are not kept without causes");
    assert_eq!((blamer.record().blamed, blamer.record().passed_over), (1, 99));
    let (mut blamer, all) = stall();
    assert_eq!(blamer.work(|| BlameScope::All).len(), all, "with time for them they are");
}

#[test]
fn what_still_waits_at_the_end_is_not_said_to_be_overwritten() {
    let mut blamer = blamer(0, wishes(10));
    assert!(blamer.work(|| BlameScope::Nothing).is_empty());
    let peaks = blamer.give_up();
    let named = |peak: &Peak| peak.blame[0].name == crate::run::peaks::NOT_ANALYSED;
    assert!(!peaks.is_empty() && peaks.iter().all(named), "{peaks:?}");
    let record = blamer.record();
    assert_eq!((record.blamed, record.passed_over), (0, BATCH.cast_unsigned()));
}

#[test]
fn where_all_work_is_late_wake_ups_have_their_turn_and_both_say_of_how_many_they_are() {
    let me = case([0; 5], Vec::new()).me;
    let works = MeasuredThread { works: true, series: "cpu0/response".into(), ..me.clone() };
    let source = Box::new(Overwritten::default());
    let mut blamer = Blamer::new(vec![me, works], wishes(0), source);
    let half = BATCH / 2;
    for n in 0..half {
        blamer.add(0, nth(n));
    }
    // Each is later than any wake-up.
    for n in half..BATCH {
        let late = nth(n);
        let longer = Late { latency_ns: late.latency_ns + 1_000_000, ..late };
        blamer.add(1, longer);
    }
    let mut left = 100;
    blamer.work(|| {
        left -= 1;
        if left >= 0 { BlameScope::All } else { BlameScope::Nothing }
    });
    blamer.give_up();
    let record = blamer.record();
    let responses: u64 = record.responses.iter().map(|bucket| bucket.wakeups).sum();
    assert_eq!((record.blamed, responses), (50, 50));
    let half = half.cast_unsigned();
    assert_eq!(record.passed_over + 50, half);
    assert_eq!(record.responses_passed_over + 50, half);
}

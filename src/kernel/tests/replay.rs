//! The programs that follow threads of others, with made-up events of one thread.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use crate::kernel::{
    AttachedCounts, AttachedCycles, AttachedThread, AttachedTime, AttachedTo, FoundPeriod,
    replay::AttachReplay,
};

pub(super) const MS: u64 = 1_000_000;

/// How a wake-up, the switch to the thread and the switch from it are seen.
type Seen = [bool; 3];

const ALL: Seen = [true; 3];
const NONE: Seen = [false; 3];
/// As on a CPU that comes out of idle.
const END: Seen = [false, false, true];

/// The record of a thread that arms a timer for each of these expiries, wakes up by it 5 us late
/// and works for 100 us.
fn replay(expiries: &[(u64, Seen)]) -> Vec<AtomicU64> {
    let mut text = String::from("1 in\n");
    let (mut at_ns, mut out) = (2, "");
    for &(expiry_ns, seen) in expiries {
        let [wake, switch_in, switch_out] = seen.map(|seen| if seen { "" } else { "!" });
        let (woken_ns, ran_ns) = (expiry_ns + 2_000, expiry_ns + 5_000);
        // Of what it does while it runs all is seen, or nothing.
        let arm = if at_ns == 2 || seen[2] { "" } else { "!" };
        // It works until those that it passes over are over.
        let armed_ns = if at_ns == 2 { 2 } else { at_ns.max(expiry_ns - MS + 100_000) };
        let _ = writeln!(text, "{armed_ns} {arm}arm {expiry_ns}\n{} {out}out", armed_ns + 1);
        let _ = writeln!(text, "{woken_ns} {wake}wake\n{ran_ns} {switch_in}in");
        (at_ns, out) = (expiry_ns + 100_000, switch_out);
    }
    let _ = writeln!(text, "{} {out}out", at_ns + 1);
    read(&text)
}

/// The record of thread 7 after these events, one a line: a time in ns and one of `arm EXPIRY`, of
/// the timer of its sleep; `armfor EXPIRY`, of one of a sleep for a time; `wake`, by that; `kick`,
/// by another CPU; `in`; `out`, to sleep; `out=STATE`, in another state; `event` and whatever the
/// machine knows. With `!` before the word no program sees it.
fn read(events: &str) -> Vec<AtomicU64> {
    read_on("", events)
}

pub(super) fn read_on(kernel: &str, events: &str) -> Vec<AtomicU64> {
    let (mut replay, programs) =
        AttachReplay::start(&AttachedTo::Thread(7), AttachedCycles::Unmeasured);
    let mut text = format!("{kernel}task 7 120 seven\n");
    for line in events.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (at, unseen, word) = match words[1].strip_prefix('!') {
            Some(word) => (words[0], "!", word),
            None => (words[0], "", words[1]),
        };
        let does: &[String] = &match word {
            "arm" => vec![format!("start {0} {0} abs", words[2])],
            "armfor" => vec![format!("start {0} {0} rel", words[2])],
            "wake" => ["expire 7", "waking 7", "expired"].map(str::to_owned).to_vec(),
            "kick" => ["call", "waking 7", "call_end"].map(str::to_owned).to_vec(),
            "in" => vec!["switch S 7".to_owned()],
            "out" => vec!["switch S 0".to_owned()],
            "event" => vec![words[2..].join(" ")],
            _ => match word.strip_prefix("out=") {
                Some(state) => vec![format!("switch {state} 0")],
                None => panic!("{line}"),
            },
        };
        does.iter().for_each(|what| writeln!(text, "{at} 0 {unseen}{what}").unwrap());
    }
    programs.add(7, 7, b"seven").unwrap();
    replay.feed(&text);
    let thread = programs.all().next().unwrap();
    thread.words.iter().map(|word| AtomicU64::new(word.load(Relaxed))).collect()
}

pub(super) fn told(words: &[AtomicU64]) -> (FoundPeriod, AttachedCounts, u64) {
    let thread = AttachedThread { place: 1, has_ended: false, words };
    (thread.period(), thread.counts(), thread.totals(AttachedTime::Lateness)[0])
}

/// Expiries by 1 ms, of which some are not there, and some are not seen whole.
fn periods(
    last: u64,
    missing: &[u64],
    unseen: &[(u64, Seen)],
) -> (FoundPeriod, AttachedCounts, u64) {
    let seen = |at| unseen.iter().find(|(of, _)| *of == at).map_or(ALL, |(_, seen)| *seen);
    let there = (1..=last).filter(|at| !missing.contains(at));
    told(&replay(&there.map(|at| (at * MS, seen(at))).collect::<Vec<_>>()))
}

#[test]
fn a_thread_of_which_all_is_seen_misses_what_it_misses() {
    let (period, counts, woken) = periods(60, &[], &[]);
    assert_eq!((period.period_ns, period.hits, period.missed, period.unsure), (MS, 59, 0, 0));
    assert_eq!((counts.unmatched, woken), (0, 60));
    let (period, counts, woken) = periods(60, &[20, 40, 41], &[]);
    assert_eq!((period.period_ns, period.missed, period.unsure), (MS, 3, 0));
    assert_eq!((counts.unmatched, woken), (0, 57));
}

#[test]
fn a_period_whose_wake_up_was_not_seen_is_neither_met_nor_missed() {
    for seen in [END, NONE, [false, true, true], [true, false, true], [true, false, false]] {
        let (period, counts, woken) = periods(60, &[30, 31], &[(20, seen), (50, seen)]);
        let found = (period.period_ns, period.missed, period.unsure);
        assert_eq!((found, woken), ((MS, 2, 2), 56), "{seen:?}");
        // How often differs: each part that is missing may show, or only what follows from it.
        assert!((2..=6).contains(&counts.unmatched), "{seen:?}: {}", counts.unmatched);
    }
}

#[test]
fn sight_that_is_lost_while_nothing_is_missed_changes_nothing() {
    // It was seen to wake up and to have the CPU; only that it went to sleep was not.
    let (period, counts, _) = periods(60, &[40], &[(20, [true, true, false])]);
    assert_eq!((period.period_ns, period.missed), (MS, 1));
    assert!(counts.unmatched > 0);
}

#[test]
fn a_time_without_sight_is_not_told_from_one_without_expiries() {
    // Of 20 to 24 two were not seen, and of the others that cannot be known.
    let (period, ..) = periods(60, &[21, 22], &[(20, NONE), (23, NONE)]);
    assert_eq!((period.period_ns, period.missed, period.unsure), (MS, 0, 4));
}

#[test]
fn a_sleep_that_is_over_before_the_thread_left_its_cpu_changes_no_period() {
    let mut text = String::from("1 in\n2 arm 1000000\n3 out\n");
    for at_ns in (1..=60).map(|number| number * MS) {
        let _ = writeln!(text, "{} wake\n{} in", at_ns + 2_000, at_ns + 5_000);
        if at_ns % (10 * MS) == 0 {
            // As of `usleep(0)`.
            let _ = writeln!(text, "{0} armfor {0}\n{1} wake", at_ns + 50_000, at_ns + 51_000);
        }
        let _ = writeln!(text, "{} arm {}", at_ns + 90_000, at_ns + MS);
        let _ = writeln!(text, "{} out", at_ns + 100_000);
    }
    let (period, counts, woken) = told(&read(&text));
    assert_eq!((period.period_ns, period.hits, period.missed, period.unsure), (MS, 59, 0, 0));
    assert_eq!((counts.unmatched, woken), (0, 60));
}

#[test]
fn where_a_shorter_period_is_found_what_was_not_seen_is_counted_by_it() {
    // Every fourth at first, one of these unseen, and then all.
    let is_there = |at: &u64| at.is_multiple_of(4) || *at >= 41;
    let missing: Vec<u64> = (1..=80).filter(|at| !is_there(at)).collect();
    let (period, ..) = periods(80, &missing, &[(20, NONE)]);
    // From 16 to 24 there are seven without a seen expiry; the other gaps, from 4 on, have three.
    assert_eq!((period.period_ns, period.unsure), (MS, 7));
    assert_eq!(period.missed, 7 * 3);
    assert_eq!(period.hits + period.missed + period.unsure, 80 - 4);
}

#[test]
fn who_works_on_is_behind_since_the_expiry_that_woke_it_last() {
    let asleep = replay(&[(MS, ALL), (2 * MS, ALL), (3 * MS, ALL)]);
    let of = |words: &[AtomicU64]| {
        let thread = AttachedThread { place: 1, has_ended: false, words };
        (thread.is_awake(), thread.met_ns())
    };
    let by_own = |words: &[AtomicU64]| {
        AttachedThread { place: 1, has_ended: false, words }.is_by_own_timer()
    };
    assert_eq!(of(&asleep), (Some(false), 3 * MS));
    // The last wake-up is not counted yet; or has not got the CPU.
    let works = replay(&[(MS, ALL), (2 * MS, ALL), (3 * MS, [true, true, false])]);
    assert_eq!(of(&works), (Some(true), 3 * MS));
    let thread = AttachedThread { place: 1, has_ended: false, words: &works };
    assert_eq!(thread.switched_ns(), 3 * MS + 5_000);
    let waits = replay(&[(MS, ALL), (2 * MS, ALL), (3 * MS, [true, false, false])]);
    assert_eq!(of(&waits), (Some(true), 3 * MS));
    assert_eq!(of(&read("")), (None, 0));
    assert_eq!([&works, &waits].map(|words| by_own(words)), [true; 2]);
    // Somebody else woke it since.
    let kicked = "1 in\n2 arm 1000000\n3 out\n1002000 wake\n1005000 in\n1009000 out\n";
    assert!(!by_own(&read(&format!("{kicked}3000000 kick\n"))));
    assert!(!by_own(&read(&format!("{kicked}3000000 kick\n3001000 in\n"))));
}

#[test]
fn an_expiry_that_was_over_when_it_was_armed_is_how_far_a_thread_is_behind() {
    let until = |text: &str| {
        let words = read(text);
        let thread = AttachedThread { place: 1, has_ended: true, words: &words };
        (thread.overdue_ns(), thread.met_ns())
    };
    let woken = "1 in\n2 arm 1000000\n3 out\n1002000 wake\n1005000 in\n";
    assert_eq!(until(woken), (0, MS));
    let behind = "5000000 arm 2000000\n5001000 arm 3000000\n5002000 out\n";
    assert_eq!(until(&format!("{woken}{behind}")), (3 * MS, MS));
    assert_eq!(until(&format!("{woken}5000000 armfor 5000000\n5001000 out\n")).0, 0);
}

#[test]
fn a_thread_that_sleeps_for_long_pauses_and_one_that_works_for_long_has_missed_its_periods() {
    let mut text = String::from("1 in\n2 arm 1000000\n3 out\n");
    let cycle = |text: &mut String, at_ns: u64, next_ns: u64, works_ns: u64| {
        let done_ns = at_ns + works_ns;
        let _ = writeln!(text, "{} wake\n{} in", at_ns + 2_000, at_ns + 5_000);
        let _ = writeln!(text, "{done_ns} arm {next_ns}\n{} out", done_ns + 1);
    };
    for number in 1..=20 {
        cycle(&mut text, number * MS, (number + 1) * MS, 90_000);
    }
    // It works for 2 s, and then sleeps for as long.
    cycle(&mut text, 21 * MS, 2_021 * MS, 1_999 * MS + 500_000);
    cycle(&mut text, 2_021 * MS, 4_021 * MS, 90_000);
    cycle(&mut text, 4_021 * MS, 4_022 * MS, 90_000);
    let (period, ..) = told(&read(&text));
    assert_eq!((period.period_ns, period.missed), (MS, 1_999));
}

/// Wakes up 5 us late at each of these, works for 90 us, and sleeps until the next one.
fn on_purpose(expiries: &[u64]) -> String {
    let mut text = format!("1 in\n2 arm {}\n3 out\n", expiries[0]);
    for pair in expiries.windows(2) {
        let (at_ns, done_ns) = (pair[0], pair[0] + 90_000);
        let _ = writeln!(text, "{} wake\n{} in", at_ns + 2_000, at_ns + 5_000);
        let _ = writeln!(text, "{done_ns} arm {}\n{} out", pair[1], done_ns + 1);
    }
    text
}

/// From where the last one ended so many, by this period.
fn then(mut expiries: Vec<u64>, count: u64, period_ns: u64) -> Vec<u64> {
    let last_ns = expiries.last().copied().unwrap_or(0);
    expiries.extend((1..=count).map(|number| last_ns + number * period_ns));
    expiries
}

fn found(expiries: &[u64]) -> (u64, u64, u64, bool) {
    let (period, ..) = told(&read(&on_purpose(expiries)));
    (period.period_ns, period.hits, period.missed, period.changed)
}

#[test]
fn who_sleeps_for_longer_on_purpose_misses_nothing() {
    // Twice for 200 periods, once for more than are missed at the most.
    let expiries = [200, 200, 5_000].iter().fold(then(Vec::new(), 100, MS), |expiries, pause| {
        then(then(expiries, 1, pause * MS), 100, MS)
    });
    assert_eq!(found(&expiries), (MS, expiries.len() as u64 - 2, 0, false));
    // Every third period is twice as long.
    let uneven = (0..100).fold(Vec::new(), |expiries, _| then(then(expiries, 2, MS), 1, 2 * MS));
    let (period_ns, _, missed, _) = found(&uneven);
    assert_eq!((period_ns, missed), (MS, 0));
}

/// Wakes up at 10, 12, 22, 24, ... ms. Each `often`-th time it works for 5 ms after the second of
/// the two, and then sleeps until the next pair, which it is in time for.
fn two_periods_in_turn(pairs: u64, often: u64) -> String {
    let mut text = String::from("1 in\n2 arm 10000000\n3 out\n");
    let mut at_ns = 10 * MS;
    for pair in 1..=pairs {
        let second_ns = at_ns + 2 * MS;
        let done_ns = second_ns + if pair % often == 0 { 5 * MS } else { 90_000 };
        let _ = writeln!(text, "{} wake\n{} in", at_ns + 2_000, at_ns + 5_000);
        let _ = writeln!(text, "{} arm {second_ns}\n{} out", at_ns + 90_000, at_ns + 90_001);
        let _ = writeln!(text, "{} wake\n{} in", second_ns + 2_000, second_ns + 5_000);
        at_ns = second_ns + 10 * MS;
        let _ = writeln!(text, "{done_ns} arm {at_ns}\n{} out", done_ns + 1);
    }
    text
}

#[test]
fn who_keeps_two_periods_in_turn_and_is_late_by_more_than_the_shorter_one_may_have_missed_none() {
    let (period, ..) = told(&read(&two_periods_in_turn(100, 10)));
    // Ten times it armed the timer for the longer one when two of the shorter ones were over. The
    // last one has not expired.
    assert_eq!((period.period_ns, period.missed, period.unsure), (2 * MS, 0, 9 * 2));
    // It has done so before the shorter one was found.
    let always = told(&read(&two_periods_in_turn(100, 1))).0;
    assert_eq!((always.period_ns, always.missed), (2 * MS, 0));
    assert!(always.unsure >= 98 * 2, "{}", always.unsure);
}

#[test]
fn another_period_on_purpose_is_a_change_and_what_was_counted_before_stays() {
    let shorter = then(then(Vec::new(), 400, 10 * MS), 1_000, MS);
    assert_eq!(found(&shorter), (MS, 1_398, 0, true));
    let longer = then(then(Vec::new(), 400, 3 * MS), 1_000, 5 * MS);
    let (period_ns, hits, missed, changed) = found(&longer);
    assert_eq!((period_ns, missed, changed), (5 * MS, 0, true));
    // Some gaps fit none until the new one has outvoted the old one.
    assert!((1_380..1_399).contains(&hits), "{hits}");
    let to_and_fro =
        (0..4).fold(Vec::new(), |expiries, _| then(then(expiries, 50, 10 * MS), 50, 2 * MS));
    assert_eq!(found(&to_and_fro).2, 0);
    // Few before make no other period.
    assert!(!found(&then(then(Vec::new(), 5, 3 * MS), 200, 5 * MS)).3);
}

#[test]
fn a_thread_that_never_keeps_two_periods_in_a_row_has_its_period_all_the_same() {
    // It works through one to three expiries, and arms the timer for the next one.
    let mut expiries = vec![(MS, ALL)];
    for number in 0..200_u64 {
        let last_ns = expiries.last().map_or(0, |(ns, _)| *ns);
        expiries.push((last_ns + (2 + number * 7 % 3) * MS, ALL));
    }
    let (period, ..) = told(&replay(&expiries));
    let last = expiries.last().map_or(0, |(ns, _)| ns / MS);
    assert_eq!((period.period_ns, period.hits, period.misses), (MS, 200, 0));
    assert_eq!(period.hits + period.missed, last - 1);
    // On purpose that is not a period, and nothing is missed.
    let on_purpose: Vec<u64> = expiries.iter().map(|(ns, _)| *ns).collect();
    let (period_ns, _, missed, _) = found(&on_purpose);
    assert!(period_ns >= 2 * MS && missed == 0, "{period_ns} {missed}");
}

/// Wakes up every 1 ms, and sleeps `sleeps` times for 50 us within each; after the last for
/// `afterwards` ms more.
fn with_sleeps_within(periods: u64, sleeps: u64, afterwards: u64) -> String {
    let mut text = String::from("1 in\n2 arm 1000000\n3 out\n");
    let sleep = |text: &mut String, from_ns: u64, for_ns: u64| {
        let due_ns = from_ns + for_ns;
        let _ = writeln!(text, "{from_ns} armfor {due_ns}\n{} out", from_ns + 100);
        let _ = writeln!(text, "{} wake\n{} in", due_ns + 2_000, due_ns + 5_000);
        due_ns + 10_000
    };
    for at_ns in (1..=periods).map(|number| number * MS) {
        let _ = writeln!(text, "{} wake\n{} in", at_ns + 2_000, at_ns + 5_000);
        let done = (0..sleeps).fold(at_ns + 10_000, |from_ns, _| sleep(&mut text, from_ns, 50_000));
        if at_ns < periods * MS {
            let _ = writeln!(text, "{done} arm {}\n{} out", at_ns + MS, done + 100);
        } else {
            (0..afterwards).fold(done, |from_ns, _| sleep(&mut text, from_ns, MS));
        }
    }
    text + "1000000000 out\n"
}

#[test]
fn a_sleep_in_the_middle_of_a_cycle_is_no_expiry_of_its_period() {
    let (period, counts, late) = told(&read(&with_sleeps_within(60, 1, 0)));
    assert_eq!((period.period_ns, period.hits, period.missed), (MS, 59, 0));
    // The first two came before the period was known.
    assert_eq!((counts.asides, late), (58, 62));
    assert_eq!(counts.woken.iter().sum::<u64>(), 120);
}

#[test]
fn what_a_thread_sleeps_after_it_has_left_its_period_is_late_again() {
    let (_, counts, late) = told(&read(&with_sleeps_within(60, 0, 30)));
    assert_eq!((counts.asides, late), (8, 60 + 22));
}

#[test]
fn what_a_thread_does_more_often_than_its_period_is_what_it_is_there_for() {
    let (period, counts, late) = told(&read(&with_sleeps_within(60, 12, 0)));
    assert_eq!((period.period_ns, period.missed), (MS, 0));
    assert_eq!((counts.asides, late), (58 * 8, 60 + 60 * 12 - 58 * 8));
}

//! The truth test in virtual time: guests whose time is their count of instructions, so that no
//! host can disturb them. Each injected delay must come back, by cause and size, and nothing may be
//! blamed on a host or on hardware.
//!
//! Guests differ by kernel, load, way to sleep and policy. On each change the plainest one is
//! tried, in `make test-long` all of them, and the plainest one with each of Debian's kernels
//! (`TARDY_TEST_KERNEL`). `TARDY_TEST_SEED` chooses other moments for the delays.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod guest;
#[path = "../truth/judge/mod.rs"]
mod judge;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use guest::Guest;
use judge::Outcome;

/// Guests at a time.
const LANES: usize = 2;

/// Past the harness, which hides what passing tests print.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

fn seed() -> u64 {
    let given = std::env::var("TARDY_TEST_SEED").ok().and_then(|text| text.parse().ok());
    given.unwrap_or(1)
}

/// The least number of delays that test a guest.
const FEWEST: usize = 15;

/// A guest that does nothing else, and measures as tardy does unless told otherwise.
const PLAIN: Guest = Guest {
    kernel: "standard",
    load: "idle",
    wake: "nanosleep",
    policy: "fifo",
    time_s: 4,
    kinds: &[],
};

/// All but that one: each differs from it in its kernel, and in one thing besides.
fn others() -> Vec<Guest> {
    let longer = Guest { time_s: 12, ..PLAIN };
    let loads = ["hackbench:groups=1", "ext4", "netflood"];
    let loads = loads.map(|load| Guest { load, time_s: 6, ..PLAIN });
    let wakes = ["relative", "timerfd"].map(|wake| Guest { wake, ..longer });
    let policies = ["rr", "deadline", "other"].map(|policy| Guest { policy, ..longer });
    let mutexes = Guest { kinds: &["pi_mutex"], ..longer };
    let standard = loads.into_iter().chain(wakes).chain(policies).chain([mutexes]);
    // On PREEMPT_RT a timerfd expires in a thread of FIFO 1, for which everything runs first.
    let both = standard.flat_map(|guest| [guest, Guest { kernel: "rt", ..guest }]);
    let both = both.filter(|guest| (guest.kernel, guest.wake) != ("rt", "timerfd"));
    std::iter::once(Guest { kernel: "rt", ..PLAIN }).chain(both).collect()
}

/// The plain one, or the same with another kernel, or those with a part of a name.
fn chosen() -> Vec<Guest> {
    if let Some(kernel) = std::env::var_os("TARDY_TEST_KERNEL") {
        let kernel = String::leak(kernel.into_string().unwrap());
        return vec![Guest { kernel, time_s: 12, ..PLAIN }];
    }
    let Some(part) = std::env::var_os("TARDY_TEST_GUESTS") else { return vec![PLAIN] };
    let part = part.into_string().unwrap();
    let all = std::iter::once(PLAIN).chain(others());
    all.filter(|guest| guest.name().contains(&part)).collect()
}

/// Runs all of these, some at a time.
fn run_all(guests: &[Guest], seed: u64, place: &Path) -> Vec<(Guest, Option<Outcome>)> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..LANES.min(guests.len()) {
            scope.spawn(|| {
                while let Some(guest) = guests.get(next.fetch_add(1, Relaxed)) {
                    let outcome = guest.run(seed, place);
                    done.lock().unwrap().push((*guest, outcome));
                }
            });
        }
    });
    done.into_inner().unwrap()
}

/// What is demanded of each guest: all of it. The kernel's own tracer writes more than a tardy that
/// is not optimised can read on the one CPU, so that a twentieth may be overwritten there.
fn faults(guest: Guest, outcome: &Outcome) -> Vec<String> {
    let [judged, found, right, sized] = outcome.totals();
    let [lost, disturbed] = outcome.unknowable();
    let mut faults: Vec<String> =
        outcome.rows.values().flat_map(|row| row.wrong.iter().cloned()).collect();
    let may_be_lost = if guest.has_tracefs_alone() { judged / 20 } else { 0 };
    if found != judged || [right, sized] != [judged - lost; 2] || lost + disturbed > may_be_lost {
        faults.push(format!("{judged} judged, {lost} lost, {disturbed} disturbed, {sized} right"));
    }
    if judged < FEWEST {
        faults.push(format!("only {judged} delays were judged"));
    }
    faults.extend(outcome.false_blame.iter().map(|peak| format!("false blame: {peak}")));
    faults.extend(outcome.machines.iter().map(|peak| format!("blamed on a host: {peak}")));
    faults
}

#[test]
fn delays_in_counted_time_all_come_back_by_cause_and_size() {
    assert_all_come_back(&chosen(), seed());
}

#[test]
#[ignore = "long: seventeen guests"]
fn delays_in_counted_time_all_come_back_in_every_guest() {
    assert_all_come_back(&std::iter::once(PLAIN).chain(others()).collect::<Vec<_>>(), seed());
}

fn assert_all_come_back(guests: &[Guest], seed: u64) {
    say(&format!("the guests' seed is {seed}; TARDY_TEST_SEED={seed} repeats it"));
    let directory = tempfile::tempdir().unwrap();
    let place = std::env::var_os("TARDY_TEST_TRUTH").map(PathBuf::from);
    let place = place.as_deref().unwrap_or_else(|| directory.path());
    let mut wrong = Vec::new();
    for (guest, outcome) in run_all(guests, seed, place) {
        let Some(outcome) = outcome else { continue };
        say(&format!("{}:\n{}", guest.name(), outcome.table()));
        let faults = faults(guest, &outcome);
        say(&faults.join("\n"));
        wrong.extend(faults);
    }
    assert!(wrong.is_empty(), "{} wrong", wrong.len());
}

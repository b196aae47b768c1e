//! Guests that end badly, and the processes that watch them.

use std::cell::Cell as Counter;

use super::{support::eventually, *};

/// Longer than the limit of any guest here, so that every wait for its end meets that limit.
const ENDLESS: [&str; 2] = ["timer", "--duration=24h"];

#[test]
fn a_guest_that_is_not_done_in_time_or_has_to_stop_ends_at_once_and_leaves_nothing() {
    let Some(place) = Place::new() else { return };
    let short = Cell { limit: Duration::from_secs(1), ..place.cell(&ENDLESS) };
    let error = place.run(&short, "run").unwrap_err().to_string();
    // Both limits are that second: a fast host meets the one, a slow host the other.
    let limits = ["did not end within 1 s", "did not start its first process in 1 s"];
    assert!(limits.iter().any(|limit| error.contains(limit)), "{error}");
    let asked = Counter::new(0);
    let stop = || asked.replace(asked.get() + 1) > 3;
    let run = RunDirectory::make(&place.path("run")).unwrap();
    let error = place.runner.run(&place.cell(&ENDLESS), &run, &stop).unwrap_err();
    assert!(error.to_string().contains("ended early"), "{error:#}");
    assert_empty(&place.path("run"));
    place.assert_nothing_left();
}

#[test]
#[ignore = "long: two guests"]
fn what_tardy_refuses_in_the_guest_and_a_kernel_that_panics_are_reported_outside() {
    let Some(place) = Place::new() else { return };
    let error = place.run(&place.cell(&["timer", "--interval=7"]), "run").unwrap_err().to_string();
    assert!(error.contains("--interval") && error.contains("no unit"), "{error}");
    let crash = ["timer", "--duration=60s", "--load-command", "echo c > /proc/sysrq-trigger"];
    let error = place.run(&place.cell(&crash), "run").unwrap_err().to_string();
    let (why, console) = error.split_once('\n').unwrap();
    assert!(why.contains("the kernel broke") && why.contains("sysrq"), "{error}");
    assert!(console.contains("Kernel panic"), "{error}");
    place.assert_nothing_left();
}

#[test]
fn a_tardy_that_is_killed_takes_its_guest_with_it_and_the_next_clears_away_what_it_left() {
    let Some(place) = Place::new() else { return };
    let cache = place.path("cache");
    // This test's own program stands in for tardy: it is started again, for one test.
    let stand_in = std::env::current_exe().unwrap();
    let mut tardy = Command::new(stand_in)
        .args(["--exact", "faults::a_stand_in_for_a_tardy_that_is_killed", "--nocapture"])
        .env(STAND_IN, place.directory.path())
        .spawn()
        .unwrap();
    let guest = format!("{}/guests/", cache.display());
    eventually("a guest", || processes_with(&guest) > 0);
    tardy.kill().unwrap();
    tardy.wait().unwrap();
    eventually("the guest is gone", || processes_with(&guest) == 0);
    assert_eq!(fs::read_dir(place.path("cache/guests")).unwrap().count(), 1);
    GuestRunner::with(Path::new(TARDY), &cache, &|_| {}).unwrap();
    assert_empty(&place.path("run"));
    place.assert_nothing_left();
}

/// Set for the test binary that stands in for tardy: its directory.
const STAND_IN: &str = "TARDY_TEST_STAND_IN_LAB";

#[test]
fn a_stand_in_for_a_tardy_that_is_killed() {
    let Some(directory) = std::env::var_os(STAND_IN) else { return };
    let place = Place::new().unwrap();
    let directory = Path::new(&directory);
    let runner = GuestRunner::with(Path::new(TARDY), &directory.join("cache"), &|_| {}).unwrap();
    let run = RunDirectory::make(&directory.join("run")).unwrap();
    runner.run(&place.cell(&["timer", "--duration=1h"]), &run, &|| false).unwrap();
}

#[test]
fn a_flag_of_the_labs_own_is_refused_before_any_boot() {
    let Some(place) = Place::new() else { return };
    let error = place.run(&place.cell(&["timer", "--raw"]), "run").unwrap_err().to_string();
    assert!(error.contains("--raw"), "{error}");
}

#[test]
fn without_qemu_its_package_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(TARDY);
    // The lab also searches the directories of root's programs; QEMU is not among them.
    command.env("PATH", directory.path()).env("XDG_CACHE_HOME", directory.path());
    let run = directory.path().join("run");
    let made = tardy(&["run", "fake", "--duration=200ms", "--raw", "-o", run.to_str().unwrap()]);
    assert!(made.status.success(), "{}", said(&made));
    let mut document = open(&run).document;
    let sample_hash = tardy::lab::cell::guest_record::sample_hash(&open(&run)).unwrap();
    let mode = "deterministic".into();
    document.facts.lab = Some(tardy::run::LabFacts { mode, sample_hash, ..Default::default() });
    fs::write(run.join("run.json"), serde_json::to_vec(&document).unwrap()).unwrap();
    let output = command.args(["lab", "verify", run.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("apt-get install qemu-system-x86"), "{}", said(&output));
}

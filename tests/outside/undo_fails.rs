//! What a killed tardy left changed, and nobody can restore: every command says so, however quiet,
//! and exits with 2.

use std::fs;

use super::support::{Said, Store, finish, is_root, piped, skip};

/// A setting, and what the kernel refuses as its value.
const SETTING: &str = "/proc/sys/vm/dirty_writeback_centisecs";
const REFUSED: &str = "not a number";

/// A store, and beside it the journal of a process that is gone, which had changed a setting.
fn with_a_change_that_stays() -> Store {
    let store = Store::new();
    let state = store.path().join("state");
    fs::create_dir(&state).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let owner = serde_json::json!({
        "boot_id": boot.trim(), "pid": i32::MAX, "start": 1, "command": "tardy test",
    });
    let change = serde_json::json!({ "change": "file", "path": SETTING, "old": REFUSED });
    fs::write(state.join("journal"), format!("{owner}\n{change}\n")).unwrap();
    store
}

fn tardy(store: &Store, arguments: &[&str]) -> Said {
    let journal = store.path().join("state/journal");
    finish(piped(store.tardy(arguments).env("TARDY_JOURNAL", journal)))
}

/// Says it in a line, exits with 2, and keeps the journal for another attempt.
fn is_said(store: &Store, arguments: &[&str]) {
    let before = fs::read_to_string(SETTING).unwrap();
    let said = tardy(store, arguments);
    let is_line = |line: &str| line.contains("not restored") && line.contains(SETTING);
    assert!(said.err.lines().any(is_line), "{arguments:?}: {said:?}");
    assert_eq!(said.code, Some(2), "{arguments:?}: {said:?}");
    assert_eq!(fs::read_to_string(SETTING).unwrap(), before);
    let journal = fs::read_to_string(store.path().join("state/journal")).unwrap();
    assert!(journal.contains(REFUSED), "{arguments:?}: {journal}");
}

const FAKE: [&str; 6] =
    ["--unpaced", "--cpus=0", "--interval=10us", "--warmup=0s", "--name=x", "--quiet"];

#[test]
fn a_run_says_what_stays_changed() {
    let store = with_a_change_that_stays();
    is_said(&store, &[&["run", "fake", "--samples=100"], &FAKE[..]].concat());
    is_said(&store, &["restore"]);
}

#[test]
fn a_comparison_says_what_stays_changed() {
    let store = with_a_change_that_stays();
    let sides = ["--a=", "--b=", "--budget=4s"];
    is_said(&store, &[&["ab", "fake"], &FAKE[..], &sides].concat());
}

#[test]
fn a_plan_says_what_stays_changed() {
    let store = with_a_change_that_stays();
    let file = store.path().join("plan.toml");
    let text = "name = \"tiny\"\nprobe = \"fake\"\n[run]\ncpus = \"0\"\ninterval = \"10us\"\n\
                unpaced = true\nsamples = 100\nwarmup = \"0s\"\n[[load]]\nname = \"a\"\nuse = []\n";
    fs::write(&file, text).unwrap();
    is_said(&store, &["plan", file.to_str().unwrap(), "--name=x", "--quiet"]);
}

#[test]
fn a_trial_of_settings_says_what_stays_changed() {
    if !is_root() {
        return skip("needs root");
    }
    let store = with_a_change_that_stays();
    is_said(&store, &["check", "--measure", "--only=vm_stat_interval", "--budget=19s", "--json"]);
}

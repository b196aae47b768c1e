//! Settings of the machine that are set for a time: restored however tardy ends, and noticed if
//! somebody else changes them. Needs root; the settings used here matter to nobody meanwhile.

use std::{
    fs,
    process::{Child, Command},
    time::Duration,
};

use serde_json::Value;

use super::{
    greedy::{Greedy, assert_kept_in_a},
    killed::{Killing, killed_at_random},
    schema::{faults, validator},
    settings::read,
    support::{
        Said, Store, codes, eventually, finish, in_guest, is_root, list, patience, piped, signal,
        skip,
    },
};

const WRITEBACK: &str = "/proc/sys/vm/dirty_writeback_centisecs";
const STATISTICS: &str = "/proc/sys/vm/stat_interval";

struct Machine {
    store: Store,
    before: [String; 2],
}

impl Machine {
    fn alone() -> Option<Self> {
        if !is_root() || fs::OpenOptions::new().write(true).open(WRITEBACK).is_err() {
            skip("needs root and a writable /proc/sys");
            return None;
        }
        Some(Self { store: Store::new(), before: [WRITEBACK, STATISTICS].map(read) })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.store.tardy(arguments);
        command.env("TARDY_JOURNAL", self.store.path().join("state/journal"));
        command
    }

    fn start(&self, arguments: &[&str]) -> Child {
        piped(&mut self.command(arguments))
    }

    fn tardy(&self, arguments: &[&str]) -> Said {
        finish(self.start(arguments))
    }

    /// A run that has set both.
    fn setting(&self, name: &str) -> Child {
        let sets = ["--set", "dirty_writeback=1234", "--set", "vm_stat_interval=77"];
        let run = ["run", "timer", "--trace=off", "--warmup", "0s", "--duration", "60s"];
        self.start(&[&run[..], &sets, &["--interval", "50ms", "--name", name]].concat())
    }

    fn is_whole(&self, when: &str) {
        assert_eq!([WRITEBACK, STATISTICS].map(read), self.before, "{when}");
        assert!(!self.store.path().join("state/journal").exists(), "{when}");
    }

    fn all_gone(&self) {
        eventually("every process is gone", || self.store.processes().is_empty());
    }
}

#[test]
fn a_setting_is_there_while_it_measures_and_in_the_record_and_put_back() {
    let Some(machine) = Machine::alone() else { return };
    let child = machine.setting("one");
    machine.store.wait_measuring("one");
    assert_eq!([WRITEBACK, STATISTICS].map(read), ["1234", "77"]);
    signal(&child, "INT");
    finish(child);
    machine.is_whole("after Ctrl-C");
    let record = machine.store.show("one");
    let found = &record["setup"]["found"]["settings"][0];
    assert_eq!(record["setup"]["asked"]["settings"][0]["value"], "1234");
    assert_eq!([&found["was"], &found["found"]], [machine.before[0].as_str(), "1234"]);
}

/// Starts tardy with a private `/run`, so that no other tardy sees its journal.
fn with_own_run(machine: &Machine, arguments: &[&str]) -> Child {
    let tardy = machine.store.shell("mount -t tmpfs nodev /run || exit 77", arguments);
    let mut outer = Command::new("unshare");
    outer.arg("--mount").arg(tardy.get_program()).args(tardy.get_args());
    for (name, value) in tardy.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        outer.env(name, value);
    }
    outer.env_remove("TARDY_JOURNAL").current_dir(machine.store.path());
    piped(&mut outer)
}

#[test]
fn of_two_with_their_own_run_directories_one_changes_the_machine_at_a_time() {
    let Some(machine) = Machine::alone() else { return };
    let run = |name: &'static str, value: &'static str| {
        let run = ["run", "timer", "--trace=off", "--warmup=0s", "--interval=50ms", "--quiet"];
        let more = ["--duration=60s", "--name", name, "--set", value];
        with_own_run(&machine, &[&run[..], &more].concat())
    };
    let first = run("first", "dirty_writeback=1234");
    machine.store.wait_measuring("first");
    let said = finish(run("second", "dirty_writeback=77"));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("another tardy, which has its own /run"), "{said:?}");
    assert_eq!(read(WRITEBACK), "1234", "the first one's, as before");
    signal(&first, "INT");
    finish(first);
    machine.is_whole("after both");
}

#[test]
fn a_setting_that_somebody_else_changes_makes_the_run_invalid() {
    let Some(machine) = Machine::alone() else { return };
    let child = machine.setting("fought");
    machine.store.wait_measuring("fought");
    fs::write(WRITEBACK, "4321").unwrap();
    signal(&child, "INT");
    finish(child);
    machine.is_whole("after a fight");
    let record = machine.store.show("fought");
    assert_eq!(record["validity"], "invalid", "{record}");
    assert!(codes(&record).contains(&"setting_changed"), "{record}");
}

#[test]
fn a_run_with_settings_that_is_killed_at_a_random_moment_leaves_what_is_put_back() {
    let Some(machine) = Machine::alone() else { return };
    let within = patience() / 300;
    killed_at_random(
        &Killing { name: "kill -9 of a run with settings", times: (5, 100), within },
        |number| ((), machine.setting(&format!("r{number}"))),
        |number, (), _| {
            let changed = read(WRITEBACK) == "1234";
            let said = match number % 2 {
                0 => machine.tardy(&["restore"]),
                _ => machine.tardy(&["run", "fake", "--samples", "1", "--warmup", "0s"]),
            };
            assert_eq!(said.code, Some(0), "{said:?}");
            machine.is_whole(&format!("after kill {number}"));
            if changed { "restored".into() } else { "not changed yet".into() }
        },
    );
    let child = machine.setting("final");
    machine.store.wait_measuring("final");
    signal(&child, "KILL");
    finish(child);
    assert_eq!(read(WRITEBACK), "1234", "nobody has restored it yet");
    let said = machine.tardy(&["restore", "--json"]);
    let result: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(list(&result["put_back"]).len(), 2, "{result}");
    machine.is_whole("after the last");
}

/// A machine on which a thread keeps CPU 0 as long as a setting has its value: that is what the
/// setting does wrong.
fn with_a_bad_setting() -> Option<(Machine, Greedy)> {
    if in_guest() {
        skip("an emulated guest is late by more than the planted setting makes it");
        return None;
    }
    let machine = Machine::alone()?;
    let greedy = Greedy::on_while(0, || read(WRITEBACK) != "1500");
    if greedy.is_none() {
        skip("real-time threads are not allowed here");
    }
    Some((machine, greedy?))
}

/// The record of trying these settings; what helps is written into `drop-ins`.
fn tried(machine: &Machine, only: &str, budget: &str) -> Value {
    let out = machine.store.path().join("drop-ins");
    let try_it = ["check", "--measure", "--cpus", "0", "--only", only, "--budget", budget];
    let write = ["--seed", "7", "--write", out.to_str().unwrap(), "--json"];
    let said = machine.tardy(&[&try_it[..], &write].concat());
    let record: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(out.exists(), record["settings"][0]["verdict"] == "better", "{said:?}");
    record
}

#[test]
#[ignore = "live: twin campaign::settings::tests::a_setting_with_stalls_is_better_and_comes_first"]
fn a_bad_setting_is_ranked_first() {
    let Some((machine, _greedy)) = with_a_bad_setting() else { return };
    let record = tried(&machine, "vm_stat_interval,dirty_writeback", "90s");
    let first = &record["settings"][0];
    assert_eq!([&first["name"], &first["verdict"]], ["dirty_writeback", "better"], "{record}");
}

#[test]
fn a_bad_setting_is_tried_with_its_figures_and_all_is_as_before() {
    let Some((machine, greedy)) = with_a_bad_setting() else { return };
    assert!(!greedy.has_spared_its_cpu(), "nothing was changed yet");
    let record = tried(&machine, "dirty_writeback", "19s");
    assert!(greedy.has_spared_its_cpu(), "the value was there for the blocks of B");
    let schema = validator(include_str!("../../docs/settings.schema.json"));
    assert_eq!(faults(&schema, &record), [""; 0]);
    let setting = &record["settings"][0];
    assert_eq!([&setting["name"], &setting["tried"]], ["dirty_writeback", "1500"], "{record}");
    assert_eq!(setting["now"], machine.before[0].as_str());
    assert_eq!(setting["not_judged"], Value::Null, "{record}");
    let figures = list(&setting["figures"]);
    assert_eq!(
        figures.iter().map(|own| &own["figure"]).collect::<Vec<_>>(),
        ["p50", "p99", "p99.9"]
    );
    for figure in figures {
        let of = |name: &str| figure[name].as_f64().unwrap();
        assert!(of("low") <= of("ratio") && of("ratio") <= of("high"), "{figure}");
        assert!(of("p") <= of("p_adjusted") && of("p_adjusted") <= 1.0, "{figure}");
    }
    let of = |value: &Value| value.as_str().unwrap().to_owned();
    let place = machine.store.runs().join(of(&record["id"]));
    assert_kept_in_a(&place.join(of(&setting["comparison"])));
    machine.is_whole("after all");
}

#[test]
fn a_trial_of_settings_that_is_killed_ends_its_block_which_puts_all_back() {
    let Some(machine) = Machine::alone() else { return };
    killed_at_random(
        &Killing {
            name: "kill -9 of check --measure",
            times: (2, 100),
            within: Duration::from_secs(6),
        },
        |_| {
            let words = ["check", "--measure", "--only", "dirty_writeback,vm_stat_interval"];
            ((), machine.start(&words))
        },
        |number, (), _| {
            machine.all_gone();
            let said = machine.tardy(&["restore"]);
            assert_eq!(said.code, Some(0), "{said:?}");
            machine.is_whole(&format!("after kill {number}"));
            if said.out.starts_with("restored") { "by restore" } else { "by the block" }.into()
        },
    );
}

#[test]
fn without_the_right_nothing_is_measured_and_it_is_said_what_is_missing() {
    if !is_root() {
        return skip("whether this user has rights is not known");
    }
    let store = Store::unprivileged();
    let said = store.run(&["check", "--measure"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("run it as root"), "{said:?}");
    let said = store.run(&["run", "--duration", "1s", "--set", "dirty_writeback=7"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("--set dirty_writeback=7 is not available"), "{said:?}");
    let said = store.run(&["check", "--measure", "--dry-run", "--json"]);
    let plan: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    let untried = list(&plan["not_tried"]);
    assert!(!untried.is_empty() && untried.iter().all(|own| own["why"] != ""), "{plan}");
    for (words, part) in [
        (&["--only", "nosuch"][..], "no setting is called so"),
        (&["--budget", "1s", "--dry-run", "--only", "dirty_writeback"], ""),
        (&["--all"], "--all is not supported"),
    ] {
        let said = store.run(&[&["check", "--measure"][..], words].concat());
        assert!(said.err.contains(part), "{words:?}: {said:?}");
    }
}

//! kill -9 behind a shield, at any moment: `tardy restore`, or the next tardy, puts all of it back.

use std::{process::Child, time::Duration};

use super::{
    super::{
        killed::{Killing, killed_at_random},
        support::{eventually, finish, list, patience, signal},
    },
    Machine,
};

/// Also while the shield goes up, which takes some tens of milliseconds, and longer in a guest.
fn within() -> Duration {
    patience() / 300
}

/// Has the remains restored, by `tardy restore` and by the next tardy in turns.
fn put_back(machine: &Machine, number: usize) -> String {
    let was_open = machine.store.path().join("state/journal").exists();
    let (said, whose) = if number.is_multiple_of(2) {
        let said = machine.tardy(&["restore"]);
        assert_eq!(said.err, "", "{said:?}");
        // One that was claimed may have had no change in it yet.
        assert!(was_open || said.out.starts_with("Nothing"), "{said:?}");
        let has_change = said.out.starts_with("restored");
        (said, if has_change { "restored by restore" } else { "not changed yet" })
    } else {
        let said = machine.tardy(&["run", "fake", "--samples", "1", "--warmup", "0s"]);
        (said, if was_open { "restored by the next tardy" } else { "not changed yet" })
    };
    assert_eq!(said.code, Some(0), "{said:?}");
    machine.is_whole(&format!("after kill {number}"));
    whose.into()
}

/// One that is killed when its shield stands is sure to have left something.
fn has_much_to_put_back(machine: &Machine, child: Child) {
    signal(&child, "KILL");
    finish(child);
    let said = machine.tardy(&["restore", "--json"]);
    let result: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &result["state"]), (Some(0), &"restored".into()), "{said:?}");
    assert!(list(&result["put_back"]).len() > 3, "{result}");
    machine.is_whole("after the last");
    assert_eq!(machine.tardy(&["restore"]).out, "Nothing to restore.\n");
}

#[test]
fn a_run_behind_a_shield_that_is_killed_at_a_random_moment_leaves_what_is_put_back() {
    let Some(machine) = Machine::alone() else { return };
    killed_at_random(
        &Killing { name: "kill -9 of a run behind a shield", times: (5, 50), within: within() },
        |number| ((), machine.shielded("60s", &format!("r{number}"))),
        |number, (), _| put_back(&machine, number),
    );
    let child = machine.shielded("60s", "final");
    machine.store.wait_measuring("final");
    has_much_to_put_back(&machine, child);
}

#[test]
fn a_shield_around_a_command_that_is_killed_at_a_random_moment_leaves_what_is_put_back() {
    let Some(machine) = Machine::alone() else { return };
    let cpu = machine.cpu.to_string();
    // What outlives tardy must not keep the pipes by which this test hears of its end.
    let script = "exec sleep 600 >/dev/null 2>&1";
    let start = || machine.start(&["shield", &cpu, "--quiet", "--", "sh", "-c", script]);
    killed_at_random(
        &Killing { name: "kill -9 of tardy shield", times: (5, 50), within: within() },
        |_| ((), start()),
        |number, (), _| {
            let kind = put_back(&machine, number);
            end_commands(&machine);
            kind
        },
    );
    let child = start();
    eventually("the busy task leaves", || machine.busy_cpus() != cpu);
    has_much_to_put_back(&machine, child);
    end_commands(&machine);
}

/// The command itself was not killed.
fn end_commands(machine: &Machine) {
    eventually("the command is gone", || {
        let left = machine.store.processes();
        for pid in &left {
            let pid = rustix::process::Pid::from_raw(*pid).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        left.is_empty()
    });
}

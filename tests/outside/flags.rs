//! What is refused, in which words, and that a refusal leaves everything as it was.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use super::{
    echo::{end, listening},
    support::{SHORT, Store, TARDY, contents, finish, is_root, piped, skip},
};

/// Arguments behind `tardy`, and what the message must hold: the flag or file, and the remedy.
const REFUSED: &[(&[&str], &[&str])] = &[
    (&["load", "--list", "--store", "x"], &["--store", "tardy load", "leave it out"]),
    (&["--store", "x", "restore"], &["--store", "tardy restore", "leave it out"]),
    (&["--licenses", "list"], &["--licenses stands alone", "run `tardy --licenses`"]),
    (&["run", "timer", "--interval", "0"], &["--interval", "use 1us or more"]),
    (&["run", "timer", "--interval", "0us"], &["--interval", "use 1us or more"]),
    (&["run", "timer", "--interval", "250"], &["--interval", "250us, 250ms or 250s"]),
    (&["run", "timer", "--interval", "2h"], &["--interval", "use 1h or less"]),
    (&["run", "timer", "--interval", "-1ms"], &["--interval", "-1ms", "is not a time"]),
    (&["run", "timer", "--interval=-1ms"], &["--interval", "use a number and a unit"]),
    (&["run", "timer", "--duration", "5"], &["--duration", "5us, 5ms or 5s"]),
    (&["run", "timer", "--duration", "0"], &["--duration", "use 1s or more, or inf"]),
    (&["run", "timer", "--duration", "5parsec"], &["--duration", "ns, us, ms, s, m, h or d"]),
    (&["run", "timer", "--duration", "9999999h"], &["--duration", "292 years"]),
    (&["run", "timer", "--samples", "0"], &["--samples", "use 1 or more"]),
    (&["run", "timer", "--samples", "1k5"], &["--samples", "1000 or 50k"]),
    (&["run", "--samples", "9", "--duration", "1s"], &["--samples", "--duration", "cannot be"]),
    (&["run", "--samples", "9", "--duration", "inf"], &["--samples", "--duration", "cannot be"]),
    (&["run", "timer", "--duration", "forever"], &["--duration", "or inf"]),
    (&["run", "timer", "--stop-over", "100"], &["--stop-over", "100us"]),
    (&["run", "timer", "--warmup", "1"], &["--warmup", "1us, 1ms or 1s"]),
    (&["run", "timer", "--distance", "7"], &["--distance", "7us"]),
    (&["run", "timer", "--timer-slack", "7"], &["--timer-slack", "7us"]),
    (&["run", "timer", "--cpus", "0-999"], &["--cpus 0-999", "allowed are"]),
    (&["run", "timer", "--cpus", "3-1"], &["--cpus", "write 1-3"]),
    (&["run", "timer", "--cpus", "0,x"], &["--cpus", "e.g. 0-3,7"]),
    (&["run", "timer", "--cpus", ""], &["--cpus", "as in 0"]),
    (&["run", "timer", "--cpus", "0-4294967295"], &["--cpus", "beyond"]),
    (&["run", "timer", "--priority", "100"], &["--priority", "100", "1..=99"]),
    (&["run", "timer", "--priority", "0"], &["--priority", "1..=99"]),
    (&["run", "timer", "--policy", "batch"], &["--policy", "fifo", "rr", "other"]),
    (
        &["run", "timer", "--policy", "other", "--priority", "5"],
        &["--priority", "--policy other", "leave one of them out"],
    ),
    (
        &["run", "timer", "--threads", "3", "--priority", "4", "--priority-step", "2"],
        &["--priority-step 2", "smaller step", "higher --priority than 4"],
    ),
    (&["run", "timer", "--threads", "0"], &["--threads", "1..=64"]),
    (&["run", "timer", "--wake", "spin"], &["--wake", "nanosleep, relative, timerfd"]),
    (&["run", "timer", "--trace", "on"], &["--trace", "auto, off, stages, peaks"]),
    (
        &["run", "timer", "--trace", "off", "--peaks", "5"],
        &["--peaks is not supported with --trace off"],
    ),
    (
        &["run", "timer", "--trace", "stages", "--peak-over", "1ms"],
        &["--peak-over is not supported with --trace stages"],
    ),
    (&["run", "timer", "--trace", "off", "--calibrate"], &["--calibrate is not supported"]),
    (&["run", "timer", "--peaks", "5", "--peak-over", "1ms"], &["--peaks", "--peak-over"]),
    (&["run", "timer", "--stacks", "often"], &["--stacks", "auto, always, off"]),
    (&["run", "fake", "--trace", "stages"], &["--trace stages", "fake"]),
    (&["run", "nosuch"], &["nosuch", "timer"]),
    (&["run", "--load", "nosuch"], &["--load nosuch", "use one of hackbench, burn", ", idle"]),
    (&["run", "--load", ""], &["--load", "is empty", "leave the flag out"]),
    (&["run", "--load-command", " "], &["--load-command", "is empty", "leave the flag out"]),
    (&["run", "--load", "disk-write:dir=/no/such"], &["/no/such", "a directory that exists"]),
    (&["load"], &["no LOAD is named", "`tardy load --list`"]),
    (&["load", "nosuch"], &["nosuch", "use one of hackbench, burn"]),
    (&["load", "burn:share=200"], &["share=200", "from 1 to 100"]),
    (&["load", "burn", "--duration", "5"], &["--duration", "5us, 5ms or 5s"]),
    (&["load", "burn", "--list"], &["--list", "cannot be used with"]),
    (&["run", "--load", "hackbench:groups=0"], &["groups=0", "from 1 to 1000", "groups=4"]),
    (&["run", "--load", "hackbench:grops=1"], &["grops", "use one of groups, fds"]),
    (&["run", "--load", "hackbench:groups"], &["`groups`", "hackbench:groups=4"]),
    (&["run", "--load", "idle:x=1"], &["--load idle:x=1", "it takes none"]),
    (&["run", "--load", "hackbench:groups=1000,fds=200"], &["hackbench", "kernel.pid_max"]),
    (&["run", "timer", "--name", "a/b"], &["--name", "a name may not contain /"]),
    (&["run", "timer", "--name", ".."], &["--name", ".."]),
    (&["run", "timer", "--name", ""], &["--name", "is empty", "leave the flag out"]),
    (&["run", "attach", "--comm", "", "--", "true"], &["--comm", "is empty", "leave the flag out"]),
    (&["rm", ""], &["RUN", "is empty", "leave the word out"]),
    (&["run", "timer", "--format", "xml"], &["--format", "text, json"]),
    (&["run", "timer", "--interrupts", "--json"], &["--interrupts", "interrupts.csv"]),
    (&["run", "timer", "--interrupts", "--quiet"], &["--interrupts", "--quiet"]),
    (&["run", "timer", "-l", "1000"], &["-l of cyclictest is --samples N"]),
    (&["run", "--nonsense"], &["--nonsense", "--help"]),
    (&["show", "nosuch"], &["\"nosuch\"", "`tardy list`"]),
    (&["show", "last~7"], &["last~7", "`tardy list`"]),
    (&["show", "/etc"], &["/etc is not a run directory"]),
    (&["rm", "nosuch"], &["\"nosuch\"", "`tardy list`"]),
    (&["rm"], &["<RUN>..."]),
    (&["report", "nosuch", "-o", "x.html"], &["\"nosuch\"", "`tardy list`"]),
    (&["report", "nosuch", "-o", "x.pdf"], &["-o x.pdf", "ends in .html"]),
    (&["report", "nosuch"], &["--output <FILE>"]),
    (&["report", "-o", "x.html"], &["<RUN>..."]),
    (&["reprot"], &["reprot", "report"]),
    (&[], &["Usage", "run", "list", "show", "report"]),
];

#[test]
fn a_refusal_names_the_flag_and_the_remedy_and_leaves_nothing_behind() {
    let store = Store::new();
    for (arguments, wanted) in REFUSED {
        let said = store.run(arguments);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{arguments:?}: {said:?}");
        let err = said.err.replace('\n', " ");
        for word in *wanted {
            assert!(err.contains(word), "{arguments:?} does not say {word:?}: {err}");
        }
        assert!(!err.contains("panicked"), "{arguments:?}: {err}");
        assert_eq!(contents(store.path()).len(), 0, "{arguments:?} left something");
    }
}

#[test]
fn a_directory_that_is_not_empty_is_not_written_to() {
    let store = Store::new();
    let taken = store.path().join("taken");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("thesis.tex"), "three years of work").unwrap();
    let file = store.path().join("file");
    fs::write(&file, "a file").unwrap();
    let before = contents(store.path());
    for place in [&taken, &file] {
        let place = place.to_str().unwrap();
        let said = store.run(&[&SHORT[..], &["--duration", "1s", "-o", place]].concat());
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        for word in [place, "nothing was overwritten", "Choose another place"] {
            assert!(said.err.contains(word), "{word}: {said:?}");
        }
        assert_eq!(contents(store.path()), before);
    }
}

#[test]
fn an_empty_directory_may_become_a_run() {
    let store = Store::new();
    let empty = store.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let place = empty.to_str().unwrap();
    let said = store.run(&[&SHORT[..], &["--duration", "100ms", "-o", place]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(store.show(place)["status"], "complete");
}

#[test]
fn a_place_that_is_taken_is_refused_a_name_is_numbered_and_its_run_stays_as_it_is() {
    let store = Store::new();
    store.measure("mine", &["--duration", "100ms"]);
    let before = contents(store.path());
    let short = [&SHORT[..], &["--duration", "100ms"]].concat();
    let said = store.run(&[&short[..], &["--output", "runs/mine"]].concat());
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("mine") && said.err.contains("hoose another"), "{said:?}");
    assert_eq!(contents(store.path()), before);
    let record = fs::read(store.runs().join("mine/run.json")).unwrap();
    for (number, quiet) in [(2, &[][..]), (3, &["--quiet"][..])] {
        let said = store.run(&[&short[..], &["--name", "mine"], quiet].concat());
        let name = format!("mine-{number}");
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.out.starts_with(&format!("{name}: ")), "{said:?}");
        assert_eq!(said.err.contains(&format!("this run is {name}")), quiet.is_empty(), "{said:?}");
        assert_eq!(store.show(&name)["name"], name.as_str());
    }
    assert_eq!(fs::read(store.runs().join("mine/run.json")).unwrap(), record);
}

#[test]
fn a_place_that_cannot_be_written_is_named_with_the_way_out() {
    let store = Store::unprivileged();
    let locked = store.path().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    let place = locked.join("run");
    let place = place.to_str().unwrap();
    let said = store.run(&[&SHORT[..], &["--duration", "1s", "-o", place]].concat());
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    for word in [place, "Permission denied", "-o or --store"] {
        assert!(said.err.contains(word), "{word}: {said:?}");
    }
    let said = store.run(&["run", "timer", "--store", place, "--duration", "1s"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains(place) && said.err.contains("-o or --store"), "{said:?}");
}

#[test]
fn nothing_needs_the_environment_to_name_a_home_directory() {
    let place = tempfile::tempdir().unwrap();
    let without_home = |words: &[&str]| {
        let mut command = Command::new(TARDY);
        // What this machine has changed is not to be restored.
        command.env_clear().env("TARDY_JOURNAL", place.path().join("journal"));
        piped(command.args(words))
    };
    for words in [&["load", "--list"][..], &["restore"]] {
        let said = finish(without_home(words));
        assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
    }
    let words = ["echo", "--listen", "127.0.0.1:0", "--policy", "other", "--json"];
    end(listening(without_home(&words)));
    // What needs runs takes the home directory of the account, if there is one.
    let said = finish(without_home(&["list"]));
    assert!(said.code == Some(0) || said.err.contains("--store"), "{said:?}");
}

#[test]
fn a_report_that_cannot_be_written_leaves_the_old_one() {
    let store = Store::new();
    store.measure("r", &["--duration", "100ms"]);
    let missing = store.run(&["report", "r", "-o", "no/such/place.html"]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(missing.err.contains("no/such/place.html"), "{missing:?}");
    let page = store.path().join("old.html");
    fs::write(&page, "the old page").unwrap();
    let said = store.run(&["report", "nosuch", "-o", "old.html"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert_eq!(fs::read(&page).unwrap(), b"the old page");
    let said = store.run(&["report", "r", "-o", "old.html"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{said:?}");
    assert!(fs::read_to_string(&page).unwrap().contains("tardy-data"));
}

#[test]
fn real_time_that_was_asked_for_and_cannot_be_had_is_an_error_with_the_remedy() {
    let store = Store::unprivileged();
    for (flags, named) in [
        (&["--policy", "fifo"][..], "--policy fifo"),
        (&["--priority", "42"], "--priority 42"),
        (&["--policy", "rr", "--priority", "7"], "--policy rr --priority 7"),
    ] {
        let arguments = [&["run", "timer", "--duration", "1s"], flags].concat();
        let said = super::support::finish(super::support::piped(
            &mut store.shell("ulimit -r 0", &arguments),
        ));
        if !is_root() && said.code == Some(0) {
            return skip("this user may have real-time threads");
        }
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        for word in [named, "not available", "CAP_SYS_NICE", "/etc/security/limits.conf"] {
            assert!(said.err.contains(word), "{word}: {said:?}");
        }
    }
    assert!(!store.runs().exists(), "nothing is left behind");
}

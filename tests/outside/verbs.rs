//! What each verb prints, where, and in which form.

use std::{
    fs::File,
    process::{Command, Stdio},
};

use super::support::{
    SHORT, Store, TARDY, contents, eventually, finish, list, piped, signal, skip,
};

#[test]
fn every_verb_explains_itself_on_standard_output() {
    let store = Store::new();
    for arguments in [
        &["--help"][..],
        &["-h"],
        &["run", "--help"],
        &["list", "--help"],
        &["show", "--help"],
        &["why", "--help"],
        &["profile", "--help"],
        &["compare", "--help"],
        &["report", "--help"],
        &["import", "--help"],
        &["cyclictest", "--help"],
        &["hwlatdetect", "--help"],
        &["load", "--help"],
        &["repair", "--help"],
        &["rm", "--help"],
    ] {
        let said = store.run(arguments);
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{arguments:?}: {said:?}");
        assert!(said.out.contains("Usage: tardy"), "{arguments:?}: {}", said.out);
        assert!(said.out.lines().all(|line| line.chars().count() <= 100), "{}", said.out);
    }
    let said = store.run(&["--version"]);
    assert_eq!(said.code, Some(0));
    assert_eq!(said.out, format!("tardy {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_help_names_every_exit_code_that_there_is() {
    let help = Store::new().run(&["--help"]).out;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in
        ["Exit codes", "0 done", "1 measured", "2 error", "3 inconclusive", "4 the run is invalid"]
    {
        assert!(help.contains(word), "{word}: {help}");
    }
}

#[test]
fn an_empty_store_is_said_to_be_empty_and_makes_no_directory() {
    let store = Store::new();
    let said = store.run(&["list"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""));
    assert!(said.err.contains("No runs in") && said.err.contains("`tardy run`"), "{said:?}");
    let said = store.run(&["list", "--json"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "[]\n", ""));
    assert!(contents(store.path()).is_empty() && !store.runs().exists());
}

#[test]
fn runs_are_found_by_name_path_beginning_of_their_id_and_by_age() {
    let store = Store::new();
    let old = store.measure("old", &["--duration", "100ms"]);
    store.measure("new", &["--duration", "100ms"]);
    let id = store.show("old")["id"].as_str().unwrap().to_owned();
    for name in ["old", old.to_str().unwrap(), "runs/old", id.as_str(), "last~1"] {
        assert_eq!(store.show(name)["name"], "old", "{name}");
    }
    assert_eq!(store.show("last")["name"], "new");
    let said = store.run(&["show"]);
    assert!(said.out.starts_with("new: "), "`show` alone is the last: {said:?}");
    // Both were made in this century.
    let said = store.run(&["show", "20"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains(&id) && said.err.contains("write more of it"), "{said:?}");

    let text = store.run(&["list"]);
    let lines: Vec<&str> = text.out.lines().collect();
    assert_eq!(lines.len(), 3, "{text:?}");
    assert!(lines[0].starts_with("id "), "{text:?}");
    assert!(lines[1].contains(" old ") && lines[2].contains(" new "), "oldest first: {text:?}");
    let json: serde_json::Value =
        serde_json::from_str(&store.run(&["list", "--json"]).out).unwrap();
    let names: Vec<_> = list(&json).iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["old", "new"]);
    assert_eq!(json[0]["path"], old.to_str().unwrap());
    assert_eq!(json[0]["status"], "complete");
}

#[test]
fn a_damaged_run_is_reported_beside_the_list_of_the_others() {
    let store = Store::new();
    store.measure("good", &["--duration", "100ms"]);
    std::fs::create_dir(store.runs().join("bad")).unwrap();
    std::fs::write(store.runs().join("bad/run.json"), "{").unwrap();
    std::fs::create_dir(store.runs().join("stray")).unwrap();
    let said = store.run(&["list"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("good") && !said.out.contains("bad"), "{said:?}");
    assert!(said.err.contains("bad/run.json is damaged"), "{said:?}");
    assert!(
        !said.err.contains("stray"),
        "a directory of something else does not count as damage: {said:?}"
    );
}

#[test]
fn a_reader_that_went_away_is_no_failure_of_tardy() {
    let store = Store::new();
    store.measure("r", &["--duration", "100ms"]);
    for arguments in [&["list"][..], &["show", "r"], &["show", "r", "--json"], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = store.tardy(arguments);
        let said = finish(command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap());
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{arguments:?}: {said:?}");
    }
    let mut shell = store.shell("\"$0\" list | head -n 0; echo $? >&2; set -- --version", &["x"]);
    let said = finish(piped(&mut shell));
    assert_eq!((said.code, said.err.as_str()), (Some(0), "0\n"), "{said:?}");
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let store = Store::new();
    store.measure("r", &["--duration", "100ms"]);
    for arguments in [&["list"][..], &["show", "r"], &["show", "r", "--json"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = store.tardy(arguments);
        let said = finish(command.stdout(full).stderr(Stdio::piped()).spawn().unwrap());
        assert_eq!(said.code, Some(2), "{arguments:?}: {said:?}");
        assert!(said.err.contains("cannot write the result"), "{said:?}");
    }
}

#[test]
fn a_log_shows_that_a_run_goes_on_and_standard_output_does_not() {
    let store = Store::new();
    let log = store.path().join("log");
    let arguments = [&SHORT[..], &["--duration", "inf", "--name", "r"]].concat();
    let mut command = store.tardy(&arguments);
    command.stdout(Stdio::piped()).stderr(File::create(&log).unwrap());
    let child = command.spawn().unwrap();
    let read = || std::fs::read_to_string(&log).unwrap();
    eventually("a line after 10 s", || read().contains(" samples | worst "));
    signal(&child, "INT");
    let said = finish(child);
    assert_eq!(said.code, Some(0), "{said:?}");
    let line = read().lines().next().unwrap().to_owned();
    assert!(line.contains(" s | ") && line.contains(", cpu"), "no end is known: {line}");
    assert!(!said.out.contains(" samples | worst "), "{said:?}");
}

#[test]
fn rm_removes_what_it_was_told_and_nothing_that_is_being_measured_or_not_its_own() {
    let store = Store::new();
    let short = ["--duration", "100ms"];
    for name in ["a", "b", "c", "d"] {
        store.measure(name, &short);
    }
    let gone = |name: &str| !store.runs().join(name).exists();
    let said = store.run(&["rm", "a", "runs/a", "last"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    let removed: Vec<&str> = said.out.lines().collect();
    assert!(removed.len() == 2 && removed[0].ends_with("runs/a"), "{said:?}");
    assert!(removed[1].starts_with("removed /") && removed[1].ends_with("runs/d"), "{said:?}");
    assert!(gone("a") && gone("d") && !gone("b") && !gone("c"));
    std::fs::write(store.runs().join("c/notes.txt"), "x").unwrap();
    let measured = store.start_measuring("live", &[]);
    for (name, word) in
        [("c", "notes.txt"), ("live", "still being measured"), ("2", "write more of it")]
    {
        let said = store.run(&["rm", "b", name]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{name}: {said:?}");
        assert!(said.err.contains(word), "{name}: {said:?}");
        assert!(!gone("b") && !gone("c") && !gone("live"), "{name}");
    }
    store.interrupt("live", measured);
    let said = store.run(&["rm", "b", "live"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(gone("b") && gone("live"));
}

#[test]
fn rm_of_conditions_takes_old_runs_and_keeps_what_has_no_date_or_is_in_progress() {
    let store = Store::new();
    for name in ["old", "new", "undated", "other"] {
        store.measure(name, &["--duration", "100ms"]);
    }
    let dated = |name: &str, date: &str| {
        let file = store.runs().join(name).join("run.json");
        let mut run: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        run["started_at"] = date.into();
        std::fs::write(&file, run.to_string()).unwrap();
    };
    dated("old", "2020-01-01T00:00:00Z");
    dated("undated", "1970-01-01T00:00:07Z");
    let is_there = |name: &str| store.runs().join(name).exists();
    let said = store.run(&["rm", "--older-than", "90d"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.ends_with("runs/old\n") && said.out.lines().count() == 1, "{said:?}");
    assert!(!is_there("old") && is_there("new") && is_there("undated"));
    let none = store.run(&["rm", "--where", "name=o*", "--older-than", "90d"]);
    assert!(none.err.contains("No such runs in ") && is_there("other"), "{none:?}");
    let measured = store.start_measuring("one", &[]);
    let said = store.run(&["rm", "--where", "name=o*"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("kept: ") && said.err.contains("still being measured"), "{said:?}");
    assert!(!is_there("other") && is_there("one"));
    store.interrupt("one", measured);
    let both = store.run(&["rm", "new", "--older-than", "90d"]);
    assert!(both.code == Some(2) && is_there("new"), "{both:?}");
}

#[test]
fn exit_codes_are_those_that_the_caller_reads() {
    let store = Store::new();
    let fake = ["run", "fake", "--warmup", "0s", "--cpus", "0", "--unpaced", "--samples", "2000"];
    let of = |more: &[&str]| store.run(&[&fake[..], more].concat()).code;
    assert_eq!(of(&["--gate", "max<1ns", "--exit-codes", "rtla"]), Some(2));
    assert_eq!(of(&["--gate", "max<1ns", "--exit-codes=kselftest"]), Some(1));
    assert_eq!(of(&["--exit-codes=kselftest"]), Some(0));
    assert_eq!(of(&["--exit-codes=kselftest", "--nonsense"]), Some(1), "a refused command line");
    assert_eq!(of(&["--exit-codes=nonsense"]), Some(2));
}

/// What tardy writes to a terminal.
fn on_a_terminal(store: &Store, arguments: &str, colour: &str) -> String {
    let mut command = Command::new("script");
    command
        .args(["-qec", &format!("{colour} {TARDY} {arguments}"), "/dev/null"])
        .env("TARDY_STORE", store.runs())
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .env_remove("CI")
        .stdin(Stdio::null());
    finish(piped(&mut command)).out
}

#[test]
fn colour_and_progress_go_to_a_terminal_and_nowhere_else() {
    let store = Store::new();
    let said = store.run(&[&SHORT[..], &["--duration", "1s", "--name", "r"]].concat());
    let shown = store.run(&["show", "r"]);
    let refused = store.run(&["show", "nosuch"]);
    for said in [&said, &shown, &refused] {
        assert!(!said.out.contains('\x1b') && !said.out.contains('\r'), "{said:?}");
        assert!(!said.err.contains('\x1b') && !said.err.contains('\r'), "{said:?}");
    }
    assert_eq!(said.out, shown.out, "`run` prints what `show` prints");
    if Command::new("script").arg("--version").output().is_err() {
        return skip("no `script` to play a terminal");
    }
    assert!(on_a_terminal(&store, "show r", "").contains("\x1b["), "no colour on a terminal");
    let plain = on_a_terminal(&store, "show r", "NO_COLOR=1");
    assert!(plain.contains("cpu0") && !plain.contains('\x1b'), "NO_COLOR is not honoured: {plain}");
    let run = "run timer --warmup 100ms --duration 1s";
    let progress = on_a_terminal(&store, run, "");
    assert!(progress.contains(" left") && progress.contains("\x1b[K"), "{progress:?}");
    let quiet = on_a_terminal(&store, &format!("{run} --quiet"), "");
    assert!(!quiet.contains(" left"), "{quiet:?}");
    // The terminal that `script` plays does not know its size.
    for verb in ["show r", "check --all", "load --list", "lab kernels", "run --load hackbnch"] {
        for line in on_a_terminal(&store, verb, "NO_COLOR=1").lines() {
            let is_path = !line.trim().contains(' ');
            assert!(is_path || line.trim_end().chars().count() <= 80, "{verb}: {line:?}");
        }
    }
}

#[test]
fn an_empty_variable_of_the_store_is_as_none() {
    let store = Store::new();
    let data = store.path().join("data");
    let mut command = store.tardy(&["run", "fake", "--duration=10ms", "--name=r", "--quiet"]);
    let said = finish(piped(command.env("TARDY_STORE", "").env("XDG_DATA_HOME", &data)));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(data.join("tardy/runs/r/run.json").exists());
}

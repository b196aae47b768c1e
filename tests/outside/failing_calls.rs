//! Each system call that writes fails once: an error that says so, or a run that is whole or says
//! what it lacks, and nothing left behind.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use super::{
    chance::{Campaign, repeats, some_of},
    full_disk::assert_counts,
    strace::{Traced, can_trace, traced},
    support::{Store, codes, contents, list},
};

/// Opening: files and directories of the store alone. tardy opens a file of each process of the
/// machine as well, so that a number among all would be another file in each run.
const OPENS: &str = "?open,openat";

/// What fails, as strace names it: calls of one purpose. Some are not there on every architecture.
const CALLS: [&str; 7] = [
    "write",
    "ftruncate",
    "?rename,renameat,renameat2",
    "fsync,fdatasync",
    "?unlink,unlinkat",
    "?mkdir,mkdirat",
    OPENS,
];

const RUN: [&str; 8] = ["run", "fake", "--duration", "300ms", "--warmup", "0s", "--cpus", "0"];

/// How calls fail: a full disk, and a broken one.
const ERRORS: [&str; 2] = ["ENOSPC", "EIO"];

/// The directories of the store, with those of the run `r`.
fn directories(store: &Store) -> [String; 4] {
    let run = store.runs().join("r");
    let places = [store.path().into(), store.runs(), run.clone(), run.join("samples")];
    places.map(|place| place.into_os_string().into_string().unwrap())
}

/// Whether a call that opens, without its name, opens one of these directories, or what is in it
/// by its descriptor.
fn opens_there(arguments: &str, directories: &[String]) -> bool {
    let (first, rest) = arguments.split_once(", ").unwrap_or((arguments, ""));
    directories.iter().any(|place| {
        let is_below = !first.starts_with("AT_FDCWD") && first.ends_with(&format!("<{place}>"));
        is_below || rest.starts_with(&format!("\"{place}\""))
    })
}

/// The command with calls of this purpose traced, as these options of strace say.
fn traced_calls(store: &Store, calls: &str, options: &[&str], arguments: &[&str]) -> Traced {
    let trace = format!("trace={calls}");
    let places = directories(store);
    let mut all = vec!["-e", &trace];
    if calls == OPENS {
        all.extend(places.iter().flat_map(|place| ["-P", place]));
    }
    traced(store, &[&all, options].concat(), arguments)
}

/// The command with its N-th calls of this purpose failing: the N-th of every thread.
fn with_failing(store: &Store, calls: &str, number: usize, arguments: &[&str]) -> Traced {
    let error = ERRORS[number % ERRORS.len()];
    let inject = format!("inject={calls}:error={error}:when={number}");
    traced_calls(store, calls, &["-e", &inject], arguments)
}

/// All calls that a command makes while nothing fails: purpose and number in its thread.
fn calls_of(store: &Store, arguments: &[&str]) -> Vec<(&'static str, usize)> {
    let traced = traced_calls(store, &CALLS.join(","), &[], arguments);
    assert_eq!(traced.said.code, Some(0), "{:?}", traced.said);
    let directories = directories(store);
    let (mut numbers, mut found) = (BTreeMap::new(), BTreeSet::new());
    for line in &traced.calls {
        // "1234  openat(AT_FDCWD</>, ...": whatever else there is has no name and bracket.
        let Some((before, rest)) = line.split_once('(') else { continue };
        let Some((thread, name)) = before.split_once(' ') else { continue };
        let is_it = |calls: &&&str| calls.split(',').any(|it| it.trim_matches('?') == name.trim());
        let Some(calls) = CALLS.iter().find(is_it) else { continue };
        if *calls == OPENS && !opens_there(rest, &directories) {
            continue;
        }
        let number = numbers.entry((thread, name)).or_insert(0);
        *number += 1;
        found.insert((*calls, *number));
    }
    found.into_iter().collect()
}

/// What failed.
fn injected(traced: &Traced) -> Vec<&str> {
    let calls = traced.calls.iter().map(String::as_str);
    calls.filter(|call| call.contains("(INJECTED)")).collect()
}

/// Whether one of the two errors is in a text.
fn is_named(text: &str) -> bool {
    ["No space left", "Input/output error"].iter().any(|error| text.contains(error))
}

/// What is true of every command whose calls fail; whether it has said that it failed.
fn has_failed(traced: &Traced, moment: &str) -> bool {
    let said = &traced.said;
    assert!(!said.err.contains("panicked"), "{moment}");
    assert!(matches!(said.code, Some(0 | 2)), "{moment}");
    let is_mute = injected(traced).iter().any(|call| call.contains(" write(2<"));
    let is_said = is_named(&said.err);
    assert!(said.code == Some(0) || is_said || is_mute, "{moment}");
    said.code == Some(2)
}

/// The files that only a maker at work has.
fn scraps(store: &Store) -> Vec<String> {
    let names = contents(store.path()).into_keys();
    let names = names.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    let is_scrap = |name: &String| {
        let ends = [".tmp", ".spool", "live.hlog"];
        name.starts_with('.') || ends.iter().any(|end| name.ends_with(end))
    };
    names.filter(is_scrap).collect()
}

/// What came of a run whose N-th call of this purpose failed.
fn run_with_failing(calls: &str, number: usize) -> &'static str {
    let store = Store::new();
    let run = [&RUN[..], &["--raw", "--name", "r"]].concat();
    let traced = with_failing(&store, calls, number, &run);
    let moment = format!("{calls} {number}: {:?}\n{:#?}", traced.said, injected(&traced));
    let failed = has_failed(&traced, &moment);
    assert_eq!(store.processes(), [0; 0], "{moment}");
    let place = store.runs().join("r");
    let has_record = place.join("run.json").exists();
    assert!(
        has_record || failed && !place.exists(),
        "no record, and no error without one: {moment}"
    );
    if !has_record {
        let left = contents(store.path());
        assert!(left.keys().all(|path| path.ends_with("calls")), "{moment}: {left:?}");
        return "an error and no run";
    }
    let record = store.show("r");
    if failed && record["status"] == "crashed" {
        return "an error and a run without its end";
    }
    assert_eq!(record["status"], "complete", "{moment}: {record}");
    let caveats = list(&record["caveats"]);
    let incomplete = caveats.iter().find(|caveat| caveat["code"] == "record_incomplete");
    // Where samples could not be put into their last form, readers take the first.
    let is_needed = |name: &String| incomplete.is_some() && name.ends_with(".spool");
    let left: Vec<String> = scraps(&store).into_iter().filter(|name| !is_needed(name)).collect();
    // What cannot be removed stays.
    assert!(left.is_empty() || calls.contains("unlink"), "{moment}: {left:?}");
    if let Some(caveat) = incomplete {
        assert!(is_named(&caveat["text"].to_string()), "{moment}: {caveat}");
        return "a run that says what it lacks";
    }
    assert_counts(&store, &place, &record);
    match (failed, injected(&traced).is_empty()) {
        (true, _) => "an error and a whole run",
        (false, true) => "untouched",
        (false, false) => "a whole run",
    }
}

#[test]
fn whichever_call_of_a_run_fails_there_is_an_error_or_a_run_that_can_be_read() {
    if !can_trace() {
        return;
    }
    let store = Store::new();
    let all = calls_of(&store, &[&RUN[..], &["--raw", "--name", "r"]].concat());
    let codes = codes(&store.show("r")).join(" ");
    assert!(!codes.contains("record_incomplete"), "{codes}");
    let mut campaign = Campaign::new("failing calls of a run");
    for calls in CALLS {
        let own: Vec<usize> =
            all.iter().filter(|(of, _)| *of == calls).map(|(_, number)| *number).collect();
        assert!(!own.is_empty(), "a run makes no {calls}");
        for number in some_of(own, repeats(1, usize::MAX), &mut campaign.chance) {
            campaign.came(run_with_failing(calls, number));
        }
    }
    campaign.end();
}

#[test]
fn a_run_directory_that_cannot_be_opened_is_removed_again() {
    if !can_trace() {
        return;
    }
    let traced = traced_calls(&Store::new(), OPENS, &[], &[&RUN[..], &["--name", "r"]].concat());
    let opened = traced.calls.iter().position(|call| call.contains("runs>, \"r\", O_RDONLY"));
    assert_eq!(run_with_failing(OPENS, opened.unwrap() + 1), "an error and no run");
}

#[test]
fn whichever_call_of_a_report_or_a_plot_fails_its_file_is_the_old_one_or_the_new_one() {
    if !can_trace() {
        return;
    }
    let store = Store::new();
    store.made_up("2k");
    let mut campaign = Campaign::new("failing calls of report and plot");
    for (verb, name) in [("report", "page.html"), ("plot", "picture.svg")] {
        let (file, command) = (store.path().join(name), [verb, "r", "-o", name]);
        let all = calls_of(&store, &command);
        for (calls, number) in some_of(all, repeats(3, usize::MAX), &mut campaign.chance) {
            fs::write(&file, "old").unwrap();
            let traced = with_failing(&store, calls, number, &command);
            let moment = format!("{calls} {number}: {:?}\n{:#?}", traced.said, injected(&traced));
            let failed = has_failed(&traced, &moment);
            let text = fs::read_to_string(&file).unwrap();
            assert_eq!(failed, text == "old", "{moment}");
            assert!(failed || text.trim_end().ends_with('>'), "{moment}");
            assert!(scraps(&store).is_empty(), "{moment}: {:?}", scraps(&store));
            campaign.came(if failed { "an error and the old file" } else { "the new file" });
        }
    }
    campaign.end();
}

/// The command, with each reading of this file of the run `r` failing.
fn with_unreadable(store: &Store, file: &str, arguments: &[&str]) -> Traced {
    let path = store.runs().join("r").join(file);
    let options = ["-P", path.to_str().unwrap(), "-e", "inject=read,pread64:error=EIO"];
    traced(store, &options, arguments)
}

#[test]
fn a_record_that_the_disk_does_not_give_is_an_error_that_says_so_and_no_missing_run() {
    if !can_trace() {
        return;
    }
    let store = Store::new();
    store.made_up("2k");
    let broken = "r/run.json cannot be read: Input/output error";
    for arguments in [&["show", "r"][..], &["why", "r"], &["export", "r", "--to", "json"]] {
        let Traced { said, .. } = with_unreadable(&store, "run.json", arguments);
        assert_eq!((said.code, said.err.contains(broken)), (Some(2), true), "{said:?}");
    }
    let Traced { said, .. } = with_unreadable(&store, "run.json", &["list"]);
    assert!(said.err.contains(broken), "it is not left out in silence: {said:?}");
    let Traced { said, .. } = with_unreadable(&store, "series.hlog", &["show", "r"]);
    let caveat = "series.hlog: cannot be read: Input/output error";
    assert_eq!((said.code, said.out.contains(caveat)), (Some(0), true), "{said:?}");
    assert_eq!(store.run(&["show", "r"]).code, Some(0));
}

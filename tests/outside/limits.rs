//! Limits of the shell that leave hardly anything (setrlimit(2)): an error or a result, and nothing
//! in between.

use std::{io::Read as _, process::Child};

use super::{
    chance::Campaign,
    support::{SHORT, Said, Store, codes, finish, is_root, piped, signal, skip},
};

/// What prlimit(1) is given, and what a refusal of a run has to name.
const LIMITS: [(&str, &str); 20] = [
    ("--nofile=12:12", "open files"),
    ("--nofile=20:20", "open files"),
    ("--nofile=40:40", "open files"),
    ("--fsize=0:0", "File too large"),
    ("--fsize=1000:1000", "File too large"),
    ("--fsize=600000:600000", "File too large"),
    ("--memlock=0:0", ""),
    ("--msgqueue=0:0", ""),
    ("--sigpending=0:0", ""),
    ("--stack=1048576:1048576", ""),
    ("--core=0:0", ""),
    ("--nofile=0:0", "open files"),
    ("--nproc=0:0", "temporarily unavailable"),
    ("--stack=0:0", ""),
    ("--as=0:0", ""),
    ("--data=0:0", ""),
    ("--cpu=0:0", ""),
    ("--rttime=0:0", ""),
    ("--rtprio=0:0", ""),
    ("--nice=0:0", ""),
];

/// Those that do not bind root.
const FOR_OTHERS: [&str; 4] = ["--memlock", "--nproc", "--rtprio", "--nice"];

/// Those by which the kernel itself ends a program, as its manual says.
const DEADLY: [&str; 2] = ["--cpu=0:0", "--rttime=0:0"];

/// tardy under this limit, as soon as it is started.
fn start(store: &Store, limit: &str, arguments: &[&str]) -> Child {
    piped(&mut store.shell(&format!("prlimit --pid $$ {limit} || exit 99"), arguments))
}

/// Whether it is more than the loader can do to start tardy under this limit.
fn can_start(store: &Store, limit: &str) -> Option<bool> {
    let said = finish(start(store, limit, &["--version"]));
    (said.code != Some(99)).then_some(said.code == Some(0))
}

/// Whether it was ended by the kernel, as is the kernel's right.
fn is_ended(said: &Said, limit: &str) -> bool {
    said.code.is_none() && DEADLY.contains(&limit)
}

/// Whoever tests, and somebody without rights where root is not bound by this limit.
fn stores(limit: &str) -> Vec<Store> {
    let is_bound = !FOR_OTHERS.iter().any(|other| limit.starts_with(other));
    let mut stores = vec![Store::new()];
    stores.extend((is_root() && !is_bound).then(Store::unprivileged));
    stores
}

#[test]
fn under_any_limit_there_is_a_whole_run_or_an_error_that_names_it() {
    let mut campaign = Campaign::new("limits of a run");
    for (limit, names) in LIMITS {
        for store in stores(limit) {
            let Some(starts) = can_start(&store, limit) else {
                return skip("needs prlimit of util-linux");
            };
            let kind = if starts { run_under(&store, limit, names) } else { "no start" };
            campaign.came(kind);
        }
    }
    campaign.end();
}

/// What came of a run under this limit.
fn run_under(store: &Store, limit: &str, names: &str) -> &'static str {
    let run = [&SHORT[..], &["--duration", "300ms", "--raw", "--name", "r"]].concat();
    let said = finish(start(store, limit, &run));
    assert!(!said.err.contains("panicked"), "{limit}: {said:?}");
    let is_left = store.runs().join("r/run.json").exists();
    if is_ended(&said, limit) {
        assert!(!is_left || store.show("r")["status"] == "crashed", "{limit}");
        return "ended by the kernel";
    }
    if said.code == Some(2) {
        let is_named = !names.is_empty() && said.err.contains(names);
        assert!(is_named, "{limit}: {said:?}");
        // What is left, if anything, is a run that can be read.
        assert!(!is_left || store.run(&["show", "r"]).code == Some(0), "{limit}");
        return "an error";
    }
    assert!(matches!(said.code, Some(0 | 4)), "{limit}: {said:?}");
    let record = store.show("r");
    let is_said = codes(&record).contains(&"record_incomplete");
    assert!(record["status"] == "complete" || is_said, "{limit}: {record}");
    if is_said { "a run that says what it lacks" } else { "a whole run" }
}

#[test]
fn a_stack_that_is_too_small_is_an_error_that_says_so() {
    let store = Store::new();
    for limit in ["--stack=65536:65536", "--stack=300000:300000", "--stack=1048575:1048575"] {
        if can_start(&store, "--stack=1048576:1048576").is_none() {
            return skip("needs prlimit of util-linux");
        }
        for arguments in [&["--version"][..], &["list"], &["run", "--duration", "1s"]] {
            let said = finish(start(&store, limit, arguments));
            let is_named = said.err.contains("tardy needs 1024 KiB: `ulimit -s 8192`");
            assert_eq!((said.code, is_named), (Some(2), true), "{limit}: {said:?}");
        }
    }
}

#[test]
fn under_any_limit_readers_check_and_echo_do_their_work_or_say_why_not() {
    let mut campaign = Campaign::new("limits of show, report, check and echo");
    let verbs = [&["show", "r"][..], &["report", "r", "-o", "page.html"], &["check"], &ECHO];
    for (limit, _) in LIMITS.into_iter().filter(|(limit, _)| limit.ends_with("=0:0")) {
        for store in stores(limit) {
            let Some(starts) = can_start(&store, limit) else {
                return skip("needs prlimit of util-linux");
            };
            if !starts {
                campaign.came("no start");
                continue;
            }
            store.made_up("2k");
            for verb in verbs {
                let mut child = start(&store, limit, verb);
                if verb == ECHO {
                    end_when_it_listens(&mut child);
                }
                campaign.came(verb_under(finish(child), limit, verb));
            }
            assert_eq!(store.processes(), [0; 0], "{limit}");
        }
    }
    campaign.end();
}

const ECHO: [&str; 4] = ["echo", "--listen", "127.0.0.1:0", "--json"];

/// Its first word is where it listens; without one it has ended, or does so soon.
fn end_when_it_listens(child: &mut Child) {
    let listens = child.stdout.as_mut().unwrap().read(&mut [0]).unwrap() > 0;
    if listens {
        signal(child, "TERM");
    }
}

/// What came of this command.
fn verb_under(said: Said, limit: &str, verb: &[&str]) -> &'static str {
    let moment = format!("{limit}: {verb:?}: {said:?}");
    assert!(!said.err.contains("panicked"), "{moment}");
    if is_ended(&said, limit) {
        return "ended by the kernel";
    }
    if said.code == Some(2) {
        assert!(said.err.contains("error:"), "{moment}");
        return "an error";
    }
    let finds = verb == ["check"] && said.code == Some(1);
    assert!(said.code == Some(0) || finds, "{moment}");
    "done"
}

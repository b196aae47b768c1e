//! Limits of the shell that leave hardly anything (setrlimit(2)): an error or a run, and nothing in
//! between.

use std::process::Command;

use super::support::{SHORT, Said, Store, codes, finish, piped, skip};

/// What prlimit(1) is given, and what a refusal has to name.
const LIMITS: [(&str, &str); 11] = [
    ("--nofile=12:12", "open files"),
    ("--nofile=20:20", "open files"),
    ("--nofile=40:40", "open files"),
    ("--fsize=0:0", "File too large"),
    ("--fsize=1000:1000", "File too large"),
    ("--fsize=600000:600000", "File too large"),
    ("--memlock=0:0", ""),
    ("--msgqueue=0:0", ""),
    ("--sigpending=0:0", ""),
    ("--stack=300000:300000", ""),
    ("--core=0:0", ""),
];

fn limited(store: &Store, limit: &str, arguments: &[&str]) -> Option<Said> {
    let tardy = store.tardy(arguments);
    let mut command = Command::new("prlimit");
    command.arg(limit).arg(tardy.get_program()).args(tardy.get_args()).current_dir(store.path());
    for (name, value) in tardy.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if !Command::new("prlimit").args([limit, "true"]).output().is_ok_and(|it| it.status.success()) {
        return None;
    }
    Some(finish(piped(&mut command)))
}

#[test]
fn under_any_limit_there_is_a_whole_run_or_an_error_that_names_it() {
    for (limit, names) in LIMITS {
        let store = Store::new();
        let run = [&SHORT[..], &["--duration", "300ms", "--raw", "--name", "r"]].concat();
        let Some(said) = limited(&store, limit, &run) else {
            return skip("needs prlimit of util-linux");
        };
        assert!(!said.err.contains("panicked"), "{limit}: {said:?}");
        if said.code == Some(2) {
            let is_named = !names.is_empty() && said.err.contains(names);
            assert!(is_named, "{limit}: {said:?}");
            // What is left, if anything, is a run that can be read.
            let is_left = store.runs().join("r").exists();
            assert!(!is_left || store.run(&["show", "r"]).code == Some(0), "{limit}");
            continue;
        }
        assert!(matches!(said.code, Some(0 | 4)), "{limit}: {said:?}");
        let record = store.show("r");
        let is_said = codes(&record).contains(&"record_incomplete");
        assert!(record["status"] == "complete" || is_said, "{limit}: {record}");
    }
}

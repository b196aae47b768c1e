//! tardy under strace(1), which writes down its system calls, and lets some of them fail.

use std::{fs, process::Command};

use super::support::{Said, Store, finish, piped, skip};

/// What a traced tardy said, and did.
#[derive(Debug)]
pub(crate) struct Traced {
    pub said: Said,
    /// Its system calls in order, each behind the number of its thread; with the paths of
    /// descriptors.
    pub calls: Vec<String>,
}

/// Whether anything can be traced here.
pub(crate) fn can_trace() -> bool {
    let tried = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    let can = tried.is_ok_and(|output| output.status.success());
    if !can {
        skip("needs strace, and leave to trace");
    }
    can
}

/// Runs tardy to its end with these options of strace.
pub(crate) fn traced(store: &Store, options: &[&str], arguments: &[&str]) -> Traced {
    let tardy = store.tardy(arguments);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-s", "256", "-o", "calls"]).args(options);
    strace.arg(tardy.get_program()).args(tardy.get_args()).current_dir(store.path());
    for (name, value) in tardy.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }
    let said = finish(piped(&mut strace));
    let calls = fs::read_to_string(store.path().join("calls")).unwrap();
    Traced { said, calls: calls.lines().map(str::to_owned).collect() }
}

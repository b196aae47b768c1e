//! Runs on a machine that does not show itself: what could not be looked at must not read as well.

use std::process::Command;

use serde_json::Value;

use super::support::{SHORT, Store, codes, finish, is_root, list, piped, skip};

/// Hides what is below `/proc` from the program, in its own mount namespace.
const WITHOUT_PROC: &str = "mount -t tmpfs none /proc && exec \"$0\" \"$@\"";

/// An empty file over one of the kernel's, as containers have it.
const WITHOUT_INTERRUPTS: &str = "mount --bind /dev/null /proc/interrupts && exec \"$0\" \"$@\"";

/// No control groups to be seen.
const WITHOUT_GROUPS: &str = "mount -t tmpfs none /sys/fs/cgroup && exec \"$0\" \"$@\"";

/// The record of a short run after `script` in its own mount namespace; `None` if that cannot be
/// made.
fn measured(store: &Store, name: &str, script: &str) -> Option<Value> {
    let within = |program: &str, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        let before = ["--mount", "--propagation", "private", "sh", "-c", script, program];
        command.args(before).args(arguments).current_dir(store.path());
        command.env("TARDY_STORE", store.runs());
        command
    };
    let can = is_root() && within("true", &[]).output().is_ok_and(|tried| tried.status.success());
    if !can {
        skip("to hide files of the kernel's needs root, unshare and mount");
        return None;
    }
    let arguments = [&SHORT[..], &["--duration", "300ms", "--name", name]].concat();
    let said = finish(piped(&mut within(super::support::TARDY, &arguments)));
    assert_eq!(said.code, Some(0), "{said:?}");
    Some(store.show(name))
}

/// The files that the caveat names.
fn unread(record: &Value) -> Vec<&str> {
    let caveats = list(&record["caveats"]).iter();
    let own = caveats.filter(|caveat| caveat["code"] == "not_looked_at");
    let sources = own.flat_map(|caveat| list(&caveat["values"]["sources"]));
    sources.map(|source| source["source"].as_str().unwrap()).collect()
}

#[test]
fn a_run_without_proc_is_weakened_and_names_what_could_not_be_looked_at() {
    let store = Store::new();
    let Some(record) = measured(&store, "r", WITHOUT_PROC) else { return };
    assert_ne!(record["validity"], "valid");
    let unread = unread(&record);
    let hidden = ["/proc/stat", "/proc/interrupts", "/proc/self/status", "/proc/cpuinfo"];
    for file in [&hidden[..], &["/proc/self/cgroup"]].concat() {
        assert!(unread.contains(&file), "{file}: {unread:?}");
    }
    assert!(!unread.iter().any(|file| file.starts_with("/sys")), "{unread:?}");
    let shown = store.run(&["show", "r"]);
    assert!(shown.out.contains("steal time (/proc/stat)"), "{shown:?}");
}

#[test]
fn a_file_that_a_container_hides_is_named_and_one_that_is_there_is_not() {
    let store = Store::new();
    let Some(record) = measured(&store, "hidden", WITHOUT_INTERRUPTS) else { return };
    assert_eq!(unread(&record), ["/proc/interrupts"]);
    let Some(record) = measured(&store, "groups", WITHOUT_GROUPS) else { return };
    assert_eq!(unread(&record), ["/sys/fs/cgroup"]);
    assert_ne!(record["validity"], "valid");
    let Some(record) = measured(&store, "shown", "exec \"$0\" \"$@\"") else { return };
    assert!(!codes(&record).contains(&"not_looked_at"), "{record}");
}

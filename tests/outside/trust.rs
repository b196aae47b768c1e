//! tardy as root where other users may write, and with rights that its user does not have: what is
//! theirs is neither followed nor believed.

use std::{
    collections::HashSet,
    fs,
    os::unix::{
        fs::{chown, symlink},
        process::CommandExt as _,
    },
    process::{Command, Stdio},
};

use rustix::fs::{XattrFlags, removexattr, setxattr};
use serde_json::json;
use tardy::sys::{cpus::Cpus, root::Root, tasks};

use super::support::{
    LONG, NOBODY, SHORT, Store, eventually, finish, is_root, piped, signal, skip,
};

#[test]
fn root_refuses_a_run_directory_of_another_user() {
    if !is_root() {
        return skip("needs root");
    }
    let store = Store::new();
    let place = store.path().join("theirs");
    fs::create_dir(&place).unwrap();
    chown(&place, Some(NOBODY), Some(NOBODY)).unwrap();
    let run = [&SHORT[..], &["--duration", "200ms", "-o", "theirs"]].concat();
    let said = store.run(&run);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("theirs belongs to user 65534"), "{said:?}");
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "nothing was written");
    chown(&place, Some(0), Some(0)).unwrap();
    let said = store.run(&run);
    assert_eq!(said.code, Some(0), "root's own will do: {said:?}");
}

#[test]
fn root_refuses_a_labs_directory_of_another_user() {
    if !is_root() {
        return skip("needs root");
    }
    let store = Store::new();
    let at = |name: &str| store.path().join(name);
    let plan = "name = \"p\"\nprobe = \"fake\"\n[run]\nsamples = 1000\nunpaced = true\n\
                cpus = \"0\"\nwarmup = \"0s\"\n[[load]]\nname = \"idle\"\n";
    fs::write(at("plan.toml"), plan).unwrap();
    fs::create_dir(at("theirs")).unwrap();
    chown(at("theirs"), Some(NOBODY), Some(NOBODY)).unwrap();
    let lab = ["lab", "run", "plan.toml", "--kernels", "host", "--mode", "real", "-o", "theirs"];
    let said = store.run(&lab);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("theirs belongs to user 65534"), "{said:?}");
    assert_eq!(fs::read_dir(at("theirs")).unwrap().count(), 0, "nothing was written");
    chown(at("theirs"), Some(0), Some(0)).unwrap();
    let said = store.run(&lab);
    assert_eq!(said.code, Some(0), "root's own will do: {said:?}");
}

#[test]
fn what_takes_the_place_of_a_labs_directory_is_not_shown_as_its_result() {
    let store = Store::new();
    let at = |name: &str| store.path().join(name);
    let start = |name: &str, length: &str| {
        let plan = format!(
            "name = \"{name}\"\nprobe = \"fake\"\n[run]\nduration = \"{length}\"\n\
             cpus = \"0\"\nwarmup = \"0s\"\n[[load]]\nname = \"{name}\"\nuse = []\n"
        );
        fs::write(at("plan.toml"), plan).unwrap();
        let lab = ["lab", "run", "plan.toml", "--kernels", "host", "--mode", "real", "-o", name];
        store.start(&lab)
    };
    let said = finish(start("forged", "100ms"));
    assert!(said.code == Some(0) && said.out.contains("forged"), "{said:?}");
    let child = start("own", LONG);
    eventually("its first cell", || at("own/own/host/0/run.json").exists());
    fs::rename(at("own"), at("moved")).unwrap();
    fs::rename(at("forged"), at("own")).unwrap();
    signal(&child, "TERM");
    let said = finish(child);
    assert!(!said.out.contains("forged"), "{said:?}");
    assert!(said.err.contains("Interrupted before anything was measured"), "{said:?}");
}

/// As root in a directory of `nobody`, whose owner puts another in the place of the load's own.
#[test]
fn a_loads_files_go_to_no_directory_that_took_the_place_of_its_own() {
    if !is_root() || Command::new("cc").arg("--version").output().is_err() {
        return skip("needs root, and a C compiler");
    }
    let store = Store::new();
    let at = |name: &str| store.path().join(name);
    fs::create_dir(at("theirs")).unwrap();
    fs::create_dir(at("other")).unwrap();
    chown(at("theirs"), Some(NOBODY), Some(NOBODY)).unwrap();
    let load = format!("compile:jobs=1,functions=1,dir={}", at("theirs").display());
    let mut child = store.start(&["load", &load]);
    let found = || fs::read_dir(at("theirs")).unwrap().flatten().next().map(|one| one.path());
    eventually("its directory", || found().is_some_and(|own| own.join("0.o").exists()));
    let (own, moved) = (found().unwrap(), at("theirs/moved"));
    fs::rename(&own, &moved).unwrap();
    symlink(at("other"), &own).unwrap();
    // It compiles on where its directory is now.
    let mut seen = HashSet::new();
    eventually("it has compiled a few times, or ended", || {
        seen.extend(fs::metadata(moved.join("0.o")).ok().and_then(|it| it.modified().ok()));
        seen.len() > 3 || child.try_wait().unwrap().is_some()
    });
    signal(&child, "TERM");
    let said = finish(child);
    assert_eq!(fs::read_dir(at("other")).unwrap().count(), 0, "{said:?}");
    assert!(seen.len() > 3, "it died: {said:?}");
    assert_eq!(fs::read_dir(&moved).unwrap().count(), 0, "its files are gone: {said:?}");
}

#[test]
fn a_page_is_not_written_through_links_that_were_there_before() {
    let store = Store::new();
    store.made_up("1000");
    let at = |name: &str| store.path().join(name);
    fs::write(at("other"), "kept").unwrap();
    for name in ["page.html", "page.html.tmp", "page.tmp", ".page.html.tmp"] {
        symlink(at("other"), at(name)).unwrap();
    }
    let said = store.run(&["report", "r", "-o", "page.html"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(fs::read_to_string(at("other")).unwrap(), "kept");
    assert!(fs::symlink_metadata(at("page.html")).unwrap().is_file(), "the link was replaced");
}

/// `security.capability` of a file that gives CAP_SYS_NICE to whoever runs it: `struct
/// vfs_cap_data`, revision 2, effective (include/uapi/linux/capability.h).
fn sys_nice() -> Vec<u8> {
    let (revision, permitted) = (0x0200_0001_u32, 1_u32 << 23);
    [revision, permitted, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Whether `nobody` gets the capability by a program in the store that has it.
fn gives_rights(store: &Store) -> bool {
    let program = store.path().join("grep");
    let copied = Command::new("cp").arg("/bin/grep").arg(&program).status().unwrap();
    assert!(copied.success(), "{copied}");
    let set = setxattr(&program, "security.capability", &sys_nice(), XattrFlags::empty());
    let mut grep = Command::new(&program);
    grep.args(["CapEff", "/proc/self/status"]).uid(NOBODY).gid(NOBODY);
    let said = finish(piped(&mut grep));
    set.is_ok() && said.out.trim().ends_with("0000000000800000")
}

#[test]
fn under_file_capabilities_a_journal_of_the_users_own_is_not_believed() {
    let store = Store::unprivileged();
    if !is_root() || !gives_rights(&store) {
        return skip("needs root, and a file system with file capabilities");
    }
    let root = Root::default();
    let all = Cpus::allowed().unwrap();
    if all.len() < 2 {
        return skip("it takes two CPUs");
    }
    let mut sleeper = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let pid = i32::try_from(sleeper.id()).unwrap();
    let (cpus, start) = (tasks::cpus(&root, pid).unwrap(), tasks::start(&root, pid).unwrap());
    let boot_id = root.read("/proc/sys/kernel/random/boot_id").unwrap();
    let owner = json!({"boot_id": boot_id, "pid": i32::MAX, "start": 1, "command": "crafted"});
    let first = cpus.iter().next().unwrap().to_string();
    let change = json!({"change": "affinities", "tasks": [[first, [[pid, start]]]]});
    let journal = store.path().join("own/journal");
    fs::create_dir(journal.parent().unwrap()).unwrap();
    fs::write(&journal, format!("{owner}\n{change}\n")).unwrap();
    for path in [journal.parent().unwrap(), &journal] {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let mut command = store.tardy(&["restore"]);
    let program = command.get_program().to_owned();
    setxattr(&program, "security.capability", &sys_nice(), XattrFlags::empty()).unwrap();
    let said = finish(piped(command.env("TARDY_JOURNAL", &journal)));
    let after = tasks::cpus(&root, pid);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(after, Some(cpus), "a process of root was moved: {said:?}");
    assert!(!said.out.contains("restored:"), "{said:?}");
    assert!(journal.exists(), "it was not looked at: {said:?}");
    // Without these rights it is the user's own affair.
    removexattr(&program, "security.capability").unwrap();
    let said = finish(piped(store.tardy(&["restore"]).env("TARDY_JOURNAL", &journal)));
    assert_eq!((said.code, journal.exists()), (Some(0), false), "{said:?}");
}

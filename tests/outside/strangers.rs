//! Records that somebody else wrote, to have whoever reads them run a command or write a file.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown, symlink},
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use super::support::{NOBODY, Store, copy, finish, is_root, list, piped, read_record, skip};

/// Gives all below a directory to `nobody`.
fn give_away(place: &Path) {
    chown(place, Some(NOBODY), Some(NOBODY)).unwrap();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => give_away(&entry.path()),
            false => chown(entry.path(), Some(NOBODY), Some(NOBODY)).unwrap(),
        }
    }
}

fn write(file: &Path, record: &Value) {
    fs::write(file, serde_json::to_vec(record).unwrap()).unwrap();
}

/// A run that says it was measured here just now and was late by what can be cured; its command
/// line and its load run `command`.
fn curable(store: &Store, command: &str) -> PathBuf {
    let run = store.runs().join("r");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1/timer"), &run);
    let mut record = store.show("r");
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    record["facts"]["boot_id"] = boot_id.trim().into();
    record["argv"] = json!(["tardy", "run", "timer", "--load-command", command]);
    let mut load = record["loads"][0].clone();
    (load["name"], load["parameters"]) = ("command".into(), json!({"command": command}));
    record["loads"] = json!([load]);
    write(&run.join("run.json"), &record);
    // The kernel function whose switch is known (`src/check/remedies.rs`).
    let peaks = fs::read_to_string(run.join("peaks.jsonl")).unwrap();
    assert!(peaks.contains("kdamond_fn"), "the run has a cause to rename");
    fs::write(run.join("peaks.jsonl"), peaks.replace("kdamond_fn", "vmstat_update")).unwrap();
    run
}

#[test]
fn a_strangers_load_command_is_not_run_to_prove_a_remedy() {
    if !is_root() {
        return skip("needs root");
    }
    let store = Store::new();
    let marker = store.path().join("marker");
    let run = curable(&store, &format!("id >{}", marker.display()));
    let said = store.run(&["why", "r", "--fix", "--json"]);
    let known: Value = serde_json::from_str(&said.out).unwrap();
    let remedies = list(&known["remedies"]);
    let Some(remedy) = remedies.iter().find(|own| own["set"] != Value::Null) else {
        return skip("no setting of this machine can be changed");
    };
    let number = remedy["number"].to_string();
    let prove = ["why", "r", "--fix", &number, "--prove", "--budget", "20s"];
    give_away(&run);
    let said = store.run(&prove);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("run.json belongs to user 65534"), "{said:?}");
    assert!(said.err.contains("--load-command id >"), "{said:?}");
    // Root's own, which anybody can have changed.
    chown(run.join("run.json"), Some(0), Some(0)).unwrap();
    fs::set_permissions(run.join("run.json"), fs::Permissions::from_mode(0o666)).unwrap();
    let said = store.run(&prove);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("can be written by others (mode 0666)"), "{said:?}");
    assert!(said.err.contains("chmod go-w"), "{said:?}");
    assert!(!marker.exists(), "the command ran");
    assert_eq!(read_record(&run)["argv"][3], "--load-command", "it was there to be run");
}

/// A plan of two cells of made-up samples, which takes no time.
const PLAN: &str = "name = \"p\"\nprobe = \"fake\"\n[run]\nsamples = 1000\nunpaced = true\n\
    cpus = \"0\"\nwarmup = \"0s\"\n[[load]]\nname = \"a\"\nuse = []\n\
    [[load]]\nname = \"b\"\nuse = []\n";

/// Measures it under `umask` as the plan `p`.
fn planned(store: &Store, umask: &str) -> PathBuf {
    fs::write(store.path().join("p.toml"), PLAN).unwrap();
    let plan = ["plan", "p.toml", "--name", "p", "--quiet"];
    let said = finish(piped(&mut store.shell(&format!("umask {umask}"), &plan)));
    assert_eq!(said.code, Some(0), "{said:?}");
    store.runs().join("p")
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Everything below a directory, and itself.
fn below(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let deeper = entries.flat_map(|entry| below(&entry.path()));
    std::iter::once(place.to_owned()).chain(deeper).collect()
}

#[test]
fn a_plan_and_its_cells_are_their_owners_alone_whatever_the_umask() {
    for umask in ["0", "022", "077"] {
        let store = Store::new();
        let plan = planned(&store, umask);
        let all = below(&plan);
        assert!(all.len() > 12 && all.contains(&plan.join("cells/0002/run.json")), "{all:?}");
        for path in all {
            let wanted = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode(&path), wanted, "umask {umask}: {}", path.display());
        }
    }
}

#[test]
fn a_run_follows_the_umask_and_others_never_write_it() {
    for (umask, directory, file) in [("0", 0o755, 0o644), ("027", 0o750, 0o640)] {
        let store = Store::new();
        let run = ["run", "fake", "--warmup", "0s", "--cpus", "0", "--unpaced"];
        let run = [&run[..], &["--samples", "1000", "--raw", "--name", "r"]].concat();
        let said = finish(piped(&mut store.shell(&format!("umask {umask}"), &run)));
        assert_eq!(said.code, Some(0), "{said:?}");
        for path in below(&store.runs()) {
            let wanted = if path.is_dir() { directory } else { file };
            assert_eq!(mode(&path), wanted, "umask {umask}: {}", path.display());
        }
    }
}

#[test]
fn a_plan_that_others_can_write_is_not_gone_on_with_before_the_chmod_that_is_named() {
    let store = Store::unprivileged();
    let plan = planned(&store, "022");
    let resume = || store.run(&["plan", "--resume", "p", "--quiet"]);
    let marker = store.path().join("marker");
    let mut record: Value =
        serde_json::from_slice(&fs::read(plan.join("plan.json")).unwrap()).unwrap();
    (record["undo"], record["is_prepared"]) =
        (format!("id >{}", marker.display()).into(), true.into());
    write(&plan.join("plan.json"), &record);
    for (path, bad, good) in [
        (plan.clone(), 0o777, 0o700),
        (plan.clone(), 0o770, 0o700),
        (plan.join("plan.json"), 0o666, 0o600),
        (plan.join("cells"), 0o777, 0o700),
        (plan.join("plan.lock"), 0o666, 0o600),
    ] {
        set_mode(&path, bad);
        let said = resume();
        assert_eq!(said.code, Some(2), "{}: {said:?}", path.display());
        assert!(said.err.contains("can be written by others"), "{said:?}");
        let command = format!("chmod go-w {}\n", path.display());
        assert!(said.err.ends_with(&command), "{said:?}");
        assert!(!marker.exists(), "{}", path.display());
        set_mode(&path, good);
    }
    let said = store.run(&["plan", "--resume", "p"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains(&format!("It runs undo: id >{}", marker.display())), "{said:?}");
    assert!(marker.exists(), "it is one's own");
}

#[test]
fn root_goes_on_with_no_plan_of_another_user_and_through_no_link() {
    if !is_root() {
        return skip("needs root");
    }
    let store = Store::new();
    let plan = planned(&store, "022");
    symlink(&plan, store.runs().join("link")).unwrap();
    let said = store.run(&["plan", "--resume", "link", "--quiet"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    give_away(&plan);
    for verb in ["plan", "suite"] {
        let said = store.run(&[verb, "--resume", "p", "--quiet"]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains("belongs to user 65534"), "{said:?}");
    }
    // Theirs in a directory of root's own.
    chown(&plan, Some(0), Some(0)).unwrap();
    let said = store.run(&["plan", "--resume", "p", "--quiet"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("belongs to user 65534"), "{said:?}");
}

#[test]
fn a_lock_is_not_made_through_a_link() {
    let store = Store::new();
    let plan = planned(&store, "022");
    fs::remove_file(plan.join("plan.lock")).unwrap();
    symlink(store.path().join("other"), plan.join("plan.lock")).unwrap();
    let said = store.run(&["plan", "--resume", "p", "--quiet"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(!store.path().join("other").exists(), "nothing was made through the link");
}

#[test]
fn a_cell_that_is_another_run_is_not_the_plans_result() {
    let store = Store::new();
    let plan = planned(&store, "022");
    let forged = plan.join("cells/0001/run.json");
    let mut record = read_record(&plan.join("cells/0001"));
    record["id"] = "20260101-000000.000-0000".into();
    write(&forged, &record);
    let said = store.run(&["plan", "--resume", "p", "--quiet"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("cells/0001: it holds another run"), "{said:?}");
}

#[test]
fn an_entry_of_the_working_directory_is_meant_by_its_path_alone() {
    let store = Store::new();
    store.made_up("1000");
    let forged = store.path().join("forged");
    copy(&store.runs().join("r"), &forged);
    let mut record = read_record(&forged);
    record["name"] = "forged".into();
    write(&forged.join("run.json"), &record);
    for name in ["r", "last"] {
        copy(&forged, &store.path().join(name));
        assert_eq!(store.show(name)["name"], "r", "{name}");
        assert_eq!(store.show(&format!("./{name}"))["name"], "forged", "{name}");
    }
    let said = store.run(&["show", "forged"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("named by its path: ./forged"), "{said:?}");
    assert_eq!(store.show(forged.to_str().unwrap())["name"], "forged");
    let plan = planned(&store, "022");
    copy(&plan, &store.path().join("here"));
    for arguments in
        [&["plan", "--resume", "here"][..], &["report", "here", "-o", "x.html"], &["rm", "here"]]
    {
        let said = store.run(arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}: {said:?}");
        assert!(said.err.contains("named by its path: ./here"), "{arguments:?}: {said:?}");
    }
    assert!(store.path().join("here/plan.json").exists());
}

#[test]
fn pages_go_through_no_link_and_into_no_pipe() {
    let store = Store::new();
    planned(&store, "022");
    let at = |name: &str| store.path().join(name);
    fs::create_dir(at("other")).unwrap();
    fs::write(at("other/0001.html"), "kept").unwrap();
    let first = store.run(&["report", "p", "-o", "y.html"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let names = fs::read_dir(at("y.pages")).unwrap().map(|entry| entry.unwrap().path());
    let viewer = names.filter(|path| path.extension().is_some_and(|kind| kind == "js")).last();
    let viewer = viewer.unwrap();
    fs::remove_file(&viewer).unwrap();
    symlink(at("other/0001.html"), &viewer).unwrap();
    let again = store.run(&["report", "p", "-o", "y.html"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(fs::symlink_metadata(&viewer).unwrap().is_file(), "the link was replaced");
    symlink(at("other"), at("x.pages")).unwrap();
    let said = store.run(&["report", "p", "-o", "x.html"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("x.pages is a link or a file"), "{said:?}");
    assert_eq!(fs::read_dir(at("other")).unwrap().count(), 1, "{said:?}");
    assert_eq!(fs::read_to_string(at("other/0001.html")).unwrap(), "kept");
    mknodat(CWD, at("pipe.html"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    for arguments in [
        &["report", "p", "--pages", "0", "-o", "pipe.html"][..],
        &["report", "./runs/p/cells/0001", "-o", "pipe.html"],
    ] {
        let said = store.run(arguments);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains("it is a FIFO"), "{said:?}");
    }
}

#[test]
fn no_guest_runs_the_arguments_of_a_record_that_others_can_write() {
    let store = Store::new();
    let run = store.runs().join("r");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1/timer"), &run);
    let figures = store.path().join("figures.json");
    fs::write(&figures, "{}").unwrap();
    let published = figures.to_str().unwrap();
    let cases: [(PathBuf, &[&str], &str); 2] = [
        (run.join("run.json"), &["lab", "verify", "r"], "not measured by the lab"),
        (figures.clone(), &["lab", "verify", "--published", published], "writes such files"),
    ];
    for (file, words, accepted) in cases {
        let refused = |part: &str| {
            let said = store.run(words);
            assert!(said.code == Some(2) && said.err.contains(part), "{part}: {said:?}");
        };
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        refused(accepted);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        refused("can be written by others (mode 0666)");
        refused(&format!("chmod go-w {}", file.display()));
        if is_root() {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            chown(&file, Some(NOBODY), Some(NOBODY)).unwrap();
            refused("belongs to user 65534");
        }
    }
}

//! Runs of a store, and which of them a name means.

use super::*;
use crate::run::{AB, PLAN};

#[test]
fn last_counts_backwards() {
    assert_eq!(steps_back("last"), Some(0));
    assert_eq!(steps_back("last~3"), Some(3));
    assert_eq!(steps_back("lasting"), None);
    assert_eq!(steps_back("last~-1"), None);
}

/// A run that started `started_ms` after the hour; its directory is its name.
fn write(store: &Store, id: &str, name: &str, started_ms: u32, status: &str) {
    let directory = store.place(name);
    fs::create_dir_all(&directory).unwrap();
    let mut record = serde_json::json!({
        "schema_version": 1, "id": id, "name": name, "argv": [], "status": status,
        "validity": "valid", "caveats": [], "probe": {"name": "timer", "parameters": {}},
        "loads": [], "setup": {"asked": null, "found": {}},
        "trace": {"asked": "off", "found": "off"}, "facts": crate::run::Facts::default(),
        "ended_at": null, "duration_ns": 1, "start_monotonic_ns": 0, "series": [],
    });
    let (s, ms) = (started_ms / 1_000, started_ms % 1_000);
    record["started_at"] = format!("2026-01-01T00:00:{s:02}.{ms:03}000Z").into();
    fs::write(directory.join(names::RUN), record.to_string()).unwrap();
}

fn found(store: &Store, name: &str) -> String {
    store.find(name).unwrap().document.name
}

#[test]
fn the_last_run_is_the_one_that_started_last_whatever_its_id() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(Some(directory.path().into())).unwrap();
    // Old ids, of one second: their digits are random.
    write(&store, "20260101-000005-ffff", "first", 5_100, "complete");
    write(&store, "20260101-000005-0000", "third", 5_300, "interrupted");
    write(&store, "20260101-000005.200-7777", "second", 5_200, "complete");
    // Planned before all others, and warmed up for longer.
    write(&store, "20260101-000001.000-aaaa", "fourth", 9_000, "stopped_over");
    for (name, wanted) in
        [("last", "fourth"), ("last~1", "third"), ("last~2", "second"), ("last~3", "first")]
    {
        assert_eq!(found(&store, name), wanted, "{name}");
    }
    assert!(matches!(store.find("last~4"), Err(FindError::NotFound { .. })));
    let listing = store.listing().unwrap();
    let order: Vec<&str> = listing.runs.iter().map(|run| run.entry.name.as_str()).collect();
    assert_eq!(order, ["first", "second", "third", "fourth"]);
    assert!(listing.damaged.is_empty());
    // A run that cannot be opened is not the last one, and is not skipped by its id.
    write(&store, "20260101-000010.000-bbbb", "odd", 10_000, "complete");
    let record = store.place("odd").join(names::RUN);
    let text = fs::read_to_string(&record).unwrap().replace("\"setup\"", "\"set_up\"");
    fs::write(&record, text).unwrap();
    assert_eq!(found(&store, "last"), "fourth");
    assert!(matches!(store.find("20260101-000010"), Err(FindError::Open(_))));
}

#[test]
fn a_run_is_found_by_the_beginning_of_an_id_of_either_form() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(Some(directory.path().into())).unwrap();
    write(&store, "20260101-000005-1f0c", "old", 5_000, "complete");
    write(&store, "20260101-000006.042-1f0c", "new", 6_042, "complete");
    assert_eq!(found(&store, "20260101-000005"), "old");
    assert_eq!(found(&store, "20260101-000006.0"), "new");
    let ambiguous = store.find("20260101-00000").unwrap_err().to_string();
    let both = "any of 20260101-000005-1f0c, 20260101-000006.042-1f0c";
    assert!(ambiguous.contains(both), "{ambiguous}");
}

#[test]
fn what_is_named_in_full_is_not_named_by_the_beginning_of_an_id() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(Some(directory.path().into())).unwrap();
    write(&store, "20260101-000006.042-1f0c", "new", 6_042, "complete");
    let path = store.place("new").display().to_string();
    for name in ["new", "20260101-000006.042-1f0c", "last", path.as_str()] {
        assert_eq!(store.find_whole(name).unwrap().document.name, "new", "{name}");
    }
    for name in ["2", "20260101-000006.042-1f0"] {
        let error = store.find_whole(name).unwrap_err().to_string();
        assert!(error.contains("beginning of 20260101-000006.042-1f0c"), "{error}");
    }
}

#[test]
fn a_name_that_is_taken_is_numbered() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(Some(directory.path().into())).unwrap();
    let free = || store.free_place("nightly").1;
    assert_eq!(store.free_place("nightly"), (store.place("nightly"), "nightly".to_owned()));
    fs::create_dir(store.place("nightly")).unwrap();
    assert_eq!(free(), "nightly-2");
    std::os::unix::fs::symlink("/nonexistent", store.place("nightly-2")).unwrap();
    assert_eq!(free(), "nightly-3");
    fs::write(store.place("nightly-4"), "").unwrap();
    assert_eq!(free(), "nightly-3", "the first that is free");
}

#[test]
fn a_comparison_and_a_plan_are_said_to_be_that() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::at(Some(place.path().into())).unwrap();
    for (name, file) in [("x", AB), ("y", PLAN)] {
        fs::create_dir_all(store.place(name)).unwrap();
        fs::write(store.place(name).join(file), "{}").unwrap();
    }
    let said = |name: &str| store.find(name).unwrap_err().to_string();
    assert!(said("x").contains("is a comparison by `tardy ab` and no run"), "{}", said("x"));
    let path = store.place("y").display().to_string();
    assert!(said("y").contains("is a plan") && said(&path).contains("y/cells"), "{path}");
}

#[test]
fn a_run_of_a_stranger_is_not_the_last_and_no_run_can_be_called_so() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(Some(directory.path().into())).unwrap();
    write(&store, "20260101-000001.000-aaaa", "own", 1_000, "complete");
    write(&store, "20260101-000002.000-bbbb", "last", 500, "complete");
    assert_eq!(found(&store, "last"), "own");
    assert_eq!(found(&store, "last~1"), "last", "its name in a record means nothing");
    for name in ["last", "last~2"] {
        assert!(check_name(name).unwrap_err().to_string().contains("earlier run"), "{name}");
    }
    assert!(check_name("lasting").is_ok());
    if geteuid().is_root() {
        write(&store, "20260101-000009.000-cccc", "strange", 9_000, "complete");
        assert_eq!(found(&store, "last"), "strange");
        std::os::unix::fs::chown(store.place("strange"), Some(65_534), None).unwrap();
        assert_eq!(found(&store, "last"), "own");
        assert_eq!(found(&store, "strange"), "strange");
    }
}

#[test]
fn an_empty_store_finds_nothing_and_says_where_it_looked() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(Some(directory.path().into())).unwrap();
    for name in ["last", "last~9", "x", ""] {
        let error = store.find(name).unwrap_err().to_string();
        assert!(error.contains(directory.path().to_str().unwrap()), "{error}");
    }
    for name in ["..", "/nonexistent", "./nonexistent", "nonexistent/"] {
        let error = store.find(name).unwrap_err().to_string();
        assert!(!error.contains("working directory"), "{error}");
    }
}

#[test]
fn a_name_is_one_of_the_store_and_a_path_has_a_slash() {
    let store = Store::at(Some("/store".into())).unwrap();
    let of = |asked: &str| store.place_of(Path::new(asked));
    for (asked, place) in [
        ("x", "/store/x"),
        ("last", "/store/last"),
        ("./x", "./x"),
        ("x/", "x/"),
        ("a/x", "a/x"),
        ("/x", "/x"),
        (".", "."),
        ("..", ".."),
    ] {
        assert_eq!(of(asked), Some(place.into()), "{asked}");
    }
    assert_eq!(of(""), None);
    assert_eq!(typed(Path::new("x")), Path::new("./x"));
    assert_eq!(typed(Path::new("/x")), Path::new("/x"));
    // The working directory of tests is that of the package.
    let hint = beside(Path::new("Cargo.toml")).unwrap();
    assert!(hint.ends_with("named by its path: ./Cargo.toml"), "{hint}");
    assert_eq!(beside(Path::new("./Cargo.toml")), None);
    assert_eq!(beside(Path::new("nonexistent")), None);
}

#[test]
fn what_lies_in_the_working_directory_is_not_found_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(Some(directory.path().into())).unwrap();
    // An entry of the working directory of tests, which holds a run below.
    let error = store.find("tests").unwrap_err().to_string();
    assert!(error.contains("named by its path: ./tests"), "{error}");
    let error = store.find("./tests/fixtures/v1/timer").map(|run| run.document.name);
    assert_eq!(error.unwrap(), "timer");
    assert_eq!(store.find_campaign("tests"), None);
}

//! Runs of a store, and which of them a name means.

use super::{find::steps_back, *};
use rustix::process::geteuid;

use crate::run::{AB, PLAN, names};

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
    assert!(matches!(store.find("last~4"), Err(FindError::NoLast { .. })));
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
        assert_eq!(store.find_whole(name).unwrap().path, store.place("new"), "{name}");
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

/// A plan of two cells that started `started_s` after the hour, with a run for each.
fn write_plan(store: &Store, name: &str, started_s: u32) {
    let mut record = crate::run::plan_record::tests::record();
    (record.id, record.name) = (format!("20260101-0000{started_s:02}.000-{name}"), name.into());
    record.started_at = format!("2026-01-01T00:00:{started_s:02}.000000Z");
    for (number, cell) in record.cells.iter_mut().enumerate() {
        cell.path = Some(format!("cells/000{}", number + 1));
    }
    for number in 1..=2 {
        let (id, cell) = (format!("{}-{number}", record.id), format!("{name}/cells/000{number}"));
        write(store, &id, &cell, started_s * 1_000 + number, "complete");
        let file = store.place(&cell).join(names::RUN);
        let text =
            fs::read_to_string(&file).unwrap().replace(&cell, &format!("{name}-000{number}"));
        fs::write(file, text).unwrap();
    }
    fs::write(store.place(name).join(PLAN), serde_json::to_string(&record).unwrap()).unwrap();
}

#[test]
fn the_last_thing_is_a_plan_where_one_may_be_meant() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(Some(directory.path().into())).unwrap();
    write(&store, "20260101-000001.000-aaaa", "before", 1_000, "complete");
    write_plan(&store, "nightly", 2);
    let last = |name: &str, among: Candidates| {
        let found = store.find_any(name, among).unwrap();
        found.path.file_name().unwrap().to_str().unwrap().to_owned()
    };
    assert_eq!(last("last", Candidates::All), "nightly");
    assert_eq!(last("last", Candidates::Plans), "nightly");
    assert_eq!(last("last", Candidates::Runs), "before", "no run of a plan");
    assert_eq!(last("last~1", Candidates::All), "before");
    assert_eq!(found(&store, "last"), "before");
    assert_eq!(store.find_whole("last").unwrap().path, store.place("nightly"));
    assert_eq!(store.find_whole("last~1").unwrap().path, store.place("before"));
    write(&store, "20260101-000009.000-bbbb", "after", 9_000, "complete");
    assert_eq!(last("last", Candidates::All), "after");
    assert_eq!(last("last", Candidates::Plans), "nightly");
}

#[test]
fn a_run_of_a_plan_is_found_by_its_name_and_its_id() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(Some(directory.path().into())).unwrap();
    write_plan(&store, "nightly", 2);
    for name in ["nightly-0002", "20260101-000002.000-nightly-2"] {
        assert_eq!(found(&store, name), "nightly-0002", "{name}");
        assert_eq!(store.find_whole(name).unwrap().path, store.place("nightly/cells/0002"));
    }
    let said = |name: &str| store.find(name).unwrap_err().to_string();
    let both = "any of 20260101-000002.000-nightly-1, 20260101-000002.000-nightly-2;";
    assert!(said("20260101-000002").contains(both), "{}", said("20260101-000002"));
    // Another run has the name of a cell, and a copy of the plan has all of them.
    write(&store, "20260101-000003.000-cccc", "x", 3_000, "complete");
    let file = store.place("x").join(names::RUN);
    let text = fs::read_to_string(&file).unwrap().replace("\"x\"", "\"nightly-0001\"");
    fs::write(&file, text).unwrap();
    let both = "any of 20260101-000002.000-nightly-1, 20260101-000003.000-cccc;";
    assert!(said("nightly-0001").contains(both), "{}", said("nightly-0001"));
    fs::remove_dir_all(store.place("x")).unwrap();
    let copy = store.place("copy/cells/0001");
    fs::create_dir_all(&copy).unwrap();
    fs::copy(store.place("nightly/cells/0001").join(names::RUN), copy.join(names::RUN)).unwrap();
    fs::copy(store.place("nightly").join(PLAN), store.place("copy").join(PLAN)).unwrap();
    let both = "any of copy/cells/0001, nightly/cells/0001;";
    assert!(said("nightly-0001").contains(both), "{}", said("nightly-0001"));
}

#[test]
fn an_error_lists_a_few_of_many_candidates() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(Some(directory.path().into())).unwrap();
    for number in 10..30 {
        write(&store, &format!("2026-{number}"), &format!("r{number}"), number, "complete");
    }
    let said = store.find("2026").unwrap_err().to_string();
    assert!(said.contains("2026-16, 2026-17, 12 more; write more of it"), "{said}");
}

#[test]
fn all_that_lies_below_a_directory_is_found_but_not_through_links() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(Some(directory.path().into())).unwrap();
    write_plan(&store, "a/night", 2);
    write(&store, "20260101-000001.000-aaaa", "b/night/one", 1_000, "complete");
    write(&store, "20260101-000001.000-bbbb", ".hidden/one", 1_000, "complete");
    std::os::unix::fs::symlink(store.root(), store.place("b/cycle")).unwrap();
    fs::create_dir_all(store.place("c/lab/k")).unwrap();
    fs::write(store.place("c/lab").join(crate::run::lab::LAB), "{}").unwrap();
    let found = PlacesBelow::of(store.root()).unwrap();
    let places: Vec<_> = found
        .places
        .iter()
        .map(|place| (place.path.strip_prefix(store.root()).unwrap().to_str().unwrap(), place.kind))
        .collect();
    let plan = PlaceKind::Campaign(CampaignKind::Plan);
    let expected = [("a/night", plan), ("b/night/one", PlaceKind::Run), ("c/lab", PlaceKind::Lab)];
    assert_eq!(places, expected);
    assert_eq!(found.unread, [""; 0]);
    // The second cell is pending, whatever lies there.
    assert_eq!(found.places[0].runs().unwrap(), [store.place("a/night/cells/0001")]);
    assert_eq!(found.places[0].found_runs().len(), 2);
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
    assert!(matches!(store.find_any("tests", Candidates::All), Err(FindError::NotFound { .. })));
}

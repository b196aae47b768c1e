//! Files that ask for more memory than there is: every reader says which limit they exceed, and
//! ends with an error.

use std::fs;

use serde_json::json;

use super::{bounded, kept, many_series, write};
use crate::support::{Store, is_root};

/// A run of which each series has one sample, in the last row of cyclictest's histogram.
fn with_a_wide_histogram(series: usize) -> Store {
    let (store, run) = kept();
    let mut record = many_series(&store.show("r"), series, "complete");
    for own in record["series"].as_array_mut().unwrap() {
        own["count"] = json!(1);
    }
    write(&run, &record);
    let log = fs::read_to_string(run.join("series.hlog")).unwrap();
    let mut counts = tardy::run::hlog::empty();
    counts.record(99_999_000).unwrap();
    let span = tardy::run::hlog::IntervalSpan { tag: "s0".into(), start_s: 0.0, length_s: 0.1 };
    let mut line = String::new();
    tardy::run::hlog::append(&mut line, &span, &counts, &tardy_hot::tally::Totals::NONE);
    let line = line.lines().next().unwrap().to_owned();
    let lines = (0..series).map(|at| line.replacen("Tag=s0", &format!("Tag=s{at}"), 1) + "\n");
    let head = log.lines().take_while(|line| !line.starts_with("Tag=")).collect::<Vec<_>>();
    let text = head.join("\n") + "\n" + &lines.collect::<String>();
    fs::write(run.join("series.hlog"), text).unwrap();
    store
}

#[test]
fn a_histogram_of_cyclictest_with_too_many_cells_is_refused_and_a_smaller_one_written() {
    let export = ["export", "r", "--to", "cyclictest-histogram", "-o", "out"];
    let store = with_a_wide_histogram(8_192);
    let said = bounded(&store, &export);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("at most 33554432 cells are written"), "{said:?}");
    assert!(said.err.contains("--to histogram-csv"), "{said:?}");
    let said = bounded(&store, &["export", "r", "--to", "histogram-csv", "-o", "out"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let store = with_a_wide_histogram(4);
    assert_eq!(bounded(&store, &export).code, Some(0));
}

/// An index whose line of the run `r` holds a list of `lists` empty lists.
fn index(store: &Store, lists: usize) {
    let head = json!({ "tardy_index": 3, "tardy": env!("CARGO_PKG_VERSION") });
    let list = "[],".repeat(lists);
    let probe = format!("{{\"name\":\"x\",\"parameters\":{{\"a\":[{list}[]]}}}}");
    let text = format!("{head}\n{{\"at\":\"r\",\"entry\":{{\"probe\":{probe}}}}}\n");
    fs::write(store.runs().join(".tardy-index"), text).unwrap();
}

#[test]
fn an_index_with_a_huge_list_is_not_believed_and_the_runs_are_listed() {
    let (store, _) = kept();
    // 32 bytes each once they are read, and twice that while the list grows.
    index(&store, 1 << 24);
    let said = bounded(&store, &["list"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("timer"), "{said:?}");
}

#[test]
fn each_file_of_json_with_too_many_lists_is_refused_with_the_limit() {
    let (store, run) = kept();
    let lists = "[],".repeat(1 << 20);
    let text = format!("{{\"schema_version\": 1, \"lab_version\": 1, \"cells\": [{lists}[]]}}");
    for (directory, file, verb) in [
        ("plan", "plan.json", &["report", "./plan", "-o", "x.html"][..]),
        ("ab", "ab.json", &["report", "./ab", "-o", "x.html"]),
        ("lab", "lab.json", &["lab", "compare", "./lab"]),
    ] {
        let directory = store.path().join(directory);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join(file), &text).unwrap();
        super::copy(&run, &directory.join("r"));
        let said = bounded(&store, verb);
        assert_eq!(said.code, Some(2), "{file}: {said:?}");
        assert!(said.err.contains("its \"cells\" holds more than"), "{file}: {said:?}");
    }
    let file = store.path().join("x.json");
    fs::write(&file, format!("{{\"thread\": [{lists}[]]}}")).unwrap();
    let said = bounded(&store, &["import", file.to_str().unwrap(), "--from", "rt-tests-json"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("its \"thread\" holds more than 262144 lists"), "{said:?}");
    fs::write(run.join("blame.json"), &text).unwrap();
    let said = bounded(&store, &["why", "r"]);
    let both = format!("{}{}", said.out, said.err);
    assert!(both.contains("its \"cells\" holds more than"), "{said:?}");
}

/// Whatever it is asked for, an allocation that fails is an error, and no abort.
#[test]
fn a_reader_without_memory_ends_with_an_error() {
    let (store, _) = kept();
    let file = store.path().join("x.json");
    // Within all limits, and more than is there.
    let bins: Vec<String> = (0..3_000_000).map(|bin| format!("\"{bin}\": 1")).collect();
    let thread = format!("{{\"histogram\": {{{}}}, \"cycles\": 1}}", bins.join(","));
    let text =
        format!("{{\"file_version\": 1, \"num_threads\": 1, \"thread\": {{\"0\": {thread}}}}}");
    fs::write(&file, text).unwrap();
    let script = "ulimit -c 0; ulimit -v 150000";
    let import = ["import", file.to_str().unwrap(), "--from", "rt-tests-json", "--name", "x"];
    let said = super::finish(super::piped(&mut store.shell(script, &import)));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("error: out of memory: "), "{said:?}");
    assert!(said.err.contains("ulimit -v"), "{said:?}");
}

#[test]
fn a_store_that_is_none_is_an_error_that_names_it() {
    let (store, run) = kept();
    let other = |place: &str, arguments: &[&str]| {
        let mut command = store.tardy(arguments);
        super::finish(super::piped(command.env("TARDY_STORE", place)))
    };
    let file = run.join("run.json");
    for place in ["/dev/null", file.to_str().unwrap()] {
        for arguments in [&["list"][..], &["list", "--json"], &["show", "last"], &["trend"]] {
            let said = other(place, arguments);
            assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{arguments:?}: {said:?}");
            assert!(said.err.contains(place) && said.err.contains("TARDY_STORE"), "{said:?}");
        }
    }
    let absent = other("/nonexistent/store", &["list"]);
    assert_eq!(absent.code, Some(0), "no runs yet: {absent:?}");
    if !is_root() {
        let closed = store.path().join("closed");
        fs::create_dir(&closed).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o000);
        fs::set_permissions(&closed, mode).unwrap();
        assert_eq!(other(closed.to_str().unwrap(), &["list"]).code, Some(2));
    }
}

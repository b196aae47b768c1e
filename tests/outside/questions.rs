//! What is asked of a store and of imported runs has one answer everywhere, or a refusal that says
//! what would have one.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
};

use serde_json::Value;

use super::support::{Store, codes, eventually, finish, list, signal};

/// A file that its program really wrote.
fn real(name: &str) -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/import");
    place.join(name).to_str().unwrap().to_owned()
}

/// Imports what is in the file.
fn import(store: &Store, file: &str, name: &str, more: &[&str]) {
    let said = store.run(&[&["import", file, "--name", name][..], more].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn a_run_whose_level_moved_has_one_verdict_everywhere() {
    let store = Store::new();
    let file = store.path().join("moved.csv");
    let row = |n: u64| {
        let late = 4_000 + n * 7_919 % 997;
        format!("{},{}\n", n as f64 / 1e3, if n < 10_000 { late } else { 3 * late })
    };
    fs::write(&file, format!("t,l\n{}", (0..20_000).map(row).collect::<String>())).unwrap();
    let columns = ["--from", "csv", "--latency-column", "l", "--time-column", "t", "--unit", "ns"];
    import(&store, file.to_str().unwrap(), "moved", &columns);
    let shown = store.show("moved");
    assert!(codes(&shown).contains(&"level_changed"), "{shown}");
    assert_eq!(codes(&shown).iter().filter(|code| **code == "level_changed").count(), 1);
    assert_eq!(shown["validity"], "weakened");
    let listed = store.run(&["list", "--where", "verdict=weakened", "--json"]).out;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(list(&listed)[0]["name"], "moved", "{listed}");
    assert_eq!(list(&listed)[0]["validity"], "weakened");
    let rows = store.run(&["export", "moved", "--to", "histogram-csv"]).out;
    assert!(rows.contains("weakened") && !rows.contains(",valid,"), "{rows}");
}

#[test]
fn what_no_run_can_have_is_an_error_and_a_trend_takes_imports() {
    let store = Store::new();
    for (question, says) in [
        ("verdict=broken", "there are valid, weakened, invalid"),
        ("status=nonsense", "there are running, complete, interrupted"),
        ("started=2026-13", "\"2026-13\" is not a date"),
    ] {
        let said = store.run(&["list", "--where", question]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.err.contains(says), "{}", said.err);
    }
    let text = fs::read_to_string(real("cyclictest.json")).unwrap();
    assert!(text.contains("--json=j.json"), "{text:.200}");
    for night in ["n1", "n2"] {
        let file = store.path().join(format!("{night}.json"));
        fs::write(&file, text.replace("--json=j.json", &format!("--json={night}.json"))).unwrap();
        import(&store, file.to_str().unwrap(), night, &[]);
    }
    assert_eq!(store.run(&["trend", "--alarm"]).code, Some(0));
    let said = store.run(&["trend", "--json"]);
    let rows: Value = serde_json::from_str(&said.out).unwrap();
    let series = list(&store.show("n1")["series"]).len();
    assert_eq!(list(&rows["rows"]).len(), series, "both nights are in each row: {rows}");
}

#[test]
fn a_file_called_minus_is_standard_output() {
    let store = Store::new();
    let words = ["run", "fake", "--unpaced", "--samples", "50", "--warmup", "0s", "--cpus", "0"];
    assert_eq!(store.run(&[&words[..], &["--raw", "--name", "r"]].concat()).code, Some(0));
    for (to, begin) in [("csv", "series,"), ("json", "["), ("hlog", "#[")] {
        let plain = store.run(&["export", "r", "--to", to]);
        let named = store.run(&["export", "r", "--to", to, "-o", "-"]);
        assert_eq!((plain.code, named.code), (Some(0), Some(0)), "{to}: {named:?}");
        assert!(plain.out.starts_with(begin), "{to}: {:.100}", plain.out);
        assert_eq!(plain.out, named.out, "{to}");
    }
    let rows = store.run(&["export", "r", "--to", "csv"]).out;
    assert_eq!(rows.lines().count(), 51);
    assert_eq!(store.run(&["export", "r", "--to", "parquet"]).code, Some(2));
    assert!(!store.path().join("-").exists());
}

#[test]
fn options_of_cyclictest_are_refused_by_their_own_names() {
    let store = Store::new();
    for (words, says) in [
        (["-p", "100"], "error: -p 100: priorities are 1 to 99"),
        (["-i", "0"], "error: -i 0: an interval is"),
        (["-D", "0"], "error: -D 0: 0 leaves no time"),
        (["-h", "0"], "error: -h 0: a histogram of 0 us has no rows"),
        (["-l", "9999999999999999999999"], "error: invalid value"),
    ] {
        let said = store.run(&[&["cyclictest"][..], &words].concat());
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.err.starts_with(says), "{words:?}: {}", said.err);
        assert!(!said.err.contains("error: error") && !said.err.contains("--priority"), "{said:?}");
    }
    assert_eq!(store.run(&["list", "--json"]).out.trim(), "[]");
}

#[test]
fn options_of_oslat_are_refused_by_their_own_names_and_with_its_exit_code() {
    let store = Store::new();
    for (words, says) in [
        (["-b", "3"], "error: -b 3: a histogram has 4 to 1024 rows"),
        (["-D", "0"], "error: -D 0: 0 leaves no time"),
        (["-f", "100"], "error: -f 100: priorities are 1 to 99"),
        (["-T", "x"], "error: invalid value 'x' for '--trace-threshold"),
        (["-w", "memmove"], "error: -w memmove: the loop only reads the clock"),
        (["-m", "4K"], "error: unexpected argument '-m'"),
    ] {
        let said = store.run(&[&["oslat"][..], &words].concat());
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
        assert!(said.err.starts_with(says), "{words:?}: {}", said.err);
        assert!(!said.err.contains("error: error") && !said.err.contains("--priority"), "{said:?}");
    }
    assert_eq!(store.run(&["list", "--json"]).out.trim(), "[]");
}

#[test]
fn a_user_signal_shows_the_status_of_the_drop_in_and_ends_nothing() {
    let store = Store::new();
    let mut child = store.start(&["cyclictest", "-q", "--run-name", "r"]);
    store.wait_sample("r");
    signal(&child, "USR1");
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let status = lines.find(|line| line.starts_with("# status after "));
    assert!(status.is_some(), "its end comes before the status");
    let series = lines.next().unwrap_or_default();
    assert!(series.starts_with("# cpu") && series.contains("worst"), "{series}");
    let before = store.count("r");
    eventually("more samples", || store.count("r") > before);
    signal(&child, "INT");
    let said = finish(child);
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn of_an_imported_summary_gates_causes_and_pictures_say_what_is_missing() {
    let store = Store::new();
    import(&store, &real("cyclictest-H.txt"), "histogram", &[]);
    let said = store.run(&["show", "histogram", "--gate", "p99<=1s", "--gate", "max<=1s"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.out.contains("without their order in time"), "{}", said.out);
    assert!(!said.out.contains("too few samples"), "{}", said.out);
    let said = store.run(&["show", "histogram", "--gate", "max<=1s"]);
    assert_eq!(said.code, Some(0), "the maximum needs no interval: {said:?}");
    let said = store.run(&["why", "histogram"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("its file has no causes"), "{}", said.err);
    assert!(!said.err.contains("measure again"), "{}", said.err);
    import(&store, &real("cyclictest.txt"), "summary", &[]);
    for kind in ["scatter", "histogram", "percentile", "heatmap"] {
        let said = store.run(&["plot", "summary", "--kind", kind, "-o", "x.svg"]);
        assert_eq!(said.code, Some(2), "{kind}: {said:?}");
        assert!(said.err.contains("a summary of its latencies"), "{}", said.err);
    }
    assert!(!store.path().join("x.svg").exists());
}

#[test]
fn an_export_comes_back_as_what_it_was_and_is_compared_with_it() {
    let store = Store::new();
    let words = ["run", "timer", "--duration", "2s", "--warmup", "50ms", "--trace", "off"];
    let more = ["--policy", "other", "--cpus", "0", "--name", "r"];
    assert_eq!(store.run(&[&words[..], &more].concat()).code, Some(0));
    for to in ["hlog", "cyclictest-json"] {
        let file = store.path().join(to);
        let file = file.to_str().unwrap();
        assert_eq!(store.run(&["export", "r", "--to", to, "-o", file]).code, Some(0));
        import(&store, file, to, &[]);
        let record = store.show(to);
        // That of cyclictest is in its JSON, and none of tardy.
        let version = if to == "hlog" { env!("CARGO_PKG_VERSION") } else { "" };
        assert_eq!(record["provenance"]["program"], "tardy", "{to}");
        assert_eq!(record["provenance"]["version"], version, "{to}");
        assert_eq!(record["probe"]["parameters"]["same_as"], "timer", "{to}");
        let said = store.run(&["compare", "r", to]);
        assert_eq!(said.code, Some(3), "described, not judged: {said:?}");
    }
}

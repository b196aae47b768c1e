//! Runs that were damaged on the way: an error that names the file, or a caveat; never a panic, a
//! hang or memory without bound.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use tardy::{
    report::{
        collect, html,
        intervals::RunIntervals,
        terminal::{self, Asked},
    },
    run::Run,
};

use super::{
    chance::{Chance, is_long},
    once::made_once,
    support::{LIGHT_LOAD, SHORT, Said, Store, codes, contents, copy, finish, list, piped, whole},
};

/// A whole run with every kind of file, measured once for all tests here.
fn whole_run() -> PathBuf {
    made_once("whole-run", |run| {
        let store = Store::new();
        let rate = ["--duration", "2500ms", "--interval", "5ms"];
        let arguments = [&rate[..], &["--raw", "--load", LIGHT_LOAD]].concat();
        let said = store.run(&[&SHORT[..], &arguments, &["--name", "whole"]].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        copy(&store.runs().join("whole"), run);
    })
}

/// A copy of the whole run, to be damaged.
fn copied() -> (Store, PathBuf) {
    let store = Store::new();
    let run = store.runs().join("r");
    copy(&whole_run(), &run);
    (store, run)
}

/// As [`copied`], but as a maker leaves it that was killed: readers recover it from its logs.
fn copied_as_killed() -> (Store, PathBuf) {
    let (store, run) = copied();
    let record = fs::read_to_string(run.join("run.json")).unwrap();
    let record = record.replace("\"status\": \"complete\"", "\"status\": \"running\"");
    fs::write(run.join("run.json"), record).unwrap();
    fs::copy(run.join("series.hlog"), run.join("live.hlog")).unwrap();
    (store, run)
}

/// Runs a reader with an address space of 1 GiB: what wants more dies, and is found out.
fn bounded(store: &Store, arguments: &[&str]) -> Said {
    finish(piped(&mut store.shell("ulimit -c 0; ulimit -v 1048576", arguments)))
}

/// Shows and reports; both end with 0 or 2, and say why with 2.
fn survives(store: &Store, what: &str) -> (Said, Said) {
    let show = bounded(store, &["show", "r"]);
    let report = bounded(store, &["report", "r", "-o", "page.html"]);
    for said in [&show, &report] {
        assert!(matches!(said.code, Some(0 | 2)), "{what}: {said:?}");
        assert!(!said.err.contains("panicked"), "{what}: {said:?}");
        assert_eq!(said.code == Some(2), said.err.contains("error:"), "{what}: {said:?}");
    }
    (show, report)
}

/// What the process of these tests has had in memory at most, KiB.
fn most_resident_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse().unwrap()
}

/// Reads the run as [`survives`] has programs read it, in this process: where there are many
/// damages, starting a program for each would take most of the time. No panic, no more than 1 GiB.
fn survives_here(run: &Path, what: &str) {
    if let Ok(read) = Run::open(run) {
        let intervals = RunIntervals::of(&read);
        let asked = Asked { intervals: Some(&intervals), ..Asked::default() };
        assert!(!terminal::show(&read.document, "r", asked, None).is_empty(), "{what}");
        assert!(html::render(&collect::page(vec![read])).is_ok(), "{what}");
    }
    assert!(most_resident_kb() < 1 << 20, "{what}");
}

#[test]
fn an_undamaged_copy_is_like_the_original() {
    let (store, run) = copied();
    let (show, report) = survives(&store, "nothing");
    assert_eq!((show.code, report.code), (Some(0), Some(0)));
    let names: Vec<_> = contents(&run)
        .into_keys()
        .map(|path| path.strip_prefix(&run).unwrap().to_owned())
        .collect();
    for name in [
        "run.json",
        "series.hlog",
        "samples/000001.parquet",
        "machine.csv",
        "loads.csv",
        "interrupts.csv",
    ] {
        assert!(names.iter().any(|there| there == Path::new(name)), "{name}: {names:?}");
    }
}

#[test]
fn a_record_that_is_cut_short_is_an_error_that_names_the_file() {
    let (store, run) = copied();
    let file = run.join("run.json");
    let text = fs::read(&file).unwrap();
    for cut in [0, 1, 20, text.len() / 2, text.len() - 3] {
        fs::write(&file, &text[..cut]).unwrap();
        for said in <[Said; 2]>::from(survives(&store, &format!("cut at {cut}"))) {
            assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
            let place = file.to_str().unwrap();
            assert!(said.err.contains(place) && said.err.contains("damaged"), "{said:?}");
            assert!(said.err.contains("line"), "the place in it is named: {said:?}");
        }
    }
}

#[test]
fn a_record_with_a_wrong_type_is_an_error_that_says_where() {
    let (store, run) = copied();
    let file = run.join("run.json");
    let record: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    for (place, wrong) in [
        ("/series/0/count", Value::from("many")),
        ("/series/0/count", Value::from(-1)),
        ("/series", Value::Null),
        ("/status", Value::from("done")),
        ("/probe/parameters/interval_ns", Value::from("x")),
        ("/parameters/duration_ns", Value::from(1e308)),
        ("/trace/found", Value::from("all")),
        ("/provenance", Value::Null),
        ("/caveats", Value::from(7)),
        ("/facts/preemption", Value::Null),
        ("/schema_version", Value::from("one")),
        ("/duration_ns", Value::from(1e300)),
    ] {
        let mut record = record.clone();
        *record.pointer_mut(place).unwrap() = wrong;
        fs::write(&file, serde_json::to_vec_pretty(&record).unwrap()).unwrap();
        let (show, report) = survives(&store, place);
        assert_eq!((show.code, report.code), (Some(2), Some(2)), "{place}: {show:?}");
        assert!(show.err.contains("run.json is damaged") && show.err.contains("line"), "{show:?}");
    }
}

#[test]
fn a_record_with_absurd_values_of_the_right_type_is_survived() {
    let (store, run) = copied_as_killed();
    let file = run.join("run.json");
    let record: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let huge = Value::from(u64::MAX);
    let cases = [
        ("/probe/parameters/interval_ns", Value::from(0)),
        ("/probe/parameters/interval_ns", Value::from(1)),
        ("/probe/parameters/interval_ns", Value::from(-5)),
        ("/parameters/duration_ns", Value::from(1)),
        ("/parameters/duration_ns", Value::from(-1)),
        ("/log_interval_ns", Value::from(0)),
        ("/log_interval_ns", Value::from(-1)),
        ("/log_interval_ns", Value::from(i64::MAX)),
        ("/series/0/period_ns", Value::from(0)),
        ("/series/0/period_ns", Value::from(1)),
        ("/series/0/period_ns", Value::from(-5)),
        ("/series/0/stage_of", Value::from("cpu0")),
        ("/series/1/stage_of", Value::from("")),
        ("/duration_ns", huge.clone()),
        ("/duration_ns", Value::from(0)),
        ("/start_monotonic_ns", Value::from(i64::MIN)),
        ("/start_monotonic_ns", Value::from(i64::MAX)),
        ("/series/0/max", Value::from(i64::MAX)),
        ("/series/0/min", Value::from(i64::MIN)),
        ("/series/0/count", huge),
        ("/series/0/name", Value::from("")),
        ("/series/0/cpu", Value::from(u32::MAX)),
        ("/series/1/name", Value::from("cpu0")),
        ("/loads", Value::from(Vec::<Value>::new())),
        ("/series", Value::from(Vec::<Value>::new())),
        ("/argv", Value::from(Vec::<Value>::new())),
    ];
    for (number, (place, absurd)) in cases.iter().enumerate() {
        for status in ["running", "complete"] {
            let mut record = record.clone();
            *record.pointer_mut(place).unwrap_or(&mut Value::Null) = absurd.clone();
            record["status"] = status.into();
            fs::write(&file, serde_json::to_vec(&record).unwrap()).unwrap();
            let what = format!("{status}, {place} = {absurd}");
            survives_here(&run, &what);
            // A few of them from outside.
            if number % 9 == 0 {
                survives(&store, &what);
            }
        }
    }
}

#[test]
fn totals_in_the_log_that_cannot_be_are_survived() {
    let (store, run) = copied_as_killed();
    let log = fs::read_to_string(run.join("series.hlog")).unwrap();
    for key in ["count", "early", "above", "missed", "sum_ns", "min_ns", "max_ns"] {
        for absurd in [u64::MAX.to_string(), i64::MIN.to_string()] {
            let change = |line: &str| {
                let change = |word: &str| match word.split_once('=') {
                    Some((this, old)) if this == key => {
                        let end = if old.ends_with(']') { "]" } else { "" };
                        format!("{this}={absurd}{end}")
                    }
                    _ => word.to_owned(),
                };
                let is_totals = line.starts_with("#[Totals");
                let words =
                    line.split(' ').map(|word| if is_totals { change(word) } else { word.into() });
                words.collect::<Vec<String>>().join(" ")
            };
            let text: Vec<String> = log.lines().map(change).collect();
            fs::write(run.join("series.hlog"), text.join("\n") + "\n").unwrap();
            fs::remove_file(run.join("live.hlog")).ok();
            survives_here(&run, &format!("{key}={absurd}"));
            if key == "count" {
                survives(&store, &format!("{key}={absurd}"));
            }
        }
    }
}

#[test]
fn a_run_of_a_newer_tardy_is_refused_with_its_version() {
    let (store, run) = copied();
    let file = run.join("run.json");
    let text = fs::read_to_string(&file).unwrap();
    let text = text.replacen("\"schema_version\": 2", "\"schema_version\": 7", 1);
    fs::write(&file, text).unwrap();
    for said in <[Said; 2]>::from(survives(&store, "newer")) {
        assert_eq!(said.code, Some(2), "{said:?}");
        for word in ["schema version 7", "reads up to 2", "newer one"] {
            assert!(said.err.contains(word), "{said:?}");
        }
    }
    let list = store.run(&["list"]);
    assert!(list.err.contains("schema version 7"), "{list:?}");
}

/// Damages one file with `damage`, and returns the caveats that the report's record then has.
fn caveats_of_report(file: &str, damage: impl FnOnce(&Path)) -> (Value, Vec<String>) {
    let (store, run) = copied();
    damage(&run.join(file));
    assert_eq!(store.show("r")["status"], "complete", "`show` needs run.json alone");
    let page = store.page(&["r"]);
    let own = codes(&page["runs"][0]["record"]).into_iter().map(str::to_owned).collect();
    (page, own)
}

#[test]
fn a_damaged_file_beside_the_record_is_a_caveat_of_the_report() {
    let middle = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        let at = bytes.len() / 2;
        bytes[at..at + 12].fill(0xff);
        fs::write(path, bytes).unwrap();
    };
    let half = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    };
    // Of so few lines the middle may be the header's end, and what is left a header alone.
    let last = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        fs::write(path, format!("{}x\n", text.trim_end())).unwrap();
    };
    let gone = |path: &Path| fs::remove_file(path).unwrap();
    for (file, damage, code) in [
        ("series.hlog", &middle as &dyn Fn(&Path), Some("series_damaged")),
        ("series.hlog", &gone, Some("series_damaged")),
        ("samples/000001.parquet", &half, Some("samples_damaged")),
        ("machine.csv", &middle, Some("track_damaged")),
        ("interrupts.csv", &middle, Some("track_damaged")),
        ("loads.csv", &last, Some("track_damaged")),
        // Runs of other probes have no such files.
        ("machine.csv", &gone, None),
        ("interrupts.csv", &gone, None),
        ("samples/000001.parquet", &gone, None),
    ] {
        let (_, caveats) = caveats_of_report(file, damage);
        for found in ["series_damaged", "samples_damaged", "track_damaged"] {
            let wanted = code == Some(found);
            assert_eq!(caveats.iter().any(|code| code == found), wanted, "{file}: {caveats:?}");
        }
    }
}

#[test]
fn a_log_that_is_cut_short_gives_what_is_before_the_cut() {
    let (store, run) = copied_as_killed();
    fs::remove_file(run.join("live.hlog")).unwrap();
    let all = whole(&store.show("r")["series"][0]["count"]);
    let log = fs::read(run.join("series.hlog")).unwrap();
    let mut before = 0;
    for tenth in 1..10 {
        fs::write(run.join("series.hlog"), &log[..log.len() * tenth / 10]).unwrap();
        let record = store.show("r");
        let count = whole(&record["series"][0]["count"]);
        assert!(before <= count && count < all, "{before} {count} {all}");
        assert!(!codes(&record).contains(&"series_damaged"), "a cut is what a crash leaves");
        before = count;
    }
    assert!(before > 0, "{before} of {all}");
}

#[test]
fn an_interval_that_is_in_both_logs_counts_once() {
    let (store, run) = copied_as_killed();
    let counts = |record: &Value| -> Vec<i64> {
        list(&record["series"]).iter().map(|series| whole(&series["count"])).collect()
    };
    let with_live = counts(&store.show("r"));
    fs::remove_file(run.join("live.hlog")).unwrap();
    assert_eq!(counts(&store.show("r")), with_live);
}

#[test]
fn flipped_bytes_anywhere_are_an_error_or_a_caveat_and_never_a_crash() {
    let mut chance = Chance::new("flipped bytes");
    let turns = if is_long() { 120 } else { 2 };
    for prepare in [copied, copied_as_killed] {
        let (_store, run) = prepare();
        for (file, bytes) in contents(&run) {
            if bytes.is_empty() {
                continue;
            }
            for _ in 0..turns {
                let mut damaged = bytes.clone();
                let mut flips = Vec::new();
                for _ in 0..=chance.below(3) {
                    let (at, bit) = (chance.below(bytes.len()), chance.below(8));
                    damaged[at] ^= 1 << bit;
                    flips.push((at, bit));
                }
                fs::write(&file, &damaged).unwrap();
                survives_here(&run, &format!("{}: {flips:?}", file.display()));
            }
            fs::write(&file, &bytes).unwrap();
        }
    }
}

#[test]
fn a_file_of_something_else_is_survived() {
    let (store, run) = copied_as_killed();
    for (file, bytes) in contents(&run) {
        for other in [&b""[..], b"\n\n\n", &[0xff; 5_000], b"PAR1PAR1"] {
            fs::write(&file, other).unwrap();
            survives_here(&run, &format!("{}: {other:?}", file.display()));
        }
        // A name that leads to a directory, or to something without end.
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        survives_here(&run, &format!("{}: a directory", file.display()));
        fs::remove_dir(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        survives(&store, &format!("{}: /dev/zero", file.display()));
        fs::remove_file(&file).unwrap();
        fs::write(&file, bytes).unwrap();
    }
}

//! Runs that somebody made to do harm: small files that ask for much memory or time, names that
//! never open, and texts that steer a reader's terminal.

mod memory;
mod plans;
mod samples;

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use super::support::{Said, Store, codes, copy, finish, list, piped};

/// A store with a kept run, `r`, to be made hostile, and the directory of that.
fn kept() -> (Store, PathBuf) {
    let store = Store::new();
    let run = store.runs().join("r");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1/timer");
    copy(&fixture, &run);
    // As this version writes it.
    let record = store.show("r");
    write(&run, &record);
    (store, run)
}

fn write(run: &Path, record: &Value) {
    fs::write(run.join("run.json"), serde_json::to_vec(record).unwrap()).unwrap();
}

/// Runs a reader with an address space of 1 GiB: what wants more dies, as does what hangs.
fn bounded(store: &Store, arguments: &[&str]) -> Said {
    limited(store, "-v 1048576", arguments)
}

/// Runs a reader under a limit of `ulimit`.
fn limited(store: &Store, limit: &str, arguments: &[&str]) -> Said {
    finish(piped(&mut store.shell(&format!("ulimit -c 0; ulimit {limit}"), arguments)))
}

fn report(store: &Store) -> Said {
    bounded(store, &["report", "r", "-o", "page.html"])
}

/// The caveats of the record in the page that [`report`] wrote.
fn caveats(store: &Store) -> Vec<Value> {
    let html = fs::read_to_string(store.path().join("page.html")).unwrap();
    let page = super::support::page_data(&html);
    list(&page["runs"][0]["record"]["caveats"]).to_vec()
}

#[test]
fn a_row_for_each_of_many_cpus_at_many_times_is_refused_with_the_limit() {
    let (store, run) = kept();
    let rows: String = (0..15_000).map(|at| format!("{at}.0,cpu{at},1.0\n")).collect();
    fs::write(run.join("machine.csv"), format!("t_s,what,value\n{rows}")).unwrap();
    let said = report(&store);
    assert_eq!(said.code, Some(0), "{said:?}");
    let named = |caveat: &Value| {
        let text = caveat["text"].as_str().unwrap();
        text.contains("machine.csv") && text.contains("4194304")
    };
    assert!(caveats(&store).iter().any(named), "{:?}", caveats(&store));
}

#[test]
fn records_of_a_lab_that_fill_the_memory_together_are_refused_with_the_limit() {
    let store = Store::new();
    let lab = store.path().join("lab");
    fs::create_dir(&lab).unwrap();
    // One file under many names, as an archive can hold it.
    let record = fs::File::create(store.path().join("record")).unwrap();
    record.set_len(8 << 20).unwrap();
    for at in 0..17 {
        let run = lab.join(at.to_string());
        fs::create_dir(&run).unwrap();
        fs::hard_link(store.path().join("record"), run.join("run.json")).unwrap();
    }
    let said = bounded(&store, &["lab", "compare", "./lab"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.err.contains("the records of the runs below ./lab have more than 128 MiB"),
        "{said:?}"
    );
}

/// The record of the run, with `count` series without any count; `status` as it says.
fn many_series(record: &Value, count: usize, status: &str) -> Value {
    let mut record = record.clone();
    let mut one = record["series"][0].clone();
    record["series"] = (0..count)
        .map(|at| {
            one["name"] = json!(format!("s{at}"));
            one.clone()
        })
        .collect();
    record["status"] = json!(status);
    record
}

#[test]
fn thousands_of_series_take_no_memory_before_they_have_a_count() {
    let (store, run) = kept();
    let record = store.show("r");
    // Each has a histogram of 256 KiB once it has a count: together more than the 384 MiB that a
    // reader gets here.
    let report = ["report", "r", "-o", "page.html"];
    let readers: [(&str, &[&[&str]]); 2] = [
        ("running", &[&["show", "r"], &["list"], &["why", "r"], &report]),
        ("complete", &[&["show", "r"], &report]),
    ];
    for (status, readers) in readers {
        write(&run, &many_series(&record, 1_600, status));
        for arguments in readers {
            let said = limited(&store, "-v 393216", arguments);
            assert_eq!(said.code, Some(0), "{status} {arguments:?}: {said:?}");
        }
    }
}

#[test]
#[ignore = "long: it fills 512 MiB"]
fn counts_of_many_series_that_fill_the_memory_are_refused_with_the_limit() {
    let (store, run) = kept();
    let record = store.show("r");
    // One line of the log that has counts in all its buckets, for every series.
    let log = fs::read_to_string(run.join("series.hlog")).unwrap();
    let mut wide = tardy::run::hlog::empty();
    let mut value = 1_u64;
    while value < 3_600_000_000_000 {
        wide.record(value).unwrap();
        value += (value / 2_000).max(1);
    }
    let span = tardy::run::hlog::IntervalSpan { tag: "s0".into(), start_s: 0.0, length_s: 0.1 };
    let totals = tardy_hot::tally::Totals::NONE;
    let mut line = String::new();
    tardy::run::hlog::append(&mut line, &span, &wide, &totals);
    let line = line.lines().next().unwrap().to_owned();
    let lines = (0..4_000).map(|at| line.replacen("Tag=s0", &format!("Tag=s{at}"), 1) + "\n");
    let head = log.lines().take_while(|line| !line.starts_with("Tag=")).collect::<Vec<_>>();
    fs::write(run.join("series.hlog"), head.join("\n") + "\n" + &lines.collect::<String>())
        .unwrap();
    write(&run, &many_series(&record, 4_000, "running"));
    let said = bounded(&store, &["show", "r"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("series.hlog: the counts of its series take more than"), "{said:?}");
}

#[test]
fn more_series_than_any_machine_has_are_an_error_with_the_limit() {
    let (store, run) = kept();
    write(&run, &many_series(&store.show("r"), 16_385, "complete"));
    let said = bounded(&store, &["list"]);
    assert!(said.err.contains("run.json is not read: it has 16385 series"), "{said:?}");
    assert!(said.err.contains("at most 16384"), "{said:?}");
}

#[test]
fn objects_that_take_a_hundred_times_their_bytes_are_an_error_with_the_limit() {
    let (store, run) = kept();
    let text = fs::read_to_string(run.join("run.json")).unwrap();
    let many = format!("\"values\":{{\"a\":[{}0]", "{\"\":0},".repeat(400_000));
    let text = text.replacen("\"values\":{", &format!("{many},"), 1);
    assert!(text.len() > 2_000_000, "the run has a caveat with values");
    fs::write(run.join("run.json"), text).unwrap();
    for arguments in [&["show", "r"][..], &["list"]] {
        let said = bounded(&store, arguments);
        assert!(said.err.contains("holds more than 262144 objects"), "{said:?}");
    }
}

#[test]
fn many_sources_of_interrupts_and_many_loads_take_no_time() {
    let (store, run) = kept();
    let mut rows = "kind,source,description,cpu,before,after,difference\n".to_owned();
    (0..50_000).for_each(|at| rows.push_str(&format!("irq,s{at},,{at},0,1,1\n")));
    fs::write(run.join("interrupts.csv"), rows).unwrap();
    let mut record = store.show("r");
    let idle = json!({"name": "a", "parameters": {}, "proof": null, "ended": null});
    record["loads"] = vec![idle; 10_000].into();
    write(&run, &record);
    let mut rows = "t_s,load,operations_per_s\n".to_owned();
    (0..100_000).for_each(|at| rows.push_str(&format!("1.0,{at},1.0\n")));
    fs::write(run.join("loads.csv"), rows).unwrap();
    // Together these take a second of CPU; a search for each row among all others takes a minute.
    for arguments in [&["report", "r", "-o", "page.html"][..], &["show", "r"]] {
        let said = limited(&store, "-t 20", arguments);
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
}

#[test]
fn a_fifo_in_place_of_any_file_is_named_and_nothing_waits_for_it() {
    let (store, run) = kept();
    copy(&run, &store.runs().join("other"));
    let fifo = |file: &Path| {
        fs::remove_file(file).unwrap();
        mknodat(CWD, file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    };
    for file in ["machine.csv", "interrupts.csv", "series.hlog", "peaks.jsonl", "blame.json"] {
        fifo(&run.join(file));
    }
    let said = report(&store);
    assert_eq!(said.code, Some(0), "{said:?}");
    let caveats = caveats(&store);
    let found: Vec<&str> = caveats.iter().map(|caveat| caveat["text"].as_str().unwrap()).collect();
    for file in ["machine.csv", "interrupts.csv", "series.hlog", "peaks.jsonl", "blame.json"] {
        let named = |text: &&str| text.contains(file) && text.contains("it is a FIFO, not a file");
        assert!(found.iter().any(named), "{file}: {found:?}");
    }
    let said = bounded(&store, &["why", "r"]);
    assert!(said.out.contains("it is a FIFO"), "{said:?}");
    fifo(&run.join("run.json"));
    let said = bounded(&store, &["show", "r"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("run.json is not read: it is a FIFO, not a file"), "{said:?}");
    let said = bounded(&store, &["list"]);
    assert!(said.err.contains("it is a FIFO") && said.out.contains("timer"), "{said:?}");
    let said = bounded(&store, &["show", "last"]);
    assert_eq!(said.code, Some(0), "the other run is the last one: {said:?}");
}

#[test]
fn a_run_behind_a_link_to_its_directory_is_read_and_a_link_to_a_file_is_not() {
    let (store, run) = kept();
    let away = store.path().join("away");
    fs::rename(&run, &away).unwrap();
    std::os::unix::fs::symlink(&away, &run).unwrap();
    assert_eq!(bounded(&store, &["show", "r"]).code, Some(0));
    fs::rename(away.join("run.json"), away.join("real")).unwrap();
    std::os::unix::fs::symlink("real", away.join("run.json")).unwrap();
    let said = bounded(&store, &["show", "r"]);
    assert!(said.err.contains("it is a symbolic link"), "{said:?}");
}

/// Sets the clipboard, clears the screen in both forms, turns the text, and begins a line.
const STEERING: &str = "\u{1b}]52;c;aGk=\u{7}\u{1b}[2J\u{9b}2J\u{7f}\u{202e}\r\nforged: valid";

/// What a terminal would obey in this text, beside colours; and the line that was forged.
fn steering(text: &str) -> Option<String> {
    let mut rest = text.to_owned();
    while let Some(at) = rest.find("\u{1b}[") {
        let length = rest[at + 2..].find(|c: char| !c.is_ascii_digit() && c != ';');
        match length.map(|length| at + 2 + length) {
            Some(end) if rest[end..].starts_with('m') => rest.replace_range(at..=end, ""),
            _ => return Some("an escape sequence".into()),
        }
    }
    let odd = rest.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
    let forged = rest.lines().find(|line| line.starts_with("forged"));
    odd.map(|odd| format!("{odd:?}")).or_else(|| forged.map(str::to_owned))
}

/// Runs a reader as on a terminal, with colours.
fn in_colour(store: &Store, arguments: &[&str]) -> Said {
    finish(piped(store.tardy(arguments).env("CLICOLOR_FORCE", "1")))
}

/// The places of all texts in a record.
fn texts(value: &Value, place: &str, found: &mut Vec<String>) {
    let below = |key: &str| format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::String(_) => found.push(place.to_owned()),
        Value::Array(values) => {
            let each = values.iter().enumerate();
            each.for_each(|(at, value)| texts(value, &below(&at.to_string()), found));
        }
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| texts(value, &below(key), found));
        }
        _ => {}
    }
}

#[test]
fn no_text_of_a_record_steers_the_terminal_of_whoever_looks() {
    let (store, run) = kept();
    let mut record = store.show("r");
    record["loads"] = json!([{
        "name": "command", "parameters": {"command": "x"}, "ended": "x",
        "proof": {"unit": "x", "operations": 1, "operations_per_s": 1.0, "tasks": 1,
            "context_switches_per_s": 1.0, "cpu_share": 1.0, "tasks_idle": 0},
    }]);
    let mut places = Vec::new();
    texts(&record, "", &mut places);
    assert!(places.len() > 60, "{places:?}");
    // All that may be any text at once, and each of the others by itself, as an error that quotes
    // it.
    let mut all = record.clone();
    let mut quoted = 0;
    for place in places {
        let mut one = record.clone();
        let text = one.pointer_mut(&place).unwrap();
        *text = json!(format!("{}{STEERING}", text.as_str().unwrap()));
        if tardy::run::Document::from_json(one.clone()).is_ok() {
            *all.pointer_mut(&place).unwrap() = one.pointer(&place).unwrap().clone();
            continue;
        }
        write(&run, &one);
        let said = in_colour(&store, &["show", "r"]);
        assert_eq!(said.code, Some(2), "{place}: {said:?}");
        for said in [&said.out, &said.err] {
            assert_eq!(steering(said), None, "{place}: {said}");
        }
        quoted += 1;
    }
    assert!(quoted > 2, "{quoted} errors quote a record");
    write(&run, &all);
    for arguments in [
        &["show", "r"][..],
        &["show", "r", "--json"],
        &["list"],
        &["list", "--json"],
        &["why", "r"],
        &["why", "r", "--json"],
        &["profile", "r"],
        &["profile", "r", "--json"],
        &["export", "r", "--to", "folded"],
        &["lab", "compare", "r"],
        &["show", STEERING],
        // What the parser of the command line quotes: a word too many, an unknown verb and flag, a
        // value of a list, and two whose errors are tardy's own.
        &["show", "r", STEERING],
        &[STEERING],
        &["list", &format!("--{STEERING}")],
        &["run", STEERING],
        &["run", "timer", "--duration", STEERING],
        &["run", "timer", &format!("--samples={STEERING}")],
        &["report", "r", "-o", "page.html"],
    ] {
        let said = in_colour(&store, arguments);
        for said in [&said.out, &said.err] {
            assert_eq!(steering(said), None, "{arguments:?}: {said}");
        }
    }
    let shown = in_colour(&store, &["show", "r", "--json"]).out;
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), all, "JSON says the same");
    assert!(in_colour(&store, &["show", "r"]).out.contains("\u{1b}["), "colours are on");
    let quoted = in_colour(&store, &["show", "r", STEERING]);
    assert_eq!((quoted.code, quoted.out.as_str()), (Some(2), ""), "{quoted:?}");
    let (own, foreign) = ("\u{1b}[", "\\u{1b}]52;c;aGk=\\u{7}");
    assert!(quoted.err.contains(own) && quoted.err.contains(foreign), "{quoted:?}");
}

#[test]
fn names_of_files_and_cells_steer_no_terminal_either() {
    let (store, run) = kept();
    let odd = store.runs().join(STEERING.replace('/', ""));
    copy(&run, &odd);
    fs::write(odd.join("run.json"), "{").unwrap();
    let quoting = format!("irq,{STEERING},{STEERING},0,0,9,9\n").replace("\r\n", " ");
    let header = "kind,source,description,cpu,before,after,difference\n";
    fs::write(run.join("interrupts.csv"), format!("{header}{quoting}")).unwrap();
    for arguments in [
        &["list"][..],
        &["show", "r", "--interrupts"],
        &["show", odd.to_str().unwrap()],
        &["lab", "compare", "."],
    ] {
        let said = in_colour(&store, arguments);
        for said in [&said.out, &said.err] {
            assert_eq!(steering(said), None, "{arguments:?}: {said}");
        }
    }
    let said = in_colour(&store, &["show", "r", "--interrupts"]);
    assert!(said.out.contains("\\u{1b}]52"), "the source is shown: {said:?}");
    assert!(codes(&store.show("r")).iter().all(|code| *code != "track_damaged"));
}

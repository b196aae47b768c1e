//! `tardy import`: files of other programs, and that all that reads runs reads them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::support::{Store, codes, contents, list, read_record, skip, whole};

/// A file that its program really wrote.
fn real(name: &str) -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/import");
    place.join(name).to_str().unwrap().to_owned()
}

#[test]
fn an_imported_run_is_shown_compared_drawn_and_held_against_gates() {
    let store = Store::new();
    for (file, name) in [("cyclictest-H.txt", "a"), ("cyclictest-v.txt", "b")] {
        let said = store.run(&["import", &real(file), "--name", name]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.out.contains("imported from cyclictest"), "{}", said.out);
    }
    let shown = store.run(&["show", "a", "--gate", "max<1s", "--intervals"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.out.contains("load unknown") && shown.out.contains("pass"), "{}", shown.out);
    assert_eq!(store.run(&["show", "a", "--gate", "max<1us"]).code, Some(1));
    let compared = store.run(&["compare", "a", "b"]);
    assert_eq!(compared.code, Some(3), "described, not judged: {compared:?}");
    let page = store.page(&["a", "b"]);
    assert_eq!(list(&page["runs"]).len(), 2);
    for picture in ["a.svg", "a.png"] {
        let said = store.run(&["plot", "a", "-o", picture]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(fs::metadata(store.path().join(picture)).unwrap().len() > 1_000);
    }
    let exported = store.run(&["export", "a", "--to", "tap"]);
    assert!(exported.out.contains("ok 1"), "{exported:?}");
    assert!(store.run(&["show", "last"]).err.contains("no run \"last\""));
    assert_eq!(store.run(&["rm", "a", "b"]).code, Some(0));
}

#[test]
fn a_directory_is_taken_whole_and_what_is_unknown_in_it_is_named() {
    let store = Store::new();
    let files = store.path().join("files");
    fs::create_dir(&files).unwrap();
    for file in ["cyclictest.txt", "cyclictest.json"] {
        fs::copy(real(file), files.join(file)).unwrap();
    }
    fs::write(files.join("notes.txt"), "what we did\n").unwrap();
    std::os::unix::fs::symlink(real("cyclictest-v.txt"), files.join("z-link")).unwrap();
    fs::create_dir(files.join("sub")).unwrap();
    fs::copy(real("cyclictest.txt"), files.join("sub/more.txt")).unwrap();
    let said = store.run(&["import", files.to_str().unwrap(), "--name", "old", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("files/sub: a directory within one is not read"), "{}", said.err);
    assert!(said.err.contains("files/z-link: it is a link"), "{}", said.err);
    assert!(said.err.contains("notes.txt: it looks like none of the formats"), "{}", said.err);
    let made: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let names: Vec<&str> = list(&made).iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["old", "old-2"]);
    assert_eq!(made[0]["probe"]["parameters"]["file"], "cyclictest.json");
    assert_eq!(made[0]["status"], "imported");
}

#[test]
fn of_a_file_that_is_wrong_nothing_is_kept() {
    let store = Store::new();
    fs::create_dir(store.runs()).unwrap();
    let whole = fs::read(real("cyclictest-H.txt")).unwrap();
    let half = store.path().join("half.txt");
    let cut = whole.len() / 2;
    let cut = cut + whole[cut..].iter().position(|byte| *byte == b'\n').unwrap();
    fs::write(&half, &whole[..cut]).unwrap();
    let said = store.run(&["import", half.to_str().unwrap()]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    assert!(said.err.contains("half.txt: the lines # Total, # Min Latencies"), "{}", said.err);
    let said = store.run(&["import", &real("cyclictest-v.txt"), "--from", "cyclictest"]);
    assert!(said.err.contains("cyclictest-v.txt: it has no sample"), "{said:?}");
    let said = store.run(&["import", "/nonexistent"]);
    assert!(said.err.contains("/nonexistent"), "{said:?}");
    assert!(contents(&store.runs()).is_empty());
    let said = store.run(&["import", &real("cyclictest.txt"), "--name", "../x"]);
    assert!(said.err.contains("may not contain /"), "{said:?}");
}

#[test]
fn every_kept_file_is_recognised_and_its_run_can_be_read() {
    let store = Store::new();
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/import");
    let said = store.run(&["import", place.to_str().unwrap(), "--name", "kept", "--json"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    let made: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let names: Vec<&str> = list(&made).iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), contents(&place).len());
    for (file, program) in [
        ("hackbench.txt", "hackbench"),
        ("interbench.txt", "interbench"),
        ("lmbench.txt", "lmbench"),
        ("perf-script.txt", "perf script"),
        ("perf-timehist.txt", "perf sched timehist"),
        ("rtla-analysis.txt", "rtla timerlat"),
        ("rtla-osnoise-top.txt", "rtla osnoise"),
        ("rtla-timerlat-top.txt", "rtla timerlat"),
    ] {
        let run = list(&made).iter().find(|run| run["probe"]["parameters"]["file"] == file);
        assert_eq!(run.unwrap()["probe"]["name"], program, "{file}");
    }
    for name in &names {
        let shown = store.run(&["show", name, "--intervals", "--tail"]);
        assert_eq!(shown.code, Some(0), "{name}: {shown:?}");
        if list(&read_record(&store.runs().join(name))["series"]).is_empty() {
            // Figures alone are not a distribution.
            assert!(
                shown.out.contains("cpu0/noise")
                    || shown.out.contains('+')
                    || shown.out.contains("process/")
                    || shown.out.contains("ctx/2p/16k"),
                "{name}: {shown:?}"
            );
            continue;
        }
        let drawn = store.run(&["plot", name, "-o", "x.svg"]);
        let has_counts =
            store.run(&["export", name, "--to", "histogram-csv"]).out.lines().count() > 1;
        let code = if has_counts { Some(0) } else { Some(2) };
        assert_eq!(drawn.code, code, "a summary alone has no picture: {name}: {drawn:?}");
    }
    assert_eq!(list(&store.page(&names)["runs"]).len(), names.len());
}

#[test]
fn what_rtla_says_of_a_late_sample_is_what_why_and_the_page_say() {
    let store = Store::new();
    let said = store.run(&["import", &real("rtla-analysis.txt"), "--name", "aa"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    let why = store.run(&["why", "aa"]);
    assert_eq!(why.code, Some(0), "{why:?}");
    let unbroken = why.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unbroken.contains("interrupts off in percpu_counter_add_batch"), "{}", why.out);
    assert!(why.out.contains("1. 64.3 us late on cpu3\n"), "{}", why.out);
    let since = store.run(&["why", "aa", "--since", "0s"]);
    assert!(since.out.contains("does not fit --since"), "nobody knows when: {since:?}");
    let page = store.page(&["aa"]);
    let peak = &page["runs"][0]["peaks"]["peaks"][0];
    assert_eq!((&peak["latency_ns"], &peak["t_s"]), (&64_310.into(), &serde_json::Value::Null));
    let drawn = store.run(&["export", "aa", "--to", "perfetto", "-o", "x"]);
    assert_eq!(drawn.code, Some(2), "nothing has a place in time: {drawn:?}");
    // A table and the analysis behind it are one run.
    let table = fs::read_to_string(real("rtla-timerlat-top.txt")).unwrap();
    let both = store.path().join("both.txt");
    fs::write(&both, table + &fs::read_to_string(real("rtla-analysis.txt")).unwrap()).unwrap();
    let said = store.run(&["import", both.to_str().unwrap(), "--name", "both"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(store.run(&["why", "both"]).out.contains("64.3 us late on cpu3"));
    assert!(list(&read_record(&store.runs().join("both"))["series"]).len() > 2);
}

#[test]
fn a_result_of_wult_is_one_run_of_its_directory_or_of_its_samples() {
    let store = Store::new();
    let seed = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/wult/wult.txt");
    let text = fs::read_to_string(seed).unwrap();
    let (info, points) = text.split_once("\n\n").unwrap();
    let place = store.path().join("result");
    fs::create_dir_all(place.join("stats")).unwrap();
    let file = place.join("datapoints.csv");
    fs::write(&file, points).unwrap();
    let said = store.run(&["import", place.to_str().unwrap()]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.err.contains("the info.yml that wult and ndl write, and it is missing"),
        "{}",
        said.err
    );
    fs::write(place.join("info.yml"), format!("{info}\n")).unwrap();
    for (name, path) in [("whole", &place), ("file", &file)] {
        let said = store.run(&["import", path.to_str().unwrap(), "--name", name, "--again"]);
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
        let record = read_record(&store.runs().join(name));
        assert_eq!(record["probe"]["name"], "wult");
        assert_eq!(record["probe"]["parameters"]["devid"], "tdt");
        let [wake, interrupt] = list(&record["series"]) else { panic!("{record}") };
        assert_eq!((wake["name"].as_str(), wake["cpu"].as_u64()), (Some("WakeLatency"), Some(0)));
        assert_eq!((whole(&wake["count"]), whole(&wake["max"])), (2, 4_500));
        assert_eq!(whole(&interrupt["max"]), 7_903);
    }
    fs::write(place.join("info.yml"), info.replace("'1.2'", "'9'") + "\n").unwrap();
    let said = store.run(&["import", file.to_str().unwrap()]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("info.yml: line 4: format_version \"9\""), "{}", said.err);
    let kept = fs::read_dir(store.runs()).unwrap().count();
    assert_eq!(kept, 2, "nothing of what was refused");
}

/// Runs cyclictest for a moment; nothing if it is not installed.
fn cyclictest(store: &Store, arguments: &[&str]) -> Option<PathBuf> {
    let output = store.path().join(format!("{}.txt", arguments.join("")));
    let file = fs::File::create(&output).unwrap();
    let ran = Command::new("cyclictest").args(arguments).stdout(file).status();
    if !ran.is_ok_and(|status| status.success()) {
        skip("no cyclictest that runs here");
        return None;
    }
    Some(output)
}

#[test]
fn the_figures_are_those_that_cyclictest_itself_states() {
    let store = Store::new();
    let arguments = ["-q", "-t2", "-l", "300", "-i", "300", "-h", "2000"];
    let Some(file) = cyclictest(&store, &arguments) else { return };
    let said = store.run(&["import", file.to_str().unwrap(), "--name", "real"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = read_record(&store.runs().join("real"));
    let text = fs::read_to_string(&file).unwrap();
    let stated = |name: &str, thread: usize| -> i64 {
        let line = text.lines().find(|line| line.starts_with(&format!("# {name}:"))).unwrap();
        let (_, values) = line.split_once(':').unwrap();
        values.split_whitespace().nth(thread).unwrap().parse().unwrap()
    };
    for (thread, series) in list(&record["series"]).iter().enumerate() {
        let samples = stated("Total", thread) + stated("Histogram Overflows", thread);
        assert_eq!(whole(&series["count"]), samples, "{series}");
        assert_eq!(whole(&series["min"]), stated("Min Latencies", thread) * 1_000);
        assert_eq!(whole(&series["max"]), stated("Max Latencies", thread) * 1_000);
        if stated("Histogram Overflows", thread) == 0 {
            let mean = stated("Avg Latencies", thread) * 1_000;
            let found = whole(&series["mean"]);
            assert!((mean..mean + 1_000).contains(&found), "{found} {mean}: it cuts decimals off");
        }
    }
    assert!(codes(&record).contains(&"latencies_rounded"));
}

#[test]
fn the_times_that_hackbench_states_are_the_values_of_a_figure() {
    let store = Store::new();
    let mut text = String::new();
    for _ in 0..2 {
        let ran = Command::new("hackbench").args(["-g", "1", "-l", "20"]).output();
        let Some(said) = ran.ok().filter(|said| said.status.success()) else {
            skip("no hackbench that runs here");
            return;
        };
        text += &String::from_utf8(said.stdout).unwrap();
    }
    let file = store.path().join("hackbench.txt");
    fs::write(&file, &text).unwrap();
    let said = store.run(&["import", file.to_str().unwrap(), "--name", "real"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = read_record(&store.runs().join("real"));
    let stated: Vec<f64> =
        text.lines().filter_map(|line| line.strip_prefix("Time: ")?.trim().parse().ok()).collect();
    let [figure] = list(&record["figures"]) else { panic!("{record}") };
    assert_eq!(figure["name"], "process/1x40/20x100B");
    assert_eq!((figure["unit"].as_str(), stated.len()), (Some("s"), 2));
    let values: Vec<f64> =
        list(&figure["values"]).iter().filter_map(|value| value.as_f64()).collect();
    assert_eq!(values, stated);
}

/// The number of runs.
fn kept(store: &Store) -> usize {
    fs::read_dir(store.runs()).unwrap().count()
}

#[test]
fn a_content_becomes_a_run_once_whatever_it_is_called() {
    let store = Store::new();
    let (first, packed) = (real("cyclictest-H.txt"), store.path().join("other.log"));
    fs::write(&packed, zstd::encode_all(fs::File::open(&first).unwrap(), 1).unwrap()).unwrap();
    let files = store.path().join("files");
    fs::create_dir(&files).unwrap();
    fs::copy(&first, files.join("a.txt")).unwrap();
    assert_eq!(store.run(&["import", &first, "--name", "once"]).code, Some(0));
    for file in [first.as_str(), packed.to_str().unwrap()] {
        let said = store.run(&["import", file]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains("is the run once already; --again imports it"), "{}", said.err);
    }
    let said = store.run(&["import", files.to_str().unwrap(), "--json"]);
    assert_eq!((said.code, said.out.trim()), (Some(0), "[]"), "nothing is new: {said:?}");
    assert!(said.err.contains("a.txt: its content is the run once already"), "{}", said.err);
    fs::copy(real("cyclictest.txt"), files.join("b.txt")).unwrap();
    let said = store.run(&["import", files.to_str().unwrap(), "--name", "new"]);
    assert!(said.code == Some(0) && said.out.contains("new"), "{said:?}");
    let said = store.run(&["import", &first, &first, "--again", "--name", "more"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let names = ["once", "new", "more", "more-2"].map(|name| store.runs().join(name).exists());
    assert_eq!((names, kept(&store)), ([true; 4], 4));
}

#[test]
fn of_an_archive_every_file_that_can_be_imported_is_a_run() {
    let store = Store::new();
    let file = store.path().join("rteval-20261128-1.tar.bz2");
    let packed =
        bzip2::write::BzEncoder::new(fs::File::create(&file).unwrap(), bzip2::Compression::fast());
    let mut archive = tar::Builder::new(packed);
    let mut put = |name: &str, content: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, name, content).unwrap();
    };
    put("rteval-20261128-1/summary.xml", &fs::read(real("rteval-summary.xml")).unwrap());
    put("rteval-20261128-1/dmesg", b"Linux version 6.1\n");
    let cut = fs::read_to_string(real("rteval-summary.xml")).unwrap();
    put("rteval-20261128-1/cut.xml", &cut.as_bytes()[..cut.len() / 2]);
    archive.into_inner().unwrap().finish().unwrap();
    let said = store.run(&["import", file.to_str().unwrap(), "--name", "night"]);
    assert_eq!((said.code, kept(&store)), (Some(0), 1), "{said:?}");
    assert!(said.err.contains("1 file in it of no format"), "{}", said.err);
    assert!(said.err.contains("rteval-20261128-1/cut.xml: line"), "{}", said.err);
    let record = read_record(&store.runs().join("night"));
    assert_eq!(record["provenance"]["program"], "rteval");
    let file = &record["probe"]["parameters"]["file"];
    assert_eq!(file, "rteval-20261128-1.tar.bz2/rteval-20261128-1/summary.xml");
}

#[test]
fn a_run_that_was_handed_on_in_a_bundle_is_the_same_run_elsewhere() {
    let (ours, theirs) = (Store::new(), Store::new());
    let run = ["run", "fake", "--warmup", "0s", "--cpus", "0", "--unpaced", "--samples", "2000"];
    let measured = ours.run(&[&run[..], &["--name", "night", "--raw", "--quiet"]].concat());
    assert_eq!(measured.code, Some(0), "{measured:?}");
    let file = ours.path().join("night.bundle");
    let path = file.to_str().unwrap();
    for redacts in [false, true] {
        let own = if redacts { &["--redact"][..] } else { &[] };
        let said = ours.run(&[&["export", "night", "--to", "bundle", "-o", path], own].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        let name = if redacts { "redacted" } else { "night" };
        let said = theirs.run(&["import", path, "--name", name, "--again"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.out.contains("received in a bundle"), "{}", said.out);
        let compared = theirs.run(&["show", name, "--json"]);
        let found: serde_json::Value = serde_json::from_str(&compared.out).unwrap();
        assert_eq!(found["series"], ours.show("night")["series"]);
    }
    let part = ours.runs().join("night/run.json");
    let said = ours.run(&["export", "night", "--to", "bundle", "-o", part.to_str().unwrap()]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("is a part of the run"), "{}", said.err);
    let again = theirs.run(&["import", path]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.err.contains("already; --again imports it once more"), "{}", again.err);
    assert!(
        theirs.run(&["show", "last"]).err.contains("no run \"last\""),
        "it was not measured here"
    );
    let host = ours.show("night")["facts"]["hostname"].as_str().unwrap().to_owned();
    assert_ne!(theirs.show("redacted")["facts"]["hostname"], host.as_str());
}

//! Files as cyclictest 2.40 wrote them, shortened, and in the form of its siblings.

use crate::exchange::import::tests::{caveats, series, text};

/// As cyclictest 2.40 wrote it.
const CYCLICTEST: &str = r##"{
  "file_version": 1,
  "cmdline:": "cyclictest -q -t2 -i 200 -l 500 --json=j.json -h 60",
  "rt_test_version:": "2.40",
  "start_time": "Wed, 25 Nov 2026 15:45:57 +0000",
  "end_time": "Wed, 25 Nov 2026 15:45:58 +0000",
  "return_code": 0,
  "sysinfo": {
"sysname": "Linux", "nodename": "vm", "release": "6.18.44",
"version": "#1 SMP PREEMPT_RT @0", "machine": "x86_64", "realtime": 1
  },
  "num_threads": 2,
  "resolution_in_ns": 0,
  "thread": {
"0": {
  "histogram": { "29": 1, "47": 1, "57": 1 },
  "cycles": 5, "min": 29, "max": 472, "avg": 65.01, "cpu": 0, "node": 0
},
"1": {
  "histogram": { },
  "cycles": 500, "min": 62, "max": 67, "avg": 63.87, "cpu": -1, "node": 0
}
  }
}"##;

fn cyclictest() -> String {
    CYCLICTEST.to_owned()
}

#[test]
fn what_overflowed_without_a_word_is_found_by_the_cycles() {
    let sheet = text(&cyclictest()).unwrap();
    let expected = [("cpu0", 5, 29_000, 472_000), ("thread1", 500, 62_000, 67_000)];
    assert_eq!(series(&sheet), expected);
    let said = caveats(&sheet);
    assert!(said.contains("2 of 5 samples on cpu0 lie beyond the last bin, at 60.0 us"));
    // What is missing below the bins that were asked for is not beyond them.
    let small = cyclictest().replace("\"max\": 472, \"avg\": 65.01", "\"max\": 57, \"avg\": 50.0");
    assert!(caveats(&text(&small).unwrap()).contains("at 58.0 us"));
    let unsaid = cyclictest().replace(" -h 60", "");
    assert!(caveats(&text(&unsaid).unwrap()).contains("at 58.0 us"));
    for option in ["-h60", "--histogram=60", "--histogram 60", "-H 60", "--histofall=60"] {
        let said = caveats(&text(&cyclictest().replace("-h 60", option)).unwrap());
        assert!(said.contains("at 60.0 us"), "{option}: {said}");
    }
    assert!(said.contains("no_distribution"), "{said}");
    assert_eq!((sheet.program.as_str(), sheet.version.as_str()), ("cyclictest", "2.40"));
    assert_eq!(sheet.facts.preemption.model, "rt");
    assert_eq!(sheet.duration_ns, Some(1_000_000_000));
    assert_eq!(sheet.parameters["interval_ns"], 200_000);
}

#[test]
fn a_thread_or_a_bin_that_is_there_twice_is_refused_and_what_is_missing_is_a_loss() {
    let twice = text(&cyclictest().replace("\"1\": {", "\"0\": {")).unwrap_err().to_string();
    assert_eq!(twice, "line 19: \"0\" is twice in one object: which one is meant?");
    let bin = text(&cyclictest().replace("\"47\"", "\"29\"")).unwrap_err().to_string();
    assert_eq!(bin, "line 16: \"29\" is twice in one object: which one is meant?");
    let few = cyclictest().replace("\"num_threads\": 2", "\"num_threads\": 4");
    let said = caveats(&text(&few).unwrap());
    assert!(said.contains("what is missing: 2 of its 4 threads."), "{said}");
    let failed = cyclictest().replace("\"return_code\": 0", "\"return_code\": 1");
    let said = caveats(&text(&failed).unwrap());
    assert!(said.contains("as it failed (return_code 1)."), "{said}");
    assert!(!caveats(&text(&cyclictest()).unwrap()).contains("loss_stated"));
}

#[test]
fn an_export_of_tardy_is_of_its_probe_and_not_of_the_version_of_cyclictest() {
    let of = |command: &str| {
        let file = cyclictest().replacen("cyclictest -q -t2", command, 1);
        let sheet = text(&file).unwrap();
        assert_eq!((sheet.program.as_str(), sheet.version.as_str()), ("tardy", ""));
        sheet.same_as
    };
    assert_eq!(of("tardy --store x run timer"), Some("timer"));
    assert_eq!(of("/usr/bin/tardy run --load hackbench"), Some("timer"));
    assert_eq!(of("tardy run pingpong"), Some("pingpong"));
    assert_eq!(of("tardy import x.json"), None);
}

#[test]
fn nanoseconds_are_known_by_the_resolution_or_the_command() {
    let resolution = cyclictest().replace("\"resolution_in_ns\": 0", "\"resolution_in_ns\": 1");
    let command = cyclictest().replace("-q -t2", "-N -t2");
    for file in [resolution, command] {
        assert_eq!(series(&text(&file).unwrap())[0], ("cpu0", 5, 29, 472));
    }
}

#[test]
fn the_last_bin_of_oslat_has_what_is_beyond_it() {
    let file = r#"{"cmdline:": "oslat -D 1 --json=x", "rt_test_version:": "2.40", "thread":
        {"0": {"cpu": 0, "freq": 2597, "min": 1, "avg": 1.002135, "max": 5201,
        "duration": 1.002, "histogram": {"1": 47526984, "2": 110, "32": 51}}}}"#;
    let sheet = text(file).unwrap();
    assert_eq!(series(&sheet), [("cpu0", 161, 2_000, 5_201_000)]);
    assert!(caveats(&sheet).contains("51 of 161 samples on cpu0"));
    let within = file.replace("5201", "32");
    assert_eq!(caveats(&text(&within).unwrap()).matches("latencies_hidden").count(), 0);
}

#[test]
fn siblings_have_no_histogram_and_their_summaries_are_taken() {
    let file = r#"{"file_version": 1, "cmdline:": "ptsematest -a -t1 -i 500 --json=x",
        "rt_test_version:": "2.40", "thread": {"0": {
        "sender": {"cpu": 0, "priority": 80, "samples": 120, "interval": 500},
        "receiver": {"cpu": 1, "priority": 80, "min": 3, "avg": 5.5, "max": 41}}}}"#;
    let sheet = text(file).unwrap();
    assert_eq!(series(&sheet), [("cpu1", 120, 3_000, 41_000)]);
    assert_eq!((sheet.program.as_str(), sheet.same_as), ("ptsematest", None));
}

#[test]
fn damage_is_named_by_its_line() {
    let cut = cyclictest();
    let error = text(&cut[..300]).unwrap_err();
    assert!(error.line.is_some(), "{error}");
    let odd = cyclictest().replace("\"47\"", "\"4x\"");
    let error = text(&odd).unwrap_err().to_string();
    assert_eq!(error, "thread 0: \"4x\" is not a bin of a histogram");
    let negative = cyclictest().replace("\"47\": 1", "\"47\": -1");
    assert_eq!(text(&negative).unwrap_err().line, Some(16));
}

#[test]
fn what_contradicts_the_histogram_is_refused_by_its_field() {
    let whole = cyclictest().replace("\"cycles\": 5,", "\"cycles\": 3,");
    for (file, from, to, said) in [
        (&whole, "", "", "thread 0: \"max\" 472 is above the largest bin with samples, 57, and"),
        (&cyclictest(), "472", "50", "thread 0: \"avg\" 65.01 is above \"max\" 50"),
        (
            &cyclictest(),
            "\"max\": 472, \"avg\": 65.01",
            "\"max\": 40, \"avg\": 35.0",
            "thread 0: \"max\" 40 is below the largest bin with samples, 57",
        ),
        (&cyclictest(), "\"min\": 62", "\"min\": 68", "thread 1: \"min\" 68 is above \"max\" 67"),
        (&cyclictest(), "\"min\": 29", "\"min\": 35", "thread 0: \"min\" 35 is above the smallest"),
    ] {
        let error = text(&file.replace(from, to)).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

#[test]
fn the_mean_with_what_overflowed_is_the_stated_one_where_it_can_be() {
    let mean = |file: &str| {
        let sheet = text(file).unwrap();
        let totals = &sheet.series[0].totals;
        (totals.sum_ns / i64::try_from(totals.count).unwrap(), caveats(&sheet))
    };
    // Two of 5 are from 58 to 472 us: the mean is from 49.8 to 215.4 us.
    let (own, said) = mean(&cyclictest());
    assert_eq!(own, 65_010);
    assert!(said.contains("The mean is the one that the file states."), "{said}");
    let (own, said) = mean(&cyclictest().replace("65.01", "300.5"));
    assert_eq!(own, 215_400);
    assert!(said.contains("and so is the mean."), "{said}");
}

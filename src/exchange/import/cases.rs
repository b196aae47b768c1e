//! Files of people who do this job, as public reports and real programs have them, and what is
//! right of each. Names and hosts in `tests/fixtures/imports` are made up.

use super::{
    ImportOptions, ImportedData, LatencyUnit,
    tests::{caveats, made, read_as, series, text},
};
use crate::{
    exchange::export::{
        CountedRun,
        cyclictest::{CyclictestStyle, histogram, json},
    },
    run::Validity,
};

macro_rules! case {
    ($file:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/imports/", $file))
    };
}

fn mean_ns(sheet: &ImportedData, number: usize) -> i64 {
    let totals = &sheet.series[number].totals;
    totals.sum_ns / i64::try_from(totals.count).unwrap()
}

fn refused(of: &str) -> String {
    text(of).unwrap_err().to_string()
}

#[test]
fn a_log_whose_intervals_begin_before_its_start_begins_with_them() {
    let sheet = text(case!("basetime.hlog")).unwrap();
    assert_eq!(sheet.started_at.unwrap().to_string(), "2015-09-09T15:22:03.25Z");
    assert_eq!(sheet.duration_ns.map(|ns| ns / 1_000_000), Some(61_006));
}

#[test]
fn logs_of_go_and_javascript_state_an_offset_and_shift_nothing() {
    let sheet = text(case!("offset.hlog")).unwrap();
    let counts = sheet.counts(0);
    assert_eq!(counts.len(), 1_000);
    let us = [0.5, 0.99].map(|quantile| counts.value_at_quantile(quantile) / 100);
    assert_eq!(us, [5_002, 9_902], "500.2 and 990.2 us");
    assert_eq!(sheet.series[0].totals.max_ns / 100, 10_004);
    let go = case!("offset.hlog").replace("#[StartTime:", "#[Basetime:");
    assert!(text(&go).unwrap().started_at.is_some());
}

#[test]
fn an_indented_footer_is_one() {
    let sheet = text(case!("indented.hgrm")).unwrap();
    assert_eq!(mean_ns(&sheet, 0), 11_250_000);
    assert!(!caveats(&sheet).contains("footer_missing"));
}

#[test]
fn latmus_states_its_period_in_its_own_way() {
    let sheet = text(case!("latmus.txt")).unwrap();
    assert_eq!(series(&sheet), [("all", 2_000, 1_182, 3_899)]);
    assert_eq!((mean_ns(&sheet, 0), sheet.duration_ns), (1_315, Some(2_000_000_000)));
    let late = case!("latmus.txt").replace("3.899|       0|", "3.899|       7|");
    let said = caveats(&text(&late).unwrap());
    assert!(
        said.contains("loss_stated: The file itself says what is missing: 7 overruns."),
        "{said}"
    );
    let twice = format!("{0}{0}", case!("latmus.txt"));
    assert!(refused(&twice).starts_with("line 9: a second run"), "{}", refused(&twice));
}

#[test]
fn columns_of_rtla_may_be_of_any_cpu() {
    let sheet = text(case!("rtla-cpu100.txt")).unwrap();
    let whole: Vec<_> = series(&sheet).into_iter().filter(|own| !own.0.contains('/')).collect();
    assert_eq!(whole, [("cpu100", 10_000, 3_000, 7_000), ("cpu101", 10_000, 3_000, 7_000)]);
    let twice = format!("{0}{0}", case!("rtla-cpu100.txt"));
    assert!(refused(&twice).contains("a second run begins here"), "{}", refused(&twice));
}

#[test]
fn the_sample_at_which_rtla_stopped_is_at_least_as_long_as_it_was_by_then() {
    let sheet = text(case!("rtla-stopped.txt")).unwrap();
    let cpu2 = series(&sheet).into_iter().find(|own| own.0 == "cpu2").unwrap();
    assert_eq!(cpu2, ("cpu2", 1, 52_930, 52_930));
    let code = "stopped_early";
    assert!(caveats(&sheet).contains(code), "{}", caveats(&sheet));
    let (.., document) = made(&sheet);
    assert_eq!(document.validity, Validity::Invalid, "of one sample each");
}

#[test]
fn two_runs_in_one_file_are_not_one() {
    let error = refused(case!("two-runs.txt"));
    assert_eq!(error, "line 12: a second run begins here: import one file for each");
}

#[test]
fn what_terminals_and_logs_put_before_a_line_is_not_of_it() {
    let expected =
        |cycles| [("thread0", cycles, 4_000, 35_000), ("thread1", cycles, 4_000, 41_000)];
    assert_eq!(series(&text(case!("caret.txt")).unwrap()), expected(60_100));
    assert_eq!(series(&text(case!("kernelci.txt")).unwrap()), expected(60_000));
    for before in ["> ", "Nov 28 12:00:01 rig lava[7]: ", "2026-11-28T12:00:01.5Z ", "\u{1b}[32m"] {
        let lines = case!("caret.txt").lines().map(|line| format!("{before}{line}\n"));
        let sheet = text(&lines.collect::<String>()).unwrap();
        assert_eq!(series(&sheet), expected(60_100), "{before}");
    }
    let odd = case!("caret.txt").replace("T: 1 ( 1235) P:98 I:1000 C:  60100", "T: 1 (1235) C: x");
    assert!(refused(&odd).starts_with("line 4: \"T: 1 (1235) C: x"), "{}", refused(&odd));
}

#[test]
fn a_number_that_is_none_is_no_damage() {
    let sheet = text(case!("nan.json")).unwrap();
    let expected = [("cpu0", 10_000, 3_000, 120_000), ("cpu1", 10_000, 3_000, 9_000)];
    assert_eq!(series(&sheet), expected);
}

#[test]
fn a_largest_at_the_limit_of_the_histogram_is_beyond_it() {
    let sheet = text(case!("edge.xml")).unwrap();
    assert_eq!(series(&sheet)[0], ("cpu0", 9_002, 3_000, 3_500_000));
    assert_eq!(series(&sheet)[1], ("cpu1", 9_001, 3_000, 3_000));
    assert!(caveats(&sheet).contains("latencies_hidden"));
    let within = case!("edge.xml").replace("3500</maximum>", "3400</maximum>");
    assert!(refused(&within).contains("maximum 3400 is above the largest bin"));
}

#[test]
fn of_samples_beyond_the_histogram_the_stated_extremes_are_kept() {
    let sheet = text(case!("all-overflow.txt")).unwrap();
    assert_eq!(series(&sheet), [("thread0", 300, 13_000, 27_000)]);
    assert_eq!(mean_ns(&sheet, 0), 17_000);
}

#[test]
fn lost_events_end_no_wait() {
    let sheet = text(case!("lost-events.txt")).unwrap();
    let rt = series(&sheet).into_iter().find(|own| own.0.starts_with("rt")).unwrap();
    assert_eq!((rt.1, rt.2, rt.3), (2, 10_000, 12_000));
    assert!(caveats(&sheet).contains("2 events of the kernel lost"), "{}", caveats(&sheet));
}

#[test]
fn what_sockperf_says_was_lost_is_said() {
    let said = caveats(&text(case!("dropped.csv")).unwrap());
    let lost = "1 dropped message, 2 duplicated messages, 1 out-of-order message";
    assert!(said.contains(lost), "{said}");
    let twice = format!("{0}{0}", case!("dropped.csv"));
    assert!(refused(&twice).contains("a second log begins here"), "{}", refused(&twice));
}

#[test]
fn jitterdebugger_states_its_unit_and_counts_threads() {
    let sheet = text(case!("ns.json")).unwrap();
    assert_eq!(
        series(&sheet),
        [("thread0", 1_000, 4_100, 5_200), ("thread1", 1_000, 4_000, 4_000)]
    );
    let us = case!("ns.json").replace("\"resolution_in_ns\": 1 ", "\"resolution_in_ns\": 1000 ");
    assert_eq!(series(&text(&us).unwrap())[0].2, 4_100_000);
    let odd = case!("ns.json").replace("\"resolution_in_ns\": 1 ", "\"resolution_in_ns\": 0 ");
    assert!(refused(&odd).contains("1 or 1000 was expected"), "{}", refused(&odd));
}

#[test]
fn the_width_of_columns_is_a_guess_that_the_user_may_correct() {
    let sheet = text(case!("wide-columns.txt")).unwrap();
    assert_eq!(series(&sheet), [("thread0", 10_000, 2_592_000, 10_652_000)]);
    assert_eq!(mean_ns(&sheet, 0), 6_137_000);
    assert!(caveats(&sheet).contains("unit_assumed"));
    let options = |unit| ImportOptions { unit: Some(unit), ..ImportOptions::default() };
    for (unit, min_ns) in
        [(LatencyUnit::Microseconds, 2_592_000), (LatencyUnit::Nanoseconds, 2_592)]
    {
        let sheet = read_as(case!("wide-columns.txt"), &options(unit)).unwrap();
        assert_eq!(series(&sheet)[0].2, min_ns);
        assert!(!caveats(&sheet).contains("unit_assumed"));
    }
}

/// The run as cyclictest would have written it, read again.
fn there_and_back(sheet: &ImportedData) -> [ImportedData; 2] {
    let (_place, run, _) = made(sheet);
    let counted = CountedRun::read(run).unwrap();
    let style = CyclictestStyle { unit_ns: 1_000, bins: None, has_sums: false };
    let rows = histogram(&counted, style).unwrap();
    let json = String::from_utf8(json(&counted, style).unwrap()).unwrap();
    [&rows, &json].map(|own| text(own).unwrap_or_else(|error| panic!("{error}: {own}")))
}

#[test]
fn whole_microseconds_stay_what_they_are_through_an_export() {
    let sheet = text(case!("whole-us.txt")).unwrap();
    for own in there_and_back(&sheet) {
        let counts = own.counts(0);
        let of = |us: u64| counts.count_between(us * 1_000, us * 1_000);
        assert_eq!([16, 17, 18, 55].map(of), [10, 20, 30, 1]);
        assert_eq!(counts.len(), 61);
    }
    for own in there_and_back(&text(case!("all-overflow.txt")).unwrap()) {
        assert_eq!(series(&own)[0].1, 300);
        assert_eq!((series(&own)[0].2, series(&own)[0].3), (13_000, 27_000));
    }
}

#[test]
fn a_second_run_is_known_by_what_one_run_cannot_do() {
    let first = "T: 0 ( 7) P:80 I:1000 C: 500 Min: 4 Act: 5 Avg: 5 Max: 30\n";
    for second in [
        "T: 0 ( 7) P:80 I:1000 C: 900 Min: 4 Act: 5 Avg: 5 Max: 25\n",
        "T: 0 ( 7) P:80 I:1000 C: 900 Min: 6 Act: 5 Avg: 5 Max: 40\n",
        "T: 0 ( 7) P:80 I:1000 C: 100 Min: 4 Act: 5 Avg: 5 Max: 40\n",
        "T: 0 ( 7) P:80 I:200 C: 900 Min: 4 Act: 5 Avg: 5 Max: 40\n",
        "T: 0 ( 8) P:80 I:1000 C: 900 Min: 4 Act: 5 Avg: 5 Max: 40\n",
    ] {
        let error = refused(&format!("{first}{second}"));
        assert!(error.starts_with("line 2: a second run"), "{second}: {error}");
    }
    let whole = case!("whole-us.txt");
    for line in [
        "T: 0 ( 7) P:80 I:1000 C: 61 Min: 9 Act: 9 Avg: 9 Max: 3500\n",
        "T: 1 ( 7) P:80 I:1000 C: 61 Min: 9 Act: 9 Avg: 9 Max: 50\n",
        "T: 0 ( 7) P:80 I:1000 C: 9000 Min: 9 Act: 9 Avg: 9 Max: 50\n",
    ] {
        let error = refused(&format!("{whole}{line}"));
        assert!(error.contains("is not of the run of the histogram"), "{line}: {error}");
    }
    let own = "T: 0 ( 7) P:80 I:1000 C: 61 Min: 16 Act: 17 Avg: 17 Max: 55\n";
    assert!(text(&format!("{own}{whole}")).is_ok());
    let samples = "0;1114.9;9\n0;1115.9;9\n";
    assert!(refused(&format!("{samples}{samples}")).contains("line 3: this sample of CPU 0"));
}

#[test]
fn no_line_of_a_thread_is_passed_over() {
    let good = "T: 1 ( 8) P:80 I:1000 C: 900 Min: 4 Act: 5 Avg: 5 Max: 41\n";
    let other = "T: 0 ( 7) P:80 I:1000 C: 900 Min: 4 Act: 5 Avg: 5 Max: 3500";
    for before in ["root@rig:~# ", "usb 1-1: new device", "Max: 52"] {
        let error = refused(&format!("{good}{before}{other}\n"));
        assert!(error.starts_with("line 2: "), "{before}: {error}");
    }
    // A known stamp before some lines, and a line that is redrawn without an end.
    for text_of in
        [format!("{good}[Sat Nov 28 12:00:00 2026] {other}\n"), format!("{good}{other}\r{other}\r")]
    {
        let sheet = text(&text_of).unwrap();
        assert_eq!(series(&sheet)[0], ("thread0", 900, 4_000, 3_500_000), "{text_of}");
    }
    let cut = "T: 2 ( 9) P:80 I:1000 C: 900 Min: 4 Act: 5 Avg: 5 Max:";
    assert!(refused(&format!("{good}{cut}")).starts_with("line 2: "));
    assert!(text(&format!("{good}{}", cut.replace("T: 2", "T: 1"))).is_ok(), "it has another");
    let uneven = case!("whole-us.txt").replace(" Latencies: 000", " Latencies: 00016 000");
    assert!(refused(&uneven).contains("the row of 16 has 1 count, and there are 2 threads"));
}

#[test]
fn a_command_line_with_nsecs_is_a_sign_of_the_unit() {
    let line = "T: 0 ( 7) P:80 I:1000 C: 900 Min: 4878 Act: 5000 Avg: 5000 Max: 10652\n";
    for (command, min_ns) in [("-q -mN -t1", 4_878), ("--nsecs", 4_878), ("-q -n", 4_878_000)] {
        let sheet = text(&format!("$ cyclictest {command}\n{line}")).unwrap();
        assert_eq!(series(&sheet)[0].2, min_ns, "{command}");
    }
}

#[test]
fn a_mean_that_a_file_does_not_state_is_not_zero() {
    let json = r#"{"cmdline:": "cyclictest", "rt_test_version:": "2.40", "thread": {"0":
        {"cycles": 500, "min": 62, "max": 67, "avg": -nan, "cpu": 1}}}"#;
    let (.., document) = made(&text(json).unwrap());
    assert_eq!((document.series[0].min, document.series[0].mean), (Some(62_000), None));
}

#[test]
fn a_sample_that_rtla_has_only_a_part_of_is_at_least_as_long_as_that() {
    let table = case!("rtla-cpu100.txt")
        .replace("count:    10000     10000     10000", "count:    10000     10000     10001")
        .replace("max:          3         7         3", "max:          3         7       219")
        .replace("over:", "219           0         0         1         0\nover:");
    let sheet = text(&table).unwrap();
    let cpu101 = series(&sheet).into_iter().find(|own| own.0 == "cpu101").unwrap();
    assert_eq!((cpu101.1, cpu101.3), (10_001, 219_000));
    assert!(caveats(&sheet).contains("stopped_early"));
}

//! What the tests of all formats share, and what holds for every one of them.

use std::path::Path;

use super::*;
use crate::run::{Caveat, CaveatKind, Document, Run};

/// Reads a text in the format that it looks like.
pub(in crate::exchange) fn text(text: &str) -> Result<ImportedData, ImportError> {
    read_as(text, &ImportOptions::default())
}

pub(in crate::exchange) fn read_as(
    text: &str,
    options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    read(text.as_bytes(), None, options)
}

/// The run that it becomes, in a place that goes with the first of these.
pub(in crate::exchange) fn made(sheet: &ImportedData) -> (tempfile::TempDir, Run, Document) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("r");
    let document = make(sheet, run_at(&path)).unwrap();
    (place, Run::open(&path).unwrap(), document)
}

fn run_at(place: &Path) -> ImportedRun<'_> {
    ImportedRun {
        place,
        id: "i".into(),
        name: "r".into(),
        argv: Vec::new(),
        written_at: None,
        file: "f".into(),
    }
}

/// Name, samples, smallest and largest of each series.
pub(in crate::exchange) fn series(sheet: &ImportedData) -> Vec<(&str, u64, i64, i64)> {
    let one = |series: &'_ imported_data::ImportedSeries| {
        (series.totals.count, series.totals.min_ns, series.totals.max_ns)
    };
    let names = sheet.series.iter().map(|series| series.head.name.as_str());
    let values = sheet.series.iter().map(one);
    names.zip(values).map(|(name, (count, min, max))| (name, count, min, max)).collect()
}

/// The caveats in words.
pub(in crate::exchange) fn caveats(sheet: &ImportedData) -> String {
    let caveats = sheet.caveats.iter().cloned();
    let caveats = caveats.map(|kind| Caveat::from(CaveatKind::Imported(kind)));
    caveats.map(|caveat| format!("{}: {}\n", caveat.code, caveat.text)).collect()
}

#[test]
fn what_looks_like_nothing_is_told_what_there_is() {
    for odd in ["hello\n", "\u{0}\u{1}\u{fffd}", "{}", "<x/>", "T: the end\n", "1,2,3\n"] {
        let error = text(odd).unwrap_err().to_string();
        assert!(error.contains("none of the formats") && error.contains("cyclictest"), "{error}");
    }
    assert_eq!(text("").unwrap_err().to_string(), "it is empty");
    assert_eq!(
        text("# Histogram\n# Min Latencies: 0\n# Histogram Overflows: 0\n")
            .unwrap_err()
            .to_string(),
        "it has no sample"
    );
}

#[test]
fn samples_with_times_are_kept_and_make_intervals() {
    let lines = (0..400).map(|n| format!("{};1000.{:03};{}\n", n % 2, n, 5 + n % 7));
    let sheet = text(&lines.collect::<String>()).unwrap();
    let (_place, run, document) = made(&sheet);
    let (mut samples, mut intervals, mut counted) = (Vec::new(), 0, 0);
    run.samples(|number, sample| samples.push((number, sample))).unwrap();
    run.intervals(|_, _, counts| (intervals, counted) = (intervals + 1, counted + counts.len()))
        .unwrap();
    assert_eq!((samples.len(), intervals, counted), (400, 8, 400));
    let last = samples.iter().map(|(_, sample)| sample.t_ns).max();
    assert_eq!((last, document.duration_ns), (Some(399_000_000), 399_000_000));
    assert_eq!((document.log_interval_ns, document.parameters.raw), (100_000_000, true));
}

#[test]
fn a_name_with_a_space_does_not_damage_the_log() {
    let columns = ColumnMap { latency: "late".into(), time: None, series: Some("series".into()) };
    let options = ImportOptions { columns: Some(columns), ..ImportOptions::default() };
    let table = "series,late\nx y,5\nx y,6\n";
    let sheet = read(table.as_bytes(), ImportFormat::find("csv"), &options).unwrap();
    let (_place, run, document) = made(&sheet);
    assert_eq!(document.series[0].name, "x%20y");
    let mut counted = 0;
    run.intervals(|_, _, counts| counted += counts.len()).unwrap();
    assert_eq!(counted, 2);
}

#[test]
fn a_count_that_no_machine_makes_is_an_error_and_leaves_nothing() {
    let damaged = "# Histogram\n000001 9223372036854775808\n000002 3\n# Total: 000000001\n\
                # Min Latencies: 00001\n# Avg Latencies: 00001\n# Max Latencies: 00002\n";
    let sheet = text(damaged).unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("r");
    let error = make(&sheet, run_at(&path)).unwrap_err().to_string();
    assert!(error.contains("2^53") && error.contains("damaged"), "{error}");
    assert!(!path.exists());
}

#[test]
fn what_a_file_leaves_open_is_a_caveat() {
    let histogram = "# Histogram\n000003 000006\n# Total: 000000007\n# Min Latencies: 00003\n\
        # Avg Latencies: 00019\n# Max Latencies: 00401\n# Histogram Overflows: 00002\n";
    let stream = "  0:  0:  4\n  0:  1:  5\n  0:  7:  5\n";
    let summary = "T: 0 ( 1) P:80 I:1000 C:      9 Min:      9 Act:    9 Avg:    9 Max:       9\n";
    let points = "Value,Percentile,TotalCount,1/(1-Percentile)\n1.5,1.0,7,inf\n";
    let oslat = "oslat V 2\n Core: 0\n 001 (us): 7\n 002 (us): 1\n Maximum: 2 (us)\n";
    let rteval = "<rteval><Profile><timerlat><core id='0'><bucket index='1' value='2'/></core>\
        </timerlat></Profile></rteval>";
    let latency = "Sampling period: 100 us\nRTH|lat min|lat avg|lat max|\nRTD|1.0|2.0|3.0|\n";
    let all = [
        (
            histogram,
            &["latencies_hidden", "latencies_rounded", "unit_assumed", "counts_differ"][..],
        ),
        (stream, &["stream_gaps", "unit_assumed", "latencies_rounded"]),
        (summary, &["no_distribution", "unit_assumed", "latencies_rounded"]),
        (points, &["points_only", "unit_assumed"]),
        (oslat, &["turns_left_out", "latencies_rounded"]),
        (rteval, &["kinds_pooled", "latencies_rounded"]),
        (latency, &["counts_estimated", "no_distribution"]),
    ];
    for (file, wanted) in all {
        let (_place, _, document) = made(&text(file).unwrap());
        let codes = document.caveats.iter().map(|own| own.code.as_str());
        let found: Vec<&str> = codes.filter(|code| *code != "few_samples").collect();
        let wanted: Vec<&str> = wanted.iter().copied().chain(["facts_missing"]).collect();
        assert!(wanted.iter().all(|code| found.contains(code)), "{found:?} {wanted:?}");
        assert_eq!(found.len(), wanted.len(), "{found:?}");
    }
}

#[test]
fn names_of_formats_are_plain_and_found_again() {
    for format in FORMATS {
        let found = ImportFormat::find(format.name).map(|found| found.name);
        assert_eq!(found, Some(format.name));
        assert!(!format.help.is_empty() && !format.help.ends_with('.'), "{}", format.name);
    }
}

#[test]
fn a_table_that_is_not_recognised_is_told_of_its_columns() {
    let error = text("when,late\n1,2\n").unwrap_err().to_string();
    assert!(error.contains("--latency-column"), "{error}");
}

#[test]
fn a_mark_of_the_byte_order_is_no_part_of_a_text() {
    let marked = "\u{feff}0;1114.936950838;9\n1;1114.937001000;4\n";
    assert_eq!(
        series(&text(marked).unwrap()),
        [("cpu0", 1, 9_000, 9_000), ("cpu1", 1, 4_000, 4_000)]
    );
}

#[test]
fn a_table_may_be_indented_and_end_its_lines_by_carriage_returns() {
    let table = "# Histogram\n000003 000006\n000004 000294\n# Total: 000000300\n\
        # Min Latencies: 00003\n# Avg Latencies: 00003\n# Max Latencies: 00004\n\
        # Histogram Overflows: 00000\n";
    let indented = table.replace("# ", "  # ").replace("\n0", "\n  0");
    for file in [indented, table.replace('\n', "\r")] {
        assert_eq!(series(&text(&file).unwrap()), [("thread0", 300, 3_000, 4_000)]);
    }
}

#[test]
fn what_is_known_and_not_read_is_named() {
    for (file, said) in [
        ("PK\u{3}\u{4}\u{14}\0", "it is packed by zip: unpack it first"),
        ("hwlatdetect:  test duration 10 seconds\n", "it is the text of hwlatdetect, which"),
        (
            "#0: ID8, P99, CPU0, I1000; #1: ID9, P99, CPU0, Cycles 12\n",
            "it is a text of ptsematest, pmqtest,",
        ),
    ] {
        let error = text(file).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

#[test]
fn a_unit_beside_the_one_that_a_file_states_is_refused() {
    let as_ns = |text: &str| {
        let unit = Some(LatencyUnit::Nanoseconds);
        read_as(text, &ImportOptions { unit, ..ImportOptions::default() })
    };
    let json = r#"{"cmdline:": "cyclictest", "rt_test_version:": "2.40", "thread": {"0":
        {"cycles": 2, "min": 1, "max": 2, "avg": 1.5, "cpu": 0}}}"#;
    let oslat = "oslat V 2\n Core: 0\n 001 (us): 7\n 002 (us): 1\n Maximum: 2 (us)\n";
    for file in [json, oslat] {
        let error = as_ns(file).unwrap_err().to_string();
        let said = "--unit says nanoseconds, and the file microseconds: leave --unit out";
        assert_eq!(error, said);
        let unit = Some(LatencyUnit::Microseconds);
        assert!(read_as(file, &ImportOptions { unit, ..ImportOptions::default() }).is_ok());
    }
    let hackbench = "Running in process mode with 2 groups using 40 file descriptors each (== 80 \
        tasks)\nEach sender will pass 50 messages of 100 bytes\nTime: 0.124\n";
    let error = as_ns(hackbench).unwrap_err().to_string();
    assert_eq!(
        error,
        "--unit is of files that state no unit, and one of hackbench does: leave --unit out"
    );
}

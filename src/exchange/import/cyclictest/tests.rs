//! Texts as cyclictest wrote them, and what is wrong with others.

use crate::exchange::import::tests::{caveats, made, series, text};

/// As cyclictest 2.40 wrote it with `-q -t2 -h 6`.
const HISTOGRAM: &str = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n\
    000000 000000\t000000\n000003 000006\t000011\n000004 000294\t000280\n\
    000005 000000\t000001\n# Total: 000000300 000000292\n# Min Latencies: 00003 00003\n\
    # Avg Latencies: 00019 00003\n# Max Latencies: 00401 00005\n\
    # Histogram Overflows: 00002 00000\n# Histogram Overflow at cycle number:\n\
    # Thread 0: 00114 00115\n# Thread 1:\n\n";

#[test]
fn a_histogram_has_its_counts_and_what_overflowed_is_said() {
    let sheet = text(HISTOGRAM).unwrap();
    assert_eq!(series(&sheet), [("thread0", 302, 3_000, 401_000), ("thread1", 292, 3_000, 5_000)]);
    let said = caveats(&sheet);
    assert!(said.contains("2 of 302 samples on thread0 lie beyond the last bin, at 6.00 us"));
    assert!(said.contains("percentiles above 99.338% are upper limits"), "{said}");
    assert!(said.contains("unit_assumed") && said.contains("latencies_rounded"), "{said}");
}

#[test]
fn the_column_of_sums_is_no_thread() {
    let sums = HISTOGRAM.lines().map(|line| match line {
        "# Total: 000000300 000000292" => "# Total: 000000300 000000292 000000592".to_owned(),
        line if line.starts_with("00") => format!("{line}\t000017"),
        line => line.to_owned(),
    });
    let sheet = text(&sums.collect::<Vec<_>>().join("\r\n")).unwrap();
    assert_eq!(series(&sheet)[1], ("thread1", 292, 3_000, 5_000));
    assert_eq!(sheet.series.len(), 2);
}

#[test]
fn the_last_line_of_each_thread_counts_and_its_columns_tell_the_unit() {
    let redrawn = "# /dev/cpu_dma_latency set to 0us\npolicy: fifo: loadavg: 0.00\n\n\
        \u{1b}[1AT: 0 ( 1) P:80 I:1000 C:      1 Min:      9 Act:    9 Avg:    9 Max:       \
        9\n\u{1b}[1AT: 0 ( 1) P:80 I:1000 C:    300 Min:      3 Act:    4 Avg:    4 Max:  \
           12\n";
    let sheet = text(redrawn).unwrap();
    assert_eq!(series(&sheet), [("thread0", 300, 3_000, 12_000)]);
    assert_eq!((sheet.duration_ns, sheet.series[0].totals.above), (Some(300_000_000), 300));
    assert!(caveats(&sheet).contains("no_distribution"));
    let ns = "T: 0 ( 1679) P: 0 I:1000 C:    300 Min:  62914 Act:   64413 Avg:   67325 \
              Max:  873102\n";
    let sheet = text(ns).unwrap();
    assert_eq!(series(&sheet), [("thread0", 300, 62_914, 873_102)]);
    assert!(caveats(&sheet).contains("unit_assumed"), "the width of a column is a guess");
}

#[test]
fn behind_the_largest_latency_stand_smis_and_nothing_else() {
    let line = "T: 0 ( 2440) P:95 I:200 C:   5604 Min:      5 Act:    7 Avg:    7 Max:    1475";
    let counted = text(&format!("{line} SMI:       12\n")).unwrap();
    assert_eq!((series(&counted)[0].3, counted.smis), (1_475_000, 12));
    assert!(made(&counted).2.caveats.iter().any(|caveat| caveat.code == "smi_seen"));
    let rows = HISTOGRAM.replace("# Histogram Overflow at", "# SMIs: 00003 00004\n# H");
    assert_eq!(text(&rows).unwrap().smis, 4);
    for behind in [" garbage 99", "\u{202f}75", " SMI: x", " SMI: 1 2"] {
        let error = text(&format!("{line}{behind}\n")).unwrap_err().to_string();
        assert!(error.starts_with("line 1: \"T: 0 ( 2440)"), "{error}");
    }
    let broken = format!("{line}\n# Break thread: 2440\n# Break value: 1475\n");
    assert_eq!(text(&broken).unwrap().parameters["break_value_ns"], 1_475_000);
}

#[test]
fn a_file_without_its_end_is_refused_or_doubted() {
    let cut = &HISTOGRAM[..HISTOGRAM.find("# Total").unwrap()];
    assert!(text(cut).unwrap_err().to_string().contains("were expected behind"));
    let wrong = HISTOGRAM.replace("# Total: 000000300", "# Total: 000000400");
    assert!(caveats(&text(&wrong).unwrap()).contains("states 400 samples of thread0"));
    let twice = HISTOGRAM.replace("000005 ", "000004 ");
    let error = text(&twice).unwrap_err().to_string();
    assert!(error.starts_with("line 6: the latency 4 has a second row"), "{error}");
    let odd = HISTOGRAM.replace("000294", "0x294");
    assert!(text(&odd).unwrap_err().to_string().starts_with("line 5: "));
    let end = text(&HISTOGRAM[..HISTOGRAM.find("# Max").unwrap()]).unwrap_err().to_string();
    assert!(end.contains("were expected behind"), "{end}");
}

#[test]
fn what_a_file_states_against_itself_is_refused_by_line_and_field() {
    let line = |min: i64, mean: i64, max: i64| {
        text(&format!("T: 0 ( 1) P:80 I:1000 C:  9 Min: {min} Act: 9 Avg: {mean} Max: {max}\n"))
    };
    assert!(line(3, 9, 9).is_ok());
    for ((min, mean, max), said) in [
        ((9, 5, 3), "line 1: thread 0: Min 9 is above Max 3"),
        ((3, 2, 9), "line 1: thread 0: Avg 2 is below Min 3"),
        ((3, 10, 9), "line 1: thread 0: Avg 10 is above Max 9"),
    ] {
        let error = line(min, mean, max).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
    let unborn = "T: 0 ( 1) P:80 I:1000 C: 0 Min:1000000 Act: 0 Avg: 0 Max: 0\n\
        T: 1 ( 1) P:80 I:1000 C: 9 Min: 3 Act: 4 Avg: 4 Max: 9\n";
    assert_eq!(text(unborn).unwrap().series[1].totals.count, 9, "of a thread without a cycle");
    for (from, to, said) in [
        ("00401 00005", "00401 00009", "thread 1: Max Latencies 9 is above the largest bin"),
        ("00401 00005", "00003 00005", "thread 0: Avg Latencies 19 is above Max Latencies 3"),
        ("00401 00005", "00401 00004", "thread 1: Max Latencies 4 is below the largest bin"),
        ("00003 00003\n# Avg", "00003 00004\n# Avg", "thread 1: Avg Latencies 3 is below Min"),
    ] {
        let error = text(&HISTOGRAM.replace(from, to)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line 10: {said}")), "{error}");
    }
}

#[test]
fn the_mean_with_overflows_is_the_stated_one_or_an_upper_limit() {
    let sheet = text(HISTOGRAM).unwrap();
    let mean = |sheet: &crate::exchange::import::ImportedData| {
        let totals = &sheet.series[0].totals;
        totals.sum_ns / i64::try_from(totals.count).unwrap()
    };
    assert_eq!(mean(&sheet), 6_609, "19 cannot be: overflows are at most 401");
    assert!(caveats(&sheet).contains("are upper limits, and so is the mean."));
    let stated = text(&HISTOGRAM.replace("00019 00003", "00004 00003")).unwrap();
    assert_eq!(mean(&stated), 4_000);
    let said = caveats(&stated);
    assert!(said.contains("The mean is the one that the file states."), "{said}");
}

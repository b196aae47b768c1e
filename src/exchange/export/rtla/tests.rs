//! Against the form in which rtla writes, and what its readers make of it.

use std::path::Path;

use super::*;
use crate::report::fixture::written_with;

const TEXT: &str = include_str!("../../../../fuzz/seeds/import/rtla-timerlat.txt");

fn style(columns: &[RtlaColumn]) -> RtlaStyle {
    RtlaStyle {
        tool: "timerlat",
        columns: columns.to_vec(),
        unit_ns: 1_000,
        bucket: 1,
        entries: 256,
        has_zeros: false,
        has_header: true,
        has_summary: true,
        has_index: true,
    }
}

const BOTH: [RtlaColumn; 2] = [RtlaColumn::Irq, RtlaColumn::Thread];

/// Two CPUs, each with wake-ups and the stage of their interrupt, us.
fn run(place: &Path) -> CountedRun {
    let ns = |us: &[u64]| vec![us.iter().map(|us| us * 1_000 + 500).collect::<Vec<u64>>()];
    let series = [
        ("cpu0", ns(&[1, 1, 2, 4, 300])),
        ("cpu0/irq", ns(&[0, 0, 1, 1])),
        ("cpu3", ns(&[4, 4, 4])),
        ("cpu3/irq", ns(&[0, 2, 2])),
    ];
    let change = |document: &mut crate::run::Document| {
        document.duration_ns = 90_061 * 1_000_000_000;
        for (series, cpu) in document.series.iter_mut().zip([0, 0, 3, 3]) {
            series.cpu = Some(cpu);
        }
    };
    CountedRun::read(written_with(place, &series, change)).unwrap()
}

#[test]
fn a_histogram_has_the_form_of_rtla_and_is_read_back() {
    let place = tempfile::tempdir().unwrap();
    let run = run(place.path());
    let found = histogram(&run, &style(&BOTH)).unwrap();
    let expected = "\
# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   1 01:01:01
# Measured by tardy VERSION: Thr ends in user space
Index   IRQ-000   Thr-000   IRQ-003   Thr-003
0             2         0         1         0
1             2         2         0         0
2             0         1         2         0
4             0         1         0         3
over:         0         1         0         0
count:        4         5         3         3
min:          0         1         0         4
avg:          1        62         1         4
max:          1       300         2         4
";
    assert_eq!(found, expected.replace("VERSION", env!("CARGO_PKG_VERSION")));
    // As wide as theirs.
    let heading =
        |text: &str| text.lines().find(|line| line.starts_with("Index")).map(str::to_owned);
    assert_eq!(heading(&found), heading(TEXT));
}

#[test]
fn options_leave_columns_and_lines_out_and_set_the_rows() {
    let place = tempfile::tempdir().unwrap();
    let run = run(place.path());
    let plain = RtlaStyle {
        has_header: false,
        has_summary: false,
        has_index: false,
        bucket: 2,
        ..style(&[RtlaColumn::Thread])
    };
    let found = histogram(&run, &plain).unwrap();
    assert_eq!(
        found,
        "        2         0\n        1         0\n        1         3\n        1         0\n"
    );
    let zeros = RtlaStyle { entries: 3, has_zeros: true, has_header: false, ..style(&BOTH) };
    let found = histogram(&run, &zeros).unwrap();
    let rows: Vec<&str> = found.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(rows, ["0", "1", "2", "over:", "count:", "min:", "avg:", "max:"]);
    assert!(found.contains("over:         0         2         0         3\n"), "{found}");
    let ns = RtlaStyle { unit_ns: 1, bucket: 1_000, ..style(&[RtlaColumn::Thread]) };
    let found = histogram(&run, &ns).unwrap();
    assert!(found.contains("# Time unit is nanoseconds (ns)\n"), "{found}");
    assert!(found.contains("\n1000          2         0\n"), "{found}");
    assert!(found.contains("max:     300500      4500\n"), "{found}");
    let many = RtlaStyle { entries: u64::MAX, has_zeros: true, ..style(&BOTH) };
    let refused = histogram(&run, &many).unwrap_err().to_string();
    assert!(refused.contains("use a larger -b, or leave --with-zeros out"), "{refused}");
}

#[test]
fn a_summary_has_the_form_of_rtla() {
    let place = tempfile::tempdir().unwrap();
    let run = run(place.path());
    let found = summary(&run, &style(&BOTH));
    let theirs = include_str!("../../../../fuzz/seeds/import/rtla-timerlat-top.txt");
    let heading = |text: &str| text.lines().find(|line| line.starts_with("CPU")).map(str::to_owned);
    assert_eq!(heading(&found), heading(theirs));
    let rows: Vec<&str> = found.lines().skip(3).collect();
    let expected = [
        [
            "  0 #5         ",
            "        -         0         1         1 ",
            "        -         1        62       300",
        ],
        [
            "  3 #3         ",
            "        -         0         1         2 ",
            "        -         4         4         4",
        ],
    ];
    assert_eq!(rows, expected.map(|cells| cells.join("|")));
    assert_eq!(stopped_at(&run).unwrap(), "## CPU 0 hit stop tracing: 300 us ##");
}

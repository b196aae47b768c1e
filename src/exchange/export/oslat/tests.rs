//! Against what oslat 2.40 itself wrote about the same latencies.

use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::{
    exchange::{
        export::{counted::tests::text, rt_tests::tests::shape},
        import,
    },
    report::fixture::written_with,
    run::Document,
};

const TEXT: &str = include_str!("../../../../fuzz/seeds/import/oslat.txt");
const JSON: &str = include_str!("../../../../fuzz/seeds/import/oslat.json");

fn style(rows: u64) -> OslatStyle {
    OslatStyle { rows, is_biased: false, omits_zeros: false }
}

/// A run whose cores had these turns: us, how many; the last row has the largest once.
fn run(place: &Path, cores: &[(&[(u64, u64)], u64)], duration_ns: u64) -> CountedRun {
    let latencies = |(rows, max): &(&[(u64, u64)], u64)| {
        let (first, gaps) = rows.split_first().unwrap();
        assert_eq!(first.0, 1);
        let (last, rest) = gaps.split_last().unwrap();
        // In the middle of a us, where no bucket has two.
        let of =
            |(us, count): &(u64, u64)| vec![us * 1_000 - 500; usize::try_from(*count).unwrap()];
        let mut all: Vec<u64> = rest.iter().flat_map(of).collect();
        all.extend(of(&(last.0, last.1 - 1)));
        all.push(max * 1_000 - 500);
        all
    };
    let names: Vec<String> = (0..cores.len()).map(|core| format!("cpu{core}")).collect();
    let series: Vec<(&str, Vec<Vec<u64>>)> = names
        .iter()
        .zip(cores)
        .map(|(name, core)| (name.as_str(), vec![latencies(core)]))
        .collect();
    let turns = |number: usize| cores[number].0.iter().map(|(_, count)| count).sum::<u64>();
    let change = |document: &mut Document| {
        document.duration_ns = duration_ns;
        document.argv = ["tardy", "oslat", "-D", "2"].map(str::to_owned).into();
        let threads = names.iter().enumerate().map(|(number, name)| {
            json!({"series": name, "voluntary_switches": 0, "involuntary_switches": 0,
                "minor_faults": 0, "major_faults": 0, "migrations": 0, "cpu_ns": 0,
                "turns": turns(number)})
        });
        let conditions = json!({"looks": 0, "counted_ns": null, "cpus": [], "clock_sources": [],
            "threads": threads.collect::<Vec<Value>>(), "suspended_ns": 0, "locked_bytes": null,
            "smis": null, "rt_throttled": null});
        document.conditions = Some(serde_json::from_value(conditions).unwrap());
    };
    CountedRun::read(written_with(place, &series, change)).unwrap()
}

/// The rows of a core in a text of oslat.
fn rows(text: &str, core: usize) -> Vec<(u64, u64)> {
    let rows = text.lines().filter_map(|line| {
        let (us, counts) = line.split_once(" (us):\t")?;
        let count = counts.split_whitespace().nth(core)?;
        Some((us.trim().parse().ok()?, count.parse().ok()?))
    });
    rows.collect()
}

fn of_seed(place: &Path) -> CountedRun {
    let (first, second) = (rows(TEXT, 0), rows(TEXT, 1));
    run(place, &[(&first, 12_024), (&second, 3_288)], 1_997_000_000)
}

#[test]
fn the_table_is_that_of_oslat_of_the_same_latencies() {
    let place = tempfile::tempdir().unwrap();
    let run = of_seed(&place.path().join("r"));
    let ours = OslatTable::of(&run, style(16)).unwrap().text();
    let theirs = &TEXT[TEXT.find("        Core").unwrap()..];
    assert_eq!(ours.lines().count(), theirs.lines().count(), "{ours}");
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        let name = ours.split(':').next().unwrap();
        match name.trim() {
            // Those of tardy: its clock, and how long the overflows were.
            "Counter Freq" => assert_eq!(ours, "Counter Freq:\t 1000 1000 (Mhz)"),
            "Average" => assert_eq!(ours, "     Average:\t 1.000 1.000 (us)"),
            _ => assert_eq!(ours, theirs),
        }
    }
}

#[test]
fn what_it_prints_and_writes_is_imported_with_every_gap() {
    let place = tempfile::tempdir().unwrap();
    let run = of_seed(&place.path().join("r"));
    let table = OslatTable::of(&run, style(16)).unwrap();
    let expected = import::tests::text(TEXT).unwrap();
    let written = format!("oslat V 2.40 (tardy 1.2.3)\n{}", table.text());
    let json = text(table.json(&run));
    for file in [&written, &json] {
        let sheet = import::tests::text(file).unwrap();
        assert_eq!(import::tests::series(&sheet), import::tests::series(&expected), "{file}");
        let said = import::tests::caveats(&sheet);
        assert!(said.contains("turns_left_out: 107,473,098 turns of up to 1.00 us"), "{said}");
    }
}

#[test]
fn keys_and_types_are_those_of_oslat() {
    let place = tempfile::tempdir().unwrap();
    let run = of_seed(&place.path().join("r"));
    let written = text(OslatTable::of(&run, style(16)).unwrap().json(&run));
    let ours: Value = serde_json::from_str(&written).unwrap();
    let theirs: Value = serde_json::from_str(JSON).unwrap();
    let mut known = ours.clone();
    let made_by = known.as_object_mut().unwrap().remove("tardy_version");
    assert!(made_by.is_some_and(|version| version.is_string()), "{ours}");
    assert_eq!(shape(&known), shape(&theirs));
    assert_eq!(shape(&ours["thread"]["0"]), shape(&theirs["thread"]["0"]));
    assert_eq!(ours["cmdline:"], "oslat -D 2");
    let core = &ours["thread"]["1"];
    assert_eq!(
        (&core["cpu"], &core["max"], &core["duration"]),
        (&json!(1), &json!(3_288), &json!(1.997))
    );
    assert_eq!(core["histogram"]["16"], 1_290, "with overflows");
    assert_eq!(core["histogram"].get("6"), None, "without empty rows");
}

#[test]
fn a_bias_moves_the_rows_and_empty_ones_can_be_left_out() {
    let place = tempfile::tempdir().unwrap();
    let run = run(&place.path().join("r"), &[(&[(1, 90), (2, 5), (4, 3), (9, 2)], 12)], 1_000_000);
    let biased = OslatStyle { is_biased: true, omits_zeros: true, ..style(8) };
    let table = OslatTable::of(&run, biased).unwrap();
    assert_eq!(table.bias_line(), "Global bias set to 1 (us)\n");
    let expected = "\
\x20       Core:\t 0
Counter Freq:\t 1000 (Mhz)
    002 (us):\t 95
    ...
    004 (us):\t 3
    ...
    009 (us):\t 2 (including overflows)
     Minimum:\t 1 (us)
     Average:\t 2.230 (us)
     Maximum:\t 12 (us)
     Max-Min:\t 11 (us)
    Duration:\t 0.001 (sec)

";
    assert_eq!(table.text(), expected);
    let plain = OslatTable::of(&run, style(4)).unwrap();
    assert_eq!(
        (plain.bias_line(), rows(&plain.text(), 0)),
        (String::new(), vec![(1, 90), (2, 5), (3, 0), (4, 5)])
    );
}

#[test]
fn the_largest_gap_is_in_its_own_row() {
    let place = tempfile::tempdir().unwrap();
    // A bucket from 19,984 to 19,999 ns, and one that a whole us divides.
    for (gap_ns, row) in [(19_999, 20), (103_999, 104), (104_000, 105), (104_030, 105)] {
        let series = [("cpu0", vec![vec![gap_ns; 3]])];
        let change = |document: &mut Document| {
            let thread = json!({"series": "cpu0", "voluntary_switches": 0,
                "involuntary_switches": 0, "minor_faults": 0, "major_faults": 0,
                "migrations": 0, "cpu_ns": 0, "turns": 3});
            let conditions = json!({"looks": 0, "counted_ns": null, "threads": [thread],
                "cpus": [], "clock_sources": [], "suspended_ns": 0, "locked_bytes": null,
                "smis": null, "rt_throttled": null});
            document.conditions = Some(serde_json::from_value(conditions).unwrap());
        };
        let run = written_with(&place.path().join(gap_ns.to_string()), &series, change);
        let run = CountedRun::read(run).unwrap();
        let table = OslatTable::of(&run, style(1_024)).unwrap();
        let filled: Vec<_> = rows(&table.text(), 0).into_iter().filter(|row| row.1 > 0).collect();
        assert_eq!(filled, [(row, 3)], "{gap_ns}");
        assert_eq!((table.cores[0].min_us(), table.cores[0].max_us()), (row, row));
    }
    let run = written_with(&place.path().join("untold"), &[("cpu0", vec![vec![5]])], |_| ());
    let refused = OslatTable::of(&CountedRun::read(run).unwrap(), style(4)).err().unwrap();
    assert_eq!(refused.to_string(), "cpu0: nothing counted the turns of its loop");
}

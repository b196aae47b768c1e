//! The options of the drop-in, and what it prints of a recorded trace.

use clap::FromArgMatches as _;

use super::*;
use crate::{
    cli::{Cli, Verb, command},
    kernel::tracefs::{HwlatLine, HwlatRecord},
    session::hwlat::HwlatSettings,
};

const USUAL: HwlatSettings = HwlatSettings { threshold: 10, window: 1_000_000, width: 500_000 };

fn parsed(line: &str) -> clap::error::Result<HwlatdetectFlags> {
    let matches = command().try_get_matches_from(line.split(' '))?;
    let Verb::Hwlatdetect(flags) = Cli::from_arg_matches(&matches)?.verb else {
        panic!("{line}");
    };
    Ok(flags)
}

fn recorded() -> Vec<HwlatRecord> {
    let text = include_str!("../../../tests/fixtures/hwlat/trace.txt");
    let record = |line| match HwlatLine::read(line) {
        HwlatLine::Record(record) => record,
        other => panic!("{other:?}"),
    };
    text.lines().map(record).collect()
}

#[test]
fn a_recorded_trace_is_printed_as_hwlatdetect_does() {
    let records = recorded();
    let expected = "test finished\nMax Latency: 4692us\nSamples recorded: 3\n\
                    Samples exceeding threshold: 636\nMTBF: 0.006 seconds\n";
    assert_eq!(printed::result(&records, USUAL), expected);
    let samples: String = records.iter().map(printed::sample).collect();
    assert_eq!(
        samples,
        "ts: 1795944474.482571581, inner:3209, outer:4060, cpu:1, count:196\n\
         ts: 1795944475.497729990, inner:4692, outer:801, cpu:0, count:144\n\
         ts: 1795944476.521558054, inner:3322, outer:2201, cpu:1, count:296\n"
    );
    assert_eq!(printed::longest_us(&records), 4_692);
}

#[test]
fn older_kernels_count_samples_and_none_is_below_the_threshold() {
    let mut records = recorded();
    records.iter_mut().for_each(|record| record.count = None);
    let text = printed::result(&records, USUAL);
    assert!(text.contains("exceeding threshold: 3\nMTBF: 2.039 seconds\n"), "{text}");
    assert_eq!(
        printed::sample(&records[0]),
        "ts: 1795944474.482571581, inner:3209, outer:4060, cpu:1\n"
    );
    assert_eq!(
        printed::result(&[], USUAL),
        "test finished\nMax Latency: Below threshold\nSamples recorded: 0\n\
         Samples exceeding threshold: 0\n"
    );
    let one = printed::result(&records[..1], USUAL);
    assert!(!one.contains("MTBF"), "{one}");
}

#[test]
fn the_parameters_are_printed_as_hwlatdetect_does() {
    let flags = parsed("tardy hwlatdetect --duration 10 --cpu-list 0-1,3 --report r.txt").unwrap();
    let expected = "\
hwlatdetect:  test duration 10 seconds
   detector: tracer
   parameters:
        CPU list:          0-1,3
        Latency threshold: 10us
        Sample window:      1000000us
        Sample width:      500000us
     Non-sampling period:  500000us
        Output File:       r.txt

Starting test
";
    assert_eq!(printed::parameters(&flags, USUAL), expected);
    let flags = parsed("tardy hwlatdetect").unwrap();
    let text = printed::parameters(&flags, USUAL);
    assert!(text.contains("test duration 120 seconds"), "{text}");
    assert!(text.contains("CPU list:          None\n"), "{text}");
}

#[test]
fn times_have_the_units_of_hwlatdetect() {
    let flags = parsed("tardy hwlatdetect --dur 2m --thresh 25us --win 5ms --wid 1 --hard 1s");
    let HwlatdetectFlags { duration, threshold, window, width, hardlimit, .. } = flags.unwrap();
    assert_eq!((duration, threshold), (Some(120), Some(25)));
    assert_eq!((window, width, hardlimit), (Some(5_000), Some(1), Some(1_000_000)));
    assert_eq!(
        (seconds("1w"), seconds("2d"), seconds("3h")),
        (Ok(604_800), Ok(172_800), Ok(10_800))
    );
    for line in ["--duration 5ms", "--duration 0", "--threshold 5m", "--width 1.5ms", "--window s"]
    {
        let said = parsed(&format!("tardy hwlatdetect {line}")).unwrap_err().to_string();
        assert!(said.contains(line.split(' ').next().unwrap()), "{said}");
    }
}

#[test]
fn unknown_options_are_refused_by_name_with_the_way_of_tardy() {
    let refused = |flag: &str| {
        with_tip(parsed(&format!("tardy hwlatdetect {flag}")).unwrap_err()).to_string()
    };
    for (flag, way) in REFUSED.iter().chain([&("--samples", NOISE)]) {
        let said = refused(flag);
        assert!(said.contains(&format!("unexpected argument '{flag}'")), "{said}");
        assert!(said.contains(way), "{said}");
        for named in way.split('`').skip(1).step_by(2) {
            let words: Vec<&str> = named.split(' ').collect();
            let known = command();
            let verb = known.find_subcommand(words[1]).unwrap_or_else(|| panic!("{named}"));
            for flag in words.iter().filter_map(|word| word.strip_prefix("--")) {
                assert!(verb.get_arguments().any(|own| own.get_long() == Some(flag)), "{named}");
            }
        }
    }
}

/// What hwlatdetect takes, as the list of its newest version has it.
#[test]
fn every_option_of_the_newest_hwlatdetect_is_taken() {
    let known = command();
    let drop_in = known.find_subcommand("hwlatdetect").unwrap();
    let list = include_str!("../../../tests/fixtures/hwlat/options-2.10.tsv");
    for row in list.lines().filter(|row| !row.starts_with('#')) {
        let (long, value) = row.split_once('\t').unwrap();
        let own = drop_in.get_arguments().find(|own| own.get_long() == Some(long));
        let own = own.unwrap_or_else(|| panic!("{row}"));
        let values = if own.get_action().takes_values() { "required" } else { "none" };
        assert_eq!(values, value, "{row}");
    }
}

//! What is typed to oslat, and what becomes of it.

use super::{
    super::others::{REFUSED_OF_OSLAT, RefusedOption, with_tip},
    *,
};
use crate::cli::command;

const TEXT: &str = include_str!("../../../../fuzz/seeds/import/oslat.txt");

fn parsed(line: &str) -> OslatFlags {
    let line = format!("tardy oslat {line}");
    let matches = command().try_get_matches_from(line.split_whitespace()).unwrap();
    let Verb::Oslat(flags) = Cli::from_arg_matches(&matches).unwrap().verb else {
        panic!("{line}");
    };
    flags
}

/// On a machine where this process may use CPUs 0 to 7.
fn planned(line: &str) -> Result<OslatPlan> {
    OslatPlan::of(&parsed(line), &"0-7".parse().unwrap())
}

fn run_words(line: &str) -> String {
    planned(line).unwrap().run_words(&parsed(line), false).join(" ")
}

#[test]
fn what_openshift_and_crucible_type_becomes_a_run_of_noise() {
    let words = run_words("--duration 10m --rtprio 1 --cpu-list 2-3,6 --cpu-main-thread 1");
    for wanted in [
        "tardy run noise ",
        "--gap-over 999ns",
        "--cpus 2-3,6 ",
        "--duration 600s",
        "--policy fifo --priority 1",
        "--housekeeping 1",
    ] {
        assert!(words.contains(wanted), "{words}");
    }
    let words = run_words("-D 2H -q --run-name base -T 50 -b 100 -z -B --json=o.json");
    for wanted in
        ["--cpus 0-7", "--duration 7200s", "--policy other", "--name base", "--stop-over 48999ns"]
    {
        assert!(words.contains(wanted), "{words}");
    }
    assert!(words.ends_with("--quiet") && !words.contains("--priority"), "{words}");
    let words = run_words("");
    assert!(words.contains("--duration 1s") && !words.contains("--housekeeping"), "{words}");
    assert!(run_words("--cpu-l all --dur 5").contains("--cpus 0-7"));
}

#[test]
fn what_is_given_to_tardy_run_is_understood_by_it() {
    let line = "-D 5 -c 1 -C 0 -f 3 -T 2 --run-name x -q";
    let words = planned(line).unwrap().run_words(&parsed(line), true);
    assert!(command().try_get_matches_from(&words).is_ok(), "{words:?}");
}

#[test]
fn the_header_is_that_of_oslat() {
    let theirs: String = TEXT.lines().skip(1).take(9).map(|line| format!("{line}\n")).collect();
    assert_eq!(planned("-D 2 -c 0,1 -C 0").unwrap().header(), theirs);
    let header = planned("-c 2-7 -f 5").unwrap().header();
    assert!(header.contains("Thread priority: \tSCHED_FIFO:5\n"), "{header}");
    assert!(header.contains("CPU for main thread: \t0-1\n"), "where they are: {header}");
    assert!(header.contains("CPU list: \t\t2-7\n"), "{header}");
}

#[test]
fn what_cannot_be_measured_is_refused_by_the_option_that_was_typed() {
    for (line, says) in [
        ("-b 3", "-b 3: a histogram has 4 to 1024 rows"),
        ("-b 1025", "-b 1025: a"),
        ("-c 8", "-c 8: CPU 8 is not online or not allowed"),
        ("-c x", "-c x: "),
        ("-C 9", "-C 9: CPU 9 is not online or not allowed"),
        ("-D 0", "-D 0: 0 leaves no time; write 1 or more, or leave -D out for 1 second"),
        ("-D 5y", "-D 5y: "),
        ("-f 0", "-f 0: priorities are 1 to 99"),
        ("-f 100 -c 1", "-f 100: priorities"),
        ("-f 1", "-f: SCHED_FIFO threads on all CPUs (0-7)"),
        ("-T 1", "-T 1: every turn of the loop counts as 1 us"),
        ("-T 99999999999999999", "-T 99999999999999999: it is longer"),
        ("-w memmove", "-w memmove: the loop only reads the clock"),
    ] {
        let refused = planned(line).err().unwrap().to_string();
        assert!(refused.starts_with(says), "{line}: {refused}");
    }
}

#[test]
fn other_options_of_oslat_are_refused_with_the_way_of_tardy() {
    let known = command();
    let run = known.find_subcommand("run").unwrap();
    let flags: Vec<&str> = run.get_arguments().filter_map(clap::Arg::get_long).collect();
    for RefusedOption { short, long, way } in REFUSED_OF_OSLAT {
        for flag in [short, long].into_iter().filter(|flag| !flag.is_empty()) {
            let line = ["tardy", "oslat", flag];
            let error = with_tip(command().try_get_matches_from(line).unwrap_err());
            assert!(error.to_string().contains(way), "{flag}: {error}");
        }
        if way.contains("tardy run") {
            for flag in way.split([' ', '`']).filter_map(|word| word.strip_prefix("--")) {
                assert!(flags.contains(&flag), "{flag}");
            }
        }
    }
}

#[test]
fn an_error_has_the_exit_code_of_oslat() {
    let of = |line: &str| exit_of_error(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(of("/usr/bin/oslat -b 3"), Exit::No);
    assert_eq!(of("tardy --store x oslat"), Exit::No);
    assert_eq!(of("tardy run oslat"), Exit::Failed);
    assert_eq!(of("tardy"), Exit::Failed);
}

#[test]
fn an_error_of_the_run_names_what_was_typed() {
    let plan = planned("-f 7 -c 1").unwrap();
    let error = anyhow!("--policy fifo --priority 7 is not available: no");
    assert_eq!(plan.typed(&error).to_string(), "-f 7 is not available: no");
}

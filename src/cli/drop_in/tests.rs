//! The options of the drop-in, and what is refused.

use clap::{Arg, builder::ValueRange};

use super::{
    others::{REFUSED, RefusedOption},
    *,
};
use crate::cli::command;

fn parsed(line: &str) -> CyclictestFlags {
    let matches = command().try_get_matches_from(line.split(' ')).unwrap();
    let Verb::Cyclictest(flags) = Cli::from_arg_matches(&matches).unwrap().verb else {
        panic!("{line}");
    };
    flags
}

fn run_words(line: &str) -> String {
    parsed(line).run_words().unwrap().join(" ")
}

#[test]
fn what_people_type_becomes_a_run_of_the_timer() {
    let line = "tardy cyclictest -m -S -p 90 -i 200 -h 100 -D 10 -q --json=out.json";
    let words = run_words(line);
    for wanted in ["--interval 200us", "--policy fifo --priority 90", "--duration 10s", "--quiet"] {
        assert!(words.contains(wanted), "{words}");
    }
    assert_eq!(parsed(line).bins(), Some(100));
    let words = run_words("tardy cyclictest -t1 -n -M -l 500 -b 100 -r -v -N");
    for wanted in ["--samples 500", "--stop-over 100us", "--wake relative", "--raw"] {
        assert!(words.contains(wanted), "{words}");
    }
    assert!(words.contains("--policy other") && !words.contains("--priority"), "{words}");
    assert!(run_words("tardy cyclictest -a 0 -t -D5m --policy rr -p1").contains("--cpus 0 "));
    assert!(run_words("tardy cyclictest").contains("--duration inf"));
    let words = run_words("tardy cyclictest --loop=1000000 -D 1M --policy=FIFO -p 5 --laptop");
    for wanted in ["--duration 60s", "--policy fifo", "--no-dma-latency"] {
        assert!(words.contains(wanted), "the first of both ends it: {words}");
    }
    let words = run_words("tardy cyclictest -l 100 -D 2 --mainaffinity 0 --run-name base");
    for wanted in ["--samples 100", "--housekeeping 0", "--name base"] {
        assert!(words.contains(wanted), "{words}");
    }
}

#[test]
fn threads_have_intervals_and_cpus_as_those_of_cyclictest() {
    let step = |line: &str| {
        let words = run_words(&format!("tardy cyclictest -a 0 {line}"));
        command().try_get_matches_from(words.split(' ')).unwrap();
        let behind = |flag: &str| Some(words.split_once(flag)?.1.split(' ').next()?.to_owned());
        (behind("--total-threads ").unwrap(), behind("--interval-step "))
    };
    let is = |threads: &str, step: Option<&str>| (threads.into(), step.map(str::to_owned));
    assert_eq!(step("-t 3"), is("3", Some("500us")));
    assert_eq!(step("-t 3 -d 20"), is("3", Some("20us")));
    assert_eq!(step("-t 3 -d 0"), is("3", None));
    assert_eq!(step("-t 3 -h 50"), is("3", None), "as with -d 0");
    assert_eq!(step("-t 1"), is("1", None));
    assert_eq!(step("-d 20"), is("1", None), "of one thread none is longer");
    // The slowest thread takes 2 ms, 500 times.
    let words = run_words("tardy cyclictest -a 0 -t 3 -l 500 -D 1");
    assert!(words.contains("--samples 500"), "{words}");
    let words = run_words("tardy cyclictest -a 0 -t 3 -l 501 -D 1");
    assert!(words.contains("--duration 1s"), "{words}");
}

#[test]
fn what_rteval_and_linaro_type_is_understood() {
    let rteval = ["-i100", "-qmu", "-h 3500", "-p95", "-t1", "-a0", "-b500"];
    let line = [&["tardy", "cyclictest"][..], &rteval].concat();
    let matches = command().try_get_matches_from(line).unwrap();
    let Verb::Cyclictest(flags) = Cli::from_arg_matches(&matches).unwrap().verb else {
        panic!("{rteval:?}");
    };
    assert_eq!(flags.bins(), Some(3_500));
    let words = flags.run_words().unwrap().join(" ");
    assert!(words.contains("--interval 100us") && words.contains("--stop-over 500us"));
    let refused = command().try_get_matches_from(["tardy", "cyclictest", "-h", "x"]);
    assert!(refused.unwrap_err().to_string().contains("-h"));
    let all = run_words("tardy cyclictest -q -p 98 -i 1000 -t -a all -D 1m -h 100 -m");
    assert_eq!(all, run_words("tardy cyclictest -q -p 98 -i 1000 -t -a -D 1m -h 100 -m"));
}

#[test]
fn what_is_not_covered_is_refused_with_the_way_of_tardy() {
    let refused = |line: &[&str]| {
        let line = ["tardy", "cyclictest"].iter().chain(line);
        with_tip(command().try_get_matches_from(line).unwrap_err()).to_string()
    };
    for RefusedOption { short, long, way } in &REFUSED {
        let way = way.split_whitespace().collect::<Vec<_>>().join(" ");
        for flag in [short, long].into_iter().filter(|flag| !flag.is_empty()) {
            let said = refused(&[flag]);
            assert!(said.contains(&format!("unexpected argument '{flag}'")), "{said}");
            assert!(said.contains(&way), "{flag}: {said}");
        }
    }
    assert!(refused(&["-q", "-F/tmp/f"]).contains("tardy top"));
    assert!(refused(&["--deep=1"]).contains("--max-idle-latency"), "cut short");
    assert!(!refused(&["--s"]).contains("not covered here"), "one of several");
    for more in ["-o 2", "--spike-nodes 5", "-s -x", "-v -o 0", "--spike 5 --spike-nodes 0"] {
        let line = format!("tardy cyclictest {more}");
        assert!(command().try_get_matches_from(line.split(' ')).is_err(), "{more}");
    }
    for line in [
        "-c 1",
        "-t 100000",
        "--policy batch",
        "-D x",
        "-D 5y",
        "-D 0",
        "-D 99999999d",
        "-p 100",
        "-i 0",
        "-i 4000000000",
        "--histfile f",
        "-h 0",
        "-H 0",
        "-b 0",
    ] {
        let flags = parsed(&format!("tardy cyclictest {line}"));
        let refused = flags.run_words().unwrap_err().to_string();
        assert!(refused.starts_with(line.split(' ').next().unwrap()), "{refused}");
    }
    let other = command().try_get_matches_from(["tardy", "run", "--priority", "100"]);
    let said = unlabelled(&other.unwrap_err());
    assert!(said.starts_with("invalid value") && !said.contains("--help"), "{said}");
}

#[test]
fn the_ways_that_are_named_are_there() {
    let known = command();
    for RefusedOption { long, way, .. } in &REFUSED {
        let commands: Vec<&str> = way.split('`').skip(1).step_by(2).collect();
        assert!(!commands.is_empty(), "{long} names none: {way}");
        for named in commands {
            let mut words = named.split(' ').skip(1);
            let verb = words.next().unwrap();
            let verb = known.find_subcommand(verb).unwrap_or_else(|| panic!("{long}: {named}"));
            for flag in words.filter_map(|word| word.strip_prefix("--")) {
                assert!(verb.get_arguments().any(|own| own.get_long() == Some(flag)), "{named}");
            }
        }
    }
}

/// What cyclictest takes, as the list of its newest version has it.
#[test]
fn every_option_of_the_newest_cyclictest_is_taken_or_refused() {
    let known = command();
    let drop_in = known.find_subcommand("cyclictest").unwrap();
    let list = include_str!("../../../tests/fixtures/cyclictest/options-2.10.tsv");
    let rows = list.lines().filter(|row| !row.starts_with('#'));
    let (mut taken, mut refused) = (0, 0);
    for row in rows {
        let [short, long, value] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let short_of = short.chars().next().filter(|short| *short != '-');
        let is_it = |own: &&Arg| {
            own.get_long_and_visible_aliases().is_some_and(|own| own.contains(&long))
                || own.get_all_aliases().is_some_and(|own| own.contains(&long))
        };
        let by_long = drop_in.get_arguments().find(is_it);
        let by_short = drop_in.get_arguments().find(|own| own.get_short() == short_of);
        let table = REFUSED.iter().find(|own| own.long == format!("--{long}"));
        let Some(own) = by_long else {
            let table = table.unwrap_or_else(|| panic!("neither taken nor refused: {row}"));
            assert_eq!(table.short.trim_start_matches('-'), short.trim_start_matches('-'), "{row}");
            refused += 1;
            continue;
        };
        assert!(table.is_none(), "taken and refused: {row}");
        if short_of.is_some() {
            assert_eq!(by_short.map(Arg::get_id), Some(own.get_id()), "{row}");
        }
        let values = match (own.get_action().takes_values(), own.get_num_args()) {
            (false, _) => "none",
            (true, Some(range)) if range == ValueRange::new(0..=1) => "optional",
            (true, _) => "required",
        };
        assert_eq!(values, value, "{row}");
        taken += 1;
    }
    assert_eq!((taken, refused), (35, 6));
}

#[test]
fn further_options_become_those_of_the_timer() {
    for (typed, wanted) in [
        ("-s", "--wake relative"),
        ("-x", "--wake signal"),
        ("-x -r", "--wake signal"),
        ("-A", "--distance 0us"),
        ("-A 50", "--distance 50us"),
        ("--aligned=50", "--distance 50us"),
        ("--latency 20", "--max-idle-latency 20us"),
        ("--latency 20 --laptop", "--no-dma-latency"),
        ("--spike 30", "--raw"),
        ("-v -o 4", "--raw"),
        ("-y rr -p 3", "--policy rr --priority 3"),
    ] {
        let words = run_words(&format!("tardy cyclictest -t1 {typed}"));
        assert!(words.contains(wanted), "{typed}: {words}");
        command().try_get_matches_from(words.split(' ')).unwrap();
    }
    let words = run_words("tardy cyclictest --latency 20 --laptop");
    assert!(!words.contains("--max-idle-latency"), "{words}");
}

#[test]
fn a_link_named_as_a_drop_in_is_that_verb() {
    let called = |name: &str| words([name, "-q"].map(OsString::from));
    assert_eq!((called("/usr/local/bin/cyclictest").len(), called("tardy").len()), (3, 2));
    assert_eq!(called("oslat"), ["tardy", "oslat", "-q"].map(OsString::from));
    assert_eq!(called("bin/hwlatdetect"), ["tardy", "hwlatdetect", "-q"].map(OsString::from));
}

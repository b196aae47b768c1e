//! What a user of cyclictest types, and how tardy calls it.

use clap::{
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// With what the help of `tardy run` begins.
pub(super) const EXAMPLES: &str = "\
Examples:
  tardy run                                  timer wake-ups of each CPU for 60 s
  tardy run --load hackbench --duration 10m  the same while 160 tasks are busy
  tardy run --duration inf --stop-over 1ms   until Ctrl-C or a latency over 1 ms
  tardy run timer --cpus 2,3 --priority 80 --interval 250us
  tardy run pingpong --transport tcp --cpus 0,1
  tardy run attach --comm jackd              the threads of your own program

From cyclictest:
  cyclictest -m -p 90 -i 1000 -t -D 60
  tardy run --priority 90 --interval 1ms --duration 60s

  -l N is --samples N, -a LIST is --cpus LIST, -b 100 is --stop-over 100us,
  -q is --quiet, -v is --raw; tardy always does -m, -n, -S, -t, -d 0 and -h.";

/// Flags of cyclictest that `tardy run` does not have, short and long, and what is meant here.
const FLAGS: &[(&str, &str, &str)] = &[
    ("-a", "--affinity", "is --cpus LIST here, as in --cpus 0-3,7"),
    ("-b", "--breaktrace", "is --stop-over TIME here, with a unit: -b 100 is --stop-over 100us"),
    ("-d", "", "is --distance TIME here, with a unit; 0us is the default, so leave -d 0 out"),
    ("-D", "", "is --duration TIME here, with a unit: -D 60 is --duration 60s"),
    ("-H", "--histofall", "is not needed: every run keeps the histogram of each CPU; leave it out"),
    ("", "--histogram", "is not needed: every run keeps the histogram of each CPU; leave it out"),
    ("-i", "", "is --interval TIME here, with a unit: -i 1000 is --interval 1ms"),
    ("-l", "--loops", "is --samples N here, as in --samples 100k"),
    ("-m", "--mlockall", "is not needed: tardy locks its memory; leave it out"),
    ("-n", "--nanosleep", "is not needed: clock_nanosleep is the default of --wake; leave it out"),
    ("-N", "--nsecs", "is not needed: figures carry their units; leave it out"),
    ("-p", "--prio", "is --priority N here; 90 is the default"),
    ("-q", "", "is --quiet here"),
    ("-r", "--relative", "is --wake relative here"),
    ("-S", "--smp", "is not needed: a thread on each CPU is the default; leave it out"),
    ("-t", "", "is not needed: a thread on each CPU is the default; --cpus chooses others"),
    ("-v", "--verbose", "is --raw here, which keeps every sample in files"),
    ("-y", "", "is --policy here: fifo, rr, deadline or other"),
];

/// Says which flag is meant where an unknown one of `tardy run` is known from cyclictest. What the
/// parser advises there, `-- -l`, leads to the next refusal: no probe is called `-l`.
pub(super) fn with_tip(mut error: clap::Error) -> clap::Error {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    if error.kind() != ErrorKind::UnknownArgument || !usage.contains("tardy run ") {
        return error;
    }
    error.remove(ContextKind::Suggested);
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    if let Some(tip) = tip(flag) {
        error.remove(ContextKind::SuggestedArg);
        let tips = vec![StyledStr::from(tip)];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

fn tip(flag: &str) -> Option<String> {
    let (_, _, meant) = FLAGS.iter().find(|(short, long, _)| *short == flag || *long == flag)?;
    Some(format!("{flag} of cyclictest {meant}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    fn refused(words: &str) -> String {
        let error = command().try_get_matches_from(words.split(' ')).unwrap_err();
        with_tip(error).to_string()
    }

    #[test]
    fn a_flag_of_cyclictest_leads_to_the_one_that_is_meant() {
        let said = refused("tardy run timer -l 1000");
        assert!(said.contains("unexpected argument '-l'"), "{said}");
        assert!(said.contains("tip: -l of cyclictest is --samples N here"), "{said}");
        assert!(!said.contains("-- -l"), "{said}");
        assert!(refused("tardy run -D60").contains("-D 60 is --duration 60s"));
        assert!(refused("tardy run -t -m").contains("-t of cyclictest is not needed"));
        let said = refused("tardy run --prio 90");
        assert!(said.contains("is --priority N here") && !said.contains("similar"), "{said}");
    }

    #[test]
    fn other_mistakes_keep_the_advice_of_the_parser() {
        let said = refused("tardy run --duratoin 5s");
        assert!(said.contains("'--duration'") && !said.contains("cyclictest"), "{said}");
        assert!(!refused("tardy run -z").contains("-- -z"), "no probe is called so");
        assert!(refused("tardy show -l").contains("-- -l"), "a run may be");
        assert!(!refused("tardy run --samples x").contains("cyclictest"));
    }

    #[test]
    fn what_is_called_unknown_is_unknown_and_what_is_advised_is_known() {
        for (short, long, meant) in FLAGS {
            for flag in [short, long].into_iter().filter(|flag| !flag.is_empty()) {
                let said = refused(&format!("tardy run {flag}"));
                assert!(said.contains(&format!("tip: {flag} of cyclictest {meant}")), "{said}");
            }
        }
        let known = command();
        let run = known.find_subcommand("run").unwrap();
        let flags: Vec<String> =
            run.get_arguments().filter_map(|own| Some(format!("--{}", own.get_long()?))).collect();
        let meanings = FLAGS.iter().flat_map(|(.., meant)| meant.split([' ', ';', ',']));
        for word in meanings.filter(|word| word.starts_with("--")) {
            assert!(flags.iter().any(|own| own == word.trim_end_matches(':')), "{word}");
        }
    }

    #[test]
    fn the_help_of_run_begins_with_examples_that_can_be_typed() {
        for flag in ["-h", "--help"] {
            let help = command().try_get_matches_from(["tardy", "run", flag]).unwrap_err();
            assert!(help.to_string().starts_with("Examples:\n  tardy run"), "{help}");
        }
        let typed = EXAMPLES.lines().filter(|line| line.starts_with("  tardy "));
        let typed: Vec<&str> =
            typed.filter_map(|line| line.trim_start().split("  ").next()).collect();
        assert_eq!(typed.len(), 7);
        for line in typed {
            let parsed = command().try_get_matches_from(line.split(' '));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
        assert!(EXAMPLES.lines().all(|line| line.chars().count() <= 80));
    }
}

//! `--exit-codes`: the numbers of ends for programs that give tardy's own another meaning.

use clap::ValueEnum;

use super::{Exit, drop_in, verb_at};

/// What the option is called.
const OPTION: &str = "--exit-codes";

/// Whose numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ExitCodes {
    /// 0 done, 1 no, 2 error, 3 inconclusive, 4 invalid
    Tardy,
    /// 0 done, 4 (skip) inconclusive, 1 (fail) anything else
    Kselftest,
    /// 0 done, 2 (failed) no, 1 (error) anything else
    Rtla,
}

impl ExitCodes {
    /// What a command line asks for, also one that is refused for another word.
    pub(super) fn asked(words: &[String]) -> Self {
        let own = words.iter().take_while(|word| *word != "--");
        let values = own.clone().zip(words.iter().skip(1));
        let behind = values.filter(|(word, _)| *word == OPTION).map(|(_, value)| value.as_str());
        let within = own.filter_map(|word| word.strip_prefix(OPTION)?.strip_prefix('='));
        let known = |name: &str| Self::from_str(name, false).ok();
        behind.chain(within).find_map(known).unwrap_or_else(|| Self::of_verb(words))
    }

    /// Those of the verb, if no other ones are asked for: a drop-in has the numbers of its program.
    fn of_verb(words: &[String]) -> Self {
        let words = drop_in::words(words.iter().map(Into::into));
        let verb = verb_at(&words).and_then(|at| words.get(at));
        if verb.is_some_and(|verb| verb == "rtla") { Self::Rtla } else { Self::Tardy }
    }

    /// The number for the shell. What shield's command returned stays.
    pub(super) const fn code(self, exit: Exit) -> u8 {
        match (self, exit) {
            (Self::Tardy, _) | (_, Exit::Passed(_)) => exit.code(),
            (_, Exit::Done) => 0,
            // KSFT_SKIP (tools/testing/selftests/kselftest.h); 2 and 3 are KSFT_XFAIL and
            // KSFT_XPASS.
            (Self::Kselftest, Exit::Inconclusive) => 4,
            // FAILED (tools/tracing/rtla/src/utils.h), where the run met its limit.
            (Self::Rtla, Exit::No) => 2,
            (Self::Kselftest | Self::Rtla, _) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_has_the_number_that_the_caller_reads() {
        use Exit::{Done, Failed, Inconclusive, Invalid, No, Passed};
        let ends = [Done, No, Failed, Inconclusive, Invalid, Passed(7)];
        for (codes, expected) in [
            (ExitCodes::Tardy, [0, 1, 2, 3, 4, 7]),
            (ExitCodes::Kselftest, [0, 1, 1, 4, 1, 7]),
            (ExitCodes::Rtla, [0, 2, 1, 1, 1, 7]),
        ] {
            assert_eq!(ends.map(|end| codes.code(end)), expected, "{codes:?}");
        }
    }

    #[test]
    fn it_is_known_where_the_rest_of_the_command_line_is_refused() {
        let asked = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            ExitCodes::asked(&words)
        };
        assert_eq!(asked("tardy run --exit-codes kselftest --nonsense"), ExitCodes::Kselftest);
        assert_eq!(asked("tardy --exit-codes=rtla nonsense"), ExitCodes::Rtla);
        assert_eq!(asked("tardy run --exit-codes nonsense"), ExitCodes::Tardy);
        assert_eq!(asked("tardy run attach -- x --exit-codes rtla"), ExitCodes::Tardy);
    }
}

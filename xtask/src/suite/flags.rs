//! What follows `cargo xtask test`.

use std::time::Duration;

use clap::Args;
use tardy::units::Nanos;

/// Run the workspace's tests, each in a separate process
///
/// Without FILTER it runs all tests. The seconds of each test are kept in target/tests/seconds.tsv:
/// the next run starts the longest tests first.
#[derive(Debug, Args)]
pub(crate) struct TestFlags {
    /// Only tests whose full names (PROGRAM::MODULE::TEST) contain one of these texts
    #[arg(value_name = "FILTER")]
    pub filters: Vec<String>,
    /// Only this test program, by its target's name, e.g. outside or lab (repeatable)
    #[arg(long = "test", value_name = "NAME")]
    pub targets: Vec<String>,
    /// Build with optimizations
    #[arg(long)]
    pub release: bool,
    /// Also run ignored tests
    #[arg(long)]
    pub include_ignored: bool,
    /// Run ignored tests only
    #[arg(long, conflicts_with = "include_ignored")]
    pub ignored: bool,
    /// Tests at the same time; two for each CPU if absent, since most of them wait
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    pub jobs: Option<u16>,
    /// Multiply every time limit by N, e.g. on a slow machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub patience: Option<u32>,
    /// Kill a test that takes longer; multiplied by --patience
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    pub limit: Duration,
    /// Only part K of N parts of these tests, e.g. 1/3; all parts together have each test once
    #[arg(long, value_name = "K/N", value_parser = part)]
    pub part: Option<Part>,
    /// Print the names of the tests, and run nothing
    #[arg(long)]
    pub list: bool,
}

/// One of several parts of all tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// From 1 on.
    pub number: usize,
    pub of: usize,
}

fn part(text: &str) -> Result<Part, String> {
    let numbers = text
        .split_once('/')
        .and_then(|(number, of)| Some(Part { number: number.parse().ok()?, of: of.parse().ok()? }));
    let is_valid = |part: &Part| (1..=part.of).contains(&part.number);
    numbers.filter(is_valid).ok_or_else(|| "invalid part: use K/N, e.g. 1/3".into())
}

/// A time with its unit, more than 0.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let time: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    match u64::try_from(time.0) {
        Ok(ns) if ns > 0 => Ok(Duration::from_nanos(ns)),
        _ => Err("must be more than 0".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Test {
        #[command(flatten)]
        flags: TestFlags,
    }

    fn parse(text: &str) -> Result<TestFlags, clap::Error> {
        let words = std::iter::once("test").chain(text.split_whitespace());
        Test::try_parse_from(words).map(|test| test.flags)
    }

    #[test]
    fn all_flags_are_optional() {
        let plain = parse("").unwrap();
        assert!(plain.filters.is_empty() && plain.targets.is_empty() && !plain.release);
        assert_eq!((plain.jobs, plain.patience, plain.limit.as_secs()), (None, None, 600));
        let all = parse("a:: b --test lab --release --include-ignored --jobs 3 --patience 4");
        let all = all.unwrap();
        assert_eq!(
            (all.filters, all.targets),
            (vec!["a::".into(), "b".into()], vec!["lab".into()])
        );
        assert_eq!((all.jobs, all.patience), (Some(3), Some(4)));
        assert!(all.release && all.include_ignored);
        assert_eq!(parse("--ignored --limit 90s").unwrap().limit.as_secs(), 90);
        assert_eq!(parse("--part 2/3").unwrap().part, Some(Part { number: 2, of: 3 }));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("--ignored --include-ignored", "cannot be used with"),
            ("--limit 0s", "more than 0"),
            ("--jobs 0", "0 is not in 1..=512"),
            ("--patience 0", "0 is not in 1..=100"),
            ("--part 3/2", "use K/N"),
            ("--part 0/2", "use K/N"),
        ] {
            let error = parse(text).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}

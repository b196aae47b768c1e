//! What came of the tests, in lines: each as it ends, the slowest, the failures, the counts.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use anyhow::{Context, Result};

use super::process::{Ended, words};

/// How many tests are named at the end, of the slowest and of those that took most CPU time.
const NAMED: usize = 40;

/// What came of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    /// Why.
    Failed(String),
    /// Why.
    Skipped(String),
}

impl Verdict {
    /// By how its process ended, what it printed, and what it wrote into its list of skipped tests.
    pub(crate) fn of(name: &str, status: ExitStatus, output: &str, skips: &str) -> Self {
        if !status.success() {
            return Self::Failed(words(status));
        }
        // A test that exits by itself says nothing about how it went.
        if !output.contains("test result: ok. 1 passed; ") {
            return Self::Failed("ended without a result".into());
        }
        let listed = skips.lines().find_map(|line| Some(line.split_once('\t')?.1.to_owned()));
        match listed.or_else(|| printed_skip(name, output)) {
            Some(why) => Self::Skipped(why),
            None => Self::Passed,
        }
    }

    /// One word.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "FAILED",
            Self::Skipped(_) => "skipped",
        }
    }

    fn why(&self) -> Option<&str> {
        match self {
            Self::Passed => None,
            Self::Failed(why) | Self::Skipped(why) => Some(why),
        }
    }
}

/// Of a line `skipped: WHY`, which may begin with the test's name or with `vm: `.
fn printed_skip(name: &str, output: &str) -> Option<String> {
    let short = name.rsplit("::").next().unwrap_or(name);
    // The harness writes `test NAME ... ` before what a test prints.
    let why = |line: &str| {
        let line = line.strip_prefix(&format!("test {name} ... ")).unwrap_or(line);
        let before = [name, short, "vm:"];
        let rest = before.iter().find_map(|word| line.strip_prefix(word)).unwrap_or(line);
        rest.trim_start().strip_prefix("skipped: ").map(str::to_owned)
    };
    output.lines().find_map(why)
}

/// A test and what came of it.
#[derive(Debug)]
pub(crate) struct TestRecord {
    pub name: String,
    pub verdict: Verdict,
    pub took: Duration,
    pub cpu: Duration,
}

impl TestRecord {
    /// `   0.012 s passed  tardy::a::b`
    pub(crate) fn line(&self) -> String {
        let why = self.verdict.why().map(|why| format!(": {why}")).unwrap_or_default();
        format!("{:8.3} s {:7} {}{why}", self.took.as_secs_f64(), self.verdict.word(), self.name)
    }
}

/// All tests so far.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub records: Vec<TestRecord>,
    /// Lines for the list of skipped tests.
    pub skips: String,
    /// Ignored tests that were left out.
    pub ignored: usize,
}

impl Results {
    /// Adds a test; the lines to print about it.
    pub(crate) fn add(&mut self, name: String, ended: Ended) -> String {
        let Ended { verdict, took, cpu, output, skips } = ended;
        self.skips.push_str(&skips);
        let record = TestRecord { name, verdict, took, cpu };
        let line = record.line();
        let said = match &record.verdict {
            Verdict::Failed(_) => format!("{line}\n-- its output\n{}\n--\n", output.trim_end()),
            _ => format!("{line}\n"),
        };
        self.records.push(record);
        said
    }

    /// Tests with this verdict.
    fn count(&self, word: &str) -> usize {
        self.records.iter().filter(|record| record.verdict.word() == word).count()
    }

    /// Whether a test has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.count("FAILED") > 0
    }

    /// The tests with the largest figure, a line each.
    fn largest(&self, figure: fn(&TestRecord) -> Duration) -> Vec<String> {
        let mut records: Vec<&TestRecord> = self.records.iter().collect();
        records.sort_by_key(|record| std::cmp::Reverse(figure(record)));
        let line = |record: &TestRecord| {
            let (took, cpu) = (record.took.as_secs_f64(), record.cpu.as_secs_f64());
            format!("{took:8.1} s {cpu:6.1} s of CPU  {}", record.name)
        };
        records.into_iter().take(NAMED).map(line).collect()
    }

    /// The last lines: the slowest, those that took most CPU time, the failures, those left out,
    /// and the counts.
    pub(crate) fn closing(&self, took: Duration) -> String {
        let slowest = self.largest(|record| record.took);
        let busiest = self.largest(|record| record.cpu);
        let mut lines = vec![format!("-- the {} slowest, with their CPU time", slowest.len())];
        lines.extend(slowest);
        lines.push(format!("-- the {} that took most CPU time", busiest.len()));
        lines.extend(busiest);
        let failed = self.records.iter().filter(|record| record.verdict.word() == "FAILED");
        let failed: Vec<String> = failed.map(TestRecord::line).collect();
        if !failed.is_empty() {
            lines.push("-- failed".into());
            lines.extend(failed);
        }
        let cpu: Duration = self.records.iter().map(|record| record.cpu).sum();
        let (took, cpu) = (took.as_secs_f64(), cpu.as_secs_f64());
        lines.push(format!("-- {took:.0} s, {cpu:.0} s of CPU; {} ignored", self.ignored));
        lines.push(self.counts());
        lines.join("\n")
    }

    /// `14 passed, 0 failed, 1 skipped`
    fn counts(&self) -> String {
        let (passed, failed) = (self.count("passed"), self.count("FAILED"));
        counts(passed, failed, self.count("skipped"))
    }
}

/// `14 passed, 0 failed, 1 skipped`
pub(crate) fn counts(passed: usize, failed: usize, skipped: usize) -> String {
    format!("{passed} passed, {failed} failed, {skipped} skipped")
}

/// Seconds of each test, kept from run to run: `NAME<tab>SECONDS<tab>VERDICT<tab>CPU SECONDS`.
#[derive(Debug)]
pub(crate) struct SecondsFile {
    path: PathBuf,
    rows: BTreeMap<String, String>,
}

impl SecondsFile {
    /// Reads it, if it is there.
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let row = |line: &str| line.split_once('\t').map(|(name, row)| (name.into(), row.into()));
        Self { path: path.to_owned(), rows: text.lines().filter_map(row).collect() }
    }

    /// Seconds by full name.
    pub(crate) fn seconds(&self) -> BTreeMap<String, f64> {
        let seconds = |row: &String| row.split('\t').next()?.parse().ok();
        let rows = self.rows.iter();
        rows.filter_map(|(name, row)| Some((name.clone(), seconds(row)?))).collect()
    }

    /// Writes what came of these tests; tests that did not run this time keep their rows.
    pub(crate) fn update(&mut self, results: &Results) -> Result<()> {
        for record in &results.records {
            let (took, cpu) = (record.took.as_secs_f64(), record.cpu.as_secs_f64());
            let row = format!("{took:.3}\t{}\t{cpu:.2}", record.verdict.word());
            self.rows.insert(record.name.clone(), row);
        }
        let rows = self.rows.iter().map(|(name, row)| format!("{name}\t{row}\n"));
        fs::write(&self.path, rows.collect::<String>())
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    const OK: &str = "test result: ok. 1 passed; 0 failed;";

    fn verdict(code: i32, output: &str, skips: &str) -> Verdict {
        Verdict::of("a::x", ExitStatus::from_raw(code << 8), output, skips)
    }

    fn ended(verdict: Verdict, ms: u64) -> Ended {
        let took = Duration::from_millis(ms);
        Ended { verdict, took, cpu: took / 2, output: "said\n".into(), skips: String::new() }
    }

    #[test]
    fn a_test_passes_if_its_harness_says_so() {
        assert_eq!(verdict(0, OK, ""), Verdict::Passed);
        assert_eq!(verdict(101, OK, ""), Verdict::Failed("exit code 101".into()));
        let none = Verdict::Failed("ended without a result".into());
        assert_eq!(verdict(0, "test result: ok. 0 passed; 0 failed;", ""), none);
        let killed = Verdict::of("a::x", ExitStatus::from_raw(11), OK, "");
        assert_eq!(killed, Verdict::Failed("killed by signal 11".into()));
    }

    #[test]
    fn a_test_skips_by_its_list_or_by_what_it_prints() {
        let skipped = |why: &str| Verdict::Skipped(why.into());
        assert_eq!(verdict(0, OK, "a::x\tno root\n"), skipped("no root"));
        for line in ["a::x skipped: why", "x skipped: why", "vm: skipped: why", "skipped: why"] {
            assert_eq!(verdict(0, &format!("{line}\n{OK}"), ""), skipped("why"), "{line}");
            let behind = format!("test a::x ... {line}\nok\n{OK}");
            assert_eq!(verdict(0, &behind, ""), skipped("why"), "{line}");
        }
        assert_eq!(verdict(0, &format!("b skipped: why\n{OK}"), ""), Verdict::Passed);
        assert_eq!(verdict(101, "skipped: why", ""), Verdict::Failed("exit code 101".into()));
    }

    #[test]
    fn the_last_line_has_the_counts() {
        let mut results = Results { ignored: 2, ..Results::default() };
        assert_eq!(
            results.add("t::a".into(), ended(Verdict::Passed, 12)),
            "   0.012 s passed  t::a\n"
        );
        let failed = ended(Verdict::Failed("exit code 101".into()), 3_000);
        let said = results.add("t::b".into(), failed);
        assert_eq!(said, "   3.000 s FAILED  t::b: exit code 101\n-- its output\nsaid\n--\n");
        results.add("t::c".into(), ended(Verdict::Skipped("no root".into()), 500));
        assert!(results.has_failed());
        let closing = results.closing(Duration::from_secs(4));
        let lines: Vec<&str> = closing.lines().collect();
        assert_eq!(
            lines,
            [
                "-- the 3 slowest, with their CPU time",
                "     3.0 s    1.5 s of CPU  t::b",
                "     0.5 s    0.2 s of CPU  t::c",
                "     0.0 s    0.0 s of CPU  t::a",
                "-- the 3 that took most CPU time",
                "     3.0 s    1.5 s of CPU  t::b",
                "     0.5 s    0.2 s of CPU  t::c",
                "     0.0 s    0.0 s of CPU  t::a",
                "-- failed",
                "   3.000 s FAILED  t::b: exit code 101",
                "-- 4 s, 2 s of CPU; 2 ignored",
                "1 passed, 1 failed, 1 skipped",
            ]
        );
    }

    #[test]
    fn seconds_are_kept_also_of_tests_that_did_not_run_this_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("seconds.tsv");
        let mut results = Results::default();
        results.add("t::a".into(), ended(Verdict::Passed, 1_500));
        results.add("t::b".into(), ended(Verdict::Passed, 20));
        SecondsFile::read(&path).update(&results).unwrap();
        let mut later = Results::default();
        later.add("t::b".into(), ended(Verdict::Failed("x".into()), 40));
        let mut file = SecondsFile::read(&path);
        file.update(&later).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "t::a\t1.500\tpassed\t0.75\nt::b\t0.040\tFAILED\t0.02\n");
        assert_eq!(SecondsFile::read(&path).seconds()["t::a"], 1.5);
    }
}

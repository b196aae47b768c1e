//! The tests that run in a guest: which, how they get there, and what came of them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use tardy::lab::guest::init::{END, Job, KEPT};

use super::account::{self, Skips};
use crate::suite::{
    listing,
    programs::{self, BuildRequest},
    results,
};

/// How modules of `tests/outside` begin whose tests are made for a guest.
const MADE_FOR_IT: &str = "root_";

/// Kernel command line of these tests: it differs from the default, so that tests see
/// whether tardy finds it.
pub(super) const APPEND: &str = "preempt=full";

/// Where tests in a guest note that they skipped.
const SKIPS: &str = "/tmp/skips";

/// Environment variables of the host's tests that are passed to a guest.
const PASSED_ON: [&str; 3] = ["TARDY_TEST_LONG", "TARDY_TEST_REPEATS", "TARDY_TEST_SEED"];

/// A guest is at least this many times slower than its host.
const PATIENCE: &str = "4";

/// The built test program, and the tardy that it starts.
pub(super) struct Suite {
    pub outside: PathBuf,
    pub tardy: PathBuf,
}

impl Suite {
    /// Has cargo build both.
    pub(super) fn build() -> Result<Self> {
        let request = BuildRequest { targets: &["outside".into()], ..BuildRequest::default() };
        let text = programs::build(&request)?;
        let find = |name, kind| {
            programs::executable(&text, name, kind)
                .with_context(|| format!("cargo named no executable of {name}"))
        };
        Ok(Self { outside: find("outside", "test")?, tardy: find("tardy", "bin")? })
    }

    /// Names of the tests to run. Most of those that are ignored need a machine whose time is that
    /// of its clock, which a guest has not: they run where their whole name is asked for.
    pub(super) fn choose(&self, choice: &Choice) -> Result<Vec<String>> {
        let mut names = choice.of(&self.list(&[])?);
        let ignored = choice.of(&self.list(&["--ignored"])?);
        names.retain(|name| !ignored.contains(name) || choice.also.contains(name));
        let filter = choice.filter.unwrap_or(MADE_FOR_IT);
        let may_be_none = choice.skipped.is_some();
        ensure!(may_be_none || !names.is_empty(), "no test has \"{filter}\" in its name");
        Ok(names)
    }

    /// All tests, or those that are ignored.
    fn list(&self, which: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.outside);
        command.args(["--list", "--format", "terse"]).args(which);
        let output = command.output().context("cannot list the tests")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The job that runs these tests, one after the other.
    pub(super) fn job(&self, names: &[String]) -> Result<Job> {
        let program = utf8(&self.outside)?.to_owned();
        let fixed = ["--exact", "--include-ignored", "--test-threads=1"].map(str::to_owned);
        let command = [vec![program], names.to_vec(), fixed.into()].concat();
        let environment = [
            ("TARDY_TEST_VM", "1"),
            ("TARDY_TEST_PATIENCE", PATIENCE),
            ("TARDY_TEST_SKIPS", SKIPS),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let passed_on = PASSED_ON.iter().filter_map(|name| {
            let value = std::env::var(name).ok()?;
            Some(((*name).to_owned(), value))
        });
        Ok(Job {
            command,
            environment: environment.into_iter().chain(passed_on).collect(),
            kept: vec![SKIPS.into()],
            ..Job::default()
        })
    }
}

/// What tests read of the repository, where they look for it.
pub(super) fn schema() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no repository")?;
    Ok(root.join("docs/run.schema.json"))
}

/// A path as text, for what can only hold text.
pub(super) fn utf8(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}

/// Which tests: those that `skipped` on the host and have not `passed` in a guest. Without such a
/// list, all that have `filter` in their names; without a filter, those made for a guest. In each
/// case also those that have one of `also` in their names.
pub(super) struct Choice<'a> {
    pub filter: Option<&'a str>,
    pub also: &'a [String],
    pub skipped: Option<&'a Skips>,
    pub passed: &'a [String],
}

impl Choice<'_> {
    /// Of a list of tests: `NAME: test`.
    fn of(&self, list: &str) -> Vec<String> {
        listing::parse(list).into_iter().filter(|name| self.takes(name)).collect()
    }

    fn takes(&self, name: &str) -> bool {
        if let Some(skipped) = self.skipped {
            return skipped.contains_key(name) && !self.passed.iter().any(|passed| passed == name);
        }
        self.filter.map_or_else(|| name.starts_with(MADE_FOR_IT), |text| name.contains(text))
            || self.also.iter().any(|text| name.contains(text))
    }
}

/// What came of the tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TestResults {
    pub passed: Vec<String>,
    pub failed: Vec<String>,
    pub skipped: Skips,
    /// What the harness tells about failures.
    pub output_of_failures: String,
}

impl TestResults {
    /// Reads the guest's output; a test of `names` without a result has failed.
    pub(super) fn parse(output: &str, names: &[String]) -> Self {
        let kept = format!("{KEPT}{SKIPS}\t");
        let skips: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix(&kept)).collect();
        let mut results = Self { skipped: account::parse(&skips.join("\n")), ..Self::default() };
        for name in names {
            let begin = format!("test {name} ... ");
            let ended = output.lines().find_map(|line| line.strip_prefix(&begin));
            match ended {
                Some("ok") if results.skipped.contains_key(name) => {}
                Some("ok") => results.passed.push(name.clone()),
                _ => results.failed.push(name.clone()),
            }
        }
        if let Some(at) = output.find("\nfailures:\n") {
            let end = output[at..].find("\ntest result:").map_or(output.len(), |end| at + end);
            results.output_of_failures = output[at..end].trim().to_owned();
        }
        results
    }

    /// `14 passed, 0 failed, 1 skipped`
    pub(super) fn counts(&self) -> String {
        results::counts(self.passed.len(), self.failed.len(), self.skipped.len())
    }
}

/// How the guest's command ended, by its exit code.
pub(super) fn exit_code(output: &str) -> Result<i32> {
    let Some(end) = output.lines().rev().find_map(|line| line.strip_prefix(END)) else {
        bail!("the guest went off without a last word");
    };
    end.parse().with_context(|| format!("the guest {end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
record::a_run: test
root_vm::facts: test
unprivileged::a_run_without_rights: test
foreign_readers::python: test

4 tests, 0 benchmarks
";

    #[test]
    fn tests_are_chosen_by_module_by_what_the_host_skipped_and_by_name() {
        let skipped = account::parse(
            "foreign_readers::python\tno python\nlib::gone\tx\nroot_vm::facts\tno guest\n",
        );
        let passed = ["root_vm::facts".to_owned()];
        let choose = |filter, also: &[&str], skipped| {
            let also: Vec<String> = also.iter().copied().map(str::to_owned).collect();
            Choice { filter, also: &also, skipped, passed: &passed }.of(LIST).join(" ")
        };
        let (facts, rights) = ("root_vm::facts", "unprivileged::a_run_without_rights");
        let python = "foreign_readers::python";
        assert_eq!(choose(None, &[], None), facts);
        assert_eq!(choose(None, &[], Some(&skipped)), python);
        assert_eq!(choose(None, &["unpriv", "x"], None), format!("{facts} {rights}"));
        assert_eq!(choose(Some("a_run"), &["x"], None), format!("record::a_run {rights}"));
        assert_eq!(choose(Some("vm::"), &["unpriv"], None), format!("{facts} {rights}"));
    }

    #[test]
    fn results_are_counted_by_name_and_what_did_not_end_has_failed() {
        let names = ["a::ok", "a::bad", "a::skips", "a::never"].map(str::to_owned);
        let output = "\nrunning 4 tests\ntest a::ok ... ok\ntest a::bad ... FAILED\n\
                      test a::skips ... ok\ntest a::never ... \n\nfailures:\n\n\
                      ---- a::bad stdout ----\nno good\n\ntest result: FAILED. 1 passed\n\n\
                      guest-kept /tmp/skips\ta::skips\tno such thing\n\nguest-end 101\n";
        let results = TestResults::parse(output, &names);
        assert_eq!(results.passed, ["a::ok"]);
        assert_eq!(results.failed, ["a::bad", "a::never"]);
        assert_eq!(results.skipped, account::parse("a::skips\tno such thing"));
        assert_eq!(results.counts(), "1 passed, 2 failed, 1 skipped");
        assert!(
            results.output_of_failures.ends_with("no good")
                && results.output_of_failures.starts_with("failures:")
        );
        assert_eq!(exit_code(output).unwrap(), 101);
    }

    #[test]
    fn a_guest_that_says_nothing_in_the_end_is_an_error() {
        let error = exit_code("test a::ok ... ok\n").unwrap_err().to_string();
        assert!(error.contains("without a last word"), "{error}");
        let error = format!("{:#}", exit_code("guest-end failed: no /job\n").unwrap_err());
        assert!(error.contains("failed: no /job"), "{error}");
    }
}

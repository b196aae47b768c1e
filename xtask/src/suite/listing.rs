//! Which tests the programs have, and which of them are wanted.

use std::{collections::BTreeSet, process::Command, sync::Arc};

use anyhow::{Context, Result, ensure};

use super::{flags::Part, programs::TestProgram};

/// One test.
#[derive(Debug, Clone)]
pub(crate) struct TestCase {
    pub program: Arc<TestProgram>,
    /// As the program lists it.
    pub name: String,
    /// Runs only if asked for.
    pub is_ignored: bool,
}

impl TestCase {
    /// `PROGRAM::MODULE::TEST`
    pub(crate) fn full_name(&self) -> String {
        format!("{}::{}", self.program.name, self.name)
    }
}

/// Which tests to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ignored {
    /// All but ignored ones.
    LeaveOut,
    /// Ignored ones as well.
    Include,
    /// Ignored ones alone.
    Only,
}

/// The tests to run, and how many ignored ones were left out.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub cases: Vec<TestCase>,
    pub ignored: usize,
}

/// All tests of these programs.
pub(crate) fn list(programs: Vec<TestProgram>) -> Result<Vec<TestCase>> {
    let mut cases = Vec::new();
    for program in programs {
        let all = names(&program, &[])?;
        let ignored: BTreeSet<String> = names(&program, &["--ignored"])?.into_iter().collect();
        let program = Arc::new(program);
        cases.extend(all.into_iter().map(|name| TestCase {
            is_ignored: ignored.contains(&name),
            program: Arc::clone(&program),
            name,
        }));
    }
    Ok(cases)
}

fn names(program: &TestProgram, more: &[&str]) -> Result<Vec<String>> {
    let mut command = Command::new(&program.executable);
    command.args(["--list", "--format", "terse"]).args(more).current_dir(&program.directory);
    let output = command.output();
    let output = output.with_context(|| format!("cannot run {}", program.executable.display()))?;
    ensure!(output.status.success(), "{} does not list its tests", program.executable.display());
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// The names in such a list: `NAME: test`.
pub(crate) fn parse(list: &str) -> Vec<String> {
    list.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// Those that have one of the texts in their full names, or all without a text.
pub(crate) fn select(cases: Vec<TestCase>, filters: &[String], ignored: Ignored) -> Selection {
    let mut selection = Selection::default();
    for case in cases {
        let full = case.full_name();
        if !filters.is_empty() && !filters.iter().any(|text| full.contains(text.as_str())) {
            continue;
        }
        match (ignored, case.is_ignored) {
            (Ignored::LeaveOut, true) => selection.ignored += 1,
            (Ignored::Only, false) => {}
            _ => selection.cases.push(case),
        }
    }
    selection
}

/// One part of the tests: every n-th of them, by their order in the list.
pub(crate) fn take_part(cases: Vec<TestCase>, part: Part) -> Vec<TestCase> {
    cases.into_iter().skip(part.number - 1).step_by(part.of).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Tests of a program that is not there; those that end in `!` are ignored.
    pub(crate) fn cases(program: &str, names: &[&str]) -> Vec<TestCase> {
        let program = Arc::new(TestProgram {
            name: program.to_owned(),
            executable: "/nowhere".into(),
            directory: "/".into(),
            package: "p".into(),
            version: "0".into(),
        });
        let case = |name: &&str| TestCase {
            program: Arc::clone(&program),
            name: name.trim_end_matches('!').to_owned(),
            is_ignored: name.ends_with('!'),
        };
        names.iter().map(case).collect()
    }

    fn selected(filters: &[&str], ignored: Ignored) -> (String, usize) {
        let filters: Vec<String> = filters.iter().map(|text| (*text).to_owned()).collect();
        let all = [cases("tardy", &["a::x", "b::x!"]), cases("outside", &["b::y", "c::z!"])];
        let selection = select(all.concat(), &filters, ignored);
        let names: Vec<String> = selection.cases.iter().map(TestCase::full_name).collect();
        (names.join(" "), selection.ignored)
    }

    #[test]
    fn a_list_has_a_name_a_line() {
        let list = "record::a_run: test\nroot_vm::facts: test\nx: benchmark\n\n2 tests, 1 bench\n";
        assert_eq!(parse(list), ["record::a_run", "root_vm::facts"]);
    }

    #[test]
    fn tests_are_selected_by_parts_of_their_full_names() {
        let (all, left) = selected(&[], Ignored::LeaveOut);
        assert_eq!((all.as_str(), left), ("tardy::a::x outside::b::y", 2));
        assert_eq!(selected(&["outside::"], Ignored::LeaveOut).0, "outside::b::y");
        assert_eq!(selected(&["a::x", "y"], Ignored::LeaveOut).0, "tardy::a::x outside::b::y");
        assert_eq!(selected(&["nothing"], Ignored::LeaveOut), (String::new(), 0));
    }

    #[test]
    fn all_parts_together_have_each_test_once() {
        let part = |number| {
            let cases = cases("p", &["a", "b", "c", "d", "e"]);
            let cases = take_part(cases, Part { number, of: 3 });
            cases.into_iter().map(|case| case.name).collect::<String>()
        };
        assert_eq!([1, 2, 3].map(part), ["ad", "be", "c"]);
    }

    #[test]
    fn ignored_tests_run_if_asked_for() {
        assert_eq!(selected(&[], Ignored::Only), ("tardy::b::x outside::c::z".into(), 0));
        let (all, left) = selected(&["tardy"], Ignored::Include);
        assert_eq!((all.as_str(), left), ("tardy::a::x tardy::b::x", 0));
    }
}

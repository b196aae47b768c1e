//! Submissions to the database in which KernelCI collects the results of all test systems: KCIDB,
//! schema 5.0 (kernelci/kcidb-io, `kcidb_io/schema/v05_00.py`).

use std::{collections::HashMap, io};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::checks::{Check, CheckedFigure, CheckedRun, Outcome};

/// The oldest version that has all that is written; servers take older ones than their own.
const VERSION: SchemaVersion = SchemaVersion { major: 5, minor: 0 };

/// Who submits, and which build of the kernel was tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Submission {
    /// The name that KernelCI knows the submitter by.
    origin: String,
    /// The id of the build, with the name of its submitter before a colon.
    build: String,
}

/// Why this cannot be submitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SubmissionError {
    /// A name that the schema does not have.
    #[error("--origin {0:?}: write small letters, digits and _, as agreed with KernelCI")]
    Origin(String),
    /// An id that the schema does not have.
    #[error(
        "--build-id {0:?}: write the id of the build in KCIDB, which begins with its submitter and \
         a colon: maestro:67f1c3"
    )]
    Build(String),
}

impl Submission {
    /// Of what `--origin` and `--build-id` name.
    pub(crate) fn new(origin: &str, build: &str) -> Result<Self, SubmissionError> {
        if !is_origin(origin) {
            return Err(SubmissionError::Origin(origin.into()));
        }
        match build.split_once(':') {
            Some((of, id)) if is_origin(of) && !id.is_empty() && !id.contains(char::is_control) => {
                Ok(Self { origin: origin.into(), build: build.into() })
            }
            _ => Err(SubmissionError::Build(build.into())),
        }
    }
}

fn is_origin(text: &str) -> bool {
    let is_taken = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    !text.is_empty() && text.chars().all(is_taken)
}

#[derive(Serialize)]
struct SchemaVersion {
    major: u32,
    minor: u32,
}

#[derive(Serialize)]
struct Report<'a> {
    version: SchemaVersion,
    tests: Vec<Test<'a>>,
}

/// A test run of KCIDB.
#[derive(Serialize)]
struct Test<'a> {
    build_id: &'a str,
    id: String,
    origin: &'a str,
    path: String,
    comment: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<Number>,
    #[serde(skip_serializing_if = "str::is_empty")]
    start_time: &'a str,
    /// s
    duration: f64,
    environment: Value,
    misc: Map<String, Value>,
}

/// What was measured: shown with the prefix that fits.
#[derive(Serialize)]
struct Number {
    value: f64,
    unit: &'static str,
    prefix: &'static str,
}

/// A test a check, and a test a latency, whose number is in seconds. What the samples do not decide
/// is `DONE`, which says nothing of the kernel.
pub(crate) fn write(runs: &[CheckedRun], to: &Submission) -> io::Result<Vec<u8>> {
    let mut tests = Vec::new();
    for run in runs {
        tests.extend(run.checks.iter().map(|check| of_check(run, check, to)));
        tests.extend(run.figures.iter().map(|figure| of_figure(run, figure, to)));
    }
    tell_apart(&mut tests);
    let mut bytes = serde_json::to_vec_pretty(&Report { version: VERSION, tests })?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Numbers tests of one name, of which a database would keep the last alone.
fn tell_apart(tests: &mut [Test<'_>]) {
    let mut found: HashMap<String, u32> = HashMap::new();
    for test in tests {
        let times = found.entry(test.id.clone()).or_default();
        *times += 1;
        if *times > 1 {
            let number = format!("-{times}");
            test.id.push_str(&number);
            test.path.push_str(&number);
        }
    }
}

fn of_check<'a>(run: &'a CheckedRun, check: &'a Check, to: &'a Submission) -> Test<'a> {
    let status = match check.outcome {
        Outcome::Passed => "PASS",
        Outcome::Failed => "FAIL",
        Outcome::Inconclusive => "DONE",
        Outcome::Invalid => "ERROR",
        Outcome::NotRun => "MISS",
    };
    let path = path(run, check.series.as_deref(), &check.name);
    Test { status, comment: &check.reason, ..test(run, path, to) }
}

fn of_figure<'a>(run: &'a CheckedRun, figure: &CheckedFigure, to: &'a Submission) -> Test<'a> {
    let number = Number { value: figure.ns as f64 / 1e9, unit: "s", prefix: "metric" };
    let path = path(run, Some(&figure.series), &figure.name);
    Test { number: Some(number), ..test(run, path, to) }
}

fn test<'a>(run: &'a CheckedRun, path: String, to: &'a Submission) -> Test<'a> {
    let misc = [("run", &run.name), ("run_id", &run.id), ("command", &run.command)];
    Test {
        build_id: &to.build,
        // The same run submitted twice is the same test.
        id: format!(
            "{}:{}.{path}",
            to.origin,
            if run.id.is_empty() { &run.started_at } else { &run.id }
        ),
        origin: &to.origin,
        path,
        comment: &run.headline,
        status: "DONE",
        number: None,
        start_time: &run.started_at,
        duration: run.duration_s,
        environment: json!({"comment": run.line, "misc": {"hostname": run.hostname}}),
        misc: misc
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.clone().into()))
            .collect(),
    }
}

/// Dots separate the parts of a path, so that a percentile has none: `p99-9`.
fn path(run: &CheckedRun, series: Option<&str>, what: &str) -> String {
    run.plain_name(series, &what.replace('.', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        exchange::export::checks::tests::{document, gates},
        run::plan_record::tests::record,
    };

    fn submission() -> Submission {
        Submission::new("my_lab", "maestro:67f1c3").unwrap()
    }

    #[test]
    fn each_check_and_each_latency_is_a_test_of_the_build() {
        let mut document = document();
        document.started_at = "2026-11-24T04:23:31.582Z".into();
        let series = &mut document.series[0];
        series.max = None;
        series.percentiles = [("99.9".to_owned(), 65_250)].into();
        series.uncertain.clear();
        document.series.truncate(1);
        let bytes = write(&[CheckedRun::of(&document, &gates())], &submission()).unwrap();
        let found: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(found["version"], json!({"major": 5, "minor": 0}));
        let tests = found["tests"].as_array().unwrap();
        let told: Vec<[&str; 2]> = tests
            .iter()
            .map(|test| ["path", "status"].map(|key| test[key].as_str().unwrap()))
            .collect();
        let expected = [
            ["timer.idle.the_run_is_valid", "PASS"],
            ["timer.idle.cpu0.p99_le_80us", "PASS"],
            ["timer.idle.cpu0.max_lt_1ms", "FAIL"],
            ["timer.idle.cpu1.p99-9_le_1ms", "DONE"],
            ["timer.idle.cpu0.p99-9", "DONE"],
        ];
        assert_eq!(told, expected);
        assert_eq!(tests[4]["number"], json!({"value": 65.25e-6, "unit": "s", "prefix": "metric"}));
        assert_eq!(tests[4]["id"], "my_lab:i.timer.idle.cpu0.p99-9");
        assert_eq!(tests[0]["build_id"], "maestro:67f1c3");
    }

    #[test]
    fn no_two_tests_have_one_id() {
        let gates = [gates(), gates()].concat();
        let bytes = write(&[CheckedRun::of(&document(), &gates)], &submission()).unwrap();
        let found: Value = serde_json::from_slice(&bytes).unwrap();
        let ids: Vec<&str> = found["tests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|test| test["id"].as_str().unwrap())
            .collect();
        let apart: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(apart.len(), ids.len(), "{ids:?}");
        assert!(apart.contains("my_lab:i.timer.idle.cpu0.p99_le_80us-2"), "{ids:?}");
    }

    #[test]
    fn a_cell_without_a_run_is_missed() {
        let plan = record();
        let missing = CheckedRun::unmeasured(&plan, &plan.cells[1]);
        let bytes = write(&[missing], &submission()).unwrap();
        let found: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(found["tests"][0]["status"], "MISS");
    }

    #[test]
    fn names_that_the_schema_refuses_are_refused_before() {
        for origin in ["", "My-Lab", "a:b"] {
            let error = Submission::new(origin, "maestro:1").unwrap_err();
            assert_eq!(error, SubmissionError::Origin(origin.into()));
        }
        for build in ["", "67f1c3", ":1", "maestro:", "Maestro:1"] {
            let error = Submission::new("my_lab", build).unwrap_err();
            assert_eq!(error, SubmissionError::Build(build.into()));
        }
    }
}

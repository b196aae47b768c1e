//! A plan: one probe under several loads, as a small TOML file.
//!
//! What it holds are the long flags of `tardy run`, so that nothing has a second definition.
//! Whether they are right is for the command line to say, which knows them. Nothing here is about
//! machines: the same plan can be run anywhere.

use std::{collections::BTreeMap, ops::Range, path::Path};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use toml::{Spanned, Value};

/// A plan is a page of text; what is larger is something else.
const LARGEST: u64 = 1 << 20;

/// More repeats than anybody waits for.
const MOST_REPEATS: u32 = 1_000;

/// Flags that say where a run goes and how it is told: whoever runs the plan says so.
const RESERVED: [&str; 8] = ["output", "name", "quiet", "json", "format", "store", "help", "load"];

/// A probe under several loads, each to be measured several times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What it is called; part of a directory's name.
    pub name: String,
    /// How often each load is measured, 1 or more.
    pub repeats: u32,
    /// What measures: `timer`.
    pub probe: String,
    /// The rows, in the order of the file.
    pub loads: Vec<Row>,
}

/// One load of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What the plan calls it; no two have the same.
    pub name: String,
    /// The line of the file where it begins, from 1.
    pub line: usize,
    /// The arguments of `tardy` that measure under it: `run`, the probe, flags.
    pub arguments: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Spanned<String>,
    repeats: Option<Spanned<i64>>,
    probe: Option<Spanned<String>>,
    #[serde(default)]
    run: Flags,
    #[serde(default)]
    load: Vec<Spanned<Load>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Load {
    name: Spanned<String>,
    #[serde(default, rename = "use")]
    loads: Vec<Spanned<String>>,
    #[serde(default)]
    run: Flags,
}

/// By name, without the dashes.
type Flags = BTreeMap<Spanned<String>, Spanned<Value>>;

impl Plan {
    /// Reads the plan in `path`.
    ///
    /// # Errors
    /// A file that cannot be read, or whatever [`Plan::parse`] finds.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display();
        let about = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
        ensure!(about.is_file(), "{shown} is no file; a plan is a TOML file");
        ensure!(about.len() <= LARGEST, "{shown} is larger than 1 MiB; a plan is a page of text");
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        Self::parse(&text, &shown.to_string())
    }

    /// Reads a plan; `file` is what errors call it.
    ///
    /// # Errors
    /// What is no TOML; an unknown or missing field; a value that is none: each with its line.
    pub fn parse(text: &str, file: &str) -> Result<Self> {
        let reading = Reading { text, file };
        let parsed = toml::from_str::<File>(text).map_err(|error| {
            let what = error.message().replace('`', "\"").replace('\n', " ");
            reading.refusal(error.span(), &what)
        })?;
        reading.plan(parsed)
    }
}

/// A text and its name, to say where something is.
struct Reading<'a> {
    text: &'a str,
    file: &'a str,
}

impl Reading<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        before.matches('\n').count() + 1
    }

    fn refusal(&self, span: Option<Range<usize>>, what: &str) -> anyhow::Error {
        match span {
            Some(span) => anyhow::anyhow!("{}, line {}: {what}", self.file, self.line(&span)),
            None => anyhow::anyhow!("{}: {what}", self.file),
        }
    }

    fn plan(&self, file: File) -> Result<Plan> {
        let name = self.name("name", &file.name)?;
        ensure!(
            !name.contains('/') && !name.starts_with('.'),
            self.refusal(
                Some(file.name.span()),
                &format!(
                    "name: {name:?} becomes part of a directory's name; leave out / and a \
                          leading dot"
                ),
            )
        );
        ensure!(
            !file.load.is_empty(),
            self.refusal(None, "no [[load]]; write one for each row, `use = []` being none")
        );
        let probe = match &file.probe {
            Some(probe) => self.name("probe", probe)?,
            None => "timer".into(),
        };
        let mut plan =
            Plan { name, repeats: self.repeats(file.repeats)?, probe, loads: Vec::new() };
        for load in &file.load {
            let row = self.row(&plan.probe, &file.run, load)?;
            if let Some(other) = plan.loads.iter().find(|other| other.name == row.name) {
                let what = format!("load {:?} is there twice; see line {}", row.name, other.line);
                bail!(self.refusal(Some(load.get_ref().name.span()), &what));
            }
            plan.loads.push(row);
        }
        Ok(plan)
    }

    fn name(&self, field: &str, name: &Spanned<String>) -> Result<String> {
        let text = name.get_ref().trim();
        let what = match () {
            () if text.is_empty() => "is empty; write a word or two",
            () if text.chars().any(char::is_control) => "has a control character; leave it out",
            () if text.chars().count() > 80 => "is longer than 80 characters; shorten it",
            () if text.starts_with('-') => "begins with a dash; leave it out",
            () => return Ok(text.to_owned()),
        };
        bail!(self.refusal(Some(name.span()), &format!("{field} {what}")))
    }

    fn repeats(&self, repeats: Option<Spanned<i64>>) -> Result<u32> {
        let Some(repeats) = repeats else { return Ok(1) };
        let valid = u32::try_from(*repeats.get_ref()).ok();
        valid.filter(|n| (1..=MOST_REPEATS).contains(n)).ok_or_else(|| {
            let what = format!("repeats: {} is not from 1 to {MOST_REPEATS}", repeats.get_ref());
            self.refusal(Some(repeats.span()), &what)
        })
    }

    fn row(&self, probe: &str, common: &Flags, load: &Spanned<Load>) -> Result<Row> {
        let line = self.line(&load.span());
        let load = load.get_ref();
        let mut arguments = vec!["run".to_owned(), probe.to_owned()];
        // What a load says of a flag replaces what all say.
        let all = common.iter().filter(|(name, _)| !load.run.contains_key(*name));
        let mut flags: Vec<_> = all.chain(&load.run).collect();
        flags.sort_by_key(|(name, _)| name.get_ref());
        for (name, value) in flags {
            arguments.extend(self.flag(name, value)?);
        }
        for used in &load.loads {
            ensure!(
                !used.get_ref().trim().is_empty(),
                self.refusal(Some(used.span()), "use: empty; write what --load takes")
            );
            arguments.push(format!("--load={}", used.get_ref().trim()));
        }
        Ok(Row { name: self.name("name of a load", &load.name)?, line, arguments })
    }

    /// One flag as an argument; none where it is off.
    fn flag(&self, name: &Spanned<String>, value: &Spanned<Value>) -> Result<Option<String>> {
        let flag = name.get_ref();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let at = Some(name.span());
        if flag.is_empty() || flag.starts_with('-') || !flag.chars().all(plain) {
            bail!(self.refusal(
                at,
                &format!(
                    "run.{flag}: no flag of `tardy run`; write its long name without the dashes"
                )
            ));
        }
        if flag == "load" {
            bail!(self.refusal(at, "run.load: loads belong into a [[load]], as use = [\"...\"]"));
        }
        if RESERVED.contains(&flag.as_str()) {
            bail!(self.refusal(at, &format!(
                "run.{flag}: where runs go and what is printed is not for a plan to say; leave it \
                 out"
            )));
        }
        match value.get_ref() {
            Value::String(text) => Ok(Some(format!("--{flag}={text}"))),
            Value::Integer(number) => Ok(Some(format!("--{flag}={number}"))),
            Value::Float(number) => Ok(Some(format!("--{flag}={number}"))),
            Value::Boolean(true) => Ok(Some(format!("--{flag}"))),
            Value::Boolean(false) => Ok(None),
            other => {
                bail!(self.refusal(Some(value.span()), &format!(
                "run.{flag}: expected a string, a number, true or false, found {}; write what \
                 --{flag} takes, as in \"200us\"",
                kind(other)
            )))
            }
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
        Value::Datetime(_) => "a date",
        _ => "something else",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
name = "founding"
repeats = 5
[run]
interval = "200us"
samples = 10000
raw = true
[[load]]
name = "idle"
[[load]]
name = "kill(0) to 300 processes"
use = ["signals:processes=300", "idle"]
[load.run]
samples = 500
raw = false
"#;

    fn refused(text: &str) -> String {
        Plan::parse(text, "p.toml").unwrap_err().to_string()
    }

    /// [`GOOD`] with a line of it replaced by another.
    fn with(line: &str, other: &str) -> String {
        assert!(GOOD.contains(line), "{line}");
        GOOD.replace(line, other)
    }

    #[test]
    fn flags_become_arguments_and_a_load_may_have_its_own() {
        let plan = Plan::parse(GOOD, "p.toml").unwrap();
        assert_eq!((plan.name.as_str(), plan.repeats), ("founding", 5));
        let arguments = |at: usize| plan.loads[at].arguments.join(" ");
        assert_eq!(arguments(0), "run timer --interval=200us --raw --samples=10000");
        assert_eq!(
            arguments(1),
            "run timer --interval=200us --samples=500 --load=signals:processes=300 --load=idle"
        );
        assert_eq!(plan.loads[1].line, 10);
    }

    #[test]
    fn an_unknown_field_is_named_with_its_line_and_those_there_are() {
        let error = refused(&with("repeats = 5", "repeat = 5"));
        assert!(error.starts_with("p.toml, line 3: unknown field \"repeat\""), "{error}");
        for known in ["name", "repeats", "probe", "run", "load"] {
            assert!(error.contains(&format!("\"{known}\"")), "{error}");
        }
        let error = refused(&with("use =", "uses ="));
        assert!(error.contains("line 12") && error.contains("\"use\""), "{error}");
    }

    #[test]
    fn a_value_of_a_wrong_kind_is_told_by_field_and_line() {
        for (line, other, wanted) in [
            ("repeats = 5", "repeats = 0", "line 3: repeats: 0 is not from 1 to 1000"),
            ("repeats = 5", "repeats = -1", "line 3: repeats: -1"),
            ("repeats = 5", "repeats = \"five\"", "line 3: invalid type: string \"five\""),
            ("name = \"founding\"", "name = \"\"", "line 2: name is empty"),
            ("name = \"founding\"", "name = \"a/b\"", "line 2: name: \"a/b\" becomes part"),
            ("name = \"founding\"", "", "missing field \"name\""),
            ("name = \"idle\"", "name = \"a\\u0007\"", "line 9: name of a load has a control"),
            ("samples = 10000", "samples = [1]", "line 6: run.samples: expected a string, a"),
            ("samples = 10000", "Samples = 1", "line 6: run.Samples: no flag"),
            ("samples = 10000", "output = \"x\"", "line 6: run.output: where runs go"),
            ("samples = 10000", "load = \"x\"", "line 6: run.load: loads belong into"),
            ("\"idle\"]", "\" \"]", "line 12: use: empty"),
            ("\"idle\"]", "7]", "line 12: invalid type: integer \"7\", expected a string"),
            ("repeats = 5", "repeats = ", "line 3: "),
        ] {
            let error = refused(&with(line, other));
            assert!(error.starts_with("p.toml"), "{error}");
            assert!(error.contains(wanted), "{other}: {error}");
        }
    }

    #[test]
    fn two_loads_of_one_name_and_none_at_all_are_refused() {
        let error = refused(&with("name = \"kill(0) to 300 processes\"", "name = \"idle\""));
        assert!(error.contains("line 11: load \"idle\" is there twice; see line 8"), "{error}");
        assert!(refused("name = \"x\"").contains("no [[load]]"));
    }

    #[test]
    fn what_is_no_plan_is_refused_by_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let error = Plan::open(directory.path()).unwrap_err().to_string();
        assert!(error.contains("is no file"), "{error}");
        let missing = directory.path().join("none.toml");
        assert!(Plan::open(&missing).unwrap_err().to_string().contains("none.toml"));
        let large = directory.path().join("large.toml");
        std::fs::write(&large, vec![b'#'; (1 << 20) + 1]).unwrap();
        assert!(Plan::open(&large).unwrap_err().to_string().contains("larger than 1 MiB"));
    }
}

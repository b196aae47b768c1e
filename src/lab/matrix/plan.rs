//! A plan: a probe under several loads, as a small TOML file.
//!
//! It holds the long flags of `tardy run`, and of the `tardy echo` in a second box, so
//! that nothing has a second definition. The command line checks whether they are valid,
//! since it knows them. The number of boxes is all that a plan contains about machines.

use std::{collections::BTreeMap, ops::Range, path::Path};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::{lab::guest::nodes, run::probes::DEFAULT_PROBE};

/// A plan is a page of text; what is larger is something else.
const LARGEST: u64 = 1 << 20;

/// The most repeats that a plan may ask for.
const MOST_REPEATS: u32 = 1_000;

/// Flags for the run's place and output: the caller that runs the plan sets them.
const RESERVED: [&str; 8] = ["output", "name", "quiet", "json", "format", "store", "help", "load"];

/// Flags by which two boxes find each other: the lab gives them.
const OF_BOXES: [&str; 3] = ["to", "listen", "token-file"];

/// A probe under several loads, each to be measured several times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabPlan {
    /// What it is called; part of a directory's name.
    pub name: String,
    /// How often each load is measured, 1 or more.
    pub repeats: u32,
    /// The rows, in the order of the file.
    pub loads: Vec<PlanRow>,
}

/// One load of a plan.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PlanRow {
    /// What the plan calls it; no two have the same.
    pub name: String,
    /// The line of the file where it begins, from 1.
    pub line: usize,
    /// The arguments of `tardy` that measure under it: `run`, the probe, flags.
    pub arguments: Vec<String>,
    /// Those of the `tardy echo` in a second box; none where there is one box.
    pub far: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Spanned<String>,
    repeats: Option<Spanned<i64>>,
    probe: Option<Spanned<String>>,
    boxes: Option<Spanned<i64>>,
    #[serde(default)]
    run: Flags,
    #[serde(default)]
    echo: Flags,
    #[serde(default)]
    load: Vec<Spanned<Load>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Load {
    name: Spanned<String>,
    probe: Option<Spanned<String>>,
    boxes: Option<Spanned<i64>>,
    #[serde(default, rename = "use")]
    loads: Vec<Spanned<String>>,
    #[serde(default)]
    run: Flags,
    #[serde(default)]
    echo: Flags,
}

/// By name, without the dashes.
type Flags = BTreeMap<Spanned<String>, Spanned<Value>>;

impl LabPlan {
    /// Reads the plan in `path`.
    ///
    /// # Errors
    /// A file that cannot be read, or whatever [`LabPlan::parse`] finds.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display();
        let about = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
        ensure!(about.is_file(), "{shown} is not a file; a plan is a TOML file");
        ensure!(about.len() <= LARGEST, "{shown} is larger than 1 MiB; a plan is a page of text");
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        Self::parse(&text, &shown.to_string())
    }

    /// Reads a plan; `file` is what errors call it.
    ///
    /// # Errors
    /// Invalid TOML; an unknown or missing field; an invalid value: each with its line.
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

    fn plan(&self, file: File) -> Result<LabPlan> {
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
            self.refusal(None, "no [[load]]; write one for each row (`use = []` means no load)")
        );
        let repeats = self.number("repeats", file.repeats.as_ref(), MOST_REPEATS)?;
        let mut plan = LabPlan { name, repeats, loads: Vec::new() };
        for load in &file.load {
            let row = self.row(&file, load)?;
            if let Some(other) = plan.loads.iter().find(|other| other.name == row.name) {
                let what = format!("load {:?} is given twice; see line {}", row.name, other.line);
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

    /// From 1 to `most`; 1 where the plan has none.
    fn number(&self, field: &str, number: Option<&Spanned<i64>>, most: u32) -> Result<u32> {
        let Some(number) = number else { return Ok(1) };
        let valid = u32::try_from(*number.get_ref()).ok();
        valid.filter(|n| (1..=most).contains(n)).ok_or_else(|| {
            let what = format!("{field}: {} is out of range: use 1 to {most}", number.get_ref());
            self.refusal(Some(number.span()), &what)
        })
    }

    fn row(&self, file: &File, load: &Spanned<Load>) -> Result<PlanRow> {
        let line = self.line(&load.span());
        let load = load.get_ref();
        let probe = match load.probe.as_ref().or(file.probe.as_ref()) {
            Some(probe) => self.name("probe", probe)?,
            None => DEFAULT_PROBE.name.into(),
        };
        let boxes = load.boxes.as_ref().or(file.boxes.as_ref());
        let are_two = self.number("boxes", boxes, 2)? == 2;
        let mut arguments = vec!["run".to_owned(), probe.clone()];
        arguments.extend(self.flags("run", &file.run, &load.run, are_two)?);
        // The table for all rows may be meant for other rows.
        let far = if are_two {
            arguments.extend(nodes::way(&probe));
            nodes::echo(self.flags("echo", &file.echo, &load.echo, true)?)
        } else {
            self.no_echo(&load.echo)?
        };
        for used in &load.loads {
            ensure!(
                !used.get_ref().trim().is_empty(),
                self.refusal(Some(used.span()), "use: empty; write what --load takes")
            );
            arguments.push(format!("--load={}", used.get_ref().trim()));
        }
        Ok(PlanRow { name: self.name("name of a load", &load.name)?, line, arguments, far })
    }

    fn no_echo(&self, echo: &Flags) -> Result<Vec<String>> {
        match echo.keys().next() {
            None => Ok(Vec::new()),
            Some(flag) => bail!(self.refusal(
                Some(flag.span()),
                "echo: there is no second box; write `boxes = 2`, or leave it out"
            )),
        }
    }

    /// Flags as arguments, by name. A load's own value replaces the value for all loads.
    fn flags(&self, table: &str, all: &Flags, own: &Flags, are_two: bool) -> Result<Vec<String>> {
        let all = all.iter().filter(|(name, _)| !own.contains_key(*name));
        let mut flags: Vec<_> = all.chain(own).collect();
        flags.sort_by_key(|(name, _)| name.get_ref());
        let mut arguments = Vec::new();
        for (name, value) in flags {
            if are_two && OF_BOXES.contains(&name.get_ref().as_str()) {
                bail!(self.refusal(
                    Some(name.span()),
                    &format!(
                        "{table}.{}: the lab joins two boxes itself; leave it out",
                        name.get_ref()
                    )
                ));
            }
            arguments.extend(self.flag(table, name, value)?);
        }
        Ok(arguments)
    }

    /// One flag as an argument; none where it is off.
    fn flag(
        &self,
        table: &str,
        name: &Spanned<String>,
        value: &Spanned<Value>,
    ) -> Result<Option<String>> {
        let flag = name.get_ref();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let at = Some(name.span());
        if flag.is_empty() || flag.starts_with('-') || !flag.chars().all(plain) {
            bail!(self.refusal(
                at,
                &format!(
                    "{table}.{flag}: no flag of `tardy {table}`; write its long name without the \
                     dashes"
                )
            ));
        }
        if flag == "load" {
            bail!(self.refusal(
                at,
                &format!("{table}.load: loads belong into a [[load]], as use = [\"...\"]")
            ));
        }
        if RESERVED.contains(&flag.as_str()) {
            bail!(self.refusal(at, &format!(
                "{table}.{flag}: where runs go and what is printed is not for a plan to say; leave \
                 it out"
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
                "{table}.{flag}: expected a string, a number, true or false, found {}; write what \
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
        LabPlan::parse(text, "p.toml").unwrap_err().to_string()
    }

    /// [`GOOD`] with a line of it replaced by another.
    fn with(line: &str, other: &str) -> String {
        assert!(GOOD.contains(line), "{line}");
        GOOD.replace(line, other)
    }

    #[test]
    fn flags_become_arguments_and_a_load_may_have_its_own() {
        let plan = LabPlan::parse(GOOD, "p.toml").unwrap();
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
    fn a_second_box_has_an_echo_and_the_probe_gets_its_address() {
        let text = GOOD.replace("[run]", "boxes = 2\n[echo]\npriority = 80\n[run]");
        let text = text.replace("name = \"idle\"", "name = \"idle\"\nprobe = \"pingpong\"");
        let plan =
            LabPlan::parse(&(text + "[[load]]\nname = \"alone\"\nboxes = 1"), "p.toml").unwrap();
        let to = |at: usize| plan.loads[at].arguments.iter().any(|word| word.starts_with("--to="));
        assert!(to(0) && !to(1), "a timer sends nothing");
        assert_eq!(plan.loads[0].arguments[1], "pingpong");
        assert_eq!(
            plan.loads[0].far.join(" "),
            nodes::echo(vec!["--priority=80".into()]).join(" ")
        );
        assert!(plan.loads[2].far.is_empty() && !plan.loads[2].arguments.contains(&"--to".into()));
    }

    #[test]
    fn what_joins_two_boxes_is_the_labs_and_an_echo_needs_a_second_one() {
        let two = |more: &str| refused(&GOOD.replace("[run]", &format!("boxes = 2\n{more}")));
        let error = two("[run]\nto = \"192.0.2.9:1\"");
        assert!(error.contains("line 6: run.to: the lab joins two boxes itself"), "{error}");
        let error = two("[echo]\nlisten = \"192.0.2.9:1\"\n[run]");
        assert!(error.contains("line 6: echo.listen"), "{error}");
        let error = refused(&with("raw = false", "raw = false\n[load.echo]\npriority = 80"));
        assert!(error.contains("line 17: echo: there is no second box"), "{error}");
        let error = refused(&with("repeats = 5", "boxes = 3"));
        assert!(error.contains("line 3: boxes: 3 is out of range: use 1 to 2"), "{error}");
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
    fn a_value_of_a_wrong_kind_is_reported_by_field_and_line() {
        for (line, other, wanted) in [
            ("repeats = 5", "repeats = 0", "line 3: repeats: 0 is out of range: use 1 to 1000"),
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
        assert!(error.contains("line 11: load \"idle\" is given twice; see line 8"), "{error}");
        assert!(refused("name = \"x\"").contains("no [[load]]"));
    }

    #[test]
    fn what_is_no_plan_is_refused_by_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let error = LabPlan::open(directory.path()).unwrap_err().to_string();
        assert!(error.contains("is not a file"), "{error}");
        let missing = directory.path().join("none.toml");
        assert!(LabPlan::open(&missing).unwrap_err().to_string().contains("none.toml"));
        let large = directory.path().join("large.toml");
        std::fs::write(&large, vec![b'#'; (1 << 20) + 1]).unwrap();
        assert!(LabPlan::open(&large).unwrap_err().to_string().contains("larger than 1 MiB"));
    }
}

//! `--where`: which runs are meant, as words `FIELD=PATTERN` that all must hold.

use std::{fmt, iter, str::FromStr};

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use thiserror::Error;

use super::listed_run::ListedRun;
use crate::{
    run::{SeriesEntry, Status, Validity, series_name::shown_name},
    units::{Nanos, UnitError},
};

/// Fields, and what their values are.
const FIELDS: [(&str, Kind); 20] = [
    ("name", Kind::Text(|run| vec![&run.entry.name])),
    ("id", Kind::Text(|run| vec![&run.entry.id])),
    ("kernel", Kind::Text(|run| vec![&run.entry.facts.kernel])),
    ("machine", Kind::Text(|run| vec![&run.entry.facts.hostname])),
    ("host", Kind::Text(|run| vec![&run.entry.facts.hostname])),
    ("probe", Kind::Text(|run| vec![run.entry.probe.name()])),
    ("load", Kind::Text(loads)),
    ("policy", Kind::Text(|run| run.entry.setup.found.policy.iter().map(AsRef::as_ref).collect())),
    ("cpus", Kind::Text(|run| run.entry.setup.found.cpus.iter().map(AsRef::as_ref).collect())),
    ("status", Kind::Word(&STATUSES, |run| run.entry.status.as_str())),
    ("verdict", Kind::Word(&VERDICTS, |run| run.entry.validity.as_str())),
    ("plan", Kind::Text(|run| run.cell().map(|(plan, _)| plan).into_iter().collect())),
    ("cell", Kind::Text(|run| run.cell().map(|(_, cell)| cell).into_iter().collect())),
    ("series", Kind::Series),
    ("started", Kind::Started),
    ("duration", Kind::Time(|run, _| i64::try_from(run.entry.duration_ns).ok())),
    ("p50", Kind::Time(|run, question| question.percentile(run, "50"))),
    ("p99", Kind::Time(|run, question| question.percentile(run, "99"))),
    ("p99.9", Kind::Time(|run, question| question.percentile(run, "99.9"))),
    ("max", Kind::Time(|run, question| question.chosen(run).filter_map(|own| own.max).max())),
];

/// All that a status may be.
const STATUSES: [&str; 6] = [
    Status::Running.as_str(),
    Status::Complete.as_str(),
    Status::Interrupted.as_str(),
    Status::StoppedOver.as_str(),
    Status::Crashed.as_str(),
    Status::Imported.as_str(),
];

/// All that a verdict may be.
const VERDICTS: [&str; 3] =
    [Validity::Valid.as_str(), Validity::Weakened.as_str(), Validity::Invalid.as_str()];

/// Operators; the longer ones first.
const OPERATORS: [(&str, Operator); 6] = [
    ("!=", Operator::IsNot),
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("=", Operator::Is),
    ("<", Operator::Below),
    (">", Operator::Above),
];

/// Letters that may differ between a field and what was typed for it.
const NEAR: usize = 3;

/// What the values of a field are.
#[derive(Clone, Copy)]
enum Kind {
    Text(fn(&ListedRun) -> Vec<&str>),
    /// One of these.
    Word(&'static [&'static str], fn(&ListedRun) -> &str),
    Time(fn(&ListedRun, &Where) -> Option<i64>),
    Started,
    Series,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Is,
    IsNot,
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// Why a question was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum WhereError {
    /// A word without an operator.
    #[error("\"{0}\" is not a condition; write FIELD=PATTERN, FIELD!=PATTERN or FIELD>VALUE")]
    NoCondition(String),
    /// A field that no run has.
    #[error("no field \"{field}\"{near}; fields are {}", names())]
    Unknown {
        /// As typed.
        field: String,
        /// Those that it may have been meant for: `: did you mean kernel?`
        near: String,
    },
    /// A text that is to be smaller or larger.
    #[error("{field} is a text: use = or != with a pattern, as in {field}=a*")]
    Order {
        /// The field.
        field: &'static str,
    },
    /// No value of its field.
    #[error("{field}: {source}")]
    Value {
        /// The field.
        field: &'static str,
        /// What is wrong with the value.
        source: UnitError,
    },
    /// A word that no run has there.
    #[error("{field}: no run can have \"{value}\"; there are {}", .known.join(", "))]
    NoSuch {
        /// The field.
        field: &'static str,
        /// As typed.
        value: String,
        /// All words of the field.
        known: &'static [&'static str],
    },
    /// No date.
    #[error(
        "started: \"{0}\" is not a date; use 2026-10-01, 2026-10-01T03:00Z, or with = the \
         beginning of one"
    )]
    Date(String),
    /// Nothing after the operator.
    #[error("\"{0}\" has nothing behind its operator")]
    Empty(String),
}

/// The names of all fields.
fn names() -> String {
    FIELDS.map(|(name, _)| name).join(", ")
}

/// What is asked of runs: all conditions must hold. Without any, all runs are meant.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Where {
    conditions: Vec<Condition>,
    /// As typed.
    text: String,
}

#[derive(Debug, Clone, PartialEq)]
struct Condition {
    /// Index into [`FIELDS`].
    field: usize,
    operator: Operator,
    value: Value,
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Pattern(String),
    Time(i64),
    Moment(Timestamp),
}

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Where {
    type Err = WhereError;

    fn from_str(text: &str) -> Result<Self, WhereError> {
        let words = || text.split_whitespace();
        let conditions = words().map(condition).collect::<Result<_, _>>()?;
        Ok(Self { conditions, text: words().collect::<Vec<_>>().join(" ") })
    }
}

fn condition(word: &str) -> Result<Condition, WhereError> {
    let at = word.find(['=', '!', '<', '>']).filter(|at| *at > 0);
    let split = at.and_then(|at| {
        let (field, rest) = word.split_at(at);
        let found = OPERATORS
            .iter()
            .find_map(|(text, operator)| rest.strip_prefix(text).map(|value| (*operator, value)));
        found.map(|(operator, value)| (field, operator, value))
    });
    let (field, operator, value) = split.ok_or_else(|| WhereError::NoCondition(word.into()))?;
    let known = FIELDS.iter().position(|(name, _)| *name == field);
    let number = known.ok_or_else(|| unknown(field))?;
    if value.is_empty() {
        return Err(WhereError::Empty(word.into()));
    }
    let Some((field, kind)) = FIELDS.get(number).copied() else { return Err(unknown(field)) };
    let equals = matches!(operator, Operator::Is | Operator::IsNot);
    let value = match kind {
        Kind::Text(_) | Kind::Word(..) | Kind::Series if !equals => {
            return Err(WhereError::Order { field });
        }
        Kind::Word(known, _) if !known.iter().any(|word| matches(value, word)) => {
            return Err(WhereError::NoSuch { field, value: value.into(), known });
        }
        Kind::Text(_) | Kind::Word(..) | Kind::Series => Value::Pattern(value.into()),
        Kind::Started if equals => Value::Pattern(beginning(value)?),
        Kind::Started => Value::Moment(moment(value)?),
        Kind::Time(_) => {
            let time = value.parse::<Nanos>();
            Value::Time(time.map_err(|source| WhereError::Value { field, source })?.0)
        }
    };
    Ok(Condition { field: number, operator, value })
}

/// The pattern of all that began with this beginning of a date, UTC, in which * and ? may stand.
fn beginning(text: &str) -> Result<String, WhereError> {
    // What is left open may be so: a day may begin with 0 and with 3.
    const OPEN: [&str; 2] = ["2000-10-10T00:00:00.000000", "2000-01-01T00:00:00.000000"];
    let start = text.trim_end_matches('Z');
    let fixed = start.split('*').next().unwrap_or_default();
    let is_possible = |open: &str| {
        let rest = open.chars().skip(fixed.chars().count());
        let typed = fixed.chars().zip(open.chars().chain(iter::repeat('0')));
        let typed = typed.map(|(typed, open)| if typed == '?' { open } else { typed });
        let whole: String = typed.chain(rest).chain(['Z']).collect();
        whole.parse::<Timestamp>().is_ok()
    };
    match OPEN.into_iter().any(is_possible) {
        true => Ok(format!("{start}*")),
        false => Err(WhereError::Date(text.into())),
    }
}

/// A date is its beginning, UTC.
fn moment(text: &str) -> Result<Timestamp, WhereError> {
    let day = || Some(text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp());
    text.parse().ok().or_else(day).ok_or_else(|| WhereError::Date(text.into()))
}

fn unknown(field: &str) -> WhereError {
    let mut near: Vec<(usize, &str)> =
        FIELDS.iter().map(|(name, _)| (distance(field, name), *name)).collect();
    near.sort_unstable();
    let least = near.first().map_or(0, |(least, _)| *least);
    near.retain(|(distance, _)| *distance == least && least <= NEAR);
    let near: Vec<&str> = near.into_iter().map(|(_, name)| name).collect();
    let near = match near.as_slice() {
        [] => String::new(),
        near => format!(": did you mean {}?", near.join(" or ")),
    };
    WhereError::Unknown { field: field.into(), near }
}

/// Letters to insert, leave out or replace (Levenshtein 1966).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (number, own) in a.chars().enumerate() {
        let mut last = number;
        let mut next = vec![number + 1];
        for (other, above) in b.iter().zip(row.iter().skip(1)) {
            let left = next.last().copied().unwrap_or(0);
            next.push((last + usize::from(own != *other)).min(above + 1).min(left + 1));
            last = *above;
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

impl Where {
    /// Whether this run is meant.
    #[must_use]
    pub(crate) fn holds(&self, run: &ListedRun) -> bool {
        self.conditions.iter().all(|condition| self.fits(condition, run))
    }

    /// The series of whole latencies that are meant: all where nothing is said of series.
    pub(crate) fn chosen<'a>(
        &'a self,
        run: &'a ListedRun,
    ) -> impl Iterator<Item = &'a SeriesEntry> {
        let is_meant = |condition: &Condition, series: &SeriesEntry| match &condition.value {
            Value::Pattern(pattern) if condition.kind_is_series() => {
                let name = &series.name;
                let is_it = matches(pattern, name) || matches(pattern, &shown_name(name));
                is_it == (condition.operator == Operator::Is)
            }
            _ => true,
        };
        let all = run.entry.whole();
        all.filter(move |series| {
            self.conditions.iter().all(|condition| is_meant(condition, series))
        })
    }

    fn percentile(&self, run: &ListedRun, name: &str) -> Option<i64> {
        let largest = self.chosen(run).filter_map(|series| series.percentile(name)).max();
        largest.and_then(|ns| i64::try_from(ns).ok())
    }

    fn fits(&self, condition: &Condition, run: &ListedRun) -> bool {
        let Some((_, kind)) = FIELDS.get(condition.field) else { return false };
        let is = condition.operator != Operator::IsNot;
        match (kind, &condition.value) {
            (Kind::Text(values), Value::Pattern(pattern)) => {
                values(run).iter().any(|value| matches(pattern, value)) == is
            }
            (Kind::Word(_, value), Value::Pattern(pattern)) => matches(pattern, value(run)) == is,
            (Kind::Series, _) => self.chosen(run).next().is_some(),
            (Kind::Started, Value::Pattern(pattern)) => {
                matches(pattern, &run.entry.started_at) == is
            }
            (Kind::Started, Value::Moment(moment)) => {
                run.entry.start().is_some_and(|start| condition.orders(&start, moment))
            }
            (Kind::Time(value), Value::Time(limit)) => {
                value(run, self).is_some_and(|value| condition.orders(&value, limit))
            }
            _ => false,
        }
    }
}

impl Condition {
    fn kind_is_series(&self) -> bool {
        matches!(FIELDS.get(self.field), Some((_, Kind::Series)))
    }

    fn orders<T: Ord>(&self, value: &T, limit: &T) -> bool {
        match self.operator {
            Operator::Is => value == limit,
            Operator::IsNot => value != limit,
            Operator::Below => value < limit,
            Operator::AtMost => value <= limit,
            Operator::Above => value > limit,
            Operator::AtLeast => value >= limit,
        }
    }
}

/// The names of its loads; `idle` without any.
fn loads(run: &ListedRun) -> Vec<&str> {
    let names: Vec<&str> = run.entry.loads.iter().map(|load| load.name.as_str()).collect();
    if names.is_empty() { vec!["idle"] } else { names }
}

/// Whether the whole text is as the pattern says: `*` is any text, `?` one character. The time that
/// it takes is the product of both lengths at most.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut place, mut retry) = (0, 0, None);
    while let Some(own) = text.get(place) {
        match pattern.get(at) {
            Some('*') => {
                retry = Some((at + 1, place));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || wanted == own => {
                at += 1;
                place += 1;
            }
            _ => {
                // The last star takes one more.
                let Some((after, from)) = retry else { return false };
                retry = Some((after, from + 1));
                (at, place) = (after, from + 1);
            }
        }
    }
    pattern.iter().skip(at).all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunEntry;

    fn run(place: &str) -> ListedRun {
        let entry: RunEntry = serde_json::from_value(serde_json::json!({
            "schema_version": 2, "id": "20261001-030000.000-1f0c", "name": "nightly",
            "status": "complete", "validity": "valid",
            "probe": {"name": "timer", "parameters": {}},
            "loads": [{"name": "hackbench", "parameters": {}, "proof": null, "ended": null}],
            "setup": {"found": {"policy": "fifo 90", "cpus": "0-1"}},
            "facts": {"hostname": "vm", "kernel": "6.12.3-rt"},
            "started_at": "2026-10-01T03:00:00.000000Z", "duration_ns": 60_000_000_000_u64,
            "series": [
                {"name": "cpu0", "count": 9, "max": 150_000, "percentiles": {"99": 80_000}},
                {"name": "cpu1", "count": 9, "max": 90_000, "percentiles": {"99": 99_000},
                 "scheduled": {"percentiles": {"99": 120_000}, "uncertain": []}},
                {"name": "cpu1/irq", "count": 9, "max": 900_000, "stage_of": "cpu1"}],
        }))
        .unwrap();
        let cell = place.contains('/').then(|| "hackbench".into());
        ListedRun { place: place.into(), entry, cell, stamp: None, kept: None }
    }

    fn holds(question: &str) -> bool {
        question.parse::<Where>().unwrap().holds(&run("plan-x/cells/hackbench-1"))
    }

    #[test]
    fn all_conditions_must_hold() {
        for question in [
            "",
            "kernel=6.12* load=hackbench",
            "machine=vm host=v? probe=timer policy=fifo* cpus=0-1",
            "name=nightly id=2026* status=complete verdict=valid",
            "started=2026-1 started=202?-10-0* started=2026-10-01T03:00Z verdict=val*",
            "started=2026-10 started>2026-10-01 started<2026-10-01T03:00:01Z",
            "p99=120us p99>119us p99<=120us max=150us duration>=1m",
            "plan=plan-x cell=hack*",
            "series=cpu0 p99=80us",
            "series!=cpu0 max=90us",
            "load!=idle",
        ] {
            assert!(holds(question), "{question}");
        }
        for question in [
            "kernel=6.12* load=idle",
            "load!=hackbench",
            "started!=2026-10",
            "started<2026-10-01",
            "max>150us",
            "p99.9>1ns",
            "series=cpu2",
            "plan!=plan-*",
        ] {
            assert!(!holds(question), "{question}");
        }
        let alone = run("nightly");
        assert!(!"plan=*".parse::<Where>().unwrap().holds(&alone));
        assert!("plan!=x".parse::<Where>().unwrap().holds(&alone));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_remedy() {
        for (question, said) in [
            ("kernl=6*", "no field \"kernl\": did you mean kernel?"),
            ("hist=x", "did you mean host?"),
            ("nothing-like-it=x", "fields are name, id, kernel"),
            ("6.12", "is not a condition; write FIELD=PATTERN"),
            ("=x", "is not a condition"),
            ("kernel!6", "is not a condition"),
            ("kernel>6", "kernel is a text: use = or !="),
            ("p99>100", "p99: 100 has no unit; write 100us"),
            ("started>soon", "\"soon\" is not a date; use 2026-10-01"),
            ("started=2026-13", "started: \"2026-13\" is not a date"),
            ("started=2026-02-3", "is not a date"),
            ("started!=soon", "is not a date"),
            ("verdict=broken", "verdict: no run can have \"broken\"; there are valid, weakened"),
            ("status!=nonsense", "there are running, complete, interrupted, stopped_over, crashed"),
            ("status>complete", "status is a text"),
            ("kernel=", "nothing behind its operator"),
        ] {
            let error = question.parse::<Where>().unwrap_err().to_string();
            assert!(error.contains(said), "{question}: {error}");
        }
    }

    #[test]
    fn a_pattern_is_of_the_whole_text_and_takes_bounded_time() {
        for (pattern, text, is) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abcd", false),
            ("*b*b", "abbab", true),
            ("?", "", false),
            ("a?", "aé", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, text), is, "{pattern} {text}");
        }
        assert!(!matches(&"*a".repeat(2_000), &"a".repeat(1_999)));
    }
}

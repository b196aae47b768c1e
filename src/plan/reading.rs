//! Values of a plan's file, and what is refused, by its line.

use std::{collections::BTreeMap, ops::Range};

use anyhow::{Result, bail};
use toml::{Spanned, Value};

use super::syntax::Flags;
use crate::units::Nanos;

/// Flags for the run's place and output: the caller that runs the plan sets them.
const RESERVED: [&str; 8] = ["output", "name", "quiet", "json", "format", "store", "help", "load"];

/// Larger numbers are not exact in every reader of JSON.
const MOST_SEED: u64 = (1 << 53) - 1;

/// Flags by name: the argument, or none where it is switched off, and where it stands.
pub(super) type Words = BTreeMap<String, (Option<String>, Range<usize>)>;

/// A text and its name, to say where something is.
pub(super) struct Reading<'a> {
    pub text: &'a str,
    pub file: &'a str,
}

impl Reading<'_> {
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        before.matches('\n').count() + 1
    }

    pub(super) fn refusal(&self, span: Option<Range<usize>>, what: &str) -> anyhow::Error {
        match span {
            Some(span) => anyhow::anyhow!("{}, line {}: {what}", self.file, self.line(&span)),
            None => anyhow::anyhow!("{}: {what}", self.file),
        }
    }

    /// A word or two that people read.
    pub(super) fn name(&self, field: &str, name: &Spanned<String>) -> Result<String> {
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
    pub(super) fn number(
        &self,
        field: &str,
        number: Option<&Spanned<i64>>,
        most: u32,
    ) -> Result<u32> {
        let Some(number) = number else { return Ok(1) };
        let valid = u32::try_from(*number.get_ref()).ok();
        valid.filter(|n| (1..=most).contains(n)).ok_or_else(|| {
            let what = format!("{field}: {} is out of range: use 1 to {most}", number.get_ref());
            self.refusal(Some(number.span()), &what)
        })
    }

    pub(super) fn seed(&self, seed: Option<&Spanned<i64>>) -> Result<Option<u64>> {
        let Some(seed) = seed else { return Ok(None) };
        let valid = u64::try_from(*seed.get_ref()).ok().filter(|seed| *seed <= MOST_SEED);
        valid.map(Some).ok_or_else(|| {
            let what = format!("seed: {} is out of range: use 0 to {MOST_SEED}", seed.get_ref());
            self.refusal(Some(seed.span()), &what)
        })
    }

    /// A time of at most a year, ns; no negative one can be written.
    pub(super) fn time(&self, field: &str, time: Option<&Spanned<String>>) -> Result<Option<i64>> {
        const YEAR_NS: i64 = 365 * 86_400 * 1_000_000_000;
        let Some(time) = time else { return Ok(None) };
        let refused = |what: &str| self.refusal(Some(time.span()), &format!("{field}: {what}"));
        let found: Nanos = time.get_ref().parse().map_err(|error| refused(&format!("{error}")))?;
        if found.0 > YEAR_NS {
            bail!(refused("longer than a year; use 365d or less"));
        }
        Ok(Some(found.0))
    }

    /// A command for `sh -c`.
    pub(super) fn command(
        &self,
        field: &str,
        command: Option<&Spanned<String>>,
    ) -> Result<Option<String>> {
        let Some(command) = command else { return Ok(None) };
        let text = command.get_ref().trim();
        if text.is_empty() || text.contains('\0') {
            let what = format!("{field}: no command; `true` does nothing");
            bail!(self.refusal(Some(command.span()), &what));
        }
        Ok(Some(text.to_owned()))
    }

    /// Flags as arguments, by name.
    pub(super) fn words(&self, table: &str, flags: &Flags) -> Result<Words> {
        let word = |(name, value): (&Spanned<String>, &Spanned<Value>)| {
            Ok((name.get_ref().clone(), (self.flag(table, name, value)?, name.span())))
        };
        flags.iter().map(word).collect()
    }

    /// One flag as an argument; none where it is off.
    fn flag(
        &self,
        table: &str,
        name: &Spanned<String>,
        value: &Spanned<Value>,
    ) -> Result<Option<String>> {
        let flag = name.get_ref();
        if let Some(what) = refused_flag(table, flag) {
            bail!(self.refusal(Some(name.span()), &format!("{table}.{flag}: {what}")));
        }
        match value.get_ref() {
            Value::String(text) => Ok(Some(format!("--{flag}={text}"))),
            Value::Integer(number) => Ok(Some(format!("--{flag}={number}"))),
            Value::Float(number) => Ok(Some(format!("--{flag}={number}"))),
            Value::Boolean(true) => Ok(Some(format!("--{flag}"))),
            Value::Boolean(false) => Ok(None),
            other => {
                let what = format!(
                    "{table}.{flag}: expected a string, a number, true or false, found {}; write \
                     what --{flag} takes, as in \"200us\"",
                    kind(other)
                );
                bail!(self.refusal(Some(value.span()), &what))
            }
        }
    }
}

/// Why a plan cannot have this flag.
fn refused_flag(table: &str, flag: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let what = if flag.is_empty() || flag.starts_with('-') || !flag.chars().all(plain) {
        format!("no flag of `tardy {table}`; write its long name without the dashes")
    } else if flag == "load" {
        "loads belong into a [[load]], as use = [\"...\"]".into()
    } else if flag == "gate" {
        "what limits the cells must keep is said when the plan is run: `tardy plan --gate`".into()
    } else if RESERVED.contains(&flag) {
        "where runs go and what is printed is not for a plan to say; leave it out".into()
    } else {
        return None;
    };
    Some(what)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
        Value::Datetime(_) => "a date",
        _ => "something else",
    }
}

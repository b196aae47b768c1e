//! The envelope of the JSON that programs of rt-tests 2.40 write, around the results of one.

use std::io;

use jiff::Timestamp;
use serde::Serialize;

use crate::{report::words, run::Document};

/// Verbs that have the name and the output of a program of rt-tests.
pub(crate) const DROP_INS: [&str; 2] = ["cyclictest", "oslat"];

/// The version whose keys and types these are.
pub(crate) const VERSION: &str = "2.40";

/// What `--json` writes; two keys end in a colon there.
#[derive(Serialize)]
struct Envelope<'a, R> {
    file_version: u32,
    #[serde(rename = "cmdline:")]
    command: String,
    #[serde(rename = "rt_test_version:")]
    version: &'static str,
    /// Not of rt-tests: that tardy made the file.
    tardy_version: &'static str,
    start_time: String,
    end_time: String,
    return_code: i32,
    sysinfo: SysInfo<'a>,
    #[serde(flatten)]
    results: R,
}

#[derive(Serialize)]
struct SysInfo<'a> {
    sysname: &'static str,
    nodename: &'a str,
    release: &'a str,
    version: &'a str,
    machine: &'a str,
    realtime: u32,
}

/// The JSON of a run with these results.
pub(super) fn json(document: &Document, results: impl Serialize) -> io::Result<Vec<u8>> {
    let facts = &document.facts;
    let envelope = Envelope {
        file_version: 1,
        command: command(&document.argv),
        version: VERSION,
        tardy_version: env!("CARGO_PKG_VERSION"),
        start_time: time(&document.started_at),
        end_time: time(document.ended_at.as_deref().unwrap_or_default()),
        return_code: 0,
        sysinfo: SysInfo {
            sysname: "Linux",
            nodename: &facts.hostname,
            release: &facts.kernel,
            version: &facts.kernel_version,
            machine: &facts.architecture,
            realtime: u32::from(facts.preemption.model == "rt"),
        },
        results,
    };
    let mut bytes = serde_json::to_vec_pretty(&envelope)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The command line; of a drop-in from that word on, for readers take the first one for the
/// program.
fn command(argv: &[String]) -> String {
    let mut at = 1;
    // Options of tardy itself, of which one has a value.
    while let Some(word) = argv.get(at).filter(|word| word.starts_with('-')) {
        at += if word == "--store" { 2 } else { 1 };
    }
    let is_drop_in = argv.get(at).is_some_and(|verb| DROP_INS.contains(&verb.as_str()));
    words::command(argv.get(at..).filter(|_| is_drop_in).unwrap_or(argv))
}

/// RFC 2822, as `date -R` writes it; empty where the record names no time.
fn time(rfc3339: &str) -> String {
    let time: Option<Timestamp> = rfc3339.parse().ok();
    time.map(|time| time.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::Value;

    #[test]
    fn a_drop_in_is_named_as_the_program_that_it_stands_for() {
        let of =
            |line: &str| super::command(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of("tardy --store x oslat -D 1"), "oslat -D 1");
        assert_eq!(of("tardy cyclictest -q"), "cyclictest -q");
        assert_eq!(of("/usr/bin/oslat -D 1"), "/usr/bin/oslat -D 1");
        assert_eq!(of("tardy run --name oslat"), "tardy run --name oslat");
    }

    /// Keys, and what stands behind each.
    pub(in crate::exchange::export) fn shape(value: &Value) -> Vec<(String, &'static str)> {
        let kind = |value: &Value| match value {
            Value::String(_) => "text",
            Value::Number(number) if number.is_f64() => "decimal",
            Value::Number(_) => "whole",
            Value::Object(_) => "object",
            _ => "other",
        };
        value.as_object().unwrap().iter().map(|(key, value)| (key.clone(), kind(value))).collect()
    }
}

//! A run in words: the line that says what was measured where, and what its parts are called.

use serde_json::Value;

use super::{messages, without_host};
use crate::{
    run::{Document, LoadRecord, MessageRecord, ProbeRecord, Status, UNKNOWN_LOAD, alike::IDLE},
    units::{round, span},
};

/// Machine, kernel, loads, length and interval in one line.
#[must_use]
pub fn line(document: &Document) -> String {
    let (host, kernel) = (document.facts.hostname.clone(), kernel(document));
    let mut parts = vec![host, kernel, loads(&document.loads), length(document)];
    if document.status == Status::Imported {
        parts.retain(|part| !part.is_empty());
    }
    if let Some(messages) = &document.messages {
        parts.push(messages::ends(messages));
    } else if document.attached.is_none() {
        // Threads of others have their own.
        parts.extend(document.setup.found.policy.clone());
    }
    let conditions = document.conditions.as_ref();
    parts.extend(conditions.and_then(|found| found.foreign.as_ref()?.text()));
    parts.extend(document.provenance.remark());
    parts.extend(without_host::mark(document));
    parts.join(", ")
}

/// `Linux 6.12.0 (preemption full)`; `kernel unknown` of an imported run whose file has none.
#[must_use]
pub fn kernel(document: &Document) -> String {
    let facts = &document.facts;
    match facts.kernel.as_str() {
        "" if document.status == Status::Imported => "kernel unknown".into(),
        kernel => format!("Linux {kernel} (preemption {})", facts.preemption.model),
    }
}

/// A stack from the first function on that is not of the tracepoint itself, which says nothing.
#[must_use]
pub fn beyond_tracepoint(frames: &[String]) -> &[String] {
    let is_ours = |frame: &String| {
        ["__traceiter_", "__bpf_trace_", "bpf_trace_run", "trace_call_bpf"]
            .iter()
            .any(|own| frame.starts_with(own))
    };
    let first = frames.iter().position(|frame| !is_ours(frame));
    first.and_then(|first| frames.get(first..)).unwrap_or_default()
}

/// How a run without a load is called: what else ran on the machine is not known from that.
const NO_LOAD: &str = "no load started";

/// `under hackbench`, "under `stress-ng --vm 2`", `no load started`; `load unknown` of an imported
/// run.
#[must_use]
pub fn loads(loads: &[LoadRecord]) -> String {
    let key = loads_key(loads);
    if key == IDLE { NO_LOAD.into() } else { key }
}

/// `timer under hackbench`; `timer, no load started`.
#[must_use]
pub fn under(what: &str, loads_key: &str) -> String {
    match loads_key {
        IDLE => format!("{what}, {NO_LOAD}"),
        loads => format!("{what} {loads}"),
    }
}

/// As [`loads`], for programs.
#[must_use]
pub fn loads_key(loads: &[LoadRecord]) -> String {
    let names: Vec<_> = loads.iter().filter(|load| load.name != IDLE).map(load).collect();
    if names == [UNKNOWN_LOAD] {
        return "load unknown".into();
    }
    if names.is_empty() { IDLE.into() } else { format!("under {}", names.join(" + ")) }
}

/// A load by its name, a command by its text.
#[must_use]
pub fn load(load: &LoadRecord) -> String {
    match load.parameters.get("command").and_then(Value::as_str) {
        Some(command) if load.name == "command" => format!("`{command}`"),
        _ => load.name.clone(),
    }
}

fn length(document: &Document) -> String {
    let seconds = document.duration_ns as f64 / 1e9;
    let mut probe = probe(&document.probe, document.messages.as_ref());
    if let Some(every) = every(&document.probe) {
        probe.push_str(&format!(" {every}"));
    }
    if document.status == Status::Imported && document.duration_ns == 0 {
        return format!("{probe} for an unknown time");
    }
    format!("{probe} for {}", span(seconds))
}

/// How often a probe is due: `every 1 ms`, or `every 1 ms + 500 us per thread`.
#[must_use]
pub fn every(probe: &ProbeRecord) -> Option<String> {
    let every = format!("every {}", round(probe.interval_ns()?));
    Some(match probe.interval_step_ns() {
        Some(step_ns) => format!("{every} + {} per thread", round(step_ns)),
        None => every,
    })
}

/// The probe, and over what and how often it exchanged messages: `stream (udp, 64 bytes) at 10 kpps
/// each way`.
#[must_use]
pub fn probe(probe: &ProbeRecord, exchanged: Option<&MessageRecord>) -> String {
    let mut words = probe.name().to_owned();
    if let Some(carrier) = messages::carrier(probe, exchanged) {
        words.push_str(&format!(" ({carrier})"));
    }
    if let Some(rate) = exchanged.and_then(messages::asked_rate) {
        words.push_str(&format!(" at {rate}"));
    }
    words
}

/// What a status means for the reader; empty for one that ended in order.
#[must_use]
pub fn status(status: Status) -> &'static str {
    match status {
        Status::Complete => "",
        Status::Running => "still running",
        Status::Interrupted => "interrupted",
        Status::StoppedOver => "stopped by --stop-over",
        Status::Crashed => "crashed",
        // Its provenance says so, and of whom.
        Status::Imported => "imported",
    }
}

/// The command line, quoted for a shell.
#[must_use]
pub fn command(argv: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+~@%".contains(c);
    let quote = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    argv.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        report::fixture,
        run::conditions::{ConditionsRecord, ForeignRecord, ForeignUser},
    };

    #[test]
    fn the_line_of_messages_has_carrier_rate_and_both_ends() {
        let mut stream = fixture::of("stream", &["there", "back"]);
        if let Some(messages) = &mut stream.messages {
            (messages.transport, messages.size) = ("udp".into(), 64);
            messages.flows.iter_mut().for_each(|flow| flow.wanted_per_s = Some(10_000.0));
        }
        let text = line(&stream);
        let ends = "local on CPU 0 at fifo 90, remote on CPU 1 at fifo 80";
        let probe = "stream (udp, 64 bytes) at 10 kpps each way for 20 s";
        assert!(text.ends_with(&format!("no load started, {probe}, {ends}")), "{text}");
        let timer = line(&fixture::of("timer", &["cpu0"]));
        assert!(timer.ends_with("no load started, timer for 20 s, fifo 90"), "{timer}");
        let mut beside = fixture::of("timer", &["cpu0"]);
        let user = ForeignUser { name: "spin".into(), processes: 6, cpus: 1.94 };
        let foreign = Some(ForeignRecord { share: 0.971, users: vec![user] });
        beside.conditions = Some(ConditionsRecord { foreign, ..ConditionsRecord::default() });
        let text = line(&beside);
        let others = "other programs used 97% of the measured CPUs (6 spin 1.94 CPUs)";
        assert!(text.ends_with(&format!(", fifo 90, {others}")), "{text}");
    }

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let argv = ["tardy", "run", "--name", "it's here", ""].map(String::from);
        assert_eq!(command(&argv), r"tardy run --name 'it'\''s here' ''");
    }
}

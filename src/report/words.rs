//! A run in words: the sentence for a manager, and the line that says what was measured where.

use serde_json::Value;

use crate::{
    run::{Document, LoadRecord, SeriesSummary, Status},
    units::{Nanos, span},
};

/// One sentence: how late, how often, and the worst.
#[must_use]
pub fn headline(document: &Document) -> String {
    headline_because(document, None)
}

/// The same, with why the worst was late where that is known: `while interrupts were off in ext4`.
#[must_use]
pub fn headline_because(document: &Document, why: Option<&str>) -> String {
    let Some((worst, max)) = worst_of(document) else {
        return "Nothing was measured.".into();
    };
    let (name, ns) = certain_percentile(document);
    let worst = worst.cpu.map_or_else(|| worst.name.clone(), |cpu| format!("CPU {cpu}"));
    let ns = i64::try_from(ns).unwrap_or(i64::MAX);
    let why = why.map(|why| format!(", {why}")).unwrap_or_default();
    let mut text = format!(
        "{name} % of wake-ups came within {}; the worst was {} late, on {worst}{why}.",
        Nanos(ns),
        Nanos(max)
    );
    let missed = document.wakeups().filter_map(|series| series.missed);
    let missed = missed.fold(0, u64::saturating_add);
    if missed > 0 {
        let periods = if missed == 1 { "period was" } else { "periods were" };
        text.push_str(&format!(" {missed} {periods} missed."));
    }
    text
}

fn worst_of(document: &Document) -> Option<(&SeriesSummary, i64)> {
    let maxima = document.wakeups().filter_map(|series| Some((series, series.max?)));
    maxima.max_by_key(|(_, max)| *max)
}

/// The highest percentile, up to 99.9, that has enough samples beyond it in every series; and the
/// largest value it has in any of them.
fn certain_percentile(document: &Document) -> (&'static str, u64) {
    let worst = |name: &str| {
        let of = |series: &SeriesSummary| series.percentiles.get(name).copied();
        document.wakeups().filter_map(of).max().unwrap_or(0)
    };
    let certain = |name: &str| {
        let measured = || document.wakeups().filter(|series| series.count > 0);
        measured().count() > 0
            && measured().all(|series| !series.uncertain.iter().any(|few| few == name))
    };
    let best = ["99.9", "99", "90"].into_iter().find(|name| certain(name)).unwrap_or("50");
    (best, worst(best))
}

/// Machine, kernel, loads, length and interval in one line.
#[must_use]
pub fn line(document: &Document) -> String {
    let facts = &document.facts;
    let mut parts = vec![
        facts.hostname.clone(),
        format!("Linux {} (preemption {})", facts.kernel, facts.preemption.model),
        loads(document),
        length(document),
    ];
    if let Some(policy) = document.setup.found.get("policy").and_then(Value::as_str) {
        parts.push(policy.to_owned());
    }
    parts.join(", ")
}

/// `under hackbench`, "under `stress-ng --vm 2`", `idle`.
#[must_use]
pub fn loads(document: &Document) -> String {
    let names: Vec<_> =
        document.loads.iter().filter(|load| load.name != "idle").map(load).collect();
    if names.is_empty() { "idle".into() } else { format!("under {}", names.join(" + ")) }
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
    let interval = document.probe.parameters.get("interval_ns").and_then(Value::as_i64);
    let probe = &document.probe.name;
    interval.map_or_else(
        || format!("{probe} for {}", span(seconds)),
        |ns| format!("{probe} every {} for {}", round(ns), span(seconds)),
    )
}

/// An interval as it was asked for: `1 ms`, not `1.00 ms`.
#[must_use]
pub fn round(ns: i64) -> String {
    let (unit, name) = match ns {
        _ if ns % 1_000_000_000 == 0 => (1_000_000_000, "s"),
        _ if ns % 1_000_000 == 0 => (1_000_000, "ms"),
        _ if ns % 1_000 == 0 => (1_000, "us"),
        _ => (1, "ns"),
    };
    format!("{} {name}", ns / unit)
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

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let argv = ["tardy", "run", "--name", "it's here", ""].map(String::from);
        assert_eq!(command(&argv), r"tardy run --name 'it'\''s here' ''");
    }

    #[test]
    fn intervals_are_printed_as_they_were_asked_for() {
        assert_eq!(round(1_000_000), "1 ms");
        assert_eq!(round(250_000), "250 us");
        assert_eq!(round(1_500), "1500 ns");
    }
}

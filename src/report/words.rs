//! A run in words: the sentence for a manager, and the line that says what was measured where.

use serde_json::Value;

use super::{messages, sample_name::SampleName};
use crate::{
    run::{
        Document, LoadRecord, MessageRecord, ProbeRecord, SeriesSummary, Status,
        messages::ROUND_TRIP,
        probes::{LatencyFrom, ProbeInfo},
    },
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
    let ns = i64::try_from(ns).unwrap_or(i64::MAX);
    let why = why.map(|why| format!(", {why}")).unwrap_or_default();
    let (within, worst) = match SampleName::of(document) {
        SampleName::RoundTrip => round_trips(ns, max),
        SampleName::Packet => packets(document, ns, (worst, max)),
        SampleName::WakeUp | SampleName::Sample => wakeups(ns, (worst, max)),
    };
    let mut text = format!("{name} % of {within}; the worst {worst}{why}.");
    let missed = document.wakeups().filter_map(|series| series.missed);
    let missed = missed.fold(0, u64::saturating_add);
    if missed > 0 {
        let periods = if missed == 1 { "period was" } else { "periods were" };
        text.push_str(&format!(" {missed} {periods} missed."));
    }
    if let Some(lost) = document.messages.as_ref().and_then(messages::losses) {
        text.push_str(&format!(" {lost}."));
    }
    text
}

/// What came within `ns`, and what the worst did.
fn wakeups(ns: i64, (worst, max): (&SeriesSummary, i64)) -> (String, String) {
    let place = worst.cpu.map_or_else(|| worst.name.clone(), |cpu| format!("CPU {cpu}"));
    let within = format!("wake-ups came within {}", Nanos(ns));
    (within, format!("was {} late, on {place}", Nanos(max)))
}

fn round_trips(ns: i64, max: i64) -> (String, String) {
    let half = Nanos(half(ns));
    let within = format!("round trips took at most {} (one way {half}, as half of it)", Nanos(ns));
    (within, format!("took {}", Nanos(max)))
}

fn packets(document: &Document, ns: i64, (worst, max): (&SeriesSummary, i64)) -> (String, String) {
    if ProbeInfo::find(document.probe.name())
        .is_some_and(|probe| probe.latency_from == LatencyFrom::Stamp)
    {
        let within = format!("packets were read within {} of their time stamp", Nanos(ns));
        return (within, format!("took {}", Nanos(max)));
    }
    // An echo sends each back: the whole way is measured by one clock, and its parts are less.
    if worst.name == ROUND_TRIP {
        let within = format!("packets were back within {} of their scheduled time", Nanos(ns));
        return (within, format!("was {} late", Nanos(max)));
    }
    let within = format!("packets came within {} of their scheduled time", Nanos(ns));
    let of = if document.wakeups().count() > 1 { format!(" {}", worst.name) } else { "".into() };
    (within, format!("was {} late{of}", Nanos(max)))
}

/// Half of a round trip: what stands for one way where only there and back was measured.
#[must_use]
pub const fn half(round_trip_ns: i64) -> i64 {
    round_trip_ns / 2
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
        loads(&document.loads),
        length(document),
    ];
    if let Some(messages) = &document.messages {
        parts.push(messages::ends(messages));
    } else {
        parts.extend(document.setup.found.policy.clone());
    }
    parts.extend(document.provenance.remark());
    parts.join(", ")
}

/// `under hackbench`, "under `stress-ng --vm 2`", `idle`.
#[must_use]
pub fn loads(loads: &[LoadRecord]) -> String {
    let names: Vec<_> = loads.iter().filter(|load| load.name != "idle").map(load).collect();
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
    let interval = document.probe.interval_ns();
    let probe = probe(&document.probe, document.messages.as_ref());
    interval.map_or_else(
        || format!("{probe} for {}", span(seconds)),
        |ns| format!("{probe} every {} for {}", round(ns), span(seconds)),
    )
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
    use crate::report::fixture;

    #[test]
    fn a_round_trip_is_reported_whole_and_its_half_is_named_as_one() {
        assert_eq!(
            headline(&fixture::of("pingpong", &["rtt"])),
            "99 % of round trips took at most 60.0 us (one way 30.0 us, as half of it); the worst \
             took 2.40 ms."
        );
    }

    #[test]
    fn packets_are_reported_against_their_time_and_with_those_that_were_lost() {
        let mut stream = fixture::of("stream", &["there", "there/pacing", "back"]);
        if let Some(messages) = &mut stream.messages {
            messages.flows[0].lost = 2;
        }
        assert_eq!(
            headline(&stream),
            "99 % of packets came within 60.0 us of their scheduled time; the worst was 2.40 ms \
             late back. 2 of 1 000 there were lost."
        );
        let text = headline(&fixture::of("stream", &["rtt", "rtt/pacing"]));
        assert!(text.contains("packets were back within 60.0 us of their"), "{text}");
        let text = headline(&fixture::of("receive", &["receive"]));
        assert!(text.starts_with("99 % of packets were read within 60.0 us of their"), "{text}");
    }

    #[test]
    fn the_line_of_messages_has_carrier_rate_and_both_ends() {
        let mut stream = fixture::of("stream", &["there", "back"]);
        if let Some(messages) = &mut stream.messages {
            (messages.transport, messages.size) = ("udp".into(), 64);
            messages.flows.iter_mut().for_each(|flow| flow.wanted_per_s = Some(10_000.0));
        }
        let text = line(&stream);
        let ends = "near on CPU 0 at fifo 90, far on CPU 1 at fifo 80";
        let probe = "stream (udp, 64 bytes) at 10 kpps each way for 20 s";
        assert!(text.ends_with(&format!("idle, {probe}, {ends}")), "{text}");
        let timer = line(&fixture::of("timer", &["cpu0"]));
        assert!(timer.ends_with("idle, timer for 20 s, fifo 90"), "{timer}");
    }

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

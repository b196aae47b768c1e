//! Messages in words: where both ends were, the result of each flow, how the clocks compare.

use crate::{
    run::{
        ProbeRecord,
        messages::{ClockRecord, EndRecord, FlowRecord, MessageRecord},
    },
    units::{Nanos, count, rate},
};

/// `tcp, 1 byte`; what was asked for where the run has not ended; nothing where no messages are
/// exchanged.
#[must_use]
pub fn carrier(probe: &ProbeRecord, messages: Option<&MessageRecord>) -> Option<String> {
    let (transport, size) = match messages {
        Some(messages) => (messages.transport.as_str(), messages.size),
        None => probe.carrier()?,
    };
    Some(match size {
        0 => transport.to_owned(),
        1 => format!("{transport}, 1 byte"),
        _ => format!("{transport}, {} bytes", count(size)),
    })
}

/// `local on CPU 0 at fifo 90, remote on CPU 1 at fifo 90`: placement and policy change the figures
/// by a factor, so every result shows them.
#[must_use]
pub fn ends(messages: &MessageRecord) -> String {
    messages.ends.iter().map(end).collect::<Vec<_>>().join(", ")
}

/// The displayed name of an endpoint, which records call `near`, `far`, `far2`.
#[must_use]
pub fn displayed(end: &EndRecord) -> String {
    end.name.replace("near", "local").replace("far", "remote")
}

fn end(end: &EndRecord) -> String {
    let mut words = displayed(end);
    match (end.place.as_str(), &end.address) {
        ("machine", Some(address)) => words.push_str(&format!(" at {address}")),
        ("machine", None) => words.push_str(" on another machine"),
        ("foreign", Some(address)) => words.push_str(&format!(" a foreign peer at {address}")),
        ("foreign", None) => words.push_str(" a foreign peer"),
        ("thread", _) if end.name != "near" => words.push_str(" in a thread"),
        _ => {}
    }
    if let Some(cpu) = end.cpu {
        words.push_str(&format!(" on CPU {cpu}"));
    }
    if let Some(policy) = &end.policy {
        words.push_str(&format!(" at {policy}"));
    }
    words
}

/// `10 kpps there and back`: the rates that were asked for; `None` without such rates.
#[must_use]
pub fn asked_rate(messages: &MessageRecord) -> Option<String> {
    let flows = messages.flows.iter();
    let wanted = flows.filter_map(|flow| Some((flow.series.as_str(), flow.wanted_per_s?)));
    let wanted: Vec<(&str, f64)> = wanted.collect();
    let (_, first) = *wanted.first()?;
    if wanted.iter().any(|(_, rate)| (rate - first).abs() > 1e-9) {
        let each = wanted.iter().map(|(series, per_s)| format!("{} {series}", pps(*per_s)));
        return Some(each.collect::<Vec<_>>().join(", "));
    }
    let both = wanted.iter().any(|(series, _)| series.starts_with("back"));
    Some(format!("{}{}", pps(first), if both { " each way" } else { "" }))
}

/// `10 kpps`.
fn pps(per_s: f64) -> String {
    let (value, prefix) = match per_s {
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let digits = format!("{value:.2}");
    format!("{} {prefix}pps", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// `12 of 600,000 there and 3 of 600,000 back were lost`; nothing where all arrived.
#[must_use]
pub fn losses(messages: &MessageRecord) -> Option<String> {
    let lost: Vec<&FlowRecord> = messages.flows.iter().filter(|flow| flow.lost > 0).collect();
    let one = |flow: &FlowRecord| {
        let which = if messages.flows.len() > 1 { format!(" {}", flow.series) } else { "".into() };
        format!("{} of {}{which}", count(flow.lost), count(flow.sent))
    };
    let each: Vec<String> = lost.iter().map(|flow| one(flow)).collect();
    let were = if matches!(lost.as_slice(), [one] if one.lost == 1) { "was" } else { "were" };
    (!each.is_empty()).then(|| format!("{} {were} lost", each.join(" and ")))
}

/// The offset of the remote endpoint's clock, with its uncertainty.
#[must_use]
pub fn clock(clock: &ClockRecord) -> String {
    let side = if clock.offset_ns < 0 { "behind" } else { "ahead" };
    let offset = clock.offset_ns.saturating_abs();
    format!(
        "the clock of the remote endpoint is {} {side}, with an uncertainty of {} ({} exchanges, \
         the shortest round trip {}), and drifts by {:.0} parts per billion. One-way latencies \
         have this uncertainty, round trips do not.",
        Nanos(offset),
        Nanos(clock.uncertainty_ns),
        count(clock.exchanges),
        Nanos(clock.shortest_round_trip_ns),
        clock.drift_ppb,
    )
}

/// A rate as tables write it, `-` without a rate.
#[must_use]
pub fn per_s(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn both_ends_are_reported_with_where_they_ran_and_how() {
        let mut messages = fixture::messages(&["rtt"]);
        assert_eq!(ends(&messages), "local on CPU 0 at fifo 90, remote on CPU 1 at fifo 80");
        messages.ends[1] = EndRecord {
            name: "far".into(),
            place: "foreign".into(),
            address: Some("10.0.0.2:5555".into()),
            ..EndRecord::default()
        };
        let text = ends(&messages);
        assert_eq!(text, "local on CPU 0 at fifo 90, remote a foreign peer at 10.0.0.2:5555");
    }

    #[test]
    fn rates_are_reported_once_where_they_are_the_same() {
        let mut messages = fixture::messages(&["there", "back"]);
        messages.flows.iter_mut().for_each(|flow| flow.wanted_per_s = Some(10_000.0));
        assert_eq!(asked_rate(&messages).unwrap(), "10 kpps each way");
        messages.flows[1].wanted_per_s = Some(1_500.0);
        assert_eq!(asked_rate(&messages).unwrap(), "10 kpps there, 1.5 kpps back");
        messages.flows.iter_mut().for_each(|flow| flow.wanted_per_s = None);
        assert_eq!(asked_rate(&messages), None);
    }

    #[test]
    fn losses_are_reported_flow_by_flow_and_only_where_there_are_any() {
        let mut messages = fixture::messages(&["there", "back"]);
        assert_eq!(losses(&messages), None);
        messages.flows[1].lost = 1;
        assert_eq!(losses(&messages).unwrap(), "1 of 1,000 back was lost");
        messages.flows[0].lost = 12;
        let text = losses(&messages).unwrap();
        assert_eq!(text, "12 of 1,000 there and 1 of 1,000 back were lost");
        messages.flows.truncate(1);
        assert_eq!(losses(&messages).unwrap(), "12 of 1,000 were lost");
    }

    #[test]
    fn an_offset_never_stands_without_its_uncertainty() {
        let text = clock(&ClockRecord {
            offset_ns: -1_230_000,
            uncertainty_ns: 15_000,
            drift_ppb: 12.4,
            exchanges: 64,
            shortest_round_trip_ns: 29_000,
        });
        assert!(
            text.starts_with(
                "the clock of the remote endpoint is 1.23 ms behind, with an uncertainty of 15.0 us"
            ),
            "{text}"
        );
    }
}

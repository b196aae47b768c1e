//! The results of messages: flow by flow, end by end, and how the clocks compare.

use super::push_table;
use crate::{
    report::{
        messages::{clock, displayed, per_s},
        sample_name::{self, SampleName},
        table::Table,
    },
    run::{Document, EndRecord, FlowRecord, MessageRecord, SeriesSummary},
    units::{Nanos, count},
};

/// The round trip's figures halved: what stands for one way where only there and back was measured.
pub(super) fn halved(series: &SeriesSummary) -> SeriesSummary {
    let half = |ns: Option<i64>| ns.map(crate::report::headline::half);
    let percentiles = series.percentiles.iter().map(|(name, ns)| (name.clone(), ns / 2));
    SeriesSummary {
        name: "half of it".into(),
        min: half(series.min),
        mean: half(series.mean),
        max: half(series.max),
        percentiles: percentiles.collect(),
        ..series.clone()
    }
}

/// What fits on a narrow terminal, the first of it first. Never what was sent, received and lost.
const LEAST_OF_FLOWS: [&str; 5] = ["asked/s", "sent/s", "foreign", "duplicated", "reordered"];
const LEAST_OF_ENDS: [&str; 5] = ["tardy", "send buffer", "receive buffer", "wait", "address"];

/// The tables of flows and ends; nothing where no messages were exchanged.
pub(super) fn push(out: &mut String, document: &Document, width: Option<usize>) {
    let Some(messages) = &document.messages else { return };
    out.push('\n');
    push_table(out, &flows(messages, SampleName::of(document)), &LEAST_OF_FLOWS, width);
    out.push('\n');
    push_table(out, &ends(messages), &LEAST_OF_ENDS, width);
    if let Some(known) = &messages.clock {
        out.push_str(&format!("clock: {}\n", clock(known)));
    }
}

/// A column: its heading, and what stands in it. Columns without anything in them are left out.
type Column<'a, T> = (String, Box<dyn Fn(&T) -> Option<String> + 'a>);

fn table<T>(left: usize, columns: &[Column<'_, T>], rows: &[T]) -> Table {
    let filled = |(number, (_, cell)): &(usize, &Column<'_, T>)| {
        *number == 0 || rows.iter().any(|row| cell(row).is_some())
    };
    let shown: Vec<_> =
        columns.iter().enumerate().filter(filled).map(|(_, column)| column).collect();
    let headings: Vec<&str> = shown.iter().map(|(heading, _)| heading.as_str()).collect();
    let mut table = Table::new(left, &headings);
    for row in rows {
        table.row(shown.iter().map(|(_, cell)| cell(row).unwrap_or_else(|| "-".into())).collect());
    }
    table
}

fn flows(messages: &MessageRecord, sample_name: SampleName) -> Table {
    let arrived = if sample_name == SampleName::RoundTrip { "answered" } else { "received" };
    let late = messages.flows.iter().find_map(|flow| flow.late_over_ns);
    let late = late.map_or_else(|| "late".into(), |ns| format!("late > {}", Nanos(ns)));
    // What cannot happen to a ping-pong is shown only if it did.
    let if_any = move |n: u64| (sample_name != SampleName::RoundTrip || n > 0).then(|| count(n));
    let columns: [Column<'_, FlowRecord>; 10] = [
        ("messages".into(), Box::new(|flow| Some(sample_name::series(&flow.series).into_owned()))),
        ("sent".into(), Box::new(|flow| Some(count(flow.sent)))),
        (arrived.into(), Box::new(|flow| Some(count(flow.received)))),
        ("lost".into(), Box::new(|flow| Some(count(flow.lost)))),
        (late, Box::new(|flow| flow.late.map(count))),
        ("duplicated".into(), Box::new(move |flow| if_any(flow.duplicated))),
        ("reordered".into(), Box::new(move |flow| if_any(flow.reordered))),
        ("foreign".into(), Box::new(move |flow| if_any(flow.foreign))),
        ("asked/s".into(), Box::new(|flow| flow.wanted_per_s.map(|_| per_s(flow.wanted_per_s)))),
        ("sent/s".into(), Box::new(|flow| flow.achieved_per_s.map(|rate| per_s(Some(rate))))),
    ];
    table(1, &columns, &messages.flows)
}

fn ends(messages: &MessageRecord) -> Table {
    let columns: [Column<'_, EndRecord>; 9] = [
        ("endpoint".into(), Box::new(|end| Some(displayed(end)))),
        ("place".into(), Box::new(|end| Some(end.place.clone()))),
        ("CPU".into(), Box::new(|end| end.cpu.map(|cpu| cpu.to_string()))),
        ("policy".into(), Box::new(|end| end.policy.clone())),
        ("wait".into(), Box::new(|end| end.wait.clone())),
        ("address".into(), Box::new(|end| end.address.clone())),
        ("tardy".into(), Box::new(|end| end.version.clone())),
        ("receive buffer".into(), Box::new(|end| end.receive_buffer_bytes.map(bytes))),
        ("send buffer".into(), Box::new(|end| end.send_buffer_bytes.map(bytes))),
    ];
    table(7, &columns, &messages.ends)
}

fn bytes(n: u64) -> String {
    format!("{} B", count(n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    fn lines_of(document: &Document) -> Vec<String> {
        let mut out = String::new();
        push(&mut out, document, None);
        let text = anstream::adapter::strip_str(&out).to_string();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().map(words).filter(|line| !line.is_empty()).collect()
    }

    #[test]
    fn a_ping_pong_has_no_columns_that_mean_nothing_to_it() {
        let lines = lines_of(&fixture::of("pingpong", &["rtt"]));
        assert_eq!(
            lines,
            [
                "messages sent answered lost sent/s",
                "round trip 1,000 1,000 0 50",
                "endpoint place CPU policy",
                "local thread 0 fifo 90",
                "remote process 1 fifo 80",
            ]
        );
        assert!(lines_of(&fixture::of("timer", &["cpu0"])).is_empty());
    }

    #[test]
    fn a_stream_tells_all_that_came_of_its_packets() {
        let mut stream = fixture::of("stream", &["there", "back"]);
        let messages = stream.messages.as_mut().unwrap();
        for flow in &mut messages.flows {
            (flow.late, flow.late_over_ns) = (Some(7), Some(1_000_000));
            (flow.wanted_per_s, flow.reordered) = (Some(10_000.0), 3);
        }
        messages.ends[1].receive_buffer_bytes = Some(425_984);
        messages.clock = Some(crate::run::ClockRecord {
            offset_ns: 5,
            uncertainty_ns: 9_000,
            drift_ppb: 0.0,
            exchanges: 8,
            shortest_round_trip_ns: 18_000,
        });
        let lines = lines_of(&stream);
        assert_eq!(
            lines[0],
            "messages sent received lost late > 1.00 ms duplicated reordered foreign asked/s sent/s"
        );
        assert_eq!(lines[1], "there 1,000 1,000 0 7 0 3 0 10.0k 50");
        assert_eq!(lines[3], "endpoint place CPU policy receive buffer");
        assert_eq!(lines[5], "remote process 1 fifo 80 425,984 B");
        assert!(lines[6].contains("an uncertainty of 9.00 us"), "{}", lines[6]);
    }

    #[test]
    fn the_half_of_a_round_trip_is_half_of_each_figure_and_of_no_count() {
        let half = halved(&fixture::summary("rtt"));
        assert_eq!((half.min, half.max, half.count), (Some(15_000), Some(1_200_000), 1_000));
        assert_eq!(half.percentiles["99"], 30_000);
    }
}

//! A timeline as JSON in Chrome's trace event format, which chrome://tracing, speedscope and
//! ui.perfetto.dev read: a process for each CPU, a thread for each track.

use std::{fmt::Write as _, io};

use serde_json::{Value, json};

use super::timeline::{TraceEntry, TraceTimeline};

/// The trace; its times are `CLOCK_MONOTONIC`, us.
pub(super) fn write(timeline: &TraceTimeline) -> io::Result<Vec<u8>> {
    let mut events: Vec<String> = Vec::new();
    for (number, track) in timeline.tracks.iter().enumerate() {
        let pid = track.group.number();
        let name = |what: &str, name: &str| {
            let arguments = json!({ "name": name });
            json!({ "ph": "M", "name": what, "pid": pid, "tid": number + 1, "args": arguments })
        };
        let rank = |what: &str, rank: u64| {
            let arguments = json!({ "sort_index": rank });
            json!({ "ph": "M", "name": what, "pid": pid, "tid": number + 1, "args": arguments })
        };
        events.push(name("process_name", &track.group.name()).to_string());
        events.push(rank("process_sort_index", pid).to_string());
        events.push(name("thread_name", &track.name.1).to_string());
        events.push(rank("thread_sort_index", number as u64).to_string());
    }
    events.extend(timeline.entries.iter().map(|entry| event(timeline, entry)));
    let of = json!({ "run": timeline.name, "clock": "CLOCK_MONOTONIC" });
    let begin = format!("{{\"displayTimeUnit\":\"ns\",\"otherData\":{of},\"traceEvents\":[\n");
    Ok(format!("{begin}{}\n]}}\n", events.join(",\n")).into_bytes())
}

fn event(timeline: &TraceTimeline, entry: &TraceEntry) -> String {
    let pid = timeline.tracks[entry.track].group.number();
    let (name, tid) = (Value::from(&*entry.name), entry.track + 1);
    let mut text = format!("{{\"name\":{name},\"pid\":{pid},\"tid\":{tid}");
    // Written to the ns, which a floating-point number would not keep.
    let _ = write!(text, ",\"ts\":{}", microseconds(entry.at_ns));
    let _ = match entry.ns {
        Some(ns) => {
            write!(text, ",\"ph\":\"X\",\"dur\":{}", microseconds(ns.try_into().unwrap_or(0)))
        }
        None => write!(text, ",\"ph\":\"i\",\"s\":\"t\""),
    };
    let details = entry.details.iter().map(|(key, detail)| (key.clone(), Value::from(&**detail)));
    let details = Value::from_iter(details);
    let _ = write!(text, ",\"args\":{details}}}");
    text
}

fn microseconds(ns: i64) -> String {
    let (whole, rest) = (ns / 1_000, (ns % 1_000).unsigned_abs());
    if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:03}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::export::timeline::tests::two_late;

    #[test]
    fn every_entry_is_there_with_its_time_to_the_ns() {
        let timeline = two_late();
        let text = write(&timeline).unwrap();
        let read: Value = serde_json::from_slice(&text).unwrap();
        let events = read["traceEvents"].as_array().unwrap();
        let spans: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
        let points = events.iter().filter(|event| event["ph"] == "i").count();
        assert_eq!(spans.len() + points, timeline.entries.len());
        let idle = spans.iter().find(|event| event["name"] == "idle").unwrap();
        assert_eq!((&idle["ts"], &idle["dur"]), (&json!(4.9), &json!(1.1)));
        assert_eq!(microseconds(1_234_567_890_123_457), "1234567890123.457");
    }
}

//! InfluxDB's line protocol (docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol): a
//! line a series, at the time when its run began.

use std::io;

use super::{check_size, counted::CountedRun, identity::Identity, rows::RunColumns};

/// A line for each series of whole latencies.
pub(super) fn write(runs: &[CountedRun]) -> io::Result<Vec<u8>> {
    let mut out = String::new();
    for run in runs {
        let document = &run.document;
        let time = document.started_at.parse::<jiff::Timestamp>();
        let time = time.map_or_else(|_| String::new(), |time| format!(" {}", time.as_nanosecond()));
        let identity = Identity::of(&RunColumns::of(document), "");
        for (_, series) in run.with_responses() {
            let of_series = [
                // Points of one time would replace each other.
                ("id", if time.is_empty() { document.id.as_str() } else { "" }),
                ("series", &series.name),
                ("validity", document.validity.as_str()),
            ];
            // An empty tag is left out.
            let tags = identity.iter().chain(of_series).filter(|(_, value)| !value.is_empty());
            let tags = tags.map(|(name, value)| format!(",{name}={}", escaped(value)));
            let mut fields = vec![format!("count={}i", series.count)];
            let known = [("min_ns", series.min), ("mean_ns", series.mean), ("max_ns", series.max)];
            let known = known.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
            fields.extend(known.map(|(name, value)| format!("{name}={value}i")));
            fields.extend(series.missed.map(|missed| format!("missed={missed}i")));
            let percentiles = series.percentiles.iter();
            fields.extend(
                percentiles.map(|(name, ns)| format!("p{}_ns={ns}i", name.replace('.', "_"))),
            );
            fields.push(format!("run=\"{}\"", field(&document.name)));
            let (tags, fields) = (tags.collect::<String>(), fields.join(","));
            out.push_str(&format!("tardy_latency{tags} {fields}{time}\n"));
            check_size(out.len())?;
        }
    }
    Ok(out.into_bytes())
}

/// A text as the value of a field.
fn field(text: &str) -> String {
    let plain = text.replace(char::is_control, "_");
    plain.replace('\\', r"\\").replace('"', "\\\"")
}

/// A value of a tag. A line cannot hold a line end, and no escape stands for one.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            ',' | '=' | ' ' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push('_'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::export::counted::tests::{measured, text};

    #[test]
    fn a_series_is_a_line_and_a_name_does_not_end_it() {
        let mut run = measured();
        run.document.facts.hostname = "a b,c=d\ne".into();
        run.document.name = "n \"1\"".into();
        let series = run.wakeups().count();
        let written = text(write(&[run]));
        assert_eq!(written.lines().count(), series);
        let line = written.lines().next().unwrap();
        assert!(line.starts_with(r"tardy_latency,host=a\ b\,c\=d_e,machine="), "{line}");
        assert!(line.contains(",probe=timer,policy=") && line.contains(",series=cpu"), "{line}");
        assert!(line.contains(r#",run="n \"1\"" "#), "{line}");
        assert!(line.contains(" count=") && line.contains("p99_9_ns="), "{line}");
        assert!(line.rsplit(' ').next().unwrap().parse::<i64>().is_ok(), "{line}");
    }
}

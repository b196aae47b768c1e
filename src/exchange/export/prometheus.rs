//! The text format of Prometheus (prometheus.io/docs/instrumenting/exposition_formats), as the
//! textfile collector of node_exporter takes it, and OpenMetrics 1.0. No time stamps: the collector
//! refuses them. The histogram is that of one finished run, and not a counter that grows: where the
//! next run takes its place, its counts begin anew. Of a series without a distribution there are
//! gauges alone: in a histogram all its samples would be too large for every bound.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    io,
};

use super::{
    check_size,
    counted::{CountedBucket, CountedRun},
};
use crate::run::{JudgedCycles, SeriesSummary, Validity};

/// Upper bounds of buckets, ns: 1, 2 and 5 of each decade from 1 us to 10 s.
fn bounds() -> impl Iterator<Item = u64> {
    (3..=9)
        .flat_map(|decade| [1, 2, 5].map(|step| step * 10_u64.pow(decade)))
        .chain([10_u64.pow(10)])
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Prometheus,
    OpenMetrics,
}

/// For Prometheus.
pub(super) fn write(runs: &[CountedRun]) -> io::Result<Vec<u8>> {
    Ok(families(runs, Dialect::Prometheus)?.into_bytes())
}

/// OpenMetrics.
pub(super) fn write_open(runs: &[CountedRun]) -> io::Result<Vec<u8>> {
    Ok((families(runs, Dialect::OpenMetrics)? + "# EOF\n").into_bytes())
}

fn families(runs: &[CountedRun], dialect: Dialect) -> io::Result<String> {
    let mut out = String::new();
    let head = |out: &mut String, name: &str, kind: &str, help: &str| {
        let _ = writeln!(out, "# TYPE {name} {kind}");
        if dialect == Dialect::OpenMetrics && name.ends_with("_seconds") {
            let _ = writeln!(out, "# UNIT {name} seconds");
        }
        let _ = writeln!(out, "# HELP {name} {help}");
    };
    let runs = labelled(runs)?;
    head(&mut out, "tardy_latency_seconds", "histogram", "Latencies of the run.");
    for LabelledRun { run, series, .. } in &runs {
        for ((number, summary), labels) in run.with_responses().zip(series) {
            if summary.is_distributed() {
                histogram(&mut out, run, (number, summary), labels);
                check_size(out.len())?;
            }
        }
    }
    for (name, help, value) in GAUGES {
        head(&mut out, name, "gauge", help);
        for LabelledRun { run, series, .. } in &runs {
            for ((_, summary), labels) in run.with_responses().zip(series) {
                if let Some(value) = value(summary) {
                    let _ = writeln!(out, "{name}{{{labels}}} {value}");
                    check_size(out.len())?;
                }
            }
        }
    }
    for (name, help, value) in DEADLINE_GAUGES {
        let judged = |run: &CountedRun| run.document.judged_cycles().is_empty();
        if runs.iter().all(|own| judged(own.run)) {
            continue;
        }
        head(&mut out, name, "gauge", help);
        for LabelledRun { run, series, .. } in &runs {
            let judged = run.document.judged_cycles();
            for ((_, summary), labels) in run.with_responses().zip(series) {
                let is_it = |own: &&JudgedCycles<'_>| own.response.name == summary.name;
                if let Some(own) = judged.iter().find(is_it) {
                    let _ = writeln!(out, "{name}{{{labels}}} {}", value(own));
                }
            }
        }
    }
    for (name, help, value) in RUN_GAUGES {
        head(&mut out, name, "gauge", help);
        for LabelledRun { run, labels, .. } in &runs {
            let _ = writeln!(out, "{name}{{{labels}}} {}", value(run));
        }
    }
    Ok(out)
}

type SeriesGauge = (&'static str, &'static str, fn(&SeriesSummary) -> Option<f64>);
type DeadlineGauge = (&'static str, &'static str, fn(&JudgedCycles<'_>) -> f64);
type RunGauge = (&'static str, &'static str, fn(&CountedRun) -> f64);

const GAUGES: [SeriesGauge; 6] = [
    ("tardy_samples", "Latencies of the run.", |series| Some(series.count as f64)),
    ("tardy_latency_min_seconds", "The smallest latency of the run.", |series| {
        Some(seconds(series.min?))
    }),
    ("tardy_latency_mean_seconds", "The mean latency of the run.", |series| {
        Some(seconds(series.mean?))
    }),
    ("tardy_latency_max_seconds", "The largest latency of the run.", |series| {
        Some(seconds(series.max?))
    }),
    ("tardy_latency_p999_seconds", "The 99.9th percentile of the run.", |series| {
        series.percentiles.get("99.9").map(|ns| *ns as f64 / 1e9)
    }),
    ("tardy_missed_periods", "Periods that passed without a wake-up.", |series| {
        series.missed.map(|missed| missed as f64)
    }),
];

/// Of the responses of attached threads.
const DEADLINE_GAUGES: [DeadlineGauge; 3] = [
    ("tardy_deadline_seconds", "The deadline of each cycle.", |own| seconds(own.deadline_ns)),
    ("tardy_cycles", "Cycles, and periods that passed without one.", |own| own.cycles as f64),
    ("tardy_missed_deadlines", "Those that missed the deadline.", |own| own.missed as f64),
];

const RUN_GAUGES: [RunGauge; 3] = [
    ("tardy_run_valid", "1 where nothing speaks against the figures of the run.", |run| {
        f64::from(u8::from(run.document.validity == Validity::Valid))
    }),
    ("tardy_run_start_time_seconds", "When the run began, s since the epoch.", |run| {
        let start = run.document.started_at.parse::<jiff::Timestamp>();
        start.map_or(0.0, |start| start.as_millisecond() as f64 / 1e3)
    }),
    ("tardy_run_duration_seconds", "How long it measured.", |run| {
        run.document.duration_ns as f64 / 1e9
    }),
];

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

fn histogram(
    out: &mut String,
    run: &CountedRun,
    (number, series): (usize, &SeriesSummary),
    labels: &str,
) {
    let name = "tardy_latency_seconds";
    let buckets = run.buckets(number);
    for bound in bounds() {
        let within = |bucket: &&CountedBucket| bucket.middle_ns() <= bound;
        let counts = buckets.iter().take_while(within).map(|bucket| bucket.count);
        // What was early is below every bound.
        let count = counts.fold(series.early, u64::saturating_add);
        let le = bound as f64 / 1e9;
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{le:?}\"}} {count}");
    }
    let sum = series.mean.map_or(0.0, |mean| seconds(mean) * series.count as f64);
    let count = series.count;
    let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
    let _ = writeln!(out, "{name}_sum{{{labels}}} {sum:?}");
    let _ = writeln!(out, "{name}_count{{{labels}}} {count}");
}

/// A run with its labels, and those of each of its series of whole latencies.
struct LabelledRun<'a> {
    run: &'a CountedRun,
    labels: String,
    series: Vec<String>,
}

/// No two runs have the same labels, nor two series of a run: the format has each once. Where runs
/// have one name their ids tell them apart; where these are one too, and of series, a number.
fn labelled(runs: &[CountedRun]) -> io::Result<Vec<LabelledRun<'_>>> {
    let (mut names, mut known) = (HashMap::new(), HashSet::new());
    for run in runs {
        *names.entry(run.document.name.as_str()).or_insert(0_u32) += 1;
    }
    let mut bytes = 0_usize;
    let labelled = runs.iter().map(|run| {
        let mut labels = run_labels(run);
        if names.get(run.document.name.as_str()).is_some_and(|count| *count > 1) {
            let _ = write!(labels, ",id=\"{}\"", escaped(&run.document.id));
        }
        let labels = single(labels, &mut known);
        let mut names = HashSet::new();
        let of_series = |(_, series): (usize, &SeriesSummary)| {
            let own = single(format!("{labels},series=\"{}\"", escaped(&series.name)), &mut names);
            // They are kept twice, and are in the result several times.
            bytes = bytes.saturating_add(own.len());
            check_size(bytes).map(|()| own)
        };
        let series = run.with_responses().map(of_series).collect::<io::Result<_>>()?;
        Ok(LabelledRun { run, labels, series })
    });
    labelled.collect()
}

/// These labels, with a number behind where they are known.
fn single(labels: String, known: &mut HashSet<String>) -> String {
    let further = (2_u64..).map(|number| format!("{labels},copy=\"{number}\""));
    let mut all = std::iter::once(labels.clone()).chain(further);
    let found = all.find(|labels| !known.contains(labels)).unwrap_or_default();
    known.insert(found.clone());
    found
}

fn run_labels(run: &CountedRun) -> String {
    let document = &run.document;
    let loads = document.loads.iter().map(|load| load.name.as_str()).collect::<Vec<_>>().join("+");
    let labels = [
        ("host", document.facts.hostname.as_str()),
        ("kernel", &document.facts.kernel),
        ("run", &document.name),
        ("probe", document.probe.name()),
        ("load", &loads),
    ];
    labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).join(",")
}

/// A value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::export::counted::tests::{measured, text};

    #[test]
    fn buckets_ascend_and_end_in_the_count() {
        let runs = [measured()];
        let written = text(write(&runs));
        for (_, series) in runs[0].wakeups() {
            let own = |line: &&str| {
                line.starts_with("tardy_latency_seconds_bucket")
                    && line.contains(&format!("series=\"{}\"", series.name))
            };
            let counts: Vec<u64> = written
                .lines()
                .filter(own)
                .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
                .collect();
            assert_eq!(counts.len(), 23);
            assert!(counts.is_sorted(), "{counts:?}");
            assert_eq!(counts.last(), Some(&series.count));
        }
        assert!(written.contains("le=\"1e-6\"") && written.contains("le=\"0.002\""), "{written}");
        // The collector of node_exporter refuses a file with time stamps.
        let plain = written.lines().filter(|line| !line.starts_with('#'));
        assert!(
            plain.into_iter().all(|line| line.rsplit_once("} ").unwrap().1.parse::<f64>().is_ok())
        );
    }

    #[test]
    fn without_a_distribution_there_is_no_histogram() {
        let mut run = measured();
        let whole = run.document.series.iter_mut().find(|series| !series.is_stage()).unwrap();
        whole.above = whole.count;
        let own = format!("series=\"{}\"", whole.name);
        let (count, mean) = (whole.count, seconds(whole.mean.unwrap()));
        let runs = [run];
        for written in [text(write(&runs)), text(write_open(&runs))] {
            let lines: Vec<&str> = written.lines().filter(|line| line.contains(&own)).collect();
            assert!(!lines.iter().any(|line| line.contains("tardy_latency_seconds_")), "{lines:?}");
            for (name, value) in
                [("tardy_samples", count as f64), ("tardy_latency_mean_seconds", mean)]
            {
                let of = |line: &&&str| line.starts_with(&format!("{name}{{"));
                let line = lines.iter().find(of).unwrap();
                assert_eq!(line.rsplit(' ').next().unwrap().parse(), Ok(value), "{line}");
            }
        }
    }

    #[test]
    fn each_family_is_announced_once_and_open_metrics_has_its_end() {
        let runs = [measured(), measured()];
        for written in [text(write(&runs)), text(write_open(&runs))] {
            for name in ["tardy_latency_seconds", "tardy_run_valid"] {
                let announced = format!("# TYPE {name} ");
                assert_eq!(written.matches(&announced).count(), 1, "{written}");
            }
        }
        assert!(text(write_open(&runs)).ends_with("\n# EOF\n"));
    }

    /// What identifies a sample: no two may have it in one text.
    fn identities(written: &str) -> Vec<&str> {
        let samples = written.lines().filter(|line| !line.starts_with('#'));
        samples.map(|line| line.rsplit_once(' ').unwrap().0).collect()
    }

    #[test]
    fn runs_of_one_name_and_series_of_one_name_have_labels_of_their_own() {
        let mut other = measured();
        other.document.id = "20260101-000000.000-0000".into();
        let mut twin = measured();
        let series = &mut twin.document.series;
        let name = series[0].name.clone();
        series.iter_mut().for_each(|own| own.name.clone_from(&name));
        let runs = [measured(), measured(), other, twin];
        let one = identities(&text(write(&runs[..1]))).len();
        assert!(one > 30);
        for written in [text(write(&runs)), text(write_open(&runs))] {
            let all = identities(&written);
            let single: HashSet<&str> = all.iter().copied().collect();
            assert_eq!(all.len(), single.len(), "{written}");
            assert!(all.len() >= 4 * one && all.iter().any(|labels| labels.contains("copy=")));
            assert!(written.contains(",id=\"20260101-000000.000-0000\""), "{written}");
        }
    }

    #[test]
    fn a_name_does_not_end_its_label() {
        let mut run = measured();
        run.document.name = "a\"b\\c\nd".into();
        let written = text(write(&[run]));
        assert!(written.contains(r#"run="a\"b\\c\nd""#), "{written}");
    }
}

//! The text format of Prometheus (prometheus.io/docs/instrumenting/exposition_formats), as the
//! textfile collector of node_exporter takes it, and OpenMetrics 1.0. No time stamps: the collector
//! refuses them. The histogram is that of one finished run, and not a counter that grows: when the
//! next run takes its place, its counts begin anew. Of a series without a distribution there are
//! gauges alone: in a histogram all its samples would be too large for every bound.

use std::{collections::HashSet, fmt::Write as _, io};

use super::{
    check_size,
    counted::{CountedBucket, CountedRun},
    identity::{Identity, repeats},
    rows::RunColumns,
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

/// Which metrics are written. A fleet pays for each of them, every night.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MetricScope {
    /// Those that alerts and dashboards ask for.
    Usual,
    /// All, with histograms.
    All,
}

/// For Prometheus.
pub(super) fn write(runs: &[CountedRun], scope: MetricScope) -> io::Result<Vec<u8>> {
    Ok(families(runs, Dialect::Prometheus, scope)?.into_bytes())
}

/// OpenMetrics.
pub(super) fn write_open(runs: &[CountedRun], scope: MetricScope) -> io::Result<Vec<u8>> {
    Ok((families(runs, Dialect::OpenMetrics, scope)? + "# EOF\n").into_bytes())
}

fn families(runs: &[CountedRun], dialect: Dialect, scope: MetricScope) -> io::Result<String> {
    let mut out = String::new();
    let runs = labelled(runs)?;
    if scope == MetricScope::All {
        dialect.head(&mut out, "tardy_latency_seconds", "histogram", "Latencies of the run.");
        for LabelledRun { run, series, .. } in &runs {
            for ((number, summary), labels) in run.with_responses().zip(series) {
                if summary.is_distributed() {
                    histogram(&mut out, run, (number, summary), labels);
                    check_size(out.len())?;
                }
            }
        }
    }
    for gauge in SERIES_GAUGES.iter().filter(|gauge| gauge.scope <= scope) {
        dialect.head(&mut out, gauge.name, "gauge", gauge.help);
        for LabelledRun { run, series, .. } in &runs {
            for ((_, summary), labels) in run.with_responses().zip(series) {
                if let Some(value) = (gauge.value)(summary) {
                    let _ = writeln!(out, "{}{{{labels}}} {value}", gauge.name);
                    check_size(out.len())?;
                }
            }
        }
    }
    let judges = runs.iter().any(|own| !own.run.document.judged_cycles().is_empty());
    for gauge in DEADLINE_GAUGES.iter().filter(|gauge| judges && gauge.scope <= scope) {
        dialect.head(&mut out, gauge.name, "gauge", gauge.help);
        runs.iter().for_each(|run| deadlines(&mut out, run, gauge));
    }
    for gauge in RUN_GAUGES.iter().filter(|gauge| gauge.scope <= scope) {
        dialect.head(&mut out, gauge.name, "gauge", gauge.help);
        for LabelledRun { run, labels, .. } in &runs {
            let _ = writeln!(out, "{}{{{labels}}} {}", gauge.name, (gauge.value)(run));
        }
    }
    let (name, help) = ("tardy_run_conditions", "1; the labels have the conditions in words.");
    dialect.head(&mut out, name, "gauge", help);
    for LabelledRun { labels, in_words, .. } in &runs {
        let _ = writeln!(out, "{name}{{{labels},{in_words}}} 1");
    }
    Ok(out)
}

impl Dialect {
    /// Announces a metric.
    fn head(self, out: &mut String, name: &str, kind: &str, help: &str) {
        let _ = writeln!(out, "# TYPE {name} {kind}");
        if self == Self::OpenMetrics && name.ends_with("_seconds") {
            let _ = writeln!(out, "# UNIT {name} seconds");
        }
        let _ = writeln!(out, "# HELP {name} {help}");
    }
}

/// A metric with one value.
struct Gauge<F> {
    name: &'static str,
    help: &'static str,
    scope: MetricScope,
    value: F,
}

type SeriesValue = fn(&SeriesSummary) -> Option<f64>;
type DeadlineValue = fn(&JudgedCycles<'_>) -> f64;
type RunValue = fn(&CountedRun) -> f64;

const SERIES_GAUGES: [Gauge<SeriesValue>; 6] = [
    Gauge {
        name: "tardy_samples",
        help: "Latencies of the run.",
        scope: MetricScope::All,
        value: |series| Some(series.count as f64),
    },
    Gauge {
        name: "tardy_latency_min_seconds",
        help: "The smallest latency of the run.",
        scope: MetricScope::All,
        value: |series| Some(seconds(series.min?)),
    },
    Gauge {
        name: "tardy_latency_mean_seconds",
        help: "The mean latency of the run.",
        scope: MetricScope::All,
        value: |series| Some(seconds(series.mean?)),
    },
    Gauge {
        name: "tardy_latency_max_seconds",
        help: "The largest latency of the run.",
        scope: MetricScope::Usual,
        value: |series| Some(seconds(series.max?)),
    },
    Gauge {
        name: "tardy_latency_p999_seconds",
        help: "The 99.9th percentile of the run.",
        scope: MetricScope::Usual,
        value: |series| series.percentiles.get("99.9").map(|ns| *ns as f64 / 1e9),
    },
    Gauge {
        name: "tardy_missed_periods",
        help: "Periods that passed without a wake-up.",
        scope: MetricScope::Usual,
        value: |series| series.missed.map(|missed| missed as f64),
    },
];

/// Of the responses of attached threads.
const DEADLINE_GAUGES: [Gauge<DeadlineValue>; 3] = [
    Gauge {
        name: "tardy_deadline_seconds",
        help: "The deadline of each cycle.",
        scope: MetricScope::All,
        value: |own| seconds(own.deadline_ns),
    },
    Gauge {
        name: "tardy_cycles",
        help: "Cycles, and periods that passed without one.",
        scope: MetricScope::All,
        value: |own| own.cycles as f64,
    },
    Gauge {
        name: "tardy_missed_deadlines",
        help: "Those that missed the deadline.",
        scope: MetricScope::Usual,
        value: |own| own.missed as f64,
    },
];

const RUN_GAUGES: [Gauge<RunValue>; 3] = [
    Gauge {
        name: "tardy_run_valid",
        help: "1 if nothing speaks against the metrics of the run.",
        scope: MetricScope::Usual,
        value: |run| f64::from(u8::from(run.document.validity == Validity::Valid)),
    },
    Gauge {
        name: "tardy_run_start_time_seconds",
        help: "When the run began, s since the epoch.",
        scope: MetricScope::Usual,
        value: |run| {
            let start = run.document.started_at.parse::<jiff::Timestamp>();
            start.map_or(0.0, |start| start.as_millisecond() as f64 / 1e3)
        },
    },
    Gauge {
        name: "tardy_run_duration_seconds",
        help: "How long it measured.",
        scope: MetricScope::All,
        value: |run| run.document.duration_ns as f64 / 1e9,
    },
];

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// The values of a gauge for the attached threads of a run that have a deadline.
fn deadlines(out: &mut String, labelled: &LabelledRun<'_>, gauge: &Gauge<DeadlineValue>) {
    let judged = labelled.run.document.judged_cycles();
    for ((_, summary), labels) in labelled.run.with_responses().zip(&labelled.series) {
        let is_it = |own: &&JudgedCycles<'_>| own.response.name == summary.name;
        if let Some(own) = judged.iter().find(is_it) {
            let _ = writeln!(out, "{}{{{labels}}} {}", gauge.name, (gauge.value)(own));
        }
    }
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
    /// Labels that have in words what the others stand for.
    in_words: String,
    series: Vec<String>,
}

/// No two runs have the same labels, nor two series of a run: the format has each once. Runs that
/// repeat others are told apart by their number, and series by another.
fn labelled(runs: &[CountedRun]) -> io::Result<Vec<LabelledRun<'_>>> {
    let columns: Vec<RunColumns<'_>> =
        runs.iter().map(|run| RunColumns::of(&run.document)).collect();
    // Names of a target's own labels are taken when it is scraped: `host` would be `exported_host`.
    let plain: Vec<String> =
        columns.iter().map(|own| text(Identity::of(own, "tardy_").iter())).collect();
    let mut bytes = 0_usize;
    let numbered = plain.iter().zip(repeats(&columns, &plain));
    let labelled = runs.iter().zip(&columns).zip(numbered).map(|((run, columns), numbered)| {
        let labels = match numbered {
            (labels, 1) => labels.clone(),
            (labels, repeat) => format!("{labels},repeat=\"{repeat}\""),
        };
        let mut names = HashSet::new();
        let of_series = |(_, series): (usize, &SeriesSummary)| {
            let own = single(format!("{labels},series=\"{}\"", escaped(&series.name)), &mut names);
            // They are kept twice, and are in the result several times.
            bytes = bytes.saturating_add(own.len());
            check_size(bytes).map(|()| own)
        };
        let series = run.with_responses().map(of_series).collect::<io::Result<_>>()?;
        let words = [("cpu_model", columns.cpu_model()), ("text", &columns.conditions_text)];
        Ok(LabelledRun { run, labels, in_words: text(words.into_iter()), series })
    });
    labelled.collect()
}

/// These labels, with a number behind if they are known.
fn single(labels: String, known: &mut HashSet<String>) -> String {
    let further = (2_u64..).map(|number| format!("{labels},copy=\"{number}\""));
    let mut all = std::iter::once(labels.clone()).chain(further);
    let found = all.find(|labels| !known.contains(labels)).unwrap_or_default();
    known.insert(found.clone());
    found
}

/// Labels as they are written.
fn text<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    labels
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
        .collect::<Vec<_>>()
        .join(",")
}

/// A value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::{CountedRun, HashSet, MetricScope, seconds};
    use crate::exchange::export::counted::tests::{measured, text};

    /// All metrics.
    fn all(runs: &[CountedRun]) -> String {
        text(super::write(runs, MetricScope::All))
    }

    fn all_open(runs: &[CountedRun]) -> String {
        text(super::write_open(runs, MetricScope::All))
    }

    #[test]
    fn buckets_ascend_and_end_in_the_count() {
        let runs = [measured()];
        let written = all(&runs);
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
        for written in [all(&runs), all_open(&runs)] {
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
        for written in [all(&runs), all_open(&runs)] {
            for name in ["tardy_latency_seconds", "tardy_run_valid"] {
                let announced = format!("# TYPE {name} ");
                assert_eq!(written.matches(&announced).count(), 1, "{written}");
            }
        }
        assert!(all_open(&runs).ends_with("\n# EOF\n"));
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
        let one = identities(&all(&runs[..1])).len();
        assert!(one > 30);
        for written in [all(&runs), all_open(&runs)] {
            let all = identities(&written);
            let single: HashSet<&str> = all.iter().copied().collect();
            assert_eq!(all.len(), single.len(), "{written}");
            assert!(all.len() >= 4 * one && all.iter().any(|labels| labels.contains("copy=")));
            // The same measurement four times.
            assert!((2..=4).all(|n| written.contains(&format!(",repeat=\"{n}\""))), "{written}");
        }
    }

    #[test]
    fn the_next_night_continues_the_metrics_of_the_one_before() {
        let night = |day: u32| {
            let repeat = |hour: u32| {
                let mut run = measured();
                run.document.id = format!("2026010{day}-0{hour}0000.000-0000");
                run.document.name = format!("nightly-{day}-{hour}");
                run.document.started_at = format!("2026-01-0{day}T0{hour}:00:00Z");
                run
            };
            [repeat(2), repeat(1), repeat(3)]
        };
        let (first, second) = (all(&night(1)), all(&night(2)));
        assert_eq!(identities(&first), identities(&second));
        assert!(!first.contains("nightly"), "{first}");
        // Numbered by their starts, whatever their order on the command line.
        let starts = first.lines().filter(|line| line.starts_with("tardy_run_start_time_seconds"));
        let starts: Vec<(bool, &str)> = starts
            .map(|line| (line.contains("repeat="), line.rsplit(' ').next().unwrap()))
            .collect();
        assert_eq!(starts, [(true, "1767232800"), (false, "1767229200"), (true, "1767236400")]);
    }

    #[test]
    fn a_fleet_gets_few_metrics_unless_it_asks_for_all() {
        let run = [measured()];
        let series = run[0].wakeups().count();
        let usual = text(super::write(&run, MetricScope::Usual));
        let names: Vec<&str> =
            identities(&usual).into_iter().map(|own| own.split('{').next().unwrap()).collect();
        let of_series = ["tardy_latency_max_seconds", "tardy_latency_p999_seconds"];
        assert!(
            of_series.iter().all(|own| names.iter().filter(|name| *name == own).count() == series)
        );
        assert!(names.contains(&"tardy_missed_periods") && names.contains(&"tardy_run_valid"));
        assert_eq!(names.len(), 3 * series + 3, "{names:?}");
        assert!(identities(&all(&run)).len() > 4 * names.len());
    }

    #[test]
    fn labels_have_the_conditions_and_never_the_name_of_a_target() {
        let mut run = measured();
        run.document.setup.found.policy = Some("fifo 90".into());
        run.document.loads.clear();
        let labels = [("rack", "r12"), ("no word", "x")];
        run.document.facts.labels = labels.map(|(name, value)| (name.into(), value.into())).into();
        let written = all(&[run]);
        let line = written.lines().find(|line| line.starts_with("tardy_run_valid")).unwrap();
        for own in [
            "tardy_host=",
            "policy=\"fifo 90\"",
            "interval=\"",
            "load=\"idle\"",
            "label_rack=\"r12\"",
        ] {
            assert!(line.contains(own), "{own}: {line}");
        }
        assert!(!line.contains("{host=") && !line.contains(",host=") && !line.contains("no word"));
        let words = written.lines().find(|line| line.starts_with("tardy_run_conditions")).unwrap();
        assert!(words.contains("text=\"CPUs="), "{words}");
    }

    #[test]
    fn a_name_does_not_end_its_label() {
        let mut run = measured();
        run.document.facts.hostname = "a\"b\\c\nd".into();
        let written = all(&[run]);
        assert!(written.contains(r#"tardy_host="a\"b\\c\nd""#), "{written}");
    }
}

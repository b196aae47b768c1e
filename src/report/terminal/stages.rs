//! The stages of traced wake-ups, CPU by CPU, and what tracing costs.

use std::collections::HashMap;

use super::{DIM, LEAST, push_table};
use crate::{
    report::{
        sample_name::{self, SampleName},
        table::{Table, us},
    },
    run::{Document, KnownCost, SeriesSummary, TraceBy, TraceCost, TraceMode},
    units::Nanos,
};

/// Overhead of monitoring external threads, as `docs/explanation/overhead.md` measures it.
const ATTACHED_COST: &str = "its cost is not measured in this run; on Debian's 6.1 in virtual time \
                             it adds 1.2 us to a wake-up by a timer (1.4 us with --deadline), and \
                             0.7 us to one of another thread; other machines had up to 3.5 us; \
                             tracing (--trace off spares it) adds to both";

/// Series whose stages are shown at most: those with the largest latencies.
const SHOWN: usize = 8;

/// A table with a row for each stage and one for the whole; nothing without stages.
pub(super) fn push(out: &mut String, document: &Document, width: Option<usize>) {
    let stages = by_series(document);
    let mut traced: Vec<(usize, &SeriesSummary)> = document
        .wakeups()
        .enumerate()
        .filter(|(_, total)| stages.contains_key(total.name.as_str()))
        .collect();
    if traced.is_empty() {
        return;
    }
    let all = traced.len();
    traced.sort_by_key(|(_, total)| std::cmp::Reverse(total.max));
    traced.truncate(SHOWN);
    traced.sort_by_key(|(number, _)| *number);
    let headings = ["us, by stage", "", "min", "mean", "p50", "p99", "p99.9", "max"];
    let mut table = Table::new(2, &headings);
    for (_, total) in &traced {
        let mut name = sample_name::series(&total.name);
        for stage in stages.get(total.name.as_str()).into_iter().flatten() {
            table.row(row(
                &std::mem::take(&mut name),
                stage.stage.as_deref().unwrap_or_default(),
                stage,
            ));
        }
        table.row(row(&name, "total", total));
    }
    out.push('\n');
    push_table(out, &table, &LEAST, width);
    if all > SHOWN {
        out.push_str(&format!(
            "{DIM}the {SHOWN} of {all} series with the largest latencies; --json has all{DIM:#}\n"
        ));
    }
    out.push('\n');
}

/// The stages of each series that has any, by its name, in the order of time.
fn by_series(document: &Document) -> HashMap<&str, Vec<&SeriesSummary>> {
    let mut stages: HashMap<&str, Vec<&SeriesSummary>> = HashMap::new();
    for series in &document.series {
        // What a thread did after it woke up is not part of that, and stands in a separate table.
        if let Some(of) = &series.stage_of
            && !series.is_response()
        {
            stages.entry(of).or_default().push(series);
        }
    }
    stages
}

fn row(name: &str, stage: &str, series: &SeriesSummary) -> Vec<String> {
    let percentile = |name: &str| {
        let ns = series.percentiles.get(name).and_then(|ns| i64::try_from(*ns).ok());
        let few = ns.is_some() && series.uncertain.iter().any(|few| few == name);
        format!("{}{}", if few { "~" } else { "" }, us(ns))
    };
    let [p50, p99, p999] = ["50", "99", "99.9"].map(percentile);
    vec![name.into(), stage.into(), us(series.min), us(series.mean), p50, p99, p999, us(series.max)]
}

/// Overhead of tracing for a median wake-up in virtual time, with Debian's 6.1
/// (docs/explanation/overhead.md).
const IN_COUNTED_TIME: [(TraceMode, &str); 2] =
    [(TraceMode::Stages, "1.2 us"), (TraceMode::Peaks, "2.7 us")];

/// What tracing costs, as far as that is known of this machine.
pub(super) fn push_cost(out: &mut String, document: &Document) {
    let trace = &document.trace;
    if matches!(trace.found, TraceMode::Off | TraceMode::Auto) {
        return;
    }
    let sample = SampleName::of(document);
    let one = sample.one();
    if document.attached.is_some() {
        out.push_str(&format!("looking: {ATTACHED_COST}\n"));
        return;
    }
    let text = match (&trace.cost, &trace.known_cost) {
        // A thread that never sleeps uses what it gets, with and without.
        (Some(cost), _) if sample == SampleName::Gap => added(cost, one),
        (Some(cost), _) => format!("{}, {}", added(cost, one), used(cost, one)),
        (None, Some(KnownCost { name, loads, cost, .. })) => {
            let loads = if loads.is_empty() { "no load started".into() } else { loads.join(" + ") };
            format!("{}, as the run {name} found here ({loads})", added(cost, one))
        }
        // Those of a task are too few to measure it by.
        (None, None) if sample == SampleName::Frame => {
            format!(
                "adds to each {one} what it adds to a wake-up: timer measures it by --calibrate"
            )
        }
        (None, None) => {
            let counted = IN_COUNTED_TIME.iter().find(|(mode, _)| *mode == trace.found);
            let is_bpf = trace.by() == TraceBy::Bpf;
            let counted = counted.filter(|_| sample == SampleName::WakeUp && is_bpf);
            let counted = counted.map_or_else(String::new, |(_, figure)| {
                format!("; on Debian's 6.1 in virtual time it adds {figure} to the median {one}")
            });
            format!("overhead per {one} not measured here (use --calibrate){counted}")
        }
    };
    out.push_str(&format!("tracing: {text}\n"));
}

fn added(cost: &TraceCost, one: &str) -> String {
    let (low, high) = cost.added_range_ns;
    format!(
        "adds {} to the median {one} ({} to {} in {} pairs of {})",
        Nanos(cost.added_median_ns),
        Nanos(low),
        Nanos(high),
        cost.pairs,
        Nanos(cost.slice_ns),
    )
}

fn used(cost: &TraceCost, one: &str) -> String {
    let (without, with) = cost.cpu_per_wakeup_ns;
    format!(
        "{} CPU time to each {one} and {:.1}% of one CPU in all",
        Nanos(with.saturating_sub(without)),
        cost.added_cpu_percent,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn each_stage_stands_under_its_series_and_above_the_whole() {
        let names = ["cpu0", "cpu0/irq", "cpu0/user", "cpu1", "cpu1/irq"];
        let mut out = String::new();
        push(&mut out, &fixture::of("timer", &names), None);
        let text = anstream::adapter::strip_str(&out).to_string();
        let first: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
        let rows = [
            vec![],
            vec!["us,", "by"],
            vec!["cpu0", "irq"],
            vec!["user", "30.0"],
            vec!["total", "30.0"],
            vec!["cpu1", "irq"],
            vec!["total", "30.0"],
            vec![],
        ];
        assert_eq!(first, rows, "{text}");
    }

    #[test]
    fn untraced_runs_have_no_such_table_and_many_cpus_a_short_one() {
        let mut out = String::new();
        push(&mut out, &fixture::of("timer", &["cpu0"]), None);
        assert_eq!(out, "");
        let many = (0..9).flat_map(|cpu| [format!("cpu{cpu}"), format!("cpu{cpu}/irq")]);
        let many: Vec<String> = many.collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        push(&mut out, &fixture::of("timer", &many), None);
        assert!(out.contains("the 8 of 9 series"), "{out}");
    }

    fn cost(added_median_ns: i64) -> TraceCost {
        TraceCost {
            pairs: 4,
            slice_ns: 500_000_000,
            median_without_ns: 7_000,
            median_with_ns: 8_200,
            added_median_ns,
            added_range_ns: (900, 1_600),
            cpu_per_wakeup_ns: (5_000, 6_500),
            added_cpu_percent: 0.4,
        }
    }

    fn said(document: &Document) -> String {
        let mut out = String::new();
        push_cost(&mut out, document);
        out
    }

    #[test]
    fn every_traced_run_says_what_tracing_costs_as_far_as_that_is_known() {
        let mut timer = fixture::of("timer", &["cpu0"]);
        assert_eq!(said(&timer), "", "it was not traced");
        timer.trace.found = TraceMode::Peaks;
        let unknown = "tracing: overhead per wake-up not measured here (use --calibrate); on \
                       Debian's 6.1 in virtual time it adds 2.7 us to the \
                       median wake-up\n";
        assert_eq!(said(&timer), unknown);
        timer.trace.known_cost = Some(KnownCost {
            run: "i".into(),
            name: "before".into(),
            loads: vec!["hackbench".into()],
            cost: cost(1_200),
        });
        let known = "tracing: adds 1.20 us to the median wake-up (900 ns to 1.60 us in 4 pairs of \
                     500 ms), as the run before found here (hackbench)\n";
        assert_eq!(said(&timer), known);
        timer.trace.cost = Some(cost(1_300));
        assert!(said(&timer).contains("adds 1.30 us to the median wake-up"), "its own comes first");
        assert!(said(&timer).contains("1.50 us CPU time to each wake-up and 0.4% of one CPU"));
    }

    #[test]
    fn of_messages_no_figure_is_named_that_nobody_measured() {
        let mut pingpong = fixture::of("pingpong", &["rtt"]);
        pingpong.trace.found = TraceMode::Stages;
        let text = said(&pingpong);
        assert!(text.contains("--calibrate") && !text.contains("Debian"), "{text}");
    }

    #[test]
    fn the_figures_in_counted_time_are_those_of_the_documentation() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/explanation/overhead.md");
        let documented = std::fs::read_to_string(file).unwrap();
        for figure in ["8.40 us (+1.19)", "9.86 us (+2.65)", "8.54 us (+1.24)", "10.0 us (+2.72)"] {
            assert!(documented.contains(figure), "{figure}");
        }
    }
}

//! The stages of traced wake-ups, CPU by CPU, and what tracing costs.

use std::collections::HashMap;

use super::{DIM, LEAST, push_table};
use crate::{
    report::{
        sample_name,
        table::{Table, us},
    },
    run::{Document, SeriesSummary},
    units::Nanos,
};

/// Series whose stages are shown at most: those with the largest latencies.
const SHOWN: usize = 8;

/// A table with a row for each stage and one for the whole; nothing where there are none.
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
                std::mem::take(&mut name),
                stage.stage.as_deref().unwrap_or_default(),
                stage,
            ));
        }
        table.row(row(name, "total", total));
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
        if let Some(of) = &series.stage_of {
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

/// What `--calibrate` found.
pub(super) fn push_cost(out: &mut String, document: &Document) {
    let Some(cost) = &document.trace.cost else { return };
    let (low, high) = cost.added_range_ns;
    let (without, with) = cost.cpu_per_wakeup_ns;
    let one = sample_name::SampleName::of(document).one();
    out.push_str(&format!(
        "tracing: adds {} to the median {one} ({} to {} in {} pairs of {}), {} CPU time to each \
         {one} and {:.1} % of one CPU in all\n",
        Nanos(cost.added_median_ns),
        Nanos(low),
        Nanos(high),
        cost.pairs,
        Nanos(cost.slice_ns),
        Nanos(with - without),
        cost.added_cpu_percent,
    ));
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
}

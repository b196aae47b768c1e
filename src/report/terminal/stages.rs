//! The stages of traced wake-ups, CPU by CPU, and what tracing costs.

use super::{DIM, push_lines, us};
use crate::{
    report::table::Table,
    run::{Document, SeriesSummary},
    units::Nanos,
};

/// Series whose stages are shown at most: those with the largest latencies.
const SHOWN: usize = 8;

/// A table with a row for each stage and one for the whole; nothing where there are none.
pub(super) fn push(out: &mut String, document: &Document) {
    let mut traced: Vec<&SeriesSummary> =
        document.wakeups().filter(|total| of(document, total).next().is_some()).collect();
    if traced.is_empty() {
        return;
    }
    let all = traced.len();
    traced.sort_by_key(|total| std::cmp::Reverse(total.max));
    traced.truncate(SHOWN);
    traced.sort_by_key(|total| document.series.iter().position(|known| known.name == total.name));
    let headings = ["us, by stage", "", "min", "mean", "p50", "p99", "p99.9", "max"];
    let mut table = Table::new(2, &headings);
    for total in &traced {
        let mut name = total.name.as_str();
        for stage in of(document, total) {
            table.row(row(std::mem::take(&mut name), stage.stage().unwrap_or_default(), stage));
        }
        table.row(row(name, "total", total));
    }
    out.push('\n');
    push_lines(out, &table);
    if all > SHOWN {
        out.push_str(&format!(
            "{DIM}the {SHOWN} of {all} series with the largest latencies; --json has all{DIM:#}\n"
        ));
    }
    out.push('\n');
}

/// The stages of a series, in the order of time.
fn of<'a>(
    document: &'a Document,
    total: &'a SeriesSummary,
) -> impl Iterator<Item = &'a SeriesSummary> {
    let is_own = move |name: &str| name.split_once('/').is_some_and(|(own, _)| own == total.name);
    document.series.iter().filter(move |series| is_own(&series.name))
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
    out.push_str(&format!(
        "tracing: adds {} to the median wake-up ({} to {} in {} pairs of {}), {} CPU time to each \
         wake-up and {:.1} % of one CPU in all\n",
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
    use serde_json::json;

    use super::*;

    fn document(names: &[String]) -> Document {
        let mut document: Document = serde_json::from_value(json!({
            "schema_version": 1, "id": "i", "name": "n", "argv": [], "status": "complete",
            "validity": "valid", "caveats": [], "probe": {"name": "timer", "parameters": {}},
            "loads": [], "setup": {"asked": {}, "found": {}},
            "trace": {"asked": "off", "found": "off"}, "facts": crate::run::Facts::default(),
            "started_at": "", "ended_at": null, "duration_ns": 1, "start_monotonic_ns": 0,
            "series": [],
        }))
        .unwrap();
        let summary = |name: &String| {
            let summary = json!({
                "name": name, "cpu": 0, "unit": "ns", "count": 1, "missed": null, "early": 0,
                "above": 0, "min": 5_000, "mean": 5_000, "stddev": 0, "max": 5_000,
                "percentiles": {"50": 5_000}, "uncertain": [], "scheduled": null,
            });
            serde_json::from_value(summary).unwrap()
        };
        document.series = names.iter().map(summary).collect();
        document
    }

    #[test]
    fn each_stage_stands_under_its_series_and_above_the_whole() {
        let names = ["cpu0", "cpu0/irq", "cpu0/user", "cpu1", "cpu1/irq"].map(String::from);
        let mut out = String::new();
        push(&mut out, &document(&names));
        let text = anstream::adapter::strip_str(&out).to_string();
        let first: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
        let rows = [
            vec![],
            vec!["us,", "by"],
            vec!["cpu0", "irq"],
            vec!["user", "5.0"],
            vec!["total", "5.0"],
            vec!["cpu1", "irq"],
            vec!["total", "5.0"],
            vec![],
        ];
        assert_eq!(first, rows, "{text}");
    }

    #[test]
    fn untraced_runs_have_no_such_table_and_many_cpus_a_short_one() {
        let mut out = String::new();
        push(&mut out, &document(&["cpu0".into()]));
        assert_eq!(out, "");
        let many = (0..9).flat_map(|cpu| [format!("cpu{cpu}"), format!("cpu{cpu}/irq")]);
        push(&mut out, &document(&many.collect::<Vec<_>>()));
        assert!(out.contains("the 8 of 9 series"), "{out}");
    }
}

//! Figures that are not latencies, row by row of a part and plan by plan.

use crate::{
    analysis::replicates::{ReplicatedFigure, ReplicatedResult, judge as judge_replicates},
    report::{
        plan_sheet::PlanSheet,
        suite_page::{FigureChange, FigureRange, PartFigure},
    },
    run::FigureUnit,
};

/// Differences below this are called the same, as those of latencies.
const MARGIN: f64 = 0.05;

/// What the standard deviation of a run's mean is at least, as a share of it: figures are read with
/// three digits.
const LEAST_SD: f64 = 0.001;

/// Each figure of each row, in the order of the first run that has it.
pub(super) fn of(rows: &[String], sheet: &PlanSheet) -> Vec<PartFigure> {
    let runs: Vec<_> = sheet
        .listed
        .iter()
        .zip(&sheet.found)
        .filter_map(|(place, found)| Some((place, &found.run.as_ref()?.document.figures)))
        .filter(|(place, _)| rows.contains(&place.row))
        .collect();
    let mut names: Vec<(&str, &FigureUnit)> = Vec::new();
    for figure in runs.iter().flat_map(|(_, figures)| *figures) {
        let name = (figure.name.as_str(), &figure.unit);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let range_of = |row: &String, column: &String, (name, unit): (&str, &FigureUnit)| {
        let own = runs.iter().filter(|(place, _)| place.row == *row && place.column == *column);
        let same = own
            .flat_map(|(_, figures)| *figures)
            .filter(|figure| figure.name == name && figure.unit == *unit);
        range(same.filter_map(|figure| figure.mean).collect())
    };
    let mut found = Vec::new();
    for (name, unit) in names {
        for row in rows {
            let cells: Vec<_> =
                sheet.columns.iter().map(|column| range_of(row, column, (name, unit))).collect();
            let unit = unit.as_str().to_owned();
            let row = row.clone();
            if cells.iter().any(Option::is_some) {
                found.push(PartFigure { name: name.into(), unit, row, cells, change: None });
            }
        }
    }
    found
}

fn range(mut values: Vec<f64>) -> Option<FigureRange> {
    values.retain(|mean| mean.is_finite());
    values.sort_by(f64::total_cmp);
    let (low, high) = (*values.first()?, *values.last()?);
    let count = values.len();
    let (below, above) = (*values.get((count - 1) / 2)?, *values.get(count / 2)?);
    Some(FigureRange { median: f64::midpoint(below, above), low, high, values })
}

/// Judges all figures of two plans together, where each plan has one column.
pub(super) fn judge(figures: Vec<&mut PartFigure>) {
    let asked: Vec<ReplicatedFigure> =
        figures.iter().filter_map(|figure| replicated(figure)).collect();
    let mut results = judge_replicates(&asked).into_iter();
    for figure in figures {
        if replicated(figure).is_some() {
            let is_more_better = more_is_better(&figure.name, &figure.unit) == Some(true);
            figure.change = results.next().flatten().map(|result| change(&result, is_more_better));
        }
    }
}

/// The logarithms of both sides, so that less is better; nothing where neither is, and where a
/// value is not above 0.
fn replicated(figure: &PartFigure) -> Option<ReplicatedFigure> {
    let [Some(a), Some(b)] = figure.cells.as_slice() else { return None };
    let sign = if more_is_better(&figure.name, &figure.unit)? { -1.0 } else { 1.0 };
    let is_positive = a.values.iter().chain(&b.values).all(|value| *value > 0.0);
    let logs = |range: &FigureRange| range.values.iter().map(|value| sign * value.ln()).collect();
    let (least_sd, margin) = (LEAST_SD, MARGIN.ln_1p());
    is_positive.then(|| ReplicatedFigure { a: logs(a), b: logs(b), least_sd, margin })
}

fn change(result: &ReplicatedResult, is_more_better: bool) -> FigureChange {
    let (mean, low, high) = match is_more_better {
        true => (-result.mean, -result.high, -result.low),
        false => (result.mean, result.low, result.high),
    };
    FigureChange {
        ratio: mean.exp(),
        low: low.exp(),
        high: high.exp(),
        verdict: result.verdict,
        needed: result.needed,
    }
}

/// `None` if neither is.
fn more_is_better(name: &str, unit: &str) -> Option<bool> {
    let last = name.rsplit('/').next().unwrap_or_default();
    match (unit, last) {
        ("MB/s", _) | ("percent", "cpu" | "deadlines") => Some(true),
        ("us", _) | ("percent", _) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::AbVerdict;

    #[test]
    fn a_range_has_the_median_of_the_means_and_leaves_out_what_is_none() {
        assert_eq!(range(vec![f64::NAN]), None);
        let found = range(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((found.median, found.low, found.high), (2.5, 1.0, 4.0));
        assert_eq!(found.values, [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn a_verdict_goes_by_what_the_figure_is_and_by_how_its_runs_scatter() {
        let figure = |name: &str, unit: &str, [a, b]: [[f64; 3]; 2]| PartFigure {
            name: name.into(),
            unit: unit.into(),
            row: "r".into(),
            cells: vec![range(a.to_vec()), range(b.to_vec())],
            change: None,
        };
        let doubled = [[100.0, 101.0, 102.0], [200.0, 202.0, 204.0]];
        let scattered = [[100.0, 200.0, 300.0], [200.0, 100.0, 400.0]];
        let mut figures = [
            figure("pipe/64KiB", "MB/s", doubled),
            figure("fork", "us", doubled),
            figure("cpu0/lost", "percent", doubled),
            figure("audio/deadlines", "percent", doubled),
            figure("work", "loops/ms", doubled),
            figure("open_call", "us", scattered),
            figure("switch/2", "us", [[-1.0, 1.0, 1.0], [1.0; 3]]),
        ];
        judge(figures.iter_mut().collect());
        let change = |at: usize| figures[at].change.as_ref();
        let verdicts = [0, 1, 2, 3, 5].map(|at| change(at).unwrap().verdict);
        use AbVerdict::{Better, Inconclusive, Worse};
        assert_eq!(verdicts, [Better, Worse, Worse, Better, Inconclusive]);
        assert_eq!((change(4), change(6)), (None, None), "no direction, no logarithm");
        let pipe = change(0).unwrap();
        assert!((pipe.ratio - 2.0).abs() < 0.01, "{pipe:?}");
        assert!(1.0 < pipe.low && pipe.low < pipe.ratio && pipe.ratio < pipe.high, "{pipe:?}");
    }
}

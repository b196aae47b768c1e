//! Was the run long enough? Per series what was not seen, and levels of longer times.

use super::{DIM, push_lines};
use crate::{
    plain::plain,
    report::{
        how_long::StatementCost,
        sample_name,
        table::{Table, us},
        tail::{RunTail, SeriesTail, TIMES_S, TailLevel},
    },
    units::{Nanos, span},
};

const HEADINGS: [&str; 3] = ["an hour", "a day", "a year"];

/// Pushes a line a series, the table of those that have a model, and why others have none.
pub(super) fn push(out: &mut String, known: &RunTail) {
    if known.series.is_empty() {
        return;
    }
    out.push('\n');
    for series in &known.series {
        out.push_str(&format!(
            "{}: none over {} in {}; with 95% confidence, later ones (or clusters of them) come \
             less than once in {} under this load\n",
            sample_name::series(&series.name),
            Nanos(series.max_ns),
            span(known.observed_s),
            span(series.rarer_than_s),
        ));
    }
    let mut headings = vec!["us, exceeded once in"];
    headings.extend(HEADINGS);
    let mut table = Table::new(1, &headings);
    let mut modelled = known.series.iter().filter(|series| series.model.is_some()).peekable();
    if modelled.peek().is_some() {
        modelled.for_each(|series| table.row(row(series)));
        push_lines(out, &table.lines());
        let far = |series: &SeriesTail| {
            let mut levels = series.model.iter().flat_map(|model| &model.levels);
            levels.any(|level| level.is_extrapolation)
        };
        out.push_str(&format!(
            "{DIM}by a model of the tail, if this mix of load continues{DIM:#}\n"
        ));
        if known.series.iter().any(far) {
            out.push_str(&format!(
                "{DIM}! extrapolation of a model: more than ten times the time that was \
                 observed{DIM:#}\n"
            ));
        }
    }
    for series in &known.series {
        if let Some(refusal) = &series.refusal {
            let name = sample_name::series(&series.name);
            out.push_str(&format!("{name}: no level of a longer time: {refusal}\n"));
        }
    }
    out.push('\n');
}

/// A line a series: what a statement takes.
pub(super) fn push_how_long(out: &mut String, found: &[StatementCost]) {
    for StatementCost { statement, series, why, .. } in found {
        let series = sample_name::series(series);
        out.push_str(&format!("{} on {series}: {why}\n", plain(statement)));
    }
    out.push_str(if found.is_empty() { "" } else { "\n" });
}

/// `41.2 (38.0..47.9)`, marked where it is an extrapolation.
fn row(series: &SeriesTail) -> Vec<String> {
    let mut row = vec![sample_name::series(&series.name).into_owned()];
    let levels = || series.model.iter().flat_map(|model| &model.levels);
    row.extend(TIMES_S.map(|time| {
        levels().find(|level| level.period_s == time).map_or_else(|| "-".into(), cell)
    }));
    row
}

fn cell(level: &TailLevel) -> String {
    let ns = |ns: u64| us(Some(i64::try_from(ns).unwrap_or(i64::MAX)));
    let mark = if level.is_extrapolation { "!" } else { "" };
    let high = level.high_ns.map_or_else(|| "-".into(), ns);
    format!("{mark}{} ({}..{high})", ns(level.level_ns), ns(level.low_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tail::TailModel;

    #[test]
    fn levels_have_intervals_and_marks_and_refusals_their_reasons() {
        let level = |period_s: f64, is_extrapolation| TailLevel {
            period_s,
            level_ns: 52_000,
            low_ns: 48_000,
            high_ns: Some(61_000),
            is_extrapolation,
        };
        let model = TailModel {
            threshold_ns: 20_000,
            clusters: 120,
            fit_probability: 0.4,
            shape: 0.0,
            shape_low: -0.1,
            shape_high: 0.1,
            levels: vec![level(TIMES_S[0], false), level(TIMES_S[1], true)],
        };
        let series = |name: &str, model: Option<TailModel>| SeriesTail {
            name: name.into(),
            max_ns: 47_000,
            rarer_than_s: 1_200.0,
            pieces: "interval_maxima".into(),
            refusal: model.is_none().then(|| "no reason".into()),
            model,
        };
        let series = vec![series("cpu0", Some(model)), series("cpu1", None)];
        let mut out = String::new();
        push(&mut out, &RunTail { observed_s: 3_600.0, series });
        let text = anstream::adapter::strip_str(&out).to_string();
        assert!(text.contains("cpu0: none over 47.0 us in"), "{text}");
        assert!(text.contains("52.0 (48.0..61.0)  !52.0 (48.0..61.0)"), "{text}");
        assert!(text.contains("! extrapolation of a model"), "{text}");
        assert!(text.contains("cpu1: no level of a longer time: no reason"), "{text}");
    }
}

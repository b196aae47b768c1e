//! A comparison in sentences: what the figures came to, and which cause differs.

use super::SideComparison;
use crate::{
    analysis::bands::LATE,
    report::{causes::words::label, change, comparison_page::ShiftPoint, sample_name},
    run::{AbVerdict, BandDifference, ComparedFigureRow},
    units::Nanos,
};

/// Percentiles that are said where nothing is judged.
const DESCRIBED: [&str; 3] = ["50", "99", "99.9"];

/// A difference below this share of the mean of A is not examined.
const SMALL: f64 = 0.05;

/// What is said of the figures, with their intervals.
pub(super) fn of_figures(one: &SideComparison) -> String {
    if one.judged { judged(&one.figures) } else { described(one) }
}

/// Verdicts on rows that were judged, the worst first.
fn judged(figures: &[ComparedFigureRow]) -> String {
    let main = figures.first().map(|row| row.series.is_none());
    let own = |row: &&ComparedFigureRow| main == Some(row.series.is_none());
    let of = |verdict: AbVerdict| -> Vec<String> {
        let rows = figures.iter().filter(own).filter(|row| row.verdict == verdict);
        let words = |row: &ComparedFigureRow| {
            let series = row.series.as_deref().map(sample_name::series);
            let series = series.map_or_else(String::new, |name| format!("{name} "));
            let change = change::with_interval(row.ratio, row.low, row.high);
            format!("{series}{} {change}", row.figure)
        };
        rows.map(words).collect()
    };
    let said = [
        (AbVerdict::Worse, "worse"),
        (AbVerdict::Better, "better"),
        (AbVerdict::Same, "the same within the margin"),
        (AbVerdict::Inconclusive, "undecided"),
    ];
    let part = |(verdict, words): (AbVerdict, &str)| {
        let figures = of(verdict);
        (!figures.is_empty()).then(|| format!("{words}: {}", figures.join(", ")))
    };
    let parts: Vec<String> = said.into_iter().filter_map(part).collect();
    if parts.is_empty() { "nothing was judged".into() } else { parts.join("; ") }
}

/// The shift of a few percentiles, of all series together or of the first.
fn described(one: &SideComparison) -> String {
    let main = one.shift.first().map(|point| &point.series);
    let find = |name: &&str| {
        let is_it = |point: &&ShiftPoint| Some(&point.series) == main && point.percentile == **name;
        one.shift.iter().find(is_it)
    };
    let words = |point: &ShiftPoint| {
        let change = change::with_interval(point.ratio, point.low, point.high);
        format!("p{} {change}", point.percentile)
    };
    let all: Vec<String> = DESCRIBED.iter().filter_map(find).map(words).collect();
    let series = main.and_then(|name| name.as_deref()).map(sample_name::series);
    let of = series.map_or_else(String::new, |name| format!("{name}: "));
    let what = if all.is_empty() { "too few runs to say more".into() } else { all.join(", ") };
    format!("{of}{what}")
}

/// "Above p99 samples are late by 24 ms less in B, 83% of which is hard interrupt: timer."
pub(super) fn of_band(band: &BandDifference, samples: &str) -> String {
    let total = band.b_ns - band.a_ns;
    let place = match band.band.as_str() {
        LATE => "Cycles over the deadline ".to_owned(),
        name => format!("Above {name} {samples} "),
    };
    if total.abs() < SMALL * band.a_ns.max(1.0) {
        return format!("{place}are late by the same in both, within 5% on average.");
    }
    let than = if total > 0.0 { "more" } else { "less" };
    let ns = |ns: f64| Nanos(ns.abs().round() as i64).to_string();
    let said = format!("{place}are late by {} {than} in B on average", ns(total));
    let is_of_it = |part: f64| part * total > 0.0;
    let first = band.causes.iter().find(|cause| is_of_it(cause.difference_ns()));
    let Some(cause) = first else {
        return format!("{said}; no analyzed cause explains it.");
    };
    let name = label(cause.cause, &cause.name);
    let share = cause.difference_ns() / total;
    if share > 1.0 {
        let own = ns(cause.difference_ns());
        return format!("{said}: {own} {than} of {name}, and more of others against it.");
    }
    format!("{said}, {:.0}% of which is {name}.", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{CauseDifference, peaks::Cause};

    fn band(a_ns: f64, b_ns: f64, causes: &[(f64, f64)]) -> BandDifference {
        let cause = |(a_ns, b_ns): &(f64, f64)| CauseDifference {
            cause: Cause::Softirq,
            name: "NET_RX".into(),
            a_ns: *a_ns,
            b_ns: *b_ns,
        };
        let causes = causes.iter().map(cause).collect();
        BandDifference { band: "p99".into(), a_ns, b_ns, blamed_a: 1.0, blamed_b: 1.0, causes }
    }

    #[test]
    fn the_cause_that_differs_is_named_with_its_share_of_the_difference() {
        let of = |band| of_band(&band, "wake-ups");
        let worse = of(band(100e3, 140e3, &[(10e3, 40e3)]));
        assert!(worse.starts_with("Above p99 wake-ups are late by 40.0 us more in B"), "{worse}");
        assert!(worse.contains("75% of which is") && worse.contains("NET_RX"), "{worse}");
        let better = of(band(140e3, 100e3, &[(10e3, 40e3), (70e3, 20e3)]));
        assert!(better.contains("40.0 us less in B on average: 50.0 us less of"), "{better}");
        let alike = of(band(100e3, 101e3, &[(10e3, 11e3)]));
        assert!(alike.contains("the same in both"), "{alike}");
        let unknown = of(band(100e3, 140e3, &[(40e3, 10e3)]));
        assert!(unknown.contains("no analyzed cause"), "{unknown}");
    }
}

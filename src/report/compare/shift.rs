//! The shift function of B against A: the factor at each percentile with its interval, as data and
//! as lines of a terminal.

use super::LoggedRun;
use crate::{
    analysis::{
        ab::{
            figure::{COMPARED_FIGURES, ComparedFigure},
            measured::{MeasuredBlock, MeasuredFigure},
        },
        replicates::{FEWEST_RUNS, ReplicatedFigure},
        shift::{Known, Shift, of_replicates, of_runs},
    },
    report::{
        comparison_page::{ShiftBasis, ShiftPoint},
        intervals::NamedInterval,
    },
    run::summary::ENOUGH_BEYOND,
};

/// The shift at every percentile, all series together first where they can be pooled; `series` are
/// those that all runs have.
pub(super) fn of(
    a: &[&LoggedRun],
    b: &[&LoggedRun],
    series: &[String],
    pools: bool,
) -> Vec<ShiftPoint> {
    let mut groups: Vec<Option<&str>> = if pools { vec![None] } else { Vec::new() };
    groups.extend(series.iter().map(|name| Some(name.as_str())));
    let all: Vec<&str> = series.iter().map(String::as_str).collect();
    let of = |own: Option<&str>| match (a, b) {
        ([a], [b]) => of_one(a, b, own),
        _ => of_several(a, b, own, &own.map_or_else(|| all.clone(), |own| vec![own])),
    };
    groups.into_iter().flat_map(of).collect()
}

fn point(series: Option<&str>, name: &str, sides: (f64, f64), shift: Shift) -> ShiftPoint {
    ShiftPoint {
        series: series.map(str::to_owned),
        percentile: name.into(),
        a_ns: sides.0,
        b_ns: sides.1,
        ratio: shift.ratio,
        low: shift.low,
        high: shift.high,
        basis: ShiftBasis::Runs,
    }
}

/// From the intervals that both runs have.
fn of_one(a: &LoggedRun, b: &LoggedRun, series: Option<&str>) -> Vec<ShiftPoint> {
    let own = |run: &LoggedRun| -> Option<Vec<NamedInterval>> {
        let known = run.intervals()?;
        match series {
            None => known.pooled.clone(),
            Some(name) => {
                Some(known.series.iter().find(|own| own.name == name)?.percentiles.clone())
            }
        }
    };
    let (Some(a), Some(b)) = (own(a), own(b)) else { return Vec::new() };
    let known = |own: &NamedInterval| {
        let ns = |ns: u64| ns as f64;
        Known { value: ns(own.value_ns), low: own.low_ns.map(ns), high: own.high_ns.map(ns) }
    };
    let one = |of_a: &NamedInterval| {
        let of_b = b.iter().find(|own| own.percentile == of_a.percentile)?;
        let (known_a, known_b) = (known(of_a), known(of_b));
        let sides = (known_a.value, known_b.value);
        let shift = of_runs(known_a, known_b);
        let point = point(series, &of_a.percentile, sides, shift);
        Some(ShiftPoint { basis: ShiftBasis::Samples, ..point })
    };
    a.iter().filter_map(one).collect()
}

/// The percentiles that every block has enough samples beyond, as latencies.
fn measured(blocks: &[MeasuredBlock]) -> Vec<(&'static str, MeasuredFigure)> {
    let is_carried = |figure: ComparedFigure| {
        let share = figure.percent().map(|percent| 1.0 - percent / 100.0);
        share.is_some_and(|share| {
            let enough = ENOUGH_BEYOND as f64 - 1e-6;
            blocks.iter().all(|block| block.counts.len() as f64 * share >= enough)
        })
    };
    let figures = COMPARED_FIGURES.iter().filter(|(figure, _)| is_carried(*figure));
    figures
        .map(|(figure, name)| {
            (name.trim_start_matches('p'), MeasuredFigure::described(*figure, blocks))
        })
        .collect()
}

fn mean(logs: &[f64]) -> f64 {
    (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
}

/// From how much the runs of a side differ.
fn of_several(
    a: &[&LoggedRun],
    b: &[&LoggedRun],
    series: Option<&str>,
    names: &[&str],
) -> Vec<ShiftPoint> {
    if a.len().min(b.len()) < FEWEST_RUNS {
        return Vec::new();
    }
    let blocks: Vec<MeasuredBlock> = a.iter().chain(b).map(|run| run.block(names)).collect();
    let one = |(name, measured): (&'static str, MeasuredFigure)| {
        let (of_a, of_b) = measured.logs.split_at(a.len().min(measured.logs.len()));
        let figure = ReplicatedFigure {
            a: of_a.to_vec(),
            b: of_b.to_vec(),
            least_sd: measured.least_sd / 2.0_f64.sqrt(),
            margin: 0.0,
        };
        point(series, name, (mean(of_a), mean(of_b)), of_replicates(&figure))
    };
    self::measured(&blocks).into_iter().map(one).collect()
}

/// Places of the picture from the left end of its axis to the right one.
const PLACES: usize = 49;

/// The axis reaches at least so far to either side: 5%.
const LEAST_REACH: f64 = 0.05;

/// The shift of all series together (or of each, where they cannot be pooled) as a picture of
/// lines: `[--o--]` around the factor, `:` for no difference, `<` and `>` for an end
/// that is not known.
pub(super) fn lines(points: &[ShiftPoint]) -> Vec<(String, String)> {
    let reach = |point: &ShiftPoint| {
        let all = [Some(point.ratio), point.low, point.high];
        all.into_iter().flatten().map(|ratio| ratio.ln().abs()).fold(0.0, f64::max)
    };
    let reach = points.iter().map(reach).fold(LEAST_REACH.ln_1p(), f64::max);
    let at = |ratio: f64| {
        let place = (ratio.ln() / reach + 1.0) / 2.0 * (PLACES - 1) as f64;
        (place.round().max(0.0) as usize).min(PLACES - 1)
    };
    let mut found: Vec<(String, String)> =
        points.iter().map(|point| (format!("p{}", point.percentile), line(point, &at))).collect();
    let ends = [(-reach).exp(), reach.exp()].map(crate::report::change::ratio);
    let between = PLACES.saturating_sub(ends[0].len() + ends[1].len() + 1);
    let left = between / 2;
    let axis = format!("{}{}1{}{}", ends[0], " ".repeat(left), " ".repeat(between - left), ends[1]);
    found.push((String::new(), axis));
    found
}

fn line(point: &ShiftPoint, at: &impl Fn(f64) -> usize) -> String {
    let mut places = vec![' '; PLACES];
    let (low, high) = (point.low.map(at), point.high.map(at));
    let (from, to) = (low.unwrap_or(0), high.unwrap_or(PLACES - 1));
    let has_interval = low.is_some() || high.is_some();
    for (number, place) in places.iter_mut().enumerate() {
        let is_within = has_interval && (from..=to).contains(&number);
        *place = match number {
            _ if number == at(point.ratio) => 'o',
            _ if is_within && number == from => {
                if low.is_some() {
                    '['
                } else {
                    '<'
                }
            }
            _ if is_within && number == to => {
                if high.is_some() {
                    ']'
                } else {
                    '>'
                }
            }
            _ if number == at(1.0) => ':',
            _ if is_within => '-',
            _ => ' ',
        };
    }
    places.into_iter().collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shifted(ratio: f64, low: Option<f64>, high: Option<f64>) -> ShiftPoint {
        let shift = Shift { ratio, low, high };
        point(None, "99", (1_000.0, 1_000.0 * ratio), shift)
    }

    #[test]
    fn a_line_has_the_factor_its_interval_and_no_difference_at_their_places() {
        let points = [
            shifted(2.0, Some(1.5), Some(4.0)),
            shifted(1.0, Some(0.8), None),
            shifted(0.5, None, None),
        ];
        let found = lines(&points);
        assert_eq!(found[0].1, "                        :      [----o-----------]");
        assert!(found[1].1.contains('[') && found[1].1.ends_with('>'), "{}", found[1].1);
        assert!(!found[2].1.contains('-') && found[2].1.ends_with(':'), "{}", found[2].1);
        assert!(found[3].1.starts_with("0.250") && found[3].1.ends_with("4.00"), "{found:?}");
    }
}

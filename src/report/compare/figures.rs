//! The figures of B beside those of A: all series together, and each by itself.

use super::{CompareOptions, LoggedRun, delays, side::is_pooled};
use crate::{
    analysis::{
        ab::{
            figure::{COMPARED_FIGURES, ComparedFigure},
            measured::{MeasuredAs, MeasuredBlock, MeasuredFigure},
            verdict::overall,
        },
        replicates::{FEWEST_RUNS, ReplicatedFigure, ReplicatedResult, judge},
    },
    run::{AbVerdict, ComparedFigureRow, ComparedUnit},
};

/// What is said of all figures.
pub(super) struct FoundFigures {
    pub verdict: AbVerdict,
    pub judged: bool,
    pub figures: Vec<ComparedFigureRow>,
    pub described: Vec<ComparedFigureRow>,
}

/// A figure of every run, before it is judged.
struct Measured {
    row: ComparedFigureRow,
    sides: ReplicatedFigure,
    is_judged: bool,
}

/// Whether samples of all series may be put together, and are of several.
pub(super) fn pools(a: &[&LoggedRun], b: &[&LoggedRun], series: &[String]) -> bool {
    let documents = || a.iter().chain(b).map(|run| run.document());
    series.len() > 1 && documents().all(is_pooled) && !delays::are_of_several_programs(documents())
}

/// All figures. The verdict rests on all series together where they can be pooled; then each series
/// is judged by itself, as its own family: it shows where a difference is.
pub(super) fn of(
    a: &[&LoggedRun],
    b: &[&LoggedRun],
    series: &[String],
    options: &CompareOptions,
) -> FoundFigures {
    let each: Vec<Option<&str>> = series.iter().map(|name| Some(name.as_str())).collect();
    let pools = pools(a, b, series);
    let families: Vec<Vec<Option<&str>>> = if pools { vec![vec![None], each] } else { vec![each] };
    let all: Vec<&str> = series.iter().map(String::as_str).collect();
    let mut found = FoundFigures {
        verdict: AbVerdict::Inconclusive,
        judged: a.len().min(b.len()) >= FEWEST_RUNS,
        figures: Vec::new(),
        described: Vec::new(),
    };
    for (number, family) in families.iter().enumerate() {
        let mut measured = Vec::new();
        for own in family {
            let names: Vec<&str> = own.map_or_else(|| all.clone(), |own| vec![own]);
            measured.extend(measure(a, b, *own, &names, options));
        }
        let verdicts = found.take(measured);
        if number == 0 {
            found.verdict = overall(&verdicts);
        }
    }
    found
}

impl FoundFigures {
    /// Takes all judgements back, where the sides cannot be judged however many runs they have.
    pub(super) fn describe(&mut self) {
        (self.verdict, self.judged) = (AbVerdict::Inconclusive, false);
        for row in self.figures.iter_mut().chain(&mut self.described) {
            (row.low, row.high, row.pairs, row.pairs_needed) = (None, None, 0, None);
            row.verdict = AbVerdict::Inconclusive;
        }
    }

    /// Judges the figures of a family together; the verdicts of those that are to be judged.
    fn take(&mut self, family: Vec<Measured>) -> Vec<AbVerdict> {
        let (judged, described): (Vec<Measured>, Vec<Measured>) =
            family.into_iter().partition(|figure| figure.is_judged);
        let sides: Vec<ReplicatedFigure> =
            judged.iter().map(|figure| figure.sides.clone()).collect();
        let mut verdicts = Vec::new();
        for (figure, result) in judged.into_iter().zip(judge(&sides)) {
            let row = result.map_or(figure.row.clone(), |result| decided(figure.row, &result));
            verdicts.push(row.verdict);
            self.figures.push(row);
        }
        self.described.extend(described.into_iter().map(|figure| figure.row));
        verdicts
    }
}

fn decided(row: ComparedFigureRow, result: &ReplicatedResult) -> ComparedFigureRow {
    ComparedFigureRow {
        low: Some(result.low.exp()),
        high: Some(result.high.exp()),
        pairs_needed: result.needed,
        verdict: result.verdict,
        ..row
    }
}

/// Every figure of these series put together.
fn measure(
    a: &[&LoggedRun],
    b: &[&LoggedRun],
    series: Option<&str>,
    names: &[&str],
    options: &CompareOptions,
) -> Vec<Measured> {
    let runs = || a.iter().chain(b);
    let blocks: Vec<MeasuredBlock> = runs().map(|run| run.block(names)).collect();
    let has_schedule = runs().all(|run| run.has_schedule(names));
    let figures = COMPARED_FIGURES.iter().map(|(figure, _)| *figure);
    let is_there = |figure: &ComparedFigure| has_schedule || *figure != ComparedFigure::Missed;
    let of = |figure| one(figure, &blocks, a.len(), b.len(), series, options);
    figures.filter(is_there).map(of).collect()
}

fn one(
    figure: ComparedFigure,
    blocks: &[MeasuredBlock],
    of_a: usize,
    of_b: usize,
    series: Option<&str>,
    options: &CompareOptions,
) -> Measured {
    let runs = of_a.min(of_b);
    let measured = if runs >= FEWEST_RUNS {
        // One block a run; where one is too short for a percentile, shares above a common
        // threshold are compared.
        MeasuredFigure::of(figure, blocks, blocks.len())
    } else {
        MeasuredFigure::described(figure, blocks)
    };
    let (a, b) = measured.logs.split_at(of_a.min(measured.logs.len()));
    let margin = options.margin.unwrap_or_else(|| figure.default_margin());
    let sides = ReplicatedFigure {
        a: a.to_vec(),
        b: b.to_vec(),
        // That of a pair, which has two runs.
        least_sd: measured.least_sd / 2.0_f64.sqrt(),
        margin: margin.ln_1p(),
    };
    let judged_runs = if runs >= FEWEST_RUNS { runs } else { 0 };
    let mut row = row(&measured, &sides, series, judged_runs);
    if measured.measured_as == MeasuredAs::ShareMissed {
        let (of_a, of_b) = blocks.split_at(of_a.min(blocks.len()));
        row.a = as_it_was(of_a).unwrap_or(row.a);
        row.b = as_it_was(of_b).unwrap_or(row.b);
    }
    Measured { row, sides, is_judged: options.judged.contains(&figure) }
}

/// The share of missed periods as it was, of one run and if none was missed: for its logarithm, and
/// so in the ratio, half a period more counts as missed, as none would have no ratio. Of several
/// runs the ratio is of geometric means, which may be far from the share of all periods together.
fn as_it_was(blocks: &[MeasuredBlock]) -> Option<f64> {
    let is_it = blocks.len() == 1 || blocks.iter().all(|block| block.missed == 0);
    is_it.then(|| missed(blocks))
}

/// The share of all periods of these runs together that were missed.
pub(super) fn missed(blocks: &[MeasuredBlock]) -> f64 {
    let sum = |of: fn(&MeasuredBlock) -> u64| blocks.iter().map(of).sum::<u64>() as f64;
    sum(|block| block.missed) / sum(|block| block.periods).max(1.0)
}

/// A figure side by side, not judged yet.
fn row(
    measured: &MeasuredFigure,
    sides: &ReplicatedFigure,
    series: Option<&str>,
    runs: usize,
) -> ComparedFigureRow {
    let mean = |logs: &[f64]| {
        let mean = (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp();
        // A latency is a whole number, which is lost on the way through its logarithm.
        let is_one = logs.len() == 1 && measured.measured_as == MeasuredAs::Latency;
        if is_one { mean.round() } else { mean }
    };
    let (a, b) = (mean(&sides.a), mean(&sides.b));
    let (unit, above_ns) = match measured.measured_as {
        MeasuredAs::Latency => (ComparedUnit::Ns, None),
        MeasuredAs::ShareAbove(ns) => (ComparedUnit::Share, Some(ns)),
        MeasuredAs::ShareMissed => (ComparedUnit::Share, None),
    };
    ComparedFigureRow {
        series: series.map(str::to_owned),
        figure: measured.figure.name().into(),
        unit,
        above_ns,
        lower_is_better: true,
        a,
        b,
        ratio: b / a,
        low: None,
        high: None,
        margin: sides.margin.exp_m1(),
        floor: None,
        pairs: u32::try_from(runs).unwrap_or(u32::MAX),
        pairs_needed: None,
        verdict: AbVerdict::Inconclusive,
    }
}

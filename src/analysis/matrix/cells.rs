//! One load under one kernel: its figures, a number a phase offset.

use std::collections::BTreeMap;

use super::{FIGURES, Figure, MatrixCell, in_order};
use crate::{
    analysis::ratio,
    run::{Document, Effect, LatencyView, SeriesSummary, Validity, messages::ROUND_TRIP},
};

/// What makes a phase offset: two runs of one cell with the same are one throw of the dice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhaseId {
    /// Its number.
    pub seed: u32,
    /// How long its guest waited; none if that is not recorded.
    pub wait_ns: Option<u64>,
    /// Bytes of padding on the kernel's command line.
    pub padding: u16,
}

/// What a run has for each name of [`FIGURES`], ns, and whether that is uncertain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFigures {
    /// By the place in [`FIGURES`].
    pub values: [Option<i64>; FIGURES.len()],
    /// By the same place: fewer than 10 samples beyond it.
    pub uncertain: [bool; FIGURES.len()],
}

/// The figures of a run, per scheduled period where many were missed: of its series the largest
/// counts.
#[must_use]
pub fn figures_of(run: &Document) -> RunFigures {
    let view = LatencyView::of(run);
    let value = |name: &str| {
        let of_series = |series: &SeriesSummary| match name {
            "max" => series.max,
            _ => view.percentiles(series).get(name).and_then(|ns| i64::try_from(*ns).ok()),
        };
        whole(run).filter_map(of_series).max()
    };
    let is_uncertain =
        |name: &str| whole(run).any(|own| view.uncertain(own).iter().any(|other| other == name));
    RunFigures { values: FIGURES.map(value), uncertain: FIGURES.map(is_uncertain) }
}

/// What counts of a run: where there is a round trip, the ways there and back are parts of it.
pub fn whole(run: &Document) -> impl Iterator<Item = &SeriesSummary> {
    let has_round_trip = run.wakeups().any(|series| series.name == ROUND_TRIP);
    run.wakeups().filter(move |series| !has_round_trip || series.name == ROUND_TRIP)
}

/// The first run of each phase offset.
pub(super) fn phases<'a>(own: &[usize], runs: &'a [Document]) -> BTreeMap<PhaseId, &'a Document> {
    let mut phases = BTreeMap::new();
    for run in own.iter().filter_map(|at| runs.get(*at)) {
        if let Some(lab) = &run.facts.lab {
            let id = PhaseId { seed: lab.seed, wait_ns: lab.wait_ns, padding: lab.padding };
            phases.entry(id).or_insert(run);
        }
    }
    phases
}

pub(super) fn cell(own: &[usize], runs: &[Document]) -> Option<MatrixCell> {
    let documents: Vec<&Document> = own.iter().filter_map(|at| runs.get(*at)).collect();
    let phases = phases(own, runs);
    let figures: Vec<RunFigures> = phases.values().map(|run| figures_of(run)).collect();
    let series = || documents.iter().flat_map(|run| whole(run));
    let broken = documents.iter().filter(|run| run.validity == Validity::Invalid);
    let codes = broken.flat_map(|run| &run.caveats);
    let codes = codes.filter(|caveat| caveat.effect == Effect::Invalidates);
    let codes = in_order(codes.map(|caveat| caveat.code.as_str()));
    (!phases.is_empty()).then(|| MatrixCell {
        phases: phases.len(),
        runs: own.to_vec(),
        samples: series().map(|series| series.count).fold(0, u64::saturating_add),
        figures: (0..FIGURES.len()).filter_map(|at| figure_over(at, &figures)).collect(),
        invalid: codes.into_iter().map(str::to_owned).collect(),
        causes: Vec::new(),
    })
}

/// The figure at this place of [`FIGURES`] over runs; nothing if none of them has it.
#[must_use]
pub fn figure_over(at: usize, phases: &[RunFigures]) -> Option<Figure> {
    let name = *FIGURES.get(at)?;
    let mut values: Vec<i64> =
        phases.iter().filter_map(|own| own.values.get(at).copied().flatten()).collect();
    values.sort_unstable();
    let (low, high) = (*values.first()?, *values.last()?);
    let middle = |place: usize| values.get(place).copied().unwrap_or_default();
    let numbers: Vec<f64> = values.iter().map(|ns| *ns as f64).collect();
    // A maximum grows with the number of phases: its median is not an estimate of anything beyond.
    let interval = (name != "max").then(|| ratio::median(&numbers, 0.95).ok()).flatten();
    Some(Figure {
        name: name.into(),
        low,
        high,
        median: middle((values.len() - 1) / 2).midpoint(middle(values.len() / 2)),
        median_low: interval.map(|found| found.low as i64),
        median_high: interval.map(|found| found.high as i64),
        uncertain: phases.iter().any(|own| own.uncertain.get(at).copied().unwrap_or(false)),
    })
}

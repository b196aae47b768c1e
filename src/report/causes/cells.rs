//! Who held the CPU in the worst wake-ups of each cell of a matrix.

use std::collections::BTreeMap;

use super::{Causes, total};
use crate::{
    analysis::{
        bands::Band,
        matrix::{CellCause, Matrix, MatrixCell},
    },
    run::{Run, names, peaks::Cause},
};

/// Most causes of a cell, and the smallest share that is shown.
const MOST: usize = 3;
const LEAST: f64 = 0.05;

/// Fills in what the worst wake-ups of each cell were spent on, from its runs that were traced.
pub fn fill(matrix: &mut Matrix, runs: &[Run]) {
    for cell in matrix.loads.iter_mut().flat_map(|row| &mut row.cells).flatten() {
        cell.causes = causes(cell, runs);
    }
}

fn causes(cell: &MatrixCell, runs: &[Run]) -> Vec<CellCause> {
    let own = cell.runs.iter().filter_map(|at| runs.get(*at));
    largest(&own.filter_map(worst).collect::<Vec<Band>>())
}

/// What the worst samples of all these runs were spent on.
pub fn over_all(runs: &[&Run]) -> Vec<CellCause> {
    largest(&runs.iter().filter_map(|run| worst(run)).collect::<Vec<Band>>())
}

/// What most of the time of these bands together was blamed on.
fn largest(bands: &[Band]) -> Vec<CellCause> {
    let all = bands.iter().fold(0_u64, |sum, band| sum.saturating_add(band.ns));
    let mut shares: BTreeMap<(Cause, &str), f64> = BTreeMap::new();
    for cause in bands.iter().flat_map(|band| &band.causes) {
        let share = cause.ns as f64 / all.max(1) as f64;
        *shares.entry((cause.cause, cause.name.as_str())).or_default() += share;
    }
    let shares = shares.into_iter().filter(|(_, share)| *share >= LEAST);
    let found = shares.map(|((cause, name), share)| CellCause { cause, name: name.into(), share });
    let mut found: Vec<CellCause> = found.collect();
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    found.truncate(MOST);
    found
}

/// The worst band of a run; nothing where its wake-ups were not blamed. What cannot be read is
/// reported where the run itself is shown.
fn worst(run: &Run) -> Option<Band> {
    // Most runs of a matrix were not traced, and reading all latencies takes time.
    if !run.path.join(names::BLAME).exists() {
        return None;
    }
    let (total, read) = total(run);
    let mut causes = read.ok().map(|()| Causes::of(run, &total))?;
    causes.blame.as_ref()?;
    causes.bands.pop()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::bands::CauseInBand,
        testing::{cpu_ns, eventually},
    };

    fn band(ns: u64, causes: Vec<(String, u64)>) -> Band {
        let cause = |(name, ns): (String, u64)| CauseInBand {
            cause: Cause::Thread,
            name,
            ns,
            share: 0.0,
            inferred: 0.0,
            series: Vec::new(),
        };
        let causes = causes.into_iter().map(cause).collect();
        Band { name: "worst".into(), from: 0, to: 0, wakeups: 10, ns, blamed_share: 1.0, causes }
    }

    #[test]
    fn the_largest_causes_of_all_bands_are_named_whatever_their_figures() {
        let named = |name: &str, ns| vec![(name.to_owned(), ns)];
        let found = largest(&[
            band(60, [named("a", 50), named("b", 10)].concat()),
            band(40, [named("b", 30), named("c", 4), named("d", 6)].concat()),
        ]);
        let names: Vec<(&str, f64)> =
            found.iter().map(|cause| (cause.name.as_str(), cause.share)).collect();
        assert_eq!(names, [("a", 0.5), ("b", 0.4), ("d", 0.06)]);
        let absurd = band(u64::MAX, named("a", u64::MAX));
        assert_eq!(largest(&[absurd.clone(), absurd]).len(), 1);
    }

    #[test]
    fn the_time_grows_with_the_number_of_names_and_not_with_its_square() {
        let of = |count: u64| {
            let causes = |_| band(count, (0..count).map(|at| (format!("task{at}"), 1)).collect());
            let bands: Vec<Band> = (0..2).map(causes).collect();
            cpu_ns(|| largest(&bands))
        };
        let is_fast = || of(8_000) < 80 * of(500);
        assert!(eventually(is_fast), "8000 names take 80 times as long as 500");
    }
}

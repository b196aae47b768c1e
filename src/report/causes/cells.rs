//! Who held the CPU in the worst wake-ups of each cell of a matrix.

use super::{Causes, total};
use crate::{
    analysis::{
        bands::Band,
        matrix::{CellCause, Matrix, MatrixCell},
    },
    run::{Run, names},
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
    let bands: Vec<Band> = own.filter_map(worst).collect();
    let all: u64 = bands.iter().map(|band| band.ns).sum();
    let mut found: Vec<CellCause> = Vec::new();
    for cause in bands.iter().flat_map(|band| &band.causes) {
        let share = cause.ns as f64 / all.max(1) as f64;
        let same =
            |known: &&mut CellCause| (known.cause, &known.name) == (cause.cause, &cause.name);
        match found.iter_mut().find(same) {
            Some(known) => known.share += share,
            None => found.push(CellCause { cause: cause.cause, name: cause.name.clone(), share }),
        }
    }
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    found.retain(|cause| cause.share >= LEAST);
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

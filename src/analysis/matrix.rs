//! Runs of the lab as a matrix: a row a load, a column a kernel, and what differs for certain.
//!
//! Where time is counted, the same start phase gives the same samples, and another one gives
//! others: one phase is one throw of the dice. So each figure is a range over start phases, and two
//! kernels differ only where their ranges do not touch. A range of five is no confidence interval;
//! that two of them fall apart by chance has a probability of 2 in 252.

mod remarks;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::Hash,
};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::run::{
    Document, ProbeRecord, RunParameters, SeriesSummary, Validity, facts::LabFacts,
    messages::ROUND_TRIP, peaks::Cause,
};

/// With fewer start phases than this of either kernel, nothing is judged.
pub const PHASES_NEEDED: usize = 5;

/// Larger matrices are refused: a short `lab.json` can name a thousand million cells.
pub const MOST_KERNELS: usize = 256;
const MOST_LOADS: usize = 1_024;

/// Ranges that are apart by less than this factor are not distinguished: smaller factors are not
/// printed, and histograms are not much finer.
const SMALLEST_FACTOR: f64 = 1.01;

/// What is compared, by its name in `run.json`; the largest sample is `max`.
pub const FIGURES: [&str; 4] = ["50", "99", "99.9", "max"];

/// Why there is no matrix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MatrixError {
    /// Not measured by the lab.
    #[error(
        "{0} was not measured by the lab: it names no kernel and no load (facts.lab); use \
        `tardy report` for runs of a machine"
    )]
    NoLab(String),
    /// Nothing to compare.
    #[error("no runs to compare")]
    Empty,
    /// More than anybody compares.
    #[error(
        "{kernels} kernels and {loads} loads are named, and at most {MOST_KERNELS} kernels and \
         {MOST_LOADS} loads are compared; name fewer directories, or runs instead of directories"
    )]
    TooLarge {
        /// How many are named.
        kernels: usize,
        /// How many are named.
        loads: usize,
    },
}

/// Kernels beside each other, load by load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// The columns, in the order of the plan or in which their first runs came.
    pub kernels: Vec<Column>,
    /// The rows, in the order of the plan or in which their first runs came.
    pub loads: Vec<MatrixRow>,
    /// What a reader must know before comparing: sentences.
    pub remarks: Vec<String>,
}

/// One kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Column {
    /// As it was asked for; with the beginning of its hash where two have one name.
    pub name: String,
    /// `uname -r`
    pub release: String,
    /// The preemption model: `voluntary`, `rt`, ...
    pub preemption: String,
    /// SHA-256 of its image; empty for a machine's own.
    pub hash: String,
    /// As in [`LabFacts::mode`].
    pub mode: String,
}

/// One load under all kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatrixRow {
    /// Its name in the plan.
    pub name: String,
    /// One place a column; absent where nothing was measured.
    pub cells: Vec<Option<MatrixCell>>,
    /// Each other kernel against the first that has a cell here.
    pub judgements: Vec<Judgement>,
}

/// One load under one kernel, over start phases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatrixCell {
    /// Different start phases.
    pub phases: usize,
    /// Its runs, as places in what the matrix was made of.
    pub runs: Vec<usize>,
    /// Samples of all of them.
    pub samples: u64,
    /// One entry a name of [`FIGURES`], in that order; empty where nothing was measured.
    pub figures: Vec<Figure>,
    /// Codes of the caveats that make one of its runs invalid.
    pub invalid: Vec<String>,
    /// What the worst wake-ups of its runs were spent on, largest first; none where no run of it
    /// was traced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<CellCause>,
}

/// What the ten worst wake-ups of each run of a cell were spent on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CellCause {
    /// What kind.
    pub cause: Cause,
    /// Which one: of what kept the CPU in the kernel, the function.
    pub name: String,
    /// Its share of their time, 0 to 1.
    pub share: f64,
}

/// One figure over start phases, ns. Of a run's series the largest counts; a round trip is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Figure {
    /// As in [`FIGURES`].
    pub name: String,
    /// The smallest over start phases.
    pub low: i64,
    /// The largest over start phases.
    pub high: i64,
    /// Whether a run had fewer than 10 samples beyond it: then it is little more than the maximum.
    pub uncertain: bool,
}

/// One kernel against another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The place of the column that is judged.
    pub kernel: usize,
    /// The place of the column that it is compared with.
    pub against: usize,
    /// Why not; then there are no differences.
    pub not_judged: Option<String>,
    /// Figures whose ranges do not touch.
    pub differences: Vec<FigureDifference>,
}

/// A figure whose ranges do not touch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FigureDifference {
    /// As in [`FIGURES`].
    pub figure: String,
    /// Whether the judged kernel is lower: answers earlier.
    pub lower: bool,
    /// The ratio of the nearest ends of both ranges, above 1: they differ at least by this.
    pub factor: f64,
}

/// Names in the order that a plan has; what is not in it comes after.
#[derive(Debug, Clone, Copy, Default)]
pub struct NameOrder<'a> {
    /// Kernels; one without a run has an empty column.
    pub kernels: &'a [String],
    /// Loads; one without a run has an empty row.
    pub loads: &'a [String],
}

/// The matrix of `runs`.
///
/// # Errors
/// A run that the lab did not make, none at all, or more kernels or loads than are compared.
pub fn matrix(runs: &[Document], order: NameOrder) -> Result<Matrix, MatrixError> {
    if runs.is_empty() {
        return Err(MatrixError::Empty);
    }
    let labs: Vec<&LabFacts> = runs.iter().map(lab_of).collect::<Result<_, _>>()?;
    let keys = keys_of(&labs, order.kernels);
    let planned = order.loads.iter().map(String::as_str);
    let names = in_order(planned.chain(labs.iter().map(|lab| lab.load.as_str())));
    if keys.len() > MOST_KERNELS || names.len() > MOST_LOADS {
        return Err(MatrixError::TooLarge { kernels: keys.len(), loads: names.len() });
    }
    let mut places: HashMap<(&str, ColumnKey<'_>), Vec<usize>> = HashMap::new();
    for (run, lab) in labs.iter().enumerate() {
        places.entry((lab.load.as_str(), ColumnKey::of(lab))).or_default().push(run);
    }
    let row = |name: &str| {
        let cell_of = |key: &ColumnKey<'_>| cell(places.get(&(name, *key))?, runs);
        let cells: Vec<Option<MatrixCell>> = keys.iter().map(cell_of).collect();
        let judgements = judgements(&cells, runs);
        MatrixRow { name: name.to_owned(), cells, judgements }
    };
    let loads = names.into_iter().map(row).collect();
    let kernels = columns_of(&keys, &labs, runs);
    Ok(Matrix { remarks: remarks::remarks(&kernels, &labs, runs), kernels, loads })
}

/// What makes a column: the same name may be asked for in several places, and be another kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ColumnKey<'a> {
    kernel: &'a str,
    hash: &'a str,
    mode: &'a str,
}

impl<'a> ColumnKey<'a> {
    fn of(lab: &'a LabFacts) -> Self {
        Self { kernel: &lab.kernel, hash: &lab.kernel_hash, mode: &lab.mode }
    }
}

fn keys_of<'a>(labs: &[&'a LabFacts], order: &'a [String]) -> Vec<ColumnKey<'a>> {
    let mut keys = in_order(labs.iter().map(|lab| ColumnKey::of(lab)));
    let mut known: HashSet<&str> = keys.iter().map(|key| key.kernel).collect();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, name) in order.iter().enumerate() {
        places.entry(name).or_insert(place);
        if known.insert(name) {
            keys.push(ColumnKey { kernel: name, hash: "", mode: "" });
        }
    }
    keys.sort_by_key(|key| places.get(key.kernel).copied().unwrap_or(order.len()));
    keys
}

fn lab_of(run: &Document) -> Result<&LabFacts, MatrixError> {
    run.facts.lab.as_ref().ok_or_else(|| MatrixError::NoLab(run.name.clone()))
}

/// Each once, in the order of first appearance.
fn in_order<T: Copy + Eq + Hash>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut known = HashSet::new();
    all.filter(|one| known.insert(*one)).collect()
}

/// Whether they are not all the same.
fn differ<T: PartialEq>(mut all: impl Iterator<Item = T>) -> bool {
    all.next().is_some_and(|first| all.any(|other| other != first))
}

fn columns_of(keys: &[ColumnKey<'_>], labs: &[&LabFacts], runs: &[Document]) -> Vec<Column> {
    let of = |key: &ColumnKey<'_>| {
        let same = keys.iter().filter(|other| other.kernel == key.kernel).count() > 1;
        let begin = key.hash.get(..8).unwrap_or(key.hash);
        let name = match same {
            true => [key.kernel, begin, key.mode].join(" ").replace("  ", " "),
            false => key.kernel.to_owned(),
        };
        let own = labs.iter().position(|lab| ColumnKey::of(lab) == *key);
        let facts = own.and_then(|at| runs.get(at)).map(|run| &run.facts);
        Column {
            name,
            release: facts.map(|facts| facts.kernel.clone()).unwrap_or_default(),
            preemption: facts.map(|facts| facts.preemption.model.clone()).unwrap_or_default(),
            hash: key.hash.to_owned(),
            mode: key.mode.to_owned(),
        }
    };
    keys.iter().map(of).collect()
}

fn cell(own: &[usize], runs: &[Document]) -> Option<MatrixCell> {
    let documents: Vec<&Document> = own.iter().filter_map(|at| runs.get(*at)).collect();
    let seeds = documents.iter().filter_map(|run| run.facts.lab.as_ref()).map(|lab| lab.seed);
    let phases = seeds.collect::<BTreeSet<u32>>().len();
    let series = || documents.iter().flat_map(|run| whole(run));
    let figures = FIGURES.iter().filter_map(|name| figure(name, &documents));
    let broken = documents.iter().filter(|run| run.validity == Validity::Invalid);
    let codes = broken.flat_map(|run| &run.caveats);
    let codes = codes.filter(|caveat| caveat.effect == crate::run::Effect::Invalidates);
    let codes = in_order(codes.map(|caveat| caveat.code.as_str()));
    (phases > 0).then(|| MatrixCell {
        phases,
        runs: own.to_vec(),
        samples: series().map(|series| series.count).fold(0, u64::saturating_add),
        figures: figures.collect(),
        invalid: codes.into_iter().map(str::to_owned).collect(),
        causes: Vec::new(),
    })
}

/// What counts of a run: where there is a round trip, the ways there and back are parts of it.
fn whole(run: &Document) -> impl Iterator<Item = &SeriesSummary> {
    let has_round_trip = run.wakeups().any(|series| series.name == ROUND_TRIP);
    run.wakeups().filter(move |series| !has_round_trip || series.name == ROUND_TRIP)
}

fn figure(name: &str, runs: &[&Document]) -> Option<Figure> {
    let of_series = |series: &SeriesSummary| match name {
        "max" => series.max,
        _ => series.percentiles.get(name).and_then(|ns| i64::try_from(*ns).ok()),
    };
    let of_run = |run: &&Document| whole(run).filter_map(of_series).max();
    let values: Vec<i64> = runs.iter().filter_map(of_run).collect();
    let mut series = runs.iter().flat_map(|run| whole(run));
    Some(Figure {
        name: name.into(),
        low: values.iter().copied().min()?,
        high: values.iter().copied().max()?,
        uncertain: series.any(|series| series.uncertain.iter().any(|other| other == name)),
    })
}

fn judgements(cells: &[Option<MatrixCell>], runs: &[Document]) -> Vec<Judgement> {
    let mut filled =
        cells.iter().enumerate().filter_map(|(at, cell)| cell.as_ref().map(|cell| (at, cell)));
    let Some((against, base)) = filled.next() else { return Vec::new() };
    let judge = |(kernel, cell): (usize, &MatrixCell)| {
        let not_judged = reason_not_to(base, cell, runs);
        let differences = match not_judged {
            Some(_) => Vec::new(),
            None => base.figures.iter().zip(&cell.figures).filter_map(difference).collect(),
        };
        Judgement { kernel, against, not_judged, differences }
    };
    filled.map(judge).collect()
}

/// Why two cells cannot be compared, worst first.
fn reason_not_to(base: &MatrixCell, cell: &MatrixCell, runs: &[Document]) -> Option<String> {
    let both = || base.runs.iter().chain(&cell.runs).filter_map(|at| runs.get(*at));
    let labs = || both().filter_map(|run| run.facts.lab.as_ref());
    if let Some(code) = base.invalid.iter().chain(&cell.invalid).next() {
        return Some(format!("not judged: a run is invalid ({code})"));
    }
    if differ(labs().map(|lab| &lab.mode)) {
        return Some("not judged: measured in different modes".into());
    }
    if labs().any(|lab| lab.mode == "emulated") {
        return Some("not judged: plain emulation, whose times are the host's noise".into());
    }
    if labs().any(|lab| lab.mode == "deterministic")
        && both().any(|run| run.facts.cpus_online.contains(['-', ',']))
    {
        return Some(
            "not judged: several CPUs, whose turns in the emulator are in the times".into(),
        );
    }
    if differ(both().map(method)) {
        return Some("not judged: measured differently (probe, load or their parameters)".into());
    }
    if differ(both().map(maker)) {
        return Some("not judged: made by different programs (tardy, QEMU or its settings)".into());
    }
    let phases = base.phases.min(cell.phases);
    (phases < PHASES_NEEDED)
        .then(|| format!("not judged: {phases} of {PHASES_NEEDED} start phases"))
}

/// A probe, what was to be kept, and the loads.
type Method<'a> = (&'a ProbeRecord, &'a RunParameters, Vec<(&'a String, String)>);

/// What was measured, and under what.
fn method(run: &Document) -> Method<'_> {
    let load = |load: &'_ crate::run::LoadRecord| {
        serde_json::to_string(&load.parameters).unwrap_or_default()
    };
    (&run.probe, &run.parameters, run.loads.iter().map(|own| (&own.name, load(own))).collect())
}

/// What determines the samples besides the kernel: versions and hashes, and how time is counted.
fn maker(run: &Document) -> ([&str; 4], Option<u8>) {
    let version = run.facts.tardy_version.as_str();
    let Some(lab) = &run.facts.lab else { return ([version, "", "", ""], None) };
    ([version, &lab.program_hash, &lab.qemu, &lab.cpu_model], lab.shift)
}

fn difference((base, other): (&Figure, &Figure)) -> Option<FigureDifference> {
    let ratio = |high: i64, low: i64| high.max(1) as f64 / low.max(1) as f64;
    let (lower, factor) = if other.high < base.low {
        (true, ratio(base.low, other.high))
    } else if base.high < other.low {
        (false, ratio(other.low, base.high))
    } else {
        return None;
    };
    (factor >= SMALLEST_FACTOR).then(|| FigureDifference {
        figure: base.name.clone(),
        lower,
        factor,
    })
}

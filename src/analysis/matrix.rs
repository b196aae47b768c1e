//! Runs of the lab as a matrix: a row a load, a column a kernel, and what differs.
//!
//! Where time is counted, the same phase offset gives the same samples, and another one gives
//! others: one phase is one throw of the dice. So a figure of a kernel is a set of numbers, one a
//! phase, and two kernels are compared by these sets ([`super::phases`]); all comparisons of a
//! matrix share one error probability. A column of the first kernel with other padding (A/A) shows
//! how far equal kernels come apart.

mod cells;
mod judge;
mod remarks;
#[cfg(test)]
pub(crate) mod tests;

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::run::{AbVerdict, Document, facts::LabFacts, peaks::Cause};

pub use self::cells::{PhaseId, RunFigures, figure_over, figures_of, whole};
pub use self::judge::{FIGURE_MARGINS, margin_of};

/// Larger matrices are refused: a short `lab.json` can name a thousand million cells.
pub const MOST_KERNELS: usize = 256;
const MOST_LOADS: usize = 1_024;

/// What is compared, by its name in `run.json`; the largest sample is `max`.
pub const FIGURES: [&str; 4] = ["50", "99", "99.9", "max"];

/// Why a matrix is missing.
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
    /// How many figures were compared, which share the error probability of 5%.
    pub comparisons: usize,
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
    /// Whether it is another kernel's repetition with other padding of the command line.
    #[serde(default)]
    pub is_control: bool,
}

/// One load under all kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatrixRow {
    /// Its name in the plan.
    pub name: String,
    /// One place a column; absent if nothing was measured.
    pub cells: Vec<Option<MatrixCell>>,
    /// Each other kernel against the first that has a cell here.
    pub judgements: Vec<Judgement>,
}

/// One load under one kernel, over phase offsets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatrixCell {
    /// Different phase offsets.
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

/// One figure over phase offsets, ns. Of a run's series the largest counts; a round trip is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Figure {
    /// As in [`FIGURES`].
    pub name: String,
    /// The smallest over phase offsets.
    pub low: i64,
    /// The largest over phase offsets.
    pub high: i64,
    /// The median over phase offsets.
    pub median: i64,
    /// Lower end of the 95% interval of the median over all phases there could be; absent for the
    /// maximum, and with fewer than 6 phases.
    pub median_low: Option<i64>,
    /// Upper end of it.
    pub median_high: Option<i64>,
    /// Whether a run had fewer than 10 samples beyond it: then it is little more than the maximum,
    /// and it is not judged.
    pub uncertain: bool,
}

/// One kernel against another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The place of the column that is judged.
    pub kernel: usize,
    /// The place of the column that it is compared with.
    pub against: usize,
    /// Why not; then it has no figures.
    pub not_judged: Option<String>,
    /// What is said of each figure that was compared.
    pub figures: Vec<JudgedFigure>,
}

/// A figure of two kernels. Ratios are those of the judged kernel to the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgedFigure {
    /// As in [`FIGURES`].
    pub figure: String,
    /// Whether the judged kernel is lower (better), higher (worse), the same or neither.
    pub verdict: AbVerdict,
    /// The median ratio.
    pub ratio: f64,
    /// Lower end of its interval; absent if there are too few phases for one.
    pub low: Option<f64>,
    /// Upper end of it.
    pub high: Option<f64>,
    /// Whether phases were compared in pairs.
    pub is_paired: bool,
    /// Figures that share the error probability with this one: that of its interval is 5% divided
    /// by it.
    pub share: usize,
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
        let cell_of = |key: &ColumnKey<'_>| cells::cell(places.get(&(name, *key))?, runs);
        let cells: Vec<Option<MatrixCell>> = keys.iter().map(cell_of).collect();
        MatrixRow { name: name.to_owned(), cells, judgements: Vec::new() }
    };
    let mut loads: Vec<MatrixRow> = names.into_iter().map(row).collect();
    let kernels = columns_of(&keys, &labs, runs);
    let comparisons = judge::judge(&mut loads, &kernels, runs);
    let mut remarks = remarks::remarks(&kernels, &labs, runs);
    remarks.extend(remarks::controls(&kernels, &loads));
    Ok(Matrix { remarks, kernels, loads, comparisons })
}

/// What makes a column: the same name may be asked for in several places, and be another kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ColumnKey<'a> {
    kernel: &'a str,
    hash: &'a str,
    mode: &'a str,
    is_control: bool,
}

impl<'a> ColumnKey<'a> {
    fn of(lab: &'a LabFacts) -> Self {
        let (kernel, hash, mode) = (&lab.kernel, &lab.kernel_hash, &lab.mode);
        Self { kernel, hash, mode, is_control: lab.is_control }
    }
}

fn keys_of<'a>(labs: &[&'a LabFacts], order: &'a [String]) -> Vec<ColumnKey<'a>> {
    let mut keys = in_order(labs.iter().map(|lab| ColumnKey::of(lab)));
    let mut known: HashSet<&str> = keys.iter().map(|key| key.kernel).collect();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, name) in order.iter().enumerate() {
        places.entry(name).or_insert(place);
        if known.insert(name) {
            keys.push(ColumnKey { kernel: name, hash: "", mode: "", is_control: false });
        }
    }
    // A repetition stands behind its kernel.
    let place = |key: &ColumnKey<'_>| places.get(key.kernel).copied().unwrap_or(order.len());
    keys.sort_by_key(|key| (place(key), key.is_control));
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
        let has_its_name = |other: &&ColumnKey<'_>| {
            other.kernel == key.kernel && other.is_control == key.is_control
        };
        let same = keys.iter().filter(has_its_name).count() > 1;
        let begin = key.hash.get(..8).unwrap_or(key.hash);
        let name = match same {
            true => [key.kernel, begin, key.mode].join(" ").replace("  ", " "),
            false => key.kernel.to_owned(),
        };
        let again = if key.is_control { ", again" } else { "" };
        let own = labs.iter().position(|lab| ColumnKey::of(lab) == *key);
        let facts = own.and_then(|at| runs.get(at)).map(|run| &run.facts);
        Column {
            name: name + again,
            release: facts.map(|facts| facts.kernel.clone()).unwrap_or_default(),
            preemption: facts.map(|facts| facts.preemption.model.clone()).unwrap_or_default(),
            hash: key.hash.to_owned(),
            mode: key.mode.to_owned(),
            is_control: key.is_control,
        }
    };
    keys.iter().map(of).collect()
}

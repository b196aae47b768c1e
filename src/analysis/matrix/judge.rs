//! Kernels of a matrix against the first one: what may be compared, and what comes of it.

use std::collections::{BTreeMap, HashMap};

use super::{
    Column, FIGURES, JudgedFigure, Judgement, MatrixCell, MatrixRow,
    cells::{figures_of, phases},
    differ,
};
use crate::{
    analysis::{
        ab::ALPHA,
        phases::{
            FEWEST_PHASES, PhaseFigure, PhaseResult, judge as judge_figures, phases_needed,
            ranks::smallest_probability,
        },
    },
    run::{AbVerdict, Document, ProbeRecord, RunParameters},
};

/// Ratios up to this are not told from none: smaller ones are not printed, and histograms are not
/// much finer.
const SMALLEST_FACTOR: f64 = 1.01;

/// Kernels whose figures differ by less than this share are called the same, by the name of the
/// figure: as between two sides of `tardy ab`.
pub const FIGURE_MARGINS: [f64; FIGURES.len()] = [0.05, 0.05, 0.1, 0.1];

/// The margin of a figure by its name.
#[must_use]
pub fn margin_of(figure: &str) -> f64 {
    let own = FIGURES.iter().zip(FIGURE_MARGINS).find(|(name, _)| **name == figure);
    own.map_or(0.1, |(_, margin)| margin)
}

/// One kernel against another under one load, before it is judged.
struct Comparison {
    row: usize,
    kernel: usize,
    against: usize,
    is_control: bool,
    /// Why it is not judged.
    reason: Option<String>,
    /// Phases of both.
    phases: (usize, usize),
    /// By the place in [`FIGURES`].
    figures: Vec<(usize, PhaseFigure)>,
}

/// Fills in the judgements of all rows; how many figures of kernels were compared.
pub(super) fn judge(rows: &mut [MatrixRow], columns: &[Column], runs: &[Document]) -> usize {
    let all = rows.iter().enumerate().flat_map(|(at, row)| comparisons(at, row, columns, runs));
    let (mut controls, mut others): (Vec<_>, Vec<_>) = all.partition(|one| one.is_control);
    let (_, of_controls) = results(&mut controls);
    let floors = floors(&controls, &of_controls);
    for one in &mut others {
        for (at, figure) in &mut one.figures {
            let floor = floors.get(&(one.row, *at)).copied().unwrap_or(0.0);
            figure.floor = figure.floor.max(floor);
        }
    }
    let (count, of_others) = results(&mut others);
    let judged = controls.into_iter().zip(of_controls).chain(others.into_iter().zip(of_others));
    for (one, results) in judged {
        let Some(row) = rows.get_mut(one.row) else { continue };
        let named = one.figures.iter().zip(results);
        let figures = named.filter_map(|((at, _), result)| judged_figure(*at, &result)).collect();
        let Comparison { kernel, against, reason: not_judged, .. } = one;
        row.judgements.push(Judgement { kernel, against, not_judged, figures });
    }
    for row in rows {
        row.judgements.sort_by_key(|judgement| judgement.kernel);
    }
    count
}

/// The results of comparisons that share one error probability, and how many figures those are.
/// What has too few phases for that is not judged; it keeps its share.
fn results(all: &mut [Comparison]) -> (usize, Vec<Vec<PhaseResult>>) {
    let counted = |one: &&Comparison| one.reason.is_none();
    let enough = |one: &&Comparison| one.phases.0.min(one.phases.1) >= FEWEST_PHASES;
    let count = all.iter().filter(counted).filter(enough).map(|one| one.figures.len()).sum();
    for one in all.iter_mut().filter(|one| one.reason.is_none()) {
        let smallest = smallest_probability(one.phases.0, one.phases.1);
        let comparisons = one.figures.len().max(count);
        if smallest > ALPHA / comparisons as f64 {
            one.reason = Some(few(one.phases, comparisons));
        }
    }
    let figures: Vec<PhaseFigure> = all
        .iter()
        .filter(counted)
        .flat_map(|one| one.figures.iter().map(|(_, figure)| figure.clone()))
        .collect();
    let mut results = judge_figures(&figures, count).into_iter();
    let of_one = |one: &Comparison| match one.reason {
        None => results.by_ref().take(one.figures.len()).collect(),
        Some(_) => Vec::new(),
    };
    (count, all.iter().map(of_one).collect())
}

fn few((a, b): (usize, usize), comparisons: usize) -> String {
    let needed = phases_needed(comparisons).unpaired;
    format!("not judged: {} of the {needed} phase offsets that it takes", a.min(b))
}

/// How far equal kernels came apart, by row and figure, as a logarithm.
fn floors(controls: &[Comparison], results: &[Vec<PhaseResult>]) -> HashMap<(usize, usize), f64> {
    let mut floors = HashMap::new();
    for (one, results) in controls.iter().zip(results) {
        for ((at, _), result) in one.figures.iter().zip(results) {
            let ends = result.interval.filter(|_| is_apart(result.verdict));
            let far = ends.map_or(result.shift.abs(), |(low, high)| low.abs().max(high.abs()));
            floors.insert((one.row, *at), far);
        }
    }
    floors
}

fn is_apart(verdict: AbVerdict) -> bool {
    matches!(verdict, AbVerdict::Better | AbVerdict::Worse)
}

fn judged_figure(at: usize, result: &PhaseResult) -> Option<JudgedFigure> {
    Some(JudgedFigure {
        figure: (*FIGURES.get(at)?).to_owned(),
        verdict: result.verdict,
        ratio: result.shift.exp(),
        low: result.interval.map(|(low, _)| low.exp()),
        high: result.interval.map(|(_, high)| high.exp()),
        is_paired: result.is_paired,
        share: result.share,
    })
}

/// Each other kernel against the first that has a cell, which no repetition is.
fn comparisons(
    at: usize,
    row: &MatrixRow,
    columns: &[Column],
    runs: &[Document],
) -> Vec<Comparison> {
    let is_control = |kernel: usize| columns.get(kernel).is_some_and(|own| own.is_control);
    let filled: Vec<(usize, &MatrixCell)> = row
        .cells
        .iter()
        .enumerate()
        .filter_map(|(kernel, cell)| Some((kernel, cell.as_ref()?)))
        .collect();
    let base = filled.iter().copied().find(|(kernel, _)| !is_control(*kernel));
    let Some((against, base)) = base else { return Vec::new() };
    let compare = |(kernel, cell): (usize, &MatrixCell)| {
        let of_base = |own: &Column| columns.get(against).is_some_and(|base| own.hash == base.hash);
        // What repeats another kernel than the first says nothing of it.
        if is_control(kernel) && !columns.get(kernel).is_some_and(of_base) {
            return None;
        }
        let reason = reason_not_to(base, cell, runs);
        let figures = match reason {
            Some(_) => Vec::new(),
            None => figures(base, cell, runs),
        };
        let phases = (base.phases, cell.phases);
        let is_control = is_control(kernel);
        Some(Comparison { row: at, kernel, against, is_control, reason, phases, figures })
    };
    let others = filled.iter().copied().filter(|(kernel, _)| *kernel != against);
    others.filter_map(compare).collect()
}

/// What is compared: figures that are certain under both.
fn figures(base: &MatrixCell, cell: &MatrixCell, runs: &[Document]) -> Vec<(usize, PhaseFigure)> {
    let values = |cell: &MatrixCell| -> BTreeMap<(u32, Option<u64>), _> {
        let phases = phases(&cell.runs, runs).into_iter();
        phases.map(|(id, run)| ((id.seed, id.wait_ns), figures_of(run))).collect()
    };
    let (a, b) = (values(base), values(cell));
    let is_uncertain = |at: usize| {
        a.values().chain(b.values()).any(|own| own.uncertain.get(at).copied().unwrap_or(false))
    };
    let figure = |at: usize| {
        let log = |own: &super::RunFigures| {
            let ns = own.values.get(at).copied().flatten()?;
            Some((ns.max(1) as f64).ln())
        };
        let pair = |(id, own)| Some((log(own)?, log(b.get(id)?)?));
        let figure = PhaseFigure {
            a: a.values().filter_map(log).collect(),
            b: b.values().filter_map(log).collect(),
            pairs: a.iter().filter_map(pair).collect(),
            margin: FIGURE_MARGINS.get(at).copied().unwrap_or_default().ln_1p(),
            floor: SMALLEST_FACTOR.ln(),
        };
        (!figure.a.is_empty() && !figure.b.is_empty()).then_some((at, figure))
    };
    (0..FIGURES.len()).filter(|at| !is_uncertain(*at)).filter_map(figure).collect()
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
    if labs().any(|lab| lab.mode == "deterministic" && lab.wait_ns.is_none()) {
        return Some(
            "not judged: phase offsets of a fixed lattice, as an older tardy had them, are not \
             a random sample; measure again"
                .into(),
        );
    }
    None
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

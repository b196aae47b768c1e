//! The finding of one plan: what its gates say of the cells, else the worst latency.

use std::borrow::Cow;

use super::{DECIDING, listed, sentence, worst_words};
use crate::{
    analysis::matrix::whole,
    report::{
        gate_decision::{GateResult, GateVerdict},
        plan_sheet::{AskedGates, MeasuredPlan, called},
        sample_name::{self, SampleName},
    },
    run::{CellStatus, Document, LatencyView, PlanCell, PlanRecord, SeriesSummary, Validity},
    units::many,
};

/// What a gate says of all repeats of a cell, or of the whole plan.
#[derive(Debug, Clone, Copy)]
pub struct SharedGate<'a> {
    /// The name of the cell; empty for the plan.
    pub of: &'a str,
    /// What it says.
    pub result: &'a GateResult,
}

/// What is known of one plan.
#[derive(Debug)]
pub struct PlanFinding<'a> {
    cells: Vec<FoundCell<'a>>,
    shared: Vec<SharedGate<'a>>,
    gates: AskedGates,
}

/// A cell with its run, if it has one, and what gates say of it.
#[derive(Debug)]
struct FoundCell<'a> {
    cell: &'a PlanCell,
    run: Option<&'a Document>,
    gates: Vec<&'a GateResult>,
}

/// The largest value of a metric, and where it is.
struct WorstPlace<'a> {
    value_ns: i64,
    cell: &'a PlanCell,
    series: &'a str,
    is_questionable: bool,
}

impl FoundCell<'_> {
    fn is(&self, validity: Validity) -> bool {
        self.run.is_some_and(|run| run.validity == validity)
    }

    /// The run, if its numbers may be believed.
    fn believed(&self) -> Option<&Document> {
        self.run.filter(|run| run.validity != Validity::Invalid)
    }

    /// Whether it was measured, and its run cannot be read.
    fn is_unread(&self) -> bool {
        self.run.is_none() && self.cell.status == CellStatus::Measured
    }

    fn has(&self, verdict: GateVerdict) -> bool {
        self.gates.iter().map(|gate| gate.verdict).max() == Some(verdict)
    }
}

impl<'a> PlanFinding<'a> {
    /// Of a plan; `run` and `gates` tell what there is of the cell with a number.
    pub fn of(
        record: &'a PlanRecord,
        run: impl Fn(usize) -> Option<&'a Document>,
        gates: impl Fn(usize) -> Vec<&'a GateResult>,
        asked: AskedGates,
    ) -> Self {
        let cells = record.cells.iter().enumerate();
        let found = |(at, cell)| FoundCell { cell, run: run(at), gates: gates(at) };
        Self { cells: cells.map(found).collect(), shared: Vec::new(), gates: asked }
    }

    /// With what gates say of several cells together.
    #[must_use]
    pub fn with_shared(mut self, shared: Vec<SharedGate<'a>>) -> Self {
        self.shared = shared;
        self
    }

    /// The sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        if self.cells.iter().all(|cell| cell.run.is_none() && !cell.is_unread()) {
            return self.nothing_measured();
        }
        let mut parts: Vec<String> = self.unread("").into_iter().chain(self.invalid()).collect();
        if self.cells.iter().any(|cell| cell.believed().is_some()) {
            parts.extend(self.of_gates());
            if !self.is_failing() {
                parts.push(self.worst());
            }
        }
        if self.gates.asked == 0 {
            parts.push("no gate was set".into());
        }
        parts.extend(self.unmeasured());
        sentence(parts)
    }

    fn nothing_measured(&self) -> String {
        let failed = self.cells.iter().filter(|cell| cell.cell.status == CellStatus::Failed);
        match failed.count() {
            0 => "No cell was measured yet.".into(),
            failed => format!(
                "No cell was measured: {failed} of {} failed.",
                many(self.cells.len() as u64, "cell")
            ),
        }
    }

    /// `1 of 45 cells cannot be read: network`; `of` a plan, if there are several.
    fn unread(&self, of: &str) -> Option<String> {
        let found = self.cells.iter().filter(|cell| cell.is_unread()).count();
        let all = many(self.cells.len() as u64, "cell");
        let of = if of.is_empty() { String::new() } else { format!(" of {of}") };
        let names = self.named(found, |cell| cell.is_unread());
        (found > 0).then(|| format!("{found} of {all}{of} cannot be read{names}"))
    }

    /// `invalid: 1 of 45 cells: network`
    fn invalid(&self) -> Option<String> {
        let is_invalid = |cell: &FoundCell| cell.is(Validity::Invalid);
        let found = self.cells.iter().filter(|cell| is_invalid(cell)).count();
        let all = many(self.cells.len() as u64, "cell");
        (found > 0).then(|| format!("invalid: {found} of {all}{}", self.named(found, is_invalid)))
    }

    fn is_failing(&self) -> bool {
        let fails = |cell: &FoundCell| cell.believed().is_some() && cell.has(GateVerdict::Fail);
        self.cells.iter().any(fails)
            || self.shared.iter().any(|gate| gate.result.verdict == GateVerdict::Fail)
    }

    /// What gates say; nothing without gates.
    fn of_gates(&self) -> Vec<String> {
        if self.gates.asked == 0 {
            return Vec::new();
        }
        let mut parts = self.with_verdict(GateVerdict::Fail);
        if !parts.is_empty() {
            return parts;
        }
        let mut open = self.with_verdict(GateVerdict::Inconclusive);
        if self.gates.undecided > 0 {
            let gates = many(self.gates.undecided as u64, "gate");
            open.push(format!("{gates} against other runs not decided here"));
        }
        let is_decided = |cell: &FoundCell| !cell.gates.is_empty();
        let are_all = self.cells.iter().all(|cell| cell.run.is_some());
        let has_any = self.cells.iter().any(is_decided) || !self.shared.is_empty();
        if open.is_empty() && !has_any {
            open.push("no cell decides a gate".into());
        }
        let is_good = |cell: &FoundCell| !cell.is(Validity::Invalid) && !cell.is_unread();
        let cell = if self.cells.iter().all(is_good) { "no cell" } else { "no other cell" };
        if open.is_empty() && are_all {
            parts.push(format!("{cell} fails"));
        } else {
            let what = match open.is_empty() {
                true if self.cells.iter().any(FoundCell::is_unread) => "not all can be read".into(),
                true => "not all are measured".into(),
                false => open.join("; "),
            };
            parts.push(format!("inconclusive: {cell} fails, but {what}"));
        }
        parts
    }

    /// What has this verdict: cells, and gates of all repeats of a cell.
    fn with_verdict(&self, verdict: GateVerdict) -> Vec<String> {
        self.cells_with(verdict).into_iter().chain(self.shared_with(verdict)).collect()
    }

    /// The cells of which gates say this, and the reason of the first.
    fn cells_with(&self, verdict: GateVerdict) -> Option<String> {
        let is_it = |cell: &FoundCell| cell.believed().is_some() && cell.has(verdict);
        let found = self.cells.iter().filter(|cell| is_it(cell)).count();
        let first = self.cells.iter().find(|cell| is_it(cell))?;
        let gate = first.gates.iter().find(|gate| gate.verdict == verdict)?;
        let word = match (verdict, found) {
            (GateVerdict::Fail, 1) => "fails its gates",
            (GateVerdict::Fail, _) => "fail their gates",
            (_, 1) => "does not decide its gates",
            _ => "do not decide their gates",
        };
        let all = many(self.cells.len() as u64, "cell");
        let (names, why) = (self.named(found, is_it), reason(&first.cell.name, gate));
        Some(format!("{found} of {all} {word}{names}; {why}"))
    }

    fn shared_with(&self, verdict: GateVerdict) -> Option<String> {
        let shared = self.shared.iter().filter(|gate| gate.result.verdict == verdict);
        let shared: Vec<String> = shared.map(|gate| reason(gate.of, gate.result)).collect();
        let word = match (verdict, shared.len()) {
            (_, 0) => return None,
            (GateVerdict::Fail, 1) => "fails",
            (GateVerdict::Fail, _) => "fail",
            (_, 1) => "is open",
            _ => "are open",
        };
        let gates = many(shared.len() as u64, "gate");
        Some(format!("{gates} of all repeats {word}: {}", listed(&shared)))
    }

    /// `: idle, hackbench (1 of 2 repeats)`; nothing if it is all cells.
    fn named(&self, found: usize, holds: impl Fn(&FoundCell) -> bool) -> String {
        match found == self.cells.len() {
            true => String::new(),
            false => format!(": {}", listed(&self.places(holds))),
        }
    }

    /// The names of cells for which it holds, each once, with the number of repeats.
    fn places(&self, holds: impl Fn(&FoundCell) -> bool) -> Vec<String> {
        let mut names: Vec<&str> = Vec::new();
        for cell in self.cells.iter().filter(|cell| holds(cell)) {
            if !names.contains(&cell.cell.name.as_str()) {
                names.push(&cell.cell.name);
            }
        }
        let of = |name: &str| {
            let own = || self.cells.iter().filter(|cell| cell.cell.name == name);
            match (own().filter(|cell| holds(cell)).count(), own().count()) {
                (_, 1) => name.to_owned(),
                (some, all) => format!("{name} ({some} of {all} repeats)"),
            }
        };
        names.into_iter().map(of).collect()
    }

    /// The worst latency of what may be believed: of wake-ups where there are some.
    fn worst(&self) -> String {
        let with = |cell: &&FoundCell| {
            cell.believed().is_some_and(|run| whole(run).any(|series| series.count > 0))
        };
        let cells: Vec<&FoundCell> = self.cells.iter().filter(with).collect();
        let kinds: Vec<SampleName> =
            cells.iter().filter_map(|cell| cell.run.map(SampleName::drawn)).collect();
        let Some(kind) = kinds.iter().find(|kind| **kind == SampleName::WakeUp).or(kinds.first())
        else {
            return "no cell has latencies".into();
        };
        let own = cells.iter().zip(&kinds).filter(|(_, own)| *own == kind);
        let own: Vec<&FoundCell> = own.map(|(cell, _)| *cell).collect();
        let figure = deciding(&own);
        let Some(found) =
            own.iter().filter_map(|cell| worst_of(cell, figure)).max_by_key(|own| own.value_ns)
        else {
            return "no cell has latencies".into();
        };
        let is_only = kinds.iter().all(|own| own == kind);
        let of = match is_only && *kind == SampleName::WakeUp {
            true => String::new(),
            false => format!(" of {}", kind.many()),
        };
        format!("{}, {}", worst_words(figure, &of, found.value_ns), self.place(&found))
    }

    /// `at hackbench, cpu1, repeat 2 (questionable)`
    fn place(&self, found: &WorstPlace) -> String {
        let cell = found.cell;
        let is_repeated = self.cells.iter().filter(|own| own.cell.name == cell.name).count() > 1;
        let repeat = if is_repeated { format!(", repeat {}", cell.repeat) } else { String::new() };
        let doubt = if found.is_questionable { " (questionable)" } else { "" };
        format!("at {}, {}{repeat}{doubt}", cell.name, sample_name::series(found.series))
    }

    /// What is missing of it.
    fn unmeasured(&self) -> Vec<String> {
        let with = |status| self.cells.iter().filter(|cell| cell.cell.status == status).count();
        let all = many(self.cells.len() as u64, "cell");
        let part = |(status, what): (CellStatus, &str)| {
            let found = with(status);
            (found > 0).then(|| format!("{found} of {all} {what}"))
        };
        let missing = [
            (CellStatus::Failed, "could not be measured"),
            (CellStatus::Pending, "not measured yet"),
        ];
        missing.into_iter().filter_map(part).collect()
    }
}

/// How many cells of plans beside each other cannot be read; a part of a sentence for each plan
/// that has some.
#[must_use]
pub fn unread(plans: &[MeasuredPlan]) -> Vec<String> {
    let of = |(number, plan): (usize, &MeasuredPlan)| {
        let run = |at: usize| plan.found.get(at)?.run.as_ref().map(|run| &run.document);
        let found = PlanFinding::of(&plan.record, run, |_| Vec::new(), plan.gates);
        found.unread(&called(plans, number))
    };
    plans.iter().enumerate().filter_map(of).collect()
}

/// `p99<=100us at hackbench, cpu1: at least 812 us`
fn reason(of: &str, gate: &GateResult) -> String {
    let series = gate.series.as_deref().map(sample_name::series);
    let place = [Some(of.into()).filter(|_| !of.is_empty()), series];
    let place: Vec<Cow<'_, str>> = place.into_iter().flatten().collect();
    let at = if place.is_empty() { "" } else { " at " };
    // What follows a semicolon is an explanation.
    let reason = gate.reason.split("; ").next().unwrap_or_default();
    format!("{}{at}{}: {reason}", gate.gate, place.join(", "))
}

/// The highest percentile that all of these runs have enough samples for; else the maximum.
fn deciding(cells: &[&FoundCell]) -> &'static str {
    let has = |name: &&str| {
        cells.iter().filter_map(|cell| cell.run).all(|run| {
            let view = LatencyView::of(run);
            whole(run).filter(|own| own.count > 0).all(|series| {
                let is_uncertain = view.uncertain(series).iter().any(|own| own == name);
                view.percentiles(series).contains_key(*name) && !is_uncertain
            })
        })
    };
    DECIDING.into_iter().find(has).unwrap_or("max")
}

/// The series of a run in which a metric is largest.
fn worst_of<'a>(found: &FoundCell<'a>, figure: &str) -> Option<WorstPlace<'a>> {
    let run = found.run?;
    let view = LatencyView::of(run);
    let value = |name: &str, of: &SeriesSummary| match name {
        "max" => of.max,
        _ => view.percentiles(of).get(name).and_then(|ns| i64::try_from(*ns).ok()),
    };
    let series =
        whole(run).filter_map(|series| Some((value(figure, series)?, series.name.as_str())));
    let larger =
        |one: (i64, &'a str), other: (i64, &'a str)| if other.0 > one.0 { other } else { one };
    let (value_ns, series) = series.reduce(larger)?;
    let is_questionable = run.validity == Validity::Weakened;
    Some(WorstPlace { value_ns, cell: found.cell, series, is_questionable })
}

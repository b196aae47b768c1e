//! The sentences, word for word.

use super::*;
use crate::{
    analysis::{
        Matrix,
        matrix::{Column, Figure, JudgedFigure, Judgement, MatrixCell, MatrixRow},
    },
    report::{
        gate_decision::{GateResult, GateVerdict},
        lab::MatrixView,
        plan_sheet::AskedGates,
        plans_beside::HeldRow,
        suite_page::{FigureChange, PartFigure},
    },
    run::{
        AbVerdict, CellStatus, Document, PlanRecord, Validity, fixture::of as run_of,
        lab::LabFailure, plan_record::tests::record as two_cells,
    },
};

/// `idle` once and `hackbench` twice, all measured.
fn plan() -> (PlanRecord, Vec<Option<Document>>) {
    let mut record = two_cells();
    let mut cell = record.cells.remove(0);
    let mut named = |name: &str, repeat| {
        (cell.name, cell.repeat) = (name.into(), repeat);
        cell.clone()
    };
    record.cells = vec![named("idle", 1), named("hackbench", 1), named("hackbench", 2)];
    let run = |scale: i64| {
        let mut run = run_of("timer", &["cpu0", "cpu1"]);
        for series in &mut run.series {
            series.uncertain.clear();
            series.percentiles.insert("99.9".into(), 100_000 * scale.unsigned_abs());
        }
        run.series[1].max = Some(2_500_000 * scale);
        run.series[1].percentiles.insert("99.9".into(), 203_000 * scale.unsigned_abs());
        Some(run)
    };
    (record, vec![run(1), run(4), run(3)])
}

fn gate(verdict: GateVerdict, reason: &str) -> GateResult {
    let gate = "p99.9<=500us".into();
    GateResult { gate, series: Some("cpu1".into()), verdict, reason: reason.into() }
}

fn said(record: &PlanRecord, runs: &[Option<Document>], gates: &[Vec<GateResult>]) -> String {
    let asked = AskedGates { asked: usize::from(!gates.is_empty()), undecided: 0 };
    let own = |at: usize| gates.get(at).map(|own| own.iter().collect()).unwrap_or_default();
    PlanFinding::of(record, |at| runs[at].as_ref(), own, asked).sentence()
}

const PASS: (GateVerdict, &str) = (GateVerdict::Pass, "at most 100 us");
const FAIL: (GateVerdict, &str) = (GateVerdict::Fail, "at least 609 us");
const OPEN: (GateVerdict, &str) = (GateVerdict::Inconclusive, "2.0 independent samples beyond it");

fn gates(of: [(GateVerdict, &str); 3]) -> Vec<Vec<GateResult>> {
    of.into_iter().map(|(verdict, reason)| vec![gate(verdict, reason)]).collect()
}

#[test]
fn the_worst_latency_decides_where_no_gate_fails() {
    let (record, mut runs) = plan();
    let worst = "the worst p99.9 is 812 us, at hackbench, cpu1, repeat 1";
    let without = said(&record, &runs, &[]);
    assert_eq!(without, format!("T{}; no gate was set.", &worst[1..]));
    let passed = said(&record, &runs, &gates([PASS, PASS, PASS]));
    assert_eq!(passed, format!("No cell fails; {worst}."));
    runs[1].as_mut().unwrap().validity = Validity::Weakened;
    let doubted = said(&record, &runs, &gates([PASS, PASS, PASS]));
    assert_eq!(doubted, format!("No cell fails; {worst} (questionable)."));
    // A percentile that one of them cannot tell tells nothing of the worst of all.
    runs[0].as_mut().unwrap().series[0].uncertain = vec!["99.9".into(), "99".into(), "50".into()];
    let largest = "The largest latency is 10.0 ms, at hackbench, cpu1, repeat 1 (questionable)";
    assert_eq!(said(&record, &runs, &[]), format!("{largest}; no gate was set."));
}

#[test]
fn what_fails_comes_first_and_what_is_open_is_no_pass() {
    let (mut record, mut runs) = plan();
    assert_eq!(
        said(&record, &runs, &gates([PASS, FAIL, FAIL])),
        "2 of 3 cells fail their gates: hackbench (2 of 2 repeats); p99.9<=500us at hackbench, \
         cpu1: at least 609 us."
    );
    assert_eq!(
        said(&record, &runs, &gates([OPEN, PASS, PASS])),
        "Inconclusive: no cell fails, but 1 of 3 cells does not decide its gates: idle; \
         p99.9<=500us at idle, cpu1: 2.0 independent samples beyond it; the worst p99.9 is 812 us, \
         at hackbench, cpu1, repeat 1."
    );
    runs[2] = None;
    record.cells[2].status = CellStatus::Failed;
    assert_eq!(
        said(&record, &runs, &gates([PASS, PASS, PASS])),
        "Inconclusive: no cell fails, but not all are measured; the worst p99.9 is 812 us, at \
         hackbench, cpu1, repeat 1; 1 of 3 cells could not be measured."
    );
}

#[test]
fn an_invalid_run_says_nothing_but_that() {
    let (mut record, mut runs) = plan();
    runs[1].as_mut().unwrap().validity = Validity::Invalid;
    assert_eq!(
        said(&record, &runs, &gates([PASS, FAIL, PASS])),
        "Invalid: 1 of 3 cells: hackbench (1 of 2 repeats); no other cell fails; the worst p99.9 \
         is 609 us, at hackbench, cpu1, repeat 2."
    );
    runs.iter_mut().flatten().for_each(|run| run.validity = Validity::Invalid);
    let all = said(&record, &runs, &[]);
    assert_eq!(all, "Invalid: 3 of 3 cells; no gate was set.");
    record.cells.iter_mut().for_each(|cell| cell.status = CellStatus::Failed);
    let failed = said(&record, &[None, None, None], &[]);
    assert_eq!(failed, "No cell was measured: 3 of 3 cells failed.");
    record.cells.iter_mut().for_each(|cell| cell.status = CellStatus::Pending);
    assert_eq!(said(&record, &[None, None, None], &[]), "No cell was measured yet.");
}

#[test]
fn a_run_that_cannot_be_read_is_told_before_everything_else() {
    let (record, mut runs) = plan();
    runs[1] = None;
    let unread = "1 of 3 cells cannot be read: hackbench (1 of 2 repeats)";
    let worst = "the worst p99.9 is 609 us, at hackbench, cpu1, repeat 2";
    assert_eq!(said(&record, &runs, &[]), format!("{unread}; {worst}; no gate was set."));
    assert_eq!(
        said(&record, &runs, &gates([PASS, PASS, PASS])),
        format!("{unread}; inconclusive: no other cell fails, but not all can be read; {worst}.")
    );
    let all = said(&record, &[None, None, None], &[]);
    assert_eq!(all, "3 of 3 cells cannot be read; no gate was set.");
}

#[test]
fn samples_of_other_kinds_are_not_ranked_among_wake_ups() {
    let (record, mut runs) = plan();
    runs[2] = Some(run_of("pingpong", &["rtt"]));
    runs[2].as_mut().unwrap().series[0].max = Some(i64::MAX);
    assert_eq!(
        said(&record, &runs, &[]),
        "The worst p99.9 of wake-ups is 812 us, at hackbench, cpu1, repeat 1; no gate was set."
    );
    runs.truncate(2);
    runs[0] = Some(run_of("bandwidth", &[]));
    runs[1] = Some(run_of("bandwidth", &[]));
    let record = PlanRecord { cells: record.cells[..2].to_vec(), ..record };
    assert_eq!(said(&record, &runs, &[]), "No cell has latencies; no gate was set.");
}

#[test]
fn a_gate_that_nobody_decided_is_open() {
    let (record, runs) = plan();
    let asked = AskedGates { asked: 2, undecided: 1 };
    let own = gate(GateVerdict::Pass, "kept");
    let found = PlanFinding::of(&record, |at| runs[at].as_ref(), |_| vec![&own], asked);
    let said = found.sentence();
    let begin = "Inconclusive: no cell fails, but 1 gate against other runs not decided here; the";
    assert!(said.starts_with(begin), "{said}");
    let worse = gate(GateVerdict::Fail, "at least 12% above");
    let shared = vec![SharedGate { of: "hackbench", result: &worse }];
    let said = PlanFinding::of(&record, |at| runs[at].as_ref(), |_| vec![&own], asked)
        .with_shared(shared)
        .sentence();
    assert_eq!(
        said,
        "1 gate of all repeats fails: p99.9<=500us at hackbench, cpu1: at least 12% above."
    );
}

#[test]
fn plans_beside_each_other_say_in_how_many_rows_they_differ() {
    let row = |name: &str, verdict| HeldRow {
        row: name.into(),
        column: String::new(),
        plan: "y".into(),
        verdict,
        validity: Some(Validity::Valid),
        sentence: String::new(),
    };
    use AbVerdict::{Better, Same, Worse};
    let rows =
        [row("a", Some(Same)), row("b", Some(Worse)), row("c", Some(Better)), row("d", None)];
    let names = ["x".to_owned(), "y".to_owned()];
    assert_eq!(
        of_plans(&names, &[], &rows, &[]),
        "Against x, y is worse in 1 of 3 rows (b), better in 1, the same in 1."
    );
    let change = FigureChange { ratio: 1.2, low: 1.1, high: 1.3, verdict: Worse, needed: None };
    let figure = PartFigure {
        name: "fork".into(),
        unit: "us".into(),
        row: "bandwidth".into(),
        cells: Vec::new(),
        change: Some(change),
    };
    let invalid = HeldRow { validity: Some(Validity::Invalid), ..row("d", None) };
    assert_eq!(
        of_plans(&names, &[], &[invalid], &[figure]),
        "Invalid: 1 of 1 row: d; 1 of 1 other metric worse (fork of bandwidth)."
    );
    assert_eq!(
        of_plans(&names, &[], &[row("d", None)], &[]),
        "Inconclusive: no row is judged, which takes three repeats of each plan."
    );
    let unread = ["1 of 3 cells of y cannot be read: a".to_owned()];
    assert_eq!(
        of_plans(&names, &unread, &rows[..1], &[]),
        "1 of 3 cells of y cannot be read: a; against x, y is the same in 1 of 1 row."
    );
}

fn cell(ns: i64) -> Option<MatrixCell> {
    let figure = |name: &str| Figure {
        name: name.into(),
        low: ns,
        high: ns,
        median: ns,
        median_low: None,
        median_high: None,
        uncertain: name == "99.9",
    };
    Some(MatrixCell {
        phases: 5,
        runs: Vec::new(),
        samples: 10,
        figures: ["50", "99", "99.9", "max"].map(figure).into(),
        invalid: Vec::new(),
        causes: Vec::new(),
    })
}

fn sheet(judgements: [Vec<JudgedFigure>; 2]) -> MatrixView {
    let column = |name: &str| Column {
        name: name.into(),
        release: String::new(),
        preemption: String::new(),
        hash: String::new(),
        mode: String::new(),
        is_control: false,
    };
    let judged = |figures| vec![Judgement { kernel: 1, against: 0, not_judged: None, figures }];
    let [files, forks] = judgements;
    let row = |name: &str, cells, judgements| MatrixRow { name: name.into(), cells, judgements };
    let matrix = Matrix {
        kernels: vec![column("standard"), column("rt")],
        loads: vec![
            row("files", vec![cell(812_000), cell(9_000)], judged(files)),
            row("forks", vec![cell(20_000), None], judged(forks)),
        ],
        remarks: Vec::new(),
        comparisons: 4,
    };
    let (title, finding) = ("founding".into(), String::new());
    MatrixView { title, finding, matrix, failed: Vec::new(), undone: 0, config: None }
}

fn judged(figure: &str, verdict: AbVerdict) -> JudgedFigure {
    JudgedFigure {
        figure: figure.into(),
        verdict,
        ratio: 1.0,
        low: None,
        high: None,
        is_paired: false,
        share: 4,
    }
}

#[test]
fn kernels_are_told_apart_by_the_metric_that_most_rows_can_judge() {
    use AbVerdict::{Better, Worse};
    let both = sheet([
        vec![judged("50", Worse), judged("99", Better)],
        vec![judged("99", Worse), judged("max", Better)],
    ]);
    assert_eq!(
        of_lab(&both, None),
        "Against standard, p99 of rt is higher in 1 of 2 loads (forks), lower in 1."
    );
    let mut one = sheet([vec![judged("99.9", Better)], Vec::new()]);
    one.undone = 2;
    assert_eq!(
        of_lab(&one, None),
        "Against standard, p99.9 of rt is lower in 1 of 2 loads, not judged in 1; 2 runs not \
         measured yet."
    );
}

#[test]
fn a_lab_without_judgements_has_its_worst_latency_and_its_gates_come_first() {
    let mut plain = sheet([Vec::new(), Vec::new()]);
    assert_eq!(of_lab(&plain, None), "The worst p99 is 812 us, at files under standard.");
    let result = |verdict, reason: &str| GateResult {
        series: Some("files, standard".into()),
        ..gate(verdict, reason)
    };
    let (kept, over) = (result(GateVerdict::Pass, "kept"), result(GateVerdict::Fail, "over"));
    assert_eq!(
        of_lab(&plain, Some(&[kept.clone(), over])),
        "1 of 2 gate results fail: p99.9<=500us at files, standard: over; the worst p99 is 812 us, \
         at files under standard."
    );
    plain.matrix.loads[0].cells[0].as_mut().unwrap().invalid = vec!["clock_jumped".into()];
    plain.failed = vec![LabFailure {
        load: "forks".into(),
        kernel: "rt".into(),
        seed: 1,
        why: "it panicked".into(),
    }];
    assert_eq!(
        of_lab(&plain, Some(&[kept])),
        "Invalid: 1 of 3 cells: files under standard; no cell fails; the worst p99 is 20.0 us, \
         at forks under standard; 1 run failed."
    );
}

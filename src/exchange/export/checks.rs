//! A run as a list of checks: what test reports of build servers are made of.
//!
//! A server follows a test over nights by its name. So names are made of what was measured, and
//! not of the name and id of a run.

use std::collections::HashMap;

use super::check_names::{LabCell, SeriesWords, cell_words, measured, plain, word};

use crate::{
    analysis::matrix::{FIGURES, whole},
    report::{
        gate_decision::{GateResult, GateVerdict},
        headline::headline,
        words,
    },
    run::{
        Caveat, Document, Effect, PlanCell, PlanRecord, SeriesSummary, Status, Validity,
        lab::{LabFailure, LabRecord},
    },
    units::many,
};

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    /// The samples do not say.
    Inconclusive,
    /// The run is invalid, so that nothing can be said.
    Invalid,
    /// A cell of a plan has no run.
    NotRun,
}

/// A statement about a run and what it came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Check {
    /// The series, as a word; nothing for the run as a whole.
    pub(crate) series: Option<String>,
    /// `p99.9<=80us`
    pub(crate) name: String,
    pub(crate) outcome: Outcome,
    /// Why, in one line.
    pub(crate) reason: String,
}

/// A latency of a series.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CheckedFigure {
    /// The series, as a word.
    pub(crate) series: String,
    /// `p99.9`, `max`
    pub(crate) name: String,
    pub(crate) ns: i64,
}

/// A run with everything that was checked of it.
#[derive(Debug)]
pub(crate) struct CheckedRun {
    /// What was measured, as words with dots between them: `timer.hackbench`, or plan and cell.
    pub(crate) measured: String,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) hostname: String,
    /// RFC 3339, UTC.
    pub(crate) started_at: String,
    pub(crate) duration_s: f64,
    /// Machine, kernel, loads and probe.
    pub(crate) line: String,
    pub(crate) headline: String,
    /// The command that measured it.
    pub(crate) command: String,
    /// At least one: whether the run is valid.
    pub(crate) checks: Vec<Check>,
    /// None of an invalid run.
    pub(crate) figures: Vec<CheckedFigure>,
}

impl CheckedRun {
    /// Of a run and what its gates came to. Gates of an invalid run are decided by nothing.
    pub(crate) fn of(document: &Document, gates: &[GateResult]) -> Self {
        let is_invalid = document.validity == Validity::Invalid;
        let words = SeriesWords::of(document);
        let mut checks = vec![validity(document)];
        checks.extend(stopped_over(document));
        checks.extend(gates.iter().map(|gate| Check {
            series: gate.series.as_deref().map(|series| words.word(series)),
            ..of_gate(gate, is_invalid)
        }));
        let figures = whole(document).filter(|_| !is_invalid);
        let figures = figures.flat_map(|series| figures_of(series, &words)).collect();
        Self {
            measured: measured(document),
            id: document.id.clone(),
            name: document.name.clone(),
            hostname: document.facts.hostname.clone(),
            started_at: document.started_at.clone(),
            duration_s: document.duration_ns as f64 / 1e9,
            line: words::line(document),
            headline: headline(document),
            command: words::command(&document.argv),
            checks,
            figures,
        }
    }

    /// The same as a cell of a plan.
    pub(crate) fn in_cell(mut self, plan: &PlanRecord, cell: &PlanCell) -> Self {
        self.measured = cell_words(plan, cell);
        self
    }

    /// Of a cell that has no run.
    pub(crate) fn unmeasured(plan: &PlanRecord, cell: &PlanCell) -> Self {
        let reason = cell.error.clone().unwrap_or_else(|| "it is not measured yet".into());
        Self {
            id: cell.run_id.clone().unwrap_or_default(),
            started_at: plan.started_at.clone(),
            line: format!("cell {} of the plan {}", cell.name, plan.plan),
            command: words::command(&cell.words),
            ..Self::without_run(cell_words(plan, cell), &cell.name, reason)
        }
    }

    /// The same as a cell of the lab, `plan.load.kernel`, with its phase offset if there are more.
    pub(crate) fn in_matrix(
        mut self,
        lab: &LabRecord,
        document: &Document,
        has_phases: bool,
    ) -> Self {
        if let Some(facts) = &document.facts.lab {
            let cell = LabCell { load: &facts.load, kernel: &facts.kernel, phase: facts.seed };
            self.measured = cell.words(lab, has_phases);
        }
        self
    }

    /// Of a cell of the lab that failed.
    pub(crate) fn failed(lab: &LabRecord, failure: &LabFailure, has_phases: bool) -> Self {
        let LabFailure { load, kernel, seed, why } = failure;
        let words = LabCell { load, kernel, phase: *seed }.words(lab, has_phases);
        let line = format!("load {load} on kernel {kernel} in the lab's plan {}", lab.plan);
        let why = why.replace('\n', " ");
        Self { line, ..Self::without_run(words, &format!("{load} on {kernel}"), why) }
    }

    /// Of the cells that the lab's end left undone.
    pub(crate) fn undone(lab: &LabRecord) -> Self {
        let cells = many(lab.undone as u64, "cell");
        Self::without_run(
            word(&lab.plan),
            &lab.plan,
            format!("{cells} not measured: the lab ended early"),
        )
    }

    /// Of a directory of this name whose record cannot be read.
    pub(crate) fn unreadable(name: &str, why: &str) -> Self {
        Self::without_run(word(name), name, why.replace('\n', " "))
    }

    fn without_run(measured: String, name: &str, reason: String) -> Self {
        Self {
            measured,
            id: String::new(),
            name: name.to_owned(),
            hostname: String::new(),
            started_at: String::new(),
            duration_s: 0.0,
            line: String::new(),
            headline: reason.clone(),
            command: String::new(),
            checks: vec![Check {
                series: None,
                name: VALID.into(),
                outcome: Outcome::NotRun,
                reason: format!("no run: {reason}"),
            }],
            figures: Vec::new(),
        }
    }

    /// Adds what runs of one set-up say of others.
    pub(crate) fn extend(&mut self, gates: &[GateResult]) {
        let word = |series: &String| word(series);
        let checks = gates
            .iter()
            .map(|gate| Check { series: gate.series.as_ref().map(word), ..of_gate(gate, false) });
        self.checks.extend(checks);
    }

    /// Numbers those that measured the same, so that no two tests of a report have one name.
    pub(crate) fn tell_apart(runs: &mut [Self]) {
        let mut found: HashMap<String, u32> = HashMap::new();
        for run in runs {
            let times = found.entry(run.measured.clone()).or_default();
            *times += 1;
            if *times > 1 {
                run.measured = format!("{}.{times}", run.measured);
            }
        }
    }

    /// What a check is of: `timer.hackbench.cpu0`.
    pub(crate) fn class(&self, series: Option<&str>) -> String {
        let series = series.map(|series| format!(".{series}"));
        format!("{}{}", self.measured, series.unwrap_or_default())
    }

    /// What a check or a latency is called where a name has letters, digits, `-`, `_` and dots
    /// alone: `timer.hackbench.cpu0.p99.9_le_80us`.
    pub(crate) fn plain_name(&self, series: Option<&str>, what: &str) -> String {
        plain(&format!("{}.{what}", self.class(series)))
    }
}

/// The check that each run has.
const VALID: &str = "the run is valid";

fn validity(document: &Document) -> Check {
    let (outcome, effect) = match document.validity {
        Validity::Invalid => (Outcome::Invalid, Effect::Invalidates),
        Validity::Weakened => (Outcome::Passed, Effect::Weakens),
        Validity::Valid => (Outcome::Passed, Effect::Informs),
    };
    let caveats = document.caveats.iter().filter(|caveat| caveat.effect == effect);
    let caveats: Vec<String> = caveats.map(caveat).collect();
    let mut reason = document.validity.as_str().to_owned();
    if document.status != Status::Complete {
        reason = format!("{reason}, {}", words::status(document.status));
    }
    if !caveats.is_empty() && effect != Effect::Informs {
        reason = format!("{reason}: {}", caveats.join(" "));
    }
    Check { series: None, name: VALID.into(), outcome, reason }
}

fn caveat(caveat: &Caveat) -> String {
    format!("{}: {}", caveat.code, caveat.text)
}

/// A run that `--stop-over` ended has met what must not be.
fn stopped_over(document: &Document) -> Option<Check> {
    (document.status == Status::StoppedOver).then(|| Check {
        series: None,
        name: "no sample was later than --stop-over".into(),
        outcome: Outcome::Failed,
        reason: headline(document),
    })
}

fn of_gate(gate: &GateResult, is_invalid: bool) -> Check {
    let outcome = match gate.verdict {
        _ if is_invalid => Outcome::Invalid,
        GateVerdict::Pass => Outcome::Passed,
        GateVerdict::Inconclusive => Outcome::Inconclusive,
        GateVerdict::Fail => Outcome::Failed,
    };
    let reason = match is_invalid {
        true => "the run is invalid, and its figures decide nothing".into(),
        false => gate.reason.clone(),
    };
    Check { series: None, name: gate.gate.clone(), outcome, reason }
}

/// Percentiles that have enough samples beyond them, and the maximum.
fn figures_of(series: &SeriesSummary, words: &SeriesWords) -> Vec<CheckedFigure> {
    let of = |name: &&str| {
        let (name, ns) = match *name {
            "max" => ("max".to_owned(), series.max?),
            percentile if series.uncertain.iter().any(|own| own == percentile) => return None,
            percentile => {
                let ns = i64::try_from(*series.percentiles.get(percentile)?).ok()?;
                (format!("p{percentile}"), ns)
            }
        };
        Some(CheckedFigure { series: words.word(&series.name), name, ns })
    };
    FIGURES.iter().filter_map(of).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        report::fixture,
        run::{LoadRecord, plan_record::tests::record},
    };

    /// Three gates of a run, one of each verdict.
    pub(in crate::exchange) fn gates() -> Vec<GateResult> {
        let gate = |gate: &str, series: &str, verdict, reason: &str| GateResult {
            gate: gate.into(),
            series: Some(series.into()),
            verdict,
            reason: reason.into(),
        };
        vec![
            gate("p99<=80us", "cpu0", GateVerdict::Pass, "60 to 70 us"),
            gate("max<1ms", "cpu0", GateVerdict::Fail, "2.40 ms & <more>"),
            gate("p99.9<=1ms", "cpu1", GateVerdict::Inconclusive, "0.5 to 2 ms"),
        ]
    }

    /// A run of two CPUs.
    pub(in crate::exchange) fn document() -> Document {
        fixture::of("timer", &["cpu0", "cpu1"])
    }

    fn outcomes(run: &CheckedRun) -> Vec<(&str, Outcome)> {
        run.checks.iter().map(|check| (check.name.as_str(), check.outcome)).collect()
    }

    #[test]
    fn a_run_is_valid_or_not_and_each_gate_is_a_check() {
        let run = CheckedRun::of(&document(), &gates());
        assert_eq!(
            outcomes(&run),
            [
                ("the run is valid", Outcome::Passed),
                ("p99<=80us", Outcome::Passed),
                ("max<1ms", Outcome::Failed),
                ("p99.9<=1ms", Outcome::Inconclusive),
            ]
        );
        let passed = run.checks.iter().filter(|check| check.outcome == Outcome::Passed);
        assert_eq!(passed.count(), 2);
        let classes = run.checks.iter().map(|check| run.class(check.series.as_deref()));
        let expected = ["timer.idle", "timer.idle.cpu0", "timer.idle.cpu0", "timer.idle.cpu1"];
        assert!(classes.eq(expected), "{run:?}");
    }

    #[test]
    fn names_are_of_what_was_measured_and_none_is_there_twice() {
        let mut night = document();
        night.name = "nightly-17".into();
        let load = |name: &str, command: &str| LoadRecord {
            name: name.into(),
            parameters: [("command".to_owned(), command.into())].into_iter().collect(),
            proof: None,
            ended: None,
        };
        night.loads = vec![load("hackbench", ""), load("command", "stress-ng --vm 2")];
        let of = |document: &Document| CheckedRun::of(document, &[]);
        let mut runs = [of(&night), of(&document()), of(&night)];
        CheckedRun::tell_apart(&mut runs);
        let loaded = "timer.hackbench+_stress-ng_--vm_2_";
        assert_eq!(
            runs.map(|run| run.measured),
            [loaded.to_owned(), "timer.idle".into(), format!("{loaded}.2")]
        );
    }

    #[test]
    fn a_cell_is_named_by_its_plan_and_one_without_a_run_is_an_error() {
        let plan = record();
        let (first, second) = (&plan.cells[0], &plan.cells[1]);
        assert_eq!(CheckedRun::of(&document(), &[]).in_cell(&plan, first).measured, "p.a");
        let missing = CheckedRun::unmeasured(&plan, second);
        assert_eq!(missing.measured, "p.b");
        assert_eq!(outcomes(&missing), [("the run is valid", Outcome::NotRun)]);
        assert_eq!(missing.checks[0].reason, "no run: it is not measured yet");
    }

    #[test]
    fn no_gate_of_an_invalid_run_passes_and_the_caveats_say_why() {
        let mut document = document();
        document.validity = Validity::Invalid;
        document.caveats = vec![Caveat {
            code: "throttled".into(),
            effect: Effect::Invalidates,
            text: "Threads were throttled.".into(),
            remedy: String::new(),
            values: serde_json::Map::new(),
        }];
        let run = CheckedRun::of(&document, &gates());
        assert!(run.checks.iter().all(|check| check.outcome == Outcome::Invalid), "{run:?}");
        assert_eq!(run.checks[0].reason, "invalid: throttled: Threads were throttled.");
    }

    #[test]
    fn a_run_that_met_its_limit_and_was_stopped_fails() {
        let mut document = document();
        document.status = Status::StoppedOver;
        let run = CheckedRun::of(&document, &[]);
        assert_eq!(outcomes(&run)[1], ("no sample was later than --stop-over", Outcome::Failed));
    }
}

//! A run as a list of checks: what test reports of build servers are made of.

use crate::{
    report::{
        gate_decision::{GateResult, GateVerdict},
        headline::headline,
        words,
    },
    run::{Caveat, Document, Effect, Status, Validity},
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
}

/// A statement about a run and what it came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Check {
    /// `p99.9<=80us on cpu0`
    pub(crate) name: String,
    pub(crate) outcome: Outcome,
    /// Why, in one line.
    pub(crate) reason: String,
}

/// A run with everything that was checked of it.
#[derive(Debug)]
pub(crate) struct CheckedRun {
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
}

impl CheckedRun {
    /// Of a run and what its gates came to. Gates of an invalid run are decided by nothing.
    pub(crate) fn of(document: &Document, gates: &[GateResult]) -> Self {
        let is_invalid = document.validity == Validity::Invalid;
        let mut checks = vec![validity(document)];
        checks.extend(stopped_over(document));
        checks.extend(gates.iter().map(|gate| match is_invalid {
            true => Check {
                name: name(gate),
                outcome: Outcome::Invalid,
                reason: "the run is invalid, and its figures decide nothing".into(),
            },
            false => of_gate(gate),
        }));
        Self {
            id: document.id.clone(),
            name: document.name.clone(),
            hostname: document.facts.hostname.clone(),
            started_at: document.started_at.clone(),
            duration_s: document.duration_ns as f64 / 1e9,
            line: words::line(document),
            headline: headline(document),
            command: words::command(&document.argv),
            checks,
        }
    }

    /// How many checks came to this.
    pub(crate) fn count(&self, outcome: Outcome) -> usize {
        self.checks.iter().filter(|check| check.outcome == outcome).count()
    }
}

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
    Check { name: "the run is valid".into(), outcome, reason }
}

fn caveat(caveat: &Caveat) -> String {
    format!("{}: {}", caveat.code, caveat.text)
}

/// A run that `--stop-over` ended has met what must not be.
fn stopped_over(document: &Document) -> Option<Check> {
    (document.status == Status::StoppedOver).then(|| Check {
        name: "no sample was later than --stop-over".into(),
        outcome: Outcome::Failed,
        reason: headline(document),
    })
}

fn of_gate(gate: &GateResult) -> Check {
    let outcome = match gate.verdict {
        GateVerdict::Pass => Outcome::Passed,
        GateVerdict::Inconclusive => Outcome::Inconclusive,
        GateVerdict::Fail => Outcome::Failed,
    };
    Check { name: name(gate), outcome, reason: gate.reason.clone() }
}

fn name(gate: &GateResult) -> String {
    let on = gate.series.as_deref().map(|series| format!(" on {series}"));
    format!("{}{}", gate.gate, on.unwrap_or_default())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::report::fixture;

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
                ("p99<=80us on cpu0", Outcome::Passed),
                ("max<1ms on cpu0", Outcome::Failed),
                ("p99.9<=1ms on cpu1", Outcome::Inconclusive),
            ]
        );
        assert_eq!(run.count(Outcome::Passed), 2);
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

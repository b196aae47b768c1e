//! `worse<5%@p99 vs BASE`: runs compared with others that were named, and what is known beforehand.

use super::{CompareOptions, WorseGate, compare_runs};
use crate::{
    analysis::{ab::figure::ComparedFigure, replicates::FEWEST_RUNS},
    report::gate_decision::GateResult,
    run::{Document, Run, Validity},
    units::many,
};

/// The runs that a gate holds others against.
#[derive(Debug, Clone)]
pub struct GateBase {
    gate: WorseGate,
    runs: Vec<Run>,
}

/// What is to be compared with them, as far as it is known before it is measured.
#[derive(Debug, Clone, Copy)]
pub struct HeldRuns<'a> {
    /// The probe.
    pub probe: &'a str,
    /// The series of whole latencies.
    pub series: &'a [String],
    /// How many runs there are.
    pub runs: usize,
}

impl GateBase {
    /// The gate with the runs that it names.
    ///
    /// # Errors
    /// A run that decides nothing, by its name.
    pub fn new(gate: WorseGate, runs: Vec<Run>) -> Result<Self, String> {
        for run in &runs {
            let document = &run.document;
            let name = &document.name;
            if document.validity == Validity::Invalid {
                return Err(format!(
                    "\"{gate}\": {name} is invalid (`tardy show {name}` says why), and decides \
                     nothing; measure it again, or name another run"
                ));
            }
            if filled(document).next().is_none() {
                return Err(format!(
                    "\"{gate}\": {name} has no latencies; name a run that measured some"
                ));
            }
        }
        Ok(Self { gate, runs })
    }

    /// Which gate.
    #[must_use]
    pub const fn gate(&self) -> &WorseGate {
        &self.gate
    }

    /// The runs that it names.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Whether it names this run.
    #[must_use]
    pub fn has(&self, run: &Run) -> bool {
        self.runs.iter().any(|own| own.document.id == run.document.id)
    }

    /// Why these cannot be compared with its runs; nothing where they can.
    #[must_use]
    pub fn refusal(&self, held: HeldRuns<'_>) -> Option<String> {
        let gate = &self.gate;
        if let Some(unknown) = gate.unknown_series(held) {
            return Some(unknown);
        }
        self.runs.iter().map(|run| &run.document).find_map(|base| {
            let (name, probe) = (&base.name, base.probe.measured_as());
            if probe != held.probe {
                return Some(format!(
                    "\"{gate}\": {name} is a run of {probe}, this is one of {}: their samples are \
                     different things; name a run of {}",
                    held.probe, held.probe
                ));
            }
            let is_meant = |own: &&str| gate.series().is_none_or(|meant| meant == *own);
            let is_common = |own: &str| held.series.iter().any(|name| name == own);
            if !filled(base).filter(is_meant).any(is_common) {
                let there: Vec<&str> = filled(base).collect();
                let wanted = gate.series().map_or_else(|| held.series.join(", "), str::to_owned);
                return Some(format!(
                    "\"{gate}\": {name} has {}, and not {wanted}; name a run that has it",
                    there.join(", ")
                ));
            }
            let no_schedule = base.wakeups().any(|series| series.missed.is_none());
            (gate.figure == ComparedFigure::Missed && no_schedule).then(|| {
                format!("\"{gate}\": {name} has no schedule, so no missed periods; name a latency")
            })
        })
    }

    /// Why it can never be decided by `runs` runs; `None` if it can.
    #[must_use]
    pub fn doubt(&self, runs: usize) -> Option<String> {
        (runs.min(self.runs.len()) < FEWEST_RUNS).then(|| {
            format!(
                "gate {} can be neither passed nor failed: {}",
                self.gate,
                few(self.runs.len(), runs)
            )
        })
    }

    /// What these runs say of it.
    #[must_use]
    pub fn decide(&self, runs: Vec<Run>) -> Vec<GateResult> {
        let options = CompareOptions { judged: vec![self.gate.figure], margin: None };
        let of_b = runs.len();
        let inconclusive = |reason: String| vec![self.gate.inconclusive(reason)];
        let found = match compare_runs(self.runs.clone(), runs, &options) {
            Ok(report) => report,
            Err(why) => return inconclusive(why.to_string()),
        };
        let Some(one) = found.comparisons.first() else { return inconclusive("no runs".into()) };
        let mut results = self.gate.decide(one).unwrap_or_else(inconclusive);
        let undecided = results.iter_mut().filter(|_| !one.judged);
        undecided.for_each(|own| own.reason = few(self.runs.len(), of_b));
        results
    }
}

impl WorseGate {
    /// That it is for a series which these runs do not have; nothing if they do.
    #[must_use]
    pub fn unknown_series(&self, held: HeldRuns<'_>) -> Option<String> {
        if held.series.is_empty() {
            return Some(format!("\"{self}\": this run has no latencies; leave the gate out"));
        }
        let own = self.series().filter(|own| !held.series.iter().any(|name| name == own))?;
        let there = held.series.join(", ");
        Some(format!("\"{self}\": unknown series {own}; there are {there}"))
    }
}

fn filled(document: &Document) -> impl Iterator<Item = &str> {
    let filled = document.wakeups().filter(|series| !series.percentiles.is_empty());
    filled.map(|series| series.name.as_str())
}

fn few(of_base: usize, runs: usize) -> String {
    format!(
        "{} against {}: how much runs of one set-up differ is not in them, and it takes \
         {FEWEST_RUNS} of each (a plan with repeat = {FEWEST_RUNS}, vs A1,A2,A3)",
        many(runs as u64, "run"),
        many(of_base as u64, "run")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{fixture, gate_decision::GateVerdict};

    /// Runs with these 99% of latencies, and the number of each, ns.
    fn runs(place: &std::path::Path, names: &[(&str, u64)]) -> Vec<Run> {
        let one = |(name, late): &(&str, u64)| {
            let block = |n: u64| (0..100).map(move |own| if own < 3 { late + n } else { 5_000 });
            let blocks = (0..20).map(|n| block(n).collect()).collect();
            fixture::written_with(&place.join(name), &[("cpu0", blocks)], |document| {
                document.id = format!("20261121-203055.042-{:04x}", late % 0xffff);
                document.name = (*name).to_owned();
            })
        };
        names.iter().map(one).collect()
    }

    fn base(text: &str, runs: Vec<Run>) -> GateBase {
        GateBase::new(text.parse().unwrap(), runs).unwrap()
    }

    #[test]
    fn three_runs_of_each_decide_it_and_fewer_say_what_it_takes() {
        let place = tempfile::tempdir().unwrap();
        let a = runs(place.path(), &[("a1", 50_000), ("a2", 50_100), ("a3", 50_200)]);
        let b = runs(place.path(), &[("b1", 90_000), ("b2", 90_100), ("b3", 90_200)]);
        let worse = base("worse<5%@p99 vs a1,a2,a3", a.clone());
        assert_eq!(worse.doubt(3), None);
        assert_eq!(worse.decide(b.clone())[0].verdict, GateVerdict::Fail);
        let better = base("worse<5%@p99 vs b1,b2,b3", b.clone());
        assert_eq!(better.decide(a.clone())[0].verdict, GateVerdict::Pass);
        let doubt = worse.doubt(1).unwrap();
        assert!(doubt.contains("1 run against 3 runs"), "{doubt}");
        let one = worse.decide(b[..1].to_vec());
        assert_eq!(one[0].verdict, GateVerdict::Inconclusive);
        assert!(one[0].reason.contains("it takes 3 of each"), "{}", one[0].reason);
        let same = worse.decide(a[..1].to_vec()).remove(0);
        assert!(same.reason.contains("a1 is listed twice"), "{}", same.reason);
    }

    #[test]
    fn a_base_that_decides_nothing_is_refused_by_name_before() {
        let place = tempfile::tempdir().unwrap();
        let a = runs(place.path(), &[("a", 50_000)]);
        let series = ["cpu0".to_owned()];
        let held = HeldRuns { probe: a[0].document.probe.measured_as(), series: &series, runs: 1 };
        let refusal = |text: &str, held| base(text, a.clone()).refusal(held).unwrap_or_default();
        assert_eq!(refusal("worse<5%@p99 vs a", held), "");
        let other = HeldRuns { probe: "pingpong", ..held };
        assert!(refusal("worse<5%@p99 vs a", other).contains("a is a run of timer"));
        let elsewhere = ["cpu7".to_owned()];
        let elsewhere = HeldRuns { series: &elsewhere, ..held };
        assert!(refusal("worse<5%@p99 vs a", elsewhere).contains("a has cpu0, and not cpu7"));
        assert!(refusal("cpu3:worse<5%@p99 vs a", held).contains("unknown series cpu3"));
        let mut invalid = a.clone();
        invalid[0].document.validity = Validity::Invalid;
        let error = GateBase::new("worse<5%@p99 vs a".parse().unwrap(), invalid).unwrap_err();
        assert!(error.contains("a is invalid (`tardy show a` says why)"), "{error}");
    }
}

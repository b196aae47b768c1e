//! `worse<5%@p99 vs baseline`: a night compared with the nights before, and what would decide it.

use super::{WorseGate, worse::digits};
use crate::{
    analysis::nights::{
        FEWEST_NIGHTS, MOST_NIGHTS, NightFinding, NightLevel, NightQuestion, NightResult,
        NightSpread,
    },
    report::gate_decision::{GateResult, GateVerdict},
    units::{many, percent},
};

/// The nights of one series, and what was left out of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SeriesNights {
    /// The series.
    pub series: String,
    /// Those before that are alike, oldest first.
    pub before: Vec<NightLevel>,
    /// The ones that are judged.
    pub judged: Vec<NightLevel>,
    /// How many were left out, and why: `2 invalid runs`.
    pub left_out: Vec<String>,
}

impl WorseGate {
    /// What the nights say of it, series by series.
    #[must_use]
    pub fn decide_by_nights(&self, all: &[SeriesNights]) -> Vec<GateResult> {
        let question = NightQuestion { share: self.share(), series: all.len() };
        let result = |own: &SeriesNights| {
            let (verdict, mut reason) = self.of_series(own, question);
            if !own.left_out.is_empty() {
                reason.push_str(&format!("; left out: {}", own.left_out.join(", ")));
            }
            let series = Some(own.series.clone());
            GateResult { gate: self.to_string(), series, verdict, reason }
        };
        all.iter().map(result).collect()
    }

    /// What it takes to decide it, by how much the nights before differ: of the series in which
    /// they differ most. `sides` are the runs that it names and those that are planned; `None` if
    /// it is against the nights before.
    #[must_use]
    pub fn outlook(&self, all: &[SeriesNights], sides: Option<(usize, usize)>) -> String {
        if !self.is_listed() {
            return format!("{self}: past runs are listed by p50, p99 and p99.9 only");
        }
        let known = all.iter().filter_map(|own| Some((own, NightSpread::of(&own.before)?)));
        let widest = known.max_by(|a, b| a.1.sd.total_cmp(&b.1.sd));
        let Some((own, spread)) = widest else {
            let most = all.iter().map(|own| own.before.len()).max().unwrap_or(0);
            let nights = nights(most);
            let are = if most == 1 { "is" } else { "are" };
            return format!(
                "{self}: {nights} {are} alike, and it takes {FEWEST_NIGHTS} to say what it needs"
            );
        };
        let (figure, series) = (self.figure.name(), &own.series);
        let (differ, last) = (percent_of(spread.sd.exp_m1()), spread.nights);
        let margin = percent_of(self.share());
        let seen = format!("{figure} of {series} differed by {differ} in the last {last} nights");
        let Some((base, planned)) = sides else {
            let question = NightQuestion { share: self.share(), series: all.len() };
            return format!("{seen}{} ({self})", from_then_on(&spread, question, &margin));
        };
        match spread.runs_a_side(self.share()) {
            Some(needed) => format!(
                "{seen}; {self} needs about {} per side, each of another night ({base} and \
                 {planned} are there): runs of one night share its deviation",
                many(u64::from(needed), "run")
            ),
            None => format!("{seen}; no number of runs decides {self}"),
        }
    }

    fn of_series(&self, own: &SeriesNights, question: NightQuestion) -> (GateVerdict, String) {
        let open = |reason| (GateVerdict::Inconclusive, reason);
        let Some(spread) = NightSpread::of(&own.before) else {
            let nights = nights(own.before.len());
            let are = if own.before.len() == 1 { "is" } else { "are" };
            return open(format!("{nights} before {are} alike, and it takes {FEWEST_NIGHTS}"));
        };
        let Some(found) = spread.judge(&own.judged, question) else {
            let figure = self.figure.name();
            return open(format!("fewer than 10 samples beyond {figure}: measure for longer"));
        };
        let place = place(&spread, &found);
        let margin = percent_of(question.share);
        match found.finding {
            NightFinding::Within => {
                (GateVerdict::Pass, place + &from_then_on(&spread, question, &margin))
            }
            NightFinding::Above => (GateVerdict::Fail, place),
            NightFinding::SeemsAbove => open(format!(
                "{place}: above {margin} at 95%, but a gate for each night takes 99%; if the next \
                 nights are as high, judged together they decide it"
            )),
            NightFinding::SeenBefore => open(format!(
                "{place}: above {margin}, but a night before was as high; judged together, the \
                 next nights decide it"
            )),
            NightFinding::Open => open(place + &remedy(&spread, own, question, &margin)),
        }
    }
}

/// `x0.985 to x1.031 of 24 nights, which differ by 1.2%`
fn place(spread: &NightSpread, found: &NightResult) -> String {
    let (low, high) = (digits(found.low), digits(found.high));
    let nights = nights(spread.nights);
    let differ = percent_of(spread.sd.exp_m1());
    format!("x{low} to x{high} of {nights} before, which differ by {differ}")
}

/// From how many nights on such nights pass.
fn from_then_on(spread: &NightSpread, question: NightQuestion, margin: &str) -> String {
    match spread.nights_needed(question) {
        Some(needed) => format!("; 80% of unchanged nights pass from {needed} on"),
        None => few_pass(spread, question, margin),
    }
}

/// What would decide it.
fn remedy(
    spread: &NightSpread,
    own: &SeriesNights,
    question: NightQuestion,
    margin: &str,
) -> String {
    if own.judged.len() > 1 {
        let judged = nights(own.judged.len());
        let share = spread.decidable(spread.nights, own.judged.len(), question);
        return format!("; {judged} together decide {}", percent_up(share));
    }
    let runs = |all: &[NightLevel]| {
        let sum: usize = all.iter().map(|night| night.runs).sum();
        sum as f64 / all.len().max(1) as f64
    };
    let more = match (runs(&own.before), runs(&own.judged)) {
        (usual, now) if now < usual - 0.5 => format!(
            "; measure {} a night, as before: fewer differ more",
            many(usual.round() as u64, "run")
        ),
        _ => String::new(),
    };
    let what = match spread.nights_needed(question) {
        Some(needed) if needed > spread.nights => {
            format!("; 80% of unchanged nights pass from {needed} on")
        }
        Some(needed) => format!(
            "; 80% of unchanged nights pass from {needed} on, so this one is higher than most: \
             judged together with the next ones it is decided"
        ),
        None => never(spread, question, margin),
    };
    what + &more
}

/// Why one night is not enough, and what is.
fn never(spread: &NightSpread, question: NightQuestion, margin: &str) -> String {
    let together = match spread.judged_needed(question) {
        Some(judged) => format!("; {margin} takes {} judged together", nights(judged)),
        None => String::new(),
    };
    few_pass(spread, question, margin) + &together
}

/// `; however many are before, 35% of unchanged nights pass 5%; with these, 80% pass 8.9%`
fn few_pass(spread: &NightSpread, question: NightQuestion, margin: &str) -> String {
    let count = spread.nights.clamp(FEWEST_NIGHTS, MOST_NIGHTS);
    let own = percent_up(spread.decidable(count, 1, question));
    let passing = percent(spread.passing(MOST_NIGHTS, question), 0);
    format!(
        "; however many are before, {passing} of unchanged nights pass {margin}; with \
         these, 80% pass {own}"
    )
}

fn nights(count: usize) -> String {
    many(count as u64, "night")
}

/// `5%`, `1.2%`
fn percent_of(share: f64) -> String {
    let tenths = percent(share, 1);
    tenths.strip_suffix(".0%").map_or(tenths.clone(), |whole| format!("{whole}%"))
}

/// The same, rounded up.
fn percent_up(share: f64) -> String {
    percent_of((share * 1_000.0).ceil() / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nights of 50 us that differ by `sd`, and the last one by `ratio`.
    fn judged(text: &str, (count, sd): (usize, f64), ratios: &[f64]) -> GateResult {
        let at = |log: f64| NightLevel::of(&[(50_000_000.0 * log.exp()) as i64]).unwrap();
        let noise = |night: usize| ((night * 37 % 11) as f64 - 5.0) / 3.3;
        let own = SeriesNights {
            series: "cpu0".into(),
            before: (0..count).map(|night| at(sd * noise(night))).collect(),
            judged: ratios.iter().map(|ratio| at(ratio.ln())).collect(),
            left_out: vec!["2 invalid runs".into(), "3 runs of another machine".into()],
        };
        let gate: WorseGate = text.parse().unwrap();
        gate.decide_by_nights(&[own]).remove(0)
    }

    const GATE: &str = "worse<5%@p99 vs baseline";

    #[test]
    fn a_night_passes_fails_or_says_what_decides_it() {
        use GateVerdict::{Fail, Inconclusive, Pass};
        for (nights, ratios, verdict, says) in [
            ((24, 0.01), &[1.0][..], Pass, "of 24 nights before, which differ by 1"),
            ((24, 0.01), &[1.0], Pass, "80% of unchanged nights pass from 8 on; left out: 2 inv"),
            ((24, 0.01), &[1.2], Fail, "x1.1"),
            ((5, 0.01), &[1.0], Inconclusive, "5 nights before are alike, and it takes 8; left"),
            ((12, 0.014), &[1.02], Inconclusive, "80% of unchanged nights pass from "),
            ((30, 0.01), &[1.045], Inconclusive, "so this one is higher than most"),
            ((24, 0.01), &[1.076], Inconclusive, "but a gate for each night takes 99%"),
            (
                (24, 0.4),
                &[2.0],
                Inconclusive,
                "however many are before, 3% of unchanged nights pass 5%; with these, 80% pass ",
            ),
            ((30, 0.03), &[1.03], Inconclusive, "; 5% takes "),
            ((30, 0.03), &[1.03, 1.03], Inconclusive, "; 2 nights together decide "),
            ((30, 0.02), &[0.99], Pass, "% of unchanged nights pass 5%; with these, 80% pass "),
            ((30, 0.02), &[], Inconclusive, "fewer than 10 samples beyond p99"),
        ] {
            let found = judged(GATE, nights, ratios);
            assert_eq!(found.verdict, verdict, "{nights:?} {ratios:?}: {}", found.reason);
            assert!(found.reason.contains(says), "{nights:?} {ratios:?}: {}", found.reason);
        }
    }

    #[test]
    fn what_a_gate_needs_is_said_before() {
        let at = |log: f64| NightLevel::of(&[(50_000_000.0 * log.exp()) as i64]).unwrap();
        let of = |count: usize, sd: f64| SeriesNights {
            series: format!("cpu{count}"),
            before: (0..count).map(|n| at(sd * ((n * 37 % 11) as f64 - 5.0) / 3.3)).collect(),
            ..SeriesNights::default()
        };
        let runs: WorseGate = "worse<5%@p99 vs a1,a2,a3".parse().unwrap();
        let said = runs.outlook(&[of(20, 0.03), of(21, 0.01)], Some((3, 2)));
        assert!(said.starts_with("p99 of cpu20 differed by 3."), "{said}");
        let needs = "needs about 8 runs per side, each of another night (3 and 2 are there)";
        assert!(
            said.contains("in the last 20 nights; worse<5%@p99 vs a1,a2,a3 ")
                && said.contains(needs)
        );
        let other: WorseGate = "worse<5%@p90 vs a".parse().unwrap();
        assert!(other.outlook(&[of(20, 0.01)], Some((1, 3))).contains("listed by p50"));
        let few = runs.outlook(&[of(3, 0.03)], Some((3, 3)));
        assert!(few.contains("3 nights are alike, and it takes 8 to say what it needs"), "{few}");
        let nights: WorseGate = GATE.parse().unwrap();
        let said = nights.outlook(&[of(20, 0.01)], None);
        assert!(
            said.contains("; 80% of unchanged nights pass from 8 on (worse<5%@p99 vs"),
            "{said}"
        );
    }

    #[test]
    fn fewer_runs_than_usual_are_named_as_what_to_change() {
        let night = |factor: f64, runs: usize| {
            let spread = |run: usize| 1.0 + 0.02 * (run as f64 - 1.0);
            let ns = |run| (50_000.0 * factor * spread(run)) as i64;
            NightLevel::of(&(0..runs).map(ns).collect::<Vec<i64>>()).unwrap()
        };
        let before = (0..30).map(|n| night(1.0 + f64::from(n * 37 % 11) / 400.0, 3)).collect();
        let own = |runs| SeriesNights {
            series: "cpu0".into(),
            before: Vec::clone(&before),
            judged: vec![night(1.045, runs)],
            left_out: Vec::new(),
        };
        let gate: WorseGate = GATE.parse().unwrap();
        let found = |runs| gate.decide_by_nights(&[own(runs)]).remove(0).reason;
        assert!(found(1).ends_with("measure 3 runs a night, as before: fewer differ more"));
        assert!(!found(3).contains("measure"), "{}", found(3));
    }
}

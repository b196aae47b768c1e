//! What a search among kernels found, and how it is said.

use anyhow::Result;
use serde::Serialize;

use crate::{
    analysis::{
        baseline::BaselineResult,
        bisection::{BisectSide, Bisection},
    },
    cli::{lab::gates::difference, output},
    lab::kernels::KernelSource,
    plain::plain,
    report::{lab::figure_name, table::Table},
};

/// What was found.
#[derive(Debug, Default, Serialize)]
pub(super) struct BisectOutcome {
    pub good: String,
    pub bad: String,
    /// The load and the figure that were followed; null where the two do not differ.
    pub load: Option<String>,
    pub figure: Option<String>,
    /// By how much a kernel may be worse and still be good, as a share.
    pub margin: Option<f64>,
    /// The last kernel that is good.
    pub last_good: Option<String>,
    /// The one right after it, where that is bad.
    pub first_bad: Option<String>,
    /// If it is not: those of which one is the first bad one, the last of them for certain bad.
    pub suspects: Vec<String>,
    /// Whether somebody ended the search.
    pub stopped: bool,
    /// Each kernel that was looked at, in that order.
    pub steps: Vec<BisectStep>,
}

/// A kernel that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct BisectStep {
    pub kernel: String,
    /// `good`, `bad` or `undecided`.
    pub verdict: &'static str,
    /// The interval of its figure against the good kernel's, or why it is missing.
    pub reason: String,
}

impl BisectOutcome {
    pub(super) fn new(good: &str, bad: &str) -> Self {
        Self { good: good.to_owned(), bad: bad.to_owned(), ..Self::default() }
    }

    /// Which figure is followed.
    pub(super) fn of_figure(&mut self, worst: &BaselineResult) {
        self.load = Some(worst.load.clone());
        self.figure = Some(figure_name(&worst.figure));
        self.margin = Some(worst.margin);
    }

    /// The good and the bad kernel do not differ for certain: what is said of each figure.
    pub(super) fn undecided_ends(&mut self, found: &[BaselineResult], figure: Option<&str>) {
        for own in found.iter().filter(|own| figure.is_none_or(|figure| own.figure == figure)) {
            let reason = format!("{}, {}: {}", own.load, figure_name(&own.figure), difference(own));
            let verdict = if own.is_kept() == Some(true) { "good" } else { "undecided" };
            self.steps.push(BisectStep { kernel: self.bad.clone(), verdict, reason });
        }
    }

    pub(super) fn note(&mut self, kernel: &str, side: BisectSide, reason: &str) {
        let verdict = match side {
            BisectSide::Good => "good",
            BisectSide::Bad => "bad",
            BisectSide::Open => "undecided",
        };
        self.steps.push(BisectStep {
            kernel: kernel.to_owned(),
            verdict,
            reason: reason.to_owned(),
        });
    }

    /// Where the search ended in the row.
    pub(super) fn ends(&mut self, row: &[KernelSource], search: &Bisection) {
        let (good, bad) = search.ends();
        let name = |at: usize| row.get(at).map(|kernel| kernel.asked.clone());
        self.last_good = name(good);
        if search.open().is_empty() {
            self.first_bad = name(bad);
        } else {
            self.suspects = search.open().chain([bad]).filter_map(name).collect();
        }
    }

    /// The answer in a sentence.
    fn sentence(&self) -> String {
        let Some((load, figure)) = self.load.as_ref().zip(self.figure.as_ref()) else {
            return format!(
                "inconclusive: no figure of {} is for certain worse than that of {}",
                self.bad, self.good
            );
        };
        let last_good = self.last_good.as_deref().unwrap_or_default();
        match &self.first_bad {
            Some(first_bad) => format!(
                "first bad: {first_bad}, by {figure} of {load}; the last good one before it: \
                 {last_good}"
            ),
            None => format!(
                "inconclusive: {figure} of {load} became worse after {last_good}, in one of: {}{}",
                self.suspects.join(", "),
                if self.stopped { " (interrupted)" } else { "" }
            ),
        }
    }
}

/// Prints what was found.
pub(super) fn put(outcome: &BisectOutcome, is_json: bool) -> Result<()> {
    if is_json {
        return output::put_json(outcome);
    }
    let mut table = Table::new(3, &["kernel", "is", "against the good one"]);
    for step in &outcome.steps {
        table.row(vec![step.kernel.clone(), step.verdict.into(), step.reason.clone()]);
    }
    let mut text = table.lines().join("\n");
    text.push_str(&format!("\n\n{}\n", plain(&outcome.sentence())));
    output::put(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(count: usize) -> Vec<KernelSource> {
        (0..count).map(|number| KernelSource::parse(&format!("./k{number}")).unwrap()).collect()
    }

    fn found(sides: &[(usize, BisectSide)]) -> BisectOutcome {
        let mut search = Bisection::new(5);
        sides.iter().for_each(|(at, side)| search.note(*at, *side));
        let mut outcome = BisectOutcome::new("./k0", "./k4");
        (outcome.load, outcome.figure) = (Some("l".into()), Some("p99".into()));
        outcome.ends(&row(5), &search);
        outcome
    }

    #[test]
    fn the_first_bad_one_is_named_only_where_the_one_before_is_good() {
        let all = found(&[(2, BisectSide::Good), (3, BisectSide::Bad)]);
        assert_eq!(all.first_bad.as_deref(), Some("./k3"));
        assert!(all.sentence().starts_with("first bad: ./k3, by p99 of l"), "{}", all.sentence());
        let open = found(&[(2, BisectSide::Open), (1, BisectSide::Good), (3, BisectSide::Bad)]);
        assert_eq!((open.first_bad.as_deref(), open.last_good.as_deref()), (None, Some("./k1")));
        assert_eq!(open.suspects, ["./k2", "./k3"]);
        assert!(open.sentence().contains("inconclusive") && open.sentence().contains("./k2, ./k3"));
    }

    #[test]
    fn two_that_do_not_differ_are_no_answer() {
        let outcome = BisectOutcome::new("a", "b");
        assert!(outcome.sentence().contains("no figure of b is for certain worse than that of a"));
    }
}

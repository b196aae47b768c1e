//! What of the chosen runs could not be read: counted by kind, and told.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};

use crate::{cli::output, store::CampaignKind, units::many};

/// Reasons that are printed; all are counted.
const MOST_REASONS: usize = 5;

/// What could not be read: it is left out and counted, and does not end the command.
#[derive(Debug, Default)]
pub(in crate::cli) struct Skipped {
    counts: BTreeMap<SkippedKind, u64>,
    reasons: Vec<String>,
    /// Runs that were named more than once.
    twice: u64,
}

/// What it is that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) enum SkippedKind {
    /// One run.
    Run,
    /// The record of a plan.
    Plan,
    /// The record of a comparison.
    Comparison,
    /// A directory with what is below it.
    Directory,
    /// A name of a list, which leads to nothing.
    Name,
}

impl Skipped {
    /// Whether everything could be read so far.
    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Leaves out what could not be read.
    pub(in crate::cli) fn add(&mut self, kind: SkippedKind, why: &str) {
        *self.counts.entry(kind).or_default() += 1;
        if self.reasons.len() < MOST_REASONS {
            self.reasons.push(why.to_owned());
        }
    }

    /// Counts a run that was named before.
    pub(super) const fn add_repeated(&mut self) {
        self.twice += 1;
    }

    /// Adds what was left out later.
    pub(in crate::cli) fn extend(&mut self, later: Self) {
        for (kind, count) in later.counts {
            *self.counts.entry(kind).or_default() += count;
        }
        self.reasons.extend(later.reasons);
        self.reasons.truncate(MOST_REASONS);
        self.twice += later.twice;
    }

    /// Says what was left out beside `taken` runs.
    ///
    /// # Errors
    /// Nothing was taken.
    pub(in crate::cli) fn tell(&self, taken: u64) -> Result<()> {
        if taken > 0 {
            self.warn(taken);
            return Ok(());
        }
        ensure!(!self.is_empty(), "none of these has a run");
        if let ([only], 1) = (self.reasons.as_slice(), self.counts.values().sum::<u64>()) {
            bail!("{only}");
        }
        self.warn_of_reasons();
        bail!("none of these can be read: {}", counted(self.counts.iter()))
    }

    /// As [`Skipped::tell`], where what has no run yet is shown too.
    ///
    /// # Errors
    /// There are runs, and none of them can be read.
    pub(in crate::cli) fn tell_beside(&self, taken: u64) -> Result<()> {
        if self.runs() > 0 {
            return self.tell(taken);
        }
        self.warn(taken);
        Ok(())
    }

    fn runs(&self) -> u64 {
        self.counts.get(&SkippedKind::Run).copied().unwrap_or(0)
    }

    fn warn_of_reasons(&self) {
        self.reasons.iter().for_each(|why| output::warn(&format!("skipped: {why}")));
    }

    fn warn(&self, taken: u64) {
        self.warn_of_reasons();
        let runs = self.runs();
        if runs > 0 {
            let of = many(taken + runs, "run");
            let are = if runs == 1 { "is" } else { "are" };
            output::warn(&format!("{runs} of {of} cannot be read and {are} left out"));
        }
        let others = counted(self.counts.iter().filter(|(kind, _)| **kind != SkippedKind::Run));
        if !others.is_empty() {
            output::warn(&format!("{others} cannot be read"));
        }
        if self.twice > 0 {
            let runs = many(self.twice, "run");
            output::notice(&format!("{runs} named more than once; each is taken once"));
        }
    }
}

/// `1 plan and 2 names of the list`
fn counted<'a>(counts: impl Iterator<Item = (&'a SkippedKind, &'a u64)>) -> String {
    let words: Vec<String> = counts.map(|(kind, count)| kind.counted(*count)).collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => words.concat(),
    }
}

impl SkippedKind {
    fn counted(self, count: u64) -> String {
        match self {
            Self::Run => many(count, "run"),
            Self::Plan => many(count, "plan"),
            Self::Comparison => many(count, "comparison"),
            Self::Directory if count == 1 => "1 directory".into(),
            Self::Directory => format!("{count} directories"),
            Self::Name => format!("{} of the list", many(count, "name")),
        }
    }
}

impl From<CampaignKind> for SkippedKind {
    fn from(kind: CampaignKind) -> Self {
        match kind {
            CampaignKind::Plan => Self::Plan,
            CampaignKind::Comparison => Self::Comparison,
        }
    }
}

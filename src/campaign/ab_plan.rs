//! How a budget of time becomes blocks, pairs and looks.

use std::path::PathBuf;

use anyhow::Result;
use thiserror::Error;

use crate::{
    analysis::ab::{
        ALPHA,
        figure::ComparedFigure,
        looks::{FEWEST_PAIRS, LookPlan},
    },
    run::{
        AB_SCHEMA_VERSION, AbRecord, AbSideRecord, AbStatus, AbVerdict, SideName,
        summary::ENOUGH_BEYOND,
    },
    units::span,
};

/// How long the first block of each side measures, which is not compared, ns.
pub(super) const TRIAL_NS: i64 = 500_000_000;

/// A shorter block says little, ns.
const SHORTEST_NS: i64 = 100_000_000;

/// Blocks are at least this long if the budget allows it, ns: what comes once in a second is in
/// each.
const USUAL_NS: i64 = 1_000_000_000;

/// Where a block takes long to prepare it measures as long as that, if this number of pairs fits:
/// else most of the budget would go into preparing.
const PAIRS_OF_LONGER: u32 = 12;

/// More pairs are not planned: blocks are longer instead.
const MOST_PAIRS: u32 = 200;

/// How much more time arming may take than it took the first time.
const RESERVE: f64 = 1.1;

/// Samples beyond a percentile vary from block to block: that many more are planned.
const MORE_SAMPLES: f64 = 1.3;

/// Sides whose samples come at rates that differ by more have no maxima to compare.
const LIKE_RATES: f64 = 1.1;

/// What is to be compared, and how: everything that is settled before anything is touched.
#[derive(Debug, Clone)]
pub(crate) struct AbRequest {
    /// What is compared with.
    pub a: SideRequest,
    /// What is judged.
    pub b: SideRequest,
    /// Restores what the prepare commands changed.
    pub undo: Option<String>,
    /// What all of it may take, ns.
    pub budget_ns: i64,
    /// The number of pairs and the length of a block (ns), judged once at the end; `None` if the
    /// budget decides, and a decision ends it early.
    pub fixed: Option<(u32, i64)>,
    /// What is judged, each once.
    pub figures: Vec<ComparedFigure>,
    /// The share below which sides are called the same; each figure has its own where absent.
    pub margin: Option<f64>,
    /// The order is drawn by it.
    pub seed: u64,
    /// Where it goes.
    pub directory: PathBuf,
    /// Where runs are kept: blocks look there for what tracing costs.
    pub store: PathBuf,
    /// Its id.
    pub id: String,
    /// Its name, or the id.
    pub name: String,
    /// What was typed.
    pub argv: Vec<String>,
}

/// One side of it.
#[derive(Debug, Clone)]
pub(crate) struct SideRequest {
    /// All options of `tardy run`, those that both sides have included.
    pub words: Vec<String>,
    /// As in the record.
    pub record: AbSideRecord,
}

impl AbRequest {
    /// One of both sides.
    pub(super) const fn side(&self, side: SideName) -> &SideRequest {
        match side {
            SideName::A => &self.a,
            SideName::B => &self.b,
        }
    }

    /// The record that it begins with.
    pub(super) fn planned(&self) -> AbRecord {
        AbRecord {
            schema_version: AB_SCHEMA_VERSION,
            id: self.id.clone(),
            name: self.name.clone(),
            argv: self.argv.clone(),
            status: AbStatus::Running,
            started_at: jiff::Timestamp::now().to_string(),
            ended_at: None,
            verdict: AbVerdict::Inconclusive,
            judged: self.figures.iter().map(ToString::to_string).collect(),
            figures: Vec::new(),
            floor: None,
            causes: None,
            looks: Vec::new(),
            seed: self.seed,
            a: self.a.record.clone(),
            b: self.b.record.clone(),
            undo: self.undo.clone(),
            budget_ns: u64::try_from(self.budget_ns).unwrap_or(0),
            block_ns: None,
            pair_ns: None,
            blocks: Vec::new(),
            commands: Vec::new(),
            caveats: Vec::new(),
            error: None,
        }
    }
}

/// Why a plan is missing.
#[derive(Debug, Clone, PartialEq, Error)]
pub(crate) enum AbPlanError {
    /// The budget is too small.
    #[error(
        "--budget {budget}: six pairs of blocks take at least {least} here, of which {each} a \
         block are for arming, warming up and preparing; give it more time, or shorten --warmup"
    )]
    Budget {
        /// What there is.
        budget: String,
        /// What it takes.
        least: String,
        /// Of each block, without what it measures.
        each: String,
    },
    /// A side has nothing to compare.
    #[error("{} has no samples in {time}: there is nothing to compare", .side.letter())]
    NoSamples {
        /// Which side.
        side: SideName,
        /// How long it measured.
        time: String,
    },
    /// Maxima of unlike blocks.
    #[error(
        "max: the sides take samples at different rates, and the largest of more samples is \
         larger; leave it out of --figures, or give both the same rate"
    )]
    UnlikeMaxima,
    /// Nothing is missed where nothing is due.
    #[error(
        "missed: these samples follow no schedule, so that no period can be missed; leave it out \
         of --figures"
    )]
    NoPeriods,
}

/// What the first block of a side showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trial {
    /// What a block takes besides measuring, ns.
    pub overhead_ns: i64,
    /// Samples per second of measuring, of all series.
    pub per_s: f64,
    /// Whether it has periods that can be missed.
    pub has_periods: bool,
}

/// Blocks, pairs and looks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BlockPlan {
    /// How long a block measures, ns.
    pub block_ns: i64,
    /// How long a pair takes with everything, ns.
    pub pair_ns: i64,
    /// When to look.
    pub looks: LookPlan,
}

/// How long a block must measure so that it has enough samples beyond the finest percentile that
/// is judged, ns.
fn needed_ns(figures: &[ComparedFigure], per_s: f64) -> i64 {
    let beyond = |figure: &ComparedFigure| {
        let share = 1.0 - figure.percent()? / 100.0;
        Some(ENOUGH_BEYOND as f64 / share)
    };
    let samples = figures.iter().filter_map(beyond).fold(0.0, f64::max);
    // In whole ms; a cast saturates.
    ((samples * MORE_SAMPLES / per_s * 1e3).round() as i64).saturating_mul(1_000_000)
}

/// Divides what is left of a budget of `budget_ns`, after `spent_ns`.
pub(super) fn divide(
    (budget_ns, spent_ns): (i64, i64),
    trials: [Trial; 2],
    figures: &[ComparedFigure],
) -> Result<BlockPlan, AbPlanError> {
    check(trials, figures)?;
    let overhead: f64 = trials.iter().map(|trial| trial.overhead_ns as f64).sum();
    let overhead_ns = (overhead * RESERVE) as i64;
    let left_ns = budget_ns.saturating_sub(spent_ns);
    let pair_of = |block_ns: i64| overhead_ns.saturating_add(block_ns.saturating_mul(2)).max(1);
    // Whole quads.
    let pairs_of = |block_ns| u32::try_from(left_ns / pair_of(block_ns) / 2 * 2).unwrap_or(0);
    let slower = trials[0].per_s.min(trials[1].per_s);
    // The longest blocks of which `pairs` pairs fit.
    let block_of = |pairs: u32| (left_ns / i64::from(pairs) - overhead_ns) / 2;
    let longer_ns = (overhead_ns / 2).min(block_of(PAIRS_OF_LONGER));
    let wanted_ns = needed_ns(figures, slower).max(USUAL_NS).max(longer_ns);
    let block_ns = match pairs_of(wanted_ns) {
        0..FEWEST_PAIRS => block_of(FEWEST_PAIRS),
        FEWEST_PAIRS..=MOST_PAIRS => wanted_ns,
        _ => block_of(MOST_PAIRS),
    };
    // In whole ms, as it is typed for a run.
    let block_ns = block_ns / 1_000_000 * 1_000_000;
    let too_small = || {
        let least_ns = spent_ns + pair_of(SHORTEST_NS).saturating_mul(i64::from(FEWEST_PAIRS));
        AbPlanError::Budget {
            budget: span(budget_ns as f64 / 1e9),
            least: span((least_ns as f64 / 1e9).ceil()),
            each: span(overhead_ns as f64 / 2e9),
        }
    };
    if block_ns < SHORTEST_NS {
        return Err(too_small());
    }
    let pairs = pairs_of(block_ns).min(MOST_PAIRS);
    let looks = LookPlan::new(pairs, figures.len(), ALPHA).map_err(|_| too_small())?;
    Ok(BlockPlan { block_ns, pair_ns: pair_of(block_ns), looks })
}

/// A plan whose pairs and blocks are fixed beforehand.
pub(super) fn fixed(
    (pairs, block_ns): (u32, i64),
    trials: [Trial; 2],
    figures: &[ComparedFigure],
) -> Result<BlockPlan> {
    check(trials, figures)?;
    let overhead_ns: i64 = trials.iter().map(|trial| trial.overhead_ns).sum();
    let looks = LookPlan::single(pairs, figures.len(), ALPHA)?;
    Ok(BlockPlan { block_ns, pair_ns: overhead_ns + 2 * block_ns, looks })
}

fn check([a, b]: [Trial; 2], figures: &[ComparedFigure]) -> Result<(), AbPlanError> {
    for (trial, side) in [(a, SideName::A), (b, SideName::B)] {
        if trial.per_s.is_nan() || trial.per_s <= 0.0 {
            return Err(AbPlanError::NoSamples { side, time: span(TRIAL_NS as f64 / 1e9) });
        }
    }
    let unlike = a.per_s.max(b.per_s) / a.per_s.min(b.per_s) > LIKE_RATES;
    if unlike && figures.contains(&ComparedFigure::Max) {
        return Err(AbPlanError::UnlikeMaxima);
    }
    if figures.contains(&ComparedFigure::Missed) && !(a.has_periods && b.has_periods) {
        return Err(AbPlanError::NoPeriods);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::ab::figure::JUDGED_BY_DEFAULT;

    const S: i64 = 1_000_000_000;

    fn trial(overhead_ns: i64, per_s: f64) -> Trial {
        Trial { overhead_ns, per_s, has_periods: true }
    }

    fn divided(budget_s: i64, per_s: f64, figures: &[ComparedFigure]) -> BlockPlan {
        let like = trial(1_500_000_000, per_s);
        divide((budget_s * S, 4 * S), [like, like], figures).unwrap()
    }

    fn planned(plan: &BlockPlan) -> u32 {
        plan.looks.pairs().last().copied().unwrap()
    }

    #[test]
    fn blocks_are_as_long_as_p99_9_takes_and_the_pairs_fit_the_budget() {
        // 10 / 0.001 * 1.3 samples at 2,000 a second: 6.5 s. Pairs of 2 * 6.5 + 3.3 s in 296 s: 18.
        let plan = divided(300, 2_000.0, &JUDGED_BY_DEFAULT);
        assert_eq!((plan.block_ns, planned(&plan)), (6_500_000_000, 18));
        assert_eq!(plan.pair_ns, 16_300_000_000);
        assert_eq!(plan.looks.pairs(), [4, 8, 12, 16, 18]);
        assert_eq!(plan.looks.figures(), 3);
        let coarse = divided(300, 2_000.0, &[ComparedFigure::P50]);
        // As long as arming takes: 1.65 s each, so that half of the time is measured.
        assert_eq!((coarse.block_ns, planned(&coarse)), (1_650_000_000, 44));
        let quick = trial(100_000_000, 2_000.0);
        let quick = divide((300 * S, 4 * S), [quick, quick], &[ComparedFigure::P50]).unwrap();
        assert_eq!(quick.block_ns, S, "no shorter than 1 s");
    }

    #[test]
    fn where_preparing_takes_long_half_of_the_budget_is_measured_if_many_pairs_fit() {
        let slow = trial(10 * S, 2_000.0);
        let of = |budget_s: i64| {
            divide((budget_s * S, 0), [slow, slow], &[ComparedFigure::P50]).unwrap()
        };
        // 22 s of preparing a pair, and as much of measuring.
        assert_eq!((of(1_800).block_ns, planned(&of(1_800))), (11 * S, 40));
        // 12 pairs in 500 s leave 19.7 s a pair.
        assert_eq!((of(500).block_ns, planned(&of(500))), (9_833_000_000, 12));
        assert_eq!((of(300).block_ns, planned(&of(300))), (1_500_000_000, 12));
        assert_eq!((of(200).block_ns, planned(&of(200))), (S, 8), "no more fit");
    }

    #[test]
    fn a_small_budget_has_six_pairs_of_shorter_blocks() {
        // 26 s by 6 pairs, less 3.3 s, by 2.
        let plan = divided(30, 2_000.0, &JUDGED_BY_DEFAULT);
        assert_eq!((plan.block_ns, planned(&plan)), (516_000_000, 6));
        assert_eq!(plan.looks.pairs(), [4, 6]);
    }

    #[test]
    fn a_large_budget_has_longer_blocks() {
        let plan = divided(86_400, 2_000.0, &JUDGED_BY_DEFAULT);
        assert_eq!(planned(&plan), 200);
        assert!(plan.block_ns > 200 * S && plan.pair_ns * 200 < 86_400 * S, "{plan:?}");
    }

    #[test]
    fn the_slower_side_says_how_long_a_block_is() {
        let sides = [trial(S, 20_000.0), trial(S, 1_000.0)];
        let plan = divide((900 * S, 0), sides, &[ComparedFigure::P999]).unwrap();
        assert_eq!(plan.block_ns, 13 * S);
    }

    #[test]
    fn a_budget_without_room_for_six_pairs_is_refused_with_what_it_takes() {
        let like = trial(1_500_000_000, 2_000.0);
        let error = divide((20 * S, 4 * S), [like, like], &JUDGED_BY_DEFAULT).unwrap_err();
        // 4 s, and 6 pairs of 3.3 s and twice 100 ms.
        assert_eq!(
            error.to_string(),
            "--budget 20 s: six pairs of blocks take at least 25 s here, of which 1.6 s a block \
             are for arming, warming up and preparing; give it more time, or shorten --warmup"
        );
        assert!(divide((25 * S, 4 * S), [like, like], &JUDGED_BY_DEFAULT).is_ok());
        assert!(divide((S, 4 * S), [like, like], &JUDGED_BY_DEFAULT).is_err());
    }

    #[test]
    fn what_the_sides_cannot_be_compared_by_is_refused() {
        let (slow, fast) = (trial(S, 1_000.0), trial(S, 10_000.0));
        let of = |sides, figure| divide((300 * S, 0), sides, &[figure]).map(drop);
        assert_eq!(of([slow, fast], ComparedFigure::Max), Err(AbPlanError::UnlikeMaxima));
        assert_eq!(of([slow, fast], ComparedFigure::P99), Ok(()));
        assert_eq!(of([slow, slow], ComparedFigure::Max), Ok(()));
        let free = Trial { has_periods: false, ..slow };
        assert_eq!(of([slow, free], ComparedFigure::Missed), Err(AbPlanError::NoPeriods));
        let none = trial(S, 0.0);
        let error = of([slow, none], ComparedFigure::P50).unwrap_err();
        assert_eq!(error.to_string(), "B has no samples in 500 ms: there is nothing to compare");
    }
}

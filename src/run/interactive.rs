//! What the `interactive` probe records beside its latencies.

use serde::{Deserialize, Serialize};

use super::FigureRecord;

/// The figure of how much work the CPU does in a millisecond: [`WORK_REPEATS`] values from before
/// the run, and as many from after it. `timer --work` has one for each CPU, `work/cpu1`.
pub const WORK_FIGURE: &str = "work";

/// The number of measurements before the run, and after it.
pub const WORK_REPEATS: usize = 5;

/// The parameters of `interactive`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InteractiveParameters {
    /// The tasks, in the order in which they are measured.
    pub tasks: Vec<InteractiveTask>,
    /// The CPU on which each of them runs.
    pub cpu: u32,
    /// The loops that were to stand for a millisecond of work; absent for those that the CPU did
    /// in one before the run, which the figure `work` has.
    pub loops_per_ms: Option<u64>,
}

/// A simulated task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InteractiveTask {
    /// `audio`, `video`, `x`, `game` or `custom`.
    pub name: String,
    /// From the start of one frame to that of the next, ns; absent for a task that never sleeps.
    pub period_ns: Option<i64>,
    /// The time that the work of a frame takes alone, ns; absent if it rises from frame to frame
    /// from nothing to the whole period.
    pub work_ns: Option<i64>,
}

/// How much work the CPU did in a millisecond before the run and after it, loops: the medians. Of
/// several CPUs, that where they differ most. `None` if none was measured both times.
#[must_use]
pub fn work_before_and_after(figures: &[FigureRecord]) -> Option<(f64, f64)> {
    let both = figures.iter().filter(|figure| is_work(&figure.name)).filter_map(|work| {
        let (before, after) = work.values.split_at_checked(WORK_REPEATS)?;
        (after.len() == WORK_REPEATS).then(|| (median(before), median(after)))
    });
    let change = |(before, after): &(f64, f64)| (after / before).ln().abs();
    both.max_by(|one, other| change(one).total_cmp(&change(other)))
}

/// Whether it is [`WORK_FIGURE`], or that of one of several CPUs: `work/cpu1`.
fn is_work(name: &str) -> bool {
    name.split('/').next() == Some(WORK_FIGURE)
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{FigureHead, FigureUnit, figures::summarize_figure};

    #[test]
    fn work_is_compared_by_medians_and_only_where_both_are_known() {
        let unit = FigureUnit::LoopsPerMillisecond;
        let of = |values: &[f64]| {
            let head = FigureHead { name: WORK_FIGURE.into(), unit: unit.clone() };
            work_before_and_after(&[summarize_figure(&head, values)])
        };
        let (before, after) = ([1.0, 9.0, 2.0, 3.0, 1.0], [5.0, 4.0, 6.0, 0.0, 9.0]);
        assert_eq!(of(&[before, after].concat()), Some((2.0, 5.0)));
        assert_eq!((of(&before), of(&[]), work_before_and_after(&[])), (None, None, None));
    }
}

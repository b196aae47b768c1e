//! What attached threads did with a wake-up, as figures: the mean of each slice of the run.

use std::collections::HashMap;

use super::sums::Sums;
use crate::{
    kernel::AttachedTime,
    run::{FigureHead, FigureRecord, FigureUnit, figures::summarize_figure},
};

/// The number of slices of the measured time, so that a mean has an interval.
pub(super) const SLICES: i64 = 20;

/// Of each thread and of each name.
const FIGURES: [(&str, AttachedTime); 3] = [
    ("run", AttachedTime::Run),
    ("blocked", AttachedTime::Blocked),
    ("ready", AttachedTime::Ready),
];

/// Collects them by the names of series.
#[derive(Debug, Default)]
pub(super) struct SliceMeans(HashMap<String, [OneMean; FIGURES.len()]>);

#[derive(Debug, Default)]
struct OneMean {
    sum_ns: i64,
    count: u64,
    values: Vec<f64>,
}

impl SliceMeans {
    /// A slice ends.
    pub(super) fn take(&mut self, name: &str, sums: &Sums) {
        let own = self.0.entry(name.to_owned()).or_default();
        for (mean, (_, time)) in own.iter_mut().zip(FIGURES) {
            let (sum_ns, count) = sums.sum_and_count(time);
            if count > mean.count {
                let each_ns = (sum_ns - mean.sum_ns) as f64 / (count - mean.count) as f64;
                mean.values.push(each_ns / 1e3);
            }
            (mean.sum_ns, mean.count) = (sum_ns, count);
        }
    }

    /// The figures of that series: none of what never happened.
    pub(super) fn records(&self, name: &str) -> Vec<FigureRecord> {
        let own = self.0.get(name);
        let record = |(mean, (figure, _)): (&OneMean, (&str, AttachedTime))| {
            let unit = FigureUnit::Microseconds;
            let head = FigureHead { name: format!("{name}/{figure}"), unit };
            (!mean.values.is_empty()).then(|| summarize_figure(&head, &mean.values))
        };
        own.into_iter().flat_map(|own| own.iter().zip(FIGURES)).filter_map(record).collect()
    }
}

//! What there is of a run in progress.

use std::sync::Arc;

use tardy_hot::{clock::now_ns, wakeup::Series};

use super::{Session, loads, progress::RunProgress};
use crate::probes::Schedule;

impl Session {
    /// What there is by now of a run with this schedule and these series.
    pub(super) fn progress(
        &self,
        schedule: &Schedule,
        series: &[(String, Arc<Series>)],
    ) -> RunProgress {
        let elapsed_ns = now_ns() - schedule.start_ns;
        let at_a_glance = |(name, series): &(String, Arc<Series>)| {
            let totals = series.tally.totals();
            (name.clone(), totals.count, (totals.count > 0).then_some(totals.max_ns))
        };
        let mut series: Vec<_> = series.iter().map(at_a_glance).collect();
        let found = self.armed.found_series.iter().flat_map(|list| list.all());
        series.extend(found.filter_map(|series| series.at_a_glance()));
        let done = series.iter().map(|(_, count, _)| *count).min().unwrap_or(0);
        let left_ns = self.plan.length.left_ns(elapsed_ns, done);
        let loads = loads::at_a_glance(&self.plan.loads, &self.loads);
        RunProgress { elapsed_ns, left_ns, series, loads }
    }
}

//! Times and counts of attached threads, and what becomes of them: series and a row of the record.

use std::sync::Arc;

use super::schedule::ScheduleKept;
use crate::{
    kernel::{AttachedCounts, AttachedTime},
    probes::found_series::{FoundSeries, FoundSeriesList, TimeCounts},
    run::{
        AttachedFaults, AttachedLatency, AttachedOver, AttachedRow, AttachedTimes, AttachedWaits,
        CycleBegin, RESPONSE, hlog,
    },
};

/// Lateness where half of the wake-ups or more are by its own timers. Threads of one name that do
/// the same have the same: another latency than the first of them only where less than a third, or
/// more than two thirds, say so.
pub(super) fn latency_of(
    by_own: u64,
    wakeups: u64,
    of_name: Option<AttachedLatency>,
) -> AttachedLatency {
    let is_lateness = match of_name {
        None => by_own.saturating_mul(2) >= wakeups,
        Some(AttachedLatency::Lateness) => by_own.saturating_mul(3) >= wakeups,
        Some(AttachedLatency::Dispatch) => by_own.saturating_mul(3) > wakeups.saturating_mul(2),
    };
    if is_lateness { AttachedLatency::Lateness } else { AttachedLatency::Dispatch }
}

/// Where cycles that begin so are counted.
const fn time_of(begin: CycleBegin) -> AttachedTime {
    match begin {
        CycleBegin::Timer => AttachedTime::Response,
        CycleBegin::WakeUp => AttachedTime::Stage,
    }
}

/// Times and counts of one thread, or of all of one name.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) times: [Arc<TimeCounts>; AttachedTime::ALL.len()],
    pub(super) counts: AttachedCounts,
    pub(super) latency: Option<AttachedLatency>,
    /// Cycles are measured, and which of them have a series.
    pub(super) has_response: bool,
    pub(super) cycles: Option<CycleBegin>,
    /// The deadline of all cycles; `None` without a deadline, or if cycles have several.
    pub(super) deadline_ns: Option<u64>,
    /// Its threads have different deadlines.
    pub(super) differs: bool,
}

impl Sums {
    pub(super) fn of(&self, time: AttachedTime) -> &Arc<TimeCounts> {
        &self.times[time as usize]
    }

    pub(super) fn count(&self, time: AttachedTime) -> u64 {
        self.of(time).totals().count
    }

    /// Wake-ups by its own timers.
    fn by_own_timer(&self) -> u64 {
        self.count(AttachedTime::Lateness) + self.counts.asides
    }

    /// What its latency is by all that is known of it; `of_name` is that of others of its name.
    pub(super) fn likely(&self, of_name: Option<AttachedLatency>) -> Option<AttachedLatency> {
        let wakeups = self.count(AttachedTime::Dispatch);
        let by_own = self.by_own_timer();
        (wakeups > 0).then(|| latency_of(by_own, wakeups, of_name))
    }

    /// A thread with this deadline adds to it.
    pub(super) fn join_deadline(&mut self, has_response: bool, deadline_ns: Option<u64>) {
        self.has_response |= has_response;
        self.differs |= self.deadline_ns.is_some() && self.deadline_ns != deadline_ns;
        self.deadline_ns = deadline_ns.filter(|_| !self.differs);
    }

    /// Makes series of what it has.
    pub(super) fn publish(&mut self, name: &str, latency: AttachedLatency, into: &FoundSeriesList) {
        self.latency = Some(latency);
        let push = |name: String, counts: &Arc<TimeCounts>| {
            into.push(FoundSeries { name, counts: Arc::clone(counts) });
        };
        match latency {
            AttachedLatency::Lateness => {
                push(name.to_owned(), self.of(AttachedTime::Lateness));
                push(format!("{name}/dispatch"), self.of(AttachedTime::Dispatch));
            }
            AttachedLatency::Dispatch => push(name.to_owned(), self.of(AttachedTime::Dispatch)),
        }
    }

    /// Makes a series of its cycles that begin so, once; whether this was the first time.
    pub(super) fn publish_response(
        &mut self,
        name: &str,
        begin: CycleBegin,
        into: &FoundSeriesList,
    ) -> bool {
        let is_first = self.cycles.is_none();
        if is_first {
            self.cycles = Some(begin);
            let counts = Arc::clone(self.of(time_of(begin)));
            into.push(FoundSeries { name: format!("{name}/{RESPONSE}"), counts });
        }
        is_first
    }

    /// The largest response, ns, of cycles that have a series.
    pub(super) fn worst_response_ns(&self) -> Option<i64> {
        self.cycles.map(|begin| self.of(time_of(begin)).totals().max_ns)
    }

    /// Gives its lateness the view per period, where that is what it was made of.
    pub(super) fn set_schedule(&self, kept: &ScheduleKept) {
        let late = self.of(AttachedTime::Lateness);
        if self.latency == Some(AttachedLatency::Lateness) && kept.is_of(late.totals().count) {
            late.set_schedule(kept.period_ns, kept.missed);
        }
    }

    /// The totals and what was summed, for figures.
    pub(super) fn sum_and_count(&self, time: AttachedTime) -> (i64, u64) {
        let totals = self.of(time).totals();
        (totals.sum_ns, totals.count)
    }

    /// As the summary of a series has them, so that one time has one figure.
    fn times(&self, time: AttachedTime) -> AttachedTimes {
        let totals = self.of(time).totals();
        let some = totals.count > 0;
        let scale = hlog::empty();
        let quantile = |per_mille| {
            let ns = self.of(time).quantile(per_mille)?.max(0).cast_unsigned();
            let highest_ns = i64::try_from(scale.highest_equivalent(ns)).unwrap_or(i64::MAX);
            Some(highest_ns.min(totals.max_ns))
        };
        AttachedTimes {
            count: totals.count,
            mean: some.then(|| (totals.sum_ns as f64 / totals.count as f64).round() as i64),
            p50: quantile(500),
            p99: quantile(990),
            max: some.then_some(totals.max_ns),
        }
    }

    /// What there is of a thread whose timer begins its cycles.
    fn times_of_loop(&self, time: AttachedTime) -> Option<AttachedTimes> {
        let is_shown = self.cycles == Some(CycleBegin::Timer) && self.count(time) > 0;
        is_shown.then(|| self.times(time))
    }

    fn over(&self) -> Option<AttachedOver> {
        let (deadline_ns, begin) = (self.deadline_ns?, self.cycles?);
        let over = &self.counts.over[begin as usize];
        let [late_ns, run_ns, ready_ns, wait_ns, unseen_ns] = over.parts_ns;
        let cycles = over.cycles;
        let [futex_ns, pi_mutex_ns, io_ns, other_ns] = over.waits_ns;
        let told = |ns| (over.told == cycles).then_some(ns);
        let (futex_ns, pi_mutex_ns) = (told(futex_ns), told(pi_mutex_ns));
        let waits = Some(AttachedWaits { futex_ns, pi_mutex_ns, io_ns, other_ns });
        let [minor, major] = over.faults;
        let faults = Some(AttachedFaults { cycles: over.faulted, minor, major });
        Some(AttachedOver {
            deadline_ns,
            cycles,
            late_ns,
            run_ns,
            ready_ns,
            wait_ns,
            unseen_ns,
            waits,
            faults,
        })
    }

    pub(super) fn row(&self, series: &str) -> AttachedRow {
        let AttachedCounts { woken, preempted, unmatched, in_slack, slack_ns, .. } = self.counts;
        let [by_timer, by_interrupt, by_ipi, by_task] = woken;
        let late = self.count(AttachedTime::Lateness);
        let slack_ns = slack_ns.checked_div(late);
        AttachedRow {
            series: series.to_owned(),
            tid: None,
            pid: None,
            threads: None,
            policy: None,
            latency: self.latency,
            wakeups: self.count(AttachedTime::Dispatch),
            by_timer,
            by_interrupt,
            by_ipi,
            by_task,
            by_own_timer: self.by_own_timer(),
            asides: self.counts.asides,
            in_slack,
            slack_ns: slack_ns.and_then(|ns| i64::try_from(ns).ok()),
            period_ns: None,
            missed: None,
            unsure_periods: None,
            period_changed: false,
            preempted,
            unmatched,
            lateness: (late > 0).then(|| self.times(AttachedTime::Lateness)),
            dispatch: Some(self.times(AttachedTime::Dispatch)),
            run: self.times(AttachedTime::Run),
            ready: self.times(AttachedTime::Ready),
            blocked: self.times(AttachedTime::Blocked),
            response: self.cycles.map(|begin| self.times(time_of(begin))),
            cycle_begin: self.cycles.unwrap_or_default(),
            other_work: self.times_of_loop(AttachedTime::Other),
            kept_waiting: self.times_of_loop(AttachedTime::Kept),
            over: self.over(),
            budget: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_name_on_either_side_of_half_have_the_same_latency() {
        use AttachedLatency::{Dispatch, Lateness};
        let first = |by_own| latency_of(by_own, 100, None);
        assert_eq!([49, 50, 51].map(first), [Dispatch, Lateness, Lateness]);
        for of_name in [Lateness, Dispatch] {
            for by_own in [34, 49, 50, 66] {
                assert_eq!(latency_of(by_own, 100, Some(of_name)), of_name, "{by_own}");
            }
            assert_eq!(latency_of(33, 100, Some(of_name)), Dispatch);
            assert_eq!(latency_of(67, 100, Some(of_name)), Lateness);
        }
    }
}

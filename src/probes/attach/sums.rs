//! Times and counts of attached threads, and what becomes of them: series and a row of the record.

use std::sync::Arc;

use crate::{
    kernel::{AttachedCounts, AttachedTime},
    probes::found_series::{FoundSeries, FoundSeriesList, TimeCounts},
    run::{AttachedLatency, AttachedOver, AttachedRow, AttachedTimes, RESPONSE},
};

/// Times and counts of one thread, or of all of one name.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) times: [Arc<TimeCounts>; AttachedTime::ALL.len()],
    pub(super) counts: AttachedCounts,
    pub(super) latency: Option<AttachedLatency>,
    /// Cycles are measured, and have a series.
    pub(super) has_response: bool,
    shows_response: bool,
    /// That of all cycles; absent where there is none, or several.
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

    /// Lateness where half of the wake-ups or more are by its own timers.
    pub(super) fn likely(&self) -> Option<AttachedLatency> {
        let wakeups = self.count(AttachedTime::Dispatch);
        (wakeups > 0).then(|| match self.count(AttachedTime::Lateness) * 2 >= wakeups {
            true => AttachedLatency::Lateness,
            false => AttachedLatency::Dispatch,
        })
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

    /// Makes a series of its cycles, once; whether this was the first time.
    pub(super) fn publish_response(&mut self, name: &str, into: &FoundSeriesList) -> bool {
        let is_first = !std::mem::replace(&mut self.shows_response, true);
        if is_first {
            let counts = Arc::clone(self.of(AttachedTime::Response));
            into.push(FoundSeries { name: format!("{name}/{RESPONSE}"), counts });
        }
        is_first
    }

    /// The totals and what was summed, for figures.
    pub(super) fn sum_and_count(&self, time: AttachedTime) -> (i64, u64) {
        let totals = self.of(time).totals();
        (totals.sum_ns, totals.count)
    }

    fn times(&self, time: AttachedTime) -> AttachedTimes {
        let totals = self.of(time).totals();
        let some = totals.count > 0;
        AttachedTimes {
            count: totals.count,
            mean: totals.sum_ns.checked_div(i64::try_from(totals.count).unwrap_or(i64::MAX)),
            p50: self.of(time).quantile(500),
            p99: self.of(time).quantile(990),
            max: some.then_some(totals.max_ns),
        }
    }

    fn over(&self) -> Option<AttachedOver> {
        let deadline_ns = self.deadline_ns.filter(|_| self.shows_response)?;
        let [late_ns, run_ns, ready_ns, wait_ns, unseen_ns] = self.counts.over_ns;
        let cycles = self.counts.over;
        Some(AttachedOver { deadline_ns, cycles, late_ns, run_ns, ready_ns, wait_ns, unseen_ns })
    }

    pub(super) fn row(&self, series: &str) -> AttachedRow {
        let AttachedCounts { woken, preempted, unmatched, in_slack, slack_ns, .. } = self.counts;
        let [by_timer, by_interrupt, by_ipi, by_task] = woken;
        let by_own_timer = self.count(AttachedTime::Lateness);
        let slack_ns = slack_ns.checked_div(by_own_timer);
        AttachedRow {
            series: series.to_owned(),
            tid: None,
            pid: None,
            threads: None,
            latency: self.latency,
            wakeups: self.count(AttachedTime::Dispatch),
            by_timer,
            by_interrupt,
            by_ipi,
            by_task,
            by_own_timer,
            in_slack,
            slack_ns: slack_ns.and_then(|ns| i64::try_from(ns).ok()),
            period_ns: None,
            preempted,
            unmatched,
            run: self.times(AttachedTime::Run),
            ready: self.times(AttachedTime::Ready),
            blocked: self.times(AttachedTime::Blocked),
            response: self.shows_response.then(|| self.times(AttachedTime::Response)),
            over: self.over(),
            budget: None,
        }
    }
}

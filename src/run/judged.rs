//! Which series of a run answer what was asked: of attached threads with a deadline their
//! responses, of all others their whole latencies.

use std::collections::HashMap;

use super::{
    AttachedRow, CycleBegin, Deadlines, Document, Run, SeriesSummary,
    probes::ProbeRecord,
    series_name::{LATENESS, whole_of_response},
};

/// Cycles of an attached thread, or of all threads of one name, judged by a deadline.
#[derive(Debug, Clone, Copy)]
pub struct JudgedCycles<'a> {
    /// The thread, or the name.
    pub row: &'a AttachedRow,
    /// Its responses.
    pub response: &'a SeriesSummary,
    /// The deadline, ns.
    pub deadline_ns: i64,
    /// Cycles, and the periods that passed without one.
    pub cycles: u64,
    /// Those that missed the deadline.
    pub missed: u64,
}

impl JudgedCycles<'_> {
    /// The share that missed the deadline, 0 to 1.
    #[must_use]
    pub fn share_missed(&self) -> f64 {
        self.missed as f64 / self.cycles.max(1) as f64
    }
}

impl Run {
    /// The same run, in which the responses of attached threads with a deadline take the place of
    /// their wake-ups: [`Document::lead_by_responses`].
    #[must_use]
    pub fn led_by_responses(&self) -> Self {
        let mut led = self.clone();
        led.document.lead_by_responses();
        led
    }
}

impl Document {
    /// What was to be kept in this run.
    #[must_use]
    pub fn deadlines(&self) -> Deadlines {
        let of_threads = match &self.probe {
            ProbeRecord::Attach(asked) => asked.deadlines.clone(),
            _ => Vec::new(),
        };
        Deadlines { all_ns: self.parameters.deadline_ns, of_threads }
    }

    /// The series that answer what was asked, each sample once: in place of the wake-ups of an
    /// attached thread its responses, where they were measured.
    #[must_use]
    pub fn leading(&self) -> Vec<&SeriesSummary> {
        let responses = self.responses_by_name();
        let all = self.wakeups();
        all.map(|own| responses.get(own.name.as_str()).copied().unwrap_or(own)).collect()
    }

    /// The responses of attached threads by the names of these. Threads of tardy itself have no
    /// deadline that their wake-ups are not judged by.
    fn responses_by_name(&self) -> HashMap<&str, &SeriesSummary> {
        let measured = self.responses().filter(|own| own.thread_of.is_none() && own.count > 0);
        let named = measured.filter_map(|own| Some((whole_of_response(&own.name)?, own)));
        named.filter(|_| matches!(self.probe, ProbeRecord::Attach(_))).collect()
    }

    /// The cycles of each name of attached threads that were judged when they ended.
    #[must_use]
    pub fn judged_cycles(&self) -> Vec<JudgedCycles<'_>> {
        let responses = self.responses_by_name();
        let rows = self.attached.iter().flat_map(|record| &record.rows);
        let names = rows.filter(|row| row.tid.is_none());
        let of_names =
            names.filter_map(|row| self.judged_by(row, responses.get(row.series.as_str())?));
        let others = self.of_other_kind().into_iter();
        of_names.chain(others.filter_map(|(row, own)| self.judged_by(row, own))).collect()
    }

    /// Threads whose cycles begin otherwise than those that their name has a series of, with their
    /// responses: in that series they are not.
    #[must_use]
    pub fn of_other_kind(&self) -> Vec<(&AttachedRow, &SeriesSummary)> {
        let rows = || self.attached.iter().flat_map(|record| &record.rows);
        let begins: HashMap<&str, CycleBegin> = rows()
            .filter(|row| row.tid.is_none() && row.response.is_some())
            .map(|row| (row.series.as_str(), row.cycle_begin))
            .collect();
        let is_other = |row: &&AttachedRow| {
            let name = row.series.rsplit_once('/').and_then(|(name, _)| begins.get(name));
            row.tid.is_some()
                && row.response.is_some()
                && name.is_some_and(|own| *own != row.cycle_begin)
        };
        let response = |row: &AttachedRow| {
            self.responses().find(|own| whole_of_response(&own.name) == Some(row.series.as_str()))
        };
        rows().filter(is_other).filter_map(|row| Some((row, response(row)?))).collect()
    }

    /// The cycles of this thread, or name, with these responses.
    #[must_use]
    pub fn judged_by<'a>(
        &self,
        row: &'a AttachedRow,
        response: &'a SeriesSummary,
    ) -> Option<JudgedCycles<'a>> {
        let over = row.over.as_ref()?;
        let unserved = match row.cycle_begin {
            CycleBegin::Timer => self.periods_without_cycle(row, response.count),
            CycleBegin::WakeUp => 0,
        };
        Some(JudgedCycles {
            row,
            response,
            deadline_ns: i64::try_from(over.deadline_ns).unwrap_or(i64::MAX),
            cycles: response.count.saturating_add(unserved),
            missed: over.cycles.saturating_add(unserved),
        })
    }

    /// Cycles of the attached thread, or name, whose responses these are, and those that missed the
    /// deadline; `None` for other series.
    #[must_use]
    pub fn judged(&self, series: &SeriesSummary) -> Option<(u64, u64)> {
        let row = self.attached_row(series).filter(|_| series.is_response())?;
        self.judged_by(row, series).map(|own| (own.cycles, own.missed))
    }

    /// Periods of an attached thread in which its work was not begun, at least: those that no
    /// expiry woke it for, but for those whose cycle began without a sleep as the one before was
    /// not over. The last cycle is not over, and one of which something was not seen is not
    /// counted.
    #[must_use]
    pub fn periods_without_cycle(&self, row: &AttachedRow, cycles: u64) -> u64 {
        let lateness = self.series.iter().find(|own| own.name == row.series);
        // Threads of several periods have no view of them, and have missed some all the same.
        let missed = lateness.and_then(|own| own.missed).or(row.missed).unwrap_or(0);
        let wakeups = lateness.map_or(0, |own| own.count);
        let begun = cycles.saturating_add(row.unmatched).saturating_add(1);
        missed.min(wakeups.saturating_add(missed).saturating_sub(begun))
    }

    /// Whether a thread of this row has no period, so that what it skipped is in no count.
    #[must_use]
    pub fn is_without_period(&self, row: &AttachedRow) -> bool {
        let is_one = |own: &&AttachedRow| {
            let name = own.series.rsplit_once('/').map(|(name, _)| name);
            own.tid.is_some()
                && own.response.is_some()
                && own.cycle_begin == row.cycle_begin
                && name == Some(row.series.as_str())
        };
        let mut rows = self.attached.iter().flat_map(|record| &record.rows).filter(is_one);
        row.missed.is_none() || rows.any(|own| own.missed.is_none())
    }

    /// Of an event loop without a period, its longest work for others, ns, if that took longer than
    /// `limit_ns`: what fell due meanwhile had no timer yet by which its lateness would be known.
    #[must_use]
    pub fn other_work_over(&self, row: &AttachedRow, limit_ns: i64) -> Option<i64> {
        let longest_ns = row.other_work?.max.filter(|ns| *ns > limit_ns)?;
        let is_unknown = row.cycle_begin == CycleBegin::Timer
            && row.response.is_some()
            && row.kept_waiting.is_none()
            && self.is_without_period(row);
        is_unknown.then_some(longest_ns)
    }

    /// Puts the responses of attached threads in the place of their wake-ups, for readers that take
    /// whole latencies: these become stages, `lateness`, of the responses. Series keep their names,
    /// by which the log has them.
    pub fn lead_by_responses(&mut self) {
        let responses: HashMap<String, String> = self
            .responses_by_name()
            .into_iter()
            .map(|(whole, response)| (whole.to_owned(), response.name.clone()))
            .collect();
        for own in self.series.iter_mut().filter(|own| own.thread_of.is_none()) {
            if let Some(response) = responses.get(&own.name) {
                (own.stage_of, own.stage) = (Some(response.clone()), Some(LATENESS.into()));
            } else if responses.values().any(|response| *response == own.name) {
                own.stage_of = None;
            }
        }
    }
}

//! Whether latencies are counted per wake-up or per scheduled period.

use std::borrow::Cow;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::{Document, MissedPeriods, Percentiles, SeriesSummary, per_period::per_period};

/// What counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyView {
    /// Each sample.
    #[default]
    PerSample,
    /// Each scheduled period of the series that have a schedule: a wake-up late by L at period T
    /// counts as L, L-T, ..., L-kT.
    PerPeriod,
}

impl LatencyView {
    /// The view that does not flatter a run: per scheduled period where more than one in a thousand
    /// was missed, as the wake-up before it came too late.
    #[must_use]
    pub fn of(document: &Document) -> Self {
        let sum = |of: fn(&SeriesSummary) -> Option<u64>| {
            document.wakeups().filter_map(of).fold(0, u64::saturating_add)
        };
        let missed = sum(|series| series.missed.filter(|_| series.scheduled.is_some()));
        let periods = sum(|series| Some(series.scheduled.as_ref()?.count));
        if MissedPeriods::are_material(missed, periods) { Self::PerPeriod } else { Self::PerSample }
    }

    /// The one view of several runs that flatters none of them: per scheduled period where one of
    /// them needs it and all can have it.
    #[must_use]
    pub fn shared(runs: &[&Document]) -> Self {
        match runs.iter().any(|run| Self::lacks_periods(run)) {
            true => Self::PerSample,
            false => runs.iter().map(|run| Self::of(run)).max().unwrap_or_default(),
        }
    }

    /// Whether a series missed periods of which no latency tells how late they were.
    #[must_use]
    pub fn lacks_periods(run: &Document) -> bool {
        run.wakeups().any(|series| {
            series.missed.is_some_and(|missed| missed > 0) && series.scheduled.is_none()
        })
    }

    /// The percentiles of a series, ns by their names; per sample where it has no schedule.
    #[must_use]
    pub fn percentiles(self, series: &SeriesSummary) -> &Percentiles {
        self.scheduled(series).map_or(&series.percentiles, |own| &own.percentiles)
    }

    /// The names of those percentiles that have fewer than 10 samples beyond them.
    #[must_use]
    pub fn uncertain(self, series: &SeriesSummary) -> &[String] {
        self.scheduled(series).map_or(&series.uncertain, |own| &own.uncertain)
    }

    /// These samples of a series, or the periods that they stand for.
    #[must_use]
    pub fn counts<'a>(
        self,
        series: &SeriesSummary,
        samples: &'a Histogram<u64>,
    ) -> Cow<'a, Histogram<u64>> {
        let period = series.period_ns.filter(|_| self.scheduled(series).is_some());
        let max = i64::try_from(samples.max()).unwrap_or(i64::MAX);
        match period {
            Some(period_ns) if max >= period_ns => Cow::Owned(per_period(samples, max, period_ns)),
            _ => Cow::Borrowed(samples),
        }
    }

    fn scheduled(self, series: &SeriesSummary) -> Option<&super::Scheduled> {
        series.scheduled.as_ref().filter(|_| self == Self::PerPeriod)
    }
}

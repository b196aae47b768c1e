//! Latencies over time for drawing: every late one, and as much of the crowd as can be seen.

use hdrhistogram::Histogram;

use super::{
    page::{PointKind, Points},
    time_range::TimeRange,
};
use crate::{
    run::{CaveatKind, Run, SeriesSummary, counts::SeriesCounts, hlog::IntervalSpan},
    units::{Nanos, count},
};

/// Points of all series of a run together: what a browser draws at once, and a page can carry.
const BUDGET: usize = 24_000;

/// The number of points that are kept, whatever the record says of its samples.
const MOST_POINTS: usize = 20 * BUDGET;

/// Reading more single samples than this takes longer than a reader waits.
const MOST_SAMPLES: u64 = 30_000_000;

/// Collects the points of one run.
#[derive(Debug)]
pub struct PointThinner {
    /// The largest of each interval, per series: time and latency.
    maxima: Vec<Vec<(f64, i64)>>,
    from_samples: bool,
    too_many: bool,
    /// The largest of each series, exact.
    max: Vec<i64>,
    /// Which of the points a series of the record has; stages have none.
    places: Vec<Option<usize>>,
    within: TimeRange,
}

impl PointThinner {
    /// For a stretch of this run: single samples where they were kept and are not too many, else
    /// the largest of each interval that it is told.
    #[must_use]
    pub fn new(run: &Run, within: TimeRange) -> Self {
        let samples = run.document.wakeups().map(|series| series.count);
        let samples = samples.fold(0, u64::saturating_add);
        let kept = run.has_samples();
        let mut places = 0..;
        let place = |series: &SeriesSummary| match series.is_part() {
            true => None,
            false => places.next(),
        };
        Self {
            maxima: vec![Vec::new(); run.document.wakeups().count()],
            from_samples: kept && samples <= MOST_SAMPLES,
            too_many: kept && samples > MOST_SAMPLES,
            max: run.document.wakeups().map(|series| series.max.unwrap_or(0)).collect(),
            places: run.document.series.iter().map(place).collect(),
            within,
        }
    }

    /// Takes note of an interval of the series of this number in the record.
    pub fn interval(&mut self, number: usize, span: &IntervalSpan, counts: &Histogram<u64>) {
        let Some(place) = self.places.get(number).copied().flatten() else { return };
        let Some(maxima) = self.maxima.get_mut(place).filter(|_| !counts.is_empty()) else {
            return;
        };
        let max = self.max.get(place).copied().unwrap_or(i64::MAX);
        maxima.push((span.middle_s(), i64::try_from(counts.max()).unwrap_or(i64::MAX).min(max)));
    }

    /// The points of every series of wake-ups, and what is wrong with the files of samples, where
    /// something is; `wakeups` are the numbers of these series, `totals` has their counts.
    #[must_use]
    pub fn points(
        self,
        run: &Run,
        totals: &SeriesCounts,
        wakeups: &[usize],
    ) -> (Vec<Points>, Option<CaveatKind>) {
        if !self.from_samples {
            return (self.interval_maxima(), None);
        }
        let share = (BUDGET / wakeups.len().max(1)).max(100) as u64;
        let rule = |number: &usize| Rule::of(&totals.of(*number), share);
        let rules: Vec<Rule> = wakeups.iter().map(rule).collect();
        let (points, damage) = samples(run, &rules, &self.places, self.within);
        (points, damage.err().map(|what| CaveatKind::SamplesDamaged { what }))
    }

    fn interval_maxima(self) -> Vec<Points> {
        let share = (BUDGET / self.maxima.len().max(1)).max(100);
        let note =
            if self.too_many { "single samples were kept, but are too many to draw; " } else { "" };
        self.maxima.into_iter().map(|maxima| merged(&maxima, share, note)).collect()
    }
}

/// At most `most` points: the largest of as many neighbours each as that needs.
fn merged(maxima: &[(f64, i64)], most: usize, note: &str) -> Points {
    let group = maxima.len().div_ceil(most).max(1);
    let largest = |group: &[(f64, i64)]| group.iter().copied().max_by_key(|(_, latency)| *latency);
    let (t_s, latency_ns) = maxima.chunks(group).filter_map(largest).map(rounded).unzip();
    let thinned = match group {
        1 => note.trim_end_matches("; ").to_owned(),
        _ => format!("{note}each point is the largest of {group} intervals"),
    };
    Points { kind: PointKind::IntervalMax, of: maxima.len() as u64, thinned, t_s, latency_ns }
}

fn rounded((t_s, latency): (f64, i64)) -> (f64, i64) {
    ((t_s * 1e4).round() / 1e4, latency)
}

/// What to keep of one series: all from `all_from` on, and every `every`-th of the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rule {
    all_from: i64,
    every: u64,
}

impl Rule {
    /// The rule that keeps about `share` samples: half of them the latest, half the crowd.
    fn of(total: &Histogram<u64>, share: u64) -> Self {
        if total.len() <= share {
            return Self { all_from: 0, every: 1 };
        }
        let late = (share / 2) as f64 / total.len() as f64;
        let all_from = total.value_at_quantile(1.0 - late).saturating_add(1);
        let crowd = total.len() - share / 2;
        Self {
            all_from: i64::try_from(all_from).unwrap_or(i64::MAX),
            every: crowd.div_ceil((share / 2).max(1)),
        }
    }

    fn words(self, late: u64) -> String {
        if self.every == 1 {
            return String::new();
        }
        let limit = Nanos(self.all_from);
        format!("all {} samples from {limit} on, and one in {} below", count(late), self.every)
    }
}

fn samples(
    run: &Run,
    rules: &[Rule],
    places: &[Option<usize>],
    within: TimeRange,
) -> (Vec<Points>, Result<(), String>) {
    let mut points = vec![
        Points {
            kind: PointKind::Sample,
            of: 0,
            thinned: String::new(),
            t_s: Vec::new(),
            latency_ns: Vec::new(),
        };
        rules.len()
    ];
    let mut late = vec![0_u64; rules.len()];
    // The record may have told of fewer samples than there are.
    let mut room = MOST_POINTS;
    let zero_ns = run.document.start_monotonic_ns;
    let read = run.samples(|number, sample| {
        let Some(number) = places.get(number).copied().flatten() else { return };
        let (Some(points), Some(rule), Some(late)) =
            (points.get_mut(number), rules.get(number), late.get_mut(number))
        else {
            return;
        };
        let t_s = sample.t_ns.saturating_sub(zero_ns) as f64 / 1e9;
        if !within.holds(t_s) {
            return;
        }
        points.of += 1;
        // An early wake-up is as rare as a late one.
        let notable = sample.latency_ns >= rule.all_from || sample.latency_ns < 0;
        *late += u64::from(notable);
        if notable || points.of.is_multiple_of(rule.every) {
            if room == 0 {
                return;
            }
            room -= 1;
            let (t_s, latency) = rounded((t_s, sample.latency_ns));
            points.t_s.push(t_s);
            points.latency_ns.push(latency);
        }
    });
    for ((points, rule), late) in points.iter_mut().zip(rules).zip(late) {
        points.thinned = rule.words(late);
        if room == 0 {
            let most = count(MOST_POINTS as u64);
            points.thinned = format!("only what is among the first {most} points of the run");
        }
    }
    (points, read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::hlog;

    #[test]
    fn merging_never_loses_the_largest() {
        let maxima: Vec<(f64, i64)> =
            (0..1_000).map(|i| (f64::from(i), i64::from(i % 613))).collect();
        let points = merged(&maxima, 90, "");
        assert!(points.t_s.len() <= 90);
        assert_eq!(points.latency_ns.iter().max(), Some(&612));
        assert_eq!(points.thinned, "each point is the largest of 12 intervals");
    }

    #[test]
    fn the_rule_keeps_the_late_half_whole() {
        let mut total = hlog::empty();
        for value in 1..=100_000 {
            total.record(value).unwrap();
        }
        let rule = Rule::of(&total, 1_000);
        let late = 100_000 - rule.all_from as u64;
        assert!((300..=500).contains(&late), "{late}");
        assert_eq!(rule.every, 199);
        assert_eq!(Rule::of(&total, 100_000), Rule { all_from: 0, every: 1 });
    }
}

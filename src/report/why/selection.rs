//! Which of the peaks that were kept are shown, and how.

use crate::{
    report::causes::words::label,
    run::{
        Document,
        peaks::{Cause, Peak},
        series_name::whole_of_response,
    },
    units::{Nanos, count},
};

/// Which peaks are meant; what is absent excludes none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PeakFilter {
    /// Of this series; of attached threads of this name both the wake-ups and the responses.
    pub series: Option<String>,
    /// On which the thread ran when it woke up.
    pub cpu: Option<u32>,
    /// Of the largest part, the tasks of one name together.
    pub cause: Option<Cause>,
    /// Due from then on, ns into the run.
    pub since_ns: Option<i64>,
    /// Due up to then, ns into the run.
    pub until_ns: Option<i64>,
}

impl PeakFilter {
    /// Whether this peak of a run is meant.
    #[must_use]
    pub fn takes(&self, peak: &Peak, document: &Document) -> bool {
        let into_ns = into_ns(peak, document);
        let is_of = |cause| peak.parts_by_name().first().is_some_and(|part| part.cause == cause);
        self.series.as_ref().is_none_or(|series| is_of_series(peak, series))
            && self.cpu.is_none_or(|cpu| cpu == peak.cpu)
            && self.since_ns.is_none_or(|since_ns| into_ns.is_some_and(|at| at >= since_ns))
            && self.until_ns.is_none_or(|until_ns| into_ns.is_some_and(|at| at <= until_ns))
            && self.cause.is_none_or(is_of)
    }

    /// That none of the `kept` peaks of a run is meant, and what to do.
    #[must_use]
    pub fn none_fits(&self, kept: usize) -> String {
        let flags = self.flags();
        let peaks = match kept {
            1 => "The peak that was kept does not fit".to_owned(),
            _ => format!("None of the {} peaks that were kept fits", count(kept as u64)),
        };
        let which = if flags.len() == 1 { "it" } else { "one of them" };
        format!("{peaks} {}: leave {which} out; --oneline alone lists all", flags.join(" "))
    }

    /// As it was typed.
    fn flags(&self) -> Vec<String> {
        let time = |ns: i64| Nanos(ns).typed();
        let flags = [
            self.series.as_ref().map(|series| format!("--series {series}")),
            self.cpu.map(|cpu| format!("--cpu {cpu}")),
            self.cause.map(|cause| format!("--cause {}", cause.code())),
            self.since_ns.map(|ns| format!("--since {}", time(ns))),
            self.until_ns.map(|ns| format!("--until {}", time(ns))),
        ];
        flags.into_iter().flatten().collect()
    }
}

/// Whether it is a peak of this series, or of what is measured of the same thread.
fn is_of_series(peak: &Peak, series: &str) -> bool {
    peak.series == series || whole_of_response(&peak.series) == Some(series)
}

/// What is shown of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeakView {
    /// Each with what happened; at most this number.
    Timelines(usize),
    /// All, a line each.
    List,
    /// The reason that none of this number fits.
    NoneFits(PeakFilter, usize),
}

/// When a peak was due, ns into the run; nothing if that is not known.
#[must_use]
pub(super) fn into_ns(peak: &Peak, document: &Document) -> Option<i64> {
    peak.at_ns.map(|at_ns| at_ns.saturating_sub(document.start_monotonic_ns))
}

/// When a peak was due, by the clock of the wall: `2026-11-21 20:30:55.123 UTC`; empty where the
/// run does not say when it began, or nothing when the peak was.
#[must_use]
pub(super) fn moment(peak: &Peak, document: &Document) -> String {
    let Some(into_ns) = into_ns(peak, document) else { return String::new() };
    let start = document.started_at.parse::<jiff::Timestamp>();
    let at = start.map(|start| start.checked_add(jiff::SignedDuration::from_nanos(into_ns)));
    match at {
        Ok(Ok(at)) => at.strftime("%Y-%m-%d %H:%M:%S%.3f UTC").to_string(),
        _ => String::new(),
    }
}

/// Its largest part in words, and how much of the latency that is: `softirq: NET_RX`, 0.61.
#[must_use]
pub(super) fn main_cause(peak: &Peak) -> (String, f64) {
    let parts = peak.parts_by_name();
    let Some(main) = parts.first() else { return ("not analyzed".into(), 0.0) };
    (label(main.cause, &main.name), main.ns as f64 / peak.latency_ns.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        report::fixture,
        run::peaks::{Basis, Part},
    };

    fn peak(at_ns: i64, cpu: u32, cause: Cause) -> Peak {
        let part = Part {
            cause,
            name: "NET_RX".into(),
            task: None,
            ns: 61,
            basis: Basis::Measured,
            evidence: None,
            stack: Vec::new(),
        };
        Peak {
            at_ns: Some(at_ns),
            series: "cpu0".into(),
            cpu,
            latency_ns: 100,
            stages: None,
            ways: Vec::new(),
            blame: vec![part],
            timeline: Vec::new(),
            tid: None,
            left_out: 0,
        }
    }

    #[test]
    fn each_part_of_a_filter_excludes() {
        let mut run = fixture::of("timer", &["cpu0"]);
        run.start_monotonic_ns = 1_000;
        let peak = peak(1_500, 3, Cause::Softirq);
        let all = PeakFilter::default;
        let kept = |filter: PeakFilter| filter.takes(&peak, &run);
        assert!(kept(all()) && kept(PeakFilter { cpu: Some(3), ..all() }));
        assert!(!kept(PeakFilter { cpu: Some(2), ..all() }));
        assert!(kept(PeakFilter { cause: Some(Cause::Softirq), ..all() }));
        assert!(!kept(PeakFilter { cause: Some(Cause::Thread), ..all() }));
        assert!(kept(PeakFilter { since_ns: Some(500), until_ns: Some(500), ..all() }));
        assert!(!kept(PeakFilter { since_ns: Some(501), ..all() }));
        assert!(!kept(PeakFilter { until_ns: Some(499), ..all() }));
        let timeless = Peak { at_ns: None, ..peak.clone() };
        assert!(all().takes(&timeless, &run));
        assert!(!PeakFilter { since_ns: Some(0), ..all() }.takes(&timeless, &run));
        assert!(!PeakFilter { until_ns: Some(i64::MAX), ..all() }.takes(&timeless, &run));
        let of = |series: &str| PeakFilter { series: Some(series.into()), ..all() };
        assert!(kept(of("cpu0")) && !kept(of("cpu1")) && !kept(of("cpu0/response")));
        let response = Peak { series: "cpu0/response".into(), ..peak.clone() };
        assert!(of("cpu0").takes(&response, &run) && of("cpu0/response").takes(&response, &run));
    }

    #[test]
    fn that_no_peak_fits_is_said_with_how_many_there_are_and_the_remedy() {
        let all = PeakFilter::default;
        assert_eq!(
            PeakFilter { cpu: Some(7), ..all() }.none_fits(1_200),
            "None of the 1,200 peaks that were kept fits --cpu 7: leave it out; --oneline alone \
             lists all"
        );
        let cause = Some(Cause::IrqsOff);
        let (since_ns, until_ns) = (Some(90_000_000_000), Some(120_000_000_000));
        assert_eq!(
            PeakFilter { cause, since_ns, until_ns, ..all() }.none_fits(1),
            "The peak that was kept does not fit --cause irqs_off --since 90s --until 2m: leave \
             one of them out; --oneline alone lists all"
        );
    }

    #[test]
    fn a_peak_has_its_time_of_day_and_its_main_cause() {
        let mut run = fixture::of("timer", &["cpu0"]);
        let late = peak(1_250_000_000, 0, Cause::Softirq);
        assert_eq!(moment(&late, &run), "", "a record without its start");
        run.started_at = "2026-11-21T20:30:55.000Z".into();
        assert_eq!(moment(&late, &run), "2026-11-21 20:30:56.250 UTC");
        assert_eq!(moment(&Peak { at_ns: None, ..late.clone() }, &run), "", "nobody knows when");
        assert_eq!(main_cause(&late), ("softirq: NET_RX".into(), 0.61));
    }
}

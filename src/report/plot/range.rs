//! The range of the latency axis as somebody asks for it. What lies outside stands at the edge, and
//! the picture says so: none of it is left out.

use std::str::FromStr;

use super::subject::{highest, lowest};
use crate::{
    report::{page::Page, time_range},
    units::Nanos,
};

/// Ends of the latency axis; an end that is absent follows the data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LatencyRange {
    low: Option<Nanos>,
    high: Option<Nanos>,
}

impl FromStr for LatencyRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || {
            format!("\"{text}\" is not a range; write LOW..HIGH, as in 10us..1ms, ..1ms or 10us..")
        };
        let (low, high) = time_range::ends(text)?.ok_or_else(wanted)?;
        let is_ascending = low.unwrap_or(Nanos(1)) < high.unwrap_or(Nanos(i64::MAX));
        let is_positive = low.is_none_or(|low| low.0 > 0);
        if is_ascending && is_positive { Ok(Self { low, high }) } else { Err(wanted()) }
    }
}

impl LatencyRange {
    /// That of the data.
    pub const ALL: Self = Self { low: None, high: None };

    /// The lower end of the axis, where the data would have it at `low`.
    #[must_use]
    pub(super) fn low(self, low: f64) -> f64 {
        self.low.map_or(low, |end| end.0 as f64)
    }

    /// The upper end of the axis, where the data would have it at `high`.
    #[must_use]
    pub(super) fn high(self, high: f64) -> f64 {
        self.high.map_or(high, |end| end.0 as f64)
    }

    /// The sentence about what lies outside; nothing where all is inside.
    #[must_use]
    pub(super) fn note(self, page: &Page) -> Option<String> {
        let below = self.low.filter(|end| lowest(page) < end.0 as f64);
        let above = self.high.filter(|end| highest(page) > end.0 as f64);
        let words = match (below, above) {
            (None, None) => return None,
            (Some(low), None) => format!("below {low}"),
            (None, Some(high)) => format!("above {high}"),
            (Some(low), Some(high)) => format!("below {low} and above {high}"),
        };
        Some(format!("Latencies {words} stand at the edge."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_end_may_follow_the_data() {
        let range = |text: &str| text.parse::<LatencyRange>().unwrap();
        assert_eq!((range("10us..1ms").low(5.0), range("10us..1ms").high(7.0)), (1e4, 1e6));
        assert_eq!((range("..1ms").low(5.0), range("..1ms").high(7.0)), (5.0, 1e6));
        assert_eq!((range("10us..").low(5.0), range("10us..").high(7.0)), (1e4, 7.0));
    }

    #[test]
    fn what_is_no_range_is_refused_with_an_example() {
        for text in ["", "..", "1ms", "1ms..10us", "0ns..1ms", "5..6ms"] {
            let error = text.parse::<LatencyRange>().unwrap_err();
            assert!(error.contains("10us") || error.contains("has no unit"), "{text}: {error}");
        }
    }
}

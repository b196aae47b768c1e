//! A stretch of a run's time, as somebody asks for it; and how ranges are written.

use std::{fmt, str::FromStr};

use crate::units::Nanos;

/// Ends of a stretch of time since the start of a run; an end that is absent is that of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    from: Option<Nanos>,
    to: Option<Nanos>,
}

impl FromStr for TimeRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted =
            || format!("\"{text}\" is not a range; write FROM..TO, as in 5s..10s, ..10s or 5s..");
        let (from, to) = ends(text)?.ok_or_else(wanted)?;
        let is_ascending = from.unwrap_or(Nanos(0)) < to.unwrap_or(Nanos(i64::MAX));
        if is_ascending { Ok(Self { from, to }) } else { Err(wanted()) }
    }
}

/// Two ends, of which one may be absent.
pub(super) type Ends = (Option<Nanos>, Option<Nanos>);

/// The ends of `FROM..TO`, of which one may be absent; `None` if it is not a range at all.
///
/// # Errors
/// An end is not a time.
pub(super) fn ends(text: &str) -> Result<Option<Ends>, String> {
    let end = |text: &str| match text.trim() {
        "" => Ok(None),
        text => text.parse::<Nanos>().map(Some).map_err(|error| error.to_string()),
    };
    let Some((from, to)) = text.split_once("..") else { return Ok(None) };
    let (from, to) = (end(from)?, end(to)?);
    Ok((from.is_some() || to.is_some()).then_some((from, to)))
}

impl TimeRange {
    /// The whole run.
    pub const ALL: Self = Self { from: None, to: None };

    /// Whether something at `t_s`, in seconds since the start, is within.
    #[must_use]
    pub fn holds(self, t_s: f64) -> bool {
        self.from.is_none_or(|from| from.seconds() <= t_s)
            && self.to.is_none_or(|to| t_s <= to.seconds())
    }

    /// Where it begins, in seconds since the start.
    #[must_use]
    pub fn from_s(self) -> f64 {
        self.from.map_or(0.0, Nanos::seconds)
    }

    /// Where it ends, in seconds since the start, in a run that ends at `end_s`.
    #[must_use]
    pub fn to_s(self, end_s: f64) -> f64 {
        self.to.map_or(end_s, Nanos::seconds)
    }
}

impl fmt::Display for TimeRange {
    /// As it would be typed: `5s..10s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |end: Option<Nanos>| end.map(Nanos::typed).unwrap_or_default();
        write!(f, "{}..{}", end(self.from), end(self.to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_end_may_be_that_of_the_run() {
        let range = |text: &str| text.parse::<TimeRange>().unwrap();
        let ends = |text: &str| (range(text).from_s(), range(text).to_s(20.0));
        assert_eq!(ends("5s..10s"), (5.0, 10.0));
        assert_eq!(ends("..1m"), (0.0, 60.0));
        assert_eq!(ends("0s..500ms"), (0.0, 0.5));
        assert_eq!(ends("1.5s.."), (1.5, 20.0));
        let held = [4.9, 5.0, 7.0, 10.0, 10.1].map(|t_s| range("5s..10s").holds(t_s));
        assert_eq!(held, [false, true, true, true, false]);
        assert!(TimeRange::ALL.holds(1e9) && range("5s..").holds(1e9) && range("..5s").holds(0.0));
        assert_eq!(range(" 5s .. 90s ").to_string(), "5s..90s");
    }

    #[test]
    fn what_is_no_range_is_refused_with_an_example() {
        for text in ["", "..", "5s", "10s..5s", "5s..5s", "0s..0s", "5..6s", "5s..6s..7s"] {
            let error = text.parse::<TimeRange>().unwrap_err();
            assert!(error.contains("5s") || error.contains("unit"), "{text}: {error}");
        }
    }
}

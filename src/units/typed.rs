//! Values as people type them on a command line, with the bounds that options share.

use super::{Nanos, UnitError};

/// A time that is more than nothing and at most an hour.
///
/// # Errors
/// What is wrong with it.
pub fn interval(text: &str) -> Result<Nanos, String> {
    let time = time(text)?;
    match time.0 {
        0 => Err("an interval of 0 leaves no time to sleep; use 1us or more, as in 1ms".into()),
        1..1_000 => Err(format!("{time} is shorter than a system call; use 1us or more")),
        1_000..=3_600_000_000_000 => Ok(time),
        _ => Err(format!("{time} is longer than tardy can measure; use 1h or less")),
    }
}

/// A time that is more than nothing.
///
/// # Errors
/// What is wrong with it.
pub fn positive(text: &str) -> Result<Nanos, String> {
    match time(text)? {
        Nanos(0) => Err("0 is not more than nothing; use a longer time, as 1ms or 1s".into()),
        time => Ok(time),
    }
}

/// How long something lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HowLong {
    /// So long.
    Time(Nanos),
    /// Until somebody ends it.
    Unlimited,
}

impl HowLong {
    /// Its length, where it has one.
    #[must_use]
    pub const fn limit(self) -> Option<Nanos> {
        match self {
            Self::Time(time) => Some(time),
            Self::Unlimited => None,
        }
    }
}

/// A time that is more than nothing, or `inf`.
///
/// # Errors
/// What is wrong with it.
pub fn duration(text: &str) -> Result<HowLong, String> {
    if text.trim() == "inf" {
        return Ok(HowLong::Unlimited);
    }
    match time(text).map_err(|error| format!("{error}, or inf to continue until Ctrl-C"))? {
        Nanos(0) => Err("0 leaves no time; use 1s or more, or inf to continue until Ctrl-C".into()),
        time => Ok(HowLong::Time(time)),
    }
}

/// A time. Zero needs no unit: its error names what is wrong with zero, and not first what is wrong
/// with a bare number.
///
/// # Errors
/// What is wrong with it.
pub fn time(text: &str) -> Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Err(UnitError::Bare(number)) if number.parse::<f64>() == Ok(0.0) => Ok(Nanos(0)),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_error_advises_is_accepted() {
        for zero in ["0", "0s", "0.0", "0ns"] {
            let error = duration(zero).unwrap_err();
            assert!(error.contains("use 1s or more, or inf"), "{zero}: {error}");
            assert!(positive(zero).unwrap_err().contains("1ms or 1s"), "{zero}");
            assert!(interval(zero).unwrap_err().contains("use 1us or more"), "{zero}");
        }
        assert_eq!(duration("1s"), Ok(HowLong::Time(Nanos(1_000_000_000))));
        assert_eq!(duration("1d").map(HowLong::limit), Ok(Some(Nanos(86_400_000_000_000))));
        assert_eq!(duration("inf"), Ok(HowLong::Unlimited));
        assert_eq!(duration("inf").map(HowLong::limit), Ok(None));
        assert!(positive("1ms").is_ok() && positive("1s").is_ok() && interval("1us").is_ok());
    }

    #[test]
    fn a_duration_without_a_unit_is_refused_with_every_way_out() {
        let error = duration("60").unwrap_err();
        assert_eq!(
            error,
            "60 has no unit; write 60us, 60ms or 60s, or inf to continue until Ctrl-C"
        );
        for text in ["forever", "-1s", "INF s", "infinite", ""] {
            assert!(duration(text).unwrap_err().ends_with("or inf to continue until Ctrl-C"));
        }
    }
}

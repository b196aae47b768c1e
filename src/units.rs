//! Quantities with their units: parsed and printed here and nowhere else.
//!
//! A time without a unit is refused, with the units it could have had: `--interval 1000` meant
//! microseconds in one tool and milliseconds in the next.

mod amount;
pub mod typed;
mod words;

use std::{fmt, str::FromStr};

use thiserror::Error;

pub use amount::{AmountError, ByteSize, SampleCount};
pub use words::{
    byte_rate, change, count, cpus, grouped, many, percent, rate, round, share, span, times,
};

/// A signed time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub i64);

/// Units of time, smallest first, with their length in ns.
const UNITS: [(&str, i64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Why a quantity was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnitError {
    /// A number and nothing else.
    #[error("{0} has no unit; write {0}us, {0}ms or {0}s")]
    Bare(String),
    /// A unit nobody knows.
    #[error("\"{unit}\" is not a unit of time; use ns, us, ms, s, m, h or d, e.g. 250us")]
    Unknown {
        /// What stood behind the number.
        unit: String,
    },
    /// No number at its beginning.
    #[error("\"{0}\" is not a time; use a number and a unit, e.g. 250us or 1.5s")]
    NoNumber(String),
    /// Below zero, finer than 1 ns or longer than 292 years.
    #[error("{0} is out of range; times are from 0 to 292 years in whole nanoseconds")]
    Range(String),
}

impl Nanos {
    /// The units that a time may have.
    #[must_use]
    pub fn units() -> String {
        UNITS.map(|(name, _)| name).join(", ")
    }

    /// As it would be typed: a whole number of the largest unit that is one, `10ms`, `90m`.
    #[must_use]
    pub fn typed(self) -> String {
        let fits = |(_, length): &&(&str, i64)| self.0 >= *length && self.0 % *length == 0;
        let (unit, length) = UNITS.iter().rfind(fits).copied().unwrap_or(("ns", 1));
        format!("{}{unit}", self.0 / length)
    }

    /// Seconds, rounded to what an `f64` holds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl FromStr for Nanos {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let unit = unit.trim().replace('µ', "u");
        if number.is_empty() {
            return Err(UnitError::NoNumber(text.into()));
        }
        if unit.is_empty() {
            return Err(UnitError::Bare(text.into()));
        }
        let unit = if unit == "min" { "m" } else { unit.as_str() };
        let Some((_, length)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(UnitError::Unknown { unit: unit.into() });
        };
        decimal(number, *length).map(Self).ok_or_else(|| UnitError::Range(text.into()))
    }
}

/// `number` (digits with at most one point) times `length`, exact, or nothing where it does not
/// fit.
fn decimal(number: &str, length: i64) -> Option<i64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()? };
    let mut total = whole.checked_mul(length)?;
    let mut place = length;
    for digit in part.chars() {
        let digit = i64::from(digit.to_digit(10)?);
        if place % 10 != 0 && digit != 0 {
            // Minutes, hours and days divide by 10 only so often; below that use f64 once.
            let rest: f64 = format!("0.{part}").parse().ok()?;
            return whole.checked_mul(length)?.checked_add((rest * length as f64).round() as i64);
        }
        place /= 10;
        total = total.checked_add(digit.checked_mul(place)?)?;
    }
    Some(total)
}

impl fmt::Display for Nanos {
    /// Four significant digits at the most, in the unit that fits: `38.2 us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = Scale::of(self.0);
        write!(f, "{} {}", unit.number(self.0), unit.name())
    }
}

/// Packets per second, exact to a thousandth of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketRate {
    /// Packets in 1,000 seconds: from one to 10^10.
    pub per_1000_s: u64,
}

/// Units of rates, with their packets in 1,000 s.
const RATES: [(&str, i64); 3] = [("pps", 1_000), ("kpps", 1_000_000), ("Mpps", 1_000_000_000)];

/// Why a rate was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RateError {
    /// A number and nothing else.
    #[error("{0} has no unit; write {0}pps or {0}kpps")]
    Bare(String),
    /// Something else.
    #[error("\"{0}\" is not a rate; use a number and pps, kpps or Mpps, e.g. 10kpps")]
    Unknown(String),
    /// Nothing, or faster than any loop.
    #[error("{0} is out of range; rates are from 0.001pps to 10Mpps")]
    Range(String),
}

impl PacketRate {
    /// Packets per second.
    #[must_use]
    pub fn per_s(self) -> f64 {
        self.per_1000_s as f64 / 1e3
    }
}

impl FromStr for PacketRate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        if !number.is_empty() && unit.trim().is_empty() {
            return Err(RateError::Bare(text.into()));
        }
        let known = RATES.iter().find(|(name, _)| *name == unit.trim());
        let (Some((_, length)), false) = (known, number.is_empty()) else {
            return Err(RateError::Unknown(text.into()));
        };
        let per_1000_s = decimal(number, *length).and_then(|rate| u64::try_from(rate).ok());
        match per_1000_s {
            Some(per_1000_s @ 1..=10_000_000_000) => Ok(Self { per_1000_s }),
            _ => Err(RateError::Range(text.into())),
        }
    }
}

impl fmt::Display for PacketRate {
    /// As it would be written: `10kpps`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_s = self.per_s();
        match per_s {
            1e6.. => write!(f, "{}Mpps", per_s / 1e6),
            1e3.. => write!(f, "{}kpps", per_s / 1e3),
            _ => write!(f, "{per_s}pps"),
        }
    }
}

/// A unit of time to print a column of numbers in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scale {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl Scale {
    /// The unit in which `ns` has one to three digits before the point.
    #[must_use]
    pub const fn of(ns: i64) -> Self {
        match ns.unsigned_abs() {
            0..1_000 => Self::Ns,
            1_000..1_000_000 => Self::Us,
            1_000_000..1_000_000_000 => Self::Ms,
            _ => Self::S,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Ms => "ms",
            Self::S => "s",
        }
    }

    const fn length(self) -> f64 {
        match self {
            Self::Ns => 1.0,
            Self::Us => 1e3,
            Self::Ms => 1e6,
            Self::S => 1e9,
        }
    }

    /// `ns` in this unit, without the unit's name; as many digits as three significant ones need.
    #[must_use]
    pub fn number(self, ns: i64) -> String {
        let value = ns as f64 / self.length();
        let decimals = match value.abs() {
            _ if self == Self::Ns => 0,
            v if v >= 100.0 => 0,
            v if v >= 10.0 => 1,
            _ => 2,
        };
        format!("{value:.decimals$}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ns(text: &str) -> Result<i64, UnitError> {
        text.parse::<Nanos>().map(|n| n.0)
    }

    #[test]
    fn times_with_units_are_exact() {
        for (text, want) in [
            ("250us", 250_000),
            ("1ms", 1_000_000),
            ("1.5s", 1_500_000_000),
            ("0.000000001s", 1),
            ("2m", 120_000_000_000),
            ("0.1h", 360_000_000_000),
            ("1d", 86_400_000_000_000),
            ("1.5d", 129_600_000_000_000),
            ("1.23456789123m", 74_074_073_474),
            ("7 µs", 7_000),
            (".5us", 500),
        ] {
            assert_eq!(ns(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn a_bare_number_is_refused_with_the_units_it_could_have_had() {
        let error = ns("250").unwrap_err();
        assert_eq!(error.to_string(), "250 has no unit; write 250us, 250ms or 250s");
    }

    #[test]
    fn a_time_is_written_as_it_would_be_typed() {
        for text in ["0ns", "7ns", "1us", "1500ns", "10ms", "10s", "1m", "90s", "1h", "36h", "7d"] {
            assert_eq!(text.parse::<Nanos>().unwrap().typed(), text);
        }
        assert_eq!(Nanos(-1_000).typed(), "-1000ns");
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for text in
            ["", "us", "-1us", "1.2.3ms", "1parsec", ".us", "1e3us", "99999999999h", "106752d"]
        {
            assert!(ns(text).is_err(), "{text}");
        }
    }

    #[test]
    fn printed_times_have_three_significant_digits() {
        for (value, want) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (38_240, "38.2 us"),
            (2_400_000, "2.40 ms"),
            (-1_500, "-1.50 us"),
            (20_000_000_000, "20.0 s"),
        ] {
            assert_eq!(Nanos(value).to_string(), want);
        }
    }

    #[test]
    fn spans_counts_and_rates_read_well() {
        assert_eq!(span(20.0), "20 s");
        assert_eq!(span(1.5), "1.5 s");
        assert_eq!(span(0.046), "46 ms");
        assert_eq!(span(200.0), "3 min 20 s");
        assert_eq!(span(86_400.0), "24 h");
        assert_eq!(span(172_799.0), "47 h 59 min");
        assert_eq!(span(172_800.0), "2 d");
        assert_eq!(span(277_300.0), "3 d 5 h");
        assert_eq!(span(7_500.0), "2 h 5 min");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(rate(812_345.0), "812k");
        assert_eq!(rate(1_420_000.0), "1.42M");
        assert_eq!([12.0, 5_755.4].map(rate), ["12", "5,755"]);
        assert_eq!([409.2, 75_200.0].map(byte_rate), ["409 B/s", "75.2 kB/s"]);
        let numbers = ["-1234.5678", "123", "+12345", "0.1234"].map(grouped);
        assert_eq!(numbers, ["-1,234.5678", "123", "+12,345", "0.1234"]);
        assert_eq!([percent(0.614, 0), percent(0.0412, 1)], ["61%", "4.1%"]);
        let shares = [1.0, 0.9999, 0.997, 0.614, 0.05, 0.0012, 0.00021, 1e-5, 0.0].map(share);
        let words = ["100%", ">99.9%", "99.7%", "61%", "5.0%", "0.12%", "0.021%", "<0.01%", "0%"];
        assert_eq!(shares, words);
    }

    #[test]
    fn rates_of_packets_have_a_unit_and_come_back() {
        for (text, want) in [
            ("100pps", 100_000),
            ("10kpps", 10_000_000),
            ("1.5 kpps", 1_500_000),
            ("10Mpps", 10_000_000_000),
            ("0.001pps", 1),
        ] {
            let rate: PacketRate = text.parse().unwrap();
            assert_eq!(rate.per_1000_s, want, "{text}");
            assert_eq!(rate.to_string().parse(), Ok(rate), "{text}");
        }
        let error = "100".parse::<PacketRate>().unwrap_err();
        assert_eq!(error.to_string(), "100 has no unit; write 100pps or 100kpps");
        for text in ["", "pps", "10 Hz", "0pps", "11Mpps", "-1pps", "1.2.3pps", "0.0001pps"] {
            assert!(text.parse::<PacketRate>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,20}") {
            let _ = ns(&text);
            let _ = text.parse::<PacketRate>();
        }

        #[test]
        fn whole_numbers_of_every_unit_come_back(n in 0i64..100_000, unit in 0usize..7) {
            let (name, length) = UNITS[unit];
            prop_assert_eq!(ns(&format!("{n}{name}")), Ok(n * length));
        }
    }
}

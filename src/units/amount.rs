//! Amounts: bytes and counts, which may be bare numbers.

use std::str::FromStr;

use thiserror::Error;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// Units of sizes, with their bytes.
const SIZES: [(&str, u64); 7] = [
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

/// A number of samples, or of anything else that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleCount(pub u64);

/// What may stand behind a count.
const FACTORS: [(&str, u64); 4] = [("", 1), ("k", 1_000), ("K", 1_000), ("M", 1_000_000)];

/// Why an amount was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AmountError {
    /// No size, or too large a one.
    #[error("\"{0}\" is not a size; use bytes, or a unit: B, kB, KiB, MB, MiB, GB, GiB, e.g. 4KiB")]
    Size(String),
    /// No count, or too large a one.
    #[error("\"{0}\" is not a count; use 1 or more, e.g. 1000 or 50k")]
    Count(String),
}

impl ByteSize {
    /// The units that a size may have.
    #[must_use]
    pub fn units() -> String {
        SIZES.map(|(name, _)| name).join(", ")
    }
}

impl FromStr for ByteSize {
    type Err = AmountError;

    /// Whole bytes, or a whole number of a unit.
    fn from_str(text: &str) -> Result<Self, AmountError> {
        let bytes = |unit: &str| match unit.trim_start() {
            "" => Some(1),
            unit => SIZES.iter().find(|(name, _)| *name == unit).map(|(_, bytes)| *bytes),
        };
        amount(text, bytes).map(Self).ok_or_else(|| AmountError::Size(text.into()))
    }
}

impl FromStr for SampleCount {
    type Err = AmountError;

    /// 1 or more: `1000`, `50k`, `300M`.
    fn from_str(text: &str) -> Result<Self, AmountError> {
        let factor = |unit: &str| FACTORS.iter().find(|(name, _)| *name == unit).map(|it| it.1);
        let count = amount(text, factor).filter(|count| *count > 0);
        count.map(Self).ok_or_else(|| AmountError::Count(text.into()))
    }
}

/// Digits, times what `unit` makes of the rest. No sign: help shows none.
fn amount(text: &str, unit: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(split)?;
    number.parse::<u64>().ok()?.checked_mul(unit(rest)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_bare_or_have_a_unit() {
        let sizes = [("0", 0), ("100", 100), ("4KiB", 4096), ("2 GiB", 2 << 30), ("64kB", 64_000)];
        for (text, bytes) in sizes {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
        for text in ["", "B", "KiB", "64KB", "4 kib", "1.5MiB", "-1", "+1", "99999999999GiB"] {
            let error = text.parse::<ByteSize>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains(&ByteSize::units()), "{error}");
        }
    }

    #[test]
    fn counts_are_whole_and_at_least_one() {
        for (text, count) in [("1", 1), ("50k", 50_000), ("50K", 50_000), ("300M", 300_000_000)] {
            assert_eq!(text.parse(), Ok(SampleCount(count)), "{text}");
        }
        for text in ["", "0", "k", "0M", "1.5k", "-1", "+1", "1 k", "1G", "99999999999999M"] {
            assert!(text.parse::<SampleCount>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,20}") {
            let _ = text.parse::<ByteSize>();
            let _ = text.parse::<SampleCount>();
        }
    }
}

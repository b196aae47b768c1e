//! The largest value of an interval, which a log states beside its histogram in another unit.
//!
//! Writers divide it: those of Java, Go, Python and .NET by 1,000,000, so that ns are shown as ms,
//! and Rust's by 1,000,000,000. Where it is the same number (C, JavaScript, or a writer that was
//! told so) nothing says that values are ns. Values of another unit are divided alike by some
//! programs, so that a quotient does not prove ns either.

use super::super::{hdr_counts::HdrBucket, source::ImportError};
use crate::plain::cut;

/// Powers of ten that are tried.
const POWERS: std::ops::RangeInclusive<i32> = -9..=9;

/// Powers by which ns are shown as ms and as s.
const OF_NS: [i32; 2] = [6, 9];

/// What a value may differ from its bucket by, as a share.
const ROUNDED: f64 = 0.01;

/// What the stated values say.
#[derive(Debug, Default)]
pub(super) struct MaxRatio {
    /// The powers of ten that go with every line.
    powers: Option<Vec<i32>>,
    /// The first of them, how many there are, and whether another one differs.
    first: String,
    lines: u64,
    differ: bool,
    contradiction: Option<ImportError>,
}

impl MaxRatio {
    /// Compares the stated largest value of a line with the one of its histogram.
    pub(super) fn take(&mut self, line: u64, stated: &str, buckets: &[HdrBucket]) {
        let Some(largest) = buckets.last() else { return };
        let stated = stated.trim();
        let Some(value) = stated.parse::<f64>().ok().filter(|own| own.is_finite()) else { return };
        if self.lines == 0 {
            self.first = cut(stated, 40);
        }
        self.lines += 1;
        self.differ |= self.first != cut(stated, 40);
        if value == 0.0 && largest.low == 0 {
            return;
        }
        let own = powers(stated, value, largest);
        if own.is_empty() && self.contradiction.is_none() {
            let what = format!(
                "its maximum {} is not the largest value of its histogram, {}, in any unit (that \
                 value divided by a power of ten): the line contradicts itself",
                cut(stated, 40),
                range(largest)
            );
            self.contradiction = Some(ImportError::at(line, what));
        }
        match &mut self.powers {
            Some(all) => all.retain(|power| own.contains(power)),
            None => self.powers = Some(own),
        }
    }

    /// Refuses a log with a line that contradicts itself. One whose lines all state the same has a
    /// placeholder there: some programs write 999.000.
    pub(super) fn check(&mut self) -> Result<(), ImportError> {
        match self.contradiction.take() {
            Some(_) if self.is_placeholder() => {
                self.powers = None;
                Ok(())
            }
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    const fn is_placeholder(&self) -> bool {
        self.lines > 1 && !self.differ
    }

    /// Whether the histograms can be in ns; nothing where no line says it.
    pub(super) fn may_be_nanoseconds(&self) -> Option<bool> {
        self.powers.as_ref().map(|all| all.iter().any(|power| OF_NS.contains(power)))
    }
}

/// The powers of ten by which the largest value can have been divided.
fn powers(text: &str, value: f64, largest: &HdrBucket) -> Vec<i32> {
    let step = step(text, value);
    let (low, high) = (largest.low as f64, largest.high as f64);
    let fits = |power: &i32| {
        let factor = 10_f64.powi(*power);
        // Some logs state an exact maximum beside counts that were rounded once more.
        let room = step * factor + high * ROUNDED;
        value * factor >= low - room && value * factor <= high + room
    };
    POWERS.filter(fits).collect()
}

/// What the last digit of a number is worth: it may be rounded or cut off.
fn step(text: &str, value: f64) -> f64 {
    match text.split_once('.') {
        _ if text.contains(['e', 'E']) => value.abs() * 1e-6,
        Some((_, digits)) => 10_f64.powi(-i32::try_from(digits.len().min(300)).unwrap_or(300)),
        None => 1.0,
    }
}

fn range(bucket: &HdrBucket) -> String {
    if bucket.low == bucket.high {
        return bucket.low.to_string();
    }
    format!("{}-{}", bucket.low, bucket.high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(lines: &[(&str, u64, u64)]) -> Result<Option<bool>, String> {
        let mut ratio = MaxRatio::default();
        for (stated, low, high) in lines {
            ratio.take(7, stated, &[HdrBucket { low: *low, high: *high, count: 1 }]);
        }
        ratio.check().map_err(|error| error.to_string())?;
        Ok(ratio.may_be_nanoseconds())
    }

    #[test]
    fn a_power_of_ten_says_whether_it_can_be_ns_and_none_is_a_contradiction() {
        for (lines, expected) in [
            (&[("26.083", 25_952_256, 26_083_327)][..], Some(true)),
            (&[("0.115", 114_688, 131_071)], Some(true)),
            (&[("0.026083328", 26_083_328, 26_214_399)], Some(true)),
            (&[("0.000", 26, 26)], Some(true)),
            (&[("1.0E-3", 1_000, 1_000)], Some(true)),
            (&[("103.0", 103, 103)], Some(false)),
            (&[("42", 42, 42)], Some(false)),
            (&[("0.092346", 92_672, 92_735)], Some(true)),
            (&[("1000.000", 999_936, 1_000_447)], Some(false)),
            (&[("0.000", 0, 0)], None),
            (&[("n/a", 7, 7)], None),
            (&[("0.000", 1, 1), ("26.083", 25_952_256, 26_083_327)], Some(true)),
            (&[("103.0", 103, 103), ("26.083", 25_952_256, 26_083_327)], Some(false)),
            (&[("999.000", 5, 5), ("999.000", 17, 17)], None),
        ] {
            assert_eq!(taken(lines), Ok(expected), "{lines:?}");
        }
        assert_eq!(taken(&[]), Ok(None));
        for lines in [&[("99999.0", 500, 500)][..], &[("0.5", 500, 500), ("99999.0", 500, 500)]] {
            let error = taken(lines).unwrap_err();
            let said = "line 7: its maximum 99999.0 is not the largest value of its histogram, 500";
            assert!(error.starts_with(said), "{error}");
        }
    }
}

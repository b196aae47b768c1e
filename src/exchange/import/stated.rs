//! Smallest, mean and largest latency as a file states them beside its samples. They must go
//! together, and with the histogram: a file of which they do not contradicts itself.

/// What a file states of a series, in its unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stated<'a> {
    /// Whose, as the file calls it: `thread 0`.
    pub(super) of: &'a str,
    /// What the file calls smallest, mean and largest.
    pub(super) names: [&'a str; 3],
    /// Those that it has.
    pub(super) values: [Option<f64>; 3],
}

/// What is behind the largest bin that has samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beyond {
    /// Nothing: every sample is in a bin.
    Nothing,
    /// Samples, or it is not known.
    Maybe,
}

impl Stated<'_> {
    /// Refuses a smallest above the largest, and a mean outside of both.
    pub(super) fn ordered(&self) -> Result<(), String> {
        let ([low, middle, high], [min, mean, max]) = (self.names, self.values);
        let wrong = |field: &str, value: f64, than: &str, other: f64| {
            let (of, edited) = (self.of, EDITED);
            Err(format!("{of}: {field} {value} is {than} {other}: {edited}"))
        };
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            return wrong(low, min, &format!("above {high}"), max);
        }
        // Rounding to two decimals may bring a mean below the smallest.
        if let (Some(min), Some(mean)) = (min, mean)
            && mean < min - 0.01
        {
            return wrong(middle, mean, &format!("below {low}"), min);
        }
        // Of whole units a largest that was rounded down may be below the mean.
        match (mean, max) {
            (Some(mean), Some(max)) if mean >= max + 1.0 => {
                wrong(middle, mean, &format!("above {high}"), max)
            }
            _ => Ok(()),
        }
    }

    /// Refuses a smallest or largest that the bins with samples, of which these are the first and
    /// the last, contradict.
    pub(super) fn fits(&self, (first, last): (f64, f64), beyond: Beyond) -> Result<(), String> {
        let ([low, _, high], [min, _, max]) = (self.names, self.values);
        let wrong = |field: &str, value: f64, than: &str, bin: f64| {
            let (of, edited) = (self.of, EDITED);
            Err(format!("{of}: {field} {value} is {than} with samples, {bin}: {edited}"))
        };
        if let Some(max) = max {
            let room = room(max);
            if max < last - room {
                return wrong(high, max, "below the largest bin", last);
            }
            if beyond == Beyond::Nothing && max > last + room {
                let of = self.of;
                return Err(format!(
                    "{of}: {high} {max} is above the largest bin with samples, {last}, and no \
                     sample is beyond the bins: {EDITED}"
                ));
            }
        }
        match min.filter(|min| *min > first + room(*min)) {
            Some(min) => wrong(low, min, "above the smallest bin", first),
            None => Ok(()),
        }
    }
}

/// What is to be thought of a file that contradicts itself.
const EDITED: &str = "the file contradicts itself";

/// What a bin may differ from a latency that it counts: `tardy export` counts a sample where the
/// middle of its bucket lies.
fn room(value: f64) -> f64 {
    if value < 16.0 { 0.0 } else { 1.0 + value / 1_000.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(min: f64, mean: f64, max: f64) -> Stated<'static> {
        let values = [Some(min), Some(mean), Some(max)];
        Stated { of: "thread 0", names: ["Min", "Avg", "Max"], values }
    }

    #[test]
    fn smallest_mean_and_largest_go_together() {
        assert_eq!(stated(3.0, 5.7, 5.0).ordered(), Ok(()), "rounded down");
        for (own, said) in [
            (stated(9.0, 9.0, 3.0), "thread 0: Min 9 is above Max 3: the file contradicts"),
            (stated(3.0, 2.0, 9.0), "thread 0: Avg 2 is below Min 3: "),
            (stated(3.0, 10.0, 9.0), "thread 0: Avg 10 is above Max 9: "),
        ] {
            let error = own.ordered().unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn the_largest_is_that_of_the_bins_or_of_what_is_beyond_them() {
        let own = stated(3.0, 5.0, 9.0);
        assert_eq!(own.fits((3.0, 9.0), Beyond::Nothing), Ok(()));
        assert_eq!(own.fits((3.0, 7.0), Beyond::Maybe), Ok(()));
        let above = own.fits((3.0, 7.0), Beyond::Nothing).unwrap_err();
        assert!(above.starts_with("thread 0: Max 9 is above the largest bin with samples, 7, and"));
        let below = own.fits((3.0, 12.0), Beyond::Maybe).unwrap_err();
        assert!(below.starts_with("thread 0: Max 9 is below the largest bin with samples, 12: "));
        let min = own.fits((1.0, 9.0), Beyond::Nothing).unwrap_err();
        assert!(min.starts_with("thread 0: Min 3 is above the smallest bin with samples, 1: "));
    }
}

//! `-R`: the resolution of the clock.

use tardy_hot::clock::now_ns;

use crate::sys::clock;

/// Reads of the clock in a row.
const READS: usize = 10_000;

/// What the kernel states, and the smallest step between two reads of the clock, ns.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClockResolution {
    stated_ns: i64,
    /// Nothing where the clock stood still.
    measured_ns: Option<i64>,
}

impl ClockResolution {
    pub(super) fn measure() -> Self {
        let reads: Vec<i64> = (0..READS).map(|_| now_ns()).collect();
        Self { stated_ns: clock::resolution_ns(), measured_ns: smallest_step(&reads) }
    }

    /// As cyclictest warns of it: if it is coarser than stated, or if all is to be `told`. A step
    /// includes the time of a read.
    pub(super) fn text(self, told: bool) -> Option<String> {
        let Self { stated_ns, measured_ns } = self;
        let measured_ns = measured_ns.filter(|measured_ns| told || *measured_ns > stated_ns)?;
        Some(format!(
            "WARN: reported clock resolution: {stated_ns} nsec\n\
             WARN: measured clock resolution approximately: {measured_ns} nsec"
        ))
    }
}

fn smallest_step(reads: &[i64]) -> Option<i64> {
    let steps = reads.windows(2).filter_map(|pair| pair.last()?.checked_sub(*pair.first()?));
    steps.filter(|step| *step > 0).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resolution_is_the_smallest_step_that_is_any() {
        assert_eq!(smallest_step(&[100, 100, 131, 160, 200]), Some(29));
        assert_eq!(smallest_step(&[7, 7]), None);
        let clock = |measured_ns| ClockResolution { stated_ns: 1, measured_ns };
        let said = clock(Some(29)).text(false).unwrap();
        assert_eq!(
            said,
            "WARN: reported clock resolution: 1 nsec\n\
             WARN: measured clock resolution approximately: 29 nsec"
        );
        assert_eq!(clock(Some(1)).text(false), None, "as fine as stated");
        assert!(clock(Some(1)).text(true).is_some());
        assert_eq!(clock(None).text(true), None);
        assert!(ClockResolution::measure().stated_ns > 0);
    }
}

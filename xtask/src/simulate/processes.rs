//! Latencies with known percentiles: independent, autocorrelated, in bursts, periodic.
//!
//! One sample a ms. Each process is stationary from its first sample on, so the marginal
//! distribution, and with it every true percentile, is known.

use tardy::analysis::{
    distributions::{normal_tail, normal_upper},
    random::SplitMix64,
};

/// What latencies are made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Process {
    /// Independent samples of a Pareto distribution with index 2.
    Independent,
    /// The same distribution, through a Gaussian autoregression with this coefficient.
    Autoregressive(f64),
    /// About six bursts a minute, of 50 samples on average.
    Bursty,
    /// Every 500th sample is a peak.
    Periodic,
}

pub(super) const PROCESSES: [(&str, Process); 5] = [
    ("independent", Process::Independent),
    ("AR(1) 0.9", Process::Autoregressive(0.9)),
    ("AR(1) 0.99", Process::Autoregressive(0.99)),
    ("bursts, 6 a minute", Process::Bursty),
    ("periodic peaks", Process::Periodic),
];

/// The smallest latency, ns.
const LEAST_NS: f64 = 5_000.0;
/// The mean of what usual samples of bursts and peaks have above that.
const USUAL_NS: f64 = 1_000.0;
/// In a burst: at least this, and on average this much more.
const BURST_NS: f64 = 20_000.0;
const BURST_MORE_NS: f64 = 50_000.0;
/// A burst begins at a usual sample, and ends at a sample of the burst, with these probabilities.
const BEGIN: f64 = 1e-4;
const END: f64 = 0.02;
/// Peaks: one in this number of samples, from and up to.
const PERIOD: u64 = 500;
const PEAK_NS: f64 = 50_000.0;
const PEAK_MORE_NS: f64 = 100_000.0;

impl Process {
    /// `count` samples, ns.
    pub(super) fn draw(self, count: usize, random: &mut SplitMix64) -> Vec<u64> {
        let mut source = Source::new(self, random);
        (0..count).map(|_| source.next(random) as u64).collect()
    }

    /// P(X > x) of one sample.
    fn tail(self, x: f64) -> f64 {
        let exponential =
            |from: f64, mean: f64| if x < from { 1.0 } else { (-(x - from) / mean).exp() };
        match self {
            Self::Independent | Self::Autoregressive(_) => {
                if x < LEAST_NS {
                    1.0
                } else {
                    (LEAST_NS / x).powi(2)
                }
            }
            Self::Bursty => {
                let share = BEGIN / (BEGIN + END);
                (1.0 - share) * exponential(LEAST_NS, USUAL_NS)
                    + share * exponential(BURST_NS, BURST_MORE_NS)
            }
            Self::Periodic => {
                let share = 1.0 / PERIOD as f64;
                let peak = (1.0 - (x - PEAK_NS) / PEAK_MORE_NS).clamp(0.0, 1.0);
                (1.0 - share) * exponential(LEAST_NS, USUAL_NS) + share * peak
            }
        }
    }

    /// The true percentile (0 to 100), ns.
    pub(super) fn percentile(self, percent: f64) -> f64 {
        let share = 1.0 - percent / 100.0;
        let (mut low, mut high) = (0.0, 1e12);
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if self.tail(middle) > share { low = middle } else { high = middle }
        }
        high
    }
}

/// A process on its way.
struct Source {
    process: Process,
    /// The Gaussian state of an autoregression.
    gaussian: f64,
    in_burst: bool,
    /// Samples until the next peak.
    until_peak: u64,
}

impl Source {
    fn new(process: Process, random: &mut SplitMix64) -> Self {
        Self {
            process,
            gaussian: normal(random),
            in_burst: random.uniform() < BEGIN / (BEGIN + END),
            until_peak: random.bits() % PERIOD,
        }
    }

    fn next(&mut self, random: &mut SplitMix64) -> f64 {
        let pareto = |tail: f64| LEAST_NS / tail.sqrt();
        let exponential = |random: &mut SplitMix64| -random.uniform().ln();
        match self.process {
            Process::Independent => pareto(random.uniform()),
            Process::Autoregressive(memory) => {
                let value = pareto(normal_tail(self.gaussian));
                let fresh = (1.0 - memory * memory).sqrt() * normal(random);
                self.gaussian = memory * self.gaussian + fresh;
                value
            }
            Process::Bursty => {
                let value = match self.in_burst {
                    true => BURST_NS + BURST_MORE_NS * exponential(random),
                    false => LEAST_NS + USUAL_NS * exponential(random),
                };
                let change = if self.in_burst { END } else { BEGIN };
                self.in_burst ^= random.uniform() < change;
                value
            }
            Process::Periodic if self.until_peak == 0 => {
                self.until_peak = PERIOD - 1;
                PEAK_NS + PEAK_MORE_NS * random.uniform()
            }
            Process::Periodic => {
                self.until_peak -= 1;
                LEAST_NS + USUAL_NS * exponential(random)
            }
        }
    }
}

/// A standard normal number.
pub(super) fn normal(random: &mut SplitMix64) -> f64 {
    normal_upper(random.uniform())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_computed_by_hand() {
        // Pareto: 5 us / sqrt(share).
        assert!((Process::Independent.percentile(99.0) - 50_000.0).abs() < 1.0);
        // A share of 0.002 are peaks, spread evenly: p99.9 is in their middle.
        assert!((Process::Periodic.percentile(99.9) - 100_000.0).abs() < 1.0);
        // Bursts have a share of 1 in 201: 0.201 of it is 0.001, 50 us * ln(1 / 0.201) above 20 us.
        let bursts = 20_000.0 + 50_000.0 * (1.0_f64 / 0.201).ln();
        assert!((Process::Bursty.percentile(99.9) - bursts).abs() < 1.0);
    }

    #[test]
    fn samples_have_the_percentiles_that_they_should() {
        for (name, process) in PROCESSES {
            let mut random = SplitMix64::new(1);
            let samples = process.draw(400_000, &mut random);
            let median = process.percentile(50.0);
            let above = samples.iter().filter(|sample| **sample as f64 > median).count();
            // The strongest dependence leaves about 2,000 effective samples: 1.1% each way.
            let share = above as f64 / 400_000.0;
            assert!((share - 0.5).abs() < 0.04, "{name}: {share}");
        }
    }
}

//! Known tails: what a model of a tail should find is computed from them.

use std::{fmt, str::FromStr};

use thiserror::Error;

use super::mixed;

/// The least latency, us.
const BODY_US: f64 = 5.0;

/// The mean of what exponential latencies have beyond it, us.
const MEAN_US: f64 = 5.0;

/// How far bounded ones reach beyond it, us.
const REACH_US: f64 = 20.0;

/// The least latency and the mean beyond it of the second kind, us.
const SECOND_US: (f64, f64) = (50.0, 100.0);

/// A distribution of latencies, and where its random numbers begin: `pareto:index=4,seed=7`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distribution {
    tail: Tail,
    seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Tail {
    /// 5 us, and an exponential with a mean of 5 us.
    Exponential,
    /// 5 us times a Pareto variable with this index.
    Pareto(f64),
    /// From 5 to 25 us: a generalised Pareto distribution with the negative of this as its shape.
    Bounded(f64),
    /// One in this number has 50 us, and an exponential with a mean of 100 us; the others are
    /// exponential as above.
    TwoKinds(f64),
}

/// Why something names no distribution.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DistributionError {
    /// None of that name.
    #[error(
        "no distribution \"{0}\"; there are exponential, pareto:index=4, \
         bounded:shape=0.3 and two-kinds:one-in=500, each also with seed=1"
    )]
    Name(String),
    /// A key that it does not have.
    #[error("{name} has no \"{pair}\"; write {}seed=1", or_its_own(*.own))]
    Key {
        /// The distribution.
        name: String,
        /// What was written.
        pair: String,
        /// The key that it has.
        own: Option<&'static str>,
    },
    /// A value out of range.
    #[error("{key}={value}: write a number from {low} to {high}")]
    Value {
        /// The key.
        key: String,
        /// What was written.
        value: String,
        /// The least.
        low: &'static str,
        /// The most.
        high: &'static str,
    },
}

fn or_its_own(key: Option<&str>) -> String {
    key.map_or_else(String::new, |key| format!("{key}=VALUE or "))
}

/// The name, its key with the default, and what that may be.
type Form = (&'static str, Option<(&'static str, f64, (f64, f64), (&'static str, &'static str))>);

const FORMS: [Form; 4] = [
    ("exponential", None),
    ("pareto", Some(("index", 4.0, (0.5, 100.0), ("0.5", "100")))),
    ("bounded", Some(("shape", 0.3, (0.01, 1.0), ("0.01", "1")))),
    ("two-kinds", Some(("one-in", 500.0, (2.0, 1e9), ("2", "1000000000")))),
];

impl Distribution {
    /// Sample number `n` (from 0) of a CPU, ns.
    #[must_use]
    pub fn latency_ns(&self, cpu: u64, n: u64) -> i64 {
        let drawn = mixed(mixed(self.seed ^ cpu << 48) ^ n);
        // 53 bits, neither 0 nor 1.
        let uniform = ((drawn >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        (self.tail.drawn_us(uniform) * 1e3) as i64
    }
}

impl Tail {
    /// The latency of a number between 0 and 1, us: but for two kinds the one that is exceeded with
    /// that probability.
    fn drawn_us(self, uniform: f64) -> f64 {
        match self {
            Self::Exponential => BODY_US - MEAN_US * uniform.ln(),
            Self::Pareto(index) => BODY_US * uniform.powf(-1.0 / index),
            Self::Bounded(shape) => BODY_US + REACH_US * (1.0 - uniform.powf(shape)),
            Self::TwoKinds(one_in) => match uniform * one_in {
                // What is left of the number is uniform again.
                rare if rare < 1.0 => SECOND_US.0 - SECOND_US.1 * rare.ln(),
                rest => BODY_US - MEAN_US * ((rest - 1.0) / (one_in - 1.0)).ln(),
            },
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seed = self.seed;
        match self.tail {
            Tail::Exponential => write!(f, "exponential:seed={seed}"),
            Tail::Pareto(index) => write!(f, "pareto:index={index},seed={seed}"),
            Tail::Bounded(shape) => write!(f, "bounded:shape={shape},seed={seed}"),
            Tail::TwoKinds(one_in) => write!(f, "two-kinds:one-in={one_in},seed={seed}"),
        }
    }
}

impl FromStr for Distribution {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<Self, DistributionError> {
        let (name, pairs) = text.split_once(':').unwrap_or((text, ""));
        let form = FORMS.iter().find(|(own, _)| *own == name);
        let (_, own) = form.ok_or_else(|| DistributionError::Name(name.into()))?;
        let (mut value, mut seed) = (own.map_or(0.0, |own| own.1), 1);
        for pair in pairs.split(',').filter(|_| !pairs.is_empty()) {
            let refused = |key: &str, value: &str, (low, high)| DistributionError::Value {
                key: key.into(),
                value: value.into(),
                low,
                high,
            };
            match (pair.split_once('='), own) {
                (Some(("seed", given)), _) => {
                    let range = ("0", "18446744073709551615");
                    seed = given.parse().map_err(|_| refused("seed", given, range))?;
                }
                (Some((key, given)), Some((known, _, (low, high), words))) if key == *known => {
                    let read = given.parse().ok().filter(|read| (*low..=*high).contains(read));
                    value = read.ok_or_else(|| refused(key, given, *words))?;
                }
                _ => {
                    return Err(DistributionError::Key {
                        name: name.into(),
                        pair: pair.into(),
                        own: own.map(|own| own.0),
                    });
                }
            }
        }
        let tail = match name {
            "pareto" => Tail::Pareto(value),
            "bounded" => Tail::Bounded(value),
            "two-kinds" => Tail::TwoKinds(value),
            _ => Tail::Exponential,
        };
        Ok(Self { tail, seed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Distribution {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_written_is_read_and_written_again() {
        for (text, whole) in [
            ("exponential", "exponential:seed=1"),
            ("pareto", "pareto:index=4,seed=1"),
            ("pareto:seed=9,index=2.5", "pareto:index=2.5,seed=9"),
            ("bounded:shape=0.5", "bounded:shape=0.5,seed=1"),
            ("two-kinds:one-in=50", "two-kinds:one-in=50,seed=1"),
        ] {
            assert_eq!(of(text).to_string(), whole);
            assert_eq!(of(whole), of(text));
        }
    }

    #[test]
    fn what_is_none_is_refused_by_what_is_wrong() {
        for (text, says) in [
            ("normal", "no distribution \"normal\"; there are exponential, pareto"),
            ("pareto:shape=1", "pareto has no \"shape=1\"; write index=VALUE or seed=1"),
            ("exponential:index=1", "exponential has no \"index=1\"; write seed=1"),
            ("pareto:index", "pareto has no \"index\""),
            ("pareto:index=0", "index=0: write a number from 0.5 to 100"),
            ("bounded:shape=NaN", "shape=NaN: write a number from 0.01 to 1"),
            ("exponential:seed=-1", "seed=-1: write a number from 0"),
        ] {
            let error = text.parse::<Distribution>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn shares_above_a_level_are_those_of_the_distribution() {
        let count = 200_000;
        let share = |text: &str, over_us: f64| {
            let own = of(text);
            let over = (0..count).filter(|n| own.latency_ns(0, *n) as f64 > over_us * 1e3);
            over.count() as f64 / count as f64
        };
        for (text, over_us, truth) in [
            ("exponential", 20.0, (-3.0_f64).exp()),
            ("pareto:index=4", 10.0, 0.5_f64.powi(4)),
            ("bounded:shape=0.3", 15.0, 0.5_f64.powf(1.0 / 0.3)),
            ("two-kinds:one-in=20", 150.0, (-1.0_f64).exp() / 20.0),
        ] {
            // Four standard errors.
            let error = 4.0 * (truth / count as f64).sqrt();
            let found = share(text, over_us);
            assert!((found - truth).abs() < error, "{text}: {found}, not {truth}");
        }
    }

    #[test]
    fn the_same_seed_has_the_same_samples_and_another_seed_or_cpu_others() {
        let first = |text: &str, cpu| -> Vec<i64> {
            (0..50).map(|n| of(text).latency_ns(cpu, n)).collect()
        };
        assert_eq!(first("exponential", 0), first("exponential:seed=1", 0));
        assert_ne!(first("exponential", 0), first("exponential", 1));
        assert_ne!(first("exponential", 0), first("exponential:seed=2", 0));
    }
}

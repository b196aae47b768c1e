//! What is compared: percentiles, the maximum, and missed periods.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// A figure of one block. Of each, less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ComparedFigure {
    /// The median.
    P50,
    /// The 90th percentile.
    P90,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
    /// The 99.99th percentile.
    P9999,
    /// The largest sample of a block; blocks must be equally long.
    Max,
    /// The share of periods that passed without their own wake-up.
    Missed,
}

/// All of them with their names.
pub const COMPARED_FIGURES: [(ComparedFigure, &str); 7] = [
    (ComparedFigure::P50, "p50"),
    (ComparedFigure::P90, "p90"),
    (ComparedFigure::P99, "p99"),
    (ComparedFigure::P999, "p99.9"),
    (ComparedFigure::P9999, "p99.99"),
    (ComparedFigure::Max, "max"),
    (ComparedFigure::Missed, "missed"),
];

/// Those that are judged where nothing else was asked for.
pub const JUDGED_BY_DEFAULT: [ComparedFigure; 3] =
    [ComparedFigure::P50, ComparedFigure::P99, ComparedFigure::P999];

/// A name that no figure has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown metric {0:?}; known are p50, p90, p99, p99.9, p99.99, max, missed")]
pub struct UnknownFigure(String);

impl ComparedFigure {
    /// Its name: `p99.9`.
    #[must_use]
    pub fn name(self) -> &'static str {
        COMPARED_FIGURES.iter().find(|(figure, _)| *figure == self).map_or("", |(_, name)| name)
    }

    /// Which percentile, 0 to 100; absent for the others.
    #[must_use]
    pub const fn percent(self) -> Option<f64> {
        match self {
            Self::P50 => Some(50.0),
            Self::P90 => Some(90.0),
            Self::P99 => Some(99.0),
            Self::P999 => Some(99.9),
            Self::P9999 => Some(99.99),
            Self::Max | Self::Missed => None,
        }
    }

    /// Sides that differ by less than this share are called the same, unless the user says
    /// otherwise or equal sides differ by more: 5% up to p99, 10% beyond.
    #[must_use]
    pub const fn default_margin(self) -> f64 {
        match self {
            Self::P50 | Self::P90 | Self::P99 => 0.05,
            Self::P999 | Self::P9999 | Self::Max | Self::Missed => 0.1,
        }
    }
}

impl fmt::Display for ComparedFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ComparedFigure {
    type Err = UnknownFigure;

    fn from_str(text: &str) -> Result<Self, UnknownFigure> {
        let found = COMPARED_FIGURES.iter().find(|(_, name)| *name == text);
        found.map(|(figure, _)| *figure).ok_or_else(|| UnknownFigure(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_found_by_its_name() {
        for (figure, name) in COMPARED_FIGURES {
            assert_eq!(name.parse(), Ok(figure));
            assert_eq!(figure.to_string(), name);
            let percent = name.strip_prefix('p').map(|percent| percent.parse::<f64>().unwrap());
            assert_eq!(figure.percent(), percent);
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_there_are() {
        let error = "p95".parse::<ComparedFigure>().unwrap_err().to_string();
        assert!(error.contains("\"p95\""), "{error}");
        assert!(COMPARED_FIGURES.iter().all(|(_, name)| error.contains(name)), "{error}");
    }
}

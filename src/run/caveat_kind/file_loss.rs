//! Caveats about a file of another program that has less than happened.

use serde::Serialize;

use crate::{run::caveat::Effect, units::many};

/// With fewer samples a series says nothing.
const FEWEST_SAMPLES: u64 = 4;

/// What is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FileLoss {
    /// The file says so itself.
    Stated {
        /// What: `2 events of the kernel lost`.
        what: String,
    },
    /// The program stopped before its latest sample was whole.
    StoppedEarly {
        /// The series with such a sample.
        series: Vec<String>,
    },
    /// Fewer samples than say anything.
    FewSamples {
        /// The series with the fewest.
        series: String,
        /// How many it has.
        samples: u64,
    },
}

impl FileLoss {
    /// Code, effect and remedy.
    pub(super) const fn words(&self) -> (&'static str, Effect, &'static str) {
        use Effect::{Invalidates, Weakens};
        match self {
            Self::Stated { .. } => {
                ("loss_stated", Weakens, "Measure again with larger buffers, or record less.")
            }
            Self::StoppedEarly { .. } => (
                "stopped_early",
                Weakens,
                "Read the latency as a lower limit; `tardy why` says what it was spent on.",
            ),
            Self::FewSamples { samples, .. } if *samples < FEWEST_SAMPLES => {
                ("few_samples", Invalidates, "Measure for longer.")
            }
            Self::FewSamples { .. } => ("few_samples", Weakens, "Measure for longer."),
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Stated { what } => format!("The file itself says what is missing: {what}."),
            Self::StoppedEarly { series } => format!(
                "The program stopped before the latest sample of {} was over: it counts as what \
                 it had taken by then, and took longer.",
                series.join(", ")
            ),
            Self::FewSamples { series, samples } => {
                format!("{series} has {}: a distribution takes more.", many(*samples, "sample"))
            }
        }
    }
}

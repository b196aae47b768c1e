//! Caveats of a run, as values. A code, a text, a remedy, and what it does to the
//! verdict.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The validity of a run, set by its most severe caveat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// There is no reason to doubt them.
    Valid,
    /// Some caveat weakens them.
    Weakened,
    /// Some caveat invalidates them.
    Invalid,
}

impl Validity {
    /// As in `run.json`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Weakened => "weakened",
            Self::Invalid => "invalid",
        }
    }

    /// The word for people.
    #[must_use]
    pub const fn displayed(self) -> &'static str {
        match self {
            Self::Weakened => "questionable",
            other => other.as_str(),
        }
    }
}

/// What a caveat does to the run. The order is that of severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Worth knowing.
    Informs,
    /// The numbers may be worse (or better) than the machine.
    Weakens,
    /// The numbers do not say what the run claims.
    Invalidates,
}

impl Effect {
    /// As in `run.json`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Informs => "informs",
            Self::Weakens => "weakens",
            Self::Invalidates => "invalidates",
        }
    }

    /// The word for people.
    #[must_use]
    pub const fn displayed(self) -> &'static str {
        match self {
            Self::Informs => "info",
            Self::Weakens => "warning",
            Self::Invalidates => "error",
        }
    }
}

/// A caveat of a run, as `run.json` keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Caveat {
    /// Stable name, explained in `docs/reference/caveats.md`.
    pub code: String,
    /// What it does to the verdict.
    pub effect: Effect,
    /// What was found, with its figures.
    pub text: String,
    /// What to do about it.
    pub remedy: String,
    /// The values that the text is made of, by name; absent in runs of older versions.
    #[serde(default)]
    pub values: Map<String, Value>,
}

/// The verdict that follows from these caveats.
#[must_use]
pub fn verdict(caveats: &[Caveat]) -> Validity {
    match caveats.iter().map(|caveat| caveat.effect).max() {
        Some(Effect::Invalidates) => Validity::Invalid,
        Some(Effect::Weakens) => Validity::Weakened,
        Some(Effect::Informs) | None => Validity::Valid,
    }
}

/// The code of a command that failed while it was measured: the first fact of its run, before any
/// doubt about figures.
pub const COMMAND_FAILED: &str = "attach_command_failed";

/// Sorts caveats, a failed command first and then the worst, and keeps their order otherwise.
pub fn sort(caveats: &mut [Caveat]) {
    caveats.sort_by_key(|caveat| (caveat.code != COMMAND_FAILED, std::cmp::Reverse(caveat.effect)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caveat(effect: Effect) -> Caveat {
        Caveat {
            code: "c".into(),
            effect,
            text: "t".into(),
            remedy: "r".into(),
            values: Map::new(),
        }
    }

    #[test]
    fn a_failed_command_comes_before_the_worst_doubt() {
        let mut caveats = [
            Caveat { code: "informs".into(), ..caveat(Effect::Informs) },
            Caveat { code: "invalidates".into(), ..caveat(Effect::Invalidates) },
            Caveat { code: COMMAND_FAILED.into(), ..caveat(Effect::Informs) },
            Caveat { code: "weakens".into(), ..caveat(Effect::Weakens) },
        ];
        sort(&mut caveats);
        let codes = caveats.map(|caveat| caveat.code);
        assert_eq!(codes, [COMMAND_FAILED, "invalidates", "weakens", "informs"]);
    }

    #[test]
    fn the_verdict_is_that_of_the_worst_caveat() {
        use Effect::{Informs, Invalidates, Weakens};
        let verdict_of = |effects: &[Effect]| {
            verdict(&effects.iter().map(|effect| caveat(*effect)).collect::<Vec<_>>())
        };
        assert_eq!(verdict_of(&[]), Validity::Valid);
        assert_eq!(verdict_of(&[Informs, Informs]), Validity::Valid);
        assert_eq!(verdict_of(&[Informs, Weakens]), Validity::Weakened);
        assert_eq!(verdict_of(&[Weakens, Invalidates, Informs]), Validity::Invalid);
    }
}

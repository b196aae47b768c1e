//! The words of a page, so that it calls a cause, a sample and a series what the terminal does.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{causes::words::head, sample_name::SERIES};
use crate::run::{Document, peaks::Cause, probes::SampleName};

/// What readers call that for which the data has short names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Vocabulary {
    /// The samples of all runs together.
    pub samples: SampleWords,
    /// Each kind of cause.
    pub causes: BTreeMap<Cause, String>,
    /// Series that are not called by their names.
    pub series: BTreeMap<String, String>,
}

impl Vocabulary {
    /// That of a page which shows `documents`.
    #[must_use]
    pub fn of<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Self {
        Self {
            samples: SampleName::drawn_of_all(documents).into(),
            causes: Cause::ALL.map(|cause| (cause, head(cause).to_owned())).into(),
            series: SERIES.map(|(name, words)| (name.to_owned(), words.to_owned())).into(),
        }
    }
}

/// What samples are called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SampleWords {
    /// What they are.
    pub kind: SampleName,
    /// One of them: `wake-up`.
    pub one: String,
    /// More of them: `wake-ups`.
    pub many: String,
    /// What axes are called that have their length: `latency`.
    pub measure: String,
}

impl From<SampleName> for SampleWords {
    fn from(kind: SampleName) -> Self {
        let [one, many, measure] = [kind.one(), kind.many(), kind.measure()].map(str::to_owned);
        // They are wake-ups and what came of them.
        let kind = if kind == SampleName::Response { SampleName::WakeUp } else { kind };
        Self { kind, one, many, measure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_words() {
        let schema = schemars::schema_for!(Cause).to_value();
        let known = schema["oneOf"].as_array().unwrap();
        assert_eq!(Vocabulary::of([]).causes.len(), known.len(), "Cause::ALL lacks one");
    }
}

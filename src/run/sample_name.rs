//! What the samples of a run are.

use super::{Document, probes::SampleName};

impl SampleName {
    /// What the samples of `document` are; those of a probe that is not in the table are wake-ups.
    #[must_use]
    pub fn of(document: &Document) -> Self {
        document.probe.info().map_or(Self::WakeUp, |probe| probe.sample)
    }

    /// What the samples of all of them are.
    #[must_use]
    pub fn of_all<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Self {
        let mut names = documents.into_iter().map(Self::of);
        let first = names.next().unwrap_or(Self::Sample);
        if names.all(|name| name == first) { first } else { Self::Sample }
    }
}

//! What the samples of a run are.

use super::{Document, probes::SampleName};

impl SampleName {
    /// What the samples of `document` are; those of a probe that is not in the table are wake-ups.
    #[must_use]
    pub fn of(document: &Document) -> Self {
        document.probe.info().map_or(Self::WakeUp, |probe| probe.sample)
    }

    /// What is drawn of `document`, in which responses lead: where all series are of responses
    /// these, where some are samples.
    #[must_use]
    pub fn drawn(document: &Document) -> Self {
        let all: Vec<bool> =
            document.wakeups().filter(|own| own.count > 0).map(|own| own.is_response()).collect();
        match (all.contains(&true), all.contains(&false)) {
            (true, false) => Self::Response,
            (true, true) => Self::Sample,
            (false, _) => Self::of(document),
        }
    }

    /// What is drawn of all of them.
    #[must_use]
    pub fn drawn_of_all<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Self {
        Self::shared(documents.into_iter().map(Self::drawn))
    }

    /// What the samples of all of them are.
    #[must_use]
    pub fn of_all<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Self {
        Self::shared(documents.into_iter().map(Self::of))
    }

    fn shared(mut names: impl Iterator<Item = Self>) -> Self {
        let first = names.next().unwrap_or(Self::Sample);
        if names.all(|name| name == first) { first } else { Self::Sample }
    }
}

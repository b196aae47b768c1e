//! Lanes and bands in words, and what is said with a reservation; causes and shares are in
//! `causes::words`.

use crate::{
    analysis::bands::{CauseInBand, LATE},
    run::{peaks::Lane, probes::SampleName},
};

/// More than this of a cause's time is an inference: it was probably so.
const INFERRED: f64 = 0.5;

/// Whether most of the time of these is an inference rather than measured.
pub(super) fn is_probable<'a>(causes: impl Iterator<Item = &'a CauseInBand> + Clone) -> bool {
    let all: f64 = causes.clone().map(|cause| cause.ns as f64).sum();
    let inferred: f64 = causes.map(|cause| cause.ns as f64 * cause.inferred).sum();
    inferred > INFERRED * all
}

/// A lane of a timeline.
pub(super) const fn lane(lane: Lane) -> &'static str {
    match lane {
        Lane::Host => "host",
        Lane::Hardirq => "interrupt",
        Lane::Softirq => "softirq",
        Lane::Thread => "measured",
        Lane::Others => "others",
        Lane::Idle => "idle",
    }
}

/// A band as the end of "of all time".
pub(super) fn band(name: &str, sample: SampleName) -> String {
    match name {
        "worst" => format!("in the ten worst {}", sample.many()),
        LATE => "of cycles over the deadline".to_owned(),
        name => format!("above {name}"),
    }
}

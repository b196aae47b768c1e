//! Which cause differs: what the slowest samples of both sides were blamed on.
//!
//! Of a band, the slowest 1% say, the mean latency is the sum of what each cause had of it, per
//! sample. So the differences of the causes sum up to the difference of the means. They are
//! described, not judged.

use std::collections::BTreeMap;

use crate::{
    analysis::bands::{Band, LATE},
    report::causes::{Causes, total},
    run::{BandDifference, CauseDifference, Run, TraceMode, peaks::Cause},
};

/// The ten worst are not a band of a share of the samples.
const WORST: &str = "worst";

/// One side's means of a band.
#[derive(Debug, Default)]
struct SideBand {
    runs: f64,
    ns: f64,
    blamed: f64,
    causes: BTreeMap<(Cause, String), f64>,
}

/// The bands that all runs of both sides have; none where one of them was not traced.
#[must_use]
pub fn causes_between(a: &[&Run], b: &[&Run]) -> Vec<BandDifference> {
    let bands = |side: &[&Run]| side.iter().map(|run| bands_of(run)).collect::<Vec<_>>();
    of_bands(&bands(a), &bands(b))
}

/// Why no causes are compared, if none are.
pub(super) fn unlike(a: &[&Run], b: &[&Run]) -> Option<String> {
    let all: Vec<&Run> = a.iter().chain(b).copied().collect();
    let without: Vec<&Run> = all.iter().filter(|run| bands_of(run).is_empty()).copied().collect();
    let (traced, untraced): (Vec<&Run>, Vec<&Run>) =
        without.into_iter().partition(|run| run.document.trace.found == TraceMode::Peaks);
    let names = |runs: &[&Run]| {
        let names: Vec<&str> = runs.iter().map(|run| run.document.name.as_str()).collect();
        names.join(", ")
    };
    let why = match (untraced.len(), traced.len()) {
        (0, 0) => return None,
        (0, _) => format!("{} had no late sample with a cause.", names(&traced)),
        (count, _) if count == all.len() => {
            "no run was traced. That takes --trace on both sides.".to_owned()
        }
        _ => format!("{} was not traced. That takes --trace on both sides.", names(&untraced)),
    };
    Some(format!("Causes are not compared: {why}"))
}

/// Those of one run; none where its late samples were not blamed. Samples are blamed, so that bands
/// are of these in whatever view the run is compared.
fn bands_of(run: &Run) -> Vec<Band> {
    if !matches!(run.blame(), Ok(Some(_))) {
        return Vec::new();
    }
    let causes = Causes::of(run, &total(run).0);
    let mut bands = if causes.blame.is_some() { causes.bands } else { Vec::new() };
    // With a deadline responses are compared, and the other bands are of wake-ups.
    let is_judged = !run.document.judged_cycles().is_empty();
    bands.retain(|band| !is_judged || band.name == LATE);
    bands
}

pub(super) fn of_bands(a: &[Vec<Band>], b: &[Vec<Band>]) -> Vec<BandDifference> {
    let Some(first) = a.first() else { return Vec::new() };
    let names = first.iter().map(|band| band.name.as_str()).filter(|name| *name != WORST);
    names.filter_map(|name| Some(difference(name, &side(a, name)?, &side(b, name)?))).collect()
}

/// The means of a band over the runs of a side; `None` if one has none.
fn side(runs: &[Vec<Band>], name: &str) -> Option<SideBand> {
    let mut found = SideBand::default();
    for run in runs {
        let band = run.iter().find(|band| band.name == name)?;
        let samples = band.wakeups.max(1) as f64;
        found.runs += 1.0;
        found.ns += band.ns as f64 / samples;
        found.blamed += band.blamed_share;
        for cause in &band.causes {
            let own = found.causes.entry((cause.cause, cause.name.clone())).or_default();
            *own += cause.ns as f64 / samples;
        }
    }
    (found.runs > 0.0).then_some(found)
}

fn difference(name: &str, a: &SideBand, b: &SideBand) -> BandDifference {
    let mean = |side: &SideBand, of: &(Cause, String)| {
        side.causes.get(of).copied().unwrap_or(0.0) / side.runs
    };
    let mut keys: Vec<&(Cause, String)> = a.causes.keys().collect();
    keys.extend(b.causes.keys().filter(|key| !a.causes.contains_key(key)));
    let cause = |key: &(Cause, String)| CauseDifference {
        cause: key.0,
        name: key.1.clone(),
        a_ns: mean(a, key),
        b_ns: mean(b, key),
    };
    let mut causes: Vec<CauseDifference> = keys.into_iter().map(cause).collect();
    let size = |cause: &CauseDifference| cause.difference_ns().abs();
    causes.sort_by(|one, other| size(other).total_cmp(&size(one)));
    BandDifference {
        band: name.to_owned(),
        a_ns: a.ns / a.runs,
        b_ns: b.ns / b.runs,
        blamed_a: a.blamed / a.runs,
        blamed_b: b.blamed / b.runs,
        causes,
    }
}

//! Bands of latencies and what they were blamed on.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::run::{
    peaks::{Blame, Cause, Peak},
    summary::percentile,
};

/// The percentiles from which bands begin, widest first.
const PERCENTILES: [(&str, f64); 3] = [("p99", 99.0), ("p99.9", 99.9), ("p99.99", 99.99)];

/// Peaks in the last band.
const WORST: usize = 10;

/// Causes of a band that are told one by one.
const MOST_CAUSES: usize = 40;

/// All wake-ups that were at least so late.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Band {
    /// `p99`: all above it; `worst`: the worst ten peaks.
    pub name: String,
    /// The smallest latency of it, ns.
    pub from_ns: i64,
    /// Wake-ups that were that late.
    pub wakeups: u64,
    /// Those of them that were blamed.
    pub blamed: u64,
    /// The sum of the latencies that were blamed, ns.
    pub ns: u64,
    /// What they were blamed on, largest first; the largest 40, so that they may sum to less.
    pub causes: Vec<CauseInBand>,
}

/// A cause's part in a band.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CauseInBand {
    /// What kind.
    pub cause: Cause,
    /// Which one.
    pub name: String,
    /// Wake-ups with such a part.
    pub wakeups: u64,
    /// Their sum, ns.
    pub ns: u64,
}

/// The bands of a run; `total` holds all its wake-ups, `worst` its worst peaks, worst first.
/// Percentiles with fewer than ten wake-ups beyond are left out: the worst peaks say more.
#[must_use]
pub fn bands(blame: &Blame, total: &Histogram<u64>, worst: &[Peak]) -> Vec<Band> {
    let certain = |p: &&(&str, f64)| total.len() as f64 * (1.0 - p.1 / 100.0) >= 9.999;
    let above = |(name, p): &(&str, f64)| above(blame, total, name, percentile(total, *p, None));
    let mut found: Vec<Band> = PERCENTILES.iter().filter(certain).map(above).collect();
    found.extend(worst_band(worst));
    found.retain(|band| band.blamed > 0);
    found
}

/// Sums are kept by buckets: those count whose lower end is not below `from_ns`, less the width of
/// one, so that the band begins within a sixteenth of an octave of it.
fn above(blame: &Blame, total: &Histogram<u64>, name: &str, from_ns: i64) -> Band {
    let least = (from_ns as f64 * 2_f64.powf(-1.0 / 16.0)) as i64;
    let buckets: Vec<_> = blame.buckets.iter().filter(|bucket| bucket.low_ns > least).collect();
    let from_ns = buckets.first().map_or(from_ns, |bucket| bucket.low_ns);
    let mut causes = Causes::default();
    for (number, wakeups, ns) in buckets.iter().flat_map(|bucket| &bucket.parts) {
        if let Some(cause) = blame.causes.get(*number as usize) {
            causes.add(cause.cause, &cause.name, *wakeups, *ns);
        }
    }
    let blamed = buckets.iter().map(|bucket| bucket.wakeups).sum();
    let low = u64::try_from(from_ns).unwrap_or(0);
    Band {
        name: name.to_owned(),
        from_ns,
        wakeups: total.count_between(low, total.high()).max(blamed),
        blamed,
        ns: buckets.iter().map(|bucket| bucket.ns).sum(),
        causes: causes.largest(),
    }
}

fn worst_band(worst: &[Peak]) -> Option<Band> {
    let worst = worst.get(..WORST.min(worst.len()))?;
    let mut causes = Causes::default();
    for part in worst.iter().flat_map(|peak| &peak.blame) {
        causes.add(part.cause, &part.name, 1, part.ns);
    }
    Some(Band {
        name: "worst".into(),
        from_ns: worst.last()?.latency_ns,
        wakeups: worst.len() as u64,
        blamed: worst.len() as u64,
        ns: worst.iter().map(|peak| peak.latency_ns.unsigned_abs()).sum(),
        causes: causes.largest(),
    })
}

/// Sums by kind and name, those of all series together.
#[derive(Default)]
struct Causes(Vec<CauseInBand>);

impl Causes {
    fn add(&mut self, cause: Cause, name: &str, wakeups: u64, ns: u64) {
        match self.0.iter_mut().find(|known| known.cause == cause && known.name == name) {
            Some(known) => {
                known.wakeups = known.wakeups.saturating_add(wakeups);
                known.ns = known.ns.saturating_add(ns);
            }
            None => self.0.push(CauseInBand { cause, name: name.to_owned(), wakeups, ns }),
        }
    }

    fn largest(mut self) -> Vec<CauseInBand> {
        self.0.retain(|cause| cause.ns > 0);
        self.0.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.name.cmp(&b.name)));
        self.0.truncate(MOST_CAUSES);
        self.0
    }
}

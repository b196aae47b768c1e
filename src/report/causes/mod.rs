//! Why wake-ups of a run were late: read and summed here, once for `tardy why`, for the page and
//! for the cells of a matrix.

pub mod cells;
pub mod page;
pub mod words;

use hdrhistogram::Histogram;

use crate::{
    analysis::bands::{Band, bands},
    run::{
        CaveatKind, Run,
        hlog::{self, HlogError},
        peaks::{Blame, Peak},
        peaks_file::{Brief, Damage},
    },
};

pub use page::{PageBlame, PagePeaks};

/// What a run knows of causes.
#[derive(Debug, Clone, Default)]
pub struct Causes {
    /// What all late wake-ups were blamed on; absent where that was not recorded, or is damaged.
    pub blame: Option<Blame>,
    /// From the widest to the worst; where `blame` is absent, the worst alone.
    pub bands: Vec<Band>,
    /// The worst wake-ups, worst first; all with `--peak-over`.
    pub worst: Vec<Peak>,
    /// Every wake-up that was kept, in short, by time.
    pub all: Vec<Brief>,
    /// What could not be read.
    pub damaged: Vec<Damage>,
    /// The same as caveats of the run.
    pub caveats: Vec<CaveatKind>,
}

impl Causes {
    /// Reads them; `total` holds all whole latencies of the run.
    #[must_use]
    pub fn of(run: &Run, total: &Histogram<u64>) -> Self {
        let peaks = run.peaks();
        let mut caveats: Vec<CaveatKind> = peaks.caveat().into_iter().collect();
        let mut damaged = peaks.damaged;
        let blame = run.blame().unwrap_or_else(|damage| {
            caveats.push(CaveatKind::TrackDamaged { what: damage.to_string() });
            damaged.push(damage);
            None
        });
        let max = run.document.wakeups().filter_map(|series| series.max).max().unwrap_or(0);
        let known = blame.clone().unwrap_or_default();
        let mut bands = bands(total, max, &known, &peaks.worst);
        if blame.is_none() {
            // Without sums, a band of them would say that nothing was blamed.
            bands.retain(|band| band.name == "worst");
        }
        Self { blame, bands, worst: peaks.worst, all: peaks.all, damaged, caveats }
    }
}

/// All whole latencies of a run: what there is up to the first damaged line, where there is one.
pub fn total(run: &Run) -> (Histogram<u64>, Result<(), HlogError>) {
    let mut total = hlog::empty();
    let read = run.intervals(|number, _, counts| {
        if run.document.series.get(number).is_some_and(|series| !series.is_stage()) {
            // Bounds are equal, so that nothing can be lost.
            let _ = total.add(&counts);
        }
    });
    (total, read)
}

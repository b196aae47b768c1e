//! A run without the time that the hypervisor took from it: what the kernel alone did.
//!
//! Late samples of which the steal counter says how much was stolen have another latency without
//! that. Their bucket in the histogram changes, interval by interval of the log, and so does all
//! that is derived from it. Nothing else is removed: time that is only inferred to be the
//! hypervisor's stays in, and so does what was stolen from samples that were not judged.

use std::{collections::BTreeMap, sync::Arc};

use hdrhistogram::Histogram;
use tardy_hot::{
    histogram::{highest_of, index_of, lowest_of},
    tally::Totals,
};
use thiserror::Error;

use super::{
    counts::SeriesCounts,
    document::{Document, Status},
    hlog::LogLine,
    host_moves::HostMoves,
    reader::Run,
    stolen::{StolenOf, StolenRecord},
    summary::summarize,
    trace::TraceMode,
    without_host::{SeriesWithoutHost, WithoutHost},
};

/// Why nothing is removed from gaps.
const GAPS: &str = "its samples are the interruptions, and one that the hypervisor made is not a \
                    gap without it; the figure `stolen` of a series says what the steal clock \
                    counted";

/// Why nothing is removed where there are results that are not latencies, or such of other threads.
const FIGURES: &str = "besides latencies it has results that were counted as they were (rates, \
                       deadlines, waits), and those cannot be counted again";

/// Why a run cannot be shown without its host.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WithoutHostError {
    /// Why late samples were late is not recorded.
    #[error(
        "--without host: {run} does not say what its late samples were made of: measure again \
         with --trace peaks, as root, in the virtual machine"
    )]
    NotTraced {
        /// The run's name.
        run: String,
    },
    /// An older tardy measured it.
    #[error(
        "--without host: {run} was measured by a tardy that did not record which samples lost \
         time to the hypervisor: measure again with this one and --trace peaks, as root"
    )]
    Older {
        /// The run's name.
        run: String,
    },
    /// Nothing counts stolen time there.
    #[error(
        "--without host: nothing counted what the hypervisor took from {run}, so that nothing is \
         known to be removed: on a real machine no hypervisor exists; a virtual one must be \
         KVM's, with steal time (QEMU: -cpu ...,+kvm-steal-time), on x86-64"
    )]
    NotCounted {
        /// The run's name.
        run: String,
    },
    /// It continues, or its maker was killed.
    #[error(
        "--without host: {run} has not ended in order, so that what the hypervisor took is known \
         of a part of it only: wait for its end, or measure again"
    )]
    NotEnded {
        /// The run's name.
        run: String,
    },
    /// Its results are of another kind.
    #[error("--without host: {run} was measured by {probe}; {why}")]
    Apart {
        /// The run's name.
        run: String,
        /// Its probe.
        probe: String,
        /// Why nothing can be removed.
        why: &'static str,
    },
    /// Its files are damaged.
    #[error("--without host: of {run}, {what}")]
    Damaged {
        /// The run's name.
        run: String,
        /// What is damaged.
        what: String,
    },
}

impl Run {
    /// This run without the time that its hypervisor is known to have taken. Its record has the
    /// figures of what is left, its log and its peaks read so, and
    /// [`Document::without_host`] says what was removed. Caveats and verdict stay those of what was
    /// measured. Single samples (`--raw`) are not read.
    ///
    /// # Errors
    /// See [`WithoutHostError`].
    pub fn without_host(&self) -> Result<Self, WithoutHostError> {
        let stolen = self.stolen()?;
        let mut run = self.clone();
        let mut marker = self.marker();
        let document = &mut run.document;
        marker.not_moved = stolen.no_room;
        document.series.retain(|series| {
            if series.is_part() {
                marker.left_out.push(series.name.clone());
            }
            !series.is_part()
        });
        let moves = HostMoves::of(&document.series, document.start_monotonic_ns, &stolen);
        run.sum_again(&moves, &stolen, &mut marker)?;
        run.document.without_host = Some(marker);
        run.moves = Some(Arc::new(moves));
        Ok(run)
    }

    /// What the recorder knows of stolen time.
    fn stolen(&self) -> Result<StolenRecord, WithoutHostError> {
        let document = &self.document;
        let run = document.name.clone();
        let probe = document.probe.measured_as().to_owned();
        let has_figures = !document.figures.is_empty() || document.attached.is_some();
        if probe == "noise" {
            return Err(WithoutHostError::Apart { run, probe, why: GAPS });
        }
        if has_figures {
            return Err(WithoutHostError::Apart { run, probe, why: FIGURES });
        }
        if document.trace.found != TraceMode::Peaks {
            return Err(WithoutHostError::NotTraced { run });
        }
        if matches!(document.status, Status::Running | Status::Crashed) {
            return Err(WithoutHostError::NotEnded { run });
        }
        let blame = match self.blame() {
            Ok(Some(blame)) => blame,
            Ok(None) => return Err(WithoutHostError::NotTraced { run }),
            Err(damage) => {
                return Err(WithoutHostError::Damaged { run, what: damage.to_string() });
            }
        };
        match blame.stolen {
            Some(stolen) if stolen.counted => Ok(stolen),
            Some(_) => Err(WithoutHostError::NotCounted { run }),
            None => Err(WithoutHostError::Older { run }),
        }
    }

    /// What cannot be removed, as far as the record says.
    fn marker(&self) -> WithoutHost {
        let Document { trace, machine, duration_ns, series, .. } = &self.document;
        let is_measured = |cpu: u32| series.iter().any(|series| series.cpu == Some(cpu));
        let counted_ns =
            machine.as_ref().filter(|machine| !machine.cpus.is_empty()).map(|machine| {
                let own = machine.cpus.iter().filter(|used| is_measured(used.cpu));
                (own.map(|used| used.steal).sum::<f64>() * *duration_ns as f64) as u64
            });
        WithoutHost {
            judged_over_ns: trace.threshold_ns,
            passed_over: trace.passed_over,
            unmatched: trace.unmatched,
            lost_events: trace.lost_events,
            counted_ns,
            ..WithoutHost::default()
        }
    }

    /// Sums the log again, with its samples moved.
    fn sum_again(
        &mut self,
        moves: &HostMoves,
        stolen: &StolenRecord,
        marker: &mut WithoutHost,
    ) -> Result<(), WithoutHostError> {
        let count = self.document.series.len();
        let (mut counts, mut totals) = (SeriesCounts::new(count), vec![None; count]);
        let mut pass = moves.pass();
        let numbers = self.numbers();
        let read = self.lines(&numbers, |line| match line {
            LogLine::Interval(span, interval) => {
                if let Some(number) = numbers.get(span.tag.as_str()) {
                    counts.add(*number, &pass.apply(*number, &span, interval));
                }
            }
            LogLine::Totals(tag, now) => {
                let own = numbers.get(tag.as_str()).and_then(|number| totals.get_mut(*number));
                own.into_iter().for_each(|own| *own = Some(now));
            }
        });
        let damage = read.err().map(|error| error.to_string()).or_else(|| counts.refusal());
        if let Some(what) = damage {
            let run = self.document.name.clone();
            return Err(WithoutHostError::Damaged { run, what: format!("series.hlog {what}") });
        }
        let moved = pass.moved;
        for (number, (series, totals)) in self.document.series.iter_mut().zip(totals).enumerate() {
            let own = stolen.series.iter().find(|own| own.series == series.name);
            let (Some(totals), Some(own)) = (totals, own) else { continue };
            let empty = BTreeMap::new();
            let moved = moved.get(&number).unwrap_or(&empty);
            let removed = Removed::of(moved, own, series.period_ns);
            let histogram = counts.of(number);
            let totals = removed.from(totals, &histogram);
            *series = summarize(&series.head(), &histogram, &totals);
            marker.add(series.name.clone(), own, &removed);
        }
        Ok(())
    }
}

impl WithoutHost {
    fn add(&mut self, name: String, own: &StolenOf, removed: &Removed) {
        let Removed { samples, ns, missed, .. } = *removed;
        self.samples = self.samples.saturating_add(samples);
        self.removed_ns = self.removed_ns.saturating_add(ns);
        self.missed_removed = self.missed_removed.saturating_add(missed);
        self.not_moved = self.not_moved.saturating_add(own.samples.saturating_sub(samples));
        let (removed_ns, missed_removed) = (ns, missed);
        self.series.push(SeriesWithoutHost { name, samples, removed_ns, missed_removed });
    }
}

/// The value that stands for a bucket, as in the view per scheduled period.
fn middle_of(lowest_ns: i64) -> i64 {
    let index = index_of(lowest_ns);
    lowest_of(index).midpoint(highest_of(index))
}

/// What is removed from the totals of one series.
struct Removed {
    samples: u64,
    ns: u64,
    missed: u64,
    /// The smallest latency that a moved sample has now, ns.
    least_ns: i64,
}

impl Removed {
    fn of(moved: &BTreeMap<(i64, i64), u64>, own: &StolenOf, period_ns: Option<i64>) -> Self {
        let period_ns = period_ns.filter(|period_ns| *period_ns > 0).unwrap_or(i64::MAX);
        let mut removed = Self { samples: 0, ns: 0, missed: 0, least_ns: i64::MAX };
        for ((from_ns, to_ns), count) in moved {
            let (from_ns, to_ns) = (middle_of(*from_ns), middle_of(*to_ns));
            let ns = (from_ns - to_ns).max(0).unsigned_abs();
            let missed = (from_ns / period_ns - to_ns / period_ns).max(0).unsigned_abs();
            removed.samples = removed.samples.saturating_add(*count);
            removed.ns = removed.ns.saturating_add(ns.saturating_mul(*count));
            removed.missed = removed.missed.saturating_add(missed.saturating_mul(*count));
            removed.least_ns = removed.least_ns.min(to_ns);
        }
        // Where all were found, the sum is exact.
        if removed.samples == own.samples {
            removed.ns = own.ns;
        }
        removed
    }

    /// The totals of what is left, whose histogram this is.
    fn from(&self, totals: Totals, left: &Histogram<u64>) -> Totals {
        let removed_ns = i64::try_from(self.ns).unwrap_or(i64::MAX);
        // The exact maximum is known where it was not moved: else that of its bucket.
        let highest_ns = i64::try_from(left.max()).unwrap_or(i64::MAX);
        let max_ns = if totals.above > 0 { totals.max_ns } else { totals.max_ns.min(highest_ns) };
        Totals {
            missed: totals.missed.saturating_sub(self.missed),
            sum_ns: totals.sum_ns.saturating_sub(removed_ns),
            min_ns: totals.min_ns.min(self.least_ns),
            max_ns,
            ..totals
        }
    }
}

//! One block: a child `tardy run`, and what it measured.

use std::{
    io,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use super::{
    ab_plan::Trial,
    child_run::{ChildOrder, ChildRuns},
    process::ChildWaiter,
};
use crate::{
    analysis::ab::measured::MeasuredBlock,
    run::{
        Document, Run, RunDirectory, Status, counts::SeriesCounts, hlog, names,
        per_period::per_period,
    },
};

/// What the blocks print on standard error.
const LOG: &str = "blocks.log";

/// Starts blocks.
#[derive(Debug)]
pub(super) struct Blocks {
    runs: ChildRuns,
}

/// A block that was measured.
#[derive(Debug)]
pub(super) struct Block {
    /// Its record.
    pub document: Document,
    /// What is compared.
    pub measured: MeasuredBlock,
    /// How long it took with everything, ns.
    pub taken_ns: i64,
}

impl Blocks {
    /// With a log in `directory`.
    pub(super) fn new(directory: &RunDirectory) -> io::Result<Self> {
        Ok(Self { runs: ChildRuns::new(directory, LOG)? })
    }

    /// Measures one; nothing where the user ended it.
    ///
    /// # Errors
    /// It could not be measured: what it said. Or its files cannot be read.
    pub(super) fn measure(
        &self,
        order: &ChildOrder<'_>,
        watch: &ChildWaiter,
        show: (Option<Duration>, &mut dyn FnMut()),
    ) -> Result<Option<Block>> {
        let start = Instant::now();
        if !self.runs.measure(order, watch, show)? {
            return Ok(None);
        }
        let (document, measured) = read(order.directory, Some(order.id), order.words)
            .with_context(|| order.path.display().to_string())?;
        if document.status != Status::Complete {
            // Somebody else ended it. Ctrl-C comes here too where it arrived just now.
            if watch.is_quit() {
                return Ok(None);
            }
            bail!("{} was ended from outside: {}", order.name, document.status.as_str());
        }
        let taken_ns = i64::try_from(start.elapsed().as_nanos()).unwrap_or(i64::MAX);
        Ok(Some(Block { document, measured, taken_ns }))
    }
}

/// The record of a block and what is compared of it: all series of whole latencies together, those
/// with a schedule per scheduled period, so that a stall counts as often as it should; with a
/// deadline the responses of attached threads, of which those over it are missed.
///
/// # Errors
/// It is not the run that was asked for; or the file that is damaged, and how.
pub(super) fn read(
    directory: &RunDirectory,
    id: Option<&str>,
    words: &[String],
) -> Result<(Document, MeasuredBlock)> {
    measured(directory.take_run(id, words)?)
}

fn measured(mut run: Run) -> Result<(Document, MeasuredBlock)> {
    run.document.lead_by_responses();
    let all = &run.document.series;
    let mut by_series = SeriesCounts::new(all.len());
    run.intervals(|number, _, interval| {
        if all.get(number).is_some_and(|series| !series.is_part()) {
            by_series.add(number, &interval);
        }
    })
    .context(names::SERIES)?;
    if let Some(refusal) = by_series.refusal() {
        bail!("{}: {refusal}", names::SERIES);
    }
    let mut block = MeasuredBlock { counts: hlog::empty(), max_ns: 0, periods: 0, missed: 0 };
    for (number, series) in all.iter().enumerate().filter(|(_, series)| !series.is_part()) {
        let (own, max_ns) = (by_series.of(number), series.max.unwrap_or(0));
        let own = match series.period_ns {
            Some(period_ns) => per_period(&own, max_ns, period_ns),
            None => own,
        };
        block.counts.add(&own).context("too many samples")?;
        block.max_ns = block.max_ns.max(max_ns);
        if let Some((cycles, missed)) = run.document.judged(series) {
            block.missed = block.missed.saturating_add(missed);
            block.periods = block.periods.saturating_add(cycles);
        } else if let Some(missed) = series.missed {
            block.missed = block.missed.saturating_add(missed);
            block.periods = block.periods.saturating_add(series.count).saturating_add(missed);
        }
    }
    Ok((run.document, block))
}

/// What the first block of a side shows.
pub(super) fn trial(block: &Block) -> Trial {
    let document = &block.document;
    let measured_ns = i64::try_from(document.duration_ns).unwrap_or(i64::MAX).max(1);
    let samples = block.measured.counts.len() as f64;
    Trial {
        overhead_ns: block.taken_ns.saturating_sub(measured_ns).max(0),
        per_s: samples / (measured_ns as f64 / 1e9),
        has_periods: block.measured.periods > 0,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn fixture(name: &str) -> (Document, MeasuredBlock) {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1");
        measured(Run::open(&fixtures.join(name)).unwrap()).unwrap()
    }

    #[test]
    fn a_block_is_all_series_together_per_scheduled_period() {
        let (document, block) = fixture("timer");
        let periods = document.wakeups().map(|series| {
            let outside = series.early + series.above;
            series.scheduled.as_ref().unwrap().count - outside
        });
        assert!(!block.counts.is_empty());
        assert_eq!(block.counts.len(), periods.sum::<u64>());
        assert_eq!(Some(block.max_ns), document.wakeups().filter_map(|series| series.max).max());
        let missed: u64 = document.wakeups().filter_map(|series| series.missed).sum();
        let wakeups: u64 = document.wakeups().map(|series| series.count).sum();
        assert_eq!((block.missed, block.periods), (missed, wakeups + missed));
    }

    #[test]
    fn what_has_no_schedule_is_taken_as_it_is_and_misses_nothing() {
        let (document, block) = fixture("pingpong");
        let samples: u64 = document.wakeups().map(|series| series.count).sum();
        assert_eq!((block.counts.len(), block.periods), (samples, 0));
    }
}

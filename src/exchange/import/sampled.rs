//! Samples with their times become the intervals of a log and the files of samples.

use std::io;

use tardy_hot::{
    histogram::HIGHEST_NS,
    ring::Sample,
    tally::{Tally, Totals},
};

use super::imported_data::ImportedData;
use crate::run::{IntervalOf, RunWriter, counts::SeriesCounts, hlog::IntervalSpan};

/// Samples of one series that are written at once.
const BATCH: usize = 8_192;

/// Samples of one file.
const FILE_SAMPLES: u64 = 4_000_000;

/// Writes all samples of a sheet.
pub(super) fn write(
    sheet: &ImportedData,
    writer: &mut RunWriter,
    interval_ns: i64,
) -> io::Result<()> {
    let Some((first_ns, _)) = sheet.times_ns() else { return Ok(()) };
    let names = sheet.series.iter().map(|series| series.head.name.clone());
    let mut series: Vec<OpenInterval> = names.map(OpenInterval::new).collect();
    let mut written = 0;
    sheet.samples.read(|number, sample| {
        let number = number as usize;
        let Some(own) = series.get_mut(number) else { return Ok(()) };
        let t_ns = sample.t_ns.saturating_sub(first_ns);
        let at = t_ns / interval_ns.max(1);
        // One that comes late in the file goes to the interval that is open.
        if at > own.at {
            own.close(writer, interval_ns)?;
            own.at = at;
        }
        own.add(sample.latency_ns);
        own.samples.push(Sample { t_ns, ..sample });
        written += 1;
        if own.samples.len() >= BATCH {
            writer.append_samples(number, &std::mem::take(&mut own.samples))?;
        }
        if written % FILE_SAMPLES == 0 {
            writer.close_samples()?;
        }
        Ok(())
    })?;
    for (number, mut own) in series.into_iter().enumerate() {
        own.close(writer, interval_ns)?;
        writer.append_samples(number, &own.samples)?;
    }
    writer.close_samples()
}

/// The interval of a series that samples go to.
struct OpenInterval {
    name: String,
    /// How many intervals were before it.
    at: i64,
    counts: SeriesCounts,
    has_samples: bool,
    /// Since the start.
    tally: Tally,
    samples: Vec<Sample>,
}

impl OpenInterval {
    fn new(name: String) -> Self {
        Self {
            name,
            at: 0,
            counts: SeriesCounts::new(1),
            has_samples: false,
            tally: Tally::new(),
            samples: Vec::new(),
        }
    }

    fn add(&mut self, latency_ns: i64) {
        self.has_samples = true;
        self.tally.add(latency_ns);
        match latency_ns {
            ..0 => self.tally.add_early(),
            0..=HIGHEST_NS => self.counts.record(0, latency_ns, 1),
            _ => self.tally.add_above(),
        }
    }

    fn close(&mut self, writer: &mut RunWriter, interval_ns: i64) -> io::Result<()> {
        if !self.has_samples {
            return Ok(());
        }
        let length_s = interval_ns as f64 / 1e9;
        let start_s = self.at as f64 * length_s;
        let span = IntervalSpan { tag: self.name.clone(), start_s, length_s };
        let totals: Totals = self.tally.totals();
        let counts = self.counts.of(0);
        (self.counts, self.has_samples) = (SeriesCounts::new(1), false);
        writer.append_intervals(&[IntervalOf { span, counts, totals }])
    }
}

//! What a sheet does not keep in memory: single samples, and the intervals of a log. Each waits in
//! a file without a name, which goes with the process.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Seek as _, Write as _},
};

use tardy_hot::ring::Sample;

use crate::run::{
    IntervalOf,
    hlog::{self, HlogError, LogLine},
    spool,
};

/// Samples of one series that are written at once.
const BATCH: usize = 4_096;

/// The intervals of a log, as lines of one.
#[derive(Debug, Default)]
pub(super) struct IntervalSpool {
    lines: Option<BufWriter<File>>,
}

impl IntervalSpool {
    /// Whether it is empty.
    pub(super) const fn is_empty(&self) -> bool {
        self.lines.is_none()
    }

    /// Appends one.
    pub(super) fn push(&mut self, interval: &IntervalOf) -> io::Result<()> {
        let mut text = String::new();
        hlog::append(&mut text, &interval.span, &interval.counts, &interval.totals);
        opened(&mut self.lines)?.write_all(text.as_bytes())
    }

    /// Writes what waits.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.lines.as_mut().map_or(Ok(()), BufWriter::flush)
    }

    /// Hands them over, in their order, once all were written.
    pub(super) fn read(
        &self,
        mut take: impl FnMut(IntervalOf) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(lines) = &self.lines else { return Ok(()) };
        let mut failed = Ok(());
        let mut before = None;
        let read = hlog::read(BufReader::new(whole(lines)?), |line| match line {
            LogLine::Interval(span, counts) => before = Some((span, counts)),
            LogLine::Totals(_, totals) => {
                if let Some((span, counts)) = before.take().filter(|_| failed.is_ok()) {
                    failed = take(IntervalOf { span, counts, totals });
                }
            }
        });
        match read {
            Ok(()) => failed,
            Err(HlogError::Io(error)) => Err(error),
            Err(error) => Err(io::Error::other(error.to_string())),
        }
    }
}

/// Samples with their times.
#[derive(Debug, Default)]
pub(super) struct SampleSpool {
    frames: Option<BufWriter<File>>,
    series: usize,
    batch: Vec<Sample>,
    times_ns: Option<(i64, i64)>,
}

impl SampleSpool {
    /// The times of the first and of the last.
    pub(super) const fn times_ns(&self) -> Option<(i64, i64)> {
        self.times_ns
    }

    /// Appends one.
    pub(super) fn push(&mut self, series: usize, t_ns: i64, latency_ns: i64) -> io::Result<()> {
        if self.series != series || self.batch.len() == BATCH {
            self.write_batch()?;
            self.series = series;
        }
        self.batch.push(Sample { t_ns, latency_ns });
        let (first, last) = self.times_ns.unwrap_or((t_ns, t_ns));
        self.times_ns = Some((first.min(t_ns), last.max(t_ns)));
        Ok(())
    }

    /// Writes what waits of a series.
    fn write_batch(&mut self) -> io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let mut frames = Vec::new();
        let series = u32::try_from(self.series).unwrap_or(u32::MAX);
        spool::append(&mut frames, series, &self.batch);
        self.batch.clear();
        if self.frames.is_none() {
            opened(&mut self.frames)?.write_all(spool::MAGIC)?;
        }
        opened(&mut self.frames)?.write_all(&frames)
    }

    /// Writes what waits.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.write_batch()?;
        self.frames.as_mut().map_or(Ok(()), BufWriter::flush)
    }

    /// Hands them over, in their order, once all were written.
    pub(super) fn read(&self, take: impl FnMut(u32, Sample) -> io::Result<()>) -> io::Result<()> {
        let Some(frames) = &self.frames else { return Ok(()) };
        spool::read(BufReader::new(whole(frames)?), take).map(drop)
    }
}

fn opened(file: &mut Option<BufWriter<File>>) -> io::Result<&mut BufWriter<File>> {
    if file.is_none() {
        *file = Some(BufWriter::with_capacity(256 << 10, tempfile::tempfile()?));
    }
    file.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The file from its begin.
fn whole(written: &BufWriter<File>) -> io::Result<File> {
    let mut file = written.get_ref().try_clone()?;
    file.rewind()?;
    Ok(file)
}

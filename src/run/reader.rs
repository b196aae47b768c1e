//! The reader's side of a run directory. Never writes; takes what a crash left.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

use hdrhistogram::Histogram;
use serde::{Deserialize, de::DeserializeOwned};
use tardy_hot::{ring::Sample, tally::Totals};
use thiserror::Error;

use super::{
    caveat::{self, Caveat},
    caveat_kind::CaveatKind,
    document::{Document, SCHEMA_VERSION, Status},
    hlog::{self, HlogError, IntervalSpan, LogLine},
    lock,
    peaks::Blame,
    peaks_file::{self, Damage, Peaks},
    samples,
    summary::summarize,
    writer::names,
};

/// `run.json` is refused above this size.
const LARGEST_RECORD: u64 = 64 << 20;

/// Peaks that are read of a run that does not say how many it was to keep.
const DEFAULT_PEAKS: usize = 100;

/// Why a run could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// No run there.
    #[error("{} is no run directory: {source}", .path.display())]
    NoRun {
        /// The directory.
        path: PathBuf,
        /// What the system said of its `run.json`.
        source: io::Error,
    },
    /// Not what a `run.json` holds.
    #[error("{} is damaged: {what}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line, column and field.
        what: String,
    },
    /// Written by a newer tardy.
    #[error(
        "{} has schema version {found}, and this tardy reads up to {SCHEMA_VERSION}; \
         open it with the tardy that made it, or a newer one", .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

/// A run, open for reading.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its directory.
    pub path: PathBuf,
    /// Its record; of a run that did not end in order, what could be recovered.
    pub document: Document,
}

impl Run {
    /// Opens the run in `path`.
    ///
    /// # Errors
    /// See [`OpenError`]. A run that is damaged elsewhere opens, with a caveat.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let (mut document, mut alive) = read_record::<Document>(path)?;
        if document.status == Status::Running && !alive {
            // The maker may have put its last record in place since that one was opened.
            (document, alive) = read_record(path)?;
        }
        let mut run = Self { path: path.into(), document };
        if run.document.status != Status::Running {
            return Ok(run);
        }
        run.recover();
        if !alive {
            run.document.status = Status::Crashed;
            run.add_caveat(CaveatKind::Crashed.into());
        }
        Ok(run)
    }

    /// Hands over every interval of every series with the number of its series, oldest first; also
    /// the one that was in progress where the maker did not end in order.
    ///
    /// # Errors
    /// At the first damaged line of `series.hlog`; what came before was handed over.
    pub fn intervals(
        &self,
        mut take: impl FnMut(usize, IntervalSpan, Histogram<u64>),
    ) -> Result<(), HlogError> {
        self.lines(|line| {
            if let LogLine::Interval(span, counts) = line
                && let Some(number) = self.number_of(&span.tag)
            {
                take(number, span, counts);
            }
        })
    }

    /// Hands over every sample with the number of its series, oldest file first.
    ///
    /// # Errors
    /// The file that is damaged, and how; the samples of the others were handed over.
    pub fn samples(&self, mut take: impl FnMut(usize, Sample)) -> Result<(), String> {
        let series: Vec<String> =
            self.document.series.iter().map(|series| series.name.clone()).collect();
        let mut damage = Vec::new();
        for file in samples::files(&self.path.join(names::SAMPLES)) {
            if let Err(error) = samples::read(&file, &series, &mut take) {
                damage.push(format!("{} is damaged: {error}", file.display()));
            }
        }
        if damage.is_empty() { Ok(()) } else { Err(damage.join("; ")) }
    }

    /// Whether single samples were kept.
    #[must_use]
    pub fn has_samples(&self) -> bool {
        !samples::files(&self.path.join(names::SAMPLES)).is_empty()
    }

    /// The late wake-ups that were kept whole.
    #[must_use]
    pub fn peaks(&self) -> Peaks {
        let ended = !matches!(self.document.status, Status::Running | Status::Crashed);
        peaks_file::read_peaks(&self.path, self.most_peaks(), ended)
    }

    /// What all late wake-ups were blamed on; nothing where the run was not traced.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn blame(&self) -> Result<Option<Blame>, Damage> {
        peaks_file::read_blame(&self.path)
    }

    /// How many peaks were asked for; all where it was by a threshold.
    fn most_peaks(&self) -> usize {
        let parameters = &self.document.parameters;
        match (parameters.peak_over_ns, parameters.peaks) {
            (Some(_), _) => usize::MAX,
            (None, Some(most)) => usize::try_from(most).unwrap_or(usize::MAX),
            (None, None) => DEFAULT_PEAKS,
        }
    }

    /// The record, with what reading the files beside it gave reason to doubt.
    #[must_use]
    pub fn record_with(&self, caveats: impl IntoIterator<Item = CaveatKind>) -> Document {
        let mut run = self.clone();
        caveats.into_iter().for_each(|caveat| run.add_caveat(caveat.into()));
        run.document
    }

    /// Adds a caveat to the record, and updates the verdict.
    pub fn add_caveat(&mut self, caveat: Caveat) {
        self.document.caveats.push(caveat);
        caveat::sort(&mut self.document.caveats);
        self.document.validity = caveat::verdict(&self.document.caveats);
    }

    fn number_of(&self, tag: &str) -> Option<usize> {
        self.document.series.iter().position(|series| series.name == tag)
    }

    /// The lines of `series.hlog`, then those of `live.hlog` that are younger.
    fn lines(&self, mut take: impl FnMut(LogLine)) -> Result<(), HlogError> {
        let mut end_s = vec![0.0_f64; self.document.series.len()];
        let file = File::open(self.path.join(names::SERIES))?;
        hlog::read(BufReader::new(file), |line| {
            if let LogLine::Interval(span, _) = &line
                && let Some(end) = self.number_of(&span.tag).and_then(|at| end_s.get_mut(at))
            {
                *end = span.start_s + span.length_s;
            }
            take(line);
        })?;
        let Ok(live) = File::open(self.path.join(names::LIVE)) else {
            return Ok(());
        };
        let mut younger = vec![false; end_s.len()];
        hlog::read(BufReader::new(live), |line| {
            let at = match &line {
                LogLine::Interval(span, _) => {
                    let at = self.number_of(&span.tag);
                    if let Some(at) = at
                        && let (Some(younger), Some(end)) = (younger.get_mut(at), end_s.get(at))
                    {
                        // Times in the log are rounded to 1 ms.
                        *younger = span.start_s > end - 0.002;
                    }
                    at
                }
                LogLine::Totals(tag, _) => self.number_of(tag),
            };
            if at.and_then(|at| younger.get(at)).copied().unwrap_or(false) {
                take(line);
            }
        })
    }

    /// Fills in from the log what `run.json` does not say of a run that has not ended.
    fn recover(&mut self) {
        let series = self.document.series.len();
        let mut counts = vec![hlog::empty(); series];
        let mut totals = vec![Totals::NONE; series];
        let mut end_s = 0.0_f64;
        let damage = self.lines(|line| match line {
            LogLine::Interval(span, interval) => {
                end_s = end_s.max(span.start_s + span.length_s);
                if let Some(counts) = self.number_of(&span.tag).and_then(|at| counts.get_mut(at)) {
                    // Bounds are equal, so that nothing can be lost.
                    let _ = counts.add(&interval);
                }
            }
            LogLine::Totals(tag, now) => {
                if let Some(totals) = self.number_of(&tag).and_then(|at| totals.get_mut(at)) {
                    *totals = now;
                }
            }
        });
        for (series, (counts, totals)) in
            self.document.series.iter_mut().zip(counts.iter().zip(&mut totals))
        {
            // Totals may run one sample ahead of the counts they stand beside.
            let outside = totals.early.saturating_add(totals.above);
            totals.count = counts.len().saturating_add(outside);
            *series = summarize(&series.head(), counts, totals);
        }
        self.document.duration_ns = (end_s * 1e9) as u64;
        if let Err(error) = damage {
            self.add_caveat(CaveatKind::SeriesDamaged { what: error.to_string() }.into());
        }
    }
}

/// What `run.json` is read as: all of it, or the part that is needed.
pub(super) trait Record: DeserializeOwned {
    /// The version that it was written in.
    fn schema_version(&self) -> u32;

    /// Reads one of an older version.
    fn from_older(text: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(text)
    }
}

impl Record for Document {
    fn schema_version(&self) -> u32 {
        self.schema_version
    }

    fn from_older(text: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(text).and_then(Self::from_json)
    }
}

/// Reads the `run.json` of the run in `path`, and whether its maker is alive.
pub(super) fn read_record<T: Record>(path: &Path) -> Result<(T, bool), OpenError> {
    let no_run = |source| OpenError::NoRun { path: path.into(), source };
    let record = path.join(names::RUN);
    let mut file = File::open(&record).map_err(no_run)?;
    let mut text = Vec::new();
    (&mut file).take(LARGEST_RECORD).read_to_end(&mut text).map_err(no_run)?;
    let read = serde_json::from_slice::<T>(&text);
    // A newer one may have fields of other types: its version is the better answer then.
    let version = match &read {
        Ok(read) => Ok(read.schema_version()),
        Err(_) => serde_json::from_slice(&text).map(|Version { schema_version }| schema_version),
    };
    let damaged = |error: serde_json::Error| OpenError::Damaged {
        path: record.clone(),
        what: error.to_string(),
    };
    let found = version.map_err(damaged)?;
    if found > SCHEMA_VERSION {
        return Err(OpenError::Newer { path: record, found });
    }
    let read = if found < SCHEMA_VERSION { T::from_older(&text) } else { read };
    let read = read.map_err(damaged)?;
    Ok((read, lock::is_held(&file).unwrap_or(false)))
}

#[derive(Deserialize)]
struct Version {
    schema_version: u32,
}

//! The maker's side of a run directory: append-only, whole up to the last second however it ends.
//!
//! A full disk loses nothing that memory still holds: an append that fails is cut off again, and
//! whoever appends tries once more with the next interval.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use hdrhistogram::Histogram;
use tardy_hot::{ring::Sample, tally::Totals};
use thiserror::Error;

use super::{
    document::Document,
    hlog::{self, Span},
    lock,
    peaks::{Blame, Peak},
    samples, spool,
};
use crate::draft::{Draft, replace};

/// Space held back on the disk, so that a full one still takes the last `run.json`.
const RESERVE_BYTES: usize = 512 << 10;

/// Names of the files in a run directory.
pub mod names {
    /// The record.
    pub const RUN: &str = "run.json";
    /// The histogram log.
    pub const SERIES: &str = "series.hlog";
    /// The interval in progress.
    pub const LIVE: &str = "live.hlog";
    /// The directory of samples.
    pub const SAMPLES: &str = "samples";
    /// What the machine did.
    pub const MACHINE: &str = "machine.csv";
    /// What the loads did.
    pub const LOADS: &str = "loads.csv";
    /// Interrupts per source and CPU.
    pub const INTERRUPTS: &str = "interrupts.csv";
    /// The worst wake-ups, whole.
    pub const PEAKS: &str = "peaks.jsonl";
    /// What all late wake-ups were blamed on.
    pub const BLAME: &str = "blame.json";
    /// What the loads printed.
    pub const LOAD_LOG: &str = "load.log";
    /// Held back, removed at the end.
    pub(super) const RESERVE: &str = ".reserve";
}

/// Why a run directory could not be made.
#[derive(Debug, Error)]
pub enum MakeError {
    /// Something is there already.
    #[error(
        "{} exists and is not an empty directory; nothing was overwritten. Choose another place \
         or name",
        .0.display()
    )]
    Exists(PathBuf),
    /// It cannot be written.
    #[error(
        "{} cannot be written: {source}. Choose another place with -o or --store",
        .path.display()
    )]
    Unwritable {
        /// What could not be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// One interval of one series, ready to be appended.
#[derive(Debug)]
pub struct IntervalOf {
    /// Series, start and length.
    pub span: Span,
    /// Counts within the interval.
    pub counts: Histogram<u64>,
    /// Totals since the start.
    pub totals: Totals,
}

/// A run directory being written.
#[derive(Debug)]
pub struct Maker {
    path: PathBuf,
    /// Open as long as the maker lives: it holds the lock.
    record: File,
    hlog: Option<Appended>,
    head: String,
    series: Vec<String>,
    samples: Option<SampleFiles>,
}

impl Maker {
    /// Makes the directory (and those above it), and writes the first `run.json`.
    ///
    /// # Errors
    /// Something is there already, or it cannot be written; then nothing is left behind.
    pub fn create(path: &Path, document: &Document, keep_samples: bool) -> Result<Self, MakeError> {
        let unwritable = |source| MakeError::Unwritable { path: path.into(), source };
        if fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) || path.is_file() {
            return Err(MakeError::Exists(path.into()));
        }
        let existed = path.exists();
        fs::create_dir_all(path).map_err(unwritable)?;
        Self::fill(path, document, keep_samples).map_err(|source| {
            discard(path, existed);
            unwritable(source)
        })
    }

    fn fill(path: &Path, document: &Document, keep_samples: bool) -> io::Result<Self> {
        fs::write(path.join(names::RESERVE), vec![b' '; RESERVE_BYTES])?;
        let record = write_locked(path, document)?;
        let samples = if keep_samples {
            Some(SampleFiles::create(&path.join(names::SAMPLES))?)
        } else {
            None
        };
        let series = document.series.iter().map(|series| series.name.clone()).collect();
        Ok(Self { path: path.into(), record, hlog: None, head: String::new(), series, samples })
    }

    /// Writes the record and begins the log, now that the start is known.
    ///
    /// # Errors
    /// What the disk says.
    pub fn begin(&mut self, document: &Document) -> io::Result<()> {
        let start = document.started_at.parse::<jiff::Timestamp>().unwrap_or_default();
        self.head = hlog::header(start.as_millisecond() as f64 / 1e3, &document.started_at);
        let mut log = Appended::create(&self.path.join(names::SERIES))?;
        log.append(self.head.as_bytes())?;
        self.hlog = Some(log);
        self.update(document)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one interval of every series given: all of them or none.
    ///
    /// # Errors
    /// What the disk says; then the log is as before, and the same counts can be appended later.
    pub fn append_intervals(&mut self, intervals: &[IntervalOf]) -> io::Result<()> {
        let mut text = String::new();
        for IntervalOf { span, counts, totals } in intervals {
            hlog::append(&mut text, span, counts, totals);
        }
        match &mut self.hlog {
            Some(log) => log.append(text.as_bytes()),
            None => Err(io::Error::other("the log has not begun")),
        }
    }

    /// Replaces the log of the interval in progress.
    ///
    /// # Errors
    /// What the disk says; then the old one is still there.
    pub fn replace_live(&mut self, intervals: &[IntervalOf]) -> io::Result<()> {
        let mut text = self.head.clone();
        for IntervalOf { span, counts, totals } in intervals {
            hlog::append(&mut text, span, counts, totals);
        }
        replace(&self.path.join(names::LIVE), text.as_bytes())
    }

    /// Appends samples of series number `series` to the open file of samples.
    ///
    /// # Errors
    /// What the disk says; then none of them were kept.
    pub fn append_samples(&mut self, series: usize, samples: &[Sample]) -> io::Result<()> {
        let Some(files) = &mut self.samples else {
            return Ok(());
        };
        files.append(u32::try_from(series).unwrap_or(u32::MAX), samples)
    }

    /// Closes the open file of samples, if it holds any, and begins another.
    ///
    /// # Errors
    /// What the disk says; then the spool stays, and readers read that.
    pub fn close_samples(&mut self) -> io::Result<()> {
        match &mut self.samples {
            Some(files) => files.close(&self.series),
            None => Ok(()),
        }
    }

    /// Appends bytes to another file of the directory.
    ///
    /// # Errors
    /// What the disk says.
    pub fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        OpenOptions::new().create(true).append(true).open(self.path.join(name))?.write_all(bytes)
    }

    /// Replaces `run.json`.
    ///
    /// # Errors
    /// What the disk says; then the old one is still there.
    pub fn update(&mut self, document: &Document) -> io::Result<()> {
        self.record = write_locked(&self.path, document)?;
        Ok(())
    }

    /// Writes the last `run.json` and lets go.
    ///
    /// # Errors
    /// What the disk says; then the run reads as crashed, with what was appended.
    pub fn finish(mut self, document: &Document) -> io::Result<()> {
        let _ = fs::remove_file(self.path.join(names::RESERVE));
        self.update(document)?;
        let _ = fs::remove_file(self.path.join(names::LIVE));
        Ok(())
    }

    /// Frees the space held back; for the last appends on a full disk.
    pub fn release_reserve(&self) {
        let _ = fs::remove_file(self.path.join(names::RESERVE));
    }
}

/// Takes away a run directory in which nothing was measured; the directory itself stays where it
/// `existed` before (empty, or [`Maker::create`] would have refused it).
pub fn discard(path: &Path, existed: bool) {
    // What cannot be removed is in nobody's way: the next maker says that something is there.
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let _ = match entry.file_type() {
            Ok(kind) if kind.is_dir() => fs::remove_dir_all(entry.path()),
            _ => fs::remove_file(entry.path()),
        };
    }
    if !existed {
        let _ = fs::remove_dir(path);
    }
}

/// Writes `run.json` as a draft that is locked before it takes the old one's place, so that there
/// is never an unlocked one.
fn write_locked(path: &Path, document: &Document) -> io::Result<File> {
    let mut draft = Draft::beside(&path.join(names::RUN))?;
    let mut text = serde_json::to_vec_pretty(document)?;
    text.push(b'\n');
    // A file system without locks still takes a run; it only cannot tell running from crashed.
    let _ = lock::take(draft.file());
    draft.file().write_all(&text)?;
    draft.place()
}

/// A file that only ever ends where an append ended.
#[derive(Debug)]
struct Appended {
    file: File,
    length: u64,
}

impl Appended {
    fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: OpenOptions::new().create_new(true).append(true).open(path)?, length: 0 })
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes);
        match &written {
            Ok(()) => self.length += bytes.len() as u64,
            Err(_) => drop(self.file.set_len(self.length)),
        }
        written
    }
}

/// `peaks.jsonl` and `blame.json` being written, by another thread than the rest.
#[derive(Debug)]
pub struct BlameFiles {
    peaks: Appended,
    blame: PathBuf,
}

impl BlameFiles {
    /// Makes both, empty, in the run directory at `path`.
    ///
    /// # Errors
    /// What the disk says.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut files = Self {
            peaks: Appended::create(&path.join(names::PEAKS))?,
            blame: path.join(names::BLAME),
        };
        files.replace_blame(&Blame::default())?;
        Ok(files)
    }

    /// Appends peaks, a line each: all of them or none.
    ///
    /// # Errors
    /// What the disk says; then the file is as before, and the same peaks can be appended later.
    pub fn append_peaks(&mut self, peaks: &[Peak]) -> io::Result<()> {
        let mut lines = Vec::new();
        for peak in peaks {
            serde_json::to_writer(&mut lines, peak)?;
            lines.push(b'\n');
        }
        self.peaks.append(&lines)
    }

    /// Replaces the sums.
    ///
    /// # Errors
    /// What the disk says; then the old ones are still there.
    pub fn replace_blame(&mut self, blame: &Blame) -> io::Result<()> {
        let mut text = serde_json::to_vec(blame)?;
        text.push(b'\n');
        replace(&self.blame, &text)
    }
}

/// `samples/`: the open spool and its number.
#[derive(Debug)]
struct SampleFiles {
    directory: PathBuf,
    number: u32,
    open: Option<Appended>,
}

impl SampleFiles {
    fn create(directory: &Path) -> io::Result<Self> {
        fs::create_dir(directory)?;
        Ok(Self { directory: directory.into(), number: 1, open: None })
    }

    fn spool_path(&self) -> PathBuf {
        self.directory.join(format!("{:06}.spool", self.number))
    }

    fn append(&mut self, series: u32, samples: &[Sample]) -> io::Result<()> {
        if samples.is_empty() {
            return Ok(());
        }
        if self.open.is_none() {
            let mut open = Appended::create(&self.spool_path())?;
            open.append(spool::MAGIC)?;
            self.open = Some(open);
        }
        let mut frames = Vec::with_capacity(samples.len() * 16 + 64);
        spool::append(&mut frames, series, samples);
        self.open.as_mut().map_or(Ok(()), |open| open.append(&frames))
    }

    fn close(&mut self, series: &[String]) -> io::Result<()> {
        if self.open.take().is_none() {
            return Ok(());
        }
        let spool = self.spool_path();
        // Whatever comes of it, the next samples go to a file of their own.
        self.number += 1;
        let mut lists = vec![Vec::new(); series.len()];
        samples::read(&spool, series, |number, sample| {
            if let Some(list) = lists.get_mut(number) {
                list.push(sample);
            }
        })
        .map_err(io::Error::other)?;
        samples::write(&spool.with_extension("parquet"), series, &lists)
            .map_err(io::Error::other)?;
        fs::remove_file(spool)
    }
}

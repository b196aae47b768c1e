//! Closes the samples of a run whose maker went away: what stands in an open file goes into a
//! closed one, as an orderly end would have done. On request only; readers never write.
//!
//! All is done relative to the run directory, which is held open, and through no link. After each
//! step the disk holds the open file or the closed one, so that a repair may be killed and begun
//! again. Of an open file that cannot be read to its end nothing is thrown away: it gets another
//! name.

use std::{
    ffi::{OsStr, OsString},
    io::{self, BufReader, ErrorKind},
    path::{Path, PathBuf},
};

use rustix::{fs::FileType, io::Errno};
use serde::Serialize;
use thiserror::Error;

use super::{
    directory::{RunDirectory, asked},
    document::{Document, Status},
    lock,
    reader::Run,
    samples::{self, Packed, SampleReader},
    writer::names,
};

/// Why a run was not repaired.
#[derive(Debug, Error)]
pub enum RepairError {
    /// Its maker is alive.
    #[error(
        "{} is still being measured, and closes its files itself: wait for its end, or end it \
         (Ctrl-C, SIGTERM)", .0.display()
    )]
    Running(PathBuf),
    /// Nobody knows whether its maker is alive.
    #[error(
        "whether {} is still being measured is not known: {source}. Copy it to a file system with \
         locks, and repair the copy", .path.display()
    )]
    NoLock {
        /// The run.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is another user's, and root would write.
    #[error(
        "{} belongs to user {uid}, who could replace what root writes there; nothing was written. \
         Repair it as that user, or make it root's own (chown -R root)", .path.display()
    )]
    OtherUser {
        /// The run.
        path: PathBuf,
        /// The number of its owner.
        uid: u32,
    },
    /// A link, or a file.
    #[error("{} is a link or no directory; name the run directory itself", .0.display())]
    NoDirectory(PathBuf),
    /// Its record cannot be read.
    #[error("{what}")]
    Unread {
        /// Which file, and what is wrong with it.
        what: String,
    },
    /// The system refused something.
    #[error("{} is not repaired: {source}; no sample was lost by that", .path.display())]
    Refused {
        /// What could not be opened, read or written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What came of the samples of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunRepair {
    /// How far the run came; a repair does not change it.
    pub status: Status,
    /// The files that were open.
    pub spools: Vec<SpoolRepair>,
    /// Samples in the closed files.
    pub samples: u64,
    /// What the histograms count of the series that have samples.
    pub counted: u64,
    /// Of those, how many are in no closed file.
    pub missing: u64,
    /// Closed files that could not be read to their end, and why.
    pub unread: Vec<String>,
}

/// What came of one open file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpoolRepair {
    /// Its name in the run directory: `samples/000003.spool`.
    pub spool: String,
    /// The closed file that has its samples; `None` if it has none.
    pub closed: Option<String>,
    /// Whether that was there already, and whole.
    pub was_closed: bool,
    /// Samples that were read of it.
    pub samples: u64,
    /// When the last of them was taken, ns from the start of the run.
    pub until_ns: Option<i64>,
    /// Bytes behind them that could not be read.
    pub unread_bytes: u64,
    /// Samples of series that the run does not have, which no closed file has.
    pub strangers: u64,
    /// The name under which it is kept, where it could not be read to its end; `None` if it is
    /// gone.
    pub kept_as: Option<String>,
}

/// Closes what is open of the samples of the run in `path`.
///
/// # Errors
/// See [`RepairError`]. A run without an open file is not an error.
pub fn repair(path: &Path) -> Result<RunRepair, RepairError> {
    let refused = |source| RepairError::Refused { path: path.into(), source };
    let directory = opened(path)?;
    let document = stopped(path, &directory)?.document;
    let mut done = RunRepair {
        status: document.status,
        spools: Vec::new(),
        samples: 0,
        counted: 0,
        missing: 0,
        unread: Vec::new(),
    };
    let samples = match directory.entered(OsStr::new(names::SAMPLES)) {
        Ok(samples) => samples,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(done),
        Err(source) => {
            return Err(RepairError::Refused { path: path.join(names::SAMPLES), source });
        }
    };
    let work = Closing::new(&samples, &document);
    for name in files(&samples).map_err(refused)? {
        let Some(number) = name.strip_suffix(".spool").filter(|number| is_number(number)) else {
            continue;
        };
        let closed = work.close(number).map_err(|source| RepairError::Refused {
            path: path.join(names::SAMPLES).join(&name),
            source,
        })?;
        done.spools.extend(closed);
    }
    work.count(&mut done).map_err(refused)?;
    Ok(done)
}

/// The names of the regular files in a directory, sorted; those that are not text are left out.
fn files(directory: &RunDirectory) -> io::Result<Vec<String>> {
    let regular = |(name, kind): (OsString, FileType)| {
        (kind == FileType::RegularFile).then(|| name.into_string().ok()).flatten()
    };
    let mut names: Vec<String> = directory.listed()?.into_iter().filter_map(regular).collect();
    names.sort();
    Ok(names)
}

/// As tardy numbers its files.
fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

/// The run directory, which root writes only where it is root's own.
fn opened(path: &Path) -> Result<RunDirectory, RepairError> {
    let refused = |source| RepairError::Refused { path: path.into(), source };
    let directory = RunDirectory::open(path).map_err(|error| {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOTDIR | Errno::LOOP) => RepairError::NoDirectory(path.into()),
            _ => refused(error),
        }
    })?;
    match directory.other_owner().map_err(refused)? {
        Some(uid) => Err(RepairError::OtherUser { path: path.into(), uid }),
        None => Ok(directory),
    }
}

/// The run, if its maker is gone: one that is alive would lose what is taken from it.
fn stopped(path: &Path, directory: &RunDirectory) -> Result<Run, RepairError> {
    let refused = |source| RepairError::Refused { path: path.into(), source };
    let record = directory.read(names::RUN).map_err(refused)?;
    let is_held = lock::is_held(&record)
        .map_err(|source| RepairError::NoLock { path: path.into(), source })?;
    let held_open = directory.path();
    let run = Run::open(&held_open).map_err(|error| {
        // By the name that the user knows.
        let shown = |path: &Path| path.display().to_string();
        RepairError::Unread { what: error.to_string().replace(&shown(&held_open), &shown(path)) }
    })?;
    if is_held || run.document.status == Status::Running {
        return Err(RepairError::Running(path.into()));
    }
    Ok(run)
}

/// What closing the files of one run needs.
struct Closing<'a> {
    samples: &'a RunDirectory,
    document: &'a Document,
    series: Vec<String>,
    /// What the record counts in all.
    counted: u64,
}

impl<'a> Closing<'a> {
    fn new(samples: &'a RunDirectory, document: &'a Document) -> Self {
        let series = document.series.iter().map(|series| series.name.clone()).collect();
        let counts = document.wakeups().map(|series| series.count);
        Self { samples, document, series, counted: counts.fold(0, u64::saturating_add) }
    }

    /// Closes the spool of this number; nothing where somebody else has just done so.
    fn close(&self, number: &str) -> io::Result<Option<SpoolRepair>> {
        let (open, closed) = (format!("{number}.spool"), format!("{number}.parquet"));
        let file = match self.samples.read(&open) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let length = file.metadata()?.len();
        let mut draft = self.samples.draft(&closed)?;
        let most = samples::most(self.counted);
        let packed = samples::pack(BufReader::new(file), &self.series, most, draft.file())?;
        let was_closed = packed.samples > 0 && self.is_closed(&closed, packed.samples)?;
        if packed.samples > 0 && !was_closed {
            asked(rustix::fs::fsync(&*draft.file()))?;
            draft.place()?;
            self.samples.sync_names()?;
        }
        let unread_bytes = length.saturating_sub(packed.whole_bytes);
        let kept_as = self.put_away(number, &packed, unread_bytes)?;
        let start_ns = self.document.start_monotonic_ns;
        Ok(Some(SpoolRepair {
            spool: below(&open),
            closed: (packed.samples > 0).then(|| below(&closed)),
            was_closed,
            samples: packed.samples,
            until_ns: packed.last_ns.map(|last_ns| last_ns.saturating_sub(start_ns)),
            unread_bytes,
            strangers: packed.strangers,
            kept_as: kept_as.as_deref().map(below),
        }))
    }

    /// Whether a file of this name holds `wanted` samples already: its maker may have been killed
    /// before it removed the spool. A power cut may have left a file that holds nothing.
    ///
    /// # Errors
    /// It is damaged, and has more than the spool all the same.
    fn is_closed(&self, closed: &str, wanted: u64) -> io::Result<bool> {
        let Ok(file) = self.samples.read(closed) else { return Ok(false) };
        let (mut found, mut reader) = (0_u64, SampleReader::new(&self.series, self.counted));
        let read = reader.read_closed(&file, |_, _| found += 1);
        match (read, found >= wanted) {
            // Its maker did not wait for the disk.
            (Ok(()), true) => asked(rustix::fs::fsync(&file)).map(|()| true),
            (Ok(()), false) => Ok(false),
            (Err(_), _) if found <= wanted => Ok(false),
            (Err(damage), _) => Err(io::Error::new(
                damage.kind(),
                format!("{} beside it is damaged, and has more samples: {damage}", below(closed)),
            )),
        }
    }

    /// Removes a spool that was read to its end. Another one gets another name, unless nothing can
    /// be read of it.
    fn put_away(&self, number: &str, packed: &Packed, unread: u64) -> io::Result<Option<String>> {
        let open = format!("{number}.spool");
        let kept = match (unread > 0 || packed.strangers > 0, packed.samples) {
            (true, 0) => return Ok(Some(open)),
            (true, _) => Some(format!(".{number}.damaged")),
            (false, _) => None,
        };
        let away = match &kept {
            Some(kept) => self.samples.rename(&open, kept),
            None => self.samples.remove(&open),
        };
        match away {
            // Another repair was faster.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            away => away?,
        }
        self.samples.sync_names()?;
        Ok(kept)
    }

    /// Counts what the closed files hold, beside what the histograms count. Not every series keeps
    /// single samples, so that those without any are left out.
    fn count(&self, done: &mut RunRepair) -> io::Result<()> {
        let mut found = vec![0_u64; self.series.len()];
        let mut reader = SampleReader::new(&self.series, self.counted);
        for name in files(self.samples)? {
            if !name.ends_with(".parquet") {
                continue;
            }
            let file = self.samples.read(&name);
            let read = file.and_then(|file| {
                reader.read_names(&file, |number| {
                    if let Some(found) = found.get_mut(number) {
                        *found += 1;
                    }
                })
            });
            done.unread.extend(read.err().map(|error| format!("{}: {error}", below(&name))));
            if reader.is_full() {
                break;
            }
        }
        for (series, found) in self.document.series.iter().zip(found) {
            if found > 0 {
                done.samples = done.samples.saturating_add(found);
                done.counted = done.counted.saturating_add(series.count);
                let missing = series.count.saturating_sub(found);
                done.missing = done.missing.saturating_add(missing);
            }
        }
        Ok(())
    }
}

/// The name of a file of samples in the run directory.
fn below(name: &str) -> String {
    format!("{}/{name}", names::SAMPLES)
}

#[cfg(test)]
mod tests;

//! A run while it is in progress, read from its directory: each look reads what was added since the
//! last one, and nothing twice.

mod causes;
mod minute;
mod series;
mod sparse;
mod tail;
mod worst;

use std::{
    collections::HashMap,
    fs::File,
    io::ErrorKind,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

pub use causes::{RecentCause, RecentCauses};
pub use minute::{LastMinute, SECONDS};
pub use series::FollowedSeries;
pub use worst::{KeptPeak, MainPart};

use super::{
    document::{Document, Status},
    files,
    live_state::LiveState,
    lock,
    probes::ProbeRecord,
    record_file::{OpenError, RecordFile, read_record},
    tracks::LoadRow,
    writer::names,
};
use crate::limits::follow::{LARGEST_STATE, MOST_LOADS};
use causes::BlameLog;
use series::SeriesLog;
use tail::Tail;
use worst::PeakLog;

/// A run that is followed.
#[derive(Debug)]
pub struct RunFollower {
    directory: PathBuf,
    document: Document,
    /// Of the record that was read, what tells it from another.
    record: (u64, u64),
    log: SeriesLog,
    peaks: PeakLog,
    blame: BlameLog,
    loads: Tail,
    /// Of each load by its place, when it was last counted, s, and its operations per second.
    rates: HashMap<usize, (f64, f64)>,
    state: Option<LiveState>,
    /// How much of what came before is read, from 0 to 1.
    read: f64,
    damage: Vec<String>,
    /// Says to the maker that somebody looks, as long as it is open.
    watch: Option<File>,
}

impl RunFollower {
    /// Begins to follow the run in `directory`, whatever its status.
    ///
    /// # Errors
    /// It is not a run, or its record is damaged.
    pub fn open(directory: &Path) -> Result<Self, OpenError> {
        let record = record_of(directory);
        let document = read(directory)?;
        let finds = matches!(document.probe, ProbeRecord::Attach(_));
        Ok(Self {
            log: SeriesLog::new(directory, &document, finds),
            peaks: PeakLog::new(directory),
            blame: BlameLog::default(),
            loads: Tail::new(directory.join(names::LOADS)),
            rates: HashMap::new(),
            state: None,
            read: 0.0,
            damage: Vec::new(),
            watch: None,
            directory: directory.into(),
            document,
            record,
        })
    }

    /// Reads what is new.
    pub fn look(&mut self) {
        self.watch();
        self.look_at_record();
        self.damage.clear();
        self.read = self.log.look();
        self.peaks.look();
        self.damage.extend(self.log.damage.clone());
        self.damage.extend(self.blame.look(&self.directory));
        self.look_at_loads();
        match read_state(&self.directory) {
            Ok(state) => self.state = state,
            Err(what) => self.damage.push(what),
        }
        if self.peaks.damaged > 0 {
            let (file, lines) = (names::PEAKS, self.peaks.damaged);
            self.damage.push(format!("{file}: {lines} of its lines cannot be read"));
        }
    }

    /// Says that somebody looks, once there is a log.
    fn watch(&mut self) {
        if self.watch.is_none() && self.document.status == Status::Running {
            self.watch = files::open(&self.directory.join(names::SERIES)).ok();
            if let Some(log) = &self.watch {
                // Without locks the maker writes as often as it does for nobody.
                let _ = lock::watch(log);
            }
        }
    }

    /// The record is replaced when the run begins and when it ends; its lock goes with its maker.
    fn look_at_record(&mut self) {
        let status = self.document.status;
        let now = record_of(&self.directory);
        // Another record in place of one that had crashed: where locks do not tell, it had not.
        if !matches!(status, Status::Running | Status::Crashed)
            || (status == Status::Crashed && now == self.record)
        {
            return;
        }
        let file = files::open(&self.directory.join(names::RUN));
        let is_alive = file.is_ok_and(|file| lock::is_held(&file).unwrap_or(false));
        if now != self.record || !is_alive {
            match read(&self.directory) {
                Ok(document) => (self.document, self.record) = (document, now),
                // It was removed, or is damaged: nobody measures into it any more.
                Err(_) => self.document.status = Status::Crashed,
            }
        }
    }

    fn look_at_loads(&mut self) {
        let Ok(appended) = self.loads.look(MOST_LOADS) else { return };
        let mut rows = csv::ReaderBuilder::new().has_headers(false).from_reader(&*appended.lines);
        for row in rows.deserialize::<LoadRow>().flatten() {
            self.rates.insert(row.load, (row.t_s, row.operations_per_s));
        }
    }

    /// Where the run is.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its record: until it ends as it was planned, with the status `crashed` where its maker went
    /// away.
    #[must_use]
    pub const fn document(&self) -> &Document {
        &self.document
    }

    /// Its series of whole latencies, those that were found meanwhile at the end.
    #[must_use]
    pub fn series(&self) -> &[FollowedSeries] {
        self.log.series()
    }

    /// Percentiles of a series by its number: of each share (0 to 1, ascending) the highest value
    /// of the bucket in which it lies, at most the largest.
    #[must_use]
    pub fn quantiles(&self, number: usize, shares: &[f64]) -> Vec<Option<i64>> {
        self.log.quantiles(number, shares)
    }

    /// The end of the youngest interval, s since the start.
    #[must_use]
    pub const fn end_s(&self) -> f64 {
        self.log.end_s
    }

    /// How much of what was written before the first look is read, from 0 to 1.
    #[must_use]
    pub const fn read(&self) -> f64 {
        self.read
    }

    /// What the late samples of the last seconds were blamed on; `None` without sums.
    #[must_use]
    pub fn recent_causes(&self) -> Option<RecentCauses> {
        self.blame.recent()
    }

    /// Of each series and main cause the worst sample that was kept whole, the worst first.
    #[must_use]
    pub fn worst(&self) -> Vec<KeptPeak> {
        self.peaks.worst()
    }

    /// When a load was last counted, s since the start, and its operations per second then.
    #[must_use]
    pub fn load_rate(&self, load: usize) -> Option<(f64, f64)> {
        self.rates.get(&load).copied()
    }

    /// What is known meanwhile; absent before the first second, and after the end.
    #[must_use]
    pub const fn state(&self) -> Option<&LiveState> {
        self.state.as_ref()
    }

    /// What could not be read.
    #[must_use]
    pub fn damage(&self) -> &[String] {
        &self.damage
    }
}

/// What is known meanwhile; nothing if that is not written.
fn read_state(directory: &Path) -> Result<Option<LiveState>, String> {
    match files::read(&directory.join(names::STATE), LARGEST_STATE) {
        Ok(text) => match serde_json::from_slice(&text) {
            Ok(state) => Ok(Some(state)),
            Err(_) => Err(format!("{} is damaged", names::STATE)),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{} cannot be read: {error}", names::STATE)),
    }
}

/// What tells one record from another: each is a new file.
fn record_of(directory: &Path) -> (u64, u64) {
    let about = std::fs::symlink_metadata(directory.join(names::RUN));
    about.map_or((0, 0), |about| (about.ino(), about.size()))
}

/// The record, with the status that it has now.
fn read(directory: &Path) -> Result<Document, OpenError> {
    let mut read = read_record::<Document>(directory)?;
    if read.record.status == Status::Running && !read.is_alive {
        // The maker may have put its last record in place since that one was opened.
        read = read_record(directory)?;
    }
    let RecordFile { record: mut document, is_alive, .. } = read;
    if document.status == Status::Running && !is_alive {
        document.status = Status::Crashed;
    }
    Ok(document)
}

#[cfg(test)]
mod tests;

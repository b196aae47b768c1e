//! The maker's side of a run directory: append-only, whole up to the last second however its maker
//! ends.
//!
//! A power cut is another matter. To make the disk write disturbs what is measured: its interrupts,
//! the kernel's threads that write, and a journal of the file system that waits for them. So
//! nothing is forced during a run, and the kernel writes when it likes, by its defaults within half
//! a minute. Single samples it has twice to write: they are packed after ten seconds, and what they
//! were in is removed, be it on the disk or not, so that 45 s of them may go. At the end everything
//! is forced, and only then the record says that the run is complete.
//!
//! A full disk loses nothing that memory still holds: an append that fails is cut off again, and
//! whoever appends tries once more with the next interval.

use std::{
    fs::File,
    io::{self, BufReader, ErrorKind, Write},
    path::Path,
};

use tardy_hot::ring::Sample;

use super::{
    appended::Appended,
    directory::{MakeError, RunDirectory, Unsynced, asked},
    document::Document,
    hlog::{self, IntervalOf},
    live_state::LiveState,
    lock, samples, spool,
};
use crate::draft::Draft;

/// Space held back on the disk, so that a full one still takes the last `run.json`.
const RESERVE_BYTES: usize = 512 << 10;

/// Drafts of the record that are tried where others have locked the ones before.
const ATTEMPTS: usize = 16;

/// Names of the files in a run directory.
pub mod names {
    /// The record.
    pub const RUN: &str = "run.json";
    /// The histogram log.
    pub const SERIES: &str = "series.hlog";
    /// The interval in progress.
    pub const LIVE: &str = "live.hlog";
    /// What is known meanwhile, while somebody looks.
    pub const STATE: &str = "live.json";
    /// The directory of samples.
    pub const SAMPLES: &str = "samples";
    /// What the machine did.
    pub const MACHINE: &str = "machine.csv";
    /// What the loads did.
    pub const LOADS: &str = "loads.csv";
    /// Each repeat of each figure.
    pub const FIGURES: &str = "figures.csv";
    /// Interrupts per source and CPU.
    pub const INTERRUPTS: &str = "interrupts.csv";
    /// The worst wake-ups, whole.
    pub const PEAKS: &str = "peaks.jsonl";
    /// What all late wake-ups were blamed on.
    pub const BLAME: &str = "blame.json";
    /// All that CPUs did in the last seconds.
    pub const RECORDING: &str = "recording.jsonl.gz";
    /// Who used the CPUs.
    pub const PROFILE: &str = "profile.json";
    /// What the loads printed.
    pub const LOAD_LOG: &str = "load.log";
    /// Held back; the name is there for a moment at the start.
    pub(in crate::run) const RESERVE: &str = ".reserve";
}

/// A run directory being written.
#[derive(Debug)]
pub struct RunWriter {
    directory: RunDirectory,
    /// Open as long as the maker lives: it holds the lock.
    record: File,
    /// Space held back, which has no name: however the maker ends, the kernel frees it.
    reserve: File,
    hlog: Option<Appended>,
    /// Other files that are appended to, by their names.
    tracks: Vec<(String, Appended)>,
    head: String,
    series: Vec<String>,
    samples: Option<SampleFiles>,
}

impl RunWriter {
    /// Makes the directory (and those above it), and writes the first `run.json`.
    ///
    /// # Errors
    /// Something is there already, or it cannot be written; then nothing is left behind.
    pub fn create(path: &Path, document: &Document, keep_samples: bool) -> Result<Self, MakeError> {
        Self::within(None, path, document, keep_samples)
    }

    /// The same in an empty directory that is held open, where there is one; `path` is where it is.
    ///
    /// # Errors
    /// It cannot be written; then nothing is left behind.
    pub fn within(
        held: Option<RunDirectory>,
        path: &Path,
        document: &Document,
        keep_samples: bool,
    ) -> Result<Self, MakeError> {
        let directory = held.map_or_else(|| RunDirectory::make(path), Ok)?;
        Self::fill(directory.clone(), document, keep_samples).map_err(|source| {
            directory.discard();
            MakeError::Unwritable { path: path.into(), source }
        })
    }

    fn fill(directory: RunDirectory, document: &Document, keep_samples: bool) -> io::Result<Self> {
        let reserve = reserved(&directory)?;
        let record = draft_of(&directory, document)?.place()?;
        let samples = if keep_samples {
            Some(SampleFiles::create(directory.subdirectory(names::SAMPLES)?))
        } else {
            None
        };
        let series = document.series.iter().map(|series| series.name.clone()).collect();
        let (head, tracks) = (String::new(), Vec::new());
        Ok(Self { directory, record, reserve, hlog: None, tracks, head, series, samples })
    }

    /// Writes the record and begins the log, now that the start is known.
    ///
    /// # Errors
    /// What the disk says.
    pub fn begin(&mut self, document: &Document) -> io::Result<()> {
        let start = document.started_at.parse::<jiff::Timestamp>().unwrap_or_default();
        self.head = hlog::header(start.as_millisecond() as f64 / 1e3, &document.started_at);
        let mut log = Appended::create(&self.directory, names::SERIES)?;
        log.append(self.head.as_bytes())?;
        self.hlog = Some(log);
        self.update(document)
    }

    /// Where it is.
    #[must_use]
    pub const fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// Appends one interval of every series given: all of them or none.
    ///
    /// # Errors
    /// What the disk says; then the log is as before, and the same counts can be appended later.
    pub fn append_intervals(&mut self, intervals: &[IntervalOf]) -> io::Result<()> {
        let mut text = String::new();
        intervals.iter().for_each(|interval| hlog::append_one(&mut text, interval));
        self.append_log(&text)
    }

    /// As [`Self::append_intervals`], with a `pause` after the work for each of them.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn append_intervals_with(
        &mut self,
        intervals: &mut dyn Iterator<Item = IntervalOf>,
        pause: &mut dyn FnMut(),
    ) -> io::Result<()> {
        let mut text = String::new();
        hlog::append_all(&mut text, intervals, pause);
        self.append_log(&text)
    }

    fn append_log(&mut self, text: &str) -> io::Result<()> {
        match &mut self.hlog {
            Some(log) => log.append(text.as_bytes()),
            None => Err(io::Error::other("the log has not begun")),
        }
    }

    /// Replaces the log of the interval in progress, with a `pause` after the work for each series.
    ///
    /// # Errors
    /// What the disk says; then the old one is still there.
    pub(crate) fn replace_live(
        &mut self,
        intervals: &mut dyn Iterator<Item = IntervalOf>,
        pause: &mut dyn FnMut(),
    ) -> io::Result<()> {
        let mut text = self.head.clone();
        hlog::append_all(&mut text, intervals, pause);
        self.directory.replace(names::LIVE, text.as_bytes())
    }

    /// Whether another process looks at this run while it is in progress.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.hlog.as_ref().is_some_and(|log| lock::is_watched(&log.file))
    }

    /// Replaces what is known meanwhile.
    ///
    /// # Errors
    /// What the disk says; then the old one is still there.
    pub fn replace_state(&self, state: &LiveState) -> io::Result<()> {
        let mut text = serde_json::to_vec(state)?;
        text.push(b'\n');
        self.directory.replace(names::STATE, &text)
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

    /// Appends bytes to another file of the directory, which the first call makes: all of them or
    /// none.
    ///
    /// # Errors
    /// What the disk says, or that something else has this name.
    pub fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        if let Some((_, track)) = self.tracks.iter_mut().find(|(known, _)| known == name) {
            return track.append(bytes);
        }
        let mut track = Appended::create(&self.directory, name)?;
        let appended = track.append(bytes);
        self.tracks.push((name.to_owned(), track));
        appended
    }

    /// Replaces `run.json`.
    ///
    /// # Errors
    /// What the disk says; then the old one is still there.
    pub fn update(&mut self, document: &Document) -> io::Result<()> {
        self.record = draft_of(&self.directory, document)?.place()?;
        Ok(())
    }

    /// Waits until the disk holds all that was appended or replaced, the record aside. Takes as
    /// long as the disk does, and is for when nothing is measured any more.
    ///
    /// # Errors
    /// The first file that the disk does not take.
    pub fn sync(&self) -> Result<(), Unsynced> {
        // To open and close the record would release its lock.
        self.directory.sync(names::RUN)
    }

    /// Writes the last `run.json`, waits until the disk holds it, and lets go.
    ///
    /// # Errors
    /// What the disk says; then the run reads as crashed, with what was appended.
    pub fn finish(mut self, document: &Document) -> io::Result<()> {
        self.release_reserve();
        let mut draft = draft_of(&self.directory, document)?;
        asked(rustix::fs::fsync(&*draft.file()))?;
        self.record = draft.place()?;
        let _ = self.directory.remove(names::LIVE);
        let _ = self.directory.remove(names::STATE);
        self.directory.sync_names()
    }

    /// Frees the space held back; for the last appends on a full disk.
    pub fn release_reserve(&self) {
        let _ = self.reserve.set_len(0);
    }
}

/// Takes space on the disk by a file that has a name for a moment only.
fn reserved(directory: &RunDirectory) -> io::Result<File> {
    let mut file = directory.create(names::RESERVE)?;
    directory.remove(names::RESERVE)?;
    file.write_all(&vec![b' '; RESERVE_BYTES])?;
    Ok(file)
}

/// `run.json` as a draft, which is locked before it takes the old one's place, so that there is
/// never an unlocked one.
fn draft_of(directory: &RunDirectory, document: &Document) -> io::Result<Draft> {
    let mut text = serde_json::to_vec_pretty(document)?;
    text.push(b'\n');
    let mut draft = directory.draft(names::RUN)?;
    for _ in 0..ATTEMPTS {
        match lock::take(draft.file()) {
            // Who may read it was faster, with a lock for reading: another draft, under a name that
            // he does not know yet.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                draft = directory.draft(names::RUN)?;
            }
            // A file system without locks still takes a run; it only cannot tell running from
            // crashed.
            _ => break,
        }
    }
    draft.file().write_all(&text)?;
    Ok(draft)
}

/// `samples/`: the open spool and its number.
#[derive(Debug)]
struct SampleFiles {
    directory: RunDirectory,
    number: u32,
    open: Option<Appended>,
}

impl SampleFiles {
    const fn create(directory: RunDirectory) -> Self {
        Self { directory, number: 1, open: None }
    }

    fn name(&self, kind: &str) -> String {
        format!("{:06}.{kind}", self.number)
    }

    fn append(&mut self, series: u32, samples: &[Sample]) -> io::Result<()> {
        if samples.is_empty() {
            return Ok(());
        }
        if self.open.is_none() {
            let name = self.name("spool");
            let mut open = Appended::create(&self.directory, &name)?;
            // Or else nothing could be made under this name any more.
            open.append(spool::MAGIC).inspect_err(|_| drop(self.directory.remove(&name)))?;
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
        let (framed, closed) = (self.name("spool"), self.name("parquet"));
        // Whatever comes of it, the next samples go to their own file.
        self.number += 1;
        let open = BufReader::new(self.directory.read(&framed)?);
        let mut draft = self.directory.draft(&closed)?;
        samples::pack(open, series, u64::MAX, draft.file())?;
        draft.place()?;
        self.directory.remove(&framed)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;
    use crate::run::Run;

    fn document() -> Document {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1/timer");
        Run::open(&fixture).unwrap().document
    }

    #[test]
    fn links_that_somebody_puts_into_it_meanwhile_lead_nowhere() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("other"), "kept").unwrap();
        let mut maker = RunWriter::create(&at("run"), &document(), true).unwrap();
        fs::remove_file(at("run/run.json")).unwrap();
        for name in [
            names::RUN,
            names::SERIES,
            names::LIVE,
            names::MACHINE,
            names::PEAKS,
            names::BLAME,
            "samples/000001.spool",
        ] {
            symlink(at("other"), at("run").join(name)).unwrap();
        }
        assert!(maker.begin(&document()).is_err());
        assert!(maker.append(names::MACHINE, b"x").is_err());
        assert!(maker.append_samples(0, &[Sample { t_ns: 1, latency_ns: 1 }]).is_err());
        let room = crate::run::PeakRoom::new(u64::MAX);
        assert!(crate::run::BlameFiles::create(maker.directory(), room).is_err());
        maker.replace_live(&mut std::iter::empty(), &mut || ()).unwrap();
        assert!(fs::symlink_metadata(at("run/live.hlog")).unwrap().is_file(), "replaced");
        maker.finish(&document()).unwrap();
        assert!(fs::symlink_metadata(at("run/run.json")).unwrap().is_file(), "replaced");
        assert_eq!(fs::read_to_string(at("other")).unwrap(), "kept");
    }

    #[test]
    fn a_maker_that_goes_away_leaves_no_space_held_back() {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("r");
        let maker = RunWriter::create(&run, &document(), false).unwrap();
        let entries = || fs::read_dir(&run).unwrap().flatten();
        let names: Vec<_> = entries().map(|entry| entry.file_name()).collect();
        let held = maker.reserve.metadata().unwrap();
        assert_eq!((held.len(), names), (RESERVE_BYTES as u64, vec![names::RUN.into()]));
        maker.release_reserve();
        assert_eq!(maker.reserve.metadata().unwrap().len(), 0);
    }

    #[test]
    fn a_spool_that_could_not_be_begun_is_begun_again() {
        let place = tempfile::tempdir().unwrap();
        let directory = RunDirectory::make(&place.path().join("samples")).unwrap();
        let mut files = SampleFiles::create(directory.clone());
        let sample = [Sample { t_ns: 1, latency_ns: 2 }];
        // In the way for now.
        drop(directory.create("000001.spool").unwrap());
        assert!(files.append(0, &sample).is_err());
        directory.remove("000001.spool").unwrap();
        files.append(0, &sample).unwrap();
        files.close(&["cpu0".into()]).unwrap();
        let kept = samples::files(&place.path().join("samples"));
        let (mut read, series) = (Vec::new(), ["cpu0".to_owned()]);
        let mut reader = samples::SampleReader::new(&series, 1);
        reader.read(&kept[0], |_, sample| read.push(sample)).unwrap();
        assert_eq!((kept.len(), read.as_slice()), (1, &sample[..]));
    }
}

//! What many runs are asked for, kept in one file beside them, so that ten thousand records need
//! not be read each time.
//!
//! It is a file of text: a line with its version, then a line of JSON for each run. Each names the
//! directory of its run and how `run.json` was when it was read (inode, time of change, size). What
//! no longer is so is read again, and what is gone is left out: the runs are the truth, and the
//! index may be deleted at any time. It is replaced as a whole, so that a reader beside a writer
//! sees the old one or the new one; of two writers the last one wins, and each of both is true.
//!
//! A flat file, not a database: all lines are read for each question, and nothing is linked in.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::{
    listed_run::ListedRun,
    stamp::{KeptDetails, Stamp},
};
use crate::limits::{
    JsonCounts,
    index::{JSON, LARGEST, LONGEST_LINE},
};
use crate::{
    draft::{self, Draft},
    run::{OpenError, RunDetails, RunEntry, files, names},
};

/// The file's name in the store.
pub(super) const INDEX: &str = ".tardy-index";

/// Raised with every change of what a line says.
const VERSION: u32 = 8;

/// Fewer runs are read in no time, and no file appears beside them.
const FEWEST_RUNS: usize = 100;

/// The age beyond which a draft of the file is abandoned: writing never takes so long.
const ABANDONED: Duration = Duration::from_secs(3_600);

/// The first line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct IndexHead {
    tardy_index: u32,
    /// Another tardy may read other things from a record.
    tardy: String,
}

impl IndexHead {
    fn own() -> Self {
        Self { tardy_index: VERSION, tardy: env!("CARGO_PKG_VERSION").into() }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    at: String,
    stamp: Stamp,
    entry: RunEntry,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<KeptDetails>,
}

/// The lines of the file, by the places of their runs.
#[derive(Debug)]
pub(super) struct Index {
    clock: fn() -> SystemTime,
    lines: HashMap<String, Line>,
    /// Whether a run is not in the file as it is now.
    is_stale: bool,
    /// Files of runs that were read.
    pub reads: u64,
}

impl Index {
    /// The index of the store in `root`; empty without a trustworthy index. `clock` says whether a
    /// run changed just now.
    pub(super) fn open(root: &Path, clock: fn() -> SystemTime) -> Self {
        let lines = lines(root).unwrap_or_default();
        Self { clock, lines, is_stale: false, reads: 0 }
    }

    /// The run in this place of the store, from the file where it is as it was then.
    ///
    /// # Errors
    /// As [`RunEntry::read`].
    pub(super) fn run(&mut self, root: &Path, place: PathBuf) -> Result<ListedRun, OpenError> {
        let path = root.join(&place);
        // Before it is read: what changes meanwhile has another stamp the next time.
        let stamp = Stamp::of(&path.join(names::RUN));
        let line = place.to_str().and_then(|at| self.lines.remove(at));
        if let (Some(stamp), Some(line)) = (stamp, line)
            && line.stamp == stamp
        {
            let entry = line.entry.at(path);
            return Ok(ListedRun { place, entry, cell: None, stamp: Some(stamp), kept: line.kept });
        }
        self.reads += u64::from(stamp.is_some());
        let entry = RunEntry::read(&path)?;
        // Of a run in progress, other files change than its record.
        let stamp = stamp.filter(|stamp| !stamp.is_young((self.clock)()) && entry.has_ended());
        self.is_stale |= stamp.is_some();
        Ok(ListedRun { place, entry, cell: None, stamp, kept: None })
    }

    /// What the files beside the record of a run say, read if that is not known yet.
    pub(super) fn add_details(&mut self, run: &mut ListedRun) {
        let beside =
            [names::SERIES, names::BLAME].map(|name| Stamp::of(&run.entry.path.join(name)));
        if run.kept.as_ref().is_some_and(|kept| kept.stamps == beside) {
            return;
        }
        self.reads += beside.iter().flatten().count() as u64;
        let details = RunDetails::read(&run.entry);
        run.kept = Some(KeptDetails { stamps: beside, details });
        self.is_stale |= run.stamp.is_some();
        if beside.iter().flatten().any(|stamp| stamp.is_young((self.clock)())) {
            run.stamp = None;
        }
    }

    /// Writes the file anew where it does not say what `runs` are, or names runs that are gone. A
    /// store that cannot be written, or belongs to another user, keeps the file that it has.
    pub(super) fn save(&mut self, root: &Path, runs: &[ListedRun]) {
        let is_own = fs::metadata(root).is_ok_and(|about| about.uid() == geteuid().as_raw());
        if !is_own || runs.len() < FEWEST_RUNS || (!self.is_stale && self.lines.is_empty()) {
            return;
        }
        let mut text = Vec::new();
        // What cannot be written, or does not reach the disk, is read again the next time.
        let placed = |text: &[u8]| {
            let mut draft = Draft::beside(&root.join(INDEX))?;
            draft.file().write_all(text)?;
            draft.place()
        };
        if write(&mut text, runs).is_ok() && placed(&text).is_ok() {
            self.is_stale = false;
            self.lines.clear();
            sweep(root);
        }
    }
}

/// Removes drafts of the file that a killed tardy left. A young one may be of a tardy that writes.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let is_draft = entry.file_name().to_str().and_then(draft::target_of) == Some(INDEX);
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if is_draft && age().is_some_and(|age| age > ABANDONED) {
            // What cannot be removed is looked at again the next time.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn write(text: &mut Vec<u8>, runs: &[ListedRun]) -> serde_json::Result<()> {
    #[derive(Serialize)]
    struct LineOf<'a> {
        at: &'a str,
        stamp: Stamp,
        entry: &'a RunEntry,
        #[serde(skip_serializing_if = "Option::is_none")]
        kept: Option<&'a KeptDetails>,
    }
    serde_json::to_writer(&mut *text, &IndexHead::own())?;
    let _ = writeln!(text);
    for run in runs {
        let (Some(at), Some(stamp)) = (run.place.to_str(), run.stamp) else { continue };
        let line = LineOf { at, stamp, entry: &run.entry, kept: run.kept.as_ref() };
        serde_json::to_writer(&mut *text, &line)?;
        let _ = writeln!(text);
    }
    Ok(())
}

/// What the file says, where it is the user's own or that of the owner of the store, and of this
/// version. Lines that are damaged are left out. Nothing is believed of a file with a line that
/// exceeds a limit.
fn lines(root: &Path) -> Option<HashMap<String, Line>> {
    let file = files::open(&root.join(INDEX)).ok()?;
    let owner = file.metadata().ok()?.uid();
    let may_be = [geteuid().as_raw(), fs::metadata(root).ok()?.uid()];
    if !may_be.contains(&owner) {
        return None;
    }
    let mut file = BufReader::new(file.take(LARGEST + 1));
    let (mut text, mut bytes) = (Vec::new(), 0);
    let mut next = |text: &mut Vec<u8>| {
        text.clear();
        bytes += (&mut file).take(LONGEST_LINE).read_until(b'\n', text).ok()? as u64;
        let is_line = text.last() == Some(&b'\n') || (text.len() as u64) < LONGEST_LINE;
        (is_line && bytes <= LARGEST).then_some(!text.is_empty())
    };
    next(&mut text)?;
    if serde_json::from_slice::<IndexHead>(&text).ok()? != IndexHead::own() {
        return None;
    }
    let (mut lines, mut counts) = (HashMap::new(), JsonCounts::default());
    while next(&mut text)? {
        // A line that asks for too much is not of tardy, and neither is what follows it.
        JSON.check_further(&text, &mut counts).ok()?;
        let Ok(line) = serde_json::from_slice::<Line>(&text) else { continue };
        lines.insert(line.at.clone(), line);
    }
    Some(lines)
}

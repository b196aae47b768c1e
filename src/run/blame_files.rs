//! The maker's side of `peaks.jsonl` and `blame.json`.

use std::{fs::File, io};

use super::{
    appended::Appended,
    directory::RunDirectory,
    lock,
    peak_room::PeakRoom,
    peaks::{Blame, Peak},
    writer::names,
};

/// `peaks.jsonl` and `blame.json` being written, by another thread than the rest.
#[derive(Debug)]
pub struct BlameFiles {
    peaks: Appended,
    room: PeakRoom,
    directory: RunDirectory,
    /// The log, to ask whether anybody watches the run.
    log: Option<File>,
}

impl BlameFiles {
    /// Makes both, empty, in this run directory, with this room for peaks.
    ///
    /// # Errors
    /// What the disk says.
    pub fn create(directory: &RunDirectory, room: PeakRoom) -> io::Result<Self> {
        let peaks = Appended::create(directory, names::PEAKS)?;
        let mut files = Self { peaks, room, directory: directory.clone(), log: None };
        files.replace_blame(&Blame::default())?;
        Ok(files)
    }

    /// Whether another process looks at this run while it is in progress.
    #[must_use]
    pub fn is_watched(&mut self) -> bool {
        if self.log.is_none() {
            self.log = self.directory.read(names::SERIES).ok();
        }
        self.log.as_ref().is_some_and(lock::is_watched)
    }

    /// Appends peaks, a line each: all for which there is room, or none.
    ///
    /// # Errors
    /// What the disk says; then the file is as before, and the same peaks can be appended later.
    pub fn append_peaks(&mut self, peaks: &[Peak]) -> io::Result<()> {
        let (mut lines, mut room) = (Vec::new(), self.room.clone());
        for peak in peaks {
            let before = lines.len();
            serde_json::to_writer(&mut lines, peak)?;
            lines.push(b'\n');
            if !room.take(peak.latency_ns, (lines.len() - before) as u64) {
                lines.truncate(before);
            }
        }
        self.peaks.append(&lines)?;
        self.room = room;
        Ok(())
    }

    /// Peaks for which there was no room.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.room.left_out()
    }

    /// Replaces the sums.
    ///
    /// # Errors
    /// What the disk says; then the old ones are still there.
    pub fn replace_blame(&mut self, blame: &Blame) -> io::Result<()> {
        let mut text = serde_json::to_vec(blame)?;
        text.push(b'\n');
        self.directory.replace(names::BLAME, &text)
    }

    /// Where they are.
    #[must_use]
    pub const fn directory(&self) -> &RunDirectory {
        &self.directory
    }
}

//! `recording.jsonl.gz`: all that the CPUs did in the last seconds of a run, or before a trigger.
//!
//! The first line says which time; each line after it is an entry of the timeline, CPU by CPU, by
//! time. It is written at the end: a run that was killed has none.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde::{Deserialize, Serialize};

use super::{
    directory::RunDirectory,
    files::{self, unusable},
    peaks::Moment,
    writer::names,
};
pub use crate::limits::recording::MOST_MOMENTS;
use crate::limits::recording::{LARGEST, LONGEST_LINE};

/// Which time of a CPU is in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCpu {
    /// Its number.
    pub cpu: u32,
    /// All that was recorded since is there; `CLOCK_MONOTONIC` ns. Later than the beginning of the
    /// recording where there was more than its memory holds.
    pub from_ns: i64,
}

/// What is recorded of which time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    from_ns: i64,
    until_ns: i64,
    cpus: Vec<RecordedCpu>,
}

/// All that the CPUs did in a time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    /// The beginning, which entries count from; `CLOCK_MONOTONIC` ns.
    pub from_ns: i64,
    /// The end.
    pub until_ns: i64,
    /// By number.
    pub cpus: Vec<RecordedCpu>,
    /// CPU by CPU, by time.
    pub moments: Vec<Moment>,
}

impl Recording {
    /// Writes it into a run directory.
    ///
    /// # Errors
    /// What the disk says.
    pub fn write(&self, directory: &RunDirectory) -> io::Result<()> {
        let mut draft = directory.draft(names::RECORDING)?;
        let mut packed = GzEncoder::new(io::BufWriter::new(draft.file()), Compression::fast());
        let cpus = self.cpus.clone();
        let head = Head { from_ns: self.from_ns, until_ns: self.until_ns, cpus };
        serde_json::to_writer(&mut packed, &head)?;
        for moment in &self.moments {
            packed.write_all(b"\n")?;
            serde_json::to_writer(&mut packed, moment)?;
        }
        packed.write_all(b"\n")?;
        packed.finish()?.flush()?;
        draft.place().map(drop)
    }

    /// Reads that of a run; nothing where it has none.
    ///
    /// # Errors
    /// The file is not a recording, or is damaged; the message says what is wrong with it.
    pub fn read(directory: &Path) -> io::Result<Option<Self>> {
        let file = match files::open(&directory.join(names::RECORDING)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut lines = BufReader::new(GzDecoder::new(file).take(LARGEST));
        let mut line = Vec::new();
        let Some(head) = next::<Head>(&mut lines, &mut line)? else {
            return Err(unusable("it is empty".into()));
        };
        let mut moments = Vec::new();
        while let Some(moment) = next(&mut lines, &mut line)? {
            if moments.len() == MOST_MOMENTS {
                return Err(unusable(format!("it has more than {MOST_MOMENTS} entries")));
            }
            moments.push(moment);
        }
        let Head { from_ns, until_ns, cpus } = head;
        Ok(Some(Self { from_ns, until_ns, cpus, moments }))
    }

    /// The CPUs of which the beginning was overwritten, with how much there is, ns.
    pub fn cut(&self) -> impl Iterator<Item = (u32, i64)> {
        let cut = self.cpus.iter().filter(|cpu| cpu.from_ns > self.from_ns);
        cut.map(|cpu| (cpu.cpu, self.until_ns.saturating_sub(cpu.from_ns)))
    }
}

/// The next line as what it holds; nothing at the end.
fn next<T: for<'a> Deserialize<'a>>(
    lines: &mut impl io::BufRead,
    line: &mut Vec<u8>,
) -> io::Result<Option<T>> {
    line.clear();
    lines.take(LONGEST_LINE).read_until(b'\n', line)?;
    if line.is_empty() {
        return Ok(None);
    }
    let damaged = |error: serde_json::Error| {
        let text = crate::plain::cut(&error.to_string(), files::LONGEST_DAMAGE);
        unusable(format!("an entry is damaged: {text}"))
    };
    serde_json::from_slice(line).map(Some).map_err(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::peaks::Lane;

    fn recording() -> Recording {
        let moment = |at: i64| Moment {
            at,
            ns: Some(5),
            cpu: 1,
            lane: Lane::Others,
            what: "task".into(),
            name: "cat".into(),
            pid: Some(7),
            priority: None,
            detail: None,
            stack: Vec::new(),
        };
        let cpus = vec![RecordedCpu { cpu: 0, from_ns: 100 }, RecordedCpu { cpu: 1, from_ns: 400 }];
        Recording { from_ns: 100, until_ns: 1_000, cpus, moments: vec![moment(0), moment(500)] }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let place = tempfile::tempdir().unwrap();
        let directory = RunDirectory::make(&place.path().join("r")).unwrap();
        assert_eq!(Recording::read(&place.path().join("r")).unwrap(), None);
        recording().write(&directory).unwrap();
        let read = Recording::read(&place.path().join("r")).unwrap().unwrap();
        assert_eq!(read, recording());
        assert_eq!(read.cut().collect::<Vec<_>>(), [(1, 600)]);
    }

    #[test]
    fn what_is_damaged_is_an_error_and_no_short_recording() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("r");
        recording().write(&RunDirectory::make(&path).unwrap()).unwrap();
        let file = path.join(names::RECORDING);
        let whole = std::fs::read(&file).unwrap();
        for length in [0, 1, 20, whole.len() - 1] {
            std::fs::write(&file, &whole[..length]).unwrap();
            assert!(Recording::read(&path).is_err(), "{length}");
        }
        std::fs::write(&file, b"no gzip").unwrap();
        assert!(Recording::read(&path).is_err());
    }
}

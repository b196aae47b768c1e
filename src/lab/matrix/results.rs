//! Stores outcomes of cells by key: an unchanged cell is not measured again.
//!
//! An entry is a directory: `run`, a run directory, and `sums`, a line a file of it. It appears by
//! a rename, so that there is all of it or nothing; one that does not match its sums is removed.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use crate::run::{Document, Run, RunDirectory, Status, copy::copy};

/// Where outcomes lie in the lab's cache.
pub const DIRECTORY: &str = "cells";

/// Files of an entry with their sums.
const SUMS: &str = "sums";

/// The entry's run.
const RUN: &str = "run";

/// Outcomes by key.
#[derive(Debug, Clone)]
pub struct Results {
    place: PathBuf,
}

impl Results {
    /// Those in `place`, which need not be there yet.
    #[must_use]
    pub fn at(place: &Path) -> Self {
        Self { place: place.into() }
    }

    /// Puts a copy of what is known under `key` into `place`, which is new; nothing where nothing
    /// is known. An entry that is damaged is removed, and is then not known.
    ///
    /// # Errors
    /// A copy that cannot be written; a part of it is left then.
    pub fn get(&self, key: &str, place: &RunDirectory) -> Result<Option<Document>> {
        let entry = self.entry(key)?;
        if !entry.join(SUMS).exists() {
            return Ok(None);
        }
        if check(&entry).is_err() {
            let _ = fs::remove_dir_all(&entry);
            return Ok(None);
        }
        copy(&entry.join(RUN), place).context("cannot write the run to its place")?;
        Ok(Some(Run::open(&place.path())?.document))
    }

    /// Keeps a copy of the run in `directory` under `key`; an older one is replaced.
    ///
    /// # Errors
    /// A copy that cannot be written; nothing of it is left then.
    pub fn put(&self, key: &str, directory: &Path) -> Result<()> {
        let entry = self.entry(key)?;
        fs::create_dir_all(&self.place)
            .with_context(|| format!("cannot make {}", self.place.display()))?;
        // Removed again by itself, unless it was renamed.
        let scratch = tempfile::TempDir::with_prefix_in(".new-", &self.place)
            .with_context(|| format!("cannot write to {}", self.place.display()))?;
        let run = RunDirectory::make(&scratch.path().join(RUN))?;
        let written = copy(directory, &run).and_then(|()| {
            let sums = sums(&run.path())?;
            let lines = sums.iter().map(|(name, sum)| format!("{sum} {name}\n"));
            let mut file = File::create_new(scratch.path().join(SUMS))?;
            file.write_all(lines.collect::<String>().as_bytes())
        });
        written.with_context(|| format!("cannot write to {}", self.place.display()))?;
        let _ = fs::remove_dir_all(&entry);
        match fs::rename(scratch.path(), &entry) {
            Ok(()) => {
                let _ = scratch.keep();
                Ok(())
            }
            // Another lab has stored the same entry meanwhile.
            Err(_) if entry.join(SUMS).exists() => Ok(()),
            Err(error) => Err(error).with_context(|| format!("cannot make {}", entry.display())),
        }
    }

    fn entry(&self, key: &str) -> Result<PathBuf> {
        let plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_hexdigit());
        ensure!(plain, "{key:?} is not a key of a cell: it has other than hexadecimal digits");
        Ok(self.place.join(key))
    }
}

/// Whether an entry is what was put there, and a whole run.
fn check(entry: &Path) -> Result<()> {
    let text = fs::read_to_string(entry.join(SUMS))?;
    let line = |line: &str| line.split_once(' ').map(|(sum, name)| (name.into(), sum.into()));
    let known: BTreeMap<String, String> = text.lines().filter_map(line).collect();
    ensure!(!known.is_empty() && sums(&entry.join(RUN))? == known, "the sums do not match");
    let run = Run::open(&entry.join(RUN))?;
    if run.document.status != Status::Complete {
        bail!("the run is not complete");
    }
    Ok(())
}

/// SHA-256 of every file below `directory`, by its path from there.
fn sums(directory: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for file in files(directory, Path::new(""))? {
        let sum = sum(&directory.join(&file))?;
        found.insert(file.to_string_lossy().into_owned(), sum);
    }
    Ok(found)
}

fn sum(file: &Path) -> io::Result<String> {
    let (mut reader, mut sum) = (BufReader::new(File::open(file)?), Sha256::new());
    loop {
        let part = reader.fill_buf()?;
        if part.is_empty() {
            return Ok(sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        sum.update(part);
        let length = part.len();
        reader.consume(length);
    }
}

/// Plain files below `root/below`, by their paths from `root`.
fn files(root: &Path, below: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            found.extend(files(root, &path)?);
        } else if kind.is_file() {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What a run directory of nothing looks like.
    pub(crate) fn write_run(directory: &Path, status: &str) {
        fs::create_dir_all(directory.join("samples")).unwrap();
        let record = serde_json::json!({
            "schema_version": 1, "id": "i", "name": "n", "argv": [], "status": status,
            "validity": "valid", "caveats": [], "probe": {"name": "made-up", "parameters": {}},
            "loads": [], "setup": {"asked": null, "found": {}},
            "trace": {"asked": "off", "found": "off"}, "facts": crate::run::Facts::default(),
            "started_at": "", "ended_at": null, "duration_ns": 1, "start_monotonic_ns": 1,
            "series": [],
        });
        fs::write(directory.join("run.json"), record.to_string()).unwrap();
        fs::write(directory.join("samples/0000.parquet"), b"samples").unwrap();
    }

    struct ResultsFixture {
        directory: tempfile::TempDir,
        results: Results,
    }

    fn place() -> ResultsFixture {
        let directory = tempfile::tempdir().unwrap();
        write_run(&directory.path().join("made"), "complete");
        let results = Results::at(&directory.path().join("cells"));
        results.put("abc1", &directory.path().join("made")).unwrap();
        ResultsFixture { directory, results }
    }

    #[test]
    fn what_was_put_comes_back_whole_and_nothing_else_does() {
        let ResultsFixture { directory, results } = place();
        let place = |name: &str| RunDirectory::make(&directory.path().join(name)).unwrap();
        let (copy, other) = (place("a/b/copy"), place("other"));
        assert_eq!(results.get("abc1", &copy).unwrap().unwrap().name, "n");
        let samples = directory.path().join("a/b/copy/samples/0000.parquet");
        assert_eq!(fs::read(samples).unwrap(), b"samples");
        assert!(results.get("abc2", &other).unwrap().is_none());
        assert!(results.get("../made", &other).is_err());
        assert!(results.get("abc1", &copy).is_err(), "what is there is not written over");
        assert_eq!(fs::read_dir(directory.path().join("other")).unwrap().count(), 0);
    }

    #[test]
    fn an_entry_that_was_changed_cut_or_is_no_whole_run_is_removed() {
        let samples = "abc1/run/samples/0000.parquet";
        type Harm = fn(&Path);
        let harms: [Harm; 4] = [
            |cells| fs::write(cells.join("abc1/run/samples/0000.parquet"), b"Samples").unwrap(),
            |cells| fs::remove_file(cells.join("abc1/run/run.json")).unwrap(),
            |cells| fs::write(cells.join("abc1/run/more"), b"x").unwrap(),
            |cells| fs::write(cells.join("abc1/sums"), b"").unwrap(),
        ];
        for harm in harms {
            let ResultsFixture { directory, results } = place();
            let cells = directory.path().join("cells");
            assert!(cells.join(samples).exists());
            harm(&cells);
            let copy = RunDirectory::make(&directory.path().join("copy")).unwrap();
            assert!(results.get("abc1", &copy).unwrap().is_none());
            assert!(!cells.join("abc1").exists());
            assert_eq!(fs::read_dir(directory.path().join("copy")).unwrap().count(), 0);
        }
        let ResultsFixture { directory, results } = place();
        write_run(&directory.path().join("early"), "interrupted");
        results.put("abc3", &directory.path().join("early")).unwrap();
        let copy = RunDirectory::make(&directory.path().join("copy")).unwrap();
        assert!(results.get("abc3", &copy).unwrap().is_none());
    }

    #[test]
    fn what_cannot_be_kept_leaves_nothing() {
        let ResultsFixture { directory, results } = place();
        assert!(results.put("abc4", &directory.path().join("nowhere")).is_err());
        let left: Vec<_> = fs::read_dir(directory.path().join("cells")).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}

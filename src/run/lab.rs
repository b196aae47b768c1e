//! `lab.json`: what a directory of the lab holds besides its runs, and what its numbers mean.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    caveat_kind::COUNTED_TIME,
    directory::RunDirectory,
    files::{self, LONGEST_DAMAGE},
};
use crate::limits::matrix::{JSON, LARGEST};
use crate::plain::cut;

/// The file's name.
pub const LAB: &str = "lab.json";

/// The version of `lab.json` that this tardy writes.
pub const LAB_VERSION: u32 = 1;

/// What a directory of the lab holds besides its runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabRecord {
    /// See [`LAB_VERSION`].
    pub lab_version: u32,
    /// The plan's name.
    pub plan: String,
    /// The kernels, in the order in which they were asked for.
    pub kernels: Vec<LabKernel>,
    /// Names of the loads, in the order of the plan.
    pub loads: Vec<String>,
    /// Draws phase offsets and padding; absent if they lay on a fixed lattice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What the order of the cells was drawn by; absent if it is that of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_seed: Option<u64>,
    /// Cells without a run, and why.
    pub failed: Vec<LabFailure>,
    /// Cells that an early end left undone; while the lab runs, and after it was killed, those
    /// without a run.
    pub undone: usize,
}

/// One kernel of a matrix.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabKernel {
    /// As it was asked for.
    pub name: String,
    /// A copy of its configuration, from the directory of `lab.json`; absent if it has none.
    pub config: Option<PathBuf>,
}

/// A cell without a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabFailure {
    /// The load's name.
    pub load: String,
    /// The kernel's name.
    pub kernel: String,
    /// Which phase offset.
    pub seed: u32,
    /// What went wrong; may have several lines.
    pub why: String,
}

impl LabRecord {
    /// Reads the record in `directory`; `None` without a record.
    ///
    /// # Errors
    /// The record cannot be read, or is not such a record.
    pub fn open(directory: &Path) -> io::Result<Option<Self>> {
        let path = directory.join(LAB);
        let damaged = |what: String| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{} is damaged: {what}; remove it, the runs stay readable", path.display()),
            )
        };
        let text = match files::read(&path, LARGEST) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(damaged(error.to_string()));
            }
            Err(error) => return Err(error),
        };
        JSON.check(&text).map_err(damaged)?;
        let record: Self = serde_json::from_slice(&text)
            .map_err(|error| damaged(cut(&error.to_string(), LONGEST_DAMAGE)))?;
        if record.lab_version > LAB_VERSION {
            return Err(damaged(format!(
                "version {} is newer than this tardy",
                record.lab_version
            )));
        }
        Ok(Some(record))
    }

    /// Writes it into `directory`.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, directory: &RunDirectory) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        directory.replace(LAB, &text)
    }
}

/// What numbers of this mode (as in `facts.lab.mode`) mean, as a sentence.
#[must_use]
pub fn meaning(mode: &str) -> String {
    match mode {
        "deterministic" => format!("Times are {COUNTED_TIME}."),
        "kvm" => {
            "Times are those of a virtual machine on this host: the host's noise is in them.".into()
        }
        "emulated" => "Times are those of plain emulation, full of the host's noise: they show \
                       that something works, and no verdict may rest on them."
            .into(),
        "host" => "Times are those of the machine itself, as it was.".into(),
        _ => format!("What times of mode {mode} mean, this tardy does not know."),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_record_comes_back_and_none_is_none() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(LabRecord::open(directory.path()).unwrap(), None);
        let failure = LabFailure { why: "a\nb".into(), ..LabFailure::default() };
        let record = LabRecord { failed: vec![failure], ..LabRecord::default() };
        record.write(&RunDirectory::make(directory.path()).unwrap()).unwrap();
        assert_eq!(LabRecord::open(directory.path()).unwrap(), Some(record));
    }

    #[test]
    fn a_damaged_record_is_reported_by_its_name() {
        let directory = tempfile::tempdir().unwrap();
        for text in ["", "{", "[]", "{\"lab_version\": 9, \"plan\": \"\"}"] {
            fs::write(directory.path().join(LAB), text).unwrap();
            let error = LabRecord::open(directory.path()).unwrap_err().to_string();
            assert!(error.contains("lab.json is damaged"), "{error}");
        }
    }

    #[test]
    fn every_mode_has_its_own_meaning() {
        let all = ["deterministic", "kvm", "emulated", "host"].map(meaning);
        assert!(all.iter().enumerate().all(|(at, text)| !all[..at].contains(text)));
        assert!(all[0].contains("executed instructions"));
    }
}

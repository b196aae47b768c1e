//! Reading `plan.json` and `ab.json`: records of many runs, which anybody may have written.

use std::{
    io,
    path::{Component, Path, PathBuf},
};

use serde::de::DeserializeOwned;
use thiserror::Error;

use super::{
    directory::RunDirectory,
    files::{self, LONGEST_DAMAGE},
};
use crate::limits::campaign::{JSON, LARGEST};
use crate::plain::{cut, plain_path};

/// Why the record of a plan or of a comparison cannot be read.
#[derive(Debug, Error)]
pub enum CampaignRecordError {
    /// None there.
    #[error("{}: no {what} was measured there: {source}", .path.display())]
    Absent {
        /// `plan` or `comparison`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody else can have written what would be run.
    #[error("{}: {source}", .shown.display())]
    NotOwn {
        /// The directory.
        shown: PathBuf,
        /// Who, and the remedy.
        source: io::Error,
    },
    /// Not what such a file holds.
    #[error("{} is damaged: {what}; the runs beside it stay readable", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line, column and field.
        what: String,
    },
    /// Written by a newer tardy.
    #[error("{} has schema_version {version}, which is newer than this tardy", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
}

/// What is read here: its version, and where its runs lie.
pub(super) trait CampaignRecord: DeserializeOwned {
    /// What it is of.
    const WHAT: &'static str;
    /// The newest version that is known.
    const NEWEST: u32;
    /// Its own version.
    fn version(&self) -> u32;
    /// Directories of its runs, from its own.
    fn paths(&self) -> impl Iterator<Item = &str>;
}

/// Reads a record.
pub(super) fn read<T: CampaignRecord>(path: PathBuf) -> Result<T, CampaignRecordError> {
    match files::read(&path, LARGEST) {
        Ok(text) => parse(&text, path),
        Err(source) => Err(CampaignRecordError::Absent { what: T::WHAT, path, source }),
    }
}

/// Reads the record of this name in a directory that is held open, to continue with it: the
/// caller's own, which nobody else can write. `shown` is where that is.
pub(super) fn read_own<T: CampaignRecord>(
    directory: &RunDirectory,
    name: &str,
    shown: &Path,
) -> Result<T, CampaignRecordError> {
    let path = shown.join(name);
    let text = directory.own_file(name).and_then(|file| files::read_whole(&file, LARGEST));
    match text {
        Ok(text) => parse(&text, path),
        Err(source) if source.kind() == io::ErrorKind::PermissionDenied => {
            Err(CampaignRecordError::NotOwn { shown: shown.into(), source })
        }
        Err(source) => Err(CampaignRecordError::Absent { what: T::WHAT, path, source }),
    }
}

fn parse<T: CampaignRecord>(text: &[u8], path: PathBuf) -> Result<T, CampaignRecordError> {
    if let Err(what) = JSON.check(text) {
        return Err(CampaignRecordError::Damaged { path, what });
    }
    let record: T = match serde_json::from_slice(text) {
        Ok(record) => record,
        Err(error) => {
            let what = cut(&error.to_string(), LONGEST_DAMAGE);
            return Err(CampaignRecordError::Damaged { path, what });
        }
    };
    if record.version() > T::NEWEST {
        return Err(CampaignRecordError::Newer { path, version: record.version() });
    }
    if record.paths().any(leads_out) {
        let what = format!("the path of a run leads out of the {}'s directory", T::WHAT);
        return Err(CampaignRecordError::Damaged { path, what });
    }
    let directory = path.parent().unwrap_or(Path::new("."));
    if let Some(link) = record.paths().find_map(|place| link_on(directory, Path::new(place))) {
        let what = format!("{} is a link, and runs must be directories", plain_path(&link));
        return Err(CampaignRecordError::Damaged { path, what });
    }
    Ok(record)
}

/// The first part of `place` that is a link: its author need not be able to read where it leads.
fn link_on(directory: &Path, place: &Path) -> Option<PathBuf> {
    let mut way = directory.to_owned();
    place.components().find_map(|part| {
        way.push(part);
        way.is_symlink().then(|| way.clone())
    })
}

fn leads_out(path: &str) -> bool {
    !Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

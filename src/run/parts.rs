//! Which files a run has.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    document::{Document, Status},
    record_file::{OpenError, read_record},
    writer::names,
};
use crate::draft;

/// Files of a run that are there once it has ended, but its samples.
const KEPT: [&str; 12] = [
    names::RUN,
    names::SERIES,
    names::LIVE,
    names::MACHINE,
    names::LOADS,
    names::FIGURES,
    names::INTERRUPTS,
    names::PEAKS,
    names::BLAME,
    names::PROFILE,
    names::RECORDING,
    names::LOAD_LOG,
];

/// Those that are there while it measures.
const MEANWHILE: [&str; 2] = [names::STATE, names::RESERVE];

/// The files of the run in `path` but its record, in the order of their names; samples are
/// `samples/000001.parquet`. What else is there is left out.
///
/// # Errors
/// What the disk says.
pub(crate) fn kept_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = KEPT.iter().map(PathBuf::from).collect();
    found.retain(|name| name != names::RUN && path.join(name).is_file());
    let samples = path.join(names::SAMPLES);
    if fs::symlink_metadata(&samples).is_ok_and(|about| about.is_dir()) {
        for entry in fs::read_dir(&samples)? {
            found.push(Path::new(names::SAMPLES).join(entry?.file_name()));
        }
        found.retain(|name| is_kept_file(name));
    }
    found.sort();
    Ok(found)
}

/// The record of the run in `path` as it is there: of one that was killed not what can be
/// recovered. `None` while it is being measured.
///
/// # Errors
/// See [`OpenError`].
pub(crate) fn stored_record(path: &Path) -> Result<Option<Document>, OpenError> {
    let read = read_record::<Document>(path)?;
    let is_running = read.is_alive && read.record.status == Status::Running;
    Ok((!is_running).then_some(read.record))
}

/// Whether a run that has ended may have this file, by its name alone.
pub(crate) fn is_kept_file(name: &Path) -> bool {
    match name.strip_prefix(names::SAMPLES) {
        Ok(samples) => samples.to_str().is_some_and(is_numbered),
        Err(_) => name.to_str().is_some_and(|name| KEPT.contains(&name)),
    }
}

/// Whether it is a file of a run, or a draft of one that a kill has left.
pub(super) fn is_file_of_run(name: &OsStr) -> bool {
    let is_known = |name: &str| {
        let name = draft::target_of(name).unwrap_or(name);
        KEPT.contains(&name) || MEANWHILE.contains(&name)
    };
    name.to_str().is_some_and(is_known)
}

/// Whether it is a file of samples, `000001.parquet`, or a draft of one.
pub(super) fn is_file_of_samples(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| is_numbered(draft::target_of(name).unwrap_or(name)))
}

fn is_numbered(name: &str) -> bool {
    let is_number = |number: &str| number.bytes().all(|byte| byte.is_ascii_digit());
    name.split_once('.').is_some_and(|(number, kind)| {
        !number.is_empty() && is_number(number) && ["parquet", "spool"].contains(&kind)
    })
}

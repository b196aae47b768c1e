//! The lock of a plan's directory.

use std::{
    fs::{File, OpenOptions},
    path::Path,
};

use anyhow::{Context as _, Result, bail};

use crate::run::{RunDirectory, lock};

/// Whoever measures a plan has this file locked.
const LOCK: &str = "plan.lock";

/// The lock of a plan, so that no two measure it at the same time.
pub(super) fn locked(directory: &RunDirectory, place: &Path) -> Result<File> {
    let path = directory.path().join(LOCK);
    let mut open = OpenOptions::new();
    let file = open.read(true).write(true).create(true).truncate(false).open(&path);
    let file = file.with_context(|| format!("cannot write into {}", place.display()))?;
    if lock::take(&file).is_err() {
        bail!("{} is measured by another tardy at this moment", place.display());
    }
    Ok(file)
}

//! The lock of the directory of a plan or a comparison.

use std::{fs::File, path::Path};

use anyhow::{Context as _, Result, bail};

use crate::run::{RunDirectory, lock};

/// The lock of a plan or a comparison, so that no two measure it at the same time, and nobody
/// removes it meanwhile.
pub(super) fn locked(directory: &RunDirectory, place: &Path, name: &str) -> Result<File> {
    let file = directory.lock_file(name);
    let file = file.with_context(|| format!("cannot lock {}", place.display()))?;
    if lock::take(&file).is_err() {
        bail!("{} is measured by another tardy at this moment", place.display());
    }
    Ok(file)
}

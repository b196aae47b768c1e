//! What lies in a directory that is imported, or beside a file.

use std::{
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    cli::output, exchange::import::MOST_INFO, limits::import::MOST_FILES, plain::plain_path,
};

/// Of a result of wult or ndl: its samples.
const POINTS_FILE: &str = "datapoints.csv";

/// And what is to be known of them, beside it: both are one run.
const INFO_FILE: &str = "info.yml";

/// The files of a directory, in the order of their names; what else is in it is reported.
pub(super) fn files_of(path: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut others) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(path).with_context(|| plain_path(path))? {
        let entry = entry?;
        // Links are not followed: who put one there chooses what is read.
        let kind = entry.file_type()?;
        if kind.is_file() {
            files.push(entry.path());
        } else {
            others.push((entry.path(), kind.is_dir()));
        }
        ensure!(files.len() + others.len() <= MOST_FILES, "{} has too many files", path.display());
    }
    if files.iter().any(|file| file.file_name().is_some_and(|name| name == POINTS_FILE)) {
        files.retain(|file| file.file_name().is_none_or(|name| name != INFO_FILE));
        // Its plots and statistics are of the same samples.
        others.clear();
    }
    others.sort();
    for (other, is_directory) in others {
        let why = match is_directory {
            true => "a directory within one is not read; import it by itself",
            false => "it is a link or the like; import its target",
        };
        output::warn(&format!("skipped: {}: {why}", plain_path(&other)));
    }
    files.sort();
    Ok(files)
}

/// The text of the `info.yml` beside a `datapoints.csv`; `None` without such a file. As in a
/// directory, a link is not followed.
pub(super) fn info_beside(path: &Path) -> Result<Option<String>> {
    if path.file_name().is_none_or(|name| name != POINTS_FILE) {
        return Ok(None);
    }
    let path = path.with_file_name(INFO_FILE);
    let is_file = |path: &Path| fs::symlink_metadata(path).is_ok_and(|about| about.is_file());
    if !is_file(&path) {
        return Ok(None);
    }
    let named = || plain_path(&path);
    let mut text = Vec::new();
    let file = File::open(&path).with_context(named)?;
    file.take(MOST_INFO as u64 + 1).read_to_end(&mut text).with_context(named)?;
    ensure!(text.len() <= MOST_INFO, "{}: it is larger than 64 KiB: it is another file", named());
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

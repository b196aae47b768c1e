//! What lies in a directory that is imported, or beside a file.

use std::{
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};

use crate::{
    cli::output, exchange::import::MOST_INFO, limits::import::MOST_FILES, plain::plain_path,
    run::RunDirectory, store::Store,
};

/// Of a result of wult or ndl: its samples.
const POINTS_FILE: &str = "datapoints.csv";

/// And what is to be known of them, beside it: both are one run.
const INFO_FILE: &str = "info.yml";

/// What directories begin with in which runs are unpacked.
const UNPACKED: &str = ".import-";

/// A new directory of the store for a run that is unpacked. What imports that were killed have left
/// is removed.
pub(super) fn draft_in(store: &Store, id: &str) -> Result<RunDirectory> {
    for entry in fs::read_dir(store.root()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(UNPACKED)?.split_once('-'));
        let maker = maker.and_then(|(maker, _)| Pid::from_raw(maker.parse().ok()?));
        if maker.is_some_and(|maker| test_kill_process(maker) == Err(Errno::SRCH)) {
            // What cannot be removed is in nobody's way.
            let _ = RunDirectory::remove_left(&entry.path());
        }
    }
    let name = format!("{UNPACKED}{}-{id}", std::process::id());
    Ok(RunDirectory::make(&store.root().join(name))?)
}

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

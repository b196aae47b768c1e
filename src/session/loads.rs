//! Starting loads, and looking at them.

use std::{
    borrow::Borrow,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};

use super::LoadProgress;
use crate::{
    loads::{LoadError, LoadSpec, RunningLoad},
    run::{RunDirectory, names},
};

/// How long a load may take until all of its tasks work.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much of a log an error quotes, bytes.
const QUOTED: u64 = 500;

/// Between two questions whether the start shall continue.
const STEP: Duration = Duration::from_millis(100);

/// As [`start`], with the log in the run directory.
///
/// # Errors
/// As there, or that the log cannot be written.
pub(super) fn start_logged(
    specs: &[LoadSpec],
    directory: &RunDirectory,
) -> Result<Vec<Arc<RunningLoad>>> {
    let log = directory.create(names::LOAD_LOG).context("cannot write load.log")?;
    Ok(start(specs, &log, || false)?.into_iter().map(Arc::new).collect())
}

/// Starts the loads, one after the other, each when the one before it works, unless `quit` says
/// that they are no longer wanted. They print into `log`.
///
/// # Errors
/// One of them is not available, or none is wanted; the others are ended. What it printed is in the
/// error, since the log of a run that never began does not stay.
pub(super) fn start(
    specs: &[LoadSpec],
    log: &File,
    mut quit: impl FnMut() -> bool,
) -> Result<Vec<RunningLoad>> {
    let mut loads = Vec::new();
    for spec in specs {
        let own = log.try_clone().context("cannot write the log of the loads")?;
        let load = RunningLoad::start(spec, own, Path::new("/proc/self/exe"))?;
        if let Err(error) = wait_ready(&load, spec, &mut quit) {
            // Its end brings its last words.
            drop(load);
            return Err(with_words(error, log));
        }
        loads.push(load);
    }
    Ok(loads)
}

fn wait_ready(
    load: &RunningLoad,
    spec: &LoadSpec,
    quit: &mut impl FnMut() -> bool,
) -> Result<(), LoadError> {
    let mut waited = Duration::ZERO;
    loop {
        match load.wait_ready(STEP) {
            Err(LoadError::NotReady { load, .. }) => {
                waited += STEP;
                if waited >= PATIENCE {
                    return Err(LoadError::NotReady { load, waited });
                }
            }
            over => return over,
        }
        if quit() {
            return Err(LoadError::Cancelled { load: spec.name.clone() });
        }
    }
}

fn with_words(error: LoadError, log: &File) -> anyhow::Error {
    match last_lines(log) {
        Some(words) => anyhow::anyhow!("{error}: {words}"),
        None => error.into(),
    }
}

/// The end of a log, where it can be read back.
fn last_lines(mut log: &File) -> Option<String> {
    let end = log.seek(SeekFrom::End(0)).ok()?;
    log.seek(SeekFrom::Start(end.saturating_sub(QUOTED))).ok()?;
    let mut bytes = Vec::new();
    log.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let lines: Vec<&str> = text.lines().rev().take(3).filter(|line| !line.is_empty()).collect();
    let lines: Vec<&str> = lines.into_iter().rev().collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

/// What can be shown of them.
pub(super) fn at_a_glance<L: Borrow<RunningLoad>>(
    specs: &[LoadSpec],
    loads: &[L],
) -> Vec<LoadProgress> {
    let progress = |(spec, load): (&LoadSpec, &L)| {
        let load = load.borrow();
        LoadProgress {
            name: spec.name.clone(),
            unit: load.unit(),
            operations: load.latest().map(|now| now.operations),
            died: load.died(),
        }
    };
    specs.iter().zip(loads).map(progress).collect()
}

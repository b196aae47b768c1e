//! Removes the directory of a comparison or a plan with its runs, and nothing else: as
//! `removal.rs` does for one run, and the record goes last too.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use rustix::fs::FileType;

use super::{
    ab_record::{AB, AB_LOCK},
    directory::RunDirectory,
    lock,
    plan_record::{PLAN, PLAN_LOCK},
    removal::{HeldDirectory, RemovableRun, RemoveError, opened},
    viewer_name::is_viewer,
};
use crate::draft;

/// Files beside the records of comparisons and plans.
const FILES: [&str; 5] = [AB_LOCK, PLAN_LOCK, "plan.toml", "check.json", "index.html"];

/// What files begin with that hold what children printed: `cells.log`, `cells-2.log`.
const LOGS: [&str; 3] = ["blocks", "cells", "commands"];

/// Directories of runs.
const RUNS: [&str; 2] = ["blocks", "cells"];

/// The directory of pages that a suite writes.
const PAGES: &str = "index.pages";

/// A comparison or a plan that may be removed, held open with all its runs.
#[derive(Debug)]
pub struct RemovableCampaign {
    path: PathBuf,
    held: HeldDirectory,
    record: &'static str,
    /// All but the record.
    files: Vec<OsString>,
    below: Vec<Below>,
}

/// A directory of it.
#[derive(Debug)]
struct Below {
    name: OsString,
    directory: RunDirectory,
    runs: Vec<RemovableRun>,
    /// Of runs that came to nothing.
    empty: Vec<OsString>,
    files: Vec<OsString>,
}

impl RemovableCampaign {
    /// Opens the comparison or plan in `path` and looks at all that is in it; removes nothing yet.
    ///
    /// # Errors
    /// It is not one, or contains more; or nobody may remove it now, or one of its runs.
    pub fn check(path: &Path) -> Result<Self, RemoveError> {
        let held = opened(path)?;
        let unread = |error: io::Error| none(path, &error.to_string());
        let (mut files, mut below, mut record) = (Vec::new(), Vec::new(), None);
        for (name, kind) in held.directory.listed().map_err(unread)? {
            match kind {
                FileType::RegularFile if name == AB => record = Some(AB),
                FileType::RegularFile if name == PLAN => record = Some(PLAN),
                FileType::RegularFile if is_own_file(&name) => files.push(name),
                FileType::Directory if RUNS.iter().any(|own| name == *own) => {
                    below.push(Below::of_runs(path, &held.directory, name)?);
                }
                FileType::Directory if name == PAGES => {
                    below.push(Below::of_pages(path, &held.directory, name)?);
                }
                _ => return Err(foreign(path, Path::new(&name))),
            }
        }
        let record = record.ok_or_else(|| none(path, "it has neither ab.json nor plan.json"))?;
        let is_held = |name: &OsString| {
            let is_lock = name == AB_LOCK || name == PLAN_LOCK;
            let file = held.directory.read(name.to_str().unwrap_or_default());
            is_lock && file.and_then(|file| lock::is_held(&file)).unwrap_or(false)
        };
        if files.iter().any(is_held) {
            return Err(RemoveError::Running(path.into()));
        }
        Ok(Self { path: path.into(), held, record, files, below })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, its runs first.
    ///
    /// # Errors
    /// What the disk says, or something came into it meanwhile.
    pub fn remove(self) -> Result<(), RemoveError> {
        let Self { path, held, record, files, below } = self;
        let unremoved = |source| RemoveError::Unremoved { path: path.clone(), source };
        for Below { name, directory, runs, empty, files } in below {
            runs.into_iter().try_for_each(RemovableRun::remove)?;
            empty
                .iter()
                .try_for_each(|name| directory.remove_directory(name))
                .map_err(unremoved)?;
            files.iter().try_for_each(|name| directory.remove(name)).map_err(unremoved)?;
            held.directory.remove_directory(&name).map_err(unremoved)?;
        }
        files.iter().try_for_each(|name| held.directory.remove(name)).map_err(unremoved)?;
        held.directory.remove(record).map_err(unremoved)?;
        held.above.remove_directory(&held.name).map_err(unremoved)
    }
}

impl Below {
    /// A directory with a run in each of its directories.
    fn of_runs(path: &Path, above: &RunDirectory, name: OsString) -> Result<Self, RemoveError> {
        let unread = |error: io::Error| none(path, &error.to_string());
        let directory = above.entered(&name).map_err(unread)?;
        let (mut runs, mut empty) = (Vec::new(), Vec::new());
        for (run, kind) in directory.listed().map_err(unread)? {
            let place = Path::new(&name).join(&run);
            if kind != FileType::Directory {
                return Err(foreign(path, &place));
            }
            let held = directory.entered(&run).map_err(unread)?;
            if held.listed().map_err(unread)?.is_empty() {
                empty.push(run);
                continue;
            }
            let held = HeldDirectory { above: directory.clone(), name: run, directory: held };
            runs.push(RemovableRun::of(&path.join(place), held)?);
        }
        Ok(Self { name, directory, runs, empty, files: Vec::new() })
    }

    /// A directory of pages, with the viewers that they share.
    fn of_pages(path: &Path, above: &RunDirectory, name: OsString) -> Result<Self, RemoveError> {
        let unread = |error: io::Error| none(path, &error.to_string());
        let directory = above.entered(&name).map_err(unread)?;
        let mut files = Vec::new();
        for (page, kind) in directory.listed().map_err(unread)? {
            let own = target(&page);
            let is_page = Path::new(own).extension().is_some_and(|kind| kind == "html");
            if kind != FileType::RegularFile || !(is_page || is_viewer(own)) {
                return Err(foreign(path, &Path::new(&name).join(page)));
            }
            files.push(page);
        }
        Ok(Self { name, directory, runs: Vec::new(), empty: Vec::new(), files })
    }
}

/// The name of a file, or of the one that it is a draft of.
fn target(name: &OsStr) -> &str {
    name.to_str().map_or("", |name| draft::target_of(name).unwrap_or(name))
}

fn is_own_file(name: &OsStr) -> bool {
    let name = target(name);
    let is_log = |of: &str| {
        let rest = name.strip_prefix(of).and_then(|rest| rest.strip_suffix(".log"));
        let number = |rest: &str| rest.strip_prefix('-').is_some_and(|n| n.parse::<u32>().is_ok());
        rest.is_some_and(|rest| rest.is_empty() || number(rest))
    };
    [AB, PLAN].contains(&name) || FILES.contains(&name) || LOGS.iter().any(|of| is_log(of))
}

fn foreign(path: &Path, name: &Path) -> RemoveError {
    RemoveError::Foreign { path: path.into(), name: name.to_string_lossy().into_owned() }
}

fn none(path: &Path, what: &str) -> RemoveError {
    RemoveError::NoRun { path: path.into(), what: what.into() }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    /// A plan with two runs, one cell that came to nothing, and pages.
    fn place() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let plan = place.path().join("plan");
        for (name, text) in [
            ("plan.json", "{"),
            ("plan.toml", ""),
            ("plan.lock", ""),
            (".plan.json.9f86d081884c7d65.tmp", ""),
            ("cells.log", ""),
            ("commands-2.log", ""),
            ("index.html", ""),
            ("index.pages/1.html", ""),
            ("index.pages/tardy-viewer-0123456789abcdef.js", ""),
            ("index.pages/.tardy-viewer-0123456789abcdef.js.9f86d081884c7d65.tmp", ""),
            ("cells/a-1/run.json", RECORD),
            ("cells/a-1/series.hlog", ""),
            ("cells/b-1/run.json", RECORD),
        ] {
            fs::create_dir_all(plan.join(name).parent().unwrap()).unwrap();
            fs::write(plan.join(name), text).unwrap();
        }
        fs::create_dir(plan.join("cells/c-1")).unwrap();
        fs::write(place.path().join("kept"), "kept").unwrap();
        place
    }

    const RECORD: &str = r#"{"schema_version": 2, "id": "i", "name": "n", "status": "complete",
        "started_at": "2026-01-01T00:00:00Z"}"#;

    fn refused(path: &Path) -> String {
        let error = RemovableCampaign::check(path).unwrap_err().to_string();
        assert!(error.contains("Nothing was removed"), "{error}");
        error
    }

    #[test]
    fn a_plan_goes_with_its_runs_and_with_nothing_beside_it() {
        let place = place();
        RemovableCampaign::check(&place.path().join("plan")).unwrap().remove().unwrap();
        let left: Vec<_> = fs::read_dir(place.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1);
        assert_eq!(fs::read_to_string(place.path().join("kept")).unwrap(), "kept");
    }

    #[test]
    fn with_anything_else_in_it_all_of_it_stays() {
        let place = place();
        let plan = place.path().join("plan");
        for name in ["thesis.tex", "cells/notes", "cells/a-1/notes", "index.pages/x.js"] {
            fs::write(plan.join(name), "x").unwrap();
            let said = refused(&plan);
            assert!(
                said.contains(Path::new(name).file_name().unwrap().to_str().unwrap()),
                "{said}"
            );
            fs::remove_file(plan.join(name)).unwrap();
        }
        for name in ["cells-x.log", "cells/.x", "blocks"] {
            symlink(place.path().join("kept"), plan.join(name)).unwrap();
            refused(&plan);
            fs::remove_file(plan.join(name)).unwrap();
        }
        refused(place.path());
        fs::remove_file(plan.join("plan.json")).unwrap();
        assert!(refused(&plan).contains("neither ab.json nor plan.json"));
        assert!(plan.join("cells/a-1/series.hlog").exists());
    }
}

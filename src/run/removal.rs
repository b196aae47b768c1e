//! Removes a run directory, and nothing else: all that is in it must be what tardy writes.
//!
//! As all writing (`directory.rs`) it is done relative to open directories and through no link, so
//! that nothing is lost that takes the place of a run meanwhile. The record goes last: what a kill
//! leaves is still a run, and can be removed.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::{fs::FileType, process::geteuid};
use thiserror::Error;

use super::{
    directory::RunDirectory,
    document::Status,
    entry::RunHead,
    lock,
    parts::{is_file_of_run, is_file_of_samples},
    writer::names,
};

/// Why a run was not removed.
#[derive(Debug, Error)]
pub enum RemoveError {
    /// A link leads to it.
    #[error("{} is a symbolic link; name the directory itself. Nothing was removed", .0.display())]
    Link(PathBuf),
    /// It is another user's, and root was to remove it.
    #[error(
        "{} belongs to user {uid}, who could change it meanwhile; remove it as that user. Nothing \
         was removed",
        .path.display()
    )]
    OtherOwner {
        /// The directory.
        path: PathBuf,
        /// The number of its owner.
        uid: u32,
    },
    /// Nothing that tardy knows.
    #[error("{} is not a run that tardy can remove: {what}. Nothing was removed", .path.display())]
    NoRun {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Its maker is alive.
    #[error("{} is still being measured; end that first. Nothing was removed", .0.display())]
    Running(PathBuf),
    /// Something of somebody else's is in it.
    #[error(
        "{} holds {name:?}, which tardy did not write; move that elsewhere. Nothing was removed",
        .path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// What is in it, by its name.
        name: String,
    },
    /// A part of it is still there.
    #[error("{} was not removed whole: {source}", .path.display())]
    Unremoved {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A run directory that may be removed, held open.
#[derive(Debug)]
pub struct RemovableRun {
    path: PathBuf,
    above: RunDirectory,
    name: OsString,
    directory: RunDirectory,
    /// All but the record.
    files: Vec<OsString>,
    samples: Option<(RunDirectory, Vec<OsString>)>,
}

impl RemovableRun {
    /// Opens the run in `path` and looks at all that is in it; removes nothing yet.
    ///
    /// # Errors
    /// It is not a run, or contains more; or nobody may remove it now.
    pub fn check(path: &Path) -> Result<Self, RemoveError> {
        Self::of(path, opened(path)?)
    }

    /// The same of one that is held open.
    pub(super) fn of(path: &Path, held: HeldDirectory) -> Result<Self, RemoveError> {
        let no_run = |what: String| RemoveError::NoRun { path: path.into(), what };
        let unread = |error: io::Error| no_run(error.to_string());
        let HeldDirectory { above, name, directory } = held;
        let head = RunHead::read(&directory.path()).map_err(|error| no_run(error.to_string()))?;
        let record = directory.read(names::RUN).map_err(unread)?;
        // Where nobody can be asked, the record is believed.
        if lock::is_held(&record).unwrap_or(head.status == Status::Running) {
            return Err(RemoveError::Running(path.into()));
        }
        let (files, samples) = known(path, &directory)?;
        Ok(Self { path: path.into(), above, name, directory, files, samples })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it.
    ///
    /// # Errors
    /// What the disk says, or something came into it meanwhile.
    pub fn remove(self) -> Result<(), RemoveError> {
        let removed = self.take_away();
        removed.map_err(|source| RemoveError::Unremoved { path: self.path, source })
    }

    fn take_away(&self) -> io::Result<()> {
        if let Some((samples, files)) = &self.samples {
            files.iter().try_for_each(|name| samples.remove(name))?;
            self.directory.remove_directory(OsStr::new(names::SAMPLES))?;
        }
        self.files.iter().try_for_each(|name| self.directory.remove(name))?;
        self.directory.remove(names::RUN)?;
        self.above.remove_directory(&self.name)
    }
}

/// A directory that may be removed, and the one above it, held open.
#[derive(Debug)]
pub(super) struct HeldDirectory {
    pub above: RunDirectory,
    pub name: OsString,
    pub directory: RunDirectory,
}

/// Opens what is to be removed, through no link; for root nothing of another user.
pub(super) fn opened(path: &Path) -> Result<HeldDirectory, RemoveError> {
    let no_run = |what: String| RemoveError::NoRun { path: path.into(), what };
    let unread = |error: io::Error| no_run(error.to_string());
    let name = path.file_name().ok_or_else(|| no_run("name it by its path".into()))?;
    let about = fs::symlink_metadata(path).map_err(unread)?;
    if about.is_symlink() {
        return Err(RemoveError::Link(path.into()));
    }
    if geteuid().is_root() && about.uid() != 0 {
        return Err(RemoveError::OtherOwner { path: path.into(), uid: about.uid() });
    }
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let above = RunDirectory::around(above.unwrap_or(Path::new("."))).map_err(unread)?;
    let directory = above.entered(name).map_err(unread)?;
    Ok(HeldDirectory { above, name: name.to_owned(), directory })
}

/// What a run consists of, but its record: its files, and its directory of samples with those in
/// there.
type Parts = (Vec<OsString>, Option<(RunDirectory, Vec<OsString>)>);

/// All that is in a run.
fn known(path: &Path, directory: &RunDirectory) -> Result<Parts, RemoveError> {
    let unread =
        |error: io::Error| RemoveError::NoRun { path: path.into(), what: error.to_string() };
    let foreign = |name: &OsStr| {
        let name = name.to_string_lossy().into_owned();
        Err(RemoveError::Foreign { path: path.into(), name })
    };
    let (mut files, mut samples) = (Vec::new(), None);
    for (name, kind) in directory.listed().map_err(unread)? {
        match kind {
            FileType::RegularFile if name == names::RUN => {}
            FileType::RegularFile if is_file_of_run(&name) => files.push(name),
            FileType::Directory if name == names::SAMPLES => {
                let below = directory.entered(&name).map_err(unread)?;
                let inside = below.listed().map_err(unread)?;
                let is_odd = |(name, kind): &&(OsString, FileType)| {
                    *kind != FileType::RegularFile || !is_file_of_samples(name)
                };
                if let Some((odd, _)) = inside.iter().find(is_odd) {
                    return foreign(Path::new(names::SAMPLES).join(odd).as_os_str());
                }
                samples = Some((below, inside.into_iter().map(|(name, _)| name).collect()));
            }
            _ => return foreign(&name),
        }
    }
    Ok((files, samples))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    const RECORD: &str = r#"{"schema_version": 2, "id": "i", "name": "n", "status": "complete",
        "started_at": "2026-01-01T00:00:00Z"}"#;

    /// A place with a run in it, and a file beside that.
    fn place() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("run");
        fs::create_dir_all(run.join("samples")).unwrap();
        fs::write(run.join("run.json"), RECORD).unwrap();
        let others = ["series.hlog", "load.log", ".run.json.9f86d081884c7d65.tmp"];
        let samples = ["samples/000001.parquet", "samples/000002.spool"];
        for name in others.iter().chain(&samples) {
            fs::write(run.join(name), "x").unwrap();
        }
        fs::write(place.path().join("kept"), "kept").unwrap();
        place
    }

    fn refused(path: &Path) -> String {
        let before = count(path);
        let error = RemovableRun::check(path).unwrap_err().to_string();
        assert!(error.contains("Nothing was removed"), "{error}");
        assert_eq!(count(path), before, "{error}");
        error
    }

    fn count(path: &Path) -> usize {
        fs::read_dir(path).map_or(0, Iterator::count)
    }

    #[test]
    fn a_run_goes_with_all_its_files_and_with_nothing_beside_it() {
        let place = place();
        RemovableRun::check(&place.path().join("run")).unwrap().remove().unwrap();
        assert_eq!(count(place.path()), 1);
        assert_eq!(fs::read_to_string(place.path().join("kept")).unwrap(), "kept");
    }

    #[test]
    fn what_is_no_run_or_holds_more_than_one_stays_as_it_is() {
        let place = place();
        let run = place.path().join("run");
        assert!(refused(place.path()).contains("not a run that tardy can remove"));
        assert!(refused(&run.join("..")).contains("name it by its path"));
        assert!(refused(&place.path().join("nosuch")).contains("No such file"));
        for (name, said) in [
            ("thesis.tex", "\"thesis.tex\""),
            ("samples/notes.txt", "\"samples/notes.txt\""),
            ("samples/.parquet", "\"samples/.parquet\""),
            (".run.json.tmp", "\".run.json.tmp\""),
        ] {
            fs::write(run.join(name), "x").unwrap();
            assert!(refused(&run).contains(said), "{name}");
            fs::remove_file(run.join(name)).unwrap();
        }
        fs::create_dir(run.join("peaks.jsonl")).unwrap();
        assert!(refused(&run).contains("\"peaks.jsonl\""), "a directory in the place of a file");
        fs::remove_dir(run.join("peaks.jsonl")).unwrap();
        fs::write(run.join("run.json"), "{").unwrap();
        refused(&run);
    }

    #[test]
    fn no_link_is_followed() {
        let place = place();
        let (run, link) = (place.path().join("run"), place.path().join("link"));
        symlink(&run, &link).unwrap();
        assert!(refused(&link).contains("symbolic link"));
        symlink(place.path().join("kept"), run.join("peaks.jsonl")).unwrap();
        assert!(refused(&run).contains("\"peaks.jsonl\""));
        fs::remove_file(run.join("peaks.jsonl")).unwrap();
        fs::rename(run.join("samples"), place.path().join("elsewhere")).unwrap();
        symlink(place.path().join("elsewhere"), run.join("samples")).unwrap();
        assert!(refused(&run).contains("\"samples\""));
    }

    #[test]
    fn what_takes_the_place_of_a_run_that_was_looked_at_loses_nothing() {
        let place = place();
        let (run, moved) = (place.path().join("run"), place.path().join("moved"));
        let removable = RemovableRun::check(&run).unwrap();
        fs::rename(&run, &moved).unwrap();
        fs::create_dir(&run).unwrap();
        fs::write(run.join("run.json"), RECORD).unwrap();
        let error = removable.remove().unwrap_err().to_string();
        assert!(error.contains("was not removed whole"), "{error}");
        assert_eq!((count(&run), count(&moved)), (1, 0));
    }

    #[test]
    fn what_comes_into_it_meanwhile_is_kept() {
        let place = place();
        let run = place.path().join("run");
        let removable = RemovableRun::check(&run).unwrap();
        fs::write(run.join("thesis.tex"), "three years of work").unwrap();
        removable.remove().unwrap_err();
        assert_eq!(fs::read_to_string(run.join("thesis.tex")).unwrap(), "three years of work");
    }

    #[test]
    fn root_removes_nothing_of_another_user() {
        if !geteuid().is_root() {
            return eprintln!("skipped: needs root");
        }
        let place = place();
        let run = place.path().join("run");
        chown(run.join("samples"), Some(65_534), None).unwrap();
        assert!(refused(&run).contains("samples belongs to user 65534"));
        chown(&run, Some(65_534), None).unwrap();
        assert!(refused(&run).contains("belongs to user 65534, who could change it"));
    }
}

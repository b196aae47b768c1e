//! A copy of a run, for those who keep runs or hand them on.

use std::{fs, io, path::Path};

use super::{directory::RunDirectory, files, writer::names};

/// Copies all directories and regular files of `from`; links and the like are left out. The record
/// comes last: a reader finds either no run, or a complete one.
///
/// # Errors
/// What the disk says, or something has the name of a file already; what was copied is left.
pub fn copy(from: &Path, to: &RunDirectory) -> io::Result<()> {
    let mut entries = fs::read_dir(from)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(|entry| entry.file_name() == names::RUN);
    for entry in entries {
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() {
            copy(&path, &to.subdirectory(entry.file_name())?)?;
        } else if kind.is_file() {
            io::copy(&mut files::open(&path)?, &mut to.create(entry.file_name())?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn made(at: &Path) -> RunDirectory {
        fs::create_dir_all(at.join("from/samples")).unwrap();
        fs::write(at.join("from/run.json"), "{}").unwrap();
        fs::write(at.join("from/samples/0001.parquet"), "samples").unwrap();
        fs::write(at.join("other"), "other").unwrap();
        symlink(at.join("other"), at.join("from/link")).unwrap();
        RunDirectory::make(&at.join("to")).unwrap()
    }

    #[test]
    fn files_and_directories_are_copied_and_links_are_not() {
        let place = tempfile::tempdir().unwrap();
        let to = made(place.path());
        copy(&place.path().join("from"), &to).unwrap();
        assert_eq!(fs::read_to_string(place.path().join("to/run.json")).unwrap(), "{}");
        let samples = place.path().join("to/samples/0001.parquet");
        assert_eq!(fs::read_to_string(samples).unwrap(), "samples");
        assert_eq!(fs::read_dir(place.path().join("to")).unwrap().count(), 2);
    }

    #[test]
    fn nothing_is_written_through_a_link_and_without_the_rest_there_is_no_record() {
        let place = tempfile::tempdir().unwrap();
        let to = made(place.path());
        fs::create_dir(place.path().join("elsewhere")).unwrap();
        symlink(place.path().join("elsewhere"), place.path().join("to/samples")).unwrap();
        copy(&place.path().join("from"), &to).unwrap_err();
        assert_eq!(fs::read_dir(place.path().join("elsewhere")).unwrap().count(), 0);
        assert!(!place.path().join("to/run.json").exists());
        fs::remove_file(place.path().join("to/samples")).unwrap();
        symlink(place.path().join("other"), place.path().join("to/run.json")).unwrap();
        copy(&place.path().join("from"), &to).unwrap_err();
        assert_eq!(fs::read_to_string(place.path().join("other")).unwrap(), "other");
    }
}

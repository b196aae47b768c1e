//! The one door through which files of a run, and those beside it, are opened for reading.
//!
//! A run may come from anywhere. What stands under a name of it may be a FIFO, which never opens, a
//! device, which acts when it is opened, or a link to something that the author of the run could
//! not read himself. Directories on the way to a run may be links: those the user has chosen.

use std::{
    fs::{self, File, FileType, Metadata, OpenOptions},
    io::{self, ErrorKind, Read as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

use crate::limits::ONLY_FROM_ELSEWHERE;

/// Characters of what is said to be wrong with a file: a parser may quote all of it.
pub(super) const LONGEST_DAMAGE: usize = 300;

/// Opens a regular file.
///
/// # Errors
/// What the system says; [`ErrorKind::InvalidData`] where something else stands there.
pub fn open(path: &Path) -> io::Result<File> {
    // Looked at before it is opened: to open a device may already do something.
    refuse_others(&fs::symlink_metadata(path)?)?;
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    // Another may stand there by now. A FIFO opens at once with these flags.
    regular(OpenOptions::new().read(true).custom_flags(flags).open(path)?)
}

/// The file, if it is a regular one.
pub(super) fn regular(file: File) -> io::Result<File> {
    refuse_others(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file of at most `most` bytes, a multiple of a MiB.
///
/// # Errors
/// As [`open`], and [`ErrorKind::InvalidData`] where it is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_whole(&open(path)?, most)
}

/// Reads what is left of a file that was opened by [`open`].
///
/// # Errors
/// As [`read`].
pub fn read_whole(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let limit = most >> 20;
        return Err(unusable(format!("it is larger than {limit} MiB; {ONLY_FROM_ELSEWHERE}")));
    }
    Ok(bytes)
}

/// The error of a file that is there, and is not what it should be.
pub(super) fn unusable(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

fn refuse_others(about: &Metadata) -> io::Result<()> {
    if about.is_file() {
        return Ok(());
    }
    Err(unusable(format!("it is {}", kind(about.file_type()))))
}

fn kind(found: FileType) -> &'static str {
    match found {
        found if found.is_symlink() => {
            "a symbolic link, and files of a run must be files: copy the run with `cp -rL` if you \
             trust it"
        }
        found if found.is_dir() => "a directory, not a file",
        found if found.is_fifo() => "a FIFO, not a file",
        found if found.is_socket() => "a socket, not a file",
        _ => "a device, not a file",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};

    use super::*;

    fn refusal(path: &Path) -> String {
        let error = read(path, 1 << 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        error.to_string()
    }

    #[test]
    fn only_a_regular_file_is_opened_and_nothing_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let (file, other) = (directory.path().join("file"), directory.path().join("other"));
        fs::write(&file, "text").unwrap();
        assert_eq!(read(&file, 1 << 20).unwrap(), b"text");
        mknodat(CWD, &other, Kind::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(refusal(&other), "it is a FIFO, not a file");
        fs::remove_file(&other).unwrap();
        symlink(&file, &other).unwrap();
        assert!(refusal(&other).starts_with("it is a symbolic link"));
        assert_eq!(refusal(directory.path()), "it is a directory, not a file");
        assert_eq!(refusal(Path::new("/dev/null")), "it is a device, not a file");
        let missing = read(&directory.path().join("missing"), 1).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn directories_on_the_way_may_be_links() {
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("real"), directory.path().join("link"));
        fs::create_dir(&real).unwrap();
        fs::write(real.join("run.json"), "{}").unwrap();
        symlink(&real, &link).unwrap();
        assert_eq!(read(&link.join("run.json"), 1 << 20).unwrap(), b"{}");
    }

    #[test]
    fn a_file_over_its_limit_is_refused_with_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        let sparse = File::create(&file).unwrap();
        sparse.set_len(2 << 20).unwrap();
        assert_eq!(read(&file, 2 << 20).unwrap().len(), 2 << 20);
        let what = refusal(&file);
        assert!(what.starts_with("it is larger than 1 MiB; tardy writes no such file"), "{what}");
    }
}

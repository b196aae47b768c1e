//! What is in a directory that is held open.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat, unlinkat};

use super::LISTED;

/// The names in a directory, and what each is.
pub(super) fn entries(directory: &OwnedFd) -> io::Result<Vec<(OsString, FileType)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let mut kind = entry.file_type();
        if kind == FileType::Unknown {
            let about = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
            kind = FileType::from_raw_mode(about.st_mode);
        }
        found.push((name.to_owned(), kind));
    }
    Ok(found)
}

/// Removes what is in a directory, as far as it can be removed.
pub(super) fn empty(directory: &OwnedFd) {
    for (name, kind) in entries(directory).unwrap_or_default() {
        if kind != FileType::Directory {
            let _ = unlinkat(directory, &name, AtFlags::empty());
            continue;
        }
        if let Ok(below) = openat(directory, &name, LISTED | OFlags::NOFOLLOW, Mode::empty()) {
            empty(&below);
        }
        let _ = unlinkat(directory, &name, AtFlags::REMOVEDIR);
    }
}

//! Reads small files under /proc and /sys, with a size limit.

use std::{fs::File, io::Read, path::Path, str::FromStr};

/// Size limit in bytes, above that of every file that tardy reads there.
const LIMIT: u64 = 4 << 20;

/// Content of a file without trailing white space; `None` if unreadable.
#[must_use]
pub fn read(path: impl AsRef<Path>) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(LIMIT).read_to_string(&mut text).ok()?;
    text.truncate(text.trim_end().len());
    Some(text)
}

/// A file that holds one value.
#[must_use]
pub fn value<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    read(path)?.trim().parse().ok()
}

//! Small texts of the kernel under /proc and /sys, read whole with a bound.

use std::{fs::File, io::Read, path::Path, str::FromStr};

/// More than any file tardy reads there.
const LIMIT: u64 = 4 << 20;

/// The text of a file without the white space at its end; `None` if it cannot be read.
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

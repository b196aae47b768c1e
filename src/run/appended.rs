//! Files of a run that grow: whatever the disk refuses, each ends where an append ended.

use std::{
    fs::File,
    io::{self, Write as _},
};

use super::directory::RunDirectory;

/// A file that only ever ends where an append ended.
#[derive(Debug)]
pub(super) struct Appended {
    /// It itself.
    pub file: File,
    length: u64,
}

impl Appended {
    /// A new one.
    pub(super) fn create(directory: &RunDirectory, name: &str) -> io::Result<Self> {
        Ok(Self { file: directory.create(name)?, length: 0 })
    }

    /// Appends all of it, or nothing.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes);
        match &written {
            Ok(()) => self.length += bytes.len() as u64,
            Err(_) => drop(self.file.set_len(self.length)),
        }
        written
    }
}

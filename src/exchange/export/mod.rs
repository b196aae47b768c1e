//! Runs for other programs to read: one file a format, one line of [`FORMATS`] each.

mod checks;
mod junit;
mod tap;

use std::io;

pub(crate) use self::checks::CheckedRun;

/// A format that runs can be written in.
pub(crate) struct ExportFormat {
    /// What `--to` calls it.
    pub(crate) name: &'static str,
    /// Writes the runs, with what their gates came to.
    pub(crate) write: fn(&[CheckedRun]) -> io::Result<Vec<u8>>,
}

/// Every format, in the order of the help text.
pub(crate) const FORMATS: [ExportFormat; 2] = [
    ExportFormat { name: "junit", write: junit::write },
    ExportFormat { name: "tap", write: tap::write },
];

impl ExportFormat {
    /// The one of this name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }
}

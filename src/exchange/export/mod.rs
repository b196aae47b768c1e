//! Runs for other programs to read: one file a format, one line of [`FORMATS`] each.

mod checks;
mod folded;
mod junit;
mod pprof;
mod tap;

use std::io;

pub(crate) use self::checks::CheckedRun;
use crate::run::profile::Profile;

/// What a format is made of.
#[derive(Clone, Copy)]
pub(crate) enum ExportWriter {
    /// Runs, with what their gates came to.
    Checks(fn(&[CheckedRun]) -> io::Result<Vec<u8>>),
    /// The profile of one run, as text.
    Profile(fn(&Profile) -> io::Result<Vec<u8>>),
    /// The same, as no text: it goes to a file alone.
    ProfileFile(fn(&Profile) -> io::Result<Vec<u8>>),
}

/// A format that runs can be written in.
pub(crate) struct ExportFormat {
    /// What `--to` calls it.
    pub(crate) name: &'static str,
    /// Writes it.
    pub(crate) write: ExportWriter,
}

/// Every format, in the order of the help text.
pub(crate) const FORMATS: [ExportFormat; 4] = [
    ExportFormat { name: "junit", write: ExportWriter::Checks(junit::write) },
    ExportFormat { name: "tap", write: ExportWriter::Checks(tap::write) },
    ExportFormat { name: "folded", write: ExportWriter::Profile(folded::write) },
    ExportFormat { name: "pprof", write: ExportWriter::ProfileFile(pprof::write) },
];

impl ExportFormat {
    /// The one of this name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }
}

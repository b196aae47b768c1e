//! Reads `run.json`, whole or in part, within limits: a short file can ask for much memory.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use serde::{Deserialize, de::DeserializeOwned};
use thiserror::Error;

use super::{
    author::Author,
    document::{Document, SCHEMA_VERSION},
    files::{self, LONGEST_DAMAGE},
    lock,
    messages::MessageRecord,
    writer::names,
};
use crate::limits::{
    ONLY_FROM_ELSEWHERE,
    record::{JSON, LARGEST_RECORD, MOST_ROWS},
};
use crate::plain::cut;

/// Why a run could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// No run there.
    #[error("{} is not a run directory: {source}", .path.display())]
    NoRun {
        /// The directory.
        path: PathBuf,
        /// What the system said of its `run.json`.
        source: io::Error,
    },
    /// It is there, and the system does not read it.
    #[error(
        "{} cannot be read: {source}; check its permissions, and the disk (dmesg)",
        .path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Not what a `run.json` holds.
    #[error("{} is damaged: {what}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line, column and field.
        what: String,
    },
    /// No regular file, or more in it than tardy reads.
    #[error("{} is not read: {what}", .path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What it is, or the limit that it passes.
        what: String,
    },
    /// Written by a newer tardy.
    #[error(
        "{} has schema version {found}, and this tardy reads up to {SCHEMA_VERSION}; \
         open it with the tardy that made it, or a newer one", .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

impl OpenError {
    /// The same of a directory that is held open, and that the caller names: what is in it is
    /// called by its name alone.
    pub(super) fn in_held(self) -> Self {
        let name = |path: PathBuf| path.file_name().map(PathBuf::from).unwrap_or(path);
        match self {
            Self::NoRun { source, .. } => Self::NoRun { path: "it".into(), source },
            Self::Unreadable { path, source } => Self::Unreadable { path: name(path), source },
            Self::Damaged { path, what } => Self::Damaged { path: name(path), what },
            Self::Refused { path, what } => Self::Refused { path: name(path), what },
            Self::Newer { path, found } => Self::Newer { path: name(path), found },
        }
    }

    /// Of the run in `path`, where its record could not be opened or read.
    pub(super) fn unread(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            ErrorKind::InvalidData => {
                Self::Refused { path: path.join(names::RUN), what: source.to_string() }
            }
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                Self::NoRun { path: path.into(), source }
            }
            _ => Self::Unreadable { path: path.join(names::RUN), source },
        }
    }
}

/// What `run.json` is read as: all of it, or the part that is needed.
pub(super) trait Record: DeserializeOwned {
    /// The version that it was written in.
    fn schema_version(&self) -> u32;

    /// How many series it has, and what else has a row each: how many, and what they are.
    fn rows(&self) -> Vec<(usize, &'static str)>;

    /// Reads one of an older version.
    fn from_older(text: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(text)
    }
}

impl Record for Document {
    fn schema_version(&self) -> u32 {
        self.schema_version
    }

    fn rows(&self) -> Vec<(usize, &'static str)> {
        let mut rows = rows(self.series.len(), self.messages.as_ref());
        rows.push((self.figures.len(), "figures"));
        rows
    }

    fn from_older(text: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(text).and_then(Self::from_json)
    }
}

/// The rows of a record with `series` series.
pub(super) fn rows(series: usize, messages: Option<&MessageRecord>) -> Vec<(usize, &'static str)> {
    let of = |count: fn(&MessageRecord) -> usize| messages.map_or(0, count);
    vec![
        (series, "series"),
        (of(|messages| messages.ends.len()), "ends"),
        (of(|messages| messages.flows.len()), "flows"),
    ]
}

/// A record, and what the open file says beside it.
#[derive(Debug)]
pub(super) struct RecordFile<T> {
    /// What it holds.
    pub record: T,
    /// Whether its maker is alive.
    pub is_alive: bool,
    /// Who can have written it.
    pub author: Author,
}

/// Reads the `run.json` of the run in `path`.
pub(super) fn read_record<T: Record>(path: &Path) -> Result<RecordFile<T>, OpenError> {
    let unread = |source| OpenError::unread(path, source);
    let record = path.join(names::RUN);
    let file = files::open(&record).map_err(unread)?;
    let author = Author::of(&file).map_err(unread)?;
    let text = files::read_whole(&file, LARGEST_RECORD).map_err(unread)?;
    let refused = |what| OpenError::Refused { path: record.clone(), what };
    JSON.check(&text).map_err(refused)?;
    let read = parse::<T>(&text, &record)?;
    if let Some((count, what)) = read.rows().into_iter().find(|(count, _)| *count > MOST_ROWS) {
        return Err(refused(format!(
            "it has {count} {what}, and at most {MOST_ROWS} are read; {ONLY_FROM_ELSEWHERE}"
        )));
    }
    Ok(RecordFile { record: read, is_alive: lock::is_held(&file).unwrap_or(false), author })
}

fn parse<T: Record>(text: &[u8], record: &Path) -> Result<T, OpenError> {
    let read = serde_json::from_slice::<T>(text);
    // A newer one may have fields of other types: its version is the better answer then.
    let version = match &read {
        Ok(read) => Ok(read.schema_version()),
        Err(_) => serde_json::from_slice(text).map(|Version { schema_version }| schema_version),
    };
    let damaged = |error: serde_json::Error| OpenError::Damaged {
        path: record.into(),
        what: cut(&error.to_string(), LONGEST_DAMAGE),
    };
    let found = version.map_err(damaged)?;
    if found > SCHEMA_VERSION {
        return Err(OpenError::Newer { path: record.into(), found });
    }
    let read = if found < SCHEMA_VERSION { T::from_older(text) } else { read };
    read.map_err(damaged)
}

#[derive(Deserialize)]
struct Version {
    schema_version: u32,
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    /// What is said of a record of version 2 with this `extra` beside its version.
    fn refusal(extra: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let text = format!("{{\"schema_version\": 2, {extra}}}");
        fs::write(directory.path().join(names::RUN), text).unwrap();
        let error = read_record::<Document>(directory.path()).unwrap_err();
        assert!(error.to_string().contains("run.json"), "{error}");
        error.to_string()
    }

    #[test]
    fn a_record_that_would_fill_the_memory_is_refused_with_the_limit_it_passes() {
        let objects = "{\"\":0},".repeat(JSON.objects + 1);
        let what = refusal(&format!("\"loads\": [{objects}0]"));
        assert!(what.contains("its \"loads\" holds more than 262144 objects of JSON; "), "{what}");
        // As deep as the parser goes, so that there are few commas.
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        let lists = vec![deep; JSON.lists / 100 + 1].join(",");
        let what = refusal(&format!("\"loads\": [{lists}]"));
        assert!(what.contains("its \"loads\" holds more than 262144 lists of JSON; "), "{what}");
        let what = refusal(&format!("\"argv\": [{}0]", "0,".repeat(JSON.elements + 1)));
        assert!(what.contains("its \"argv\" holds more than 2097152 elements"), "{what}");
        let what = refusal(&format!("\"name\": \"{}\"", "x".repeat(JSON.string + 1)));
        assert!(what.contains("its \"name\" holds more than 262144 bytes in a string"), "{what}");
        let what = refusal(&format!("\"name\": \"{}\"", "x".repeat(LARGEST_RECORD as usize)));
        assert!(what.contains("it is larger than 32 MiB; "), "{what}");
        assert!(what.ends_with(ONLY_FROM_ELSEWHERE), "{what}");
    }

    #[test]
    fn more_rows_than_any_table_has_are_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1/pingpong");
        let mut record = read_record::<Document>(&fixture).unwrap().record;
        let said = |record: &Document| {
            let text = serde_json::to_vec(record).unwrap();
            fs::write(directory.path().join(names::RUN), text).unwrap();
            read_record::<Document>(directory.path()).map(drop).map_err(|error| error.to_string())
        };
        let messages = record.messages.as_mut().unwrap();
        messages.ends = vec![messages.ends[0].clone(); MOST_ROWS];
        said(&record).unwrap();
        let messages = record.messages.as_mut().unwrap();
        messages.ends.push(messages.ends[0].clone());
        let what = said(&record).unwrap_err();
        assert!(what.contains("it has 16385 ends, and at most 16384 are read; "), "{what}");
        let messages = record.messages.as_mut().unwrap();
        messages.ends.clear();
        messages.flows = vec![messages.flows[0].clone(); MOST_ROWS + 1];
        assert!(said(&record).unwrap_err().contains("it has 16385 flows"));
    }

    #[test]
    fn an_error_that_quotes_the_record_is_short_and_steers_no_terminal() {
        let status = json!("\u{1b}]52;c;aGk=\u{7}".repeat(10_000));
        let what = refusal(&format!("\"status\": {status}"));
        assert!(what.contains("unknown variant `\\u{1b}]52"), "{what}");
        assert!(what.chars().count() < 500 && !what.contains('\u{1b}'), "{what}");
    }
}

//! Files of other programs, read as runs: one file a format, one line of [`FORMATS`] each.
//!
//! A format is recognised by what a file holds, never by its name. What a file does not say is a
//! caveat of the run, and whatever is wrong with it an error that names the line; then nothing is
//! kept.

mod columns;
mod cyclictest;
mod cyclictest_stream;
mod fields;
mod fingerprint;
mod hackbench;
mod hdr_counts;
mod hdr_log;
mod hgrm;
mod interbench;
mod jitterdebugger;
mod json;
mod line_prefix;
mod lmbench;
mod lmbench_table;
mod making;
mod oslat;
mod packed;
mod perf_script;
mod perf_tasks;
mod perf_timehist;
mod rt_tests_json;
mod rteval;
mod rtla;
mod rtla_analysis;
mod rtla_blame;
mod rtla_top;
mod sampled;
mod imported_data;
mod sockperf;
mod source;
mod spools;
mod stated;
mod times;
mod wult;
mod wult_info;
mod xenomai;
#[cfg(test)]
mod cases;
#[cfg(test)]
pub(super) mod tests;

use std::{
    io::{Cursor, Read},
    path::PathBuf,
};

use anyhow::Context as _;
use tar::Archive;

pub use columns::ColumnMap;
pub use imported_data::{ImportedData, LatencyUnit};
pub(crate) use making::{ImportedRun, make};
pub use source::ImportError;
pub(crate) use wult_info::MOST_INFO;

use fingerprint::Fingerprinted;
use source::{BeforeLine, Source};

use crate::{limits::import::MOST_FILES, run::ImportCaveat};

/// What the user says of a file that it does not say itself.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The unit of its latencies.
    pub unit: Option<LatencyUnit>,
    /// Which column is what, of CSV.
    pub columns: Option<ColumnMap>,
    /// The text of the `info.yml` beside it, of wult and ndl.
    pub info: Option<String>,
}

impl ImportOptions {
    /// The unit that the user says; else what was found by other signs, or is usual, with a caveat.
    fn unit_or(&self, guessed: LatencyUnit, sheet: &mut ImportedData) -> LatencyUnit {
        self.unit.unwrap_or_else(|| {
            sheet.caveats.push(ImportCaveat::UnitAssumed { unit: guessed.name() });
            guessed
        })
    }

    /// The unit: what the user says, or the file; nothing where neither does.
    ///
    /// # Errors
    /// They differ.
    fn unit_beside(&self, stated: Option<LatencyUnit>) -> Result<Option<LatencyUnit>, String> {
        match (self.unit, stated) {
            (Some(said), Some(own)) if said != own => Err(format!(
                "--unit says {}, and the file {}: leave --unit out",
                said.name(),
                own.name()
            )),
            (said, own) => Ok(said.or(own)),
        }
    }
}

/// Where the unit of a format's latencies is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnitFrom {
    /// The user, or what is usual: its reader looks at `--unit`.
    User,
    /// It is always this one.
    Always(LatencyUnit),
    /// The file states it.
    File,
}

/// A format that runs are read from.
#[derive(Debug, Clone, Copy)]
pub struct ImportFormat {
    /// What `--from` calls it.
    pub name: &'static str,
    /// Of which program, in a line of help.
    pub help: &'static str,
    unit: UnitFrom,
    matches_format: fn(&str) -> bool,
    read: fn(&mut Source<'_>, &ImportOptions) -> Result<ImportedData, ImportError>,
}

/// Formats whose lines come from consoles and logs, so that some of them may have a stamp: no line
/// of theirs begins as one.
const LOGGED: [&str; 6] = ["cyclictest", "rtla", "rtla-top", "rtla-analysis", "xenomai", "oslat"];

const US: LatencyUnit = LatencyUnit::Microseconds;

/// Every format. The first that a file looks like is taken, so that those are first whose files
/// look like nothing else.
pub const FORMATS: &[ImportFormat] = &[
    ImportFormat {
        name: "rt-tests-json",
        help: "JSON of cyclictest, oslat and others of rt-tests",
        unit: UnitFrom::User,
        matches_format: rt_tests_json::matches_format,
        read: rt_tests_json::read,
    },
    ImportFormat {
        name: "hlog",
        help: "HdrHistogram's interval log, of any version",
        unit: UnitFrom::User,
        matches_format: hdr_log::matches_format,
        read: hdr_log::read,
    },
    ImportFormat {
        name: "hgrm",
        help: "HdrHistogram's percentile distribution, as wrk2 prints it",
        unit: UnitFrom::User,
        matches_format: hgrm::matches_format,
        read: hgrm::read,
    },
    ImportFormat {
        name: "rtla",
        help: "Histograms of rtla timerlat hist and rtla osnoise hist",
        unit: UnitFrom::File,
        matches_format: rtla::matches_format,
        read: rtla::read,
    },
    ImportFormat {
        name: "rtla-top",
        help: "Tables of rtla timerlat top and rtla osnoise top",
        unit: UnitFrom::File,
        matches_format: rtla_top::matches_format,
        read: rtla_top::read,
    },
    ImportFormat {
        name: "rtla-analysis",
        help: "The auto-analysis of rtla timerlat (-a, --aa-only) without a table",
        unit: UnitFrom::Always(US),
        matches_format: rtla_analysis::matches_format,
        read: rtla_analysis::read,
    },
    ImportFormat {
        name: "rteval",
        help: "The summary.xml of rteval",
        unit: UnitFrom::Always(US),
        matches_format: rteval::matches_format,
        read: rteval::read,
    },
    ImportFormat {
        name: "xenomai",
        help: "Output of latency and latmus of Xenomai and EVL",
        unit: UnitFrom::Always(US),
        matches_format: xenomai::matches_format,
        read: xenomai::read,
    },
    ImportFormat {
        name: "oslat",
        help: "Text of oslat",
        unit: UnitFrom::Always(US),
        matches_format: oslat::matches_format,
        read: oslat::read,
    },
    ImportFormat {
        name: "sockperf",
        help: "The --full-log of sockperf",
        unit: UnitFrom::Always(US),
        matches_format: sockperf::matches_format,
        read: sockperf::read,
    },
    ImportFormat {
        name: "jitterdebugger",
        help: "JSON of jitterdebugger",
        unit: UnitFrom::User,
        matches_format: jitterdebugger::matches_format,
        read: jitterdebugger::read,
    },
    ImportFormat {
        name: "jittersamples",
        help: "Samples of jitterdebugger, as jittersamples prints them",
        unit: UnitFrom::User,
        matches_format: jitterdebugger::is_samples,
        read: jitterdebugger::read_samples,
    },
    ImportFormat {
        name: "perf-timehist",
        help: "Table of perf sched timehist",
        unit: UnitFrom::File,
        matches_format: perf_timehist::matches_format,
        read: perf_timehist::read,
    },
    ImportFormat {
        name: "perf-script",
        help: "Wake-ups and switches of perf sched script and perf script",
        unit: UnitFrom::File,
        matches_format: perf_script::matches_format,
        read: perf_script::read,
    },
    ImportFormat {
        name: "hackbench",
        help: "Times of hackbench",
        unit: UnitFrom::File,
        matches_format: hackbench::matches_format,
        read: hackbench::read,
    },
    ImportFormat {
        name: "interbench",
        help: "Tables of interbench",
        unit: UnitFrom::File,
        matches_format: interbench::matches_format,
        read: interbench::read,
    },
    ImportFormat {
        name: "lmbench",
        help: "Results of lmbench, or the output of its programs",
        unit: UnitFrom::File,
        matches_format: lmbench::matches_format,
        read: lmbench::read,
    },
    ImportFormat {
        name: "wult",
        help: "A result of wult or ndl: datapoints.csv with info.yml beside it",
        unit: UnitFrom::File,
        matches_format: wult::matches_format,
        read: wult::read,
    },
    ImportFormat {
        name: "cyclictest",
        help: "Text of cyclictest: its lines of threads, or the histogram of -h and -H",
        unit: UnitFrom::User,
        matches_format: cyclictest::matches_format,
        read: cyclictest::read,
    },
    ImportFormat {
        name: "cyclictest-stream",
        help: "Samples of cyclictest -v",
        unit: UnitFrom::User,
        matches_format: cyclictest_stream::matches_format,
        read: cyclictest_stream::read,
    },
    ImportFormat {
        name: "csv",
        help: "A table whose columns --latency-column, --time-column and --series-column name",
        unit: UnitFrom::User,
        matches_format: columns::matches_format,
        read: columns::read,
    },
];

/// Of a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl ImportFormat {
    /// Refuses `--unit` where the file has its own.
    fn refuse_unit(&self, options: &ImportOptions) -> Result<(), ImportError> {
        match self.unit {
            UnitFrom::User => Ok(()),
            UnitFrom::Always(unit) => {
                options.unit_beside(Some(unit)).map(drop).map_err(ImportError::new)
            }
            UnitFrom::File if options.unit.is_none() => Ok(()),
            UnitFrom::File => Err(ImportError::new(format!(
                "--unit is of files that state no unit, and one of {} does: leave --unit out",
                self.name
            ))),
        }
    }

    fn looks_like(&self, head: &str) -> bool {
        (self.matches_format)(head)
    }

    /// The one of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }
}

/// What a file holds, or one within an archive.
#[derive(Debug)]
pub(crate) struct ReadFile {
    /// Its path within the archive; `None` outside of one.
    pub(crate) within: Option<PathBuf>,
    /// What it holds, or what is wrong with it.
    pub(crate) content: Result<ImportedData, ImportError>,
}

/// Reads a file, or every file of an archive of tar, in the given format or in the one that each
/// looks like, and hands each over. Links and the like within an archive are not read. Returns the
/// number of files in the archive that look like no format.
///
/// # Errors
/// The file cannot be read, or what `each` returns.
pub(crate) fn read_each(
    from: impl Read,
    format: Option<&'static ImportFormat>,
    options: &ImportOptions,
    mut each: impl FnMut(ReadFile) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let mut plain = packed::plain(from)?;
    let head = source::head(&mut plain)?;
    let is_archive = packed::is_archive(&head);
    let whole = Cursor::new(head).chain(plain);
    if !is_archive {
        each(ReadFile { within: None, content: read_text(whole, format, options) })?;
        return Ok(0);
    }
    let mut unknown = 0;
    for (number, file) in Archive::new(whole).entries()?.enumerate() {
        anyhow::ensure!(number < MOST_FILES, "it has more than {MOST_FILES} files");
        let file = file.context("the archive is damaged")?;
        if !file.header().entry_type().is_file() {
            continue;
        }
        let within = file.path()?.into_owned();
        match read(file, format, options) {
            Err(error) if error == source::unknown() || error == source::empty() => unknown += 1,
            content => each(ReadFile { within: Some(within), content })?,
        }
    }
    Ok(unknown)
}

/// A file unpacked, and in UTF-8.
///
/// # Errors
/// What the disk says; damage.
pub(crate) fn unpacked<'a>(from: impl Read + 'a) -> Result<Box<dyn Read + 'a>, ImportError> {
    packed::plain(from)
}

/// Reads a file: in the given format, or in the one that it looks like.
///
/// # Errors
/// What is wrong, and where; a file that looks like none.
pub fn read(
    from: impl Read,
    format: Option<&'static ImportFormat>,
    options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    read_text(packed::plain(from)?, format, options)
}

fn read_text(
    text: impl Read,
    format: Option<&'static ImportFormat>,
    options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut text = Fingerprinted::new(text);
    let mut head = source::head(&mut text)?;
    // A mark that editors of other systems put before a text.
    if head.starts_with(BYTE_ORDER_MARK) {
        head.drain(..BYTE_ORDER_MARK.len());
    }
    let (format, before) = match format {
        // Asked for by name, a file may begin with what is not of it.
        Some(format) => {
            let before = STARTS
                .into_iter()
                .find(|before| format.looks_like(&source::lines_of(&head, *before)));
            (format, before.unwrap_or(BeforeLine::Nothing))
        }
        None => recognised(&head)?,
    };
    let is_logged = before == BeforeLine::Nothing && LOGGED.contains(&format.name);
    let before = if is_logged { BeforeLine::Prefix } else { before };
    format.refuse_unit(options)?;
    let mut source = Source::new(Cursor::new(head).chain(&mut text), before);
    let mut data = (format.read)(&mut source, options)?.checked()?;
    drop(source);
    data.content_sha256 = text.of_all()?;
    Ok(data)
}

/// What is in files that are known and not read, and what such a file is.
const NOT_READ: [(&str, &str); 4] = [
    ("PK\u{3}\u{4}", "packed by zip: unpack it first"),
    ("7z\u{fffd}\u{fffd}", "packed by 7z: unpack it first"),
    ("hwlatdetect:", "the text of hwlatdetect, which has no distribution and is not imported"),
    (
        ", Cycles ",
        "a text of ptsematest, pmqtest, svsematest or sigwaittest, which is not imported: their \
         --json is",
    ),
];

/// What lines may begin with, the least first.
const STARTS: [BeforeLine; 3] =
    [BeforeLine::Nothing, BeforeLine::Prefix, BeforeLine::PrefixAndSpaces];

/// What it looks like, and without what before its lines.
fn recognised(head: &[u8]) -> Result<(&'static ImportFormat, BeforeLine), ImportError> {
    if head.is_empty() {
        return Err(source::empty());
    }
    let by = |before| {
        let head = source::lines_of(head, before);
        Some((FORMATS.iter().find(|format| format.looks_like(&head))?, before))
    };
    STARTS.into_iter().find_map(by).ok_or_else(|| not_read(head).unwrap_or_else(source::unknown))
}

/// Of a file that is known, and not read.
fn not_read(head: &[u8]) -> Option<ImportError> {
    let text = String::from_utf8_lossy(head);
    let (_, what) = NOT_READ.iter().find(|(sign, _)| text.contains(sign))?;
    Some(ImportError::new(format!("it is {what}")))
}

//! Runs for other programs to read: one file a format, one line of [`FORMATS`] each.

mod bencher;
mod check_names;
mod checks;
mod chrome;
mod counted;
pub(crate) mod cyclictest;
mod folded;
mod hgrm;
mod identity;
mod influx;
mod junit;
mod kcidb;
mod lava;
mod merged;
pub(crate) mod oslat;
mod parquet;
mod perfetto;
mod pprof;
mod prometheus;
mod protobuf;
mod rows;
pub(crate) mod rt_tests;
pub(crate) mod rtla;
mod tables;
mod tap;
mod timeline;

use std::io;

pub(crate) use self::{
    checks::CheckedRun, counted::CountedRun, kcidb::Submission, parquet::Output,
    prometheus::MetricScope, timeline::TraceTimeline,
};
use super::bundle;
use crate::{
    limits::export::LARGEST,
    run::{Run, profile::Profile},
};

/// Refuses an export of more than [`LARGEST`] bytes.
fn check_size(bytes: usize) -> io::Result<()> {
    if bytes <= LARGEST {
        return Ok(());
    }
    let limit = LARGEST >> 20;
    Err(io::Error::other(format!(
        "the result is larger than {limit} MiB; export fewer runs, or --to histogram-parquet"
    )))
}

/// How a timeline is written.
pub(crate) type TimelineWriter = fn(&TraceTimeline) -> io::Result<Vec<u8>>;

/// Runs of which there may be more than memory holds.
pub(crate) type CountedRuns<'a> = &'a mut dyn Iterator<Item = io::Result<CountedRun>>;

/// What a format is made of.
#[derive(Clone, Copy)]
pub(crate) enum ExportWriter {
    /// Runs, with what their gates came to.
    Checks(fn(&[CheckedRun]) -> io::Result<Vec<u8>>),
    /// The same, as a submission to a database.
    Submitted(fn(&[CheckedRun], &Submission) -> io::Result<Vec<u8>>),
    /// The profile of one run, as text.
    Profile(fn(&Profile) -> io::Result<Vec<u8>>),
    /// The same, as no text: it goes to a file alone.
    ProfileFile(fn(&Profile) -> io::Result<Vec<u8>>),
    /// The figures and histograms of runs, as text.
    Counts(fn(&[CountedRun]) -> io::Result<Vec<u8>>),
    /// Metrics of runs, as text.
    Metrics(fn(&[CountedRun], MetricScope) -> io::Result<Vec<u8>>),
    /// The figures and histograms of one run, as text.
    RunCounts(fn(&CountedRun) -> io::Result<Vec<u8>>),
    /// The same of one run, of one of its series or of all together.
    SeriesCounts(fn(&CountedRun, Option<&str>) -> io::Result<Vec<u8>>),
    /// The histograms of runs one after the other, as no text: they go to a file alone.
    CountsFile(fn(CountedRuns<'_>, &mut dyn Output) -> io::Result<()>),
    /// The histograms of runs merged, as text; those of a machine follow each other.
    Merged(fn(CountedRuns<'_>) -> io::Result<Vec<u8>>),
    /// The single samples of one run, which may be any number, as text.
    Samples(fn(&Run, &mut dyn Output) -> io::Result<()>),
    /// The same, as no text: they go to a file alone.
    SamplesFile(fn(&Run, &mut dyn Output) -> io::Result<()>),
    /// What happened when around the late samples of one run, as text.
    Timeline(TimelineWriter),
    /// The same, as no text: it goes to a file alone.
    TimelineFile(TimelineWriter),
    /// All of one run, as no text; with what must not be handed on or without it.
    Bundled(fn(&Run, bool, &mut dyn io::Write) -> io::Result<()>),
    /// Files of one run as they are.
    Copied(fn(&Run, &mut dyn Output) -> io::Result<()>),
}

/// A format that runs can be written in.
pub(crate) struct ExportFormat {
    /// What `--to` calls it.
    pub(crate) name: &'static str,
    /// Writes it.
    pub(crate) write: ExportWriter,
}

/// Every format, in the order of the help text.
pub(crate) const FORMATS: [ExportFormat; 24] = [
    ExportFormat { name: "cyclictest", write: ExportWriter::RunCounts(cyclictest::write_text) },
    ExportFormat {
        name: "cyclictest-histogram",
        write: ExportWriter::RunCounts(cyclictest::write_histogram),
    },
    ExportFormat {
        name: "cyclictest-json",
        write: ExportWriter::RunCounts(cyclictest::write_json),
    },
    ExportFormat { name: "hgrm", write: ExportWriter::SeriesCounts(hgrm::write) },
    ExportFormat { name: "hlog", write: ExportWriter::Copied(hgrm::copy_log) },
    ExportFormat { name: "csv", write: ExportWriter::Samples(tables::write_samples) },
    ExportFormat { name: "histogram-csv", write: ExportWriter::Counts(tables::write_histograms) },
    ExportFormat { name: "json", write: ExportWriter::Counts(tables::write_json) },
    ExportFormat { name: "parquet", write: ExportWriter::SamplesFile(parquet::write_samples) },
    ExportFormat {
        name: "histogram-parquet",
        write: ExportWriter::CountsFile(parquet::write_histograms),
    },
    ExportFormat { name: "merged-csv", write: ExportWriter::Merged(merged::write) },
    ExportFormat { name: "prometheus", write: ExportWriter::Metrics(prometheus::write) },
    ExportFormat { name: "openmetrics", write: ExportWriter::Metrics(prometheus::write_open) },
    ExportFormat { name: "influx", write: ExportWriter::Counts(influx::write) },
    ExportFormat { name: "junit", write: ExportWriter::Checks(junit::write) },
    ExportFormat { name: "tap", write: ExportWriter::Checks(tap::write) },
    ExportFormat { name: "lava", write: ExportWriter::Checks(lava::write) },
    ExportFormat { name: "kcidb", write: ExportWriter::Submitted(kcidb::write) },
    ExportFormat { name: "bencher", write: ExportWriter::Checks(bencher::write) },
    ExportFormat { name: "perfetto", write: ExportWriter::TimelineFile(perfetto::write) },
    ExportFormat { name: "chrome", write: ExportWriter::Timeline(chrome::write) },
    ExportFormat { name: "folded", write: ExportWriter::Profile(folded::write) },
    ExportFormat { name: "bundle", write: ExportWriter::Bundled(bundle::write) },
    ExportFormat { name: "pprof", write: ExportWriter::ProfileFile(pprof::write) },
];

impl ExportFormat {
    /// Those of what happened when.
    pub(crate) fn of_timelines() -> impl Iterator<Item = &'static Self> {
        FORMATS.iter().filter(|format| {
            matches!(format.write, ExportWriter::Timeline(_) | ExportWriter::TimelineFile(_))
        })
    }

    /// The one of this name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }
}

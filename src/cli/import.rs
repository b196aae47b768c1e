//! `tardy import`: files of other programs as runs.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};

use super::{Exit, flags::FormatFlags, output, runs::new_id};
use crate::limits::import::MOST_FILES;
use crate::{
    exchange::import::{
        self, ColumnMap, FORMATS, ImportFormat, ImportOptions, ImportedRun, LatencyUnit, MOST_INFO,
    },
    plain::{plain, plain_path},
    report::{
        headline::headline,
        terminal::{self, Asked},
    },
    run::Document,
    store::{Store, check_name},
};

/// What stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Of a result of wult or ndl: its samples.
const POINTS_FILE: &str = "datapoints.csv";

/// And what is to be known of them, beside it: both are one run.
const INFO_FILE: &str = "info.yml";

/// Make runs of the files of other programs: cyclictest and others
///
/// The format is recognized by the content. The run has the status `imported`, the facts in the
/// file, and a caveat for missing facts. `show`, `compare`, `report`, `plot` and gates work on it.
/// It is never `last`. From a directory every file is imported, in the order of names; unknown
/// files, subdirectories and links are reported and skipped.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 all imported; 2 a file that cannot be imported, or \
                        nothing in a directory is. What is imported up to then stays.")]
pub(super) struct ImportFlags {
    /// Files, directories of files, or - for standard input
    ///
    /// Files may be packed by gzip, and texts may be UTF-16.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Name of the run and of its directory
    ///
    /// With several runs, a number is appended to each.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Format of the files [default: recognized by the content]
    #[arg(long, value_name = "KIND", value_parser = format_name())]
    from: Option<&'static ImportFormat>,
    /// Unit of latencies, if the file does not state it [default: us]
    ///
    /// A file that states another unit is refused.
    #[arg(long, value_name = "UNIT")]
    unit: Option<UnitName>,
    #[command(flatten)]
    columns: ColumnFlags,
    #[command(flatten)]
    format: FormatFlags,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Tables (--from csv)")]
struct ColumnFlags {
    /// Column of latencies: its name in the first line, or its number from 1
    #[arg(long, value_name = "COLUMN")]
    latency_column: Option<String>,
    /// Column of times in seconds; each sample is then kept with its time
    #[arg(long, value_name = "COLUMN", requires = "latency_column")]
    time_column: Option<String>,
    /// Column of the series: CPUs, or names
    #[arg(long, value_name = "COLUMN", requires = "latency_column")]
    series_column: Option<String>,
}

impl ColumnFlags {
    fn map(&self) -> Option<ColumnMap> {
        let latency = self.latency_column.clone()?;
        let (time, series) = (self.time_column.clone(), self.series_column.clone());
        Some(ColumnMap { latency, time, series })
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum UnitName {
    Ns,
    Us,
    Ms,
    S,
}

fn format_name() -> impl TypedValueParser<Value = &'static ImportFormat> {
    let value = |format: &ImportFormat| PossibleValue::new(format.name).help(format.help);
    PossibleValuesParser::new(FORMATS.iter().map(value)).try_map(|name: String| {
        ImportFormat::find(&name).ok_or_else(|| format!("no format is called {name}"))
    })
}

/// Imports the files.
pub(super) fn import(flags: &ImportFlags, store: &Store, argv: &[String]) -> Result<Exit> {
    if let (Some(from), Some(_)) = (flags.from, flags.columns.map()) {
        ensure!(from.name == "csv", "--latency-column is of --from csv; leave one of them out");
    }
    if let Some(name) = &flags.name {
        check_name(name)?;
    }
    let mut made = Vec::new();
    for path in &flags.files {
        if path.as_os_str() == STANDARD_INPUT {
            made.push(read(flags, path, (io::stdin(), None), (store, argv))?);
            continue;
        }
        let about = fs::metadata(path).with_context(|| format!("{}", path.display()))?;
        if about.is_dir() {
            made.extend(directory(flags, path, store, argv)?);
        } else {
            made.push(one(flags, path, store, argv)?);
        }
    }
    if flags.format.is_json() {
        match &made[..] {
            [document] => output::put_json(document)?,
            several => output::put_json(&several)?,
        }
        return Ok(Exit::Done);
    }
    if let [document] = &made[..] {
        let place = store.place(&document.name).display().to_string();
        let width = output::width();
        output::put(&terminal::show(document, &place, Asked::default(), width))?;
        return Ok(Exit::Done);
    }
    for document in &made {
        output::put(&line(document))?;
    }
    Ok(Exit::Done)
}

fn line(document: &Document) -> String {
    let (name, validity) = (plain(&document.name), document.validity.displayed());
    format!("{name}: {validity}: {}\n", plain(&headline(document)))
}

/// Every file of a directory that can be imported.
fn directory(
    flags: &ImportFlags,
    path: &Path,
    store: &Store,
    argv: &[String],
) -> Result<Vec<Document>> {
    let (mut files, mut others) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(path).with_context(|| format!("{}", path.display()))? {
        let entry = entry?;
        // Links are not followed: who put one there chooses what is read.
        let kind = entry.file_type()?;
        if kind.is_file() {
            files.push(entry.path());
        } else {
            others.push((entry.path(), kind.is_dir()));
        }
        ensure!(files.len() + others.len() <= MOST_FILES, "{} has too many files", path.display());
    }
    if files.iter().any(|file| file.file_name().is_some_and(|name| name == POINTS_FILE)) {
        files.retain(|file| file.file_name().is_none_or(|name| name != INFO_FILE));
        // Its plots and statistics are of the same samples.
        others.clear();
    }
    others.sort();
    for (other, is_directory) in others {
        let why = match is_directory {
            true => "a directory within one is not read; import it by itself",
            false => "it is a link or the like; import its target",
        };
        output::warn(&format!("skipped: {}: {why}", plain_path(&other)));
    }
    files.sort();
    let mut made = Vec::new();
    for file in files {
        match one(flags, &file, store, argv) {
            Ok(document) => made.push(document),
            Err(error) => output::warn(&format!("skipped: {error:#}")),
        }
    }
    if made.is_empty() {
        bail!("{}: no file in it can be imported", path.display());
    }
    Ok(made)
}

fn one(flags: &ImportFlags, path: &Path, store: &Store, argv: &[String]) -> Result<Document> {
    let named = || plain_path(path);
    let file = File::open(path).with_context(named)?;
    let about = file.metadata().with_context(named)?;
    let written_at = about.modified().ok().and_then(|time| jiff::Timestamp::try_from(time).ok());
    read(flags, path, (file, written_at), (store, argv))
}

/// Reads one file, or standard input, and makes a run of it.
fn read(
    flags: &ImportFlags,
    path: &Path,
    (file, written_at): (impl io::Read, Option<jiff::Timestamp>),
    (store, argv): (&Store, &[String]),
) -> Result<Document> {
    let named = || plain_path(path);
    let unit = flags.unit.map(|unit| match unit {
        UnitName::Ns => LatencyUnit::Nanoseconds,
        UnitName::Us => LatencyUnit::Microseconds,
        UnitName::Ms => LatencyUnit::Milliseconds,
        UnitName::S => LatencyUnit::Seconds,
    });
    let options = ImportOptions { unit, columns: flags.columns.map(), info: info_beside(path)? };
    let table = options.columns.as_ref().and_then(|_| ImportFormat::find("csv"));
    let from = flags.from.or(table);
    let sheet = import::read(io::BufReader::new(file), from, &options).with_context(named)?;
    let id = new_id()?;
    let (place, name) = store.free_place(flags.name.as_deref().unwrap_or(&id));
    let run = ImportedRun {
        place: &place,
        id,
        name,
        argv: argv.to_vec(),
        written_at,
        file: path.to_owned(),
    };
    import::make(&sheet, run).with_context(named)
}

/// The text of the `info.yml` beside a `datapoints.csv`; `None` without such a file. As in a
/// directory, a link is not followed.
fn info_beside(path: &Path) -> Result<Option<String>> {
    if path.file_name().is_none_or(|name| name != POINTS_FILE) {
        return Ok(None);
    }
    let path = path.with_file_name(INFO_FILE);
    let is_file = |path: &Path| fs::symlink_metadata(path).is_ok_and(|about| about.is_file());
    if !is_file(&path) {
        return Ok(None);
    }
    let named = || plain_path(&path);
    let mut text = Vec::new();
    let file = File::open(&path).with_context(named)?;
    file.take(MOST_INFO as u64 + 1).read_to_end(&mut text).with_context(named)?;
    ensure!(text.len() <= MOST_INFO, "{}: it is larger than 64 KiB: it is another file", named());
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

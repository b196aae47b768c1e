//! `tardy import`: files of other programs as runs.

mod directory;

use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};

use self::directory::{draft_in, files_of, info_beside};
use super::{Exit, flags::FormatFlags, output, runs::new_id};
use crate::{
    exchange::{
        bundle::{self, BundlePlace},
        import::{
            self, ColumnMap, FORMATS, ImportFormat, ImportOptions, ImportedData, ImportedRun,
            LatencyUnit, ReadFile,
        },
    },
    plain::{plain, plain_path},
    report::{
        headline::headline,
        terminal::{self, Asked},
    },
    run::{Document, probes::ProbeRecord, provenance::CONTENT_SHA256},
    store::{Store, check_name},
    units::many,
};

/// What stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Make runs of the files of other programs, and of bundles
///
/// The format is recognized by the content. The run has the status `imported`, the facts in the
/// file, and a caveat for missing facts. `show`, `compare`, `report`, `plot` and gates work on it.
/// It is never `last`. From a directory every file is imported, in the order of names; unknown
/// files, subdirectories and links are reported and skipped. So is every file of an archive of tar.
/// A file whose content is a run of the store already is refused, and skipped within a directory.
/// A bundle of `tardy export` becomes the run that it was.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 all imported; 2 a file that cannot be imported, or \
                        nothing in a directory is. What is imported up to then stays.")]
pub(super) struct ImportFlags {
    /// Files, directories of files, or - for standard input
    ///
    /// Files may be packed by gzip, bzip2, xz or zstd, may be archives of tar, and texts may be
    /// UTF-16.
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
    /// Repeat what was done before: measured cells, imported contents
    #[arg(long)]
    again: bool,
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
    let mut importer = Importer { flags, store, argv, known: None, made: Vec::new() };
    for path in &flags.files {
        if path.as_os_str() == STANDARD_INPUT {
            importer.read(path, io::stdin(), None, WhenKnown::Fail)?;
        } else if fs::metadata(path).with_context(|| plain_path(path))?.is_dir() {
            importer.directory(path)?;
        } else {
            importer.file(path, WhenKnown::Fail)?;
        }
    }
    let made = importer.made;
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

/// What becomes of a file whose content is a run already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WhenKnown {
    Fail,
    Skip,
}

/// A file, or one within an archive.
struct NamedFile<'a> {
    path: &'a Path,
    /// What its run says that it is called: without the directories before it.
    named: PathBuf,
    written_at: Option<jiff::Timestamp>,
}

/// Makes runs of files, one after the other.
struct Importer<'a> {
    flags: &'a ImportFlags,
    store: &'a Store,
    argv: &'a [String],
    /// The names of the imported runs of the store by [`CONTENT_SHA256`]; read when first needed.
    known: Option<HashMap<String, String>>,
    made: Vec<Document>,
}

impl Importer<'_> {
    /// Every file of a directory that can be imported.
    fn directory(&mut self, path: &Path) -> Result<()> {
        let mut runs = 0;
        for file in files_of(path)? {
            runs += or_skipped(self.file(&file, WhenKnown::Skip));
        }
        ensure!(runs > 0, "{}: no file in it can be imported", plain_path(path));
        Ok(())
    }

    fn file(&mut self, path: &Path, when_known: WhenKnown) -> Result<usize> {
        let named = || plain_path(path);
        let file = File::open(path).with_context(named)?;
        let about = file.metadata().with_context(named)?;
        let time = about.modified().ok();
        let written_at = time.and_then(|time| jiff::Timestamp::try_from(time).ok());
        self.read(path, file, written_at, when_known)
    }

    /// Reads one file, or standard input, and makes a run of it; of an archive, of each file in it.
    /// Returns how many of them are runs now.
    fn read(
        &mut self,
        path: &Path,
        file: impl io::Read,
        written_at: Option<jiff::Timestamp>,
        when_known: WhenKnown,
    ) -> Result<usize> {
        let options = self.options(path)?;
        let table = options.columns.as_ref().and_then(|_| ImportFormat::find("csv"));
        let format = self.flags.from.or(table);
        let named = || plain_path(path);
        let mut file = io::BufReader::new(import::unpacked(file).with_context(named)?);
        if bundle::is_bundle(&mut file).with_context(named)? {
            self.bundle(path, file, when_known).with_context(named)?;
            return Ok(1);
        }
        let own_name = path.file_name().map(PathBuf::from).unwrap_or_default();
        let mut runs = 0;
        let each = |file: ReadFile| -> Result<()> {
            runs += match file.within {
                None => {
                    let of = NamedFile { path, named: own_name.clone(), written_at };
                    self.make(of, file.content?, when_known)?
                }
                Some(within) => {
                    let path = path.join(&within);
                    let named = own_name.join(&within);
                    let of = NamedFile { path: &path, named, written_at };
                    let content = file.content.map_err(anyhow::Error::from);
                    let made = content.and_then(|content| self.make(of, content, WhenKnown::Skip));
                    or_skipped(made.with_context(|| plain_path(&within)))
                }
            };
            Ok(())
        };
        let read = import::read_each(file, format, &options, each);
        let unknown = read.with_context(named)?;
        if unknown > 0 {
            let files = many(unknown, "file");
            let what = "in it of no format that can be imported";
            output::warn(&format!("skipped: {}: {files} {what}", named()));
        }
        ensure!(runs > 0, "{}: no file in this archive can be imported", named());
        Ok(runs)
    }

    /// The run of a bundle, unless the store has it.
    fn bundle(&mut self, path: &Path, from: impl io::Read, when_known: WhenKnown) -> Result<()> {
        let flags = self.flags;
        ensure!(
            flags.from.is_none() && flags.unit.is_none() && flags.columns.map().is_none(),
            "it is a bundle of tardy, which states all of it; leave --from, --unit and columns out"
        );
        let made = bundle::read(from, |head| {
            if let Some(run) = self.store.name_of(&head.id).filter(|_| !flags.again) {
                let what =
                    format!("it is the run {} already; --again imports it once more", plain(&run));
                ensure!(when_known == WhenKnown::Skip, what);
                output::warn(&format!("skipped: {}: {what}", plain_path(path)));
                return Ok(None);
            }
            let wanted = flags.name.as_ref().unwrap_or(&head.name);
            check_name(wanted)?;
            let (_, name) = self.store.free_place(wanted);
            Ok(Some(BundlePlace { directory: draft_in(self.store, &head.id)?, name }))
        })?;
        self.made.extend(made);
        Ok(())
    }

    fn options(&self, path: &Path) -> Result<ImportOptions> {
        let unit = self.flags.unit.map(|unit| match unit {
            UnitName::Ns => LatencyUnit::Nanoseconds,
            UnitName::Us => LatencyUnit::Microseconds,
            UnitName::Ms => LatencyUnit::Milliseconds,
            UnitName::S => LatencyUnit::Seconds,
        });
        let columns = self.flags.columns.map();
        Ok(ImportOptions { unit, columns, info: info_beside(path)? })
    }

    /// The run of what was read, unless it is one already. Returns how many runs that is.
    fn make(
        &mut self,
        from: NamedFile<'_>,
        content: ImportedData,
        when_known: WhenKnown,
    ) -> Result<usize> {
        let sha256 = content.content_sha256.clone();
        if let Some(run) = self.known()?.get(&sha256) {
            let what = format!(
                "its content is the run {} already; --again imports it once more",
                plain(run)
            );
            ensure!(when_known == WhenKnown::Skip, what);
            output::warn(&format!("skipped: {}: {what}", plain_path(from.path)));
            return Ok(1);
        }
        let id = new_id()?;
        let wanted = self.flags.name.as_deref().unwrap_or(&id);
        let (place, name) = self.store.free_place(wanted);
        let run = ImportedRun {
            place: &place,
            id,
            name: name.clone(),
            argv: self.argv.to_vec(),
            written_at: from.written_at,
            file: from.named,
        };
        self.made.push(import::make(&content, run)?);
        if !self.flags.again {
            self.known()?.insert(sha256, name);
        }
        Ok(1)
    }

    /// With `--again` no content is known.
    fn known(&mut self) -> Result<&mut HashMap<String, String>> {
        if self.known.is_none() {
            let known = if self.flags.again { HashMap::new() } else { known_in(self.store)? };
            self.known = Some(known);
        }
        Ok(self.known.get_or_insert_default())
    }
}

/// How many runs there are of a file; one that is wrong is reported.
fn or_skipped(made: Result<usize>) -> usize {
    made.unwrap_or_else(|error| {
        output::warn(&format!("skipped: {error:#}"));
        0
    })
}

/// The imported runs of a store by the hash of their content.
fn known_in(store: &Store) -> Result<HashMap<String, String>> {
    let listing = store.listing()?;
    let imported = listing.runs.iter().filter_map(|run| {
        let ProbeRecord::Other(probe) = &run.entry.probe else { return None };
        let sha256 = probe.parameters.get(CONTENT_SHA256)?.as_str()?;
        Some((sha256.to_owned(), run.entry.name.clone()))
    });
    Ok(imported.collect())
}

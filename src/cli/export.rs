//! `tardy export`: runs in the formats of other programs.

mod checked;
mod many;
mod one;

use std::{
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, builder::PossibleValuesParser};

use self::{
    checked::checked,
    many::{CountedChoice, one_counted},
};
use super::{
    Exit,
    chosen::{ChosenNames, FilesFromFlags},
    gates::GateFlags,
    output, report,
};
use crate::{
    draft::Draft,
    exchange::export::{
        CountedRun, ExportFormat, ExportWriter, FORMATS, MetricScope, Output, Submission,
    },
    run::{AB, PLAN, lab::LAB, parts::is_kept_file, series_name::is_called},
    store::{PlaceKind, Store, StoredPlace},
    units::Nanos,
};

/// What readers of cyclictest have histograms in, ns.
const WHOLE_US_NS: u64 = 1_000;

/// Write runs in the format of another program
///
/// Formats: metrics and histograms for readers of cyclictest and HdrHistogram, SQL engines,
/// Prometheus and InfluxDB; single samples of a run with --raw (csv, parquet); stacks of a profile
/// (folded, pprof); events around late samples for trace viewers such as ui.perfetto.dev (perfetto,
/// chrome); test reports (junit, tap, lava, kcidb, bencher); and a whole run for `tardy import`
/// elsewhere (bundle).
///
/// RUN may also be a plan, a suite, a comparison of `tardy ab`, or a directory with any of them
/// below: all their runs are written. Formats that take one run are cyclictest, hgrm, hlog, csv,
/// parquet, perfetto, chrome, folded, pprof and bundle. A run that cannot be read is skipped, and
/// counted on standard error; in a test report it is an error.
///
/// A test report has the validity of each run and the result of each --gate; of a plan, a suite or
/// a directory of the lab, of each cell. Plans have the gates that they were begun with unless
/// others are named. An inconclusive gate is reported as skipped, and an invalid run as an error.
/// The names of tests are made of probe, loads and series, or of plan, cell and series, and are
/// alike every night.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 written, and every gate passed; 1 a gate failed, or \
                        --stop-over ended a run; 2 error, or no run can be read; 3 a gate is \
                        inconclusive; 4 a run is invalid, or cannot be read for a test report. The \
                        file is written whatever the gates say.")]
pub(super) struct ExportFlags {
    /// Paths, names, beginnings of ids, `last` or `last~1`; directories of runs [default: last]
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    #[command(flatten)]
    files: FilesFromFlags,
    /// The format to write
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    to: String,
    /// File to write; an existing one is replaced
    ///
    /// Default, or -: standard output. parquet, histogram-parquet, perfetto, pprof and bundle are
    /// binary: they need a file, or -o - into a pipe.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Series to write as hgrm [default: all together]
    #[arg(long, value_name = "SERIES")]
    series: Option<String>,
    /// Write all metrics, with histograms [default: p99.9, maximum, missed, validity, start]
    ///
    /// For --to prometheus and openmetrics. A histogram has 25 series of Prometheus for each series
    /// of a run, on every machine of a fleet.
    #[arg(long)]
    all_metrics: bool,
    /// Take host names, arguments, paths and stacks out of a bundle
    ///
    /// For runs that others may see. Names of programs, threads and functions stay, as do the
    /// kernel, the CPU model, and the boot parameters that bear on latency; of other boot
    /// parameters the names stay. The profile, the recording and what loads printed are left out.
    #[arg(long)]
    redact: bool,
    /// Your name at KernelCI, for --to kcidb
    #[arg(long, value_name = "ORIGIN", help_heading = "KCIDB")]
    origin: Option<String>,
    /// The tested build by its id in KCIDB, for --to kcidb: maestro:67f1c3
    #[arg(long, value_name = "ID", help_heading = "KCIDB")]
    build_id: Option<String>,
    #[command(flatten)]
    gates: GateFlags,
}

fn formats() -> PossibleValuesParser {
    PossibleValuesParser::new(FORMATS.map(|format| format.name))
}

/// Writes the runs.
pub(super) fn export(flags: &ExportFlags, store: &Store) -> Result<Exit> {
    let format = ExportFormat::find(&flags.to).context("--to: no such format")?;
    check_flags(flags, format)?;
    let mut exit = Exit::Done;
    let bytes = match format.write {
        ExportWriter::Counts(write) => write(&CountedChoice::of(flags, store)?.all()?)?,
        ExportWriter::Metrics(write) => {
            write(&CountedChoice::of(flags, store)?.all()?, flags.scope())?
        }
        ExportWriter::RunCounts(write) => {
            let run = one_counted(flags, store)?;
            warn_of_moves(&run, format);
            write(&run)?
        }
        ExportWriter::SeriesCounts(write) => {
            let run = one_counted(flags, store)?;
            check_series(flags.series.as_deref(), &run)?;
            write(&run, flags.series.as_deref())?
        }
        ExportWriter::CountsFile(write) => {
            need_file(flags)?;
            let runs = CountedChoice::of(flags, store)?;
            return runs.written(|runs| to_file(flags, |out| write(runs, out)));
        }
        ExportWriter::Merged(write) => {
            let runs = CountedChoice::by_machine(flags, store)?;
            runs.written(|runs| Ok(write(runs)?))?
        }
        ExportWriter::Samples(write) => {
            let run = flags.one_sampled(store)?;
            return to_file(flags, |out| write(&run, out));
        }
        ExportWriter::SamplesFile(write) => {
            need_file(flags)?;
            let run = flags.one_sampled(store)?;
            return to_file(flags, |out| write(&run, out));
        }
        ExportWriter::Copied(write) => {
            let run = flags.one(store)?;
            return to_file(flags, |out| write(&run, out));
        }
        ExportWriter::Bundled(write) => {
            need_file(flags)?;
            let run = flags.one(store)?;
            return to_file(flags, |out| write(&run, flags.redact, out));
        }
        ExportWriter::Checks(write) => checked(flags, store, &mut exit, write)?,
        ExportWriter::Submitted(write) => {
            let to = submission(flags)?;
            checked(flags, store, &mut exit, |runs| write(runs, &to))?
        }
        ExportWriter::Profile(write) => flags.profiled(store, write)?,
        ExportWriter::Timeline(write) => write(&flags.timeline(store)?)?,
        ExportWriter::TimelineFile(write) => {
            need_file(flags)?;
            write(&flags.timeline(store)?)?
        }
        ExportWriter::ProfileFile(write) => {
            need_file(flags)?;
            flags.profiled(store, write)?
        }
    };
    put(flags, format, bytes)?;
    Ok(exit)
}

/// Writes a result that is whole to its file, or to standard output.
fn put(flags: &ExportFlags, format: &ExportFormat, bytes: Vec<u8>) -> Result<()> {
    let is_text =
        !matches!(format.write, ExportWriter::TimelineFile(_) | ExportWriter::ProfileFile(_));
    match flags.file() {
        Some(path) => report::write(path, &bytes),
        None if is_text => output::put_columns(&String::from_utf8(bytes)?),
        None => output::stream(|out| out.write_all(&bytes)),
    }
}

impl ExportFlags {
    /// The file that is named; absent for standard output.
    fn file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| path.as_os_str() != "-")
    }

    /// The runs that are named: the last one where nothing is named.
    fn names(&self) -> Result<ChosenNames> {
        let is_default = self.runs.is_empty() && !self.files.is_given();
        let runs = if is_default { vec!["last".into()] } else { self.runs.clone() };
        self.files.names(runs)
    }

    const fn scope(&self) -> MetricScope {
        if self.all_metrics { MetricScope::All } else { MetricScope::Usual }
    }

    fn check_no_gates(&self) -> Result<()> {
        let to = &self.to;
        ensure!(
            self.gates.is_empty(),
            "--gate is not supported with --to {to}, which has no checks; leave it out"
        );
        Ok(())
    }
}

/// Says by how much a histogram of whole us moves latencies.
fn warn_of_moves(run: &CountedRun, format: &ExportFormat) {
    let has_bins = format.name != "cyclictest";
    if let Some(ns) = run.moves_ns(WHOLE_US_NS).filter(|_| has_bins) {
        let moved = Nanos(i64::try_from(ns).unwrap_or(i64::MAX));
        output::notice(&format!(
            "Latencies of some ms move by up to {moved} in a histogram of whole us: the \
             run has them to a thousandth of their value."
        ));
    }
}

/// Refuses what is of another format.
fn check_flags(flags: &ExportFlags, format: &ExportFormat) -> Result<()> {
    let has_series = matches!(format.write, ExportWriter::SeriesCounts(_));
    ensure!(
        has_series || flags.series.is_none(),
        "--series is of --to hgrm; leave one of them out"
    );
    ensure!(
        matches!(format.write, ExportWriter::Metrics(_)) || !flags.all_metrics,
        "--all-metrics is of --to prometheus and openmetrics; leave one of them out"
    );
    ensure!(
        matches!(format.write, ExportWriter::Bundled(_)) || !flags.redact,
        "--redact is of --to bundle; leave one of them out"
    );
    ensure!(
        !flags.file().is_some_and(is_part_of_run),
        "-o: this file is a part of the run or plan that is there, which it would replace; choose \
         another place"
    );
    let is_submitted = matches!(format.write, ExportWriter::Submitted(_));
    ensure!(
        is_submitted || (flags.origin.is_none() && flags.build_id.is_none()),
        "--origin and --build-id are of --to kcidb; leave them out"
    );
    Ok(())
}

/// Who submits, and which build was tested.
fn submission(flags: &ExportFlags) -> Result<Submission> {
    let (Some(origin), Some(build)) = (&flags.origin, &flags.build_id) else {
        bail!(
            "--to kcidb needs --origin ORIGIN, your name at KernelCI, and --build-id ID, the \
             tested build in KCIDB"
        );
    };
    Ok(Submission::new(origin, build)?)
}

/// The format is not text, which a terminal cannot show.
fn need_file(flags: &ExportFlags) -> Result<()> {
    let to = &flags.to;
    let is_piped = flags.output.is_some() && !io::stdout().is_terminal();
    ensure!(
        flags.file().is_some() || is_piped,
        "--to {to} is binary: name a file for it, -o FILE, or write it into a pipe, -o -"
    );
    Ok(())
}

/// Whether it would replace a part of a run, or the record of a plan or a comparison.
fn is_part_of_run(file: &Path) -> bool {
    let above = file.parent().filter(|above| !above.as_os_str().is_empty());
    let Some(name) = file.file_name().map(Path::new) else { return false };
    match StoredPlace::of(above.unwrap_or(Path::new("."))).map(|place| place.kind) {
        Some(PlaceKind::Run) => is_kept_file(name),
        Some(PlaceKind::Campaign(_) | PlaceKind::Lab) => {
            [PLAN, AB, LAB].iter().any(|own| Path::new(own) == name)
        }
        None => false,
    }
}

fn check_series(wanted: Option<&str>, run: &CountedRun) -> Result<()> {
    let Some(wanted) = wanted else { return Ok(()) };
    let names: Vec<&str> = run.document.series.iter().map(|own| own.name.as_str()).collect();
    ensure!(
        names.iter().any(|name| is_called(wanted, name)),
        "--series {wanted}: no such series; there are {}",
        names.join(", ")
    );
    Ok(())
}

/// Writes what need not fit into memory, to its file, which is replaced once it is whole, or to
/// standard output.
fn to_file(
    flags: &ExportFlags,
    write: impl FnOnce(&mut dyn Output) -> io::Result<()>,
) -> Result<Exit> {
    let Some(path) = flags.file() else {
        output::stream(write)?;
        return Ok(Exit::Done);
    };
    let named = || format!("cannot write {}", path.display());
    let mut draft = Draft::beside(path).with_context(named)?;
    let mut out = io::BufWriter::with_capacity(1 << 20, draft.file());
    write(&mut out).and_then(|()| io::Write::flush(&mut out)).with_context(named)?;
    drop(out);
    draft.place_on_disk().with_context(named)?;
    output::notice(&format!("wrote {}", crate::plain::plain_path(path)));
    Ok(Exit::Done)
}

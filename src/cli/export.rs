//! `tardy export`: runs in the formats of other programs.

mod checked;

use std::{
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{Args, builder::PossibleValuesParser};

use super::{Exit, gates::GateFlags, output, profile, report};
use crate::{
    draft::Draft,
    exchange::export::{
        CountedRun, ExportFormat, ExportWriter, FORMATS, Output, Submission, TraceTimeline,
    },
    limits::export::MOST_BUCKETS,
    run::{Run, parts::is_kept_file, profile::Profile, series_name::is_called},
    store::Store,
    units::Nanos,
};
use checked::checked;

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
/// A test report has the validity of each run and the result of each --gate; of a plan, a suite or
/// a directory of the lab, of each cell. Plans have the gates that they were begun with unless
/// others are named. An inconclusive gate is reported as skipped, and an invalid run as an error.
/// The names of tests are made of probe, loads and series, or of plan, cell and series, and are
/// alike every night.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 written, and every gate passed; 1 a gate failed, or \
                        --stop-over ended a run; 2 error; 3 a gate is inconclusive; 4 a run is \
                        invalid. The file is written whatever the gates say.")]
pub(super) struct ExportFlags {
    /// Paths, names, beginnings of ids, `last` or `last~1`
    #[arg(value_name = "RUN", default_value = "last")]
    runs: Vec<String>,
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
    let (bytes, exit) = match format.write {
        ExportWriter::Counts(write) => (write(&counted(flags, store)?)?, Exit::Done),
        ExportWriter::RunCounts(write) => {
            let run = one_counted(flags, store)?;
            warn_of_moves(&run, format);
            (write(&run)?, Exit::Done)
        }
        ExportWriter::SeriesCounts(write) => {
            let run = one_counted(flags, store)?;
            check_series(flags.series.as_deref(), &run)?;
            (write(&run, flags.series.as_deref())?, Exit::Done)
        }
        ExportWriter::CountsFile(write) => {
            check_no_gates(flags)?;
            need_file(flags)?;
            let mut runs = flags.runs.iter().map(|name| streamed(name, store));
            return to_file(flags, |out| write(&mut runs, out));
        }
        ExportWriter::Merged(write) => {
            let names = by_machine(flags, store)?;
            (write(&mut names.iter().map(|name| streamed(name, store)))?, Exit::Done)
        }
        ExportWriter::Samples(write) => return sampled(flags, store, write),
        ExportWriter::SamplesFile(write) => {
            need_file(flags)?;
            return sampled(flags, store, write);
        }
        ExportWriter::Copied(write) => {
            let run = one(flags, store)?;
            return to_file(flags, |out| write(&run, out));
        }
        ExportWriter::Bundled(write) => {
            need_file(flags)?;
            let run = one(flags, store)?;
            return to_file(flags, |out| write(&run, flags.redact, out));
        }
        ExportWriter::Checks(write) => checked(flags, store, write)?,
        ExportWriter::Submitted(write) => {
            let to = submission(flags)?;
            checked(flags, store, |runs| write(runs, &to))?
        }
        ExportWriter::Profile(write) => (profiled(flags, store, write)?, Exit::Done),
        ExportWriter::Timeline(write) => (write(&timeline(flags, store)?)?, Exit::Done),
        ExportWriter::TimelineFile(write) => {
            need_file(flags)?;
            (write(&timeline(flags, store)?)?, Exit::Done)
        }
        ExportWriter::ProfileFile(write) => {
            need_file(flags)?;
            (profiled(flags, store, write)?, Exit::Done)
        }
    };
    let is_text =
        !matches!(format.write, ExportWriter::TimelineFile(_) | ExportWriter::ProfileFile(_));
    match flags.file() {
        Some(path) => report::write(path, &bytes)?,
        None if is_text => output::put_columns(&String::from_utf8(bytes)?)?,
        None => output::stream(|out| out.write_all(&bytes))?,
    }
    Ok(exit)
}

impl ExportFlags {
    /// The file that is named; absent for standard output.
    fn file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| path.as_os_str() != "-")
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
        matches!(format.write, ExportWriter::Bundled(_)) || !flags.redact,
        "--redact is of --to bundle; leave one of them out"
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

/// The single samples of the one run.
fn sampled(
    flags: &ExportFlags,
    store: &Store,
    write: fn(&Run, &mut dyn Output) -> io::Result<()>,
) -> Result<Exit> {
    let run = one(flags, store)?;
    ensure!(
        run.has_samples(),
        "{} kept no single samples, which --to {} is of: measure with --raw, or write its \
         histograms (--to histogram-{})",
        run.document.name,
        flags.to,
        flags.to
    );
    to_file(flags, |out| write(&run, out))
}

/// What happened when around the late samples of the one run.
fn timeline(flags: &ExportFlags, store: &Store) -> Result<TraceTimeline> {
    TraceTimeline::of_run(&one(flags, store)?).map_err(|what| anyhow!(what))
}

/// The only run that is named, of a format that has one.
fn one(flags: &ExportFlags, store: &Store) -> Result<Run> {
    let to = &flags.to;
    ensure!(
        flags.gates.is_empty(),
        "--gate is not supported with --to {to}, which has no checks; leave it out"
    );
    let [name] = &flags.runs[..] else {
        bail!("--to {to} is of one run, and {} are named; export one at a time", flags.runs.len());
    };
    let run = store.find(name)?;
    ensure!(
        !flags.file().is_some_and(|file| is_part_of(file, &run)),
        "-o: this file is a part of the run, which it would replace; choose another place"
    );
    Ok(run)
}

/// Whether a file is one of those that a run consists of.
fn is_part_of(file: &Path, run: &Run) -> bool {
    let above = file.parent().filter(|above| !above.as_os_str().is_empty());
    let above = above.unwrap_or(Path::new(".")).canonicalize();
    let is_in_run = above.is_ok_and(|above| run.path.canonicalize().is_ok_and(|run| run == above));
    is_in_run && file.file_name().is_some_and(|name| is_kept_file(Path::new(name)))
}

fn one_counted(flags: &ExportFlags, store: &Store) -> Result<CountedRun> {
    let run = CountedRun::read(one(flags, store)?).map_err(|what| anyhow!(what))?;
    check_buckets(run.recorded())?;
    Ok(run)
}

/// Refuses more buckets than a result is made of that is written whole.
fn check_buckets(count: usize) -> Result<()> {
    ensure!(
        count <= MOST_BUCKETS,
        "more than {MOST_BUCKETS} buckets of these histograms have samples; export fewer runs at a \
         time, or --to histogram-parquet"
    );
    Ok(())
}

/// One of many, which is read when its turn comes.
fn streamed(name: &str, store: &Store) -> io::Result<CountedRun> {
    let run = store.find(name).map_err(io::Error::other)?;
    CountedRun::read(run).map_err(io::Error::other)
}

/// The runs in the order of their machines. Only one is open at a time.
fn by_machine<'a>(flags: &'a ExportFlags, store: &Store) -> Result<Vec<&'a str>> {
    check_no_gates(flags)?;
    let machine = |name: &'a String| -> Result<(String, String, &'a str)> {
        let document = store.find(name)?.document;
        // Two machines may have one name.
        let machine = format!("{}\0{}", document.facts.hostname, document.facts.machine_key());
        Ok((machine, document.id, name.as_str()))
    };
    let mut runs = flags.runs.iter().map(machine).collect::<Result<Vec<_>>>()?;
    runs.sort();
    for pair in runs.windows(2) {
        let [(_, first, one), (_, second, other)] = pair else { continue };
        ensure!(first != second, "{one} and {other} are the same run; name it once");
    }
    Ok(runs.into_iter().map(|(_, _, name)| name).collect())
}

fn check_no_gates(flags: &ExportFlags) -> Result<()> {
    let to = &flags.to;
    ensure!(
        flags.gates.is_empty(),
        "--gate is not supported with --to {to}, which has no checks; leave it out"
    );
    Ok(())
}

/// All runs with their counts.
fn counted(flags: &ExportFlags, store: &Store) -> Result<Vec<CountedRun>> {
    check_no_gates(flags)?;
    let mut buckets = 0;
    let one = |name: &String| {
        let run = CountedRun::read(store.find(name)?).map_err(|what| anyhow!(what))?;
        buckets += run.recorded();
        check_buckets(buckets).map(|()| run)
    };
    flags.runs.iter().map(one).collect()
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

/// The profile of the one run.
fn profiled(
    flags: &ExportFlags,
    store: &Store,
    write: fn(&Profile) -> io::Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    Ok(write(&profile::of(&one(flags, store)?)?)?)
}

//! `tardy export`: runs in the formats of other programs.

use std::{io, path::PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{Args, builder::PossibleValuesParser};

use super::{Exit, gates::GateFlags, output, profile, report};
use crate::{
    exchange::export::{CheckedRun, ExportFormat, ExportWriter, FORMATS},
    run::profile::Profile,
    store::Store,
};

/// Write runs in the format of another program: test reports, or the stacks of a profile
///
/// For a test report each run is checked for its validity, and against each --gate. What the
/// samples do not decide is skipped in the report, and an invalid run is an error there, whatever
/// its gates say.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 written, and every gate passed; 1 a gate failed, or \
                        --stop-over ended a run; 2 error; 3 a gate is inconclusive; 4 a run is \
                        invalid. The file is written whatever the gates say.")]
pub(super) struct ExportFlags {
    /// Paths, names, beginnings of ids, `last` or `last~1`
    #[arg(value_name = "RUN", default_value = "last")]
    runs: Vec<String>,
    /// The format: JUnit XML, the Test Anything Protocol; of one run with --profile its stacks
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    to: String,
    /// The file to write; an older one is replaced
    ///
    /// Without it, standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    gates: GateFlags,
}

fn formats() -> PossibleValuesParser {
    PossibleValuesParser::new(FORMATS.map(|format| format.name))
}

/// Writes the runs.
pub(super) fn export(flags: &ExportFlags, store: &Store) -> Result<Exit> {
    let format = ExportFormat::find(&flags.to).context("--to: no such format")?;
    let (bytes, exit) = match format.write {
        ExportWriter::Checks(write) => checked(flags, store, write)?,
        ExportWriter::Profile(write) => (profiled(flags, store, write)?, Exit::Done),
        ExportWriter::ProfileFile(write) => {
            let to = &flags.to;
            ensure!(flags.output.is_some(), "--to {to} is no text: name a file for it, -o FILE");
            (profiled(flags, store, write)?, Exit::Done)
        }
    };
    match &flags.output {
        Some(path) => report::write(path, &bytes)?,
        None => output::put(&String::from_utf8(bytes)?)?,
    }
    Ok(exit)
}

/// The profile of the one run.
fn profiled(
    flags: &ExportFlags,
    store: &Store,
    write: fn(&Profile) -> io::Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let to = &flags.to;
    ensure!(
        flags.gates.is_empty(),
        "--gate has no meaning with --to {to}, which has no checks; leave it out"
    );
    let [name] = &flags.runs[..] else {
        bail!("--to {to} is of one run, and {} are named; export one at a time", flags.runs.len());
    };
    Ok(write(&profile::of(&store.find(name)?)?)?)
}

/// The runs with their checks, and the exit code.
fn checked(
    flags: &ExportFlags,
    store: &Store,
    write: fn(&[CheckedRun]) -> io::Result<Vec<u8>>,
) -> Result<(Vec<u8>, Exit)> {
    let mut exit = Exit::Done;
    let mut checked = Vec::new();
    let gates = flags.gates.find(store)?;
    for name in &flags.runs {
        let run = store.find(name)?;
        let found = gates.decide(&run).map_err(|error| anyhow!("{name}: {error}"))?;
        exit = exit.worst(super::gates::exit(&run.document, found.as_deref()));
        checked.push(CheckedRun::of(&run.document, &found.unwrap_or_default()));
    }
    Ok((write(&checked)?, exit))
}

//! `tardy export`: runs in the formats of other programs.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::{Args, builder::PossibleValuesParser};

use super::{Exit, gates::GateFlags, output, report};
use crate::{
    exchange::export::{CheckedRun, ExportFormat, FORMATS},
    store::Store,
};

/// Write runs in the format of another program: test reports for build servers
///
/// Each run is checked for its validity, and against each --gate. What the samples do not decide
/// is skipped in the report, and an invalid run is an error there, whatever its gates say.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 written, and every gate passed; 1 a gate failed, or \
                        --stop-over ended a run; 2 error; 3 a gate is inconclusive; 4 a run is \
                        invalid. The file is written whatever the gates say.")]
pub(super) struct ExportFlags {
    /// Paths, names, beginnings of ids, `last` or `last~1`
    #[arg(value_name = "RUN", default_value = "last")]
    runs: Vec<String>,
    /// The format: JUnit XML, or the Test Anything Protocol
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
    let mut exit = Exit::Done;
    let mut checked = Vec::new();
    let gates = flags.gates.find(store)?;
    for name in &flags.runs {
        let run = store.find(name)?;
        let found = gates.decide(&run).map_err(|error| anyhow!("{name}: {error}"))?;
        exit = exit.worst(super::gates::exit(&run.document, found.as_deref()));
        checked.push(CheckedRun::of(&run.document, &found.unwrap_or_default()));
    }
    let bytes = (format.write)(&checked)?;
    match &flags.output {
        Some(path) => report::write(path, &bytes)?,
        None => output::put(&String::from_utf8(bytes)?)?,
    }
    Ok(exit)
}

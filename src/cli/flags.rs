//! Flags that several commands share, and how their values are parsed.

use std::str::FromStr;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::{
    loads::{LoadSpec, command},
    sys::cpus::{Cpus, CpusError},
    units::{AmountError, Nanos, SampleCount, UnitError},
};

/// CPUs, and the order in which they were named.
#[derive(Debug, Clone)]
pub(super) struct CpuList {
    /// All of them.
    pub cpus: Cpus,
    /// As they were written.
    pub in_order: Vec<u32>,
}

impl FromStr for CpuList {
    type Err = CpusError;

    fn from_str(text: &str) -> Result<Self, CpusError> {
        let cpus = text.parse()?;
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let parts: Result<Vec<Cpus>, CpusError> = parts.map(str::parse).collect();
        let in_order = parts?.iter().flat_map(Cpus::iter).collect();
        Ok(Self { cpus, in_order })
    }
}

/// The format of the printed result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Tables for people.
    Text,
    /// One JSON document.
    Json,
}

/// The result's format.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct FormatFlags {
    /// Print the result as text or as JSON
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    format: Format,
    /// Short for --format json
    #[arg(long)]
    json: bool,
}

/// Loads that are the user's own commands.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Loads")]
pub(super) struct CommandFlags {
    /// A command of your own as a load, run by sh -c; repeatable
    ///
    /// At the end it is killed, with every process that it started. Its work is measured as CPU
    /// time. A command that ends before the run counts as died, even with exit code 0.
    #[arg(long = "load-command", value_name = "CMD")]
    pub load_commands: Vec<String>,
}

impl CommandFlags {
    /// The loads that run them.
    pub(super) fn specs(&self) -> impl Iterator<Item = Result<LoadSpec>> {
        let named =
            |text: &String| command::spec(text).with_context(|| format!("--load-command {text:?}"));
        self.load_commands.iter().map(named)
    }
}

impl FormatFlags {
    /// Whether JSON is wanted.
    #[must_use]
    pub(super) fn is_json(self) -> bool {
        self.json || self.format == Format::Json
    }
}

/// A time that is more than nothing and at most an hour.
///
/// # Errors
/// What is wrong with it.
pub(super) fn interval(text: &str) -> Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|error: UnitError| error.to_string())?;
    match time.0 {
        0 => Err("an interval of 0 leaves no time to sleep; use 1us or more, as in 1ms".into()),
        1..1_000 => Err(format!("{time} is shorter than a system call; use 1us or more")),
        1_000..=3_600_000_000_000 => Ok(time),
        _ => Err(format!("{time} is longer than tardy can measure; use 1h or less")),
    }
}

/// A time that is more than nothing.
///
/// # Errors
/// What is wrong with it.
pub(super) fn positive(text: &str) -> Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|error: UnitError| error.to_string())?;
    if time.0 == 0 { Err("0 leaves no time to measure; use 1s or more".into()) } else { Ok(time) }
}

/// A count that may be written as 1000, 50k or 300M.
///
/// # Errors
/// What is wrong with it.
pub(super) fn samples(text: &str) -> Result<u64, String> {
    text.parse().map(|SampleCount(count)| count).map_err(|error: AmountError| error.to_string())
}

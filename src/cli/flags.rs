//! Flags that several commands share, and how their values are parsed.

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::{
    loads::{LoadSpec, command},
    plain::plain,
    report::without_host::{all_without_host, without_host},
    run::Run,
    units::{AmountError, SampleCount},
};

pub(super) use crate::units::typed::{HowLong, duration, positive};

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

/// What is taken out of runs.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct WithoutFlags {
    /// Show latencies without the time of one cause
    #[arg(long, value_enum, value_name = "WHAT")]
    without: Option<Without>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Without {
    /// The hypervisor, as far as the steal counter of a virtual machine measured it (--trace peaks)
    Host,
}

impl WithoutFlags {
    /// Whether something is to be left out.
    pub(super) const fn is_given(self) -> bool {
        self.without.is_some()
    }

    /// The run as it is to be shown.
    ///
    /// # Errors
    /// Why that is not known of this run.
    pub(super) fn of(self, run: Run) -> Result<Run> {
        match self.without {
            Some(Without::Host) => Ok(without_host(run)?),
            None => Ok(run),
        }
    }

    /// Runs that are compared with each other, as they are to be shown.
    ///
    /// # Errors
    /// Why that is not known of one of them.
    pub(super) fn of_all(self, runs: Vec<Run>) -> Result<Vec<Run>> {
        match self.without {
            Some(Without::Host) => Ok(all_without_host(runs)?),
            None => Ok(runs),
        }
    }
}

/// Loads that are the user's own commands.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Loads")]
pub(super) struct CommandFlags {
    /// A command of your own as a load, run by sh -c; repeatable
    ///
    /// At the end tardy kills it, with every process that it started. Its work is measured as CPU
    /// time. A command that ends before the run counts as dead, even with exit code 0.
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

/// What disturbs a measurement.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Loads")]
pub(super) struct LoadFlags {
    /// Background load during the measurement: NAME[:key=value,...]; repeatable
    ///
    /// `tardy load --list` shows all loads with their parameters. idle means no load.
    #[arg(long = "load", value_name = "LOAD")]
    loads: Vec<String>,
    #[command(flatten)]
    commands: CommandFlags,
}

impl LoadFlags {
    /// Whether none is named.
    pub(super) fn is_empty(&self) -> bool {
        self.loads.is_empty() && self.commands.load_commands.is_empty()
    }

    /// All of them.
    ///
    /// # Errors
    /// Names the load that is not available.
    pub(super) fn specs(&self) -> Result<Vec<LoadSpec>> {
        let read = |text: &String| LoadSpec::parse(text).with_context(|| format!("--load {text}"));
        self.loads.iter().map(read).chain(self.commands.specs()).collect()
    }
}

impl FormatFlags {
    /// Whether JSON is wanted.
    #[must_use]
    pub(super) fn is_json(self) -> bool {
        self.json || self.format == Format::Json
    }

    /// Refuses a flag that is of the text alone.
    ///
    /// # Errors
    /// Names the flag, and where the same is.
    pub(super) fn refuse_with_json(self, flag: &str, is_given: bool) -> Result<()> {
        ensure!(
            !(is_given && self.is_json()),
            "{flag} is not supported with JSON; leave it out, or read interrupts.csv of the run"
        );
        Ok(())
    }
}

/// What clap says, without the usage of a command that nobody typed.
pub(super) fn reason(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.split("\n\nUsage:").next().unwrap_or_default();
    let text = text.split("\n\nFor more").next().unwrap_or_default();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let text = lines.collect::<Vec<_>>().join(" ");
    plain(text.strip_prefix("error: ").unwrap_or(&text))
}

/// What an order is drawn by where nobody says it.
///
/// # Errors
/// The kernel has no random numbers.
pub(super) fn random_seed() -> Result<u64> {
    let mut random = [0_u8; 4];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .context("the kernel returned no random number")?;
    Ok(u64::from(u32::from_ne_bytes(random)))
}

/// A count that may be written as 1000, 50k or 300M.
///
/// # Errors
/// What is wrong with it.
pub(super) fn samples(text: &str) -> Result<u64, String> {
    text.parse().map(|SampleCount(count)| count).map_err(|error: AmountError| error.to_string())
}

/// A share in percent, more than nothing and at most 100%: 0.05 for `5%`.
///
/// # Errors
/// What is wrong with it.
pub(super) fn margin(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').map(str::trim);
    let number = number.ok_or_else(|| format!("{text} has no unit; write a share as 5%"))?;
    match number.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent / 100.0),
        Ok(_) => Err(format!("{text} is out of range; a share is more than 0% and at most 100%")),
        Err(_) => Err(format!("\"{text}\" is not a share; use a number and %, e.g. 5%")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_is_a_share_in_percent() {
        assert_eq!(margin("5%"), Ok(0.05));
        assert_eq!(margin("2.5%"), Ok(0.025));
        for (wrong, says) in [
            ("5", "has no unit"),
            ("0%", "out of range"),
            ("-1%", "out of range"),
            ("200%", "out of range"),
            ("x%", "is not a share"),
            ("NaN%", "out of range"),
        ] {
            let error = margin(wrong).unwrap_err();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }
}

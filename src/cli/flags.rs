//! Flags that several commands share, and how their values are parsed.

use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::{
    loads::{LoadSpec, command},
    plain::plain,
    report::without_host::{all_without_host, without_host},
    run::Run,
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

/// A time that is more than nothing and at most an hour.
///
/// # Errors
/// What is wrong with it.
pub(super) fn interval(text: &str) -> Result<Nanos, String> {
    let time = time(text)?;
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
    match time(text)? {
        Nanos(0) => Err("0 is not more than nothing; use a longer time, as 1ms or 1s".into()),
        time => Ok(time),
    }
}

/// How long something lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HowLong {
    /// So long.
    Time(Nanos),
    /// Until somebody ends it.
    Unlimited,
}

impl HowLong {
    /// Its length, where it has one.
    pub(super) const fn limit(self) -> Option<Nanos> {
        match self {
            Self::Time(time) => Some(time),
            Self::Unlimited => None,
        }
    }
}

/// A time that is more than nothing, or `inf`.
///
/// # Errors
/// What is wrong with it.
pub(super) fn duration(text: &str) -> Result<HowLong, String> {
    if text.trim() == "inf" {
        return Ok(HowLong::Unlimited);
    }
    match time(text).map_err(|error| format!("{error}, or inf to continue until Ctrl-C"))? {
        Nanos(0) => Err("0 leaves no time; use 1s or more, or inf to continue until Ctrl-C".into()),
        time => Ok(HowLong::Time(time)),
    }
}

/// A time. Zero needs no unit: its error names what is wrong with zero, and not first
/// what is wrong with a bare number.
pub(super) fn time(text: &str) -> Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Err(UnitError::Bare(number)) if number.parse::<f64>() == Ok(0.0) => Ok(Nanos(0)),
        parsed => parsed.map_err(|error| error.to_string()),
    }
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
    fn what_an_error_advises_is_accepted() {
        for zero in ["0", "0s", "0.0", "0ns"] {
            let error = duration(zero).unwrap_err();
            assert!(error.contains("use 1s or more, or inf"), "{zero}: {error}");
            assert!(positive(zero).unwrap_err().contains("1ms or 1s"), "{zero}");
            assert!(interval(zero).unwrap_err().contains("use 1us or more"), "{zero}");
        }
        assert_eq!(duration("1s"), Ok(HowLong::Time(Nanos(1_000_000_000))));
        assert_eq!(duration("1d").map(HowLong::limit), Ok(Some(Nanos(86_400_000_000_000))));
        assert_eq!(duration("inf"), Ok(HowLong::Unlimited));
        assert_eq!(duration("inf").map(HowLong::limit), Ok(None));
        assert!(positive("1ms").is_ok() && positive("1s").is_ok() && interval("1us").is_ok());
    }

    #[test]
    fn a_duration_without_a_unit_is_refused_with_every_way_out() {
        let error = duration("60").unwrap_err();
        assert_eq!(
            error,
            "60 has no unit; write 60us, 60ms or 60s, or inf to continue until Ctrl-C"
        );
        for text in ["forever", "-1s", "INF s", "infinite", ""] {
            assert!(duration(text).unwrap_err().ends_with("or inf to continue until Ctrl-C"));
        }
    }

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

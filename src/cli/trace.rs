//! What a user may ask `run` to find out about late wake-ups.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum, builder::PossibleValue};

use super::flags::positive;
use crate::{kernel, run::TraceMode, session::TraceWish, units::Nanos};

#[derive(Debug, Args)]
#[command(next_help_heading = "Tracing")]
pub struct TraceFlags {
    /// What to find out about wake-ups, beside how late they were
    ///
    /// Needs root, or CAP_BPF and CAP_PERFMON, and a kernel that describes its types (BTF), as
    /// those of distributions do. auto goes on without where that is missing, and says so.
    #[arg(long, value_enum, default_value = "auto", value_name = "MODE")]
    trace: TraceMode,
    /// How many of the worst wake-ups to keep whole, with all that happened around them
    /// [default: 100]
    #[arg(long, value_name = "N", conflicts_with = "peak_over")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10_000))]
    peaks: Option<u32>,
    /// Keep every wake-up whole that is later than this, instead of the worst
    #[arg(long, value_name = "TIME", value_parser = positive)]
    peak_over: Option<Nanos>,
    /// When to ask which functions the kernel was in: a walk of its stack takes 5 to 10 us
    #[arg(long, value_enum, value_name = "WHEN")]
    stacks: Option<Stacks>,
    /// Measure first what tracing costs here: 8 slices of 500 ms, with and without it in turn
    #[arg(long)]
    calibrate: bool,
}

impl ValueEnum for TraceMode {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Auto => "As much as this machine allows",
            Self::Off => "Nothing",
            Self::Stages => {
                "Where the time went: interrupt, handler, dispatch, return to user space"
            }
            Self::Peaks => "Also why: what each late wake-up waited for",
        };
        Some(PossibleValue::new(self.as_str()).help(help))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stacks {
    /// When a wake-up is late already, or about to be
    Auto,
    /// At each wake-up that finds the kernel at work, which is dear
    Always,
    /// Never
    Off,
}

/// So many peaks are kept unless the user says otherwise.
const PEAKS: u32 = 100;

impl TraceFlags {
    /// What the session shall do.
    pub fn wish(&self) -> Result<TraceWish> {
        let mode = self.trace;
        let of_peaks = [
            ("--peaks", self.peaks.is_some()),
            ("--peak-over", self.peak_over.is_some()),
            ("--stacks", self.stacks.is_some()),
        ];
        let of_any = [("--calibrate", self.calibrate)];
        let idle: &[_] = match mode {
            TraceMode::Off => &[&of_peaks[..], &of_any].concat(),
            TraceMode::Stages => &of_peaks,
            TraceMode::Auto | TraceMode::Peaks => &[],
        };
        if let Some((flag, _)) = idle.iter().find(|(_, given)| *given) {
            let mode = mode.as_str();
            bail!("{flag} has no meaning with --trace {mode}; leave one of them out");
        }
        Ok(TraceWish {
            mode,
            stacks: match self.stacks.unwrap_or(Stacks::Auto) {
                Stacks::Auto => kernel::Stacks::WhenLate,
                Stacks::Always => kernel::Stacks::Always,
                Stacks::Off => kernel::Stacks::Off,
            },
            keep: self.peaks.unwrap_or(PEAKS) as usize,
            peak_over_ns: self.peak_over.map(|over| over.0),
            calibrate: self.calibrate,
        })
    }
}

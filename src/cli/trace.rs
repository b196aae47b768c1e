//! The tracing flags of `run`: what to find out about late wake-ups.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum, builder::PossibleValue};

use super::flags::positive;
use crate::{
    kernel,
    run::{Calibration, PeakRoom, TraceBy, TraceMode},
    session::TraceWish,
    store::Store,
    units::{ByteSize, Nanos},
};

#[derive(Debug, Args)]
#[command(next_help_heading = "Tracing")]
pub(super) struct TraceFlags {
    /// What to trace for each wake-up
    ///
    /// Tracing needs root (or CAP_BPF and CAP_PERFMON) and a kernel with type information (BTF), as
    /// distribution kernels have. Without these, auto measures without tracing and reports it.
    /// Messages are traced only with stages or peaks: receive, and pingpong and stream on this
    /// machine.
    #[arg(long, value_enum, default_value = "auto", value_name = "MODE")]
    trace: TraceMode,
    /// Tracing backend [default: bpf, or tracefs if BPF is unavailable]
    #[arg(long, value_enum, value_name = "TRACER")]
    trace_by: Option<TraceBy>,
    /// Number of the worst wake-ups to keep with everything recorded around them [default: 100]
    #[arg(long, value_name = "N", conflicts_with = "peak_over")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10_000))]
    peaks: Option<u32>,
    /// Keep every wake-up that is later than this, instead of the worst ones
    #[arg(long, value_name = "TIME", value_parser = positive)]
    peak_over: Option<Nanos>,
    /// Use at most this much of the disk for peaks [default: 32MiB]
    ///
    /// When it is full, further peaks are counted but not kept, except a new worst one. The sums of
    /// causes include all.
    #[arg(long, value_name = "SIZE", value_parser = peak_room)]
    peak_room: Option<u64>,
    /// Also keep all that every CPU did in the last TIME of the run: 5s
    ///
    /// With --stop-over this shows the events before the latency that ended the run. `tardy export
    /// --to perfetto` or `--to chrome` writes it for trace viewers. It takes 8 MiB per CPU, which
    /// is 250,000 events. It is an error if wake-ups cannot be traced.
    #[arg(long, value_name = "TIME", value_parser = positive)]
    record: Option<Nanos>,
    /// When to record the kernel stack: a stack walk takes 5 to 10 us
    #[arg(long, value_enum, value_name = "WHEN")]
    stacks: Option<Stacks>,
    /// Also sample every CPU at this rate per second [default: 99], for `tardy profile`
    ///
    /// Needs root, or CAP_BPF and CAP_PERFMON. Each sample interrupts its CPU for some
    /// microseconds, which latencies include, and wakes an idle CPU. The profile is written at the
    /// end: a killed run has none.
    #[arg(long, value_name = "HZ", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "99")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000))]
    profile: Option<u32>,
    /// First measure the overhead of tracing: 8 slices of 500 ms, with and without
    #[arg(long)]
    calibrate: bool,
}

impl ValueEnum for TraceBy {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Bpf => "Programs in the kernel, at its tracepoints",
            Self::Tracefs => {
                "The kernel's tracer, in a separate instance: for timer, if BPF is refused or \
                 missing; needs root. It shows no stacks, locks, page faults or stolen time, and \
                 costs more per wake-up"
            }
        };
        Some(PossibleValue::new(self.as_str()).help(help))
    }
}

impl ValueEnum for TraceMode {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Auto => "As much as the measured kernel and your privileges allow",
            Self::Off => "Nothing",
            Self::Stages => {
                "Where the time went: interrupt, handler, dispatch, return to user space; of a \
                 message: sending or network stack, dispatch, receiving, each way"
            }
            Self::Peaks => "Stages, and why: what each late wake-up or message waited for",
        };
        Some(PossibleValue::new(self.as_str()).help(help))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stacks {
    /// Only if a wake-up is already late, or about to be
    Auto,
    /// At each wake-up that interrupts kernel code: expensive
    Always,
    /// Never
    Off,
}

/// A size that holds some peaks at least.
fn peak_room(text: &str) -> Result<u64, String> {
    match text.parse::<ByteSize>().map_err(|error| error.to_string())? {
        ByteSize(bytes) if bytes < LEAST_ROOM => {
            Err(format!("{text} has no room for a peak; use 64KiB or more, or --peaks 0 for none"))
        }
        ByteSize(bytes) => Ok(bytes),
    }
}

/// A peak with a long timeline takes some of that.
const LEAST_ROOM: u64 = 64 << 10;

/// How many peaks are kept by default.
const PEAKS: u32 = 100;

impl TraceFlags {
    /// What other runs found that tracing costs, where this one will not find out.
    pub(super) fn calibrations(&self, store: &Store) -> Vec<Calibration> {
        match (self.trace, self.calibrate) {
            (TraceMode::Off, _) | (_, true) => Vec::new(),
            _ => store.calibrations(),
        }
    }

    /// What to trace.
    pub(super) const fn mode(&self) -> TraceMode {
        self.trace
    }

    /// How often a second every CPU is to be sampled; absent for never.
    pub(super) const fn profile_hz(&self) -> Option<u32> {
        self.profile
    }

    /// The tracing that the session is to do. Where the user names no peaks, those over
    /// `over_ns` are kept, if there is such a time.
    pub(super) fn wish(&self, over_ns: Option<i64>) -> Result<TraceWish> {
        let mode = match self.trace {
            // A recording that is not there would be missed when it is too late.
            TraceMode::Auto if self.record.is_some() => TraceMode::Peaks,
            mode => mode,
        };
        let of_peaks = [
            ("--peaks", self.peaks.is_some()),
            ("--peak-over", self.peak_over.is_some()),
            ("--peak-room", self.peak_room.is_some()),
            ("--stacks", self.stacks.is_some()),
            ("--record", self.record.is_some()),
        ];
        let of_any = [("--calibrate", self.calibrate), ("--trace-by", self.trace_by.is_some())];
        if self.trace_by == Some(TraceBy::Tracefs) {
            // What it has no stacks for, and does not keep.
            let given = [("--stacks", self.stacks.is_some()), ("--record", self.record.is_some())];
            if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
                bail!("{flag} needs BPF, and is not supported with --trace-by tracefs");
            }
        }
        let idle: &[_] = match mode {
            TraceMode::Off => &[&of_peaks[..], &of_any].concat(),
            TraceMode::Stages => &of_peaks,
            TraceMode::Auto | TraceMode::Peaks => &[],
        };
        if let Some((flag, _)) = idle.iter().find(|(_, given)| *given) {
            let mode = mode.as_str();
            bail!("{flag} is not supported with --trace {mode}; leave one of them out");
        }
        Ok(TraceWish {
            mode,
            by: self.trace_by,
            stacks: match self.stacks.unwrap_or(Stacks::Auto) {
                Stacks::Auto => kernel::Stacks::WhenLate,
                Stacks::Always => kernel::Stacks::Always,
                Stacks::Off => kernel::Stacks::Off,
            },
            keep: self.peaks.unwrap_or(PEAKS) as usize,
            peak_over_ns: match (self.peak_over, self.peaks) {
                (Some(over), _) => Some(over.0),
                (None, Some(_)) => None,
                (None, None) => over_ns,
            },
            peak_room: self.peak_room.unwrap_or(PeakRoom::DEFAULT_BYTES),
            record_ns: self.record.map(|time| time.0),
            calibrate: self.calibrate,
        })
    }
}

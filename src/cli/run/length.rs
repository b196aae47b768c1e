//! How long a run is, and what ends it earlier.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, builder::ArgPredicate};

use crate::{
    cli::flags::samples,
    run::probes::ProbeInfo,
    session::Length,
    sys::ftrace::{self, ForeignTrace},
    units::{
        Nanos,
        typed::{HowLong, duration, positive},
    },
};

/// If none is asked for.
pub(super) const DEFAULT_DURATION: Nanos = Nanos(60_000_000_000);

#[derive(Debug, Args)]
#[command(next_help_heading = "Length")]
pub(super) struct LengthFlags {
    /// How long to measure: 10s, 1d, or inf [default: 60s; pingpong: 1M samples]
    ///
    /// inf measures until Ctrl-C, SIGTERM or SIGHUP. The run is then complete, with its usual exit
    /// code. The intervals of its log grow with the run, so a month takes little more memory and
    /// disk than a day.
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "samples")]
    #[arg(allow_hyphen_values = true)]
    pub(super) duration: Option<HowLong>,
    /// Number of samples per thread, instead of a time: 1000, 50k, 300M
    #[arg(long, value_name = "N", value_parser = samples)]
    pub(super) samples: Option<u64>,
    /// How long to run the probe before recording starts
    #[arg(long, value_name = "TIME", default_value = "1s")]
    #[arg(default_value_if("command", ArgPredicate::IsPresent, "0s"))]
    pub(super) warmup: Nanos,
    /// End the run at the first latency above this, with exit code 1
    #[arg(long, value_name = "TIME", value_parser = positive)]
    pub(super) stop_over: Option<Nanos>,
    /// At --stop-over, also mark and stop your own ftrace trace
    ///
    /// The late thread first writes the latency into trace_marker, then 0 into tracing_on. Tracing
    /// stays off. DIR is an instance: /sys/kernel/tracing/instances/NAME.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = ftrace::TRACEFS, requires = "stop_over")]
    mark_trace: Option<PathBuf>,
}

impl LengthFlags {
    /// The trace to mark and stop.
    pub(super) fn foreign_trace(&self) -> Result<Option<ForeignTrace>> {
        let opened = self.mark_trace.as_deref().map(ForeignTrace::open).transpose();
        opened.context(
            "--mark-trace: needs root, and a directory of tracefs \
             (mount -t tracefs nodev /sys/kernel/tracing)",
        )
    }

    /// How long a run of this probe is; of one that looks at a command, until that ends.
    pub(super) fn of(&self, probe: &ProbeInfo, has_command: bool) -> Length {
        match (self.samples, self.duration) {
            (Some(samples), _) => Length::Samples(samples),
            (None, Some(HowLong::Time(time))) => Length::Time(time.0),
            (None, Some(HowLong::Unlimited)) => Length::Unlimited,
            (None, None) if has_command => Length::Unlimited,
            (None, None) => {
                probe.default_samples.map_or(Length::Time(DEFAULT_DURATION.0), Length::Samples)
            }
        }
    }
}

//! What a user may ask `run` to find out about late wake-ups.

use clap::{Args, ValueEnum};

use crate::session::{TraceMode, TraceWish};

#[derive(Debug, Args)]
#[command(next_help_heading = "Tracing")]
pub struct TraceFlags {
    /// What to find out about each wake-up, beside how late it was
    ///
    /// Needs root, or CAP_BPF and CAP_PERFMON, and a kernel that describes its types (BTF), as
    /// those of distributions do. auto goes on without where that is missing, and says so.
    #[arg(long, value_enum, default_value = "auto", value_name = "MODE")]
    trace: Mode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// As much as this machine allows
    Auto,
    /// Nothing
    Off,
    /// Where the time went: interrupt, handler, dispatch, return to user space
    Stages,
}

impl TraceFlags {
    /// What the session shall do.
    pub fn wish(&self) -> TraceWish {
        let mode = match self.trace {
            Mode::Auto => TraceMode::Auto,
            Mode::Off => TraceMode::Off,
            Mode::Stages => TraceMode::Stages,
        };
        TraceWish { mode }
    }
}

//! `tardy why`: what made the wake-ups of a run late.

use anyhow::Result;
use clap::Args;

use super::{Exit, flags::FormatFlags, output};
use crate::{report::why, store::Store};

/// Explain why wake-ups of a run were late: a verdict, the causes, the worst peaks
#[derive(Debug, Args)]
pub(super) struct WhyFlags {
    /// A path, a name, the beginning of an id, `last` or `last~1`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    #[command(flatten)]
    format: FormatFlags,
    /// How many of the worst peaks to show with their timelines
    ///
    /// JSON output has all peaks that were kept.
    #[arg(
        long,
        value_name = "SHOWN",
        default_value_t = 3,
        conflicts_with = "all_peaks",
        help_heading = "Output"
    )]
    peaks: usize,
    /// Show all peaks that were kept, with their timelines
    #[arg(long, help_heading = "Output")]
    all_peaks: bool,
}

/// Prints the explanation.
pub(super) fn why(flags: &WhyFlags, store: &Store) -> Result<Exit> {
    let run = store.find(&flags.run)?;
    let (why, document) = why::document(&run)?;
    if flags.format.is_json() {
        output::put_json(&why)?;
    } else {
        let timelines = if flags.all_peaks { usize::MAX } else { flags.peaks };
        let place = run.path.display().to_string();
        output::put(&why::text(&why, &document, &place, timelines))?;
    }
    Ok(Exit::Done)
}

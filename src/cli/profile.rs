//! `tardy profile`: who used the CPUs during a run.

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;

use super::{Exit, flags::FormatFlags, output};
use crate::{
    report::profile::{LateProfile, MOST_SHOWN, ProfileReport, late_text, online, own_time, text},
    run::{Run, profile::Profile},
    store::Store,
};

/// Show who used the CPUs during a run: contexts of each CPU, tasks, functions
///
/// Needs a run measured with --profile. `tardy export --to folded` writes its stacks for flame
/// graph programs.
#[derive(Debug, Args)]
pub(super) struct ProfileFlags {
    /// A path, a name, the beginning of an id, `last` or `last~1`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// How many tasks and functions to show, at most 1000
    #[arg(long, value_name = "ROWS", default_value = "15")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000))]
    top: u32,
    /// Show only late moments: the stacks in peaks, weighted by their time
    ///
    /// Needs a run measured with --trace peaks, with or without --profile. With it, and a
    /// --deadline of attached threads, also on what they spent their own CPU time in late cycles.
    #[arg(long)]
    late: bool,
    #[command(flatten)]
    format: FormatFlags,
}

/// The profile of a run.
///
/// # Errors
/// The profile is missing or damaged; with the remedy.
pub(super) fn of(run: &Run) -> Result<Profile> {
    let found = run.profile().map_err(|damage| anyhow!("{damage}"))?;
    found.with_context(|| {
        let what = match run.document.parameters.profile_hz {
            Some(_) => "has no profile, as it did not end in order: it is written at the end",
            None => "has no profile: measure one with `tardy run --profile`",
        };
        format!("{} {what}", run.document.name)
    })
}

/// Prints it.
pub(super) fn profile(flags: &ProfileFlags, store: &Store) -> Result<Exit> {
    let run = store.find(&flags.run)?;
    if flags.late {
        return late(flags, &run);
    }
    let report = ProfileReport::of(&of(&run)?, online(&run.document), MOST_SHOWN);
    if flags.format.is_json() {
        output::put_json(&report)?;
    } else {
        output::put(&text(&report, &run.document.name, flags.top as usize))?;
    }
    Ok(Exit::Done)
}

/// Prints the profile of the late moments.
fn late(flags: &ProfileFlags, run: &Run) -> Result<Exit> {
    let peaks = run.peaks();
    if let Some(damage) = peaks.damaged.first() {
        output::warn(&damage.to_string());
    }
    let name = &run.document.name;
    let profile = run.profile().unwrap_or_else(|damage| {
        output::warn(&damage.to_string());
        None
    });
    let own_time = profile.as_ref().map(own_time).unwrap_or_default();
    ensure!(
        !peaks.worst.is_empty() || !own_time.is_empty(),
        "{name} has no peaks: measure with `tardy run --trace peaks`"
    );
    let late = LateProfile::of(&peaks.worst, own_time, MOST_SHOWN);
    if flags.format.is_json() {
        output::put_json(&late)?;
    } else {
        output::put(&late_text(&late, name, flags.top as usize))?;
    }
    Ok(Exit::Done)
}

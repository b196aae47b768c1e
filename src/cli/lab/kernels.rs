//! `tardy lab kernels`: which kernels are at hand.

use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::{
    cli::{Exit, flags::FormatFlags, output},
    lab::{self, kernels, kernels::Source},
    report::table::Table,
};

/// List the kernels at hand, and fetch others.
#[derive(Debug, Args)]
pub struct KernelsFlags {
    /// Fetch this kernel first: standard, rt, a Debian package linux-image-... or a .deb file
    #[arg(long, value_name = "NAME")]
    fetch: Vec<String>,
    #[command(flatten)]
    format: FormatFlags,
}

/// Fetches what was asked for, and prints a line per kernel.
pub fn kernels(flags: &KernelsFlags) -> Result<Exit> {
    let cache = lab::cache()?.join(kernels::DIRECTORY);
    for name in &flags.fetch {
        kernels::get(&Source::parse(name)?, &cache, &output::tell)?;
    }
    let cached = kernels::list::content(&cache)?.packages;
    if flags.format.is_json() {
        let lines: Vec<_> = cached
            .iter()
            .map(|kernel| json!({ "release": kernel.kernel.name, "image": kernel.kernel.image }))
            .collect();
        output::put(&(serde_json::to_string_pretty(&json!({ "kernels": lines }))? + "\n"))?;
        return Ok(Exit::Done);
    }
    if cached.is_empty() {
        output::tell(&format!(
            "No kernels in {}; `tardy lab kernels --fetch standard` gets one.",
            cache.display()
        ));
        return Ok(Exit::Done);
    }
    let mut table = Table::new(2, &["release", "image"]);
    for kernel in &cached {
        table.row(vec![kernel.kernel.name.clone(), kernel.kernel.image.display().to_string()]);
    }
    output::put(&(table.lines().join("\n") + "\n"))?;
    Ok(Exit::Done)
}

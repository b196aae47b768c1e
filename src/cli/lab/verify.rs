//! `tardy lab verify`: whether repeating runs of the lab gives the same samples.

use std::{num::NonZeroUsize, path::PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use super::{
    publish,
    repeater::{Repeater, refuse_others},
};
use crate::{
    cli::{Exit, flags::FormatFlags, output},
    lab::cell::verify,
    plain::plain,
    run::COUNTED_TIME,
    store::Store,
    units::Nanos,
};

/// Repeat a lab run, or published results, and compare all samples.
///
/// Virtual time (the number of instructions executed) is reproducible only with the same kernel,
/// tardy and QEMU. If one of them differs, the error names it, with exit code 2. Exit code 1:
/// samples differ. With --published also 3: some could not be repeated here, the others are the
/// same.
#[derive(Debug, Args)]
pub(super) struct VerifyFlags {
    /// The run, measured with --mode deterministic
    #[arg(value_name = "RUN", required_unless_present = "published")]
    run: Option<String>,
    /// Repeat the runs of a file of `tardy lab publish`
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    published: Option<PathBuf>,
    /// Number of its runs to repeat, spread evenly over the file [default: all]
    #[arg(long, value_name = "N", conflicts_with = "run")]
    cells: Option<NonZeroUsize>,
    /// The kernel of that run, as for `tardy lab run` [default: the one in the cache that it names]
    ///
    /// Needed if the kernel was your own file or is not in the cache. A record may come from
    /// anywhere, so it cannot make tardy read or fetch anything.
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Time limit for one guest, in time of this machine
    #[arg(long, value_name = "TIME", default_value = "5m")]
    limit: Nanos,
    #[command(flatten)]
    format: FormatFlags,
}

/// Repeats and prints the result.
pub(super) fn verify(flags: &VerifyFlags, store: &Store) -> Result<Exit> {
    if let Some(file) = &flags.published {
        let published = publish::read(file)?;
        let most = flags.cells.map_or(usize::MAX, NonZeroUsize::get);
        let repeater = Repeater::open(flags.kernel.as_deref(), flags.limit)?;
        return publish::repeat(&published, most, &repeater, flags.format.is_json());
    }
    let run = store.find(flags.run.as_deref().context("name a run, or --published FILE")?)?;
    let author = run.author().context("a record that is not a file")?;
    let name = format!("{}: its run.json", plain(&run.document.name));
    refuse_others(author, &name, |distrust| run.remedy(distrust))?;
    let facts = verify::facts(&run)?;
    let outcome = Repeater::open(flags.kernel.as_deref(), flags.limit)?.verify(facts)?;
    let same = outcome.is_same();
    if flags.format.is_json() {
        output::put_json(&json!({
            "run": run.document.id,
            "same": same,
            "sample_hash": outcome.before,
            "sample_hash_now": outcome.now,
        }))?;
    } else if same {
        let before = plain(&outcome.before);
        output::put(&format!("The same again: {before}\nTimes are {COUNTED_TIME}.\n"))?;
    } else {
        output::put(&format!(
            "Not the same: samples were {}, and are {}\n",
            plain(&outcome.before),
            plain(&outcome.now),
        ))?;
    }
    Ok(if same { Exit::Done } else { Exit::No })
}

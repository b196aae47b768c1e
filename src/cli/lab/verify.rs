//! `tardy lab verify`: whether repeating a run of the lab gives the same samples.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use crate::{
    cli::{Exit, flags::FormatFlags, output},
    lab::{
        self,
        cell::{guest_runner::GuestRunner, verify},
        kernels::{self, Kernel, KernelSource},
    },
    plain::plain,
    run::{COUNTED_TIME, LabFacts},
    store::Store,
    sys::signals::Quit,
    units::Nanos,
};

/// Repeat a run of the lab, and compare its samples by their hash.
///
/// Counted time (the number of instructions executed) is reproducible only with the same kernel,
/// the same tardy and the same QEMU. If one of them differs, the error names it, with exit code 2.
/// Exit code 1: the samples differ.
#[derive(Debug, Args)]
pub(super) struct VerifyFlags {
    /// The run, measured with --mode deterministic
    #[arg(value_name = "RUN")]
    run: String,
    /// The kernel of that run, as for `tardy lab run` [default: the one in the cache that it names]
    ///
    /// Needed where it was a file of your own, or is not in the cache: a record may come from
    /// anywhere, and has nothing read or fetched.
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Time limit for one guest, in time of this machine
    #[arg(long, value_name = "TIME", default_value = "5m")]
    limit: Nanos,
    #[command(flatten)]
    format: FormatFlags,
}

/// Repeats the run and prints the result.
pub(super) fn verify(flags: &VerifyFlags, store: &Store) -> Result<Exit> {
    let run = store.find(&flags.run)?;
    let facts = verify::facts(&run)?;
    let cache = lab::cache()?;
    let runner = GuestRunner::open(&cache, &output::notice)?;
    let kernel = kernel(flags, facts, &cache.join(kernels::DIRECTORY))?;
    let quit = Quit::listen().context("cannot listen for signals")?;
    let limit = Duration::from_nanos(flags.limit.0.unsigned_abs());
    let stop = || quit.seen().is_some();
    let outcome = verify::verify(facts, kernel, limit, &runner, &stop)?;
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

/// The kernel of a run: what the user names, or what lies in the cache.
fn kernel(flags: &VerifyFlags, facts: &LabFacts, cache: &Path) -> Result<Kernel> {
    let Some(name) = &flags.kernel else {
        return kernels::known(&facts.kernel, &facts.kernel_hash, cache);
    };
    let kernel = kernels::get(&KernelSource::parse(name)?, cache, &output::notice)?;
    // What it was called where the run was made says nothing; its checksum is compared.
    Ok(Kernel { asked: facts.kernel.clone(), ..kernel })
}

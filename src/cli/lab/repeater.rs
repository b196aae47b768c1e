//! Repeats runs of the lab on this machine.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{
    cli::output,
    lab::{
        self,
        cell::{
            guest_runner::GuestRunner,
            verify::{self, VerifyOutcome},
        },
        kernels::{self, Kernel, KernelSource},
    },
    plain::plain,
    run::{Author, Distrust, Document, LabFacts},
    sys::signals::Quit,
    units::Nanos,
};

/// What repeats runs here.
pub(super) struct Repeater {
    runner: GuestRunner,
    cache: PathBuf,
    /// What the user named as the kernel.
    kernel: Option<Kernel>,
    quit: Quit,
    limit: Duration,
}

impl Repeater {
    /// With the kernel that the user names, and a limit for each guest in time of this machine.
    pub(super) fn open(kernel: Option<&str>, limit: Nanos) -> Result<Self> {
        let cache = lab::cache()?;
        let runner = GuestRunner::open(&cache, &output::notice)?;
        let cache = cache.join(kernels::DIRECTORY);
        let kernel = kernel.map(|name| named(name, &cache)).transpose()?;
        let quit = Quit::listen().context("cannot listen for signals")?;
        let limit = Duration::from_nanos(limit.0.unsigned_abs());
        Ok(Self { runner, cache, kernel, quit, limit })
    }

    /// Whether somebody asked for the end.
    pub(super) fn is_stopped(&self) -> bool {
        self.quit.seen().is_some()
    }

    /// Repeats one run and compares its samples.
    pub(super) fn verify(&self, facts: &LabFacts) -> Result<VerifyOutcome> {
        let (kernel, stop) = (self.kernel(facts)?, || self.is_stopped());
        announce(facts);
        verify::verify(facts, kernel, self.limit, &self.runner, &stop)
    }

    /// Repeats one run.
    pub(super) fn repeat(&self, facts: &LabFacts) -> Result<Document> {
        let (kernel, stop) = (self.kernel(facts)?, || self.is_stopped());
        announce(facts);
        verify::repeat(facts, kernel, self.limit, &self.runner, &stop)
    }

    /// The kernel of a run: what the user named, or what lies in the cache.
    fn kernel(&self, facts: &LabFacts) -> Result<Kernel> {
        match &self.kernel {
            // What it was called where the run was made says nothing; its checksum is compared.
            Some(kernel) => Ok(Kernel { asked: facts.kernel.clone(), ..kernel.clone() }),
            None => kernels::known(&facts.kernel, &facts.kernel_hash, &self.cache),
        }
    }
}

/// A kernel that the user names.
fn named(name: &str, cache: &Path) -> Result<Kernel> {
    kernels::get(&KernelSource::parse(name)?, cache, &output::notice)
}

/// Prints the arguments of a record that guests are about to run.
fn announce(facts: &LabFacts) {
    for (who, arguments) in
        [("the guest runs: tardy run", &facts.arguments), ("its peer runs: tardy", &facts.far)]
    {
        if !arguments.is_empty() {
            output::notice(&format!("{who} {}", plain(&arguments.join(" "))));
        }
    }
}

/// Refuses what another user can have written, since a guest would run the arguments in it.
pub(super) fn refuse_others(
    author: Author,
    what: &str,
    remedy: impl FnOnce(Distrust) -> String,
) -> Result<()> {
    let Some(distrust) = author.distrust() else { return Ok(()) };
    bail!(
        "{what} {distrust}, and a guest runs the arguments that it names: only your own record is \
         repeated; {}",
        remedy(distrust)
    );
}

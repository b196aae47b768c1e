//! Repeats a cell, and compares its samples with those of an earlier run of it.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::{Cell, ClockMode, guest_runner::GuestRunner, phase::StartPhase};
use crate::{
    lab::kernels::Kernel,
    run::{Document, LabFacts, Run, RunDirectory},
};

/// The result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyOutcome {
    /// The hash of the samples then.
    pub before: String,
    /// The hash of the samples now.
    pub now: String,
}

impl VerifyOutcome {
    /// Whether it was the same run.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.before == self.now
    }
}

/// What the lab knows of a run whose time was counted.
///
/// # Errors
/// A run that is not the lab's, or whose time was the host's; one whose samples are damaged, or no
/// longer those that its record was made of.
pub fn facts(run: &Run) -> Result<&LabFacts> {
    let name = run.path.display();
    let facts = run.document.facts.lab.as_ref();
    let facts = facts.with_context(|| {
        format!(
            "{name} has no facts.lab: it was not measured by the lab, so no guest can be repeated"
        )
    })?;
    ensure!(
        facts.mode == "deterministic",
        "{name} was run in mode {}, whose times are the host's: only runs of --mode deterministic \
         can be repeated",
        facts.mode
    );
    let said = facts.sample_hash.as_ref();
    let said =
        said.with_context(|| format!("{name}: facts.lab has no sample_hash to compare with"))?;
    let found = super::guest_record::sample_hash(run)?;
    ensure!(
        found.as_ref() == Some(said),
        "{name}: its samples are not those that facts.lab.sample_hash was made of; copy the run \
         again from where it was made"
    );
    Ok(facts)
}

/// Runs the cell again in a directory that does not stay, and compares the samples.
///
/// # Errors
/// Why it cannot be repeated: another kernel, tardy or QEMU, each by name; a cell that fails.
pub fn verify(
    facts: &LabFacts,
    kernel: Kernel,
    limit: Duration,
    runner: &GuestRunner,
    stop: &dyn Fn() -> bool,
) -> Result<VerifyOutcome> {
    let again = repeat(facts, kernel, limit, runner, stop)?;
    let now = again.facts.lab.and_then(|lab| lab.sample_hash);
    let now = now.context("the repeated run kept no samples")?;
    let before = facts.sample_hash.clone().unwrap_or_default();
    Ok(VerifyOutcome { before, now })
}

/// Runs the cell again in a directory that does not stay. The record of the repetition.
///
/// # Errors
/// As [`verify`].
pub fn repeat(
    facts: &LabFacts,
    kernel: Kernel,
    limit: Duration,
    runner: &GuestRunner,
    stop: &dyn Fn() -> bool,
) -> Result<Document> {
    let cell = Cell {
        kernel,
        mode: ClockMode::Deterministic,
        seed: facts.seed,
        start: StartPhase { wait_ns: facts.wait_ns.unwrap_or(0), padding: facts.padding },
        is_control: facts.is_control,
        load: facts.load.clone(),
        arguments: facts.arguments.clone(),
        far: facts.far.clone(),
        cpus: facts.cpus,
        limit,
    };
    let differences = runner.differences(facts, &cell)?;
    if !differences.is_empty() {
        bail!(
            "this is not where that run was made, and a counted run is the same only with the same \
             kernel, tardy and QEMU: {}",
            differences.join("; ")
        );
    }
    let scratch = runner.scratch()?;
    let place = RunDirectory::make(&scratch.path().join("again"))?;
    runner.run(&cell, &place, stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_hash_is_the_same_run() {
        let outcome = |now: &str| VerifyOutcome { before: "aa".into(), now: now.into() };
        assert!(outcome("aa").is_same() && !outcome("ab").is_same());
    }
}

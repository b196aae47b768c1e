//! `tardy lab`: kernels in virtual machines, a file for each of its verbs.

mod compare;
mod kernels;
mod run;
mod matrix_progress;
mod verify;

use anyhow::Result;
use clap::{Args, Subcommand};

use super::Exit;
use crate::store::Store;

/// Boot kernels in virtual machines, and measure in them.
///
/// Nothing is installed, nothing of this machine is changed, and none of it needs root.
#[derive(Debug, Args)]
pub struct LabFlags {
    #[command(subcommand)]
    verb: LabVerb,
}

#[derive(Debug, Subcommand)]
enum LabVerb {
    Kernels(kernels::KernelsFlags),
    Run(run::LabRunFlags),
    Compare(compare::CompareFlags),
    Verify(verify::VerifyFlags),
}

/// Does what the verb of the lab says. Runs are found in `store`, and made there.
pub fn lab(flags: &LabFlags, store: &Store) -> Result<Exit> {
    match &flags.verb {
        LabVerb::Kernels(flags) => kernels::kernels(flags),
        LabVerb::Run(flags) => run::run(flags, store),
        LabVerb::Compare(flags) => compare::compare(flags, store),
        LabVerb::Verify(flags) => verify::verify(flags, store),
    }
}

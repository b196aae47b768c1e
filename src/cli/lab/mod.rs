//! `tardy lab`: kernels in virtual machines, a file for each of its verbs.

mod kernels;

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
}

/// Does what the verb of the lab says. Runs are found in `store`, and made there.
pub fn lab(flags: &LabFlags, _store: &Store) -> Result<Exit> {
    match &flags.verb {
        LabVerb::Kernels(flags) => kernels::kernels(flags),
    }
}

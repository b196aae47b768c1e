//! `tardy lab`: kernels in virtual machines; one file per subcommand.

mod bisect;
mod compare;
mod gates;
mod kernels;
mod measure;
mod plan_check;
mod publish;
mod repeater;
mod run;
mod matrix_progress;
mod verify;

pub(super) use self::compare::{Gathered, gather};

use anyhow::Result;
use clap::{Args, Subcommand};

use super::Exit;
use crate::store::Store;

/// Boot kernels in virtual machines, and measure in them.
///
/// Installs nothing, changes no setting of this machine, and needs no root; kernels are kept in a
/// cache.
#[derive(Debug, Args)]
pub(super) struct LabFlags {
    #[command(subcommand)]
    verb: LabVerb,
}

#[derive(Debug, Subcommand)]
enum LabVerb {
    Kernels(kernels::KernelsFlags),
    Run(run::LabRunFlags),
    Compare(compare::CompareFlags),
    Bisect(bisect::BisectFlags),
    Verify(verify::VerifyFlags),
    Publish(publish::PublishFlags),
}

/// Runs a subcommand of the lab. Runs are read from `store`, and written there.
pub(super) fn lab(flags: &LabFlags, store: &Store) -> Result<Exit> {
    match &flags.verb {
        LabVerb::Kernels(flags) => kernels::kernels(flags),
        LabVerb::Run(flags) => run::run(flags, store),
        LabVerb::Compare(flags) => compare::compare(flags, store),
        LabVerb::Bisect(flags) => bisect::bisect(flags, store),
        LabVerb::Verify(flags) => verify::verify(flags, store),
        LabVerb::Publish(flags) => publish::publish(flags, store),
    }
}

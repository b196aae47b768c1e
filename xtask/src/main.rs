//! Developers' commands of tardy: `cargo xtask NAME`.

mod bench;
mod docs;
mod house;
mod inject;
mod licenses;
mod reference;
mod simulate;
mod site;
mod stress;
mod suite;
mod synth;
mod synth_why;
mod vm;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};

/// Developers' commands of tardy.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Bench(bench::BenchFlags),
    /// Write man pages and completions
    Docs(Destination),
    /// Print how the sources are built, in counts beside their aims
    House(HouseFlags),
    Inject(inject::InjectFlags),
    /// Write the notices of what is linked into tardy
    Licenses,
    /// Write docs/reference/cli.md, the page of all commands and options
    Reference,
    Simulate(simulate::SimulateFlags),
    /// Write the documents as HTML pages
    Site(Destination),
    Stress(stress::StressFlags),
    /// Write a run of one day, 8 CPUs at 1 kHz, without measuring it
    SynthDay(Destination),
    /// Write a traced run of a minute with 100 peaks of every cause
    SynthWhy(Destination),
    Test(suite::TestFlags),
    Vm(Box<vm::VmFlags>),
    // What `inject` starts as their own processes.
    #[command(hide = true)]
    InjectExit(inject::ExitFlags),
    #[command(hide = true)]
    InjectGuard(inject::GuardFlags),
    // What `bench` starts as their own processes.
    #[command(hide = true)]
    BareExchange(bench::messages::bare::ExchangeFlags),
    #[command(hide = true)]
    BareLoop(bench::bare::LoopFlags),
    #[command(hide = true)]
    RecordLoop(bench::record::LoopFlags),
    #[command(hide = true)]
    RecordTime(bench::record::TimeFlags),
}

#[derive(Debug, Args)]
struct HouseFlags {
    /// Also print how many lines were added and deleted since this commit
    #[arg(long, value_name = "COMMIT")]
    since: Option<String>,
}

#[derive(Debug, Args)]
struct Destination {
    /// Where to; made where it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

fn main() -> ExitCode {
    if let Some(file) = std::env::var_os(inject::ASKED_FOR) {
        return inject::run_measured(file.as_ref());
    }
    match dispatch(Cli::parse().verb) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            bench::say(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Does what is asked for; whether it ended well, where its output says how.
fn dispatch(verb: Verb) -> Result<bool> {
    match verb {
        Verb::Bench(flags) => bench::run(&flags),
        Verb::Docs(to) => docs::write(&to.directory),
        Verb::House(flags) => house::run(flags.since.as_deref()),
        Verb::Inject(flags) => inject::run(&flags),
        Verb::Licenses => licenses::write(),
        Verb::Reference => reference::write(),
        Verb::Simulate(flags) => simulate::run(&flags),
        Verb::Site(to) => site::write(&site::root(), &to.directory),
        Verb::Stress(flags) => return stress::run(&flags),
        Verb::SynthDay(to) => synth::day(&to.directory),
        Verb::SynthWhy(to) => synth_why::write(&to.directory),
        Verb::Test(flags) => return suite::run(&flags),
        Verb::Vm(flags) => vm::run(&flags),
        Verb::InjectExit(flags) => inject::run_exit(&flags),
        Verb::InjectGuard(flags) => inject::run_guard(&flags),
        Verb::BareExchange(flags) => bench::messages::bare::run(&flags),
        Verb::BareLoop(flags) => bench::bare::run(&flags),
        Verb::RecordLoop(flags) => bench::record::run_loop(&flags),
        Verb::RecordTime(flags) => bench::record::run_time(&flags),
    }
    .map(|()| true)
}

/// cargo's directory, where this program was built.
pub(crate) fn target() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program")?;
    Ok(own.ancestors().nth(2).context("this program lies outside of target/")?.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }
}

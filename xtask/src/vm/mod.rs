//! `cargo xtask vm`: boots a kernel of Debian's in QEMU and runs tests, or a command, inside.
//!
//! For setups that the machine at hand has not: another kernel, cgroup v2, the right to do
//! everything. Nothing is installed and nothing of this machine is changed; what is fetched and
//! made lies in `target/vm`. Only `suite` and `account` know that tests exist.

mod account;
mod guest;
mod options;
mod suite;

use std::{
    io::Write as _,
    iter,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail, ensure};
use tardy::{
    lab::{
        guest::{
            init::{self, Job},
            qemu::{self, FinishedGuest},
            transfer::Received,
        },
        kernels::{self, Kernel, KernelSource},
        program,
    },
    run::RunDirectory,
};

use crate::{bench::say, target};
use guest::{TestGuest, show};
pub(crate) use options::VmFlags;
use suite::{Choice, Suite, TestResults};

/// Where a command leaves what is wanted back.
const OUT: &str = "/run/out";

/// Fetches, boots, tells.
pub(crate) fn run(options: &VmFlags) -> Result<()> {
    if let Err(error) = program(qemu::PROGRAM) {
        return skipped(&format!("{error:#}; apt-get install qemu-system-x86"));
    }
    let kernel = match kernel(&options.kernel) {
        Ok(kernel) => kernel,
        Err(error) => return skipped(&format!("{error:#}")),
    };
    if options.command.is_empty() { tests(options, &kernel) } else { alone(options, &kernel) }
}

/// The kernel, from the cache or fetched into it.
pub(crate) fn kernel(source: &KernelSource) -> Result<Kernel> {
    kernels::get(source, &target()?.join("vm/kernels"), &say)
}

/// The tardy that the tests start, built if it is not.
pub(crate) fn tests_tardy() -> Result<PathBuf> {
    Ok(Suite::build()?.tardy)
}

/// Without root a machine need not have what this needs; as root a missing requirement is an error.
fn skipped(why: &str) -> Result<()> {
    ensure!(!rustix::process::geteuid().is_root(), "vm: {why}");
    tell(&format!("vm: skipped: {why}"))
}

/// The verdict: one line on standard output.
fn tell(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

/// Runs the tests that are wanted, and says which of those that the host skipped ran nowhere.
fn tests(options: &VmFlags, kernel: &Kernel) -> Result<()> {
    let suite = Suite::build()?;
    let host = options.account.as_deref().map(account::read).transpose()?;
    let passed = options.passed.as_deref().map_or(Ok(Vec::new()), account::passed)?;
    let names = suite.choose(&Choice {
        filter: options.filter.as_deref(),
        also: &options.also,
        skipped: host.as_ref(),
        passed: &passed,
    })?;
    let results = if names.is_empty() {
        tell("vm: of what skipped on this machine nothing is left for a guest")?;
        TestResults::default()
    } else {
        boot(options, kernel, &suite, &names)?
    };
    if let Some(file) = &options.passed {
        account::add(file, &results.passed)?;
    }
    let passed = [passed, results.passed].concat();
    settle(&account::nowhere(&host.unwrap_or_default(), &results.skipped, &passed))
}

/// Runs these tests in a guest and gives the verdict; one that failed is an error.
fn boot(
    options: &VmFlags,
    kernel: &Kernel,
    suite: &Suite,
    names: &[String],
) -> Result<TestResults> {
    let append = format!("{} {}", suite::APPEND, options.append);
    let programs = [suite.outside.clone(), suite.tardy.clone()];
    let files = [suite::schema()?];
    let guest = TestGuest {
        tardy: &suite.tardy,
        options,
        kernel,
        programs: &programs,
        files: &files,
        append: &append,
    };
    let finished = guest.run(suite.job(names)?)?;
    let results = TestResults::parse(&finished.output, names);
    let broken = finished.ending.words().or_else(|| {
        let code = suite::exit_code(&finished.output);
        code.err().map(|error| format!("{error:#}"))
    });
    for (name, why) in &results.skipped {
        say(&format!("{name} skipped: {why}"));
    }
    if broken.is_some() || !results.failed.is_empty() {
        say(&format!("{}\nfailed: {}", results.output_of_failures, results.failed.join(", ")));
    }
    let verdict = format!("vm: {}: {}", kernel.name, results.counts());
    match broken {
        Some(why) => tell(&format!("{verdict}; {why}"))?,
        None => tell(&verdict)?,
    }
    ensure!(finished.ending.words().is_none() && results.failed.is_empty(), "vm: failed");
    Ok(results)
}

/// Tells what ran nowhere; as root, this is a failure.
fn settle(nowhere: &[String]) -> Result<()> {
    for line in nowhere {
        say(line);
    }
    ensure!(
        nowhere.is_empty() || !rustix::process::geteuid().is_root(),
        "vm: as root every test runs, here or in a guest"
    );
    Ok(())
}

/// Runs the command; its output is this program's.
fn alone(options: &VmFlags, kernel: &Kernel) -> Result<()> {
    let suite = Suite::build()?;
    let handed_out = options.out.as_ref().map(|_| OUT.into());
    let job = Job { command: options.command.clone(), handed_out, ..Job::default() };
    let named = options.programs.iter().map(|name| program(name));
    let programs: Vec<PathBuf> =
        iter::once(Ok(suite.tardy.clone())).chain(named).collect::<Result<_>>()?;
    let append = &options.append;
    let guest =
        TestGuest { tardy: &suite.tardy, options, kernel, programs: &programs, files: &[], append };
    let finished = guest.run(job)?;
    let ended = match &options.out {
        Some(into) => bring(&finished, into),
        None => printed(&finished),
    };
    if let Some(why) = finished.ending.words() {
        bail!("vm: {}: {why}", kernel.name);
    }
    let code = ended?;
    if code != 0 {
        // With what the command said on standard error.
        show(&finished);
    }
    tell(&format!("vm: {}: the command ended with exit code {code}", kernel.name))?;
    ensure!(code == 0, "vm: failed");
    Ok(())
}

/// Tells what the command printed; the command's exit code.
fn printed(finished: &FinishedGuest) -> Result<i32> {
    let output = finished.output.lines().filter(|line| !line.starts_with(init::END));
    let output: Vec<&str> = output.collect();
    tell(output.join("\n").trim_end())?;
    suite::exit_code(&finished.output)
}

/// Writes what was handed out into a new directory, and tells what the command said; its exit code.
fn bring(finished: &FinishedGuest, into: &Path) -> Result<i32> {
    let received = Received::parse(&finished.files)?;
    received.write(&RunDirectory::make(into)?)?;
    tell(received.said.trim_end())?;
    Ok(received.code)
}

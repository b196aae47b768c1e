//! `cargo xtask test`: the workspace's tests, each in its own process.
//!
//! Tests of one process share its locks, descriptors, signals and whatever it has forked a moment
//! ago; their own processes share nothing but the machine. Tests that change the machine are in
//! exclusive groups (`schedule`).

pub(crate) mod flags;
pub(crate) mod listing;
pub(crate) mod process;
pub(crate) mod programs;
pub(crate) mod results;
mod schedule;

use std::{
    fs,
    io::Write as _,
    path::Path,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Instant,
};

use anyhow::{Context, Result, bail, ensure};
use tardy::sys::{notifier::Notifier, signals::Quit};

use crate::bench::say;
pub(crate) use flags::TestFlags;
use listing::{Ignored, Selection};
use process::Terms;
use programs::BuildRequest;
use results::{Results, SecondsFile};
use schedule::Schedule;

/// Builds, runs, tells; whether no test has failed. The last line that it prints has the counts.
pub(crate) fn run(flags: &TestFlags) -> Result<bool> {
    let began = Instant::now();
    let request = BuildRequest { targets: &flags.targets, release: flags.release };
    let programs = programs::test_programs(&programs::build(&request)?);
    ensure!(!programs.is_empty(), "cargo named no test program");
    let mut selection = listing::select(listing::list(programs)?, &flags.filters, ignored(flags));
    if let Some(part) = flags.part {
        selection.cases = listing::take_part(selection.cases, part);
    }
    if flags.list {
        let names: Vec<String> = selection.cases.iter().map(|case| case.full_name()).collect();
        print(&format!("{}\n", names.join("\n")))?;
        return Ok(true);
    }
    ensure!(!selection.cases.is_empty(), "no test has {:?} in its name", flags.filters);
    let directory = crate::target()?.join("tests");
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let profile = if flags.release { "-release" } else { "" };
    let mut seconds = SecondsFile::read(&directory.join(format!("seconds{profile}.tsv")));
    // What tests write and share; removed at the end.
    let scratch = tempfile::Builder::new().prefix("run-").tempdir_in(&directory)?;
    let results = run_all(flags, selection, &seconds, scratch.path())?;
    seconds.update(&results)?;
    hand_on(&results.skips)?;
    print(&format!("{}\n", results.closing(began.elapsed())))?;
    Ok(!results.has_failed())
}

fn ignored(flags: &TestFlags) -> Ignored {
    match (flags.ignored, flags.include_ignored) {
        (true, _) => Ignored::Only,
        (false, true) => Ignored::Include,
        (false, false) => Ignored::LeaveOut,
    }
}

/// `--patience`, else what the environment has, else 1.
fn patience(flags: &TestFlags) -> u32 {
    let given = std::env::var("TARDY_TEST_PATIENCE").ok().and_then(|text| text.parse().ok());
    flags.patience.or(given).unwrap_or(1)
}

/// What the threads that run tests share.
struct Shared {
    schedule: Schedule,
    results: Results,
    error: Option<anyhow::Error>,
}

fn run_all(
    flags: &TestFlags,
    selection: Selection,
    seconds: &SecondsFile,
    directory: &Path,
) -> Result<Results> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let jobs = flags.jobs.map_or(2 * cpus, usize::from);
    let quit = Quit::listen().context("cannot listen to signals")?;
    let patience = patience(flags);
    let limit = flags.limit * patience;
    let terms = Terms { limit, patience, directory, quit: &quit, launcher: &[] };
    say(&format!("{} tests, {jobs} at a time", selection.cases.len()));
    let schedule = Schedule::new(selection.cases, &seconds.seconds());
    let results = Results { ignored: selection.ignored, ..Results::default() };
    let shared = Mutex::new(Shared { schedule, results, error: None });
    let (changed, number) = (Condvar::new(), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                if let Err(error) = work(&shared, &changed, &number, &terms) {
                    lock(&shared).error.get_or_insert(error);
                    changed.notify_all();
                }
            });
        }
    });
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = shared.error {
        return Err(error);
    }
    if let Some(signal) = quit.seen() {
        bail!("interrupted by signal {signal}; {} tests did not start", shared.schedule.len());
    }
    Ok(shared.results)
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs tests until none is left.
fn work(
    shared: &Mutex<Shared>,
    changed: &Condvar,
    number: &AtomicUsize,
    terms: &Terms<'_>,
) -> Result<()> {
    let bell = Notifier::new().context("no descriptor left")?;
    terms.quit.rings(&bell).context("cannot listen to signals")?;
    loop {
        let mut guard = lock(shared);
        let task = loop {
            if guard.error.is_some() || terms.quit.seen().is_some() || guard.schedule.len() == 0 {
                return Ok(());
            }
            match guard.schedule.next() {
                Some(task) => break task,
                None => guard = changed.wait(guard).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(guard);
        let ended = process::run(&task.case, number.fetch_add(1, Relaxed), &bell, terms);
        let mut guard = lock(shared);
        guard.schedule.end(&task);
        changed.notify_all();
        let said = guard.results.add(task.case.full_name(), ended?);
        print(&said)?;
    }
}

pub(crate) fn print(text: &str) -> Result<()> {
    Ok(write!(std::io::stdout().lock(), "{text}")?)
}

/// Adds to the list of skipped tests that `TARDY_TEST_SKIPS` names.
fn hand_on(skips: &str) -> Result<()> {
    let Some(file) = std::env::var_os("TARDY_TEST_SKIPS").filter(|_| !skips.is_empty()) else {
        return Ok(());
    };
    let opened = fs::OpenOptions::new().create(true).append(true).open(&file);
    let written = opened.and_then(|mut opened| opened.write_all(skips.as_bytes()));
    written.with_context(|| format!("cannot write {}", Path::new(&file).display()))
}

//! Measures this machine as one of the kernels: `tardy run` as a child, with the same arguments.

use std::{
    fs,
    io::{Read as _, Seek as _},
    os::fd::AsRawFd as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    lab::cell::keeps_samples,
    run::{RunDirectory, facts::LabFacts, names},
    sys::{child, run_id::new_id},
};

/// What it is called among kernels, and its mode.
pub const HOST: &str = "host";

/// How long a child may take to write its record.
const GRACE: Duration = Duration::from_secs(20);

/// How often the child is checked.
const LOOK: Duration = Duration::from_millis(50);

/// The most of a child's output that is shown.
const MOST_WORDS: u64 = 4_096;

/// One run on this machine.
#[derive(Debug, Clone, Copy)]
pub struct HostCell<'a> {
    /// The tardy that measures.
    pub program: &'a Path,
    /// The plan's name of the load.
    pub load: &'a str,
    /// For `tardy run`, without the flags that the lab itself gives.
    pub arguments: &'a [String],
    /// Which repeat.
    pub seed: u32,
    /// How long it may take in all.
    pub limit: Duration,
}

/// Measures it, and puts its run into `place`, which is new.
///
/// # Errors
/// A child that fails, that does not end within its limit, or that was ended early; a part of a
/// run may be left then.
pub fn measure(cell: &HostCell, place: &RunDirectory, stop: &dyn Fn() -> bool) -> Result<()> {
    let id = new_id()?;
    run_child(cell, place, &id, stop)?;
    complete(cell, place, &id)
}

/// Starts the child with the open directory, so that it measures there whatever has its path by
/// then.
fn run_child(
    cell: &HostCell,
    place: &RunDirectory,
    id: &str,
    stop: &dyn Fn() -> bool,
) -> Result<()> {
    // For messages and the record only.
    let path = fs::read_link(place.path()).context("cannot find the place of the run")?;
    let descriptor = place.descriptor().context("cannot share the place of the run")?;
    let mut said = tempfile::tempfile().context("cannot make a temporary file")?;
    let errors = said.try_clone().context("cannot share a temporary file")?;
    let mut command = Command::new(cell.program);
    command
        .arg("run")
        .args(cell.arguments)
        .args(keeps_samples(cell.arguments))
        .arg(format!("--part-of={}:{id}", descriptor.as_raw_fd()))
        .args(["--quiet", "--output"])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors);
    // Where the lab is killed, nobody would wait for this run, and it would be in the next one's
    // numbers. It ends in order: it may have changed settings of the machine.
    child::ask_to_end_with_this_thread(&mut command);
    child::hand_over(&mut command, vec![descriptor]);
    let child =
        command.spawn().with_context(|| format!("cannot start {}", cell.program.display()))?;
    let status = wait(child, cell.limit, stop)?;
    // The codes below are those of a run that was measured.
    if matches!(status.code(), Some(0 | 1 | 4)) && place.holds(names::RUN) {
        return Ok(());
    }
    let mut words = String::new();
    let _ = said.rewind().and_then(|()| said.take(MOST_WORDS).read_to_string(&mut words));
    bail!("tardy run on this machine ended with {status}: {}", words.trim())
}

fn wait(mut child: Child, limit: Duration, stop: &dyn Fn() -> bool) -> Result<ExitStatus> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for tardy run")? {
            ensure!(!stop(), "ended early");
            return Ok(status);
        }
        let is_late = began.elapsed() > limit;
        if is_late || stop() {
            end(&mut child);
            ensure!(!is_late, "it did not end within the limit of {} s", limit.as_secs());
            bail!("ended early");
        }
        std::thread::sleep(LOOK);
    }
}

/// Sends SIGTERM first: a tardy that is killed does not restore the machine's settings. SIGINT
/// would do as well, but a shell has it ignored in what it runs in the background.
fn end(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::TERM);
    }
    let asked = Instant::now();
    while asked.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(LOOK);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Writes into the record which cell of a matrix it is.
fn complete(cell: &HostCell, place: &RunDirectory, id: &str) -> Result<()> {
    let run = place.take_run(Some(id), cell.arguments);
    let mut run = run.context("cannot accept the run of this machine")?;
    run.document.name = format!("{}, {HOST}, repeat {}", cell.load, cell.seed);
    run.document.facts.lab = Some(LabFacts {
        mode: HOST.into(),
        kernel: HOST.into(),
        load: cell.load.into(),
        seed: cell.seed,
        arguments: cell.arguments.to_vec(),
        ..LabFacts::default()
    });
    let text = serde_json::to_string_pretty(&run.document)? + "\n";
    place.replace(names::RUN, text.as_bytes()).context("cannot write the run's record")
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, os::unix::fs::PermissionsExt as _, path::PathBuf};

    use super::*;
    use crate::{lab::matrix::results::tests::write_run, run::Run};

    const SCRIPT: &str = "for it; do case $it in --part-of=*) part=${it#*=};; esac; done
        set -- \"$it\" \"${part%%:*}\" \"${part#*:}\"
        put() { sed \"s/\\\"i\\\"/\\\"$2\\\"/\" \"${0%/*}/made/run.json\" >\"$1/run.json\"; }";

    /// A tardy that does `script`: `$1` is the path of its directory, `$2` the number of the
    /// descriptor that it was handed, `$3` the id of the run. `put` writes a run of that id.
    fn program(directory: &Path, script: &str) -> PathBuf {
        let path = directory.join("program");
        write_run(&directory.join("made"), "complete");
        let draft = directory.join("draft");
        fs::write(&draft, format!("#!/bin/sh\n{SCRIPT}\n{script}\n")).unwrap();
        // Written by another process: a file that this one had open for writing is busy as long as
        // a child of another test has not closed what it got of it (ETXTBSY).
        assert!(Command::new("cp").arg(&draft).arg(&path).status().unwrap().success());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn run(
        script: &str,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> (Result<()>, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let program = program(directory.path(), script);
        let arguments = ["made-up".to_owned()];
        let cell =
            HostCell { program: &program, load: "idle", arguments: &arguments, seed: 3, limit };
        let place = RunDirectory::make(&directory.path().join("a/b/0")).unwrap();
        (measure(&cell, &place, stop), directory)
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn a_run_of_the_machine_says_which_cell_it_is() {
        let (measured, directory) = run("put \"/proc/self/fd/$2\" \"$3\"", LONG, &|| false);
        measured.unwrap();
        let document = Run::open(&directory.path().join("a/b/0")).unwrap().document;
        let lab = document.facts.lab.unwrap();
        assert_eq!((lab.mode.as_str(), lab.kernel.as_str(), lab.seed), ("host", "host", 3));
        assert_eq!(document.name, "idle, host, repeat 3");
    }

    #[test]
    fn whatever_takes_the_path_of_the_run_it_is_measured_in_the_directory_that_was_made() {
        // The place is moved away, and a link is put there that leads to another run.
        let swap = "mv \"$1\" \"$1.moved\"; ln -s \"${0%/*}/made\" \"$1\"";
        let (measured, directory) = run(swap, LONG, &|| false);
        measured.unwrap_err();
        let lab = |directory: &tempfile::TempDir, name: &str| {
            Run::open(&directory.path().join(name)).unwrap().document.facts.lab
        };
        assert!(lab(&directory, "made").is_none(), "its record was not touched");
        let script = format!("{swap}; put \"/proc/self/fd/$2\" \"$3\"");
        let (measured, directory) = run(&script, LONG, &|| false);
        measured.unwrap();
        assert!(lab(&directory, "made").is_none(), "its record was not touched");
        assert_eq!(lab(&directory, "a/b/0.moved").unwrap().load, "idle");
    }

    #[test]
    fn a_run_that_was_put_into_the_directory_is_not_accepted() {
        let refused = |script: &str| {
            let (measured, _directory) = run(script, LONG, &|| false);
            format!("{:#}", measured.unwrap_err())
        };
        let error = refused("put \"$1\" 20260101-000000.000-0000");
        assert!(error.contains("it holds another run than was begun there: 20260101"), "{error}");
        let error = refused("put \"$1\" \"$3\"; chmod 666 \"$1/run.json\"");
        assert!(error.contains("can be written by others (mode 0666)"), "{error}");
        let other = "put \"$1\" \"$3\"; sed -i s/made-up/else/ \"$1/run.json\"";
        assert!(refused(other).contains("a run of else, and made-up was to be measured"));
    }

    #[test]
    fn a_child_that_cannot_is_reported_in_its_own_words() {
        let (measured, _) = run("echo 'error: no rights' >&2; exit 2", LONG, &|| false);
        let error = measured.unwrap_err().to_string();
        assert!(error.contains("exit status: 2") && error.contains("no rights"), "{error}");
    }

    #[test]
    fn a_child_ends_with_its_limit_and_with_a_stop() {
        let (measured, _) = run("exec sleep 600", Duration::from_millis(1), &|| false);
        let error = format!("{:#}", measured.unwrap_err());
        assert!(error.contains("did not end within the limit"), "{error}");
        let looked = Cell::new(0);
        let stop = || {
            looked.set(looked.get() + 1);
            looked.get() > 2
        };
        let (measured, _) = run("exec sleep 600", LONG, &stop);
        assert_eq!(measured.unwrap_err().to_string(), "ended early");
    }
}

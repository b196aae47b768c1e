//! tardy's side of one load: it starts the supervisor, follows its reports, and ends it.
//!
//! Starts one child process and one thread that reads the child's reports. Dropping a
//! [`RunningLoad`] ends the load too; a tardy that is killed ends it by closing the pipe.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::history::History;
use super::protocol::{LoadReport, LoadTotals, Progress, STOP, SUBCOMMAND};
use super::worker_pool::seconds;
use super::{LoadError, LoadSpec, find, orphans, prepare, scratch};
use crate::run::LoadProof;
use crate::sys::process::{Pid, kill_group};

/// How long a supervisor may take to end its workers before it is ended with them.
const END_PATIENCE: Duration = Duration::from_secs(20);

/// How long what a killed supervisor has left may take to be gone.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(2);

/// No report is longer; a longer line is cut, and then not understood.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// A load that is running.
#[derive(Debug)]
pub struct RunningLoad {
    name: String,
    unit: &'static str,
    /// Absent for a load without work, and once it has ended.
    supervisor: Option<Supervisor>,
    state: Arc<SharedState>,
}

#[derive(Debug)]
struct Supervisor {
    child: Child,
    control: Option<ChildStdin>,
    reader: JoinHandle<()>,
    /// Where the load may have files.
    dir: Option<PathBuf>,
}

/// What the supervisor has reported so far.
#[derive(Debug, Default)]
struct SharedState {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ready: bool,
    history: History,
    died: Option<String>,
    failed: Option<String>,
    totals: Option<LoadTotals>,
    /// No report will come any more.
    closed: bool,
}

/// How a load ended, and what it had done.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadEnd {
    /// What it did in the measured time; `None` if there is nothing to prove (`idle`) or no process
    /// left to report it (a killed supervisor, a load that never began).
    pub proof: Option<LoadProof>,
    /// `stopped`, `idle`, `worker 3: exit 1`, `supervisor: signal 9`, `not started: ...`.
    pub ended: String,
    /// Why the run is invalid; absent for a load that did its work.
    pub fault: Option<LoadFault>,
}

/// What makes a run invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadFault {
    /// It ended, wholly or in part, before it was asked to.
    #[error("it died before it was asked to end ({0})")]
    Died(String),
    /// It lived, and did no operation in the measured time.
    #[error("it completed no operation in the measured time: measure longer, or free CPU time")]
    DidNothing,
}

impl RunningLoad {
    /// Starts the load in its own process, `program __load SPEC`; `program` is tardy itself,
    /// `/proc/self/exe`. The load prints into `log`. It inherits the calling thread's CPU affinity,
    /// and its environment; not its scheduling policy.
    ///
    /// # Errors
    /// A bad spec, less machine than the load needs, or a process that cannot be started.
    pub fn start(spec: &LoadSpec, log: File, program: &Path) -> Result<Self, LoadError> {
        let load = find(&spec.name)?;
        let state = Arc::new(SharedState::default());
        let supervisor = match prepare(spec)? {
            Some(_) => Some(Supervisor::start(spec, log, program, &state)?),
            None => None,
        };
        Ok(Self { name: spec.name.clone(), unit: load.unit, supervisor, state })
    }

    /// Waits until every task of the load has begun to work. May be called again after
    /// [`LoadError::NotReady`].
    ///
    /// # Errors
    /// It cannot start, it has died, or it is still starting after `timeout`.
    pub fn wait_ready(&self, timeout: Duration) -> Result<(), LoadError> {
        if self.supervisor.is_none() {
            return Ok(());
        }
        let waiting = |state: &mut State| !state.ready && !state.closed;
        let guard = self.state.lock();
        let waited = self.state.changed.wait_timeout_while(guard, timeout, waiting);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let load = self.name.clone();
        match state.why_gone() {
            Some(why) => Err(LoadError::NotStarted { load, why }),
            None if state.ready => Ok(()),
            None => Err(LoadError::NotReady { load, waited: timeout }),
        }
    }

    /// What one operation is, in the plural.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        self.unit
    }

    /// The newest report; never waits for one. `None` before the load is ready, and for `idle`.
    #[must_use]
    pub fn latest(&self) -> Option<Progress> {
        self.state.lock().history.last()
    }

    /// The reports so far, oldest first, thinned to at most some 2000.
    #[must_use]
    pub fn history(&self) -> Vec<Progress> {
        self.state.lock().history.points()
    }

    /// Operations done by that moment, ns of `CLOCK_MONOTONIC`, interpolated between reports.
    #[must_use]
    pub fn operations_at(&self, monotonic_ns: i64) -> Option<u64> {
        self.state.lock().history.operations_at(monotonic_ns)
    }

    /// Whether it works, according to its reports. A supervisor notices a failure within 250 ms.
    #[must_use]
    pub fn alive(&self) -> bool {
        self.died().is_none()
    }

    /// What ended it before it was asked to.
    #[must_use]
    pub fn died(&self) -> Option<String> {
        self.state.lock().why_gone()
    }

    /// The supervisor's process, whose number is also that of the process group of all workers.
    #[must_use]
    pub fn process(&self) -> Option<Pid> {
        self.supervisor.as_ref().map(|supervisor| Pid::from_child(&supervisor.child))
    }

    /// Ends the load, waits until nothing of it is left, and returns what it did between the two
    /// moments, ns of `CLOCK_MONOTONIC`: the measured time.
    #[must_use]
    pub fn stop(mut self, start_ns: i64, end_ns: i64) -> LoadEnd {
        let Some(supervisor) = self.supervisor.take() else {
            return LoadEnd { proof: None, ended: "idle".to_owned(), fault: None };
        };
        let gone = supervisor.end(&self.state);
        let state = self.state.lock();
        // For a supervisor that ended without a report, the exit status is the only known cause.
        let died = match (&state.died, &state.failed, &state.totals) {
            (Some(who), ..) => Some(who.clone()),
            (None, Some(why), _) => Some(format!("not started: {why}")),
            (None, None, None) => Some(format!("supervisor: {gone}")),
            (None, None, Some(_)) => None,
        };
        let proof = state.proof(self.unit, start_ns, end_ns);
        let idle = proof.as_ref().is_none_or(|proof| proof.operations == 0);
        let fault = died.clone().map(LoadFault::Died);
        let fault = fault.or(idle.then_some(LoadFault::DidNothing));
        LoadEnd { proof, ended: died.unwrap_or_else(|| "stopped".to_owned()), fault }
    }
}

impl Drop for RunningLoad {
    fn drop(&mut self) {
        if let Some(supervisor) = self.supervisor.take() {
            supervisor.end(&self.state);
        }
    }
}

impl Supervisor {
    fn start(
        spec: &LoadSpec,
        log: File,
        program: &Path,
        state: &Arc<SharedState>,
    ) -> Result<Self, LoadError> {
        let cannot = |source| LoadError::System {
            load: spec.name.clone(),
            action: format!("start its supervisor {}", program.display()),
            source,
            remedy: "check that it is executable, and the limit of processes (ulimit -u)",
        };
        let mut command = Command::new(program);
        command
            .arg(SUBCOMMAND)
            .arg(spec.to_json()?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            // Ctrl-C goes to tardy's process group, and tardy ends its loads in an orderly way.
            .process_group(0);
        let mut child = orphans::start(&mut command).map_err(cannot)?;
        let control = child.stdin.take();
        let reader = match child.stdout.take() {
            Some(reports) => read_in_thread(reports, Arc::clone(state)),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        match reader {
            Ok(reader) => {
                let dir = spec.text("dir").ok().map(PathBuf::from);
                Ok(Self { child, control, reader, dir })
            }
            Err(error) => {
                // Closing the pipe would end it too, but the child must be waited for.
                let pid = Pid::from_child(&child);
                kill_group(pid);
                let _ = child.wait();
                orphans::ended(pid, true, ORPHAN_PATIENCE);
                Err(cannot(error))
            }
        }
    }

    /// Asks it to end, waits, and makes sure that nothing is left; returns how it ended.
    fn end(mut self, state: &SharedState) -> String {
        if let Some(mut control) = self.control.take() {
            // A supervisor that is gone has already reported why, or no longer can.
            let _ = control.write_all(STOP);
        }
        let closed = state.wait_closed(END_PATIENCE);
        let killed = !closed || state.lock().totals.is_none();
        let pid = Pid::from_child(&self.child);
        if killed {
            // It is not waited for yet, so its number still names its group. The kernel has
            // killed its workers with it, but not what they had started.
            kill_group(pid);
        }
        let status = self.child.wait();
        // Nor what has left its group.
        orphans::ended(pid, killed, ORPHAN_PATIENCE);
        if let (true, Some(dir)) = (killed, &self.dir) {
            scratch::sweep_within(dir, ORPHAN_PATIENCE);
        }
        // The pipe's other end is gone with the child, so the reader has come to its end.
        let _ = self.reader.join();
        match status {
            Ok(status) => match (status.signal(), status.code()) {
                (Some(number), _) => format!("signal {number}"),
                (None, code) => format!("exit {}", code.unwrap_or_default()),
            },
            Err(error) => error.to_string(),
        }
    }
}

impl SharedState {
    /// A reader that panicked has left a state that is whole: it is set field by field.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_closed(&self, patience: Duration) -> bool {
        let guard = self.lock();
        let until_closed = |state: &mut State| !state.closed;
        let waited = self.changed.wait_timeout_while(guard, patience, until_closed);
        waited.unwrap_or_else(PoisonError::into_inner).0.closed
    }
}

impl State {
    fn why_gone(&self) -> Option<String> {
        let said = self.failed.as_ref().or(self.died.as_ref()).cloned();
        said.or_else(|| self.closed.then(|| "the supervisor is gone".to_owned()))
    }

    fn take(&mut self, report: LoadReport) {
        match report {
            LoadReport::Ready(start) => {
                self.history.push(start);
                self.ready = true;
            }
            LoadReport::Progress(progress) => self.history.push(progress),
            LoadReport::Died(who) => self.died = Some(who),
            LoadReport::Failed(why) => self.failed = Some(why),
            LoadReport::Ended(totals) => {
                if self.ready {
                    self.history.push(totals.last);
                }
                self.totals = Some(totals);
            }
        }
    }

    fn proof(&self, unit: &str, start_ns: i64, end_ns: i64) -> Option<LoadProof> {
        let totals = self.totals.as_ref().filter(|_| self.ready)?;
        let done_at = |moment_ns| self.history.operations_at(moment_ns).unwrap_or(0);
        let operations = done_at(end_ns).saturating_sub(done_at(start_ns));
        Some(LoadProof {
            unit: unit.to_owned(),
            operations,
            operations_per_s: rate(operations, seconds(end_ns.saturating_sub(start_ns))),
            context_switches_per_s: rate(totals.context_switches, totals.life_s),
            cpu_share: if totals.life_s > 0.0 { totals.cpu_s / totals.life_s } else { 0.0 },
            tasks: totals.tasks,
            tasks_idle: totals.tasks_idle,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 15 digits")]
fn rate(count: u64, time_s: f64) -> f64 {
    if time_s > 0.0 { count as f64 / time_s } else { 0.0 }
}

fn read_in_thread(
    reports: ChildStdout,
    state: Arc<SharedState>,
) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name("load-reports".to_owned()).spawn(move || {
        let mut reports = BufReader::new(reports);
        while let Some(report) = read_report(&mut reports) {
            if let Some(report) = report {
                state.lock().take(report);
                state.changed.notify_all();
            }
        }
        state.lock().closed = true;
        state.changed.notify_all();
    })
}

/// The next line: `None` at the end, `Some(None)` for one that is not a report.
#[expect(clippy::option_option, reason = "an end and a line not understood are two things")]
fn read_report(reports: &mut impl BufRead) -> Option<Option<LoadReport>> {
    let mut line = Vec::new();
    match reports.take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(serde_json::from_slice(&line).ok()),
    }
}

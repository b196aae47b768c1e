//! Loads: what disturbs the machine while a probe measures, and the proof that it did.
//!
//! Each load is described by one [`Load`] in its own file below [`kinds`], which has the table of
//! them. It runs in a supervisor process, never in tardy itself; the machinery for that is here:
//!
//! - [`spec`]: `NAME:key=value,...` made into a checked [`LoadSpec`]
//! - [`limits`]: whether the machine has the resources that a load needs
//! - [`running`]: tardy's side of one load: start, progress, end, proof
//! - [`history`]: how many operations were done by when, in bounded memory
//! - [`supervisor`]: the process that starts workers, counts, and leaves none behind
//! - [`protocol`]: the supervisor's reports to tardy
//! - [`worker_pool`]: the workers of one load, as the supervisor sees them
//! - [`worker`]: a worker, as it sees itself
//! - `task_loop`: the shape that most loads have: many tasks that repeat one operation
//! - `scratch`: files of loads, and how they are found again
//! - `orphans`: the processes that a killed supervisor leaves
//! - [`error`]: what can go wrong
//!
//! Nothing here prints, writes files, or knows what is measured.

pub mod error;
pub mod history;
pub mod kinds;
pub mod limits;
mod orphans;
pub mod protocol;
pub mod running;
mod scratch;
pub mod spec;
pub mod supervisor;
mod task_loop;
pub mod worker;
pub mod worker_pool;

pub use error::LoadError;
pub use kinds::{LOADS, command};
pub use orphans::adopt_orphans;
pub use running::{LoadEnd, LoadFault, RunningLoad};
pub use spec::LoadSpec;

use std::path::Path;

use crate::sys::root::Root;
use limits::Capacity;
use worker_pool::WorkerPool;

/// One kind of load.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// As typed.
    pub name: &'static str,
    /// One sentence for lists and help.
    pub summary: &'static str,
    /// What one operation is, in the plural: `messages`.
    pub unit: &'static str,
    /// What can be chosen.
    pub parameters: &'static [Parameter],
    /// The work itself; a load without work needs no process.
    pub work: Option<LoadWork>,
}

/// The work of a load, in two steps: what it needs, checked before anything starts, and the work.
#[derive(Debug, Clone, Copy)]
pub struct LoadWork {
    /// What it will need with these parameters. Runs in tardy and again in the supervisor.
    pub need: fn(&LoadSpec) -> Result<Need, LoadError>,
    /// Spawns the workers and returns. Runs in the supervisor. Each worker calls
    /// [`worker::Worker::begin`] in each of its tasks when it is ready to work, adds one to a
    /// counter per operation, and never returns; it is ended by SIGKILL at any moment, so
    /// whatever outlives a process (files, say) must be found and removed by the next start.
    pub start: fn(&LoadSpec, &mut WorkerPool) -> Result<(), LoadError>,
}

/// What a load needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Need {
    /// Processes and threads that will call [`worker::Worker::begin`].
    pub tasks: u64,
    /// Counters; each is written by one task.
    pub counters: u64,
    /// Files open at the same time in the process that opens the most.
    pub open_files: u64,
    /// Memory, bytes, that kernel and user space will hold at least.
    pub memory_bytes: u64,
    /// Space, bytes, in the directory that the parameter `dir` names.
    pub disk_bytes: u64,
}

/// One parameter of a load.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// As typed before the `=`.
    pub key: &'static str,
    /// One sentence for lists and help.
    pub help: &'static str,
    /// The value if none is given; also the example in errors.
    pub default: &'static str,
    /// What values it takes.
    pub kind: ParameterKind,
}

/// What values a parameter takes.
#[derive(Debug, Clone, Copy)]
pub enum ParameterKind {
    /// A whole number, both ends included.
    Count {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A size in bytes, bare or with a unit, both ends included.
    Bytes {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A time with its unit, kept in ns, both ends included.
    Time {
        /// The shortest, ns.
        min_ns: i64,
        /// The longest, ns.
        max_ns: i64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text without a comma that is not empty.
    Text,
}

/// The load of that name.
///
/// # Errors
/// [`LoadError::UnknownLoad`], which lists all of them.
pub fn find(name: &str) -> Result<&'static Load, LoadError> {
    // Known to the supervisor, and named by its own flag.
    const COMMAND: &Load = &command::LOAD;
    if name == COMMAND.name {
        return Ok(COMMAND);
    }
    LOADS.iter().find(|load| load.name == name).ok_or_else(|| LoadError::UnknownLoad {
        name: name.to_owned(),
        nearest: nearest(name),
        known: spec::listed(LOADS.iter().map(|load| load.name)),
    })
}

/// Whether there is a load of that name in the list of them.
#[must_use]
pub fn is_built_in(name: &str) -> bool {
    LOADS.iter().any(|load| load.name == name)
}

/// The load whose name is like this one, where one is.
fn nearest(name: &str) -> Option<&'static str> {
    let by_likeness = |load: &'static Load| (strsim::jaro(name, load.name), load.name);
    let (likeness, nearest) = LOADS.iter().map(by_likeness).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness > 0.8).then_some(nearest)
}

/// The load of `spec`, its work and its need, after a check that the machine can give what it
/// needs. Changes nothing.
fn prepare(spec: &LoadSpec) -> Result<Option<(LoadWork, Need)>, LoadError> {
    spec.check()?;
    let load = find(&spec.name)?;
    let Some(work) = load.work else { return Ok(None) };
    let need = (work.need)(spec)?;
    let mut machine = Capacity::read(&Root::default());
    if need.disk_bytes > 0 {
        machine.disk_bytes = limits::free_disk(load.name, Path::new(spec.text("dir")?))?;
    }
    limits::check(load.name, &need, &machine)?;
    Ok(Some((work, need)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_load_is_an_error_with_the_known_ones() {
        let said = find("hackbnech").unwrap_err().to_string();
        assert!(
            said.starts_with(
                "unknown load `hackbnech`: did you mean hackbench? Else use one of hackbench, "
            ),
            "{said}"
        );
        let unlike = find("x").unwrap_err().to_string();
        assert!(unlike.starts_with("unknown load `x`: use one of hackbench, "), "{unlike}");
        assert!(said.ends_with(", idle"), "{said}");
    }
}

//! The load `memory`: memory that is touched, given back, copied by fork, or torn down at exit.
//!
//! | mode | one operation |
//! | --- | --- |
//! | touch | writes to every page of `size` once |
//! | munmap | maps `size`, touches it, and unmaps it: one long walk through the page tables |
//! | fork | a process of `size` forks a child that ends at once: its page tables are copied |
//! | exit | forks a child that touches `size` and ends: its memory is torn down |
//!
//! The load takes `size` of memory per task. If memory runs short, the kernel must kill these
//! processes first; they request that themselves (`oom_score_adj`).

use std::{fs, io};

use rustix::process::getpid;

use crate::loads::task_loop::{PROCESS_BYTES, processes};
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};
use crate::sys::process::{die_with, fork, wait_for};
use crate::sys::region::Region;

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "memory",
    summary: "Memory touched, unmapped, copied by fork, or torn down at exit.",
    unit: "rounds",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "mode",
        help: "What the load does with the memory.",
        default: "touch",
        kind: ParameterKind::Choice(&["touch", "munmap", "fork", "exit"]),
    },
    Parameter {
        key: "size",
        help: "Memory of each process.",
        default: "64MiB",
        kind: ParameterKind::Bytes { min: 4096, max: 1 << 44 },
    },
    Parameter {
        key: "tasks",
        help: "Number of processes.",
        default: "1",
        kind: ParameterKind::Count { min: 1, max: 1024 },
    },
    Parameter {
        key: "pages",
        help: "Small pages only, or also huge pages where the kernel chooses them.",
        default: "small",
        kind: ParameterKind::Choice(&["small", "any"]),
    },
    Parameter {
        key: "above-ram",
        help: "Whether the load may request more than the free memory; the kernel may then kill.",
        default: "no",
        kind: ParameterKind::Choice(&["no", "yes"]),
    },
];

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let tasks = spec.number("tasks")?;
    let wanted = spec.number("size")?.saturating_add(PROCESS_BYTES).saturating_mul(tasks);
    let memory_bytes = if spec.text("above-ram")? == "yes" { 0 } else { wanted };
    Ok(Need { tasks, counters: tasks, memory_bytes, ..Need::default() })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let size = usize::try_from(spec.number("size")?).unwrap_or(usize::MAX);
    let small = spec.text("pages")? == "small";
    let numbers = 0..spec.number("tasks")?;
    let map = move || Region::map(size, small);
    let touched = move |_| {
        die_first()?;
        let mut memory = map()?;
        memory.touch();
        Ok(memory)
    };
    match spec.text("mode")? {
        "touch" => processes(pool, numbers, touched, |memory| {
            memory.touch();
            Ok(())
        }),
        "munmap" => processes(
            pool,
            numbers,
            |_| die_first(),
            |()| {
                map()?.touch();
                Ok(())
            },
        ),
        "fork" => processes(pool, numbers, touched, |_| in_child(|| Ok(()))),
        _ => processes(
            pool,
            numbers,
            |_| die_first(),
            |()| {
                in_child(|| {
                    let mut memory = map()?;
                    memory.touch();
                    // The exit of the process must find this memory mapped.
                    std::mem::forget(memory);
                    Ok(())
                })
            },
        ),
    }
}

/// Makes the kernel kill the calling process first when memory runs short. Needs no privilege.
fn die_first() -> io::Result<()> {
    fs::write("/proc/self/oom_score_adj", "1000")
}

fn in_child(work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let own = getpid();
    let child = fork(|| u8::from(die_with(own).and_then(|()| work()).is_err()))?;
    wait_for(child)
}

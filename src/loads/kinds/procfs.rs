//! The load `procfs`: reads what `top` reads, at a chosen interval.
//!
//! One pass reads every process: its `stat`, `statm` and `status`, and the machine's own
//! figures. A pass is one operation. The kernel walks its lists of tasks for each, under locks that
//! other tasks need too. It changes nothing on the machine.

use std::fs::{self, File};
use std::io::{self, Read};

use tardy_hot::clock::now_ns;

use crate::loads::task_loop::{PROCESS_BYTES, processes, sleep_until};
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "procfs",
    summary: "Reads all processes in /proc, as top does.",
    unit: "looks",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "interval",
        help: "Time between two passes.",
        default: "100ms",
        kind: ParameterKind::Time { min_ns: 100_000, max_ns: 3_600_000_000_000 },
    },
    Parameter {
        key: "tasks",
        help: "Number of processes that read.",
        default: "1",
        kind: ParameterKind::Count { min: 1, max: 256 },
    },
];

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let tasks = spec.number("tasks")?;
    Ok(Need { tasks, counters: tasks, memory_bytes: tasks * PROCESS_BYTES, ..Need::default() })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let interval_ns = spec.time_ns("interval")?;
    processes(
        pool,
        0..spec.number("tasks")?,
        |_| Ok((now_ns(), vec![0; 16 * 1024])),
        |(due_ns, buffer)| {
            sleep_until(*due_ns)?;
            // A pass that took too long is not made up for.
            *due_ns = now_ns().max(*due_ns + interval_ns);
            read_all(buffer)
        },
    )
}

fn read_all(buffer: &mut [u8]) -> io::Result<()> {
    for name in ["stat", "meminfo", "loadavg", "uptime"] {
        read(&format!("/proc/{name}"), buffer)?;
    }
    for entry in fs::read_dir("/proc")?.flatten() {
        let name = entry.file_name();
        let is_process = name.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit);
        if let Some(pid) = name.to_str().filter(|_| is_process) {
            for name in ["stat", "statm", "status"] {
                // It may have ended since the list was read.
                let _ = read(&format!("/proc/{pid}/{name}"), buffer);
            }
        }
    }
    Ok(())
}

fn read(path: &str, buffer: &mut [u8]) -> io::Result<()> {
    let mut file = File::open(path)?;
    while file.read(buffer)? > 0 {}
    Ok(())
}

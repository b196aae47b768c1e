//! The load `printk`: messages of the kernel to its own log and to the console.
//!
//! A message is written to `/dev/kmsg` and read back from there: only what has really reached the
//! log is one operation. The kernel drops messages beyond ten in five seconds,
//! unless the sysctl `kernel.printk_devkmsg` is `on`; tardy does not change it. A slow console (a
//! serial line) delays the CPU that prints. The load leaves its messages in the log, and
//! so it is never a default.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process;

use tardy_hot::clock::now_ns;

use crate::loads::task_loop::{PROCESS_BYTES, sleep_until};
use crate::loads::worker::{Counter, Worker};
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "printk",
    summary: "Writes messages to the kernel's log and console, where they stay; needs root.",
    unit: "messages",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "rate",
        help: "Messages a second; above 2 the kernel drops most of them, see \
               kernel.printk_devkmsg.",
        default: "2",
        kind: ParameterKind::Count { min: 1, max: 1000 },
    },
    Parameter {
        key: "size",
        help: "Length of a message.",
        default: "80",
        kind: ParameterKind::Bytes { min: 40, max: 900 },
    },
    Parameter {
        key: "level",
        help: "Log level, 1 to 7; the console shows what is below console_loglevel, the \
               first number of kernel.printk.",
        default: "3",
        kind: ParameterKind::Count { min: 1, max: 7 },
    },
];

const LOG: &str = "/dev/kmsg";

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    open().map_err(|error| LoadError::Missing {
        load: spec.name.clone(),
        what: format!("{LOG} ({error})"),
        remedy: "run tardy as root".to_owned(),
    })?;
    Ok(Need { tasks: 1, counters: 1, memory_bytes: PROCESS_BYTES, ..Need::default() })
}

fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(LOG)
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let rate = i64::try_from(spec.number("rate")?).unwrap_or(1);
    let size = usize::try_from(spec.number("size")?).unwrap_or(0);
    let level = spec.number("level")?;
    pool.spawn(|worker| print_for_ever(worker, 1_000_000_000 / rate.max(1), size, level))
        .map(|_| ())
}

fn print_for_ever(
    worker: &Worker<'_>,
    interval_ns: i64,
    size: usize,
    level: u64,
) -> io::Result<()> {
    let counter = worker.counter(0)?;
    let mut log = open()?;
    log.seek(SeekFrom::End(0))?;
    let mark = format!("tardy load {}: ", process::id());
    worker.begin()?;
    let mut due_ns = now_ns();
    for number in 0_u64.. {
        let message = format!("<{level}>{mark}{number} ");
        // One write is one message.
        log.write_all(format!("{message:.<size$}\n").as_bytes())?;
        count(&mut log, &mark, &counter)?;
        due_ns = now_ns().max(due_ns + interval_ns);
        sleep_until(due_ns)?;
    }
    Ok(())
}

/// Counts its own messages among the new log entries.
fn count(log: &mut File, mark: &str, counter: &Counter<'_>) -> io::Result<()> {
    let mut record = [0; 8192];
    loop {
        match log.read(&mut record) {
            Ok(length) => {
                let record = record.get(..length).unwrap_or_default();
                if record.windows(mark.len()).any(|part| part == mark.as_bytes()) {
                    counter.bump();
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            // Overwritten by later ones before it was read.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
            Err(error) => return Err(error),
        }
    }
}

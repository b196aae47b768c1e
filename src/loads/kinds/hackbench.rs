//! The load `hackbench`: groups of tasks that wake each other with small messages as fast as they
//! can, as the well-known scheduler test of that name does.
//!
//! In each group there are as many senders as receivers. A receiver reads from its own channel; a
//! sender writes one message to each receiver of its group in turn, for ever. A message received is
//! one operation. On the machine it takes processes or threads, and kernel memory for messages
//! under way; it leaves nothing behind.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread;

use crate::loads::task_loop::add;
use crate::loads::worker::Worker;
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "hackbench",
    summary: "Many tasks that wake each other with small messages, without a pause.",
    unit: "messages",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "groups",
        help: "Groups of tasks; each has 2 x fds tasks.",
        default: "4",
        kind: ParameterKind::Count { min: 1, max: 1000 },
    },
    Parameter {
        key: "fds",
        help: "Senders per group, and the same number of receivers.",
        default: "20",
        kind: ParameterKind::Count { min: 1, max: 200 },
    },
    Parameter {
        key: "transport",
        help: "What carries the messages: a pair of Unix stream sockets, or a pipe.",
        default: SOCKET,
        kind: ParameterKind::Choice(&[SOCKET, PIPE]),
    },
    Parameter {
        key: "workers",
        help: "What the tasks are: processes, or threads of one process.",
        default: PROCESS,
        kind: ParameterKind::Choice(&[PROCESS, THREAD]),
    },
    Parameter {
        key: "size",
        help: "Size of a message.",
        default: "100",
        kind: ParameterKind::Bytes { min: 1, max: 65536 },
    },
];

const SOCKET: &str = "socket";
const PIPE: &str = "pipe";
const PROCESS: &str = "process";
const THREAD: &str = "thread";

/// What a process and a thread take with their share of a pipe: 179 and 53 KiB when 4000 of them
/// were counted by `MemAvailable` on Linux 6.18, x86-64.
const PROCESS_BYTES: u64 = 180 * 1024;
const THREAD_BYTES: u64 = 54 * 1024;

/// The parameters, typed.
#[derive(Debug, Clone, Copy)]
struct Shape {
    groups: u64,
    fds: u64,
    is_socket: bool,
    is_threaded: bool,
    size_bytes: usize,
}

impl Shape {
    fn of(spec: &LoadSpec) -> Result<Self, LoadError> {
        Ok(Self {
            groups: spec.number("groups")?,
            fds: spec.number("fds")?,
            is_socket: spec.text("transport")? == SOCKET,
            is_threaded: spec.text("workers")? == THREAD,
            size_bytes: usize::try_from(spec.number("size")?).unwrap_or(usize::MAX),
        })
    }

    /// The channels of one group.
    fn channels(&self) -> io::Result<Vec<Channel>> {
        (0..self.fds).map(|_| Channel::open(self.is_socket)).collect()
    }
}

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let shape = Shape::of(spec)?;
    let channels = shape.groups * shape.fds;
    let tasks = 2 * channels;
    let (groups_in_process, task_bytes) =
        if shape.is_threaded { (shape.groups, THREAD_BYTES) } else { (1, PROCESS_BYTES) };
    Ok(Need {
        tasks,
        counters: channels,
        open_files: 2 * shape.fds * groups_in_process,
        memory_bytes: tasks * task_bytes,
        disk_bytes: 0,
    })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let shape = Shape::of(spec)?;
    if shape.is_threaded {
        return pool.spawn(|worker| run_threads(&shape, *worker)).map(|_| ());
    }
    for group in 0..shape.groups {
        // Each group's channels close here before the next opens: no process holds more than its
        // own group's.
        let channels = shape.channels().map_err(|source| {
            pool.cannot(&format!("open the channels of group {group}"), source)
        })?;
        for (index, channel) in (group * shape.fds..).zip(&channels) {
            pool.spawn(|worker| receive(worker, index, &channel.from, shape.size_bytes))?;
            pool.spawn(|worker| send(worker, &channels, shape.size_bytes))?;
        }
    }
    Ok(())
}

/// All groups in the calling process. Returns only where channels are short.
fn run_threads(shape: &Shape, worker: Worker<'_>) -> io::Result<()> {
    let groups = (0..shape.groups).map(|_| shape.channels()).collect::<io::Result<Vec<_>>>()?;
    let size_bytes = shape.size_bytes;
    thread::scope(|scope| {
        for (group, channels) in (0..).zip(&groups) {
            for (index, channel) in (group * shape.fds..).zip(channels) {
                add(scope, worker, move || receive(&worker, index, &channel.from, size_bytes));
                add(scope, worker, move || send(&worker, channels, size_bytes));
            }
        }
    });
    Ok(())
}

/// Both ends of what carries messages to one receiver.
#[derive(Debug)]
struct Channel {
    from: OwnedFd,
    into: OwnedFd,
}

impl Channel {
    fn open(is_socket: bool) -> io::Result<Self> {
        if is_socket {
            let (from, into) = UnixStream::pair()?;
            Ok(Self { from: from.into(), into: into.into() })
        } else {
            let (from, into) = io::pipe()?;
            Ok(Self { from: from.into(), into: into.into() })
        }
    }
}

fn receive(worker: &Worker<'_>, index: u64, from: &OwnedFd, size_bytes: usize) -> io::Result<()> {
    let counter = worker.counter(index)?;
    let mut message = vec![0; size_bytes];
    worker.begin()?;
    loop {
        read_message(from, &mut message)?;
        counter.bump();
    }
}

/// Messages have no borders in a stream; all have one size, so counting bytes finds them.
fn read_message(from: &OwnedFd, message: &mut [u8]) -> io::Result<()> {
    let mut left = message;
    while !left.is_empty() {
        match rustix::io::read(from, &mut *left)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => left = left.get_mut(count..).unwrap_or_default(),
        }
    }
    Ok(())
}

fn send(worker: &Worker<'_>, channels: &[Channel], size_bytes: usize) -> io::Result<()> {
    let message = vec![b'.'; size_bytes];
    worker.begin()?;
    loop {
        for channel in channels {
            write_message(&channel.into, &message)?;
        }
    }
}

fn write_message(into: &OwnedFd, message: &[u8]) -> io::Result<()> {
    let mut left = message;
    while !left.is_empty() {
        let count = rustix::io::write(into, left)?;
        left = left.get(count..).unwrap_or_default();
    }
    Ok(())
}

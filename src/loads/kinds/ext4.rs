//! The load `ext4`: files written, flushed and deleted, in ext4 on a RAM disk.
//!
//! No device slows it down, so that what is left is the file system itself: blocks allocated, a
//! journal committed, thousands of blocks freed at once. A file written, flushed and deleted is one
//! operation. On the machine it takes a loop device and memory of the disk's size; both go back
//! when its last process ends, and the file system is mounted in no directory.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};

use super::empty_ext4;
use crate::loads::spec::refuse;
use crate::loads::task_loop::{PROCESS_BYTES, processes};
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};
use crate::sys::ram_disk::{self, RamDisk};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "ext4",
    summary: "Writes, flushes and deletes files in ext4 on a RAM disk; needs root.",
    unit: "files",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "size",
        help: "Size of the RAM disk.",
        default: "64MiB",
        kind: ParameterKind::Bytes { min: 16 << 20, max: empty_ext4::LARGEST_BYTES },
    },
    Parameter {
        key: "file",
        help: "Size of a file.",
        default: "8MiB",
        kind: ParameterKind::Bytes { min: 1, max: empty_ext4::LARGEST_BYTES },
    },
    Parameter {
        key: "tasks",
        help: "Number of processes; each writes its own file.",
        default: "1",
        kind: ParameterKind::Count { min: 1, max: 64 },
    },
];

/// Bytes per write call.
const CHUNK_BYTES: usize = 64 * 1024;

/// Blocks of a file that was deleted can be reused only after the journal's next commit.
const FILES_AT_ONCE: u64 = 2;

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let (size, file, tasks) = (spec.number("size")?, spec.number("file")?, spec.number("tasks")?);
    let room = size.saturating_sub(empty_ext4::OWN_BYTES);
    if file.saturating_mul(FILES_AT_ONCE).saturating_mul(tasks) > room {
        let wanted = format!("at most {} bytes for this size and these tasks", {
            room / (FILES_AT_ONCE * tasks)
        });
        return Err(refuse(spec, "file", &file.to_string(), &wanted, "1MiB"));
    }
    if !rustix::process::geteuid().is_root() {
        let remedy = "run tardy as root, or use the load files".to_owned();
        let what = "root for a RAM disk".to_owned();
        return Err(LoadError::Missing { load: spec.name.clone(), what, remedy });
    }
    let memory_bytes = size + tasks * PROCESS_BYTES;
    Ok(Need { tasks, counters: tasks, memory_bytes, ..Need::default() })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let (size, file) = (spec.number("size")?, spec.number("file")?);
    let size = size - size % u64::from(empty_ext4::BLOCK_BYTES);
    let root = mount(pool, size)?;
    let prepare = |task| Ok((task, vec![0x55; CHUNK_BYTES]));
    processes(pool, 0..spec.number("tasks")?, prepare, |(task, chunk)| {
        round(&root, *task, chunk, file)
    })
}

/// The root of a new file system. The workers inherit the descriptor, and hold the mount by it.
fn mount(pool: &WorkerPool, size: u64) -> Result<OwnedFd, LoadError> {
    // This name in /sys/block/loop*/loop/backing_file identifies the load.
    let name = format!("tardy-ext4-{}", std::process::id());
    let made = ram_disk::memory(&name, size).and_then(|memory| {
        empty_ext4::write(&memory, size)?;
        Ok(memory)
    });
    let memory = made.map_err(|error| pool.cannot("make a file in memory", error))?;
    let disk = RamDisk::make(&memory, empty_ext4::BLOCK_BYTES).map_err(|error| {
        let remedy = "load the kernel's module: modprobe loop; a container needs the devices \
                      /dev/loop-control and /dev/loop*";
        pool.refuse("make a loop device (Linux 5.8 or newer)", error, remedy)
    })?;
    disk.mount("ext4").map_err(|error| {
        let remedy =
            "load the kernel's module: modprobe ext4; a container must be allowed to mount";
        pool.refuse("mount ext4", error, remedy)
    })
}

/// Writes a file of `bytes`, flushes and deletes it.
fn round(root: &OwnedFd, task: u64, chunk: &[u8], bytes: u64) -> io::Result<()> {
    let name = task.to_string();
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = File::from(openat(root, &name, flags, Mode::RUSR | Mode::WUSR)?);
    let mut left = usize::try_from(bytes).map_err(io::Error::other)?;
    while left > 0 {
        let part = chunk.get(..left).unwrap_or(chunk);
        file.write_all(part)?;
        left -= part.len();
    }
    file.sync_all()?;
    drop(file);
    Ok(unlinkat(root, &name, AtFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_the_disk_cannot_hold_are_refused_with_what_it_can() {
        let spec = LoadSpec::parse("ext4:size=16MiB,file=8MiB,tasks=2").unwrap();
        let said = need(&spec).unwrap_err().to_string();
        assert!(said.contains("file=8388608 is not at most "), "{said}");
        assert!(said.contains("write for example file=1MiB"), "{said}");
    }

    #[test]
    fn a_round_leaves_no_file() {
        let place = tempfile::tempdir().unwrap();
        let root = OwnedFd::from(File::open(place.path()).unwrap());
        for bytes in [1, 100_000] {
            round(&root, 3, &[0; 4096], bytes).unwrap();
            assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
        }
    }
}

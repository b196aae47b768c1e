//! The load `files`: thousands of empty files made and deleted, by several processes in the same
//! directories.
//!
//! Each process goes from directory to directory; in each it makes all its files and deletes them
//! again. A file made, or deleted, is one operation. On the machine it takes inodes and the file
//! system's journal; the directories are below one that is removed at the end, or by the next start
//! when everything was killed.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};

use crate::loads::task_loop::{PROCESS_BYTES, processes};
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "files",
    summary: "Makes and deletes thousands of files.",
    unit: "files made or deleted",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "dir",
        help: "Directory whose file system the load uses.",
        default: "/var/tmp",
        kind: ParameterKind::Text,
    },
    Parameter {
        key: "dirs",
        help: "Number of directories in it; the files are made there.",
        default: "2",
        kind: ParameterKind::Count { min: 1, max: 100 },
    },
    Parameter {
        key: "tasks",
        help: "Number of processes that make and delete files.",
        default: "2",
        kind: ParameterKind::Count { min: 1, max: 256 },
    },
    Parameter {
        key: "files",
        help: "Files that each process makes in a directory before it deletes them.",
        default: "10000",
        kind: ParameterKind::Count { min: 1, max: 1_000_000 },
    },
];

/// An inode and its entry, on the file systems in use.
const FILE_BYTES: u64 = 512;

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let (dirs, tasks) = (spec.number("dirs")?, spec.number("tasks")?);
    Ok(Need {
        tasks,
        counters: tasks,
        open_files: dirs,
        memory_bytes: tasks * PROCESS_BYTES,
        disk_bytes: tasks * spec.number("files")? * FILE_BYTES,
    })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let scratch = pool.make_scratch(Path::new(spec.text("dir")?))?;
    let (count, files) = (spec.number("dirs")?, spec.number("files")?);
    let mut dirs = Vec::new();
    for number in 0..count {
        let made = directory(&scratch, &number.to_string()).map_err(|error| {
            let action = format!("make directory {number} of {count}");
            let remedy = "free space, or name another directory with dir=";
            pool.refuse(&action, error, remedy)
        });
        dirs.push(made?);
    }
    let prepare = |task| Ok(Round { task, files, at: 0 });
    processes(pool, 0..spec.number("tasks")?, prepare, |round| round.step(&dirs))
}

/// A new directory in `above`.
fn directory(above: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    mkdirat(above, name, Mode::RWXU)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(above, name, flags, Mode::empty())?)
}

/// Where a process is in its round.
#[derive(Debug)]
struct Round {
    task: u64,
    files: u64,
    /// Files made and deleted since the start.
    at: u64,
}

impl Round {
    /// Makes or deletes the next file.
    fn step(&mut self, dirs: &[OwnedFd]) -> io::Result<()> {
        let (pass, place) = (self.at / (2 * self.files), self.at % (2 * self.files));
        let dir = usize::try_from(pass % (dirs.len() as u64)).unwrap_or(0);
        let dir = dirs.get(dir).ok_or(io::ErrorKind::NotFound)?;
        self.at += 1;
        if place < self.files {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            openat(dir, name(self.task, place), flags, Mode::RUSR | Mode::WUSR)?;
        } else {
            unlinkat(dir, name(self.task, place - self.files), AtFlags::empty())?;
        }
        Ok(())
    }
}

fn name(task: u64, file: u64) -> String {
    format!("{task}-{file}")
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_round_makes_all_files_in_one_directory_and_deletes_them_before_the_next() {
        let parents = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let dirs =
            parents.each_ref().map(|parent| OwnedFd::from(File::open(parent.path()).unwrap()));
        let counts =
            || parents.each_ref().map(|dir| std::fs::read_dir(dir.path()).unwrap().count());
        let mut round = Round { task: 7, files: 2, at: 0 };
        let mut seen = Vec::new();
        for _ in 0..8 {
            round.step(&dirs).unwrap();
            seen.push(counts());
        }
        let first = [[1, 0], [2, 0], [1, 0], [0, 0]];
        let second = [[0, 1], [0, 2], [0, 1], [0, 0]];
        assert_eq!(seen, [first, second].concat());
    }
}

//! What `disk-write`, `disk-read` and `disk-copy` share: their parameters, their files, and the
//! way in which a block is moved.
//!
//! The files have no name, so that nothing is left however a load ends. `cached` goes through the
//! page cache, `direct` past it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use crate::loads::scratch::nameless;
use crate::loads::task_loop::PROCESS_BYTES;
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{LoadError, LoadSpec, Need, Parameter, ParameterKind, spec::refuse};
use crate::sys::region::Region;

/// The same for all three.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "dir",
        help: "Directory whose file system the load uses.",
        default: "/var/tmp",
        kind: ParameterKind::Text,
    },
    Parameter {
        key: "size",
        help: "Size of a file; the load passes over it repeatedly.",
        default: "64MiB",
        kind: ParameterKind::Bytes { min: 4096, max: 1 << 40 },
    },
    Parameter {
        key: "block",
        help: "Bytes per read or write call; a multiple of 4096 with access=direct.",
        default: "128KiB",
        kind: ParameterKind::Bytes { min: 512, max: 64 << 20 },
    },
    Parameter {
        key: "access",
        help: "Use the page cache (cached), or bypass it (direct).",
        default: "cached",
        kind: ParameterKind::Choice(&["cached", "direct"]),
    },
    Parameter {
        key: "tasks",
        help: "Number of processes, each with separate files.",
        default: "1",
        kind: ParameterKind::Count { min: 1, max: 64 },
    },
];

/// Of what a block of direct access must be a multiple: the largest sector in use.
const SECTOR: u64 = 4096;

/// The parameters, typed.
#[derive(Debug, Clone)]
pub(super) struct DiskParameters {
    dir: PathBuf,
    /// Blocks in a file.
    blocks: u64,
    block_bytes: usize,
    is_direct: bool,
    pub tasks: u64,
}

impl DiskParameters {
    pub(super) fn of(spec: &LoadSpec) -> Result<Self, LoadError> {
        let block = spec.number("block")?;
        let is_direct = spec.text("access")? == "direct";
        if is_direct && !block.is_multiple_of(SECTOR) {
            let expected = "a multiple of 4096, as access=direct requires";
            return Err(refuse(spec, "block", &block.to_string(), expected, "128KiB"));
        }
        Ok(Self {
            dir: spec.text("dir")?.into(),
            blocks: (spec.number("size")? / block).max(1),
            block_bytes: usize::try_from(block).unwrap_or(usize::MAX),
            is_direct,
            tasks: spec.number("tasks")?,
        })
    }

    /// What it needs with this many files per task.
    pub(super) fn need(&self, files: u64) -> Need {
        let block_bytes = self.block_bytes as u64;
        let file_bytes = self.blocks.saturating_mul(block_bytes);
        Need {
            tasks: self.tasks,
            counters: self.tasks,
            open_files: files,
            memory_bytes: self.tasks.saturating_mul(PROCESS_BYTES + block_bytes),
            disk_bytes: file_bytes.saturating_mul(files).saturating_mul(self.tasks),
        }
    }

    /// A file and a buffer for its blocks. Made before the worker is forked, so that what is wrong
    /// with the directory is reported as an error of the start.
    pub(super) fn open(&self, pool: &WorkerPool) -> Result<Blocks, LoadError> {
        let file = nameless(&self.dir, self.is_direct).map_err(|error| {
            let action = format!("make a file in {}", self.dir.display());
            let remedy = if self.is_direct && error.raw_os_error() == Some(libc::EINVAL) {
                "this file system has no direct access: use access=cached"
            } else {
                "name a directory that you may write to with dir="
            };
            pool.refuse(&action, error, remedy)
        })?;
        let mut buffer = Region::map(self.block_bytes, false)
            .map_err(|error| pool.cannot("get memory for a block", error))?;
        // Some file systems do not write blocks of zeros.
        for (number, byte) in (0_u32..).zip(buffer.bytes()) {
            *byte = number.wrapping_mul(2_654_435_761).to_be_bytes().first().copied().unwrap_or(0);
        }
        Ok(Blocks { file, buffer, blocks: self.blocks, next: 0 })
    }
}

/// A file of a fixed number of blocks, gone through in a circle.
#[derive(Debug)]
pub(super) struct Blocks {
    file: File,
    buffer: Region,
    blocks: u64,
    next: u64,
}

impl Blocks {
    /// Writes the next block, from its own buffer.
    pub(super) fn write(&mut self) -> io::Result<()> {
        self.file.write_all(self.buffer.bytes())?;
        self.go_on()
    }

    /// Writes what another file has read.
    pub(super) fn write_block(&mut self, block: &[u8]) -> io::Result<()> {
        self.file.write_all(block)?;
        self.go_on()
    }

    /// After the last block, all of them are brought to the disk, and the file begins anew from
    /// empty: so space is allocated and freed, too.
    fn go_on(&mut self) -> io::Result<()> {
        if self.is_last() {
            self.file.sync_data()?;
            self.file.set_len(0)?;
            self.file.seek(SeekFrom::Start(0))?;
        }
        Ok(())
    }

    /// Writes the whole file once, to be read afterwards.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        for _ in 0..self.blocks {
            self.file.write_all(self.buffer.bytes())?;
        }
        self.file.sync_all()?;
        self.rewind()
    }

    /// Reads the next block.
    pub(super) fn read(&mut self) -> io::Result<&mut [u8]> {
        self.file.read_exact(self.buffer.bytes())?;
        if self.is_last() {
            self.rewind()?;
        }
        Ok(self.buffer.bytes())
    }

    /// Begins at the start, and drops the page cache: the load must read the disk, not memory.
    fn rewind(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        // On a file system that ignores this advice, the load reads the cache only.
        let _ = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed);
        Ok(())
    }

    fn is_last(&mut self) -> bool {
        self.next = (self.next + 1) % self.blocks;
        self.next == 0
    }
}

//! The load `disk-copy`: one file copied into another, again and again.
//!
//! Both are as `disk-read` and `disk-write` have them. A block read and written is one operation.
//! On the machine it takes twice the disk space, and the disk's time.

use std::io;

use super::disk::{Blocks, DiskParameters, PARAMETERS};
use crate::loads::task_loop::repeat;
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "disk-copy",
    summary: "Copies files on the disk.",
    unit: "blocks",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    Ok(DiskParameters::of(spec)?.need(2))
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let shape = DiskParameters::of(spec)?;
    for number in 0..shape.tasks {
        let (mut from, into) = (shape.open(pool)?, shape.open(pool)?);
        pool.spawn(|worker| {
            let prepare = |_| from.fill().map(|()| (from, into));
            repeat(worker, number, prepare, |(from, into)| copy(from, into))
        })?;
    }
    Ok(())
}

fn copy(from: &mut Blocks, into: &mut Blocks) -> io::Result<()> {
    let block = from.read()?;
    into.write_block(block)
}

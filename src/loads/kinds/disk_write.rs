//! The load `disk-write`: a file written from end to end, brought to the disk, and begun anew.
//!
//! A block is one operation. On the machine it takes disk space, the disk's time, and where access
//! is cached dirty memory. A disk that becomes full ends the load.

use super::disk::{Blocks, DiskParameters, PARAMETERS};
use crate::loads::task_loop::repeat;
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "disk-write",
    summary: "Writes files and flushes them to the disk.",
    unit: "blocks",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    Ok(DiskParameters::of(spec)?.need(1))
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let shape = DiskParameters::of(spec)?;
    for number in 0..shape.tasks {
        let file = shape.open(pool)?;
        pool.spawn(|worker| repeat(worker, number, |_| Ok(file), Blocks::write))?;
    }
    Ok(())
}

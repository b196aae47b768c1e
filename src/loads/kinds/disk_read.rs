//! The load `disk-read`: a file read from end to end, again and again, each time from the disk.
//!
//! The file is written before the run begins, and put out of the page cache before each pass. A
//! block is one operation. On the machine it takes disk space and the disk's time.

use super::disk::{DiskParameters, PARAMETERS};
use crate::loads::task_loop::repeat;
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "disk-read",
    summary: "Reads files from the disk.",
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
        let mut file = shape.open(pool)?;
        pool.spawn(|worker| {
            let prepare = |_| file.fill().map(|()| file);
            repeat(worker, number, prepare, |file| file.read().map(|_| ()))
        })?;
    }
    Ok(())
}

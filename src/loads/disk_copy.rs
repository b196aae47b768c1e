//! The load `disk-copy`: one file copied into another, again and again.
//!
//! Both are as `disk-read` and `disk-write` have them. A block read and written is one operation.
//! On the machine it takes twice the disk space, and the disk's time.

use std::io;

use super::crew::Crew;
use super::disk::{Blocks, PARAMETERS, Shape};
use super::turns::repeat;
use super::{Load, LoadError, LoadSpec, Need, Work};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "disk-copy",
    summary: "Copies files on the disk.",
    unit: "blocks",
    parameters: PARAMETERS,
    work: Some(Work { need, start }),
};

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    Ok(Shape::of(spec)?.need(2))
}

fn start(spec: &LoadSpec, crew: &mut Crew) -> Result<(), LoadError> {
    let shape = Shape::of(spec)?;
    for number in 0..shape.tasks {
        let (mut from, into) = (shape.open(crew)?, shape.open(crew)?);
        crew.spawn(|worker| {
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

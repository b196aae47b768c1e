//! The load `disk-write`: a file written from end to end, brought to the disk, and begun anew.
//!
//! A block is one operation. On the machine it takes disk space, the disk's time, and where access
//! is cached dirty memory; a disk that becomes full meanwhile is its end.

use super::crew::Crew;
use super::disk::{Blocks, PARAMETERS, Shape};
use super::turns::repeat;
use super::{Load, LoadError, LoadSpec, Need, Work};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "disk-write",
    summary: "Writes files and brings them to the disk.",
    unit: "blocks",
    parameters: PARAMETERS,
    work: Some(Work { need, start }),
};

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    Ok(Shape::of(spec)?.need(1))
}

fn start(spec: &LoadSpec, crew: &mut Crew) -> Result<(), LoadError> {
    let shape = Shape::of(spec)?;
    for number in 0..shape.tasks {
        let file = shape.open(crew)?;
        crew.spawn(|worker| repeat(worker, number, |_| Ok(file), Blocks::write))?;
    }
    Ok(())
}

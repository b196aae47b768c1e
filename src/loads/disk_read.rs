//! The load `disk-read`: a file read from end to end, again and again, each time from the disk.
//!
//! The file is written before the run begins, and put out of the page cache before each pass. A
//! block is one operation. On the machine it takes disk space and the disk's time.

use super::crew::Crew;
use super::disk::{PARAMETERS, Shape};
use super::turns::repeat;
use super::{Load, LoadError, LoadSpec, Need, Work};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "disk-read",
    summary: "Reads files from the disk.",
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
        let mut file = shape.open(crew)?;
        crew.spawn(|worker| {
            let prepare = |_| file.fill().map(|()| file);
            repeat(worker, number, prepare, |file| file.read().map(|_| ()))
        })?;
    }
    Ok(())
}

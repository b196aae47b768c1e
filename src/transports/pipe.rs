//! Two pipes, one each way.

use std::io;

use super::{
    end::{Holds, TransportEnd},
    port::OpenPort,
};

pub(super) fn pair() -> io::Result<(Holds, Holds)> {
    let (far_reads, near_writes) = io::pipe()?;
    let (near_reads, far_writes) = io::pipe()?;
    let near = [near_writes.into(), near_reads.into()];
    let far = [far_writes.into(), far_reads.into()];
    Ok((near.into(), far.into()))
}

pub(super) fn open(end: TransportEnd) -> io::Result<OpenPort> {
    let [writes, reads] = TransportEnd::exactly(end.descriptors)?;
    Ok(OpenPort::pipe(writes, reads, end.size))
}

//! Two eventfds, one each way. They count messages.

use std::io;

use rustix::event::{EventfdFlags, eventfd};

use super::{
    end::{Holds, TransportEnd},
    port::OpenPort,
};

pub(super) fn pair() -> io::Result<(Holds, Holds)> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE;
    let (there, back) = (eventfd(0, flags)?, eventfd(0, flags)?);
    let near = [there.try_clone()?, back.try_clone()?];
    Ok((near.into(), [back, there].into()))
}

pub(super) fn open(end: TransportEnd) -> io::Result<OpenPort> {
    let [sends, receives] = TransportEnd::exactly(end.descriptors)?;
    Ok(OpenPort::eventfd(sends, receives))
}

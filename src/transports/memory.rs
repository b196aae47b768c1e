//! The transports that need nothing but memory that both ends share: futex, signal, pi-mutex and
//! shm-spin.

use std::io;

use tardy_hot::ports::{
    futex::Futex,
    page::{Side, WORDS},
    pi_mutex::PiMutex,
    signal::Signal,
    spin::SpinPort,
};

use super::{
    Transport,
    end::{Holds, Role, TransportEnd},
    page::{Interrupter, PageMapping},
    port::OpenPort,
};
use crate::sys::mapped::sealed_memory;

pub(super) fn pair() -> io::Result<(Holds, Holds)> {
    let memory = sealed_memory(c"tardy-messages", (WORDS * size_of::<u64>()) as u64)?;
    Ok(([memory.try_clone()?].into(), [memory].into()))
}

pub(super) fn open(end: TransportEnd) -> io::Result<OpenPort> {
    let [memory] = TransportEnd::exactly(end.descriptors)?;
    let memory = PageMapping::new(&memory)?;
    let side = match end.role {
        Role::Near => Side::Near,
        Role::Far => Side::Far,
    };
    // Written to, so that no use of it takes a page fault; the other end may be there already.
    memory.touch();
    match end.transport {
        Transport::Futex => Ok(OpenPort::Futex(Futex::new(memory, side))),
        Transport::Signal => Signal::new(memory, side).map(|port| OpenPort::Signal(port.into())),
        Transport::PiMutex => PiMutex::new(memory, side).map(OpenPort::PiMutex),
        Transport::ShmSpin => {
            let interrupter = Interrupter::new(memory.clone(), side);
            Ok(OpenPort::Spin(SpinPort::new(memory, side), interrupter))
        }
        _ => Err(libc::EINVAL),
    }
    .map_err(io::Error::from_raw_os_error)
}

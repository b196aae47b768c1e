//! Memory that both ends share, and the transports that need nothing else: futex, signal,
//! pi-mutex and shm-spin.

use std::{io, ops::Deref, os::fd::AsFd, sync::Arc};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use tardy_hot::ports::{
    futex::Futex,
    page::{SharedPage, Side, WORDS},
    pi_mutex::PiMutex,
    signal::Signal,
    spin::SpinPort,
};

use super::{
    Transport,
    pair::{Holds, Role, TransportEnd},
    port::OpenPort,
};
use crate::sys::mapped::MappedArray;

/// The page of both ends, as one of them has it.
#[derive(Debug, Clone)]
pub struct PageMapping(Arc<MappedArray<WORDS>>);

impl Deref for PageMapping {
    type Target = SharedPage;

    #[inline]
    fn deref(&self) -> &SharedPage {
        SharedPage::of(self.0.words())
    }
}

/// Ends the wait of an end that makes no system call, where a signal would end others.
#[derive(Debug, Clone)]
pub struct Interrupter {
    memory: PageMapping,
    side: Side,
}

impl Interrupter {
    pub(super) const fn new(memory: PageMapping, side: Side) -> Self {
        Self { memory, side }
    }

    /// The end gives up waiting, now or when it waits next.
    pub fn interrupt(&self) {
        self.memory.interrupt(self.side);
    }
}

pub(super) fn pair() -> io::Result<(Holds, Holds)> {
    let memory = memfd_create(c"tardy-messages", MemfdFlags::CLOEXEC)?;
    ftruncate(&memory, (WORDS * size_of::<u64>()) as u64)?;
    Ok(([memory.try_clone()?].into(), [memory].into()))
}

pub(super) fn open(end: TransportEnd) -> io::Result<OpenPort> {
    let [memory] = TransportEnd::exactly(end.descriptors)?;
    let memory = PageMapping(Arc::new(MappedArray::new(memory.as_fd())?));
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

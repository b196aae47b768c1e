//! Memory page shared by both endpoints, and how to interrupt an endpoint that waits in it.

use std::{
    io,
    ops::Deref,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use tardy_hot::ports::page::{SharedPage, Side, WORDS};

use crate::sys::mapped::MappedArray;

/// One endpoint's view of the shared page.
#[derive(Debug, Clone)]
pub struct PageMapping(Arc<MappedArray<WORDS>>);

impl PageMapping {
    pub(super) fn new(memory: &OwnedFd) -> io::Result<Self> {
        Ok(Self(Arc::new(MappedArray::new(memory.as_fd())?)))
    }
}

impl Deref for PageMapping {
    type Target = SharedPage;

    #[inline]
    fn deref(&self) -> &SharedPage {
        SharedPage::of(self.0.words())
    }
}

/// Interrupts an endpoint that busy-waits. A signal cannot do that: it makes no system call.
#[derive(Debug, Clone)]
pub struct Interrupter {
    memory: PageMapping,
    side: Side,
}

impl Interrupter {
    pub(super) const fn new(memory: PageMapping, side: Side) -> Self {
        Self { memory, side }
    }

    /// Makes the endpoint stop waiting, now or at its next wait.
    pub fn interrupt(&self) {
        self.memory.interrupt(self.side);
    }
}

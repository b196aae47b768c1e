//! Memory that both ends share, and how a wait in it is ended.

use std::{
    io,
    ops::Deref,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use tardy_hot::ports::page::{SharedPage, Side, WORDS};

use crate::sys::mapped::MappedArray;

/// The page of both ends, as one of them has it.
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

//! Two words in shared memory, polled continuously: no system call at all. Waiting keeps a CPU
//! busy.

use core::{ffi::c_int, hint::spin_loop, ops::Deref};

use super::page::{SharedPage, Side};
use crate::exchange::Port;

/// One end. What would be a signal elsewhere is [`SharedPage::interrupt`] here.
#[derive(Debug)]
pub struct SpinPort<M: Deref<Target = SharedPage>> {
    memory: M,
    side: Side,
    sent: u32,
    seen: u32,
    interrupts: u32,
}

impl<M: Deref<Target = SharedPage>> SpinPort<M> {
    /// The end `side`.
    #[must_use]
    pub const fn new(memory: M, side: Side) -> Self {
        Self { memory, side, sent: 0, seen: 0, interrupts: 0 }
    }
}

impl<M: Deref<Target = SharedPage>> Port for SpinPort<M> {
    #[inline(always)]
    fn send(&mut self, number: u8) -> Result<(), c_int> {
        self.memory.lane_to(self.side.other()).put(number, &mut self.sent);
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, c_int> {
        let lane = self.memory.lane_to(self.side);
        loop {
            if let Some(taken) = lane.take(&mut self.seen) {
                return taken;
            }
            let interrupts = lane.interrupts();
            if interrupts != self.interrupts {
                self.interrupts = interrupts;
                return Err(libc::EINTR);
            }
            spin_loop();
        }
    }
}

impl<M: Deref<Target = SharedPage>> Drop for SpinPort<M> {
    fn drop(&mut self) {
        self.memory.lane_to(self.side.other()).end();
    }
}

#[cfg(test)]
mod tests {
    use super::{super::page::alone, *};

    #[test]
    fn a_wait_ends_by_a_message_an_interruption_or_the_end_of_the_other() {
        let page = alone();
        let (mut near, mut far) = (SpinPort::new(page, Side::Near), SpinPort::new(page, Side::Far));
        near.send(3).unwrap();
        page.interrupt(Side::Far);
        assert_eq!((far.receive(), far.receive()), (Ok(3), Err(libc::EINTR)));
        drop(near);
        assert_eq!(far.receive(), Err(libc::ECONNRESET));
    }
}

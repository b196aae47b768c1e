//! Transports without message numbers, which only count messages: eventfds and System V semaphores.
//!
//! Each message is counted, and each is taken alone, so that both ends count alike: the number of
//! an answer is that of the message it belongs to.

use core::ffi::{c_int, c_ushort};

use super::errno;
use crate::exchange::Port;

/// Counter in place of message numbers, modulo 256.
#[derive(Debug, Default)]
struct Count {
    sent: u8,
    got: u8,
    /// The number of the last message sent, minus its place among those sent.
    offset: u8,
}

impl Count {
    #[inline(always)]
    fn send(&mut self, number: u8) {
        self.sent = self.sent.wrapping_add(1);
        self.offset = number.wrapping_sub(self.sent);
    }

    #[inline(always)]
    fn receive(&mut self) -> u8 {
        self.got = self.got.wrapping_add(1);
        self.got.wrapping_add(self.offset)
    }
}

/// Two eventfds, made with `EFD_SEMAPHORE` and blocking.
#[derive(Debug)]
pub struct Eventfd {
    sends: c_int,
    receives: c_int,
    count: Count,
}

impl Eventfd {
    /// An end that adds to one eventfd and waits for another. They stay the caller's.
    #[must_use]
    pub fn new(sends: c_int, receives: c_int) -> Self {
        Self { sends, receives, count: Count::default() }
    }
}

impl Port for Eventfd {
    #[inline(always)]
    fn send(&mut self, number: u8) -> Result<(), c_int> {
        let one = 1_u64;
        // SAFETY: the kernel reads the 8 bytes of a live local.
        if unsafe { libc::write(self.sends, (&raw const one).cast(), 8) } != 8 {
            return Err(errno());
        }
        self.count.send(number);
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, c_int> {
        let mut one = 0_u64;
        // SAFETY: the kernel writes 8 bytes to a live local.
        if unsafe { libc::read(self.receives, (&raw mut one).cast(), 8) } != 8 {
            return Err(errno());
        }
        Ok(self.count.receive())
    }
}

/// Two semaphores of one set.
#[derive(Debug)]
pub struct Semaphore {
    set: c_int,
    post: libc::sembuf,
    wait: libc::sembuf,
    count: Count,
}

impl Semaphore {
    /// An end that posts one semaphore of the set and waits for another, by their places in it.
    #[must_use]
    pub fn new(set: c_int, sends: c_ushort, receives: c_ushort) -> Self {
        let by = |place, sem_op| libc::sembuf { sem_num: place, sem_op, sem_flg: 0 };
        Self { set, post: by(sends, 1), wait: by(receives, -1), count: Count::default() }
    }
}

impl Port for Semaphore {
    #[inline(always)]
    fn send(&mut self, number: u8) -> Result<(), c_int> {
        // SAFETY: one operation, as said, that the kernel reads.
        if unsafe { libc::semop(self.set, &raw mut self.post, 1) } != 0 {
            return Err(errno());
        }
        self.count.send(number);
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, c_int> {
        // SAFETY: as above.
        if unsafe { libc::semop(self.set, &raw mut self.wait, 1) } != 0 {
            return Err(errno());
        }
        Ok(self.count.receive())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_numbers_of_their_messages_also_when_numbers_begin_anew() {
        let (mut near, mut far) = (Count::default(), Count::default());
        for number in (1..=300_u16).map(|n| n as u8).chain(1..=3) {
            near.send(number);
            far.receive();
            far.send(0);
            assert_eq!(near.receive(), number);
        }
    }

    #[test]
    fn the_late_answer_of_a_message_that_was_given_up_has_its_own_number() {
        let (mut near, mut far) = (Count::default(), Count::default());
        near.send(1);
        near.send(2);
        for number in [1, 2] {
            assert_eq!(far.receive(), number);
            far.send(number);
            assert_eq!(near.receive(), number);
        }
    }
}

//! A bell: one thread sleeps until a time or until it is rung, by any thread or signal handler.
//! A ring that comes before the sleep ends it at once, so that none is missed.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
    sync::Arc,
};

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io::{read, write},
};

/// See the module. Clones are the same bell.
#[derive(Debug, Clone)]
pub struct Notifier(Arc<OwnedFd>);

impl Notifier {
    /// One that nobody has rung.
    ///
    /// # Errors
    /// This process or the machine has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Ends the sleep in progress, or the next one. One system call and nothing else, so that a
    /// signal handler may do it.
    pub fn ring(&self) {
        // It fails only where it was rung 2^64 times already.
        let _ = write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// Sleeps for `time_ns` at the most, where there is such a time, and says whether it was rung.
    /// A signal ends it, too.
    pub fn wait(&self, time_ns: Option<i64>) -> bool {
        self.wait_beside(None, time_ns)
    }

    /// The same; `other` ends the sleep too, where it becomes readable: a pidfd at the end of its
    /// process.
    pub fn wait_beside(&self, other: Option<BorrowedFd<'_>>, time_ns: Option<i64>) -> bool {
        let time = time_ns
            .map(|ns| ns.max(0))
            .map(|ns| Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 });
        let own = PollFd::new(&*self.0, PollFlags::IN);
        let _ = match other {
            None => poll(&mut [own], time.as_ref()),
            Some(other) => {
                let other = PollFd::from_borrowed_fd(other, PollFlags::IN);
                poll(&mut [own, other], time.as_ref())
            }
        };
        // Where it was not rung, there is nothing to read.
        read(&*self.0, &mut [0_u8; 8]).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;

    #[test]
    fn a_ring_ends_a_sleep_also_where_it_comes_first_and_ends_no_other() {
        let bell = Notifier::new().unwrap();
        bell.ring();
        bell.ring();
        assert!(bell.wait(None));
        assert!(!bell.wait(Some(0)), "both rings were for that sleep");
        assert!(!bell.wait(Some(1_000_000)));
        let other = bell.clone();
        let ringer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            other.ring();
        });
        assert!(bell.wait(None));
        ringer.join().unwrap();
    }
}

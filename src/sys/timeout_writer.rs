//! Writing to a terminal that perhaps nobody reads: a line that is down, a window that is stopped.
//! A write to it sleeps for as long as that lasts; here it waits for as long as its user likes.

use std::{
    io::{self, ErrorKind},
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags, open},
    io::{Errno, write},
};

/// Between two looks at whether it is still worth waiting, ns.
const LOOK_NS: i64 = 20_000_000;

/// Bytes that a terminal takes at once where it says that there is room, without an own buffer.
const LITTLE: usize = 64;

/// A terminal to write to. `gives_up` is asked before each wait, with the time that this write has
/// waited so far; a write that it gives up is an error of the kind [`ErrorKind::TimedOut`].
#[derive(Debug)]
pub struct TimeoutWriter<F> {
    terminal: OwnedFd,
    /// Whether writes come back at once by themselves.
    is_own: bool,
    gives_up: F,
}

impl<F: FnMut(Duration) -> bool> TimeoutWriter<F> {
    /// Of the terminal behind an open descriptor. It is opened once more, as whether writes wait is
    /// a property of all who share a descriptor. Where that is refused, as to another user after
    /// su(1), it is asked for room before each write.
    ///
    /// # Errors
    /// This process has no file descriptor left.
    pub fn new(of: impl AsFd, gives_up: F) -> io::Result<Self> {
        let path = format!("/proc/self/fd/{}", of.as_fd().as_raw_fd());
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let (terminal, is_own) = match open(path, flags, Mode::empty()) {
            Ok(own) => (own, true),
            Err(_) => (of.as_fd().try_clone_to_owned()?, false),
        };
        Ok(Self { terminal, is_own, gives_up })
    }

    fn try_write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        if self.is_own {
            return write(&self.terminal, bytes);
        }
        match has_room(self.terminal.as_fd(), 0) {
            true => write(&self.terminal, bytes.get(..LITTLE).unwrap_or(bytes)),
            false => Err(Errno::AGAIN),
        }
    }
}

impl<F: FnMut(Duration) -> bool> io::Write for TimeoutWriter<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let began = Instant::now();
        loop {
            match self.try_write(bytes) {
                Err(Errno::AGAIN) if (self.gives_up)(began.elapsed()) => {
                    return Err(io::Error::new(ErrorKind::TimedOut, "nobody reads the terminal"));
                }
                Err(Errno::AGAIN) => {
                    has_room(self.terminal.as_fd(), LOOK_NS);
                }
                Err(Errno::INTR) => {}
                done => return Ok(done?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether there is room, or an error that a write would tell, within so long.
fn has_room(terminal: BorrowedFd<'_>, within_ns: i64) -> bool {
    let within = Timespec { tv_sec: 0, tv_nsec: within_ns };
    let mut asked = [PollFd::from_borrowed_fd(terminal, PollFlags::OUT)];
    poll(&mut asked, Some(&within)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{Read as _, Write as _},
    };

    use rustix::pipe::pipe;

    use super::*;

    #[test]
    fn what_nobody_reads_is_waited_for_as_long_as_asked_and_what_is_read_is_written() {
        let (reads, writes) = pipe().unwrap();
        let mut waits = 0;
        let mut out = TimeoutWriter::new(&writes, |_| {
            waits += 1;
            waits > 2
        })
        .unwrap();
        let error = out.write_all(&vec![b'x'; 1 << 21]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(out);
        assert_eq!(waits, 3);
        let mut file = File::from(reads);
        file.read_exact(&mut [0; 4_096]).unwrap();
        TimeoutWriter::new(&writes, |_| true).unwrap().write_all(b"more").unwrap();
        drop(writes);
        let mut all = String::new();
        file.read_to_string(&mut all).unwrap();
        assert!(all.ends_with("xmore"));
    }

    #[test]
    fn one_that_cannot_be_opened_again_is_asked_for_room() {
        let (reads, writes) = pipe().unwrap();
        let gives_up = |_| true;
        let mut out = TimeoutWriter { terminal: writes, is_own: false, gives_up };
        let error = out.write_all(&vec![b'x'; 1 << 21]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(reads);
        assert_eq!(out.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}

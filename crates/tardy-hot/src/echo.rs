//! The loop of `tardy echo`: each message goes back to where it came from, as it is or stamped.
//!
//! Never more bytes than were received, and nothing that was not received: what is foreign, or over
//! the rate, is counted and dropped. [`Stamped`] reads the clock right after the receive and right
//! before the send of each packet; [`Plain`] does not read it. [`TokenBucket`] does once in as many
//! messages as it holds.

use core::{
    ffi::{c_int, c_void},
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    clock,
    packet::{LEN, Packet},
    stop::Stop,
};

/// Where messages come from, and go back to.
pub trait EchoIo {
    /// Waits for a message, and returns how many bytes it has; more than `into` where it did not
    /// fit.
    ///
    /// # Errors
    /// The `errno` of the system call; `ECONNRESET` where the other end is gone.
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, c_int>;

    /// Sends it back.
    ///
    /// # Errors
    /// The `errno` of the system call.
    fn send(&mut self, bytes: &[u8]) -> Result<(), c_int>;

    /// Whether nothing more can come after this `errno`.
    fn is_over(errno: c_int) -> bool;
}

/// What is sent back, and how.
pub trait Answer {
    /// Whether the times of receiving and sending are wanted.
    const STAMPS: bool;

    /// Whether these bytes are to be answered; a packet is given its time of arrival, ns.
    fn take(&self, bytes: &mut [u8], received_ns: i64) -> bool;
}

/// Messages of one size, sent back as they are.
#[derive(Debug, Clone, Copy)]
pub struct Plain {
    /// Bytes of one message.
    pub size: usize,
}

/// Whatever comes, sent back as it is.
#[derive(Debug, Clone, Copy)]
pub struct RawEcho;

/// Packets of one session and size, sent back with both of the echo's times in them.
#[derive(Debug, Clone, Copy)]
pub struct Stamped {
    /// Bytes of one packet.
    pub size: usize,
    /// The session that they carry.
    pub session: u64,
}

impl Answer for Plain {
    const STAMPS: bool = false;

    #[inline(always)]
    fn take(&self, bytes: &mut [u8], _received_ns: i64) -> bool {
        bytes.len() == self.size
    }
}

impl Answer for RawEcho {
    const STAMPS: bool = false;

    #[inline(always)]
    fn take(&self, bytes: &mut [u8], _received_ns: i64) -> bool {
        !bytes.is_empty()
    }
}

impl Answer for Stamped {
    const STAMPS: bool = true;

    #[inline(always)]
    fn take(&self, bytes: &mut [u8], received_ns: i64) -> bool {
        let ours = |packet: &Packet| packet.session == self.session;
        let is_whole = bytes.len() == self.size;
        let Some(packet) = Packet::read(bytes).filter(ours).filter(|_| is_whole) else {
            return false;
        };
        Packet { far_received_ns: received_ns, ..packet }.write(bytes);
        true
    }
}

/// A limit of messages per second: a store that fills at that rate and holds one second of it.
#[derive(Debug)]
pub struct TokenBucket {
    per_s: u64,
    left: u64,
    filled_ns: i64,
}

impl TokenBucket {
    /// A full one; `per_s` is at least 1.
    #[must_use]
    pub fn new(per_s: u64, now_ns: i64) -> Self {
        let per_s = per_s.clamp(1, 1_000_000_000);
        Self { per_s, left: per_s, filled_ns: now_ns }
    }

    /// Takes one, where there is one. The clock is read when it is empty, and then only.
    #[inline(always)]
    pub fn take(&mut self, now_ns: impl FnOnce() -> i64) -> bool {
        if self.left == 0 {
            self.fill(now_ns());
        }
        let has_one = self.left > 0;
        self.left -= u64::from(has_one);
        has_one
    }

    fn fill(&mut self, now_ns: i64) {
        let passed_ns = now_ns.saturating_sub(self.filled_ns).clamp(0, 1_000_000_000);
        let gained = passed_ns.unsigned_abs() * self.per_s / 1_000_000_000;
        if gained > 0 {
            // What is left of the time counts for the next: else a sender at exactly that rate
            // loses a little each time.
            let used_ns = (gained * 1_000_000_000).div_ceil(self.per_s);
            let left_ns = passed_ns - used_ns.cast_signed();
            (self.left, self.filled_ns) = (gained, now_ns - left_ns);
        }
    }
}

/// What one loop has done. Written by its thread, readable at any time.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct EchoCounts {
    answered: AtomicU64,
    bytes: AtomicU64,
    over_rate: AtomicU64,
    foreign: AtomicU64,
    failed: AtomicU64,
}

/// A reading of an [`EchoCounts`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Messages that were sent back.
    pub answered: u64,
    /// Their bytes; as many came in.
    pub bytes: u64,
    /// Dropped: more per second than agreed.
    pub over_rate: u64,
    /// Dropped: no messages as agreed.
    pub foreign: u64,
    /// Calls that failed and may do better next time: the network was away.
    pub failed: u64,
}

impl EchoCounts {
    /// What was done so far.
    #[must_use]
    pub fn read(&self) -> Done {
        Done {
            answered: self.answered.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            over_rate: self.over_rate.load(Ordering::Relaxed),
            foreign: self.foreign.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

/// Adds to an atomic that only this thread writes.
#[inline(always)]
fn add(to: &AtomicU64, by: u64) {
    to.store(to.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

/// Why [`serve`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServeEnd {
    /// The flag was set.
    Stopped,
    /// Nothing more can come, by this `errno`.
    Over(c_int),
    /// The peer says hello again; the buffer holds this number of its bytes.
    Spoken(usize),
}

/// Sends each message back, until `stop` is set, nothing more can come, or a message begins with
/// `spoken` and is as long as `spoken_len` (0: none is).
///
/// Not inlined, so that the loop stands alone in a profile.
#[inline(never)]
pub fn serve<W: EchoIo, A: Answer>(
    way: &mut W,
    answer: &A,
    (buffer, spoken, spoken_len): (&mut [u8], &[u8; 4], usize),
    bucket: &mut TokenBucket,
    counts: &EchoCounts,
    stop: &Stop,
) -> ServeEnd {
    loop {
        let received = way.receive(buffer);
        let received_ns = if A::STAMPS { clock::now_ns() } else { 0 };
        if stop.is_set() {
            return ServeEnd::Stopped;
        }
        let bytes = match received {
            Ok(length) => match buffer.get_mut(..length) {
                Some(bytes) => bytes,
                None => {
                    add(&counts.foreign, 1);
                    continue;
                }
            },
            Err(errno) if W::is_over(errno) => return ServeEnd::Over(errno),
            Err(_) => {
                add(&counts.failed, 1);
                continue;
            }
        };
        if bytes.len() == spoken_len && bytes.starts_with(spoken) {
            return ServeEnd::Spoken(spoken_len);
        }
        if !answer.take(bytes, received_ns) {
            add(&counts.foreign, 1);
            continue;
        }
        if !bucket.take(clock::now_ns) {
            add(&counts.over_rate, 1);
            rest();
            continue;
        }
        if A::STAMPS {
            stamp_sent(bytes, clock::now_ns());
        }
        match way.send(bytes) {
            Ok(()) => {
                add(&counts.answered, 1);
                add(&counts.bytes, bytes.len() as u64);
            }
            Err(_) if stop.is_set() => return ServeEnd::Stopped,
            Err(errno) if W::is_over(errno) => return ServeEnd::Over(errno),
            Err(_) => add(&counts.failed, 1),
        }
    }
}

/// Sleeps for a millisecond: who sends more than is agreed must not keep a real-time thread, and so
/// its CPU, busy with dropping it. What comes meanwhile waits in the socket, or goes where the
/// socket is full.
#[cold]
fn rest() {
    let pause = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    // SAFETY: reads the time, and writes nothing because no place is given for the rest.
    unsafe { libc::nanosleep(&raw const pause, core::ptr::null_mut()) };
}

/// Writes the last eight bytes of a packet.
#[inline(always)]
fn stamp_sent(bytes: &mut [u8], sent_ns: i64) {
    if let Some(place) = bytes.get_mut(LEN - 8..LEN) {
        place.copy_from_slice(&sent_ns.to_le_bytes());
    }
}

/// A connected datagram socket; only its peer's datagrams come. The descriptor is the caller's.
#[derive(Debug)]
pub struct Datagrams {
    /// The socket.
    pub descriptor: c_int,
}

/// A stream socket, in messages of as many bytes as the buffer has. The descriptor is the caller's.
#[derive(Debug)]
pub struct Messages {
    /// The socket.
    pub descriptor: c_int,
}

/// A stream socket, in pieces as they come. The descriptor is the caller's.
#[derive(Debug)]
pub struct Pieces {
    /// The socket.
    pub descriptor: c_int,
}

/// A datagram socket that anybody may send to; each answer goes to who sent last. The descriptor
/// is the caller's.
#[derive(Debug)]
pub struct UnconnectedUdp {
    descriptor: c_int,
    from: libc::sockaddr_storage,
    from_len: libc::socklen_t,
}

impl UnconnectedUdp {
    /// Of that socket.
    #[must_use]
    pub fn new(descriptor: c_int) -> Self {
        // SAFETY: an address consists of integers only, for which all bits zero is a value.
        let from = unsafe { core::mem::zeroed() };
        Self { descriptor, from, from_len: 0 }
    }
}

fn errno() -> c_int {
    // SAFETY: takes nothing and always returns.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the place is this thread's own, as long as the thread lives.
    unsafe { *place }
}

#[inline(always)]
fn receive(descriptor: c_int, into: &mut [u8], flags: c_int) -> Result<usize, c_int> {
    let (at, length) = (into.as_mut_ptr().cast::<c_void>(), into.len());
    // SAFETY: writes at most `length` bytes to the slice; an invalid descriptor is an error.
    let got = unsafe { libc::recv(descriptor, at, length, flags) };
    usize::try_from(got).map_err(|_| errno())
}

/// All of it: a stream takes it in parts where a signal comes between.
#[inline(always)]
fn send(descriptor: c_int, bytes: &[u8]) -> Result<(), c_int> {
    let mut sent = 0;
    while sent < bytes.len() {
        let rest = &bytes[sent..];
        let (at, length) = (rest.as_ptr().cast::<c_void>(), rest.len());
        // SAFETY: reads at most `length` bytes of the slice.
        let took = unsafe { libc::send(descriptor, at, length, libc::MSG_NOSIGNAL) };
        sent += usize::try_from(took).map_err(|_| errno())?;
    }
    Ok(())
}

/// Whether a datagram socket has a trouble that passes: routes and devices come back.
const fn passes(errno: c_int) -> bool {
    use libc::{
        EAGAIN, EHOSTDOWN, EHOSTUNREACH, EINTR, EMSGSIZE, ENETDOWN, ENETUNREACH, ENOBUFS, ENOMEM,
        ENOPROTOOPT, EPERM, EPROTO,
    };
    matches!(
        errno,
        EAGAIN
            | EHOSTDOWN
            | EHOSTUNREACH
            | EINTR
            | EMSGSIZE
            | ENETDOWN
            | ENETUNREACH
            | ENOBUFS
            | ENOMEM
            | ENOPROTOOPT
            | EPERM
            | EPROTO
    )
}

impl EchoIo for Datagrams {
    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, c_int> {
        receive(self.descriptor, into, libc::MSG_TRUNC)
    }

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<(), c_int> {
        send(self.descriptor, bytes)
    }

    fn is_over(errno: c_int) -> bool {
        !passes(errno)
    }
}

impl EchoIo for Messages {
    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, c_int> {
        match receive(self.descriptor, into, libc::MSG_WAITALL)? {
            length if length == into.len() => Ok(length),
            // The end, or a signal, in the middle of a message: where the next begins is lost.
            _ => Err(libc::ECONNRESET),
        }
    }

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<(), c_int> {
        send(self.descriptor, bytes)
    }

    fn is_over(errno: c_int) -> bool {
        errno != libc::EINTR
    }
}

impl EchoIo for Pieces {
    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, c_int> {
        match receive(self.descriptor, into, 0)? {
            0 => Err(libc::ECONNRESET),
            length => Ok(length),
        }
    }

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<(), c_int> {
        send(self.descriptor, bytes)
    }

    fn is_over(errno: c_int) -> bool {
        errno != libc::EINTR
    }
}

impl EchoIo for UnconnectedUdp {
    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, c_int> {
        let (at, length) = (into.as_mut_ptr().cast::<c_void>(), into.len());
        let from = (&raw mut self.from).cast::<libc::sockaddr>();
        self.from_len = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        let from_len = &raw mut self.from_len;
        // SAFETY: writes at most `length` bytes to the slice, and an address of at most the length
        // that is given to a place that is as large.
        let got =
            unsafe { libc::recvfrom(self.descriptor, at, length, libc::MSG_TRUNC, from, from_len) };
        usize::try_from(got).map_err(|_| errno())
    }

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<(), c_int> {
        let (at, length) = (bytes.as_ptr().cast::<c_void>(), bytes.len());
        let to = (&raw const self.from).cast::<libc::sockaddr>();
        // SAFETY: reads the slice and an address of the length that the kernel gave it.
        let took = unsafe {
            libc::sendto(self.descriptor, at, length, libc::MSG_NOSIGNAL, to, self.from_len)
        };
        usize::try_from(took).map(|_| ()).map_err(|_| errno())
    }

    fn is_over(errno: c_int) -> bool {
        // What one peer's machine says is nothing to the others.
        !passes(errno) && errno != libc::ECONNREFUSED && errno != libc::EINVAL
    }
}

#[cfg(test)]
mod tests;

//! Ways to wait for a packet, and the room it is read into.

use core::ffi::c_int;

use super::{Stamps, stamps};

/// How a thread waits for a packet.
pub trait Await {
    /// For `recvmsg`.
    const FLAGS: c_int;

    /// Waits until there is a packet, unless `recvmsg` does that.
    ///
    /// # Errors
    /// The `errno` of the system call; `EINTR` when a signal ended the wait.
    fn ready(&mut self, socket: c_int) -> Result<(), c_int>;
}

/// `recvmsg` blocks. Busy polling is this too, with an option of the socket.
#[derive(Debug)]
pub struct Block;

impl Await for Block {
    const FLAGS: c_int = 0;

    #[inline(always)]
    fn ready(&mut self, _: c_int) -> Result<(), c_int> {
        Ok(())
    }
}

/// `ppoll` before each packet.
#[derive(Debug)]
pub struct Ppoll;

impl Await for Ppoll {
    const FLAGS: c_int = libc::MSG_DONTWAIT;

    #[inline(always)]
    fn ready(&mut self, socket: c_int) -> Result<(), c_int> {
        let mut wanted = libc::pollfd { fd: socket, events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd, live as long as the call; no timeout and no mask are allowed.
        let got = unsafe { libc::ppoll(&raw mut wanted, 1, core::ptr::null(), core::ptr::null()) };
        if got < 0 { Err(errno()) } else { Ok(()) }
    }
}

/// `epoll_wait` before each packet, on this epoll descriptor, which watches the socket alone and is
/// kept open by the caller.
#[derive(Debug)]
pub struct Epoll(pub c_int);

impl Await for Epoll {
    const FLAGS: c_int = libc::MSG_DONTWAIT;

    #[inline(always)]
    fn ready(&mut self, _: c_int) -> Result<(), c_int> {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: room for one event, live as long as the call.
        let got = unsafe { libc::epoll_wait(self.0, &raw mut event, 1, -1) };
        if got < 0 { Err(errno()) } else { Ok(()) }
    }
}

/// Never sleeps: `recvmsg` again and again.
#[derive(Debug)]
pub struct SpinReceive;

impl Await for SpinReceive {
    const FLAGS: c_int = libc::MSG_DONTWAIT;

    #[inline(always)]
    fn ready(&mut self, _: c_int) -> Result<(), c_int> {
        Ok(())
    }
}

/// Room for the control messages of one packet: stamps, drops, and whatever else was asked for.
const CONTROL_WORDS: usize = 32;

/// A socket and the room its packets are read into, all of it touched.
#[derive(Debug)]
pub struct Inlet<W> {
    wait: W,
    socket: c_int,
    bytes: Box<[u8]>,
    control: Box<[u64; CONTROL_WORDS]>,
}

impl<W: Await> Inlet<W> {
    /// `socket` stays the caller's and must outlive this; of longer packets than `room` bytes the
    /// rest is not read.
    #[must_use]
    pub fn new(wait: W, socket: c_int, room: usize) -> Self {
        // What the compiler does not know to be zero forces the pages in.
        let touched = core::hint::black_box(0xff);
        let bytes = vec![touched; room].into_boxed_slice();
        Self { wait, socket, bytes, control: Box::new([0; CONTROL_WORDS]) }
    }

    /// Waits for a packet; how many bytes of it were read, and of its control messages.
    #[inline(always)]
    pub(super) fn receive(&mut self) -> Result<(usize, usize), c_int> {
        self.wait.ready(self.socket)?;
        let mut part =
            libc::iovec { iov_base: self.bytes.as_mut_ptr().cast(), iov_len: self.bytes.len() };
        // SAFETY: a msghdr of zeros is a valid value: no name, no parts, no control messages.
        let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = self.control.as_mut_ptr().cast();
        message.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
        // SAFETY: both buffers are this one's own, writable and as long as the message says.
        let got = unsafe { libc::recvmsg(self.socket, &raw mut message, W::FLAGS) };
        match usize::try_from(got) {
            Ok(got) => Ok((got, message.msg_controllen as usize)),
            Err(_) => Err(errno()),
        }
    }

    /// The first bytes of the last packet.
    #[inline(always)]
    pub(super) fn bytes(&self, length: usize) -> &[u8] {
        self.bytes.get(..length).unwrap_or_default()
    }

    /// What the control messages of the last packet say; `length` bytes of them were written.
    #[inline(always)]
    pub(super) fn stamps(&self, length: usize) -> Stamps {
        let all = self.control.as_ptr().cast::<u8>();
        let length = length.min(size_of::<[u64; CONTROL_WORDS]>());
        // SAFETY: words without padding are readable as bytes, and `length` is not beyond them.
        stamps(unsafe { core::slice::from_raw_parts(all, length) })
    }
}

#[cold]
pub(super) fn errno() -> c_int {
    // SAFETY: has no preconditions; the address is this thread's errno.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: this thread's errno is always valid to read.
    unsafe { *place }
}

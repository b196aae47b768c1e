//! A ZeroMQ socket: requests and answers over whatever it is connected to.
//!
//! Nothing is linked: the creator of a port passes the functions of the library it has loaded. Per
//! message the library does what its own perf tools let it do, with the same message kept and sent
//! again. We allocate nothing; the library itself does for messages of more than 33 bytes, and for
//! every 256 parts in one of its queues.

use core::ffi::{c_int, c_void};

use crate::exchange::Port;

/// A message of the library, as large as it says (`zmq_msg_t`).
#[repr(C, align(8))]
#[derive(Debug)]
pub struct ZmqMessage([u8; 64]);

impl ZmqMessage {
    /// Memory for one, not yet initialised by the library.
    #[must_use]
    pub const fn uninitialised() -> Self {
        Self([0; 64])
    }
}

/// The functions of libzmq that a port calls, by the names they have there.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "zmq.h documents the functions of these names")]
pub struct Functions {
    pub zmq_msg_init: unsafe extern "C" fn(*mut ZmqMessage) -> c_int,
    pub zmq_msg_init_size: unsafe extern "C" fn(*mut ZmqMessage, usize) -> c_int,
    pub zmq_msg_send: unsafe extern "C" fn(*mut ZmqMessage, *mut c_void, c_int) -> c_int,
    pub zmq_msg_recv: unsafe extern "C" fn(*mut ZmqMessage, *mut c_void, c_int) -> c_int,
    pub zmq_msg_close: unsafe extern "C" fn(*mut ZmqMessage) -> c_int,
    pub zmq_msg_data: unsafe extern "C" fn(*mut ZmqMessage) -> *mut c_void,
    pub zmq_msg_more: unsafe extern "C" fn(*const ZmqMessage) -> c_int,
}

/// `ZMQ_SNDMORE`: another part of the same message follows.
const MORE: c_int = 2;
/// `EFSM`: not this socket's turn. libzmq numbers its own errors from `ZMQ_HAUSNUMERO`.
const NOT_ITS_TURN: c_int = 156_384_712 + 51;
/// `ETERM`: the socket's context was ended.
const TERMINATED: c_int = 156_384_712 + 53;

/// A ZeroMQ socket as a port.
#[derive(Debug)]
pub struct Zmq<const REQUEST: bool> {
    functions: Functions,
    socket: *mut c_void,
    size: usize,
    /// Whether `body` holds `size` bytes that can be sent.
    is_filled: bool,
    // Boxed: a message that the library has initialised stays where it is.
    body: Box<ZmqMessage>,
    empty: Box<ZmqMessage>,
}

/// The end that asks: a DEALER socket that talks as REQ does, an empty part before each message,
/// but may ask again while an answer is still owed. A REQ socket could not continue after a loss.
pub type Request = Zmq<true>;
/// The end that answers: a REP socket.
pub type ZmqReply = Zmq<false>;

impl<const REQUEST: bool> Zmq<REQUEST> {
    /// A port of messages of `size` bytes (at least 1) over `socket`.
    ///
    /// # Safety
    /// `functions` must be those of one libzmq that stays loaded, `socket` a DEALER (for
    /// [`Request`]) or REP socket (for [`ZmqReply`]) of it, blocking, used by this thread alone,
    /// and open until the port is dropped.
    ///
    /// # Errors
    /// `ENOMEM` where the library has no memory for a message of this size.
    pub unsafe fn new(
        functions: Functions,
        socket: *mut c_void,
        size: usize,
    ) -> Result<Self, c_int> {
        let mut port = Self {
            functions,
            socket,
            size: size.max(1),
            is_filled: false,
            body: Box::new(ZmqMessage::uninitialised()),
            empty: Box::new(ZmqMessage::uninitialised()),
        };
        for message in [&mut port.body, &mut port.empty] {
            // SAFETY: writes an empty message into memory of its size.
            unsafe { (functions.zmq_msg_init)(&raw mut **message) };
        }
        port.fill()?;
        Ok(port)
    }

    /// Makes the body one of `size` zeros: at the start, and after an answer was given up.
    #[cold]
    fn fill(&mut self) -> Result<(), c_int> {
        let body = &raw mut *self.body;
        // SAFETY: the message is initialised; that of an empty one frees nothing.
        unsafe { (self.functions.zmq_msg_close)(body) };
        // SAFETY: closed just now, so it may be initialised again.
        let failed = unsafe { (self.functions.zmq_msg_init_size)(body, self.size) };
        if failed != 0 {
            // SAFETY: as above; leaves it initialised, whatever happened.
            unsafe { (self.functions.zmq_msg_init)(body) };
            return Err(libc::ENOMEM);
        }
        // SAFETY: the message is initialised.
        let data = unsafe { (self.functions.zmq_msg_data)(body) };
        // SAFETY: a message of `size` bytes has so many that may be written.
        unsafe { data.cast::<u8>().write_bytes(0, self.size) };
        self.is_filled = true;
        Ok(())
    }

    /// Receives one part, and says how long it is and whether another one follows.
    #[inline(always)]
    fn part(&mut self, is_body: bool) -> Result<(usize, bool), c_int> {
        let message: *mut ZmqMessage =
            if is_body { &raw mut *self.body } else { &raw mut *self.empty };
        // SAFETY: the message is initialised and the socket open.
        let got = unsafe { (self.functions.zmq_msg_recv)(message, self.socket, 0) };
        if got < 0 {
            return Err(errno());
        }
        // SAFETY: the message is initialised.
        let more = unsafe { (self.functions.zmq_msg_more)(message) } != 0;
        Ok((got as usize, more))
    }

    /// The empty part before an answer.
    #[inline(always)]
    fn head(&mut self) -> Result<(), c_int> {
        match self.part(false)? {
            (0, true) => Ok(()),
            (_, more) => Err(self.refuse(more, libc::EBADMSG)),
        }
    }

    /// Reads the rest of a message that is not ours.
    #[cold]
    fn refuse(&mut self, mut more: bool, errno: c_int) -> c_int {
        self.is_filled = false;
        let empty = &raw mut *self.empty;
        // SAFETY: the message is initialised.
        unsafe { (self.functions.zmq_msg_close)(empty) };
        // SAFETY: closed just now, so it may be initialised again.
        unsafe { (self.functions.zmq_msg_init)(empty) };
        while more {
            match self.part(true) {
                Ok((_, another)) => more = another,
                Err(errno) => return errno,
            }
        }
        errno
    }
}

impl<const REQUEST: bool> Port for Zmq<REQUEST> {
    #[inline(always)]
    fn send(&mut self, number: u8) -> Result<(), c_int> {
        if !self.is_filled {
            self.fill()?;
        }
        let body = &raw mut *self.body;
        // SAFETY: the message is initialised.
        let data = unsafe { (self.functions.zmq_msg_data)(body) };
        // SAFETY: the message is ours and has at least one byte.
        unsafe { data.cast::<u8>().write(number) };
        if REQUEST {
            let empty = &raw mut *self.empty;
            // SAFETY: the message is initialised, and empty since it was last sent or received.
            if unsafe { (self.functions.zmq_msg_send)(empty, self.socket, MORE) } < 0 {
                return Err(errno());
            }
        }
        // SAFETY: the message is initialised and the socket open.
        if unsafe { (self.functions.zmq_msg_send)(body, self.socket, 0) } < 0 {
            return Err(errno());
        }
        self.is_filled = false;
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, c_int> {
        if REQUEST {
            self.head()?;
        }
        let (got, more) = self.part(true)?;
        if got != self.size || more {
            let is_long = got > self.size || more;
            return Err(self.refuse(more, if is_long { libc::EMSGSIZE } else { libc::EBADMSG }));
        }
        self.is_filled = true;
        // SAFETY: the message is initialised.
        let data = unsafe { (self.functions.zmq_msg_data)(&raw mut *self.body) };
        // SAFETY: it has `size` bytes, of which there is at least one.
        Ok(unsafe { data.cast::<u8>().read() })
    }
}

impl<const REQUEST: bool> Drop for Zmq<REQUEST> {
    fn drop(&mut self) {
        for message in [&mut self.body, &mut self.empty] {
            // SAFETY: the message is initialised, and not used any more.
            unsafe { (self.functions.zmq_msg_close)(&raw mut **message) };
        }
    }
}

/// The library's error, in the system's numbers.
#[cold]
fn errno() -> c_int {
    // SAFETY: has no preconditions; the address is this thread's errno.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: this thread's errno is always valid to read.
    match unsafe { *place } {
        NOT_ITS_TURN => libc::EPROTO,
        TERMINATED => libc::ECONNRESET,
        errno => errno,
    }
}

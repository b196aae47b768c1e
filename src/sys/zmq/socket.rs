//! A socket: made, set, bound or connected, and used without waiting; or as a port.

use std::{
    ffi::{CString, c_int, c_void},
    io,
    os::fd::{BorrowedFd, IntoRawFd, OwnedFd, RawFd},
    ptr::NonNull,
    sync::Arc,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tardy_hot::ports::zmq::Zmq;

use super::{Context, ZmqError, failed};

/// `ZMQ_DONTWAIT`.
const NO_WAIT: c_int = 1;
/// `ZMQ_SNDMORE`.
const MORE: c_int = 2;
/// The descriptor that becomes readable when there is something to do.
const FD: c_int = 14;
/// What can be done without waiting; reading it does all that threads of the library ask for.
const EVENTS: c_int = 15;
const RECEIVE_MORE: c_int = 13;
const LAST_ENDPOINT: c_int = 32;
const SUBSCRIBE: c_int = 6;
const IPC_FILTER_UID: c_int = 59;
const USE_FD: c_int = 89;
const HANDSHAKE_SUCCEEDED: c_int = 0x1000;

/// What a socket does with messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum ZmqSocketKind {
    /// Half of a pair; here, of a monitor.
    Pair = 0,
    /// Receives what it subscribed to.
    Sub = 2,
    /// Answers.
    Rep = 4,
    /// Asks, and may ask again before there is an answer.
    Dealer = 5,
    /// Answers, and knows who asked.
    Router = 6,
    /// Sends to all subscribers, and receives their subscriptions.
    XPub = 9,
}

/// Options with a number for a value, as `zmq.h` numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Number {
    /// Kilobits per second that multicast may send.
    RateKbit = 8,
    /// How long lost multicast can be asked for again, ms.
    RecoveryMs = 9,
    /// How long closing waits for what is unsent, ms; 0 drops it.
    LingerMs = 17,
    /// Time until a broken connection is tried again, ms.
    ReconnectMs = 18,
    /// Connections that wait to be accepted.
    Backlog = 19,
    /// Messages that may wait unsent.
    SendHigh = 23,
    /// Messages that may wait unread.
    ReceiveHigh = 24,
    /// The time after which a receive gives up, ms; -1 for never.
    ReceiveMs = 27,
    /// 1: of a router, what cannot be sent is an error instead of dropped.
    RouterMandatory = 33,
    /// 1: messages go only to those whose connection stands.
    Immediate = 39,
    /// 1: addresses may be of IPv6.
    Ipv6 = 42,
    /// The time after which a connection without a handshake is closed, ms.
    HandshakeMs = 66,
}

/// Bytes of a part above which its connection is closed; the one option with 64 bits.
const MAX_MESSAGE: c_int = 22;

/// A socket; closed when it is dropped, and what it has not sent by then is dropped too.
#[derive(Debug)]
pub struct ZmqSocket {
    // Before the context, so that it is closed before that is ended.
    raw: NonNull<c_void>,
    context: Arc<Context>,
}

// SAFETY: a socket may go from thread to thread as a whole, by a full fence; it is not Sync.
unsafe impl Send for ZmqSocket {}

impl ZmqSocket {
    /// A socket of `kind`.
    ///
    /// # Errors
    /// `EMFILE` where there are as many sockets or descriptors as there may be.
    pub fn new(context: &Arc<Context>, kind: ZmqSocketKind) -> Result<Self, ZmqError> {
        let library = context.library;
        // SAFETY: the context lives as long as `context`.
        let raw = unsafe { (library.api.zmq_socket)(context.raw.as_ptr(), kind as c_int) };
        let raw = NonNull::new(raw)
            .ok_or_else(|| failed(library, format!("cannot make a ZeroMQ {kind:?} socket")))?;
        let socket = Self { raw, context: Arc::clone(context) };
        socket.set(Number::LingerMs, 0)?;
        Ok(socket)
    }

    fn error(&self, what: String) -> ZmqError {
        failed(self.context.library, what)
    }

    /// Sets a number.
    ///
    /// # Errors
    /// `EINVAL` for a value that the option cannot have.
    pub fn set(&self, option: Number, value: i32) -> Result<(), ZmqError> {
        self.set_bytes(option as c_int, &value.to_ne_bytes())
    }

    /// Closes connections that send a part of more than `bytes` bytes.
    ///
    /// # Errors
    /// What the library says; nothing is known to happen.
    pub fn set_longest(&self, bytes: u64) -> Result<(), ZmqError> {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.set_bytes(MAX_MESSAGE, &bytes.to_ne_bytes())
    }

    /// Wants every message; for [`ZmqSocketKind::Sub`].
    ///
    /// # Errors
    /// `EINVAL` for a socket of another kind.
    pub fn subscribe(&self) -> Result<(), ZmqError> {
        self.set_bytes(SUBSCRIBE, &[])
    }

    fn set_bytes(&self, option: c_int, value: &[u8]) -> Result<(), ZmqError> {
        let set = self.context.library.api.zmq_setsockopt;
        // SAFETY: the socket is open, and the value as long as it says.
        match unsafe { set(self.raw.as_ptr(), option, value.as_ptr().cast(), value.len()) } {
            0 => Ok(()),
            _ => Err(self.error(format!("cannot set option {option} of a ZeroMQ socket"))),
        }
    }

    /// Binds to `endpoint` (`tcp://127.0.0.1:5555`, `epgm://...`).
    ///
    /// # Errors
    /// `EADDRINUSE`, `EADDRNOTAVAIL`, `EINVAL`, as of the endpoint.
    pub fn bind(&self, endpoint: &str) -> Result<(), ZmqError> {
        self.at(self.context.library.api.zmq_bind, "bind to", endpoint)
    }

    /// Binds to what `listener` listens to already, which `endpoint` names, and takes it over.
    /// Those of other users may not connect where the listener is a Unix socket.
    ///
    /// # Errors
    /// As [`ZmqSocket::bind`].
    pub fn bind_to(&self, listener: OwnedFd, endpoint: &str) -> Result<(), ZmqError> {
        // The library closes it, with the socket.
        let descriptor: RawFd = listener.into_raw_fd();
        self.set_bytes(USE_FD, &descriptor.to_ne_bytes())?;
        if endpoint.starts_with("ipc:") {
            let user = rustix::process::geteuid().as_raw();
            self.set_bytes(IPC_FILTER_UID, &user.to_ne_bytes())?;
        }
        self.bind(endpoint)
    }

    /// Connects to `endpoint`, now or as soon as a peer listens there.
    ///
    /// # Errors
    /// `EINVAL` for an invalid endpoint.
    pub fn connect(&self, endpoint: &str) -> Result<(), ZmqError> {
        self.at(self.context.library.api.zmq_connect, "connect to", endpoint)
    }

    fn at(
        &self,
        call: unsafe extern "C" fn(*mut c_void, *const std::ffi::c_char) -> c_int,
        verb: &str,
        endpoint: &str,
    ) -> Result<(), ZmqError> {
        let place = CString::new(endpoint).map_err(|_| ZmqError::Call {
            what: format!("cannot {verb} {endpoint:?}"),
            source: io::ErrorKind::InvalidInput.into(),
        })?;
        // SAFETY: the socket is open, the string ends in zero.
        match unsafe { call(self.raw.as_ptr(), place.as_ptr()) } {
            0 => Ok(()),
            _ => Err(self.error(format!("cannot {verb} {endpoint}"))),
        }
    }

    /// Where it was last bound, a port chosen by the kernel filled in.
    ///
    /// # Errors
    /// What the library says; nothing is known to happen.
    pub fn endpoint(&self) -> Result<String, ZmqError> {
        let mut text = [0_u8; 512];
        let got = self.get(LAST_ENDPOINT, &mut text)?;
        Ok(String::from_utf8_lossy(&text[..got]).trim_end_matches('\0').to_owned())
    }

    fn get(&self, option: c_int, into: &mut [u8]) -> Result<usize, ZmqError> {
        let mut length = into.len();
        let (get, into) = (self.context.library.api.zmq_getsockopt, into.as_mut_ptr());
        // SAFETY: the socket is open, and `length` bytes may be written.
        match unsafe { get(self.raw.as_ptr(), option, into.cast(), &raw mut length) } {
            0 => Ok(length),
            _ => Err(self.error(format!("cannot read option {option} of a ZeroMQ socket"))),
        }
    }

    /// Sends a message of one part; without waiting where `waits` is not set.
    ///
    /// # Errors
    /// The `errno` of the library: `EAGAIN` where no peer takes it yet, or in time; `EINTR`.
    pub fn send(&self, message: &[u8], waits: bool) -> io::Result<()> {
        let flags = if waits { 0 } else { NO_WAIT };
        let send = self.context.library.api.zmq_send;
        // SAFETY: the socket is open, and the message as long as it says.
        let sent =
            unsafe { send(self.raw.as_ptr(), message.as_ptr().cast(), message.len(), flags) };
        if sent < 0 { Err(self.context.library.last_error()) } else { Ok(()) }
    }

    /// Begins a message of a router to `peer`, whose parts follow. Whether it will be sent: not to
    /// a peer that is gone, or that has not read as many messages as may wait.
    ///
    /// How many were read, the library knows from its thread for input and output, which it hears
    /// about once a millisecond while messages come without a break (`max_command_delay` in
    /// libzmq's `config.hpp`). A peer that asks faster would lose an answer, so it listens before
    /// it gives one up.
    ///
    /// # Errors
    /// As [`ZmqSocket::send`]; of a socket without [`Number::RouterMandatory`] none.
    pub fn begin_to(&self, peer: &[u8]) -> io::Result<bool> {
        for is_heard in [false, true] {
            match self.send_part(peer, true) {
                Ok(()) => return Ok(true),
                Err(error) if error.raw_os_error() == Some(libc::EHOSTUNREACH) => break,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Err(_) if is_heard => break,
                Err(_) => {
                    let _ = self.get(EVENTS, &mut [0; 4]);
                }
            }
        }
        Ok(false)
    }

    /// Sends one part of a message without waiting, and says whether another one follows.
    ///
    /// # Errors
    /// As [`ZmqSocket::send`].
    pub fn send_part(&self, part: &[u8], more: bool) -> io::Result<()> {
        let send = self.context.library.api.zmq_send;
        let flags = NO_WAIT | if more { MORE } else { 0 };
        // SAFETY: the socket is open, and the part as long as it says.
        let sent = unsafe { send(self.raw.as_ptr(), part.as_ptr().cast(), part.len(), flags) };
        if sent < 0 { Err(self.context.library.last_error()) } else { Ok(()) }
    }

    /// Receives one part, and returns its length, which may be more than `into` holds: the rest is
    /// lost then. Without waiting where `waits` is not set.
    ///
    /// # Errors
    /// The `errno` of the library: `EAGAIN` if no message has come yet, or in time; `EINTR`.
    pub fn receive(&self, into: &mut [u8], waits: bool) -> io::Result<usize> {
        let flags = if waits { 0 } else { NO_WAIT };
        let receive = self.context.library.api.zmq_recv;
        // SAFETY: the socket is open, and this number of bytes may be written.
        let got =
            unsafe { receive(self.raw.as_ptr(), into.as_mut_ptr().cast(), into.len(), flags) };
        usize::try_from(got).map_err(|_| self.context.library.last_error())
    }

    /// Whether another part of the message that was just received follows.
    ///
    /// # Errors
    /// What the library says; nothing is known to happen.
    pub fn has_more(&self) -> Result<bool, ZmqError> {
        let mut number = [0; 4];
        self.get(RECEIVE_MORE, &mut number)?;
        Ok(i32::from_ne_bytes(number) != 0)
    }

    /// The descriptor that becomes readable when a [`ZmqSocket::receive`] that said `EAGAIN` may
    /// say something else. Its state changes only by such calls: ask again after each wait.
    ///
    /// # Errors
    /// What the library says; nothing is known to happen.
    pub fn descriptor(&self) -> Result<BorrowedFd<'_>, ZmqError> {
        let mut number = [0; 4];
        self.get(FD, &mut number)?;
        // SAFETY: the descriptor is the socket's own and stays open as long as that.
        Ok(unsafe { BorrowedFd::borrow_raw(RawFd::from_ne_bytes(number)) })
    }

    /// Connects to `endpoint` and waits until the ZMTP handshake is done.
    ///
    /// # Errors
    /// It was not done within `patience`.
    pub fn connect_surely(&self, endpoint: &str, patience: Duration) -> Result<(), ZmqError> {
        // Unique in the context, which is what inproc names must be.
        let place = format!("inproc://monitor-{:p}", self.raw);
        let name = CString::new(place.clone()).unwrap_or_default();
        let monitor = self.context.library.api.zmq_socket_monitor;
        // SAFETY: the socket is open, the string ends in zero.
        if unsafe { monitor(self.raw.as_ptr(), name.as_ptr(), HANDSHAKE_SUCCEEDED) } != 0 {
            return Err(self.error("cannot watch a ZeroMQ socket".into()));
        }
        let events = Self::new(&self.context, ZmqSocketKind::Pair)?;
        events.set(Number::ReceiveMs, i32::try_from(patience.as_millis()).unwrap_or(i32::MAX))?;
        events.connect(&place)?;
        self.connect(endpoint)?;
        let came = events.receive(&mut [0; 16], true);
        // SAFETY: the socket is open; no place ends the watch.
        unsafe { monitor(self.raw.as_ptr(), std::ptr::null(), 0) };
        came.map(|_| ()).map_err(|source| {
            let source = match source.kind() {
                io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
                _ => source,
            };
            ZmqError::Call { what: format!("nothing that speaks ZeroMQ at {endpoint}"), source }
        })
    }

    /// It as a port of messages of `size` bytes; [`ZmqSocketKind::Dealer`] asks,
    /// [`ZmqSocketKind::Rep`] answers.
    ///
    /// # Errors
    /// No memory for a message is left.
    pub fn into_port<const REQUEST: bool>(
        self,
        size: usize,
    ) -> Result<SocketPort<REQUEST>, ZmqError> {
        let (functions, raw) = (self.context.library.functions(), self.raw.as_ptr());
        // SAFETY: the library stays loaded, and the socket open until the port is dropped: the
        // port lies before it in `SocketPort`. A socket of another kind only fails.
        let port = unsafe { Zmq::new(functions, raw, size) };
        let port = port.map_err(|errno| ZmqError::Call {
            what: format!("cannot make a ZeroMQ message of {size} bytes"),
            source: io::Error::from_raw_os_error(errno),
        })?;
        Ok(SocketPort { port, _socket: self })
    }
}

impl Drop for ZmqSocket {
    fn drop(&mut self) {
        // SAFETY: the socket is open, and not used any more.
        unsafe { (self.context.library.api.zmq_close)(self.raw.as_ptr()) };
    }
}

/// Waits until `descriptor` is readable, at most so long; without one, just so long.
///
/// # Errors
/// What the kernel says: `EINTR` for a signal.
pub(super) fn wait_readable(
    descriptor: Option<BorrowedFd<'_>>,
    at_most: Duration,
) -> io::Result<bool> {
    let timeout = Timespec::try_from(at_most).map_err(io::Error::other)?;
    let Some(descriptor) = &descriptor else {
        return Ok(poll(&mut [], Some(&timeout))? > 0);
    };
    let mut polled = [PollFd::new(descriptor, PollFlags::IN)];
    Ok(poll(&mut polled, Some(&timeout))? > 0)
}

/// A socket that is used as a port.
#[derive(Debug)]
pub struct SocketPort<const REQUEST: bool> {
    // Dropped before the socket.
    port: Zmq<REQUEST>,
    _socket: ZmqSocket,
}

impl<const REQUEST: bool> SocketPort<REQUEST> {
    /// The port.
    pub fn port(&mut self) -> &mut Zmq<REQUEST> {
        &mut self.port
    }
}

//! ZeroMQ: requests and answers between two ends here, or with programs other than tardy.
//!
//! The local endpoint listens, to a socket that is made with the pair, so that the remote endpoint
//! may connect before the local one is open. For `zmq-ipc` that is an abstract Unix socket: a name
//! that cannot be guessed, and no file that a killed tardy could leave behind.

mod answer;
pub mod publish;

use std::{
    collections::HashMap,
    io,
    net::{SocketAddr, TcpListener, ToSocketAddrs},
    os::{
        fd::OwnedFd,
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr as UnixAddr, UnixListener},
    },
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

pub use self::answer::{Answered, Answerer, ReplyLimits};
use super::{
    Transport,
    end::{Holds, Role, TransportEnd},
    port::OpenPort,
};
use crate::sys::zmq::{Context, Library, Number, ZmqError, ZmqSocket, ZmqSocketKind};

/// The time until a connection that failed is tried again, ms.
const RECONNECT_MS: i32 = 20;

/// Both ends of a way through `transport`, which is one of ZeroMQ. That there is a library is known
/// before anything is started.
pub(super) fn pair(transport: Transport) -> io::Result<(Holds, Holds)> {
    Library::get().map_err(io::Error::other)?;
    let (listener, endpoint) = match transport {
        Transport::ZmqTcp => listen_tcp()?,
        Transport::ZmqIpc => listen_ipc()?,
        _ => return Ok((inproc_end(0), inproc_end(1))),
    };
    let near = Holds { descriptors: vec![listener], text: Some(endpoint.clone()) };
    Ok((near, Holds { descriptors: Vec::new(), text: Some(endpoint) }))
}

fn listen_tcp() -> io::Result<(OwnedFd, String)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    // The library expects what it would have made itself.
    listener.set_nonblocking(true)?;
    let endpoint = format!("tcp://{}", listener.local_addr()?);
    Ok((listener.into(), endpoint))
}

fn listen_ipc() -> io::Result<(OwnedFd, String)> {
    let mut random = [0_u8; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let name = format!("tardy-{:032x}", u128::from_ne_bytes(random));
    let listener = UnixListener::bind_addr(&UnixAddr::from_abstract_name(&name)?)?;
    listener.set_nonblocking(true)?;
    Ok((listener.into(), format!("ipc://@{name}")))
}

/// The `n`-th end of the next pair within this process.
fn inproc_end(n: u64) -> Holds {
    static ENDS: AtomicU64 = AtomicU64::new(0);
    let number = ENDS.fetch_add(1, Ordering::Relaxed) - n;
    Holds { descriptors: Vec::new(), text: Some(format!("inproc://tardy-{number}")) }
}

/// Opens an end in the thread that will use it: the library's own threads inherit its terms.
pub(super) fn open(end: TransportEnd) -> io::Result<OpenPort> {
    let endpoint = end.text.ok_or(io::ErrorKind::InvalidInput)?;
    let mut descriptors = end.descriptors.into_iter();
    let listener = descriptors.next();
    let is_near = end.role == Role::Near;
    if is_near && end.transport != Transport::ZmqInproc && listener.is_none() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let context = match end.transport {
        Transport::ZmqInproc => shared_context(&endpoint),
        _ => Context::like_this_thread(true),
    };
    let opened = context.and_then(|context| match (is_near, listener) {
        (true, listener) => ask(&context, listener, &endpoint, end.size),
        (false, _) => answer_at(&context, &endpoint, end.size),
    });
    opened.map_err(io::Error::other)
}

fn ask(
    context: &Arc<Context>,
    listener: Option<OwnedFd>,
    endpoint: &str,
    size: usize,
) -> Result<OpenPort, ZmqError> {
    let socket = ZmqSocket::new(context, ZmqSocketKind::Dealer)?;
    match listener {
        Some(listener) => socket.bind_to(listener, endpoint)?,
        None => socket.bind(endpoint)?,
    }
    Ok(OpenPort::ZmqRequest(socket.into_port(size)?))
}

fn answer_at(context: &Arc<Context>, endpoint: &str, size: usize) -> Result<OpenPort, ZmqError> {
    let socket = ZmqSocket::new(context, ZmqSocketKind::Rep)?;
    socket.set(Number::ReconnectMs, RECONNECT_MS)?;
    socket.connect(endpoint)?;
    Ok(OpenPort::ZmqReply(socket.into_port(size)?))
}

/// The context that both ends of an inproc pair have in common: that of the end that opens first.
fn shared_context(endpoint: &str) -> Result<Arc<Context>, ZmqError> {
    static SHARED: Mutex<Option<HashMap<String, Weak<Context>>>> = Mutex::new(None);
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = shared.get_or_insert_default();
    if let Some(context) = known.remove(endpoint).and_then(|context| context.upgrade()) {
        return Ok(context);
    }
    let context = Context::like_this_thread(false)?;
    known.insert(endpoint.to_owned(), Arc::downgrade(&context));
    Ok(context)
}

/// An end that sends requests to `to` (`HOST:PORT`): a REP socket of any program that sends back
/// what it gets. Opened in the thread that will use it, as [`TransportEnd::open`].
///
/// # Errors
/// The library is absent; `to` is not an address; or the ZMTP handshake was not done within
/// `patience`.
pub fn ask_foreign(to: &str, size: usize, patience: Duration) -> Result<OpenPort, ZmqError> {
    let endpoint = format!("tcp://{}", resolve(to)?);
    let socket = ZmqSocket::new(&Context::like_this_thread(true)?, ZmqSocketKind::Dealer)?;
    socket.set(Number::Ipv6, 1)?;
    // Nothing is queued for a peer that went away.
    socket.set(Number::Immediate, 1)?;
    socket.set(Number::ReconnectMs, RECONNECT_MS)?;
    socket.connect_surely(&endpoint, patience)?;
    Ok(OpenPort::ZmqRequest(socket.into_port(size)?))
}

/// The first address that a name has; the library would try others only after a time-out.
fn resolve(to: &str) -> Result<SocketAddr, ZmqError> {
    let wrong = |source| ZmqError::Call { what: format!("{to} is not HOST:PORT"), source };
    let mut addresses = to.to_socket_addrs().map_err(wrong)?;
    addresses.next().ok_or_else(|| wrong(io::ErrorKind::AddrNotAvailable.into()))
}

#[cfg(test)]
mod tests;

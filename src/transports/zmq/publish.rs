//! Packet streams over ZeroMQ PUB/SUB: to connected subscribers, or to a multicast group by PGM.

use std::{os::fd::OwnedFd, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::sys::zmq::{
    Context, Library, Number, Published, ZmqError, ZmqSocket, ZmqSocketKind, await_subscribers,
};

/// What one end of a stream publishes and subscribes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// Address that this endpoint publishes at.
    pub publish: Option<String>,
    /// Subscribers to wait for before sending; PGM does not report them.
    pub subscribers: u32,
    /// Address that the other endpoint publishes at.
    pub subscribe: Option<String>,
    /// Queue length in packets, per connection and direction: one second of packets.
    pub waiting: u32,
    /// Rate limit of multicast, kbit/s.
    pub kbit_per_s: u32,
}

/// Time in which lost multicast packets can be requested again, ms; they stay in memory that long.
const RECOVERY_MS: i32 = 1_000;

/// Refuses what the library cannot do: it is not there, or was built without PGM.
///
/// # Errors
/// [`ZmqError::Absent`] or [`ZmqError::Without`].
pub fn check(wants_pgm: bool) -> Result<(), ZmqError> {
    let library = Library::get()?;
    if wants_pgm && !library.has_pgm() {
        return Err(ZmqError::Without { version: library.version(), what: "pgm" });
    }
    Ok(())
}

/// Opens an end for packets of `size` bytes, in the thread that will use it: the library's own
/// threads run as that one. Publishing over TCP it takes `listener` over, and waits for those who
/// subscribe.
///
/// # Errors
/// The library is absent, refuses a place, or no subscriber came.
pub fn open(places: &Places, listener: OwnedFd, size: usize) -> Result<Published, ZmqError> {
    let context = Context::like_this_thread(true)?;
    // A publisher waits for its subscribers, so each end must subscribe before it waits.
    let subscriber =
        places.subscribe.as_ref().map(|at| subscriber(&context, places, at)).transpose()?;
    let publisher = places.publish.as_ref().map(|at| publisher(&context, places, at, listener));
    Ok(Published::new(size, publisher.transpose()?, subscriber))
}

fn subscriber(context: &Arc<Context>, places: &Places, at: &str) -> Result<ZmqSocket, ZmqError> {
    let socket = ZmqSocket::new(context, ZmqSocketKind::Sub)?;
    limit(&socket, places)?;
    socket.subscribe()?;
    socket.connect(at)?;
    Ok(socket)
}

fn publisher(
    context: &Arc<Context>,
    places: &Places,
    at: &str,
    listener: OwnedFd,
) -> Result<ZmqSocket, ZmqError> {
    let socket = ZmqSocket::new(context, ZmqSocketKind::XPub)?;
    limit(&socket, places)?;
    if at.starts_with("tcp:") {
        socket.bind_to(listener, at)?;
    } else {
        socket.connect(at)?;
    }
    await_subscribers(&socket, places.subscribers)?;
    Ok(socket)
}

fn limit(socket: &ZmqSocket, places: &Places) -> Result<(), ZmqError> {
    let number = |value: u32| i32::try_from(value.max(1)).unwrap_or(i32::MAX);
    socket.set(Number::SendHigh, number(places.waiting))?;
    socket.set(Number::ReceiveHigh, number(places.waiting))?;
    socket.set(Number::RateKbit, number(places.kbit_per_s))?;
    socket.set(Number::RecoveryMs, RECOVERY_MS)?;
    socket.set(Number::ReconnectMs, super::RECONNECT_MS)
}

//! Two System V semaphores. They count messages.
//!
//! Such semaphores outlive every process, even one that is killed, unless their namespace ends. So
//! both ends move into a separate namespace, each with the thread that opens it. That takes
//! `CAP_SYS_ADMIN`; without it this transport is unavailable.

use std::io;

use super::{
    end::{Holds, Role, TransportEnd},
    port::OpenPort,
};
use crate::sys::semaphores;

pub(super) fn pair() -> io::Result<(Holds, Holds)> {
    let semaphores::Private { namespace, set } = semaphores::private(2)?;
    let holds = |descriptor| Holds { descriptors: vec![descriptor], text: Some(set.to_string()) };
    Ok((holds(namespace.try_clone()?), holds(namespace)))
}

pub(super) fn open(end: TransportEnd) -> io::Result<OpenPort> {
    let [namespace] = TransportEnd::exactly(end.descriptors)?;
    let set = end.text.and_then(|set| set.parse().ok()).ok_or(io::ErrorKind::InvalidInput)?;
    semaphores::enter(&namespace)?;
    let (sends, receives) = if end.role == Role::Near { (0, 1) } else { (1, 0) };
    Ok(OpenPort::semaphore(namespace, set, sends, receives))
}

//! Two POSIX message queues, one each way, without names.

use std::{fs, io};

use super::{
    end::{Holds, TransportEnd},
    port::OpenPort,
};
use crate::sys::mqueue::MessageQueue;

/// More than one only where answers were given up and still come; as many as every user may have.
const MESSAGES: usize = 8;

/// An error of the kind `FileTooLarge` where messages of that size are not allowed.
pub(super) fn pair(size: usize) -> io::Result<(Holds, Holds)> {
    let queue = || {
        MessageQueue::unnamed(MESSAGES, size).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => io::ErrorKind::FileTooLarge.into(),
            _ => error,
        })
    };
    let (there, back) = (queue()?, queue()?);
    Ok(([there.writes, back.reads].into(), [back.writes, there.reads].into()))
}

/// The longest message that is allowed, bytes.
pub(super) fn most() -> usize {
    let limit = fs::read_to_string("/proc/sys/fs/mqueue/msgsize_max");
    limit.ok().and_then(|limit| limit.trim().parse().ok()).unwrap_or(0)
}

pub(super) fn open(end: TransportEnd) -> io::Result<OpenPort> {
    let [sends, receives] = TransportEnd::exactly(end.descriptors)?;
    Ok(OpenPort::queue(sends, receives, end.size))
}

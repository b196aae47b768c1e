//! The system's ZeroMQ library, loaded when it is first needed.
//!
//! Loaded instead of linked, so that tardy runs without it, and talks with the libzmq that the
//! system's other programs use, OpenPGM included if the distribution built it in.

mod api;
mod context;
mod packets;
mod socket;

use std::io;

use thiserror::Error;

pub use self::{
    api::Library,
    context::Context,
    packets::{Published, await_subscribers},
    socket::{Number, SocketPort, ZmqSocket, ZmqSocketKind},
};

/// What ZeroMQ could not do.
#[derive(Debug, Error)]
pub enum ZmqError {
    /// The library is missing or invalid.
    #[error(
        "{NAME} cannot be loaded ({why}): zmq transports use the system's ZeroMQ library. Install \
         it (Debian: apt-get install libzmq5), or choose another --transport"
    )]
    Absent {
        /// What the loader says.
        why: String,
    },
    /// The library was built without something.
    #[error(
        "the system's {NAME} (version {version}) was built without {what}; use a build that has \
         it, or another --transport"
    )]
    Without {
        /// Its version.
        version: String,
        /// As `zmq_has` calls it.
        what: &'static str,
    },
    /// A call failed.
    #[error("{what}: {source}")]
    Call {
        /// What should have been done, with its object.
        what: String,
        /// What the library says.
        source: io::Error,
    },
}

/// The library by the name of its binary interface, as the loader finds it.
const NAME: &str = "libzmq.so.5";

/// What the library said to a call that just failed.
fn failed(library: &Library, what: String) -> ZmqError {
    ZmqError::Call { what, source: library.last_error() }
}

#[cfg(test)]
mod tests;

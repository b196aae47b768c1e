//! One end of a transport, not yet open: what each transport makes two of, and opens.

use std::{io, os::fd::OwnedFd};

use serde::{Deserialize, Serialize};

use super::Transport;

/// Which end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The one that measures.
    Near,
    /// The one that answers.
    Far,
}

/// One end: what another process must be given to open it.
#[derive(Debug)]
pub struct TransportEnd {
    /// Of which way.
    pub transport: Transport,
    /// Of the two.
    pub role: Role,
    /// Bytes of one message; 1 where the transport carries no bytes.
    pub size: usize,
    /// What it works with, in an order that only the transport knows.
    pub descriptors: Vec<OwnedFd>,
    /// What else it needs to know: a name, a number.
    pub text: Option<String>,
}

/// An [`TransportEnd`] without its descriptors, to be sent to another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndOrder {
    transport: Transport,
    role: Role,
    size: usize,
    text: Option<String>,
}

/// What an end holds besides what all ends hold.
#[derive(Debug, Default)]
pub(super) struct Holds {
    pub(super) descriptors: Vec<OwnedFd>,
    pub(super) text: Option<String>,
}

impl<const N: usize> From<[OwnedFd; N]> for Holds {
    fn from(descriptors: [OwnedFd; N]) -> Self {
        Self { descriptors: descriptors.into(), text: None }
    }
}

impl TransportEnd {
    /// An end that is a socket which is already connected to somebody: of [`Transport::Tcp`] or
    /// [`Transport::Udp`].
    #[must_use]
    pub fn of_socket(transport: Transport, socket: OwnedFd, size: usize) -> Self {
        let descriptors = vec![socket];
        Self { transport, role: Role::Near, size: size.max(1), descriptors, text: None }
    }

    /// What a process needs to build the same end again. The descriptors it must have by
    /// inheritance, in their order.
    #[must_use]
    pub fn order(&self) -> EndOrder {
        let Self { transport, role, size, ref text, .. } = *self;
        EndOrder { transport, role, size, text: text.clone() }
    }

    /// The end that an order stands for.
    #[must_use]
    pub fn from_order(order: EndOrder, descriptors: Vec<OwnedFd>) -> Self {
        let EndOrder { transport, role, size, text } = order;
        Self { transport, role, size, descriptors, text }
    }

    /// Its descriptors, if there are so many.
    pub(super) fn exactly<const N: usize>(descriptors: Vec<OwnedFd>) -> io::Result<[OwnedFd; N]> {
        descriptors.try_into().map_err(|_| io::ErrorKind::InvalidInput.into())
    }
}

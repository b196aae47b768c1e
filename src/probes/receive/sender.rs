//! The remote endpoint: it sends a packet at each time of a schedule, and receives none.

use std::{
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    os::fd::AsRawFd,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tardy_hot::{
    clock,
    receive::{ScheduledSender, Sent, Times},
    stop::Stop,
    wakeup::Ended,
};

use crate::{
    probes::{
        Schedule,
        far_end::{FarEndWork, Opened},
    },
    setup::threads::plain,
    transports::streams::held,
};

/// What is to be sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SenderOrder {
    /// Identifies its packets.
    pub session: u64,
    /// Bytes of a packet.
    pub size: usize,
    /// From each to the next, ns; more than 0.
    pub period_ns: i64,
    /// Where they are sent to.
    pub to: SocketAddrV4,
}

/// A sender, not yet open.
#[derive(Debug)]
pub struct PacketSender(SenderOrder);

impl PacketSender {
    /// Of this order.
    #[must_use]
    pub const fn new(order: SenderOrder) -> Self {
        Self(order)
    }
}

impl FarEndWork for PacketSender {
    fn open(self: Box<Self>) -> Result<Box<dyn Opened>, String> {
        let SenderOrder { session, size, period_ns, to } = self.0;
        let open = || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.connect(to)?;
            Ok(socket)
        };
        let socket = open().map_err(|error: std::io::Error| format!("{to}: {}", plain(&error)))?;
        // The first look at the clock maps its page, which locking memory does not.
        let _ = clock::now_ns();
        let sender = ScheduledSender::new(socket.as_raw_fd(), session, size);
        Ok(Box::new(OpenSender { socket, sender, period_ns, sent: Sent::default() }))
    }
}

struct OpenSender {
    socket: UdpSocket,
    sender: ScheduledSender,
    period_ns: i64,
    sent: Sent,
}

impl Opened for OpenSender {
    fn facts(&self) -> Value {
        json!({ "send": held(&self.socket).ok().map(|(_, send)| send) })
    }

    fn run(&mut self, schedule: Schedule, stop: &Stop) -> Ended {
        let Schedule { warmup_ns, start_ns, end_ns, .. } = schedule;
        let times = Times { first_ns: warmup_ns, period_ns: self.period_ns, start_ns, end_ns };
        self.sender.send_all(times, &mut self.sent, stop)
    }

    fn value(&self) -> Value {
        let Sent { sent, refused, latest_ns } = self.sent;
        json!({ "sent": sent, "refused": refused, "latest_ns": latest_ns })
    }
}

//! A stream to a tardy echo, which sends each packet back: whole round trips from the scheduled
//! time, and each way by itself as far as both clocks can be compared.

use std::{net::SocketAddr, os::fd::OwnedFd, sync::Arc};

use tardy_hot::stop::Stop;

use super::{
    BACK, Stream, StreamTransport, THERE,
    end::{self, SendPlan},
    flow::{self, Flow},
    near_end::StreamThread,
    one_way::{self, OneWay},
    supervisor::{Back, ReturnSender, StreamKeeper},
};
use crate::{
    probes::{ArmError, ArmOptions, Armed},
    run::{EndRecord, MessageRecord, SeriesHead, messages::ROUND_TRIP},
    setup::threads::describe,
    transports::{
        hello::{self, Ask, CarrierKind, Connected, EchoMode},
        streams,
    },
};

/// An echo, elsewhere.
#[derive(Clone)]
pub struct RemoteEcho {
    /// HOST:PORT.
    pub to: String,
    /// What both ends know.
    pub token: Vec<u8>,
}

impl std::fmt::Debug for RemoteEcho {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Echo").field("to", &self.to).finish_non_exhaustive()
    }
}

impl Stream {
    pub(super) fn echo_heads(&self) -> Vec<SeriesHead> {
        let cpu = self.near.cpu;
        let mut heads = flow::heads(ROUND_TRIP, Some(cpu)).to_vec();
        heads.extend(one_way::heads(THERE, BACK, cpu));
        heads
    }

    fn connect(&self, echo: &RemoteEcho) -> Result<Connected, ArmError> {
        let kind =
            if self.way == StreamTransport::Tcp { CarrierKind::Tcp } else { CarrierKind::Udp };
        let ask = Ask {
            mode: EchoMode::Stream,
            size: u32::try_from(self.size).unwrap_or(u32::MAX),
            rate: self.rate.per_s().ceil() as u64,
        };
        let refused = |error: hello::HelloError| ArmError::Transport(error.to_string());
        hello::connect(kind, &echo.to, &echo.token, ask).map_err(refused)
    }

    fn echo_record(&self, found: &Connected) -> std::io::Result<MessageRecord> {
        let (receive, send) = streams::held(&found.socket)?;
        let near = EndRecord {
            name: "near".into(),
            place: "process".into(),
            address: address_of(&found.socket),
            cpu: Some(self.near.cpu),
            policy: Some(describe(self.near.policy, self.near.priority)),
            wait: Some(self.waits.0.to_string()),
            receive_buffer_bytes: Some(receive as u64),
            send_buffer_bytes: Some(send as u64),
            version: None,
        };
        let far_end = EndRecord {
            name: "far".into(),
            place: "machine".into(),
            address: Some(found.address.clone()),
            receive_buffer_bytes: Some(found.buffers.0.into()),
            send_buffer_bytes: Some(found.buffers.1.into()),
            version: Some(found.version.clone()),
            ..EndRecord::default()
        };
        let (transport, size) = (self.way.as_str().into(), self.size as u64);
        Ok(MessageRecord {
            transport,
            size,
            ends: vec![near, far_end],
            flows: Vec::new(),
            clock: None,
        })
    }

    /// Arms the local endpoint; the other one is the echo's.
    pub(super) fn arm_with(
        &self,
        echo: &RemoteEcho,
        wants: &ArmOptions,
        stop: &Arc<Stop>,
    ) -> Result<Armed, ArmError> {
        let found = self.connect(echo)?;
        let record = streams::hold(&found.socket, self.second())
            .and_then(|()| self.echo_record(&found))
            .map_err(|error| self.refused(&error))?;
        let evidence = self.evidence(&found.socket);
        let (mut plan, _) = self.plans(found.session, None);
        plan.receives = true;
        let period_ns = end::period_ns(plan.per_1000_s);
        let (flow, taken) = Flow::new(ROUND_TRIP, self.late_over_ns, wants.ring_samples);
        let ways = OneWay::new(period_ns);
        let [first, pacing, transit] = flow.recorded(Some(self.near.cpu), taken);
        let mut armed = Armed::new(stop);
        let (near, seen) = StreamThread::new(plan, found.socket, self.near.clone(), None, stop);
        let near = near.spawn(&mut armed, first, seen)?;
        armed.recorded.extend([pacing, transit]);
        armed.recorded.extend(ways.recorded(one_way::heads(THERE, BACK, self.near.cpu)));
        armed.supervisor = Some(Box::new(StreamKeeper {
            per_1000_s: self.rate.per_1000_s,
            near,
            there: Vec::new(),
            back: Some(Back {
                flow,
                sending: SendPlan { phase_ns: 0, flow: 0 },
                sender: ReturnSender::Near,
                ways: Some(ways),
            }),
            record,
            evidence,
            schedule: None,
            ended: None,
            progress: (0, i64::MAX / 2),
        }));
        Ok(armed)
    }
}

fn address_of(socket: &OwnedFd) -> Option<String> {
    let address = rustix::net::getsockname(socket).ok()?;
    SocketAddr::try_from(address).ok().map(|address| address.to_string())
}

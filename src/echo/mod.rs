//! The remote endpoint of `pingpong` and `stream` on its own: `tardy echo`.
//!
//! Unknown clients can reach it, so everything is bounded: peers, memory, messages per second, the
//! time that a peer may be silent. It never sends a client more bytes than that client sent. It
//! stores nothing of a client before that proves that it knows the token (`admission`). An admitted
//! peer gets its own thread and connected socket (`peer_thread`): the kernel filters out other
//! senders, and the loop needs no lookup. Threads that together leave their CPU no rest become
//! ordinary tasks (`guard`). Once its sockets are open it drops its rights ([`rights`]).

mod admission;
mod fair_bucket;
mod guard;
mod server;
mod peer_thread;
mod rep;
mod sockets;

use std::{
    io,
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use serde::Serialize;
use thiserror::Error;

pub(crate) use self::peer_thread::{CALMED, DENIED};
use self::{guard::SleepGuard, rep::ReplyThread, server::EchoServer, sockets::Listeners};
use crate::{
    setup::memory::Locked,
    sys::{
        rights::{self, KeptRights},
        sched::{self, Policy},
        zmq::ZmqError,
    },
};

/// The default port.
pub(crate) const PORT: u16 = 7117;

/// How many peers are served at a time.
pub(crate) const PEERS: usize = 16;

/// How often it looks for peers that have gone, and whether it must end.
const LOOK: Duration = Duration::from_millis(50);

/// The time that it sleeps before it hears new clients again. There may always be some, and the
/// thread that hears them runs before those of its peers.
const BREATH: Duration = Duration::from_millis(1);

/// This program no longer ends a real-time thread that has not slept for this time.
pub(crate) const AWAKE_MAX: Duration = Duration::from_secs(10);

/// What an echo is to be.
#[derive(Debug, Clone)]
pub(crate) struct EchoOptions {
    /// Where it listens; port 0 for any that is free.
    pub listen: SocketAddr,
    /// Whether by UDP.
    pub udp: bool,
    /// Whether by TCP.
    pub tcp: bool,
    /// Whether by ZeroMQ, and by nothing else; only foreign peers can be.
    pub zmq: bool,
    /// What peers must know; empty only on loopback, or for foreign ones.
    pub token: Vec<u8>,
    /// Peers that are not tardy: whatever they send is returned, without a handshake.
    pub foreign: bool,
    /// Messages per second that are answered to one peer.
    pub rate_max: u64,
    /// Bytes of the largest message.
    pub size_max: u32,
    /// On what its threads run.
    pub terms: PeerTerms,
}

/// What the thread of a peer runs as.
#[derive(Debug, Clone)]
pub(crate) struct PeerTerms {
    /// Policy.
    pub policy: Policy,
    /// Real-time priority; 0 for `other`.
    pub priority: u32,
    /// CPUs, taken in turns; at least one.
    pub cpus: Vec<u32>,
}

/// Why an echo is missing.
#[derive(Debug, Error)]
pub(crate) enum EchoError {
    /// Another process uses that address.
    #[error(
        "--listen {at}: the address is in use ({kind}); another echo may run there already. End \
         it, or choose another port"
    )]
    InUse {
        /// Which.
        at: SocketAddr,
        /// `udp` or `tcp`.
        kind: &'static str,
    },
    /// This machine does not have the address, or privileges are missing.
    #[error(
        "--listen {at}: {why} ({kind}). It must be an address of this machine (`ip address` shows \
         them)"
    )]
    Bind {
        /// Which.
        at: SocketAddr,
        /// `udp` or `tcp`.
        kind: &'static str,
        /// What the kernel said.
        why: io::Error,
    },
    /// ZeroMQ is not installed, or the address is not available.
    #[error("--transport zmq-tcp at {at}: {why}")]
    Zmq {
        /// Where.
        at: SocketAddr,
        /// What the library said.
        why: ZmqError,
    },
    /// Rights could not be given up.
    #[error("cannot drop the privileges that an echo does not need: {0}. Run it as another user")]
    Rights(io::Error),
    /// The machine's trouble.
    #[error("the echo cannot continue: {0}")]
    Io(#[from] io::Error),
}

/// What an echo has done when it ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Summary {
    /// How long it listened, ns.
    pub duration_ns: u64,
    /// Peers that were served.
    pub peers: u64,
    /// Messages that were sent back.
    pub answered: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages dropped because they were more per second than agreed.
    pub over_rate: u64,
    /// Messages dropped because they were not as agreed.
    pub foreign: u64,
    /// What was said at the admission.
    pub admission: AdmissionSummary,
    /// The last peers, up to 64.
    pub last_peers: Vec<PeerSummary>,
}

/// What was said before peers were served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct AdmissionSummary {
    /// Hellos.
    pub hellos: u64,
    /// What was no message of the handshake.
    pub garbage: u64,
    /// Refused because the token was another.
    pub wrong_token: u64,
    /// Refused because of another version.
    pub other_version: u64,
    /// Refused because of a limit.
    pub refused: u64,
    /// Dropped unanswered, because too much was said.
    pub over_rate: u64,
}

/// One peer that was served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PeerSummary {
    /// `udp` or `tcp`.
    pub transport: &'static str,
    /// Its address; `None` if anybody may send.
    pub address: Option<SocketAddr>,
    /// `pingpong`, `stream`, `foreign`.
    pub mode: &'static str,
    /// Bytes of one message; `None` if any will do.
    pub size: Option<u32>,
    /// Messages that were sent back.
    pub answered: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Dropped: more per second than agreed.
    pub over_rate: u64,
    /// Dropped: not as agreed.
    pub foreign: u64,
    /// Calls that failed while the network was away.
    pub failed: u64,
    /// How its thread ran: `fifo 90 on CPUs 1`.
    pub ran: String,
    /// How it ended.
    pub ended: String,
}

/// An echo that listens.
#[derive(Debug)]
pub(crate) struct Echo {
    answering: Answering,
    kept: KeptRights,
    /// The priority of its peers' threads, and what the kernel said to their bound; `None` if they
    /// are ordinary tasks.
    real_time: Option<(u32, io::Result<()>)>,
    // Unlocked when all else is gone.
    _locked: Locked,
}

/// Who answers.
#[derive(Debug)]
enum Answering {
    /// A thread for each peer.
    Server(Box<EchoServer>, Listeners),
    /// One thread for all requests of ZeroMQ.
    ReplyThread(ReplyThread),
}

impl Echo {
    /// Takes the address, locks memory, bounds what a real-time thread may take without sleeping
    /// once (beyond that the kernel ends the program), and gives up root and all capabilities: for
    /// the whole process and permanently. To be called while there is one thread.
    ///
    /// # Errors
    /// The address is not available, or rights cannot be given up.
    pub(crate) fn open(plan: EchoOptions) -> Result<Self, EchoError> {
        let terms = &plan.terms;
        let bound = || sched::bound_real_time(AWAKE_MAX).map(drop);
        let real_time = terms.policy.is_real_time().then(|| (terms.priority, bound()));
        let sockets = (!plan.zmq).then(|| Listeners::open(&plan)).transpose()?;
        if let Some(sockets) = &sockets {
            sockets.hand_to_nobody();
        }
        let locked = Locked::before_arming();
        let kept = rights::give_up().map_err(EchoError::Rights)?;
        let answering = match sockets {
            Some(sockets) => Answering::Server(Box::new(EchoServer::new(plan)?), sockets),
            None => Answering::ReplyThread(ReplyThread::open(&plan)?),
        };
        Ok(Self { answering, kept, real_time, _locked: locked })
    }

    /// What it could not give up.
    #[must_use]
    pub(crate) const fn kept(&self) -> &KeptRights {
        &self.kept
    }

    /// Where it listens.
    #[must_use]
    pub(crate) const fn address(&self) -> SocketAddr {
        match &self.answering {
            Answering::Server(_, sockets) => sockets.address,
            Answering::ReplyThread(rep) => rep.address,
        }
    }

    /// Where this thread cannot be above those of its peers: what the kernel said to their bound.
    pub(crate) fn nothing_above(&self) -> Option<&io::Result<()>> {
        let (priority, bound) = self.real_time.as_ref()?;
        (*priority >= sched::HIGHEST).then_some(bound)
    }

    /// Puts this thread above those of its peers, which it must be able to end.
    fn rise(&self) {
        let Some((peers, _)) = self.real_time else { return };
        // Without the right to it peers have no real-time threads either.
        let _ = sched::set_this_thread(Policy::Fifo, (peers + 1).min(sched::HIGHEST));
    }

    /// Serves until `quit` says so.
    ///
    /// # Errors
    /// The kernel does not let it wait, or ZeroMQ fails.
    pub(crate) fn serve(self, quit: impl Fn() -> bool) -> Result<Summary, EchoError> {
        let start = Instant::now();
        self.rise();
        let mut summary = match self.answering {
            Answering::Server(mut server, sockets) => {
                server.open(&sockets)?;
                while !quit() {
                    let is_heard = sockets.wait(server.listens_by_udp(), server.pending(), LOOK)?;
                    server.poll(&sockets);
                    server.calm();
                    if is_heard {
                        thread::sleep(BREATH);
                    }
                }
                server.close()
            }
            Answering::ReplyThread(mut rep) => {
                let mut guard = SleepGuard::default();
                while !quit() && rep.goes_on() {
                    thread::sleep(LOOK);
                    rep.calm(&mut guard);
                }
                rep.finish()?
            }
        };
        summary.duration_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(summary)
    }
}

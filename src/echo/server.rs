//! The peers that are served, and the connections that await admission.

use std::{
    collections::VecDeque,
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

use tardy_hot::clock;

use super::{
    EchoOptions, PEERS, PeerSummary, Summary,
    admission::{Admission, EchoClient, HelloReply},
    fair_bucket::network,
    guard::SleepGuard,
    peer_thread::{PeerThread, Service, SessionLimits},
    sockets::{Listeners, buffers},
};
use crate::{
    setup::threads::ThreadConfig,
    transports::hello::{ANSWER_LEN, ASK_LEN, HelloMessage, MAGIC, Reason, Unread},
};

/// A peer that is silent for this time is gone.
const SILENCE: Duration = Duration::from_secs(30);

/// A peer that is silent for this time is replaced by a new one, if no place is free.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a connection may take to say what it wants.
const AT_THE_DOOR: Duration = Duration::from_secs(5);

/// Connections that have not said yet what they want; the oldest makes room for another.
const CALLERS: usize = 32;

/// Datagrams that the admission reads at once, so that a flood does not keep it from everything
/// else.
const HEARD: usize = 256;

/// Peers that are listed one by one at the end.
const PEERS_LISTED: usize = 64;

/// A connection that has not said yet what it wants.
struct PendingConnection {
    stream: TcpStream,
    address: SocketAddr,
    since: Instant,
    said: [u8; ASK_LEN],
    length: usize,
}

/// The oldest of the network that has most of them: one network cannot keep others out.
fn first_of_most(pending: &[PendingConnection]) -> usize {
    let networks: Vec<u128> = pending.iter().map(|one| network(one.address.ip())).collect();
    let times = |of: &u128| networks.iter().filter(|it| *it == of).count();
    let most = networks.iter().map(times).max().unwrap_or(0);
    networks.iter().position(|of| times(of) == most).unwrap_or(0)
}

/// What becomes of a pending connection.
enum Then {
    Stays,
    Goes,
    Enters(EchoClient),
}

/// The admission and all peers.
pub(super) struct EchoServer {
    plan: EchoOptions,
    admission: Admission,
    pending: Vec<PendingConnection>,
    peers: Vec<PeerThread>,
    started: usize,
    summary: Summary,
    last_peers: VecDeque<PeerSummary>,
    guard: SleepGuard,
}

impl std::fmt::Debug for EchoServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("peers", &self.peers.len()).finish_non_exhaustive()
    }
}

impl EchoServer {
    /// An empty one.
    ///
    /// # Errors
    /// The kernel has no random numbers.
    pub(super) fn new(plan: EchoOptions) -> io::Result<Self> {
        let (token, now_ns) = (plan.token.clone(), clock::now_ns());
        let admission = Admission::new(token, plan.rate_max, plan.size_max, now_ns)?;
        Ok(Self {
            plan,
            admission,
            pending: Vec::new(),
            peers: Vec::new(),
            started: 0,
            summary: Summary::default(),
            last_peers: VecDeque::new(),
            guard: SleepGuard::default(),
        })
    }

    /// Where datagrams of strangers are answered, begins to.
    ///
    /// # Errors
    /// No thread is left.
    pub(super) fn open(&mut self, sockets: &Listeners) -> io::Result<()> {
        if let Some(udp) = sockets.udp.as_ref().filter(|_| self.plan.foreign) {
            self.serve(Service::UnconnectedUdp(udp.try_clone()?))?;
        }
        Ok(())
    }

    /// Whether it is this thread that receives what comes by UDP.
    pub(super) fn listens_by_udp(&self) -> bool {
        !self.plan.foreign
    }

    /// The connections that are waited for.
    pub(super) fn pending(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.pending.iter().map(|pending| pending.stream.as_fd())
    }

    /// Hears all that was said, and lets those go who have gone.
    pub(super) fn poll(&mut self, sockets: &Listeners) {
        if let Some(udp) = sockets.udp.as_ref().filter(|_| self.listens_by_udp()) {
            self.hear_datagrams(udp, sockets);
        }
        if let Some(tcp) = &sockets.tcp {
            self.accept(tcp);
            self.hear_callers();
        }
        self.let_go();
    }

    /// Makes ordinary tasks of peers' threads that leave their CPU no rest.
    pub(super) fn calm(&mut self) {
        let threads: Vec<_> = self.peers.iter().filter_map(PeerThread::real_time).collect();
        let calmed = self.guard.calm(&threads);
        self.peers.iter_mut().for_each(|peer| peer.note_calmed(&calmed));
    }

    /// Ends all threads.
    pub(super) fn close(mut self) -> Summary {
        for peer in std::mem::take(&mut self.peers) {
            self.end(peer, None);
        }
        self.summary.admission = self.admission.said;
        self.summary.last_peers = self.last_peers.into();
        self.summary
    }

    fn hear_datagrams(&mut self, udp: &UdpSocket, sockets: &Listeners) {
        let mut bytes = [0; ASK_LEN + 1];
        for _ in 0..HEARD {
            let (length, from) = match udp.recv_from(&mut bytes) {
                Ok(heard) => heard,
                // Also an answer that could not be delivered.
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => continue,
            };
            if self.peers.iter().any(|peer| peer.is_at("udp", from)) {
                // Said again before its socket was there.
                continue;
            }
            let heard = bytes.get(..length).unwrap_or_default();
            let reply = match self.admission.receive(from, heard, clock::now_ns()) {
                HelloReply::LetIn(client) => self.let_in_by_udp(&client, from, sockets),
                reply => reply,
            };
            if let HelloReply::Say(message) = reply {
                // A peer that did not receive it repeats its request.
                let _ = udp.send_to(&message.write(), from);
            }
        }
    }

    fn let_in_by_udp(
        &mut self,
        client: &EchoClient,
        from: SocketAddr,
        sockets: &Listeners,
    ) -> HelloReply {
        if !self.has_place() {
            return self.admission.refuse(client.nonce, Reason::Full, PEERS as u64);
        }
        let others = self.peers.iter().filter_map(PeerThread::datagrams);
        let served = sockets.of_peer(from, &client.ask, others).and_then(|socket| {
            let welcome = self.admission.welcome(client, buffers(&socket));
            self.serve(Service::Udp(socket, client.clone(), welcome))
        });
        match served {
            Ok(()) => HelloReply::Silence,
            Err(_) => self.admission.refuse(client.nonce, Reason::Trouble, 0),
        }
    }

    fn accept(&mut self, tcp: &TcpListener) {
        // No more than have a place: those that are there are heard before others come.
        for _ in 0..CALLERS {
            let Ok((stream, address)) = tcp.accept() else { return };
            if stream.set_nodelay(true).is_err() {
                continue;
            }
            if self.plan.foreign {
                if self.has_place() && stream.set_nonblocking(false).is_ok() {
                    // Where no thread is left the connection closes.
                    let _ = self.serve(Service::Pieces(stream));
                }
                continue;
            }
            if stream.set_nonblocking(true).is_ok() {
                if self.pending.len() >= CALLERS {
                    self.pending.remove(first_of_most(&self.pending));
                }
                self.pending.push(PendingConnection::new(stream, address));
            }
        }
    }

    fn hear_callers(&mut self) {
        for mut pending in std::mem::take(&mut self.pending) {
            match pending.receive(&mut self.admission) {
                Then::Stays => self.pending.push(pending),
                Then::Goes => {}
                Then::Enters(client) => self.let_in_by_tcp(pending.stream, client),
            }
        }
    }

    fn let_in_by_tcp(&mut self, mut stream: TcpStream, client: EchoClient) {
        let nonce = client.nonce;
        let reply = if !self.has_place() {
            self.admission.refuse(nonce, Reason::Full, PEERS as u64)
        } else if stream.set_nonblocking(false).is_err() {
            self.admission.refuse(nonce, Reason::Trouble, 0)
        } else {
            let welcome = self.admission.welcome(&client, buffers(&stream));
            // Where no thread is left the connection closes.
            let _ = self.serve(Service::Tcp(stream, client, welcome));
            return;
        };
        if let HelloReply::Say(message) = reply {
            let _ = stream.write_all(&message.write());
        }
    }

    fn serve(&mut self, service: Service) -> io::Result<()> {
        let terms = &self.plan.terms;
        let cpu = terms.cpus.get(self.started % terms.cpus.len().max(1)).copied().unwrap_or(0);
        let (policy, priority) = (terms.policy, terms.priority);
        let bounds = SessionLimits {
            terms: ThreadConfig { policy, priority, cpu, slack_ns: 1 },
            is_closed: self.guard.closed_flag(cpu),
            rate_max: self.plan.rate_max,
            size_max: self.plan.size_max as usize,
        };
        self.peers.push(PeerThread::start(service, bounds)?);
        self.started += 1;
        self.summary.peers += 1;
        Ok(())
    }

    /// Whether another one can be served, if necessary in place of one that has long been silent.
    fn has_place(&mut self) -> bool {
        self.let_go();
        if self.peers.len() < PEERS {
            return true;
        }
        let silent = self.peers.iter_mut().map(PeerThread::silent_for).enumerate();
        match silent.max_by_key(|(_, silent)| *silent) {
            Some((place, silent)) if silent >= PATIENCE => {
                let peer = self.peers.remove(place);
                self.end(peer, Some("silent while others waited"));
                true
            }
            _ => false,
        }
    }

    /// Removes peers whose threads have ended, or which have been silent for too long.
    fn let_go(&mut self) {
        let mut place = 0;
        while let Some(peer) = self.peers.get_mut(place) {
            // Strangers may come at any time.
            let is_silent = peer.silent_for() >= SILENCE && !peer.is_for_strangers();
            if !is_silent && !peer.has_ended() {
                place += 1;
                continue;
            }
            let why = (!peer.has_ended()).then_some("silent for 30 s");
            let peer = self.peers.remove(place);
            self.end(peer, why);
        }
    }

    /// Ends a peer, and adds it to the summary.
    fn end(&mut self, peer: PeerThread, why: Option<&str>) {
        let peer = peer.finish(why, &mut self.guard);
        self.summary.answered += peer.answered;
        self.summary.bytes += peer.bytes;
        self.summary.over_rate += peer.over_rate;
        self.summary.foreign += peer.foreign;
        if self.last_peers.len() >= PEERS_LISTED {
            self.last_peers.pop_front();
        }
        self.last_peers.push_back(peer);
    }
}

impl PendingConnection {
    fn new(stream: TcpStream, address: SocketAddr) -> Self {
        Self { stream, address, since: Instant::now(), said: [0; ASK_LEN], length: 0 }
    }

    /// Hears what has come, and answers.
    fn receive(&mut self, admission: &mut Admission) -> Then {
        loop {
            let rest = self.said.get_mut(self.length..).unwrap_or_default();
            match self.stream.read(rest) {
                Ok(0) => return Then::Goes,
                Ok(length) => self.length += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let is_late = self.since.elapsed() >= AT_THE_DOOR;
                    return if is_late { Then::Goes } else { Then::Stays };
                }
                Err(_) => return Then::Goes,
            }
            if !self.is_whole() {
                continue;
            }
            let said = &self.said[..self.length];
            let reply = admission.receive(self.address, said, clock::now_ns());
            self.length = 0;
            let message = match reply {
                HelloReply::Silence => return Then::Goes,
                HelloReply::LetIn(client) => return Then::Enters(client),
                HelloReply::Say(message) => message,
            };
            // Few enough bytes that they always fit into the socket of a waiting client.
            let is_said = self.stream.write_all(&message.write()).is_ok();
            if !is_said || !matches!(message, HelloMessage::Challenge { .. }) {
                return Then::Goes;
            }
        }
    }

    /// Whether what has come can be judged: a whole message, or the beginning of none.
    fn is_whole(&self) -> bool {
        let said = &self.said[..self.length];
        let is_ours = said.iter().zip(&MAGIC).all(|(said, wanted)| said == wanted);
        let is_other = self.length >= ANSWER_LEN
            && matches!(HelloMessage::read(said), Err(Unread::Version { .. }));
        self.length == ASK_LEN || !is_ours || is_other
    }
}

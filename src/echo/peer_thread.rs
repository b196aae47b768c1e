//! Serves one peer, in its own thread.

use std::{
    io,
    net::{SocketAddr, TcpStream, UdpSocket},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::net::{Shutdown, shutdown};
use tardy_hot::{
    clock,
    echo::{
        Answer, Datagrams, Done, EchoCounts, EchoIo, Messages, Pieces, Plain, RawEcho, ServeEnd,
        Stamped, TokenBucket, UnconnectedUdp, serve,
    },
    stop::Stop,
};

use super::{
    PeerSummary,
    admission::EchoClient,
    guard::{ClosedFlag, GuardedThread, SleepGuard},
};
use crate::{
    setup::threads::{ThreadConfig, describe_found, plain},
    sys::{memory, sched, usage},
    transports::hello::{ASK_LEN, EchoMode, HelloMessage, MAGIC},
};

/// Stack size in bytes, enough for a loop and its system calls.
const STACK_BYTES: usize = 256 << 10;

/// Kind of peer.
pub(super) enum Service {
    /// A peer that completed the handshake over UDP: its connected socket and the answer to send.
    Udp(UdpSocket, EchoClient, HelloMessage),
    /// A peer that completed the handshake over TCP.
    Tcp(TcpStream, EchoClient, HelloMessage),
    /// Datagrams of every sender, without a handshake (`--foreign`).
    UnconnectedUdp(UdpSocket),
    /// A TCP connection without a handshake (`--foreign`).
    Pieces(TcpStream),
}

/// Limits and scheduling of a peer thread.
pub(super) struct SessionLimits {
    /// Policy, priority and CPU of the thread.
    pub terms: ThreadConfig,
    /// Whether it may not be real-time because of what others did on its CPU.
    pub is_closed: ClosedFlag,
    /// Messages per second.
    pub rate_max: u64,
    /// Bytes of the largest message, for foreign peers.
    pub size_max: usize,
}

/// Ends what is said of how a thread ran that was made an ordinary task.
pub(crate) const CALMED: &str = ", then other: its CPU was left no rest";

/// The same of one that became such a task before it began to answer.
pub(crate) const DENIED: &str = ", then other before it began: others had left its CPU no rest";

/// A peer and its thread.
#[derive(Debug)]
pub(super) struct PeerThread {
    thread: JoinHandle<ThreadEnd>,
    counts: Arc<EchoCounts>,
    stop: Arc<Stop>,
    socket: OwnedFd,
    summary: PeerSummary,
    last: Done,
    last_change: Instant,
    /// The kernel's number of the thread, once it runs under a real-time policy.
    tid: Arc<AtomicI32>,
    cpu: u32,
    /// Whether the thread was made an ordinary task.
    is_ordinary: bool,
}

/// What a thread says at its end.
#[derive(Debug)]
struct ThreadEnd {
    /// How it ran.
    ran: String,
    /// Why it ended.
    ended: String,
    /// The CPU time that it used.
    used: Duration,
}

impl PeerThread {
    /// Starts its thread, which welcomes it when it is ready.
    ///
    /// # Errors
    /// No thread or descriptor is left.
    pub(super) fn start(service: Service, bounds: SessionLimits) -> io::Result<Self> {
        let (counts, stop) = (Arc::new(EchoCounts::default()), Arc::new(Stop::new()));
        let (socket, summary) = (service.socket()?, service.summary());
        let tid = Arc::new(AtomicI32::new(0));
        let own = (Arc::clone(&counts), Arc::clone(&stop), Arc::clone(&tid));
        let cpu = bounds.terms.cpu;
        let thread = thread::Builder::new()
            .name("peer".into())
            .stack_size(STACK_BYTES)
            .spawn(move || service.run(&bounds, &own.0, &own.1, &own.2))?;
        let (last, last_change) = (Done::default(), Instant::now());
        Ok(Self {
            thread,
            counts,
            stop,
            socket,
            summary,
            last,
            last_change,
            tid,
            cpu,
            is_ordinary: false,
        })
    }

    /// Its thread, from when that runs under a real-time policy until it is made an ordinary task.
    pub(super) fn real_time(&self) -> Option<GuardedThread> {
        let tid = self.tid.load(Ordering::Acquire);
        (tid != 0 && !self.is_ordinary).then_some(GuardedThread { tid, cpu: self.cpu })
    }

    /// Notes that its thread is an ordinary task, where it is among those that became one.
    pub(super) fn note_calmed(&mut self, calmed: &[i32]) {
        self.is_ordinary |= calmed.contains(&self.tid.load(Ordering::Acquire));
    }

    /// Whether it is this peer that is served.
    #[must_use]
    pub(super) fn is_at(&self, transport: &str, address: SocketAddr) -> bool {
        self.summary.transport == transport && self.summary.address == Some(address)
    }

    /// Its socket, where that is one of datagrams.
    pub(super) fn datagrams(&self) -> Option<BorrowedFd<'_>> {
        (self.summary.transport == "udp").then(|| self.socket.as_fd())
    }

    /// Whether it is not an admitted peer, but takes packets of any sender.
    #[must_use]
    pub(super) const fn is_for_strangers(&self) -> bool {
        self.summary.address.is_none()
    }

    /// Whether its thread has ended.
    #[must_use]
    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// How long nothing has come from it, as of now.
    pub(super) fn silent_for(&mut self) -> Duration {
        let done = self.counts.read();
        if done != self.last {
            (self.last, self.last_change) = (done, Instant::now());
        }
        self.last_change.elapsed()
    }

    /// Ends its thread, and summarises it; `why` where it did not end by itself. What it used of
    /// its CPU, where it was real-time to the end, goes to `guard`.
    pub(super) fn finish(mut self, why: Option<&str>, guard: &mut SleepGuard) -> PeerSummary {
        let guarded = self.real_time();
        self.stop.set();
        // Whatever it waits for ends. On a socket that has no peer the kernel complains, and wakes
        // the thread all the same.
        let _ = shutdown(&self.socket, Shutdown::Both);
        let (ran, ended) = (String::new(), "its thread failed".to_owned());
        let unknown = |_| ThreadEnd { ran, ended, used: Duration::ZERO };
        let ThreadEnd { mut ran, ended, used } = self.thread.join().unwrap_or_else(unknown);
        if let Some(thread) = guarded {
            guard.add_ended(thread, used);
        }
        if self.is_ordinary {
            ran.push_str(CALMED);
        }
        let Done { answered, bytes, over_rate, foreign, failed } = self.counts.read();
        let ended = why.map_or(ended, ToOwned::to_owned);
        self.summary = PeerSummary { answered, bytes, over_rate, foreign, failed, ..self.summary };
        PeerSummary { ran, ended, ..self.summary }
    }
}

impl Service {
    fn socket(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Udp(socket, ..) | Self::UnconnectedUdp(socket) => socket.as_fd(),
            Self::Tcp(stream, ..) | Self::Pieces(stream) => stream.as_fd(),
        }
        .try_clone_to_owned()
    }

    fn summary(&self) -> PeerSummary {
        let (transport, address, client) = match self {
            Self::Udp(socket, client, _) => ("udp", socket.peer_addr().ok(), Some(client)),
            Self::Tcp(stream, client, _) => ("tcp", stream.peer_addr().ok(), Some(client)),
            Self::UnconnectedUdp(_) => ("udp", None, None),
            Self::Pieces(stream) => ("tcp", stream.peer_addr().ok(), None),
        };
        let mode = match client.map(|client| client.ask.mode) {
            Some(EchoMode::PingPong) => "pingpong",
            Some(EchoMode::Stream) => "stream",
            None => "foreign",
        };
        PeerSummary {
            transport,
            address,
            mode,
            size: client.map(|client| client.ask.size),
            answered: 0,
            bytes: 0,
            over_rate: 0,
            foreign: 0,
            failed: 0,
            ran: String::new(),
            ended: String::new(),
        }
    }

    /// Serves until the peer is gone or `stop` is set.
    fn run(
        self,
        bounds: &SessionLimits,
        counts: &EchoCounts,
        stop: &Stop,
        tid: &AtomicI32,
    ) -> ThreadEnd {
        let ran = bounds.begin(tid);
        memory::touch_stack();
        let bucket = TokenBucket::new(bounds.rate_max, clock::now_ns());
        let loops = Loops { bucket, counts, stop };
        let ended = match self {
            Self::Udp(socket, client, welcome) => {
                let way = Datagrams { descriptor: socket.as_raw_fd() };
                let buffer = vec![0; (client.ask.size as usize).max(ASK_LEN)];
                loops.welcomed(way, buffer, &client, &welcome, ASK_LEN)
            }
            Self::Tcp(stream, client, welcome) => {
                let way = Messages { descriptor: stream.as_raw_fd() };
                // Where messages begin is known only by counting: nothing else may be said.
                loops.welcomed(way, vec![0; client.ask.size as usize], &client, &welcome, 0)
            }
            Self::UnconnectedUdp(socket) => {
                let way = UnconnectedUdp::new(socket.as_raw_fd());
                loops.foreign(way, bounds.size_max)
            }
            Self::Pieces(stream) => {
                let way = Pieces { descriptor: stream.as_raw_fd() };
                loops.foreign(way, bounds.size_max)
            }
        };
        let used = usage::thread_cpu_time(sched::thread_id()).unwrap_or_default();
        ThreadEnd { ran, ended, used }
    }
}

impl SessionLimits {
    /// Makes the calling thread run on its terms, and says how it runs. A thread that waited for
    /// its CPU, as others left that no rest, becomes no real-time one in their place.
    fn begin(&self, tid: &AtomicI32) -> String {
        let mut ran = match self.terms.apply() {
            Ok(found) => describe_found(&found),
            Err(error) => return format!("unchanged from its start: {}", plain(&error)),
        };
        if !self.terms.policy.is_real_time() {
            return ran;
        }
        if self.is_closed.load(Ordering::Acquire) && sched::make_last(sched::thread_id()).is_ok() {
            ran.push_str(DENIED);
        } else {
            tid.store(sched::thread_id(), Ordering::Release);
        }
        ran
    }
}

/// What every loop has.
struct Loops<'a> {
    bucket: TokenBucket,
    counts: &'a EchoCounts,
    stop: &'a Stop,
}

impl Loops<'_> {
    fn welcomed<W: EchoIo>(
        self,
        mut way: W,
        buffer: Vec<u8>,
        client: &EchoClient,
        welcome: &HelloMessage,
        spoken_len: usize,
    ) -> String {
        let welcome = welcome.write();
        if let Err(errno) = way.send(&welcome) {
            return ended(ServeEnd::Over(errno));
        }
        let size = client.ask.size as usize;
        let talk = Talk { client, welcome: &welcome, spoken_len };
        match client.ask.mode {
            EchoMode::PingPong => self.talk(way, buffer, &Plain { size }, &talk),
            EchoMode::Stream => {
                self.talk(way, buffer, &Stamped { size, session: client.session }, &talk)
            }
        }
    }

    /// Answers, and welcomes a peer once more that has missed its welcome.
    fn talk<W: EchoIo, A: Answer>(
        mut self,
        mut way: W,
        mut buffer: Vec<u8>,
        answer: &A,
        talk: &Talk<'_>,
    ) -> String {
        touch(&mut buffer);
        loop {
            let heard = (&mut buffer[..], &MAGIC, talk.spoken_len);
            let Self { bucket, counts, stop } = &mut self;
            match serve(&mut way, answer, heard, bucket, counts, stop) {
                ServeEnd::Spoken(length) => {
                    let is_again = buffer.get(..length).is_some_and(|bytes| talk.is_proof(bytes));
                    if is_again && self.bucket.take(clock::now_ns) {
                        // It repeats its request where this is lost too.
                        let _ = way.send(talk.welcome);
                    }
                }
                ending => return ended(ending),
            }
        }
    }

    fn foreign<W: EchoIo>(mut self, mut way: W, size_max: usize) -> String {
        let mut buffer = vec![0; size_max];
        touch(&mut buffer);
        let heard = (&mut buffer[..], &MAGIC, 0);
        ended(serve(&mut way, &RawEcho, heard, &mut self.bucket, self.counts, self.stop))
    }
}

/// What a peer may say beside messages.
struct Talk<'a> {
    client: &'a EchoClient,
    welcome: &'a [u8],
    spoken_len: usize,
}

impl Talk<'_> {
    /// Whether it is the proof by which the peer was let in; its code was checked then.
    fn is_proof(&self, bytes: &[u8]) -> bool {
        matches!(HelloMessage::read(bytes), Ok(HelloMessage::Proof { nonce, cookie, .. })
            if nonce == self.client.nonce && cookie == self.client.cookie)
    }
}

/// No page is met for the first time in the loop.
fn touch(buffer: &mut [u8]) {
    buffer.fill(1);
    std::hint::black_box(&buffer);
    buffer.fill(0);
}

fn ended(ending: ServeEnd) -> String {
    match ending {
        ServeEnd::Stopped => "the echo ended".into(),
        ServeEnd::Over(libc::ECONNRESET | libc::EPIPE | libc::ECONNREFUSED) => {
            "the peer closed".into()
        }
        ServeEnd::Over(errno) => plain(&io::Error::from_raw_os_error(errno)),
        ServeEnd::Spoken(_) => "the peer sent a second hello".into(),
    }
}

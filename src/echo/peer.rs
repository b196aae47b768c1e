//! One peer that is served, by a thread of its own.

use std::{
    io,
    net::{SocketAddr, TcpStream, UdpSocket},
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::net::{Shutdown, shutdown};
use tardy_hot::{
    clock,
    echo::{
        Account, Answer, Anything, Bucket, Datagrams, Done, Ending, Messages, Pieces, Plain,
        Stamped, Strangers, Way, serve,
    },
    stop::Stop,
};

use super::{PeerSummary, door::Guest};
use crate::{
    setup::threads::{Terms, describe_found, plain},
    sys::memory,
    transports::hello::{ASK_LEN, MAGIC, Message, Mode},
};

/// Enough for a loop and its system calls.
const STACK_BYTES: usize = 256 << 10;

/// What a thread serves.
pub enum Service {
    /// A peer of the handshake, by a socket that is connected to it; and how it is welcomed.
    Udp(UdpSocket, Guest, Message),
    /// The same by a connection.
    Tcp(TcpStream, Guest, Message),
    /// Anybody's datagrams.
    Strangers(UdpSocket),
    /// A foreign peer's connection.
    Pieces(TcpStream),
}

/// On what terms it is served.
pub struct Bounds {
    /// Policy, priority and CPU of the thread.
    pub terms: Terms,
    /// Messages per second.
    pub rate_max: u64,
    /// Bytes of the largest message, for foreign peers.
    pub size_max: usize,
}

/// A peer and its thread.
#[derive(Debug)]
pub struct Peer {
    thread: JoinHandle<(String, String)>,
    account: Arc<Account>,
    stop: Arc<Stop>,
    socket: OwnedFd,
    summary: PeerSummary,
    last: Done,
    last_change: Instant,
}

impl Peer {
    /// Starts its thread, which welcomes it when it is ready.
    ///
    /// # Errors
    /// There is no thread or descriptor left.
    pub fn start(service: Service, bounds: Bounds) -> io::Result<Self> {
        let (account, stop) = (Arc::new(Account::default()), Arc::new(Stop::new()));
        let (socket, summary) = (service.socket()?, service.summary());
        let own = (Arc::clone(&account), Arc::clone(&stop));
        let thread = thread::Builder::new()
            .name("peer".into())
            .stack_size(STACK_BYTES)
            .spawn(move || service.run(&bounds, &own.0, &own.1))?;
        let (last, last_change) = (Done::default(), Instant::now());
        Ok(Self { thread, account, stop, socket, summary, last, last_change })
    }

    /// Whether it is this peer that is served.
    #[must_use]
    pub fn is_at(&self, transport: &str, address: SocketAddr) -> bool {
        self.summary.transport == transport && self.summary.address == Some(address)
    }

    /// Whether it is no peer, but whoever sends.
    #[must_use]
    pub const fn is_for_strangers(&self) -> bool {
        self.summary.address.is_none()
    }

    /// Whether its thread has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// How long nothing has come of it; looks anew.
    pub fn silent_for(&mut self) -> Duration {
        let done = self.account.read();
        if done != self.last {
            (self.last, self.last_change) = (done, Instant::now());
        }
        self.last_change.elapsed()
    }

    /// Ends its thread, where `why` tells, and says what came of it.
    pub fn finish(mut self, why: Option<&str>) -> PeerSummary {
        self.stop.set();
        // Whatever it waits for ends. On a socket that has no peer the kernel complains, and wakes
        // the thread all the same.
        let _ = shutdown(&self.socket, Shutdown::Both);
        let unknown = || (String::new(), "its thread failed".to_owned());
        let (ran, ended) = self.thread.join().unwrap_or_else(|_| unknown());
        let Done { answered, bytes, over_rate, foreign, failed } = self.account.read();
        let ended = why.map_or(ended, ToOwned::to_owned);
        self.summary = PeerSummary { answered, bytes, over_rate, foreign, failed, ..self.summary };
        PeerSummary { ran, ended, ..self.summary }
    }
}

impl Service {
    fn socket(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Udp(socket, ..) | Self::Strangers(socket) => socket.as_fd(),
            Self::Tcp(stream, ..) | Self::Pieces(stream) => stream.as_fd(),
        }
        .try_clone_to_owned()
    }

    fn summary(&self) -> PeerSummary {
        let (transport, address, guest) = match self {
            Self::Udp(socket, guest, _) => ("udp", socket.peer_addr().ok(), Some(guest)),
            Self::Tcp(stream, guest, _) => ("tcp", stream.peer_addr().ok(), Some(guest)),
            Self::Strangers(_) => ("udp", None, None),
            Self::Pieces(stream) => ("tcp", stream.peer_addr().ok(), None),
        };
        let mode = match guest.map(|guest| guest.ask.mode) {
            Some(Mode::PingPong) => "pingpong",
            Some(Mode::Stream) => "stream",
            None => "foreign",
        };
        PeerSummary {
            transport,
            address,
            mode,
            size: guest.map(|guest| guest.ask.size),
            answered: 0,
            bytes: 0,
            over_rate: 0,
            foreign: 0,
            failed: 0,
            ran: String::new(),
            ended: String::new(),
        }
    }

    /// Serves until the peer is gone or `stop` is set; how it ran and how it ended.
    fn run(self, bounds: &Bounds, account: &Account, stop: &Stop) -> (String, String) {
        let ran = match bounds.terms.apply() {
            Ok(found) => describe_found(&found),
            Err(error) => format!("as it was started, for {}", plain(&error)),
        };
        memory::touch_stack();
        let bucket = Bucket::new(bounds.rate_max, clock::now_ns());
        let loops = Loops { bucket, account, stop };
        let ended = match self {
            Self::Udp(socket, guest, welcome) => {
                let way = Datagrams { descriptor: socket.as_raw_fd() };
                let buffer = vec![0; (guest.ask.size as usize).max(ASK_LEN)];
                loops.welcomed(way, buffer, &guest, &welcome, ASK_LEN)
            }
            Self::Tcp(stream, guest, welcome) => {
                let way = Messages { descriptor: stream.as_raw_fd() };
                // Where messages begin is known only by counting: nothing else may be said.
                loops.welcomed(way, vec![0; guest.ask.size as usize], &guest, &welcome, 0)
            }
            Self::Strangers(socket) => {
                let way = Strangers::new(socket.as_raw_fd());
                loops.foreign(way, bounds.size_max)
            }
            Self::Pieces(stream) => {
                let way = Pieces { descriptor: stream.as_raw_fd() };
                loops.foreign(way, bounds.size_max)
            }
        };
        (ran, ended)
    }
}

/// What every loop has.
struct Loops<'a> {
    bucket: Bucket,
    account: &'a Account,
    stop: &'a Stop,
}

impl Loops<'_> {
    fn welcomed<W: Way>(
        self,
        mut way: W,
        buffer: Vec<u8>,
        guest: &Guest,
        welcome: &Message,
        spoken_len: usize,
    ) -> String {
        let welcome = welcome.write();
        if let Err(errno) = way.send(&welcome) {
            return ended(Ending::Over(errno));
        }
        let size = guest.ask.size as usize;
        let talk = Talk { guest, welcome: &welcome, spoken_len };
        match guest.ask.mode {
            Mode::PingPong => self.talk(way, buffer, &Plain { size }, &talk),
            Mode::Stream => {
                self.talk(way, buffer, &Stamped { size, session: guest.session }, &talk)
            }
        }
    }

    /// Answers, and welcomes a peer once more that has missed its welcome.
    fn talk<W: Way, A: Answer>(
        mut self,
        mut way: W,
        mut buffer: Vec<u8>,
        answer: &A,
        talk: &Talk<'_>,
    ) -> String {
        touch(&mut buffer);
        loop {
            let heard = (&mut buffer[..], &MAGIC, talk.spoken_len);
            let Self { bucket, account, stop } = &mut self;
            match serve(&mut way, answer, heard, bucket, account, stop) {
                Ending::Spoken(length) => {
                    let is_again = buffer.get(..length).is_some_and(|bytes| talk.is_proof(bytes));
                    if is_again && self.bucket.take(clock::now_ns) {
                        // It asks again where this is lost too.
                        let _ = way.send(talk.welcome);
                    }
                }
                ending => return ended(ending),
            }
        }
    }

    fn foreign<W: Way>(mut self, mut way: W, size_max: usize) -> String {
        let mut buffer = vec![0; size_max];
        touch(&mut buffer);
        let heard = (&mut buffer[..], &MAGIC, 0);
        ended(serve(&mut way, &Anything, heard, &mut self.bucket, self.account, self.stop))
    }
}

/// What a peer may say beside messages.
struct Talk<'a> {
    guest: &'a Guest,
    welcome: &'a [u8],
    spoken_len: usize,
}

impl Talk<'_> {
    /// Whether it is the proof by which the peer was let in; its code was looked at then.
    fn is_proof(&self, bytes: &[u8]) -> bool {
        matches!(Message::read(bytes), Ok(Message::Proof { nonce, cookie, .. })
            if nonce == self.guest.nonce && cookie == self.guest.cookie)
    }
}

/// No page is met for the first time in the loop.
fn touch(buffer: &mut [u8]) {
    buffer.fill(1);
    std::hint::black_box(&buffer);
    buffer.fill(0);
}

fn ended(ending: Ending) -> String {
    match ending {
        Ending::Stopped => "the echo ended".into(),
        Ending::Over(libc::ECONNRESET | libc::EPIPE | libc::ECONNREFUSED) => {
            "the peer closed".into()
        }
        Ending::Over(errno) => plain(&io::Error::from_raw_os_error(errno)),
        Ending::Spoken(_) => "the peer said hello again".into(),
    }
}

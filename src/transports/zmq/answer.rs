//! A socket that answers programs other than tardy, within limits.
//!
//! It sends back what it gets to libzmq's `remote_lat`, or to any REQ socket. To them it is a REP
//! socket; here it is a ROUTER, because libzmq's REP also loses the next answer when a client
//! disconnects after sending something that is not a request. Clients have no token, so all that
//! they can make it hold has a limit: bytes of a part, queued parts, duration of a handshake,
//! messages per second, and the memory of the whole process. The last one is needed because the
//! library does not limit the parts of a message.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    thread,
    time::{Duration, Instant},
};

use tardy_hot::stop::Stop;

use super::resolve;
use crate::sys::zmq::{Context, Number, ZmqError, ZmqSocket, ZmqSocketKind};

/// What strangers may make it hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Bytes of one message; who sends more is cut off. At least 1.
    pub longest_bytes: usize,
    /// Messages that may wait, for each connection and direction.
    pub waiting: i32,
    /// Messages taken in a second, all connections together, also those that are not requests;
    /// absent for any number.
    pub per_s: Option<u64>,
    /// By how much the process may grow; then all connections are closed.
    pub memory_bytes: u64,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self { longest_bytes: 1 << 20, waiting: 16, per_s: None, memory_bytes: 64 << 20 }
    }
}

/// What it did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answered {
    /// Requests that got back what they were.
    pub requests: u64,
    /// Bytes sent back.
    pub bytes: u64,
    /// Messages that are not a request of one part; they get no answer.
    pub refused: u64,
    /// Messages that waited because of [`ReplyLimits::per_s`].
    pub slowed: u64,
    /// Times that all connections were closed because of [`ReplyLimits::memory_bytes`].
    pub closed: u64,
}

/// A socket that listens, and answers.
#[derive(Debug)]
pub struct Answerer {
    socket: ZmqSocket,
    endpoint: String,
    limits: ReplyLimits,
    answered: Answered,
    memory: Memory,
    /// Before this no other message is taken; behind the clock while there are few.
    next: Instant,
}

/// Bytes that the library's name for a connection may have.
const LONGEST_NAME: usize = 256;
/// How often it looks whether it must end, and how much memory it has; ms.
const GLANCE_MS: i32 = 20;
/// A connection that has not said what it is by then is closed; ms.
const HANDSHAKE_MS: i32 = 5_000;
/// The time of the messages that may come at once under [`ReplyLimits::per_s`].
const BURST: Duration = Duration::from_millis(10);

impl Answerer {
    /// Listens at `listen` (`ADDR:PORT`, port 0 for any). The library's threads run as the calling
    /// one does, which is the one to call [`Answerer::serve`].
    ///
    /// # Errors
    /// The library is absent, `listen` is not an address, or the address is in use.
    pub fn bind(listen: &str, limits: ReplyLimits) -> Result<Self, ZmqError> {
        let socket = bound(&format!("tcp://{}", resolve(listen)?), &limits)?;
        let endpoint = socket.endpoint()?;
        let memory = Memory::of_this_process().map_err(|source| ZmqError::Call {
            what: "cannot read /proc/self/statm, which the memory limit needs".into(),
            source,
        })?;
        let (answered, next) = (Answered::default(), Instant::now());
        Ok(Self { socket, endpoint, limits, answered, memory, next })
    }

    /// Where it listens, as `tcp://127.0.0.1:5555`.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Answers until `stop` is set, and says what it did.
    ///
    /// # Errors
    /// The library refuses what it did before: to receive, or to listen again.
    pub fn serve(mut self, stop: &Stop) -> Result<Answered, ZmqError> {
        let mut body = vec![0; self.limits.longest_bytes.max(1)];
        let mut sender = [0; LONGEST_NAME];
        let mut looked = Instant::now();
        while !stop.is_set() {
            let got = self.socket.receive(&mut sender, true);
            if looked.elapsed().as_millis() >= GLANCE_MS as u128 {
                looked = Instant::now();
                if self.memory.grew_by() > self.limits.memory_bytes {
                    // Every connection goes with its socket, and the address is free again.
                    drop(self.socket);
                    self.socket = bound(&self.endpoint, &self.limits)?;
                    self.memory.rebase();
                    self.answered.closed += 1;
                    continue;
                }
            }
            match got {
                Ok(bytes) => self.answer(&sender[..bytes.min(LONGEST_NAME)], &mut body, stop)?,
                Err(error) if is_pause(&error) => {}
                Err(source) => return Err(self.broken("receive", source)),
            }
        }
        Ok(self.answered)
    }

    /// Answers who sent the message that begins with `sender`, as the library calls it.
    fn answer(&mut self, sender: &[u8], body: &mut [u8], stop: &Stop) -> Result<(), ZmqError> {
        let request = self.request(body)?;
        // Also for what gets no answer: who sends that without end must not keep this thread awake.
        self.keep_rate(stop);
        let Some(bytes) = request else {
            self.answered.refused += 1;
            return Ok(());
        };
        let cannot = |error| self.broken("send", error);
        // To a peer that is gone, or does not read, nothing is sent; that is not an error.
        if !self.socket.begin_to(sender).map_err(cannot)? {
            return Ok(());
        }
        for (part, more) in [(&[][..], true), (&body[..bytes], false)] {
            self.socket.send_part(part, more).map_err(cannot)?;
        }
        self.answered.requests += 1;
        self.answered.bytes += bytes as u64;
        Ok(())
    }

    /// What follows the sender: an empty part and the request itself. Anything else is read to its
    /// end, and is not a request.
    fn request(&self, body: &mut [u8]) -> Result<Option<usize>, ZmqError> {
        let mut lengths = [0; 3];
        let mut parts = 0;
        while self.socket.has_more()? {
            let got = self.socket.receive(body, true);
            let got = got.map_err(|error| self.broken("receive", error))?;
            lengths[parts.min(2)] = got;
            parts += 1;
        }
        Ok((parts == 2 && lengths[0] == 0 && lengths[1] <= body.len()).then_some(lengths[1]))
    }

    fn keep_rate(&mut self, stop: &Stop) {
        let Some(per_s) = self.limits.per_s else { return };
        let now = Instant::now();
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        self.next = self.next.max(earliest) + Duration::from_secs(1) / clamp(per_s);
        if self.next <= now {
            return;
        }
        self.answered.slowed += 1;
        while !stop.is_set() {
            let left = self.next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(Duration::from_millis(GLANCE_MS as u64)));
        }
    }

    fn broken(&self, verb: &str, source: io::Error) -> ZmqError {
        ZmqError::Call { what: format!("cannot {verb} at {}", self.endpoint), source }
    }
}

fn clamp(per_s: u64) -> u32 {
    u32::try_from(per_s).unwrap_or(u32::MAX).max(1)
}

/// Nothing came, or a signal: no reason to end.
fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// A socket that holds no more than `limits` say.
fn bound(endpoint: &str, limits: &ReplyLimits) -> Result<ZmqSocket, ZmqError> {
    let socket = ZmqSocket::new(&Context::like_this_thread(true)?, ZmqSocketKind::Router)?;
    socket.set_longest(limits.longest_bytes.max(1) as u64)?;
    for (option, value) in [
        (Number::Ipv6, 1),
        (Number::SendHigh, limits.waiting.max(1)),
        (Number::ReceiveHigh, limits.waiting.max(1)),
        (Number::HandshakeMs, HANDSHAKE_MS),
        (Number::ReceiveMs, GLANCE_MS),
        (Number::RouterMandatory, 1),
    ] {
        socket.set(option, value)?;
    }
    socket.bind(endpoint)?;
    Ok(socket)
}

/// How much of the machine's memory this process has.
#[derive(Debug)]
struct Memory {
    // Kept open: a stranger may use up the descriptors.
    statm: File,
    base: u64,
}

impl Memory {
    fn of_this_process() -> io::Result<Self> {
        let mut memory = Self { statm: File::open("/proc/self/statm")?, base: 0 };
        memory.rebase();
        Ok(memory)
    }

    /// Bytes that it has now; 0 where the kernel does not tell.
    fn now(&self) -> u64 {
        let mut text = [0; 128];
        let got = self.statm.read_at(&mut text, 0).unwrap_or(0);
        let text = std::str::from_utf8(&text[..got]).unwrap_or_default();
        let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
        pages.unwrap_or(0) * rustix::param::page_size() as u64
    }

    /// What it has now is what it may have.
    fn rebase(&mut self) {
        self.base = self.now();
    }

    fn grew_by(&self) -> u64 {
        self.now().saturating_sub(self.base)
    }
}

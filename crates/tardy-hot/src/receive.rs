//! The loop of the `receive` probe: wait for a packet, read the clocks, compare with its stamp.
//!
//! # What lies between the clock reads
//!
//! The first is the kernel's: it stamps a packet when the driver hands it to the network stack
//! (on loopback when it is sent), by `CLOCK_REALTIME`. The second is read as soon as `recvmsg` has
//! returned. In a sample are: what was left of the network stack, the socket and its queue, the
//! wake-up, the dispatch, copying, the return to user space, and half of one clock read. Before the
//! stamp, and so in no sample, are the NIC, its interrupt and most of its softirq. Per kind of
//! [`Await`]:
//!
//! | kind | calls per packet | also in the sample |
//! | --- | --- | --- |
//! | [`Block`] | `recvmsg` | nothing |
//! | [`Ppoll`] | `ppoll`, `recvmsg` | the return from `ppoll`, entering `recvmsg` |
//! | [`Epoll`] | `epoll_wait`, `recvmsg` | the return from `epoll_wait`, entering `recvmsg` |
//! | [`SpinReceive`] | `recvmsg` until there is one | up to one empty `recvmsg`, but no wake-up |
//!
//! `CLOCK_MONOTONIC`, which says when a sample was, is read after that. What it differs by from
//! `CLOCK_REALTIME` changes only when that is stepped; then packets that may have been stamped
//! before the step are counted apart. Distinguishing packets and recording lie outside.

use crate::{
    clock,
    ring::{Sample, Writer},
    stop::Stop,
    wakeup::{Ended, Sink},
};

mod control;
mod filter;
mod inlet;
mod order;
mod sender;

pub use control::{Stamps, stamps};
pub use filter::{AcceptAll, Filter, Own, Verdict};
pub use inlet::{Await, Block, Epoll, Inlet, Ppoll, SpinReceive};
pub use order::{SequencePosition, SequenceTracker};
pub use sender::{ScheduledSender, Sent, Times};

/// A packet that a NIC has stamped by its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NicStamp {
    /// The NIC's stamp, ns of its clock.
    pub nic_ns: i64,
    /// When the thread had it, `CLOCK_REALTIME` ns.
    pub realtime_ns: i64,
}

/// Where a NIC's stamps go. Their clock is another one, so that the receiver compares them.
pub trait Nic {
    /// Takes one.
    fn take(&mut self, stamp: NicStamp);
}

/// A receiver without a network card that stamps packets.
#[derive(Debug)]
pub struct NoNic;

impl Nic for NoNic {
    #[inline(always)]
    fn take(&mut self, _: NicStamp) {}
}

impl Nic for Writer<NicStamp> {
    #[inline(always)]
    fn take(&mut self, stamp: NicStamp) {
        self.push(stamp);
    }
}

/// What was seen beside samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// Packets that count.
    pub packets: u64,
    /// Of those, how many had no stamp of the kernel.
    pub unstamped: u64,
    /// Of those, how many may have been stamped before the clock was stepped.
    pub stepped: u64,
    /// The last step, ns.
    pub step_ns: i64,
    /// What the kernel dropped for lack of room until the first packet, and until the last one.
    pub dropped: Option<(u32, u32)>,
}

/// When the loop ends.
#[derive(Debug, Clone, Copy)]
pub struct ReceiveUntil {
    /// No wait lasts beyond this time; ns, `i64::MAX` for no end. A signal ends a wait.
    pub end_ns: i64,
    /// The maximum number of samples; `u64::MAX` for no limit.
    pub samples: u64,
    /// The first latency above this sets the stop flag; ns, `i64::MAX` for none.
    pub stop_over_ns: i64,
}

/// What a loop hands its samples and notes to.
#[derive(Debug)]
pub struct Outlets<'a, S, F, N> {
    /// Latencies.
    pub sink: &'a mut S,
    /// Which packets count.
    pub filter: &'a mut F,
    /// Stamps of a NIC.
    pub nic: &'a mut N,
    /// Everything else.
    pub seen: &'a mut Seen,
}

/// Waits, reads the clocks, hands the difference over; until `until` or `stop` ends it.
///
/// A wait that ends without a packet is repeated until the time is over, so a caller that knows
/// that it is sends the thread a signal.
///
/// Not inlined, so that the loop stands alone in a profile.
#[inline(never)]
pub fn run<W: Await, S: Sink, F: Filter, N: Nic>(
    inlet: &mut Inlet<W>,
    out: Outlets<'_, S, F, N>,
    until: ReceiveUntil,
    stop: &Stop,
) -> Ended {
    let Outlets { sink, filter, nic, seen } = out;
    let mut offset = Offset::new();
    let mut left = until.samples;
    while left > 0 {
        let (length, controls) = match inlet.receive() {
            Ok(lengths) => lengths,
            Err(_) if stop.is_set() => return Ended::Stopped,
            Err(libc::EINTR | libc::EAGAIN) if clock::now_ns() < until.end_ns => continue,
            Err(libc::EINTR | libc::EAGAIN) => return Ended::Done,
            Err(errno) => return Ended::Failed(errno),
        };
        let realtime_ns = clock::realtime_ns();
        let now_ns = clock::now_ns();
        let stamps = inlet.stamps(controls);
        let latency_ns = realtime_ns - stamps.kernel_ns.unwrap_or(realtime_ns);
        let t_ns = now_ns - latency_ns;
        match filter.judge(inlet.bytes(length), t_ns) {
            Verdict::Take => seen.packets += 1,
            Verdict::Leave => {
                if stop.is_set() {
                    return Ended::Stopped;
                }
                continue;
            }
            Verdict::End => return Ended::Done,
        }
        seen.note_drops(stamps.dropped);
        let is_trusted = offset.trusts(realtime_ns - now_ns, t_ns, latency_ns, seen);
        if stamps.kernel_ns.is_none() {
            seen.unstamped += 1;
        } else if is_trusted {
            sink.take(Sample { t_ns, latency_ns });
            left -= 1;
            if latency_ns > until.stop_over_ns {
                stop.set_over(latency_ns);
            }
        } else {
            seen.stepped += 1;
        }
        if let Some(nic_ns) = stamps.nic_ns {
            nic.take(NicStamp { nic_ns, realtime_ns });
        }
        if stop.is_set() {
            return Ended::Stopped;
        }
    }
    Ended::Done
}

impl Seen {
    #[inline(always)]
    fn note_drops(&mut self, dropped: Option<u32>) {
        if let Some(now) = dropped {
            self.dropped = Some((self.dropped.map_or(now, |(first, _)| first), now));
        }
    }
}

/// Between the two clock reads of a packet lies less than this, unless the thread was interrupted
/// there, ns.
const INTERRUPTED_NS: i64 = 10_000;

/// How far `CLOCK_REALTIME` is ahead of `CLOCK_MONOTONIC`: always the same, until it is stepped.
#[derive(Debug)]
struct Offset {
    known_ns: i64,
    /// By which clock earlier stamps were made is not known.
    trusted_from_ns: i64,
}

impl Offset {
    fn new() -> Self {
        Self { known_ns: settled(), trusted_from_ns: i64::MIN }
    }

    /// Whether the stamp at `t_ns` and the clock it was compared with are of one kind.
    #[inline(always)]
    fn trusts(&mut self, offset_ns: i64, t_ns: i64, latency_ns: i64, seen: &mut Seen) -> bool {
        if (offset_ns - self.known_ns).abs() > INTERRUPTED_NS {
            self.look(settled(), seen);
        }
        t_ns >= self.trusted_from_ns && latency_ns >= 0
    }

    #[cold]
    fn look(&mut self, settled_ns: i64, seen: &mut Seen) {
        let step_ns = settled_ns - self.known_ns;
        if step_ns.abs() > INTERRUPTED_NS {
            seen.step_ns = step_ns;
            self.known_ns = settled_ns;
            self.trusted_from_ns = clock::now_ns();
        }
    }
}

/// The offset by the least interrupted of a few pairs of clock reads: an interruption makes it
/// smaller.
#[cold]
fn settled() -> i64 {
    (0..5).map(|_| clock::realtime_ns() - clock::now_ns()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;

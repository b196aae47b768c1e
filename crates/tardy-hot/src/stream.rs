//! The loop of the `stream` probe: one end sends packets on a schedule, receives others, or does
//! both in one thread.
//!
//! # The schedule
//!
//! It is open: the time of each packet is known before the first is sent, and none is ever put off
//! or left out because another was late. Behind its schedule the loop sends at once, and each
//! packet still carries the time that it should have had: the wait is part of its latency. A packet
//! that the socket does not take is counted and the schedule continues.
//!
//! # What lies between the clock reads
//!
//! `sent_ns` of a packet is the clock read that ended the wait for its time; the system call that
//! sends comes after it. `received_ns` is read when the call that received it has returned. Between
//! the two are both system calls, what carries the packet, and where the receiver slept, its
//! wake-up.
//!
//! # Sending and receiving in one thread
//!
//! After each packet sent the socket is checked once, so that an end behind its schedule still
//! receives. Until the next packet is due, whatever comes is received, but in the last
//! [`GUARD_NS`] a spinning end reads nothing but the clock.

mod arrivals;
mod socket;
mod tcp;
mod udp;

use core::{
    ffi::c_int,
    sync::atomic::{AtomicI32, AtomicU64, Ordering},
};

use crate::{
    clock,
    packet::Packet,
    ring::Writer,
    stop::Stop,
    wakeup::{Ended, sleep},
};
pub use arrivals::{Arrivals, Passage, TracedArrivals, TracedPassage};
pub use tcp::Tcp;
pub use udp::Udp;

/// A spinning end stops checking its socket this long before a packet is due, ns: receiving one
/// packet takes less.
pub const GUARD_NS: i64 = 5_000;

/// What was there to be received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecvOutcome {
    /// One packet.
    Packet(Packet),
    /// Something else, which is gone now.
    Foreign,
    /// Nothing.
    Nothing,
}

/// One end of a way for packets.
pub trait Packets {
    /// Sends one packet without waiting.
    ///
    /// # Errors
    /// The `errno` of the system call: `EAGAIN` or `ENOBUFS` without room.
    fn send(&mut self, packet: &Packet) -> Result<(), c_int>;

    /// Takes one packet without waiting.
    ///
    /// # Errors
    /// The `errno` of the system call; `ECONNRESET` where the other end is gone.
    fn receive(&mut self) -> Result<RecvOutcome, c_int>;

    /// Sleeps until there is something to receive, or until `until_ns`.
    ///
    /// # Errors
    /// The `errno` of the system call; `EINTR` when a signal ended the wait.
    fn wait(&mut self, until_ns: i64) -> Result<(), c_int>;
}

/// How an end waits for the time of its next packet.
pub trait Pacing {
    /// The end begins to spin this long before a packet is due, ns.
    fn spin_ns(&self) -> i64;
}

/// Sleeps.
#[derive(Debug, Clone, Copy)]
pub struct Sleep;

/// Looks at the clock all the time.
#[derive(Debug, Clone, Copy)]
pub struct SpinPacing;

/// Sleeps until this number of ns before a packet is due, then spins.
#[derive(Debug, Clone, Copy)]
pub struct Hybrid(pub i64);

impl Pacing for Sleep {
    #[inline(always)]
    fn spin_ns(&self) -> i64 {
        0
    }
}

impl Pacing for SpinPacing {
    #[inline(always)]
    fn spin_ns(&self) -> i64 {
        i64::MAX
    }
}

impl Pacing for Hybrid {
    #[inline(always)]
    fn spin_ns(&self) -> i64 {
        self.0
    }
}

/// Time from one packet to the next: whole ns, and parts of 2^-32 ns, so that no rate drifts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketPeriod {
    /// Whole ns.
    pub ns: i64,
    /// Parts of 2^-32 ns.
    pub fraction: u32,
}

impl PacketPeriod {
    /// A schedule of `per_1000_s` packets in 1,000 s, at least one.
    #[must_use]
    pub const fn of_rate(per_1000_s: u64) -> Self {
        let per_1000_s = if per_1000_s == 0 { 1 } else { per_1000_s as u128 };
        let parts = (1_000_000_000_000_u128 << 32) / per_1000_s;
        Self { ns: (parts >> 32) as i64, fraction: parts as u32 }
    }

    const fn parts(self) -> u128 {
        ((self.ns as u128) << 32) | self.fraction as u128
    }

    /// How many packets of a schedule that begins at `first_ns` are due before `t_ns`.
    #[must_use]
    pub const fn packets_before(self, first_ns: i64, t_ns: i64) -> u64 {
        if t_ns <= first_ns {
            return 0;
        }
        (((t_ns as i128 - first_ns as i128) as u128) << 32).div_ceil(self.parts()) as u64
    }
}

/// When packets are due, and as what they go.
#[derive(Debug, Clone, Copy)]
pub struct PacketSchedule {
    /// When the first is due, ns.
    pub first_ns: i64,
    /// From one to the next.
    pub period: PacketPeriod,
    /// How many.
    pub packets: u64,
    /// The first whose fate is recorded; those before warm up.
    pub recorded_from: u64,
    /// Their flow.
    pub flow: u32,
}

/// What one end counts, for others to read meanwhile.
#[derive(Debug, Default)]
pub struct Counts {
    /// Packets whose time came, sent or not.
    pub due: AtomicU64,
    /// Of those whose fate is recorded: the socket did not take them.
    pub unsent: AtomicU64,
    /// Of those not taken: for another reason than that there was no room.
    pub failed: AtomicU64,
    /// The `errno` of the last of these; 0 for none.
    pub errno: AtomicI32,
    /// What arrived and was no packet of this session.
    pub foreign: AtomicU64,
}

/// When a loop ends, beside its schedule.
#[derive(Debug, Clone, Copy)]
pub struct StreamLimits<'a> {
    /// It receives until then, and sends no packet after it, ns.
    pub until_ns: i64,
    /// The run has to end.
    pub stop: &'a Stop,
    /// All that was waited for has come: it sends what is still due, and no longer receives.
    pub enough: &'a Stop,
}

impl StreamLimits<'_> {
    #[inline(always)]
    fn over(&self) -> bool {
        self.stop.is_set() || self.enough.is_set()
    }
}

/// One end: what it sends and receives by, and where that is noted.
#[derive(Debug)]
pub struct StreamEnd<'a, P, W, A = Writer<Passage>> {
    /// Its way.
    pub port: &'a mut P,
    /// How it waits.
    pub pace: W,
    /// The number that both ends know.
    pub session: u64,
    /// Where packets that arrived go.
    pub passages: &'a mut A,
    /// What it counts.
    pub counts: &'a Counts,
}

/// Sends all packets of `schedule`.
///
/// Not inlined, so that the loop stands alone in a profile.
#[inline(never)]
pub fn send<P: Packets, W: Pacing, A: Arrivals>(
    end: &mut StreamEnd<'_, P, W, A>,
    schedule: &PacketSchedule,
    limits: StreamLimits<'_>,
) -> Ended {
    go::<true, false, P, W, A>(end, schedule, limits)
}

/// Receives until the limits say otherwise.
///
/// Not inlined, so that the loop stands alone in a profile.
#[inline(never)]
pub fn receive<P: Packets, W: Pacing, A: Arrivals>(
    end: &mut StreamEnd<'_, P, W, A>,
    limits: StreamLimits<'_>,
) -> Ended {
    linger(end, limits)
}

/// Sends all packets of `schedule` and receives meanwhile, and afterwards until the limits say
/// otherwise.
///
/// Not inlined, so that the loop stands alone in a profile.
#[inline(never)]
pub fn both<P: Packets, W: Pacing, A: Arrivals>(
    end: &mut StreamEnd<'_, P, W, A>,
    schedule: &PacketSchedule,
    limits: StreamLimits<'_>,
) -> Ended {
    match go::<true, true, P, W, A>(end, schedule, limits) {
        Ended::Done => linger(end, limits),
        other => other,
    }
}

#[inline(always)]
fn go<const SENDS: bool, const RECEIVES: bool, P: Packets, W: Pacing, A: Arrivals>(
    end: &mut StreamEnd<'_, P, W, A>,
    schedule: &PacketSchedule,
    limits: StreamLimits<'_>,
) -> Ended {
    let (mut due_ns, mut fraction) = (schedule.first_ns, 0_u32);
    for number in 0..schedule.packets {
        let sent_ns = match wait_for::<RECEIVES, P, W, A>(end, due_ns, limits) {
            Ok(now_ns) => now_ns,
            Err(ended) => return ended,
        };
        let packet = Packet {
            flow: schedule.flow,
            session: end.session,
            number,
            scheduled_ns: due_ns,
            sent_ns,
            far_received_ns: 0,
            far_sent_ns: 0,
        };
        if let Err(errno) = end.port.send(&packet)
            && not_sent(end.counts, errno, number >= schedule.recorded_from)
        {
            return Ended::Failed(errno);
        }
        end.counts.due.store(number + 1, Ordering::Relaxed);
        if RECEIVES && let Err(errno) = take(end) {
            return Ended::Failed(errno);
        }
        let (sum, carry) = fraction.overflowing_add(schedule.period.fraction);
        fraction = sum;
        due_ns += schedule.period.ns + i64::from(carry);
    }
    Ended::Done
}

/// Waits until `due_ns`, receives meanwhile, and returns the clock read that ended it.
#[inline(always)]
fn wait_for<const RECEIVES: bool, P: Packets, W: Pacing, A: Arrivals>(
    end: &mut StreamEnd<'_, P, W, A>,
    due_ns: i64,
    limits: StreamLimits<'_>,
) -> Result<i64, Ended> {
    let spin_ns = end.pace.spin_ns();
    loop {
        let now_ns = clock::now_ns();
        if limits.stop.is_set() {
            return Err(Ended::Stopped);
        }
        let left_ns = due_ns - now_ns;
        if left_ns <= 0 {
            if now_ns >= limits.until_ns {
                return Err(Ended::Done);
            }
            return Ok(now_ns);
        }
        let is_spinning = left_ns <= spin_ns;
        if RECEIVES && (!is_spinning || left_ns > GUARD_NS) {
            match take(end) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(errno) => return Err(Ended::Failed(errno)),
            }
        }
        if is_spinning {
            core::hint::spin_loop();
            continue;
        }
        let errno = if RECEIVES {
            end.port.wait(due_ns - spin_ns).err().unwrap_or(0)
        } else {
            sleep(libc::TIMER_ABSTIME, due_ns - spin_ns)
        };
        if errno != 0 && errno != libc::EINTR {
            return Err(Ended::Failed(errno));
        }
    }
}

/// Receives until the limits say otherwise.
#[inline(always)]
fn linger<P: Packets, W: Pacing, A: Arrivals>(
    end: &mut StreamEnd<'_, P, W, A>,
    limits: StreamLimits<'_>,
) -> Ended {
    // Nothing is due, so an end that spins only before that has nothing to spin for.
    let is_spinning = end.pace.spin_ns() == i64::MAX;
    loop {
        match take(end) {
            Ok(true) if !limits.over() => continue,
            Ok(_) => {}
            Err(errno) => return Ended::Failed(errno),
        }
        if limits.stop.is_set() {
            return Ended::Stopped;
        }
        if limits.enough.is_set() || clock::now_ns() >= limits.until_ns {
            return Ended::Done;
        }
        if is_spinning {
            core::hint::spin_loop();
            continue;
        }
        match end.port.wait(limits.until_ns) {
            Ok(()) | Err(libc::EINTR) => {}
            Err(errno) => return Ended::Failed(errno),
        }
    }
}

/// Takes what is there, and says whether there was something.
#[inline(always)]
fn take<P: Packets, W: Pacing, A: Arrivals>(
    end: &mut StreamEnd<'_, P, W, A>,
) -> Result<bool, c_int> {
    match end.port.receive()? {
        RecvOutcome::Nothing => return Ok(false),
        RecvOutcome::Packet(packet) if packet.session == end.session => {
            end.passages.take(Passage { packet, received_ns: clock::now_ns() });
        }
        RecvOutcome::Packet(_) | RecvOutcome::Foreign => add(&end.counts.foreign),
    }
    Ok(true)
}

/// Counts a packet that was not taken, and says whether none will ever be.
#[cold]
fn not_sent(counts: &Counts, errno: c_int, is_recorded: bool) -> bool {
    if is_recorded {
        add(&counts.unsent);
    }
    if !matches!(errno, libc::EAGAIN | libc::ENOBUFS) {
        add(&counts.failed);
        counts.errno.store(errno, Ordering::Relaxed);
    }
    matches!(errno, libc::EPIPE | libc::ECONNRESET | libc::EBADF | libc::ENOTSOCK | libc::ENOTCONN)
}

/// Zeros, `size` bytes of them, their memory already written to.
fn buffer(size: usize) -> Box<[u8]> {
    // Zeros from the start would be pages that were not written to yet.
    let mut bytes = vec![1; size].into_boxed_slice();
    std::hint::black_box(&mut bytes).fill(0);
    bytes
}

/// One writer only, so that no locked addition is needed.
#[inline(always)]
fn add(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests;

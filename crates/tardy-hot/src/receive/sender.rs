//! The sender of the `receive` probe: one packet at each time of a schedule.

use core::{ffi::c_int, ptr};

use super::inlet::errno;
use crate::{clock, packet::Packet, stop::Stop, wakeup::Ended};

/// A connected socket, and the packet that goes through it; its memory is touched.
#[derive(Debug)]
pub struct ScheduledSender {
    socket: c_int,
    session: u64,
    bytes: Box<[u8]>,
}

/// The times of a schedule, `CLOCK_MONOTONIC` ns.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Of the first packet.
    pub first_ns: i64,
    /// From each to the next; must be positive.
    pub period_ns: i64,
    /// The packets from here on are counted.
    pub start_ns: i64,
    /// No packet is sent at or after this.
    pub end_ns: i64,
}

/// What came of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Packets that were sent, of those that are counted.
    pub sent: u64,
    /// Packets that the kernel would not send, of those that are counted.
    pub refused: u64,
    /// The largest time from that of the schedule to just before sending, ns.
    pub latest_ns: i64,
}

impl ScheduledSender {
    /// `socket` stays the caller's and must outlive this. `size` is at least
    /// [`LEN`](crate::packet::LEN).
    #[must_use]
    pub fn new(socket: c_int, session: u64, size: usize) -> Self {
        // What the compiler does not know to be zero forces the pages in.
        let mut bytes = vec![core::hint::black_box(0xff); size].into_boxed_slice();
        bytes.fill(0);
        Self { socket, session, bytes }
    }

    /// Sends a packet at each time, those that are late at once; until the end or `stop`. What
    /// comes of it is added to `sent`.
    ///
    /// Not inlined, so that the loop stands alone in a profile.
    #[inline(never)]
    pub fn send_all(&mut self, times: Times, sent: &mut Sent, stop: &Stop) -> Ended {
        let mut scheduled_ns = times.first_ns;
        let mut number = 0;
        while scheduled_ns < times.end_ns {
            let now_ns = match wait_until(scheduled_ns) {
                _ if stop.is_set() => return Ended::Stopped,
                Ok(now_ns) => now_ns,
                Err(libc::EINTR) => continue,
                Err(errno) => return Ended::Failed(errno),
            };
            if now_ns >= times.end_ns {
                break;
            }
            let outcome = self.send(number, scheduled_ns, now_ns);
            if scheduled_ns >= times.start_ns {
                sent.latest_ns = sent.latest_ns.max(now_ns - scheduled_ns);
                sent.sent += u64::from(outcome.is_ok());
                sent.refused += u64::from(outcome.is_err());
            }
            if let Err(errno @ (libc::EMSGSIZE | libc::EBADF | libc::ENOTCONN)) = outcome {
                return Ended::Failed(errno);
            }
            number += 1;
            scheduled_ns += times.period_ns;
        }
        Ended::Done
    }

    #[inline(always)]
    fn send(&mut self, number: u64, scheduled_ns: i64, sent_ns: i64) -> Result<(), c_int> {
        let session = self.session;
        Packet { session, number, scheduled_ns, sent_ns, ..Packet::default() }
            .write(&mut self.bytes);
        // SAFETY: the bytes are this one's own and as many as said.
        let sent = unsafe {
            libc::send(
                self.socket,
                self.bytes.as_ptr().cast(),
                self.bytes.len(),
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            )
        };
        if sent < 0 { Err(errno()) } else { Ok(()) }
    }
}

/// What time it is when `ns` has come.
#[inline(always)]
fn wait_until(ns: i64) -> Result<i64, c_int> {
    let now_ns = clock::now_ns();
    if now_ns >= ns {
        return Ok(now_ns);
    }
    let request = clock::to_timespec(ns);
    // SAFETY: `request` is a valid timespec, and a null remainder is allowed.
    let errno = unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const request,
            ptr::null_mut(),
        )
    };
    if errno == 0 { Ok(clock::now_ns()) } else { Err(errno) }
}

#[cfg(test)]
mod tests {
    use std::{net::UdpSocket, os::fd::AsRawFd};

    use super::*;
    use crate::packet::LEN;

    #[test]
    fn each_time_of_the_schedule_has_its_packet_late_or_not() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(receiver.local_addr().unwrap()).unwrap();
        // The first half lies in the past already.
        let now_ns = clock::now_ns();
        let (first_ns, period_ns) = (now_ns - 10_000_000, 1_000_000);
        let end_ns = now_ns + 1_000_000_000;
        let times = Times { first_ns, period_ns, start_ns: first_ns + period_ns * 4, end_ns };
        let stop = Stop::new();
        let mut sent = Sent::default();
        let (mut sender, mut bytes) =
            (ScheduledSender::new(socket.as_raw_fd(), 7, LEN + 8), [0; 100]);
        std::thread::scope(|scope| {
            scope.spawn(|| sender.send_all(times, &mut sent, &stop));
            for number in 0..20 {
                assert_eq!(receiver.recv(&mut bytes).unwrap(), LEN + 8);
                let packet = Packet::read(&bytes).unwrap();
                let scheduled_ns = first_ns + period_ns * number as i64;
                let found = (packet.session, packet.number, packet.scheduled_ns);
                assert_eq!(found, (7, number, scheduled_ns));
                assert!(packet.sent_ns >= scheduled_ns);
            }
            stop.set();
        });
        assert!(sent.sent >= 16 && sent.refused == 0, "{sent:?}");
        assert!(sent.latest_ns > 0);
    }

    #[test]
    fn nobody_there_is_no_end_and_a_packet_too_long_is() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        // Bound to itself, then gone: nobody listens there.
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        socket.connect(gone).unwrap();
        let now_ns = clock::now_ns();
        let times = Times {
            first_ns: now_ns,
            period_ns: 1_000_000,
            start_ns: now_ns,
            end_ns: now_ns + 10_000_000,
        };
        let mut sent = Sent::default();
        let mut sender = ScheduledSender::new(socket.as_raw_fd(), 7, LEN);
        assert_eq!(sender.send_all(times, &mut sent, &Stop::new()), Ended::Done);
        assert!(sent.refused > 0 || sent.sent < 2, "{sent:?}");
        let now_ns = clock::now_ns();
        let times = Times { first_ns: now_ns, end_ns: now_ns + 1_000_000_000, ..times };
        let mut sender = ScheduledSender::new(socket.as_raw_fd(), 7, 70_000);
        let ended = sender.send_all(times, &mut sent, &Stop::new());
        assert_eq!(ended, Ended::Failed(libc::EMSGSIZE));
    }
}

//! The loops of the `pingpong` probe: one end sends and waits for the answer, the other answers.
//!
//! # What lies between the clock reads
//!
//! One clock read, [`Port::send`], [`Port::receive`], one clock read. In a sample are both ends'
//! system calls, both wake-ups and whatever carries the message, there and back; half of one clock
//! read on each side. Recording lies outside.

use core::{
    ffi::c_int,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    clock,
    ring::Sample,
    stop::Stop,
    wakeup::{Ended, Sink, Until},
};

/// One end of a way for messages. A message carries its number modulo 256, so that an answer that
/// comes too late is known from the one that is waited for.
pub trait Port {
    /// Sends the message `number`.
    ///
    /// # Errors
    /// The `errno` of the system call.
    fn send(&mut self, number: u8) -> Result<(), c_int>;

    /// Waits for a message and returns its number.
    ///
    /// # Errors
    /// The `errno` of the system call: `EINTR` when a signal ended the wait; `EMSGSIZE` for a
    /// message that is longer than agreed, `EBADMSG` for one that is shorter; `ECONNRESET` where
    /// the other end is gone.
    fn receive(&mut self) -> Result<u8, c_int>;
}

/// The longest pause that a helper gets, ns.
const PAUSE_NS: i64 = 50_000_000;

/// Sends, waits for the answer, hands the time over; until `until` or `stop` ends it. Between two
/// turns it pauses for a helper that asks for it.
///
/// A wait that a signal ends while `stop` is not set gives its message up: it counts as missed, and
/// the next one is sent. The thread that sees no progress sends that signal.
///
/// Not inlined, so that the loop stands alone in a profile.
#[inline(never)]
pub fn ping<P: Port, S: Sink>(port: &mut P, sink: &mut S, until: Until, stop: &Stop) -> Ended {
    let mut number = 0_u8;
    let mut left = until.samples;
    while left > 0 {
        left -= 1;
        number = number.wrapping_add(1);
        let t_ns = clock::now_ns();
        if t_ns >= until.end_ns {
            return Ended::Done;
        }
        match round_trip(port, number) {
            Ok(()) => {}
            Err(_) if stop.is_set() => return Ended::Stopped,
            Err(libc::EINTR) => {
                sink.miss(1);
                continue;
            }
            Err(errno) => return Ended::Failed(errno),
        }
        let latency_ns = clock::now_ns() - t_ns;
        sink.take(Sample { t_ns, latency_ns });
        if latency_ns > until.stop_over_ns {
            stop.set_over(latency_ns);
        }
        if stop.is_set() {
            return Ended::Stopped;
        }
        // No message is on its way.
        if stop.pause().is_asked() {
            stop.pause().sleep(PAUSE_NS);
        }
    }
    Ended::Done
}

#[inline(always)]
fn round_trip<P: Port>(port: &mut P, number: u8) -> Result<(), c_int> {
    port.send(number)?;
    // Answers to messages that were given up may still come.
    while port.receive()? != number {}
    Ok(())
}

/// Answers each message with its number, until `stop` ends it. How many were answered is added to
/// `answered`.
///
/// Not inlined, so that the loop stands alone in a profile.
#[inline(never)]
pub fn pong<P: Port>(port: &mut P, stop: &Stop, answered: &mut u64) -> Ended {
    answer(port, stop, answered, || {})
}

/// The same; when it had each message is written to `received_ns` before it answers.
///
/// Not inlined, so that the loop stands alone in a profile.
#[inline(never)]
pub fn pong_stamped<P: Port>(
    port: &mut P,
    stop: &Stop,
    answered: &mut u64,
    received_ns: &AtomicU64,
) -> Ended {
    answer(port, stop, answered, || {
        received_ns.store(clock::now_ns() as u64, Ordering::Release);
    })
}

#[inline(always)]
fn answer<P: Port>(port: &mut P, stop: &Stop, answered: &mut u64, note: impl Fn()) -> Ended {
    loop {
        let number = port.receive().inspect(|_| note());
        match number.and_then(|number| port.send(number)) {
            Ok(()) => *answered += 1,
            Err(_) if stop.is_set() => return Ended::Stopped,
            Err(libc::EINTR) => {}
            Err(errno) => return Ended::Failed(errno),
        }
        if stop.is_set() {
            return Ended::Stopped;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, sync::Arc};

    use super::*;
    use crate::wakeup::{Counted, Series};

    /// Answers by a script: what the n-th receive returns.
    struct Scripted {
        sent: Vec<u8>,
        answers: VecDeque<Result<u8, c_int>>,
    }

    impl Port for Scripted {
        fn send(&mut self, number: u8) -> Result<(), c_int> {
            self.sent.push(number);
            Ok(())
        }

        fn receive(&mut self) -> Result<u8, c_int> {
            self.answers.pop_front().unwrap_or(Err(libc::ECONNRESET))
        }
    }

    fn pinged(answers: &[Result<u8, c_int>], samples: u64) -> (Ended, Vec<u8>, u64, u64) {
        let series = Arc::new(Series::default());
        let mut port = Scripted { sent: Vec::new(), answers: answers.iter().copied().collect() };
        let until = Until { end_ns: i64::MAX, samples, stop_over_ns: i64::MAX };
        let ended = ping(&mut port, &mut Counted(Arc::clone(&series)), until, &Stop::new());
        let totals = series.tally.totals();
        (ended, port.sent, totals.count, totals.missed)
    }

    #[test]
    fn each_answer_is_a_sample_and_no_more_are_sent_than_asked_for() {
        assert_eq!(pinged(&[Ok(1), Ok(2)], 2), (Ended::Done, vec![1, 2], 2, 0));
    }

    #[test]
    fn a_message_given_up_is_missed_and_its_late_answer_belongs_to_no_other() {
        let answers = [Ok(1), Err(libc::EINTR), Ok(2), Ok(3)];
        assert_eq!(pinged(&answers, 3), (Ended::Done, vec![1, 2, 3], 2, 1));
    }

    /// Always answers, and counts in shared memory.
    struct Answering(Arc<[AtomicU64; 2]>, u8);

    impl Port for Answering {
        fn send(&mut self, number: u8) -> Result<(), c_int> {
            self.0[0].fetch_add(1, Ordering::SeqCst);
            self.1 = number;
            Ok(())
        }

        fn receive(&mut self) -> Result<u8, c_int> {
            self.0[1].fetch_add(1, Ordering::SeqCst);
            Ok(self.1)
        }
    }

    #[test]
    fn no_message_is_on_its_way_while_a_helper_has_its_pause() {
        let (stop, counts) = (Arc::new(Stop::new()), Arc::<[AtomicU64; 2]>::default());
        let (own_stop, mut port) = (Arc::clone(&stop), Answering(Arc::clone(&counts), 0));
        let pings = std::thread::spawn(move || {
            let until = Until { end_ns: i64::MAX, samples: u64::MAX, stop_over_ns: i64::MAX };
            ping(&mut port, &mut Counted(Arc::default()), until, &own_stop)
        });
        for _ in 0..100 {
            if stop.pause().begin(120_000_000_000) {
                let [sent, received] = [0, 1].map(|of: usize| counts[of].load(Ordering::SeqCst));
                assert_eq!(sent, received);
                stop.pause().end();
            }
        }
        stop.set();
        assert_eq!(pings.join().unwrap(), Ended::Stopped);
    }

    #[test]
    fn a_port_that_fails_ends_the_loop_with_its_error() {
        let (ended, ..) = pinged(&[Ok(1)], 5);
        assert_eq!(ended, Ended::Failed(libc::ECONNRESET));
    }

    #[test]
    fn the_other_end_answers_with_the_same_numbers() {
        let mut port = Scripted { sent: Vec::new(), answers: [Ok(7), Ok(8)].into() };
        let mut answered = 0;
        let ended = pong(&mut port, &Stop::new(), &mut answered);
        assert_eq!((ended, port.sent), (Ended::Failed(libc::ECONNRESET), vec![7, 8]));
        assert_eq!(answered, 2);
    }
}

//! Selects the packets to measure: all in a time range, or those of one sender.

use super::{SequencePosition, SequenceTracker};
use crate::packet::Packet;

/// Verdict on a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It counts.
    Take,
    /// It does not: another sender, a duplicate, or before the start.
    Leave,
    /// It came after the end.
    End,
}

/// Which packets count.
pub trait Filter {
    /// Judges a packet that was stamped at `t_ns`, and takes note of it.
    fn judge(&mut self, bytes: &[u8], t_ns: i64) -> Verdict;
}

/// All that were stamped within a span of time, ns.
#[derive(Debug, Clone, Copy)]
pub struct AcceptAll {
    /// The first moment.
    pub start_ns: i64,
    /// The moment after the last one.
    pub end_ns: i64,
}

impl Filter for AcceptAll {
    #[inline(always)]
    fn judge(&mut self, _: &[u8], t_ns: i64) -> Verdict {
        match t_ns {
            _ if t_ns >= self.end_ns => Verdict::End,
            _ if t_ns >= self.start_ns => Verdict::Take,
            _ => Verdict::Leave,
        }
    }
}

/// Packets of one sender that were scheduled at or after the start.
#[derive(Debug, Default)]
pub struct Own {
    /// The number that its packets have.
    pub session: u64,
    /// Where its packet begins in what is read: after the headers, where those are read too.
    pub at: usize,
    /// The first scheduled time, ns.
    pub start_ns: i64,
    /// What came of them.
    pub order: SequenceTracker,
    /// Packets of others.
    pub foreign: u64,
}

impl Filter for Own {
    #[inline(always)]
    fn judge(&mut self, bytes: &[u8], t_ns: i64) -> Verdict {
        let packet = bytes.get(self.at..).and_then(Packet::read);
        let Some(packet) = packet.filter(|packet| packet.session == self.session) else {
            self.foreign += u64::from(t_ns >= self.start_ns);
            return Verdict::Leave;
        };
        if packet.scheduled_ns < self.start_ns {
            return Verdict::Leave;
        }
        match self.order.note(packet.number) {
            SequencePosition::Again => Verdict::Leave,
            SequencePosition::Next | SequencePosition::Behind => Verdict::Take,
        }
    }
}

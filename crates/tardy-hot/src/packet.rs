//! The packet of a stream: what its first bytes mean. The rest, up to the size asked for, is zeros.
//!
//! | bytes | meaning (little-endian) |
//! | --- | --- |
//! | 0..4 | [`MAGIC`] |
//! | 4..8 | flow: which of several streams |
//! | 8..16 | session: a number that only both ends know |
//! | 16..24 | number of the packet in its flow, from 0 |
//! | 24..32 | scheduled time, ns of the sender's `CLOCK_MONOTONIC` |
//! | 32..40 | time just before it was sent, ns of the same clock |
//! | 40..48 | time when the remote endpoint had it, ns of its clock; 0 on the way there |
//! | 48..56 | time just before the remote endpoint sent it back; 0 on the way there |

/// Bytes that every packet has.
pub const LEN: usize = 56;

/// The first four bytes: no other program's packets begin so.
pub const MAGIC: [u8; 4] = *b"tdy1";

/// What a packet says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Packet {
    /// Which of several streams.
    pub flow: u32,
    /// A number that only both ends know.
    pub session: u64,
    /// From 0, in the order of the schedule.
    pub number: u64,
    /// When it should have been sent, ns of the sender's clock.
    pub scheduled_ns: i64,
    /// Just before it was sent, ns of the sender's clock.
    pub sent_ns: i64,
    /// When the remote endpoint had it, ns of its clock; 0 on the way there.
    pub far_received_ns: i64,
    /// Just before the remote endpoint sent it back, ns of its clock; 0 on the way there.
    pub far_sent_ns: i64,
}

impl Packet {
    /// Writes it into the first bytes of `bytes`; nothing happens where those are fewer than
    /// [`LEN`].
    #[inline(always)]
    pub fn write(&self, bytes: &mut [u8]) {
        let Some(head) = bytes.first_chunk_mut::<LEN>() else { return };
        head[..4].copy_from_slice(&MAGIC);
        head[4..8].copy_from_slice(&self.flow.to_le_bytes());
        head[8..16].copy_from_slice(&self.session.to_le_bytes());
        head[16..24].copy_from_slice(&self.number.to_le_bytes());
        head[24..32].copy_from_slice(&self.scheduled_ns.to_le_bytes());
        head[32..40].copy_from_slice(&self.sent_ns.to_le_bytes());
        head[40..48].copy_from_slice(&self.far_received_ns.to_le_bytes());
        head[48..56].copy_from_slice(&self.far_sent_ns.to_le_bytes());
    }

    /// Reads it from the first bytes; `None` if they are too few or begin otherwise.
    #[inline(always)]
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let head = bytes.first_chunk::<LEN>().filter(|head| head[..4] == MAGIC)?;
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&head[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Some(Self {
            flow: u32::from_le_bytes([head[4], head[5], head[6], head[7]]),
            session: word(8),
            number: word(16),
            scheduled_ns: word(24) as i64,
            sent_ns: word(32) as i64,
            far_received_ns: word(40) as i64,
            far_sent_ns: word(48) as i64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let packet = Packet {
            flow: 3,
            session: u64::MAX - 1,
            number: 1 << 40,
            scheduled_ns: 5,
            sent_ns: -6,
            far_received_ns: i64::MAX,
            far_sent_ns: i64::MIN,
        };
        let mut bytes = [9; LEN + 4];
        packet.write(&mut bytes);
        assert_eq!((Packet::read(&bytes), &bytes[LEN..]), (Some(packet), &[9; 4][..]));
    }

    #[test]
    fn what_is_no_packet_is_none() {
        let mut bytes = [0; LEN];
        assert_eq!(Packet::read(&bytes), None);
        Packet::default().write(&mut bytes);
        assert_eq!(Packet::read(&bytes[..LEN - 1]), None);
        Packet::default().write(&mut bytes[..4]);
    }
}

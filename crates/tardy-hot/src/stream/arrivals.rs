//! Packets that arrived, on their way out of the thread that received them.

use crate::{packet::Packet, ring::Writer, stages::ThreadRecord, trips::LateLeg};

/// A packet that arrived, as its receiver saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Passage {
    /// What it said.
    pub packet: Packet,
    /// When the receiver had it, ns of the receiver's clock.
    pub received_ns: i64,
}

impl Passage {
    /// Bytes that it has between two processes.
    pub const BYTES: usize = crate::packet::LEN + 8;

    /// For another process, which reads it by [`Passage::from_bytes`].
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        self.packet.write(&mut bytes);
        bytes[crate::packet::LEN..].copy_from_slice(&self.received_ns.to_le_bytes());
        bytes
    }

    /// Of another process; `None` if the bytes begin otherwise.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let packet = Packet::read(bytes)?;
        let received_ns = i64::from_le_bytes(*bytes.last_chunk()?);
        Some(Self { packet, received_ns })
    }
}

/// A packet that arrived, and the last wake-up of its receiver by then, whatever that was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TracedPassage {
    /// The packet.
    pub passage: Passage,
    /// As the BPF side recorded it; zeros where nothing is traced.
    pub woken: LateLeg,
}

impl TracedPassage {
    /// Bytes that it has between two processes.
    pub const BYTES: usize = Passage::BYTES + LateLeg::BYTES;

    /// For another process, which reads it by [`TracedPassage::from_bytes`].
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..Passage::BYTES].copy_from_slice(&self.passage.to_bytes());
        bytes[Passage::BYTES..].copy_from_slice(&self.woken.to_bytes());
        bytes
    }

    /// Of another process; `None` if the bytes begin otherwise.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let passage = Passage::from_bytes(bytes.first_chunk()?)?;
        Some(Self { passage, woken: LateLeg::from_bytes(bytes.last_chunk()?) })
    }
}

impl From<Passage> for TracedPassage {
    fn from(passage: Passage) -> Self {
        Self { passage, woken: LateLeg::default() }
    }
}

/// Where packets go that arrived.
pub trait Arrivals {
    /// Takes one, by the thread that received it.
    fn take(&mut self, passage: Passage);
}

impl Arrivals for Writer<Passage> {
    #[inline(always)]
    fn take(&mut self, passage: Passage) {
        self.push(passage);
    }
}

/// Takes each with what the BPF side wrote about the thread: a read of its record, after the clock
/// was read.
#[derive(Debug)]
pub struct TracedArrivals<'a> {
    /// The thread's own record.
    pub record: &'a ThreadRecord,
    /// Where packets go.
    pub passages: &'a mut Writer<TracedPassage>,
}

impl Arrivals for TracedArrivals<'_> {
    #[inline(always)]
    fn take(&mut self, passage: Passage) {
        self.passages.push(TracedPassage { passage, woken: LateLeg::read(self.record) });
    }
}

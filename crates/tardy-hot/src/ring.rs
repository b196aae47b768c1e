//! Single samples, or late wake-ups, on their way from one measuring thread to one reader.
//!
//! Bounded: when the reader is late, items are dropped and counted, and the writer never waits.

use crate::sync::{Arc, AtomicU64, AtomicUsize, Ordering, UnsafeCell};

/// One sample of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// The programmed expiry, `CLOCK_MONOTONIC` ns; the wake-up was at `t_ns + latency_ns`.
    pub t_ns: i64,
    /// Lateness in ns, negative when early.
    pub latency_ns: i64,
}

#[repr(align(64))]
#[derive(Debug)]
struct Apart<T>(T);

#[derive(Debug)]
struct Ring<T> {
    slots: Box<[UnsafeCell<T>]>,
    mask: usize,
    /// Next slot to read; written by the reader.
    head: Apart<AtomicUsize>,
    /// Next slot to write; written by the writer.
    tail: Apart<AtomicUsize>,
    dropped: Apart<AtomicU64>,
}

// SAFETY: a slot is written only by the writer while it lies in [tail, head + capacity) and read
// only by the reader while it lies in [head, tail); `head` and `tail` are handed over with
// release and acquire. `Writer` and `Reader` are unique, and their methods take `&mut self`.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: see `Sync`; nothing in it belongs to a thread but the items, which may be sent.
unsafe impl<T: Send> Send for Ring<T> {}

/// The measuring thread's end.
#[derive(Debug)]
pub struct Writer<T> {
    ring: Arc<Ring<T>>,
    tail: usize,
}

/// The reader's end.
#[derive(Debug)]
pub struct Reader<T> {
    ring: Arc<Ring<T>>,
}

/// A ring for at least `capacity` items (rounded up to a power of two, at least 2), its memory
/// already written to.
#[must_use]
pub fn ring<T: Copy + Default>(capacity: usize) -> (Writer<T>, Reader<T>) {
    let capacity = capacity.max(2).next_power_of_two();
    // A value that the compiler does not know to be zero forces the pages in; no slot is read
    // before it is written again.
    let untouched = std::hint::black_box(T::default());
    let ring = Arc::new(Ring {
        slots: (0..capacity).map(|_| UnsafeCell::new(untouched)).collect(),
        mask: capacity - 1,
        head: Apart(AtomicUsize::new(0)),
        tail: Apart(AtomicUsize::new(0)),
        dropped: Apart(AtomicU64::new(0)),
    });
    (Writer { ring: Arc::clone(&ring), tail: 0 }, Reader { ring })
}

impl<T: Copy> Writer<T> {
    /// Hands `item` over, or counts it as dropped where the ring is full.
    #[inline(always)]
    pub fn push(&mut self, item: T) {
        let ring = &*self.ring;
        if self.tail.wrapping_sub(ring.head.0.load(Ordering::Acquire)) > ring.mask {
            let dropped = ring.dropped.0.load(Ordering::Relaxed);
            ring.dropped.0.store(dropped + 1, Ordering::Relaxed);
            return;
        }
        if let Some(slot) = ring.slots.get(self.tail & ring.mask) {
            // SAFETY: the slot lies outside [head, tail), so the reader does not touch it until
            // the store to `tail` below.
            slot.with_mut(|slot| unsafe { *slot = item });
        }
        self.tail = self.tail.wrapping_add(1);
        ring.tail.0.store(self.tail, Ordering::Release);
    }

    /// Items dropped so far because the ring was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.ring.dropped.0.load(Ordering::Relaxed)
    }
}

impl<T: Copy> Reader<T> {
    /// Takes everything that is there, oldest first, and returns how many items that were.
    pub fn drain(&mut self, mut take: impl FnMut(T)) -> usize {
        let ring = &*self.ring;
        let mut head = ring.head.0.load(Ordering::Relaxed);
        let tail = ring.tail.0.load(Ordering::Acquire);
        let there = tail.wrapping_sub(head);
        while head != tail {
            if let Some(slot) = ring.slots.get(head & ring.mask) {
                // SAFETY: the slot lies in [head, tail), so the writer does not touch it until
                // the store to `head` below.
                take(slot.with(|slot| unsafe { *slot }));
            }
            head = head.wrapping_add(1);
            ring.head.0.store(head, Ordering::Release);
        }
        there
    }

    /// Items dropped so far because the ring was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.ring.dropped.0.load(Ordering::Relaxed)
    }
}

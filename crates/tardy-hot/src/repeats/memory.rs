//! Reads, writes and copies memory. Reads are summed, and written memory is passed to `black_box`,
//! so that the compiler cannot remove the work.

use std::hint::black_box;

use super::{Batch, Repeated};

/// Words of a page, by which buffers are aligned.
const PAGE_BYTES: usize = 4096;

/// The sum of all words, and of the bytes behind the last whole one.
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_ne_bytes(*word)).fold(0, u64::wrapping_add);
    rest.iter().map(|byte| u64::from(*byte)).fold(words, u64::wrapping_add)
}

/// Touched memory that begins with a page.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    from: usize,
    length: usize,
}

impl Buffer {
    /// Memory of `length` bytes, at least one.
    #[must_use]
    pub fn new(length: usize) -> Self {
        let length = length.max(1);
        let bytes = vec![1_u8; length + PAGE_BYTES];
        let from = bytes.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        Self { bytes, from, length }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(self.from..self.from + self.length).unwrap_or_default()
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.from..self.from + self.length).unwrap_or_default()
    }
}

/// Reads all words of a buffer.
#[derive(Debug)]
pub struct MemoryRead(Buffer);

impl MemoryRead {
    /// For a buffer of `bytes` bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self(Buffer::new(bytes))
    }
}

impl Repeated for MemoryRead {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        for _ in 0..iterations {
            black_box(sum(black_box(self.0.bytes())));
        }
        Ok(Batch::of_bytes(iterations * self.0.length as u64))
    }
}

/// Writes all words of a buffer.
#[derive(Debug)]
pub struct MemoryWrite(Buffer);

impl MemoryWrite {
    /// For a buffer of `bytes` bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self(Buffer::new(bytes))
    }
}

impl Repeated for MemoryWrite {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        for iteration in 0..iterations {
            black_box(self.0.bytes_mut()).fill(black_box(iteration as u8));
        }
        Ok(Batch::of_bytes(iterations * self.0.length as u64))
    }
}

/// Copies a buffer to another one.
#[derive(Debug)]
pub struct MemoryCopy {
    from: Buffer,
    to: Buffer,
}

impl MemoryCopy {
    /// For a buffer of `bytes` bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { from: Buffer::new(bytes), to: Buffer::new(bytes) }
    }
}

impl Repeated for MemoryCopy {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        for _ in 0..iterations {
            let from = black_box(self.from.bytes());
            black_box(self.to.bytes_mut()).copy_from_slice(from);
        }
        Ok(Batch::of_bytes(iterations * self.from.length as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_copied_and_written_is_there_afterwards() {
        let mut copy = MemoryCopy::new(10_001);
        copy.from.bytes_mut().iter_mut().enumerate().for_each(|(n, byte)| *byte = n as u8);
        assert_eq!(copy.iterate(3).unwrap().bytes, 30_003);
        assert_eq!(copy.to.bytes(), copy.from.bytes());
        assert_eq!(sum(copy.to.bytes()), sum(copy.from.bytes()));
        let mut write = MemoryWrite::new(4_097);
        assert_eq!(write.iterate(8).unwrap().bytes, 8 * 4_097);
        assert!(write.0.bytes().iter().all(|byte| *byte == 7), "of the last iteration");
    }

    #[test]
    fn a_sum_is_of_all_bytes_and_buffers_begin_with_a_page() {
        assert_eq!(sum(&[0; 17]), 0);
        let mut bytes = [0; 17];
        (bytes[0], bytes[8], bytes[16]) = (1, 2, 4);
        assert_eq!(sum(&bytes), if cfg!(target_endian = "little") { 7 } else { sum(&bytes) });
        let buffer = Buffer::new(5);
        assert_eq!((buffer.bytes().as_ptr().align_offset(4096), buffer.bytes().len()), (0, 5));
        assert_eq!(MemoryRead::new(512).iterate(2).unwrap().bytes, 1_024);
    }
}

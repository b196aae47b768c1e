//! The open file of samples: framed, append-only, readable up to its last whole frame.
//!
//! `samples/NNNN.spool` = magic, then frames: length and CRC-32 of the payload (u32 each, little
//! endian), payload = series (u32), then `t_ns` and `latency_ns` (i64 each) per sample. A frame
//! that is cut short or does not match its checksum ends the reading; it never existed.

use std::io::{self, BufRead, Read};

use tardy_hot::ring::Sample;

/// What a spool begins with.
pub const MAGIC: &[u8; 8] = b"tardysp1";

/// The greatest number of samples in a frame, so that a damaged length cannot ask for much memory.
pub const SAMPLES_A_FRAME: usize = 1 << 16;

const SAMPLE_BYTES: usize = 16;

/// Length, checksum and series of a frame.
const HEAD_BYTES: u64 = 12;

/// Appends frames with the samples of one series to `out`.
pub fn append(out: &mut Vec<u8>, series: u32, samples: &[Sample]) {
    for part in samples.chunks(SAMPLES_A_FRAME) {
        let mut payload = Vec::with_capacity(4 + part.len() * SAMPLE_BYTES);
        payload.extend_from_slice(&series.to_le_bytes());
        for sample in part {
            payload.extend_from_slice(&sample.t_ns.to_le_bytes());
            payload.extend_from_slice(&sample.latency_ns.to_le_bytes());
        }
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
        out.extend_from_slice(&payload);
    }
}

/// Hands over the samples of every whole frame, in the order they were written. Returns how many
/// bytes of the file these frames take, with what it begins with: nothing behind them was read.
///
/// # Errors
/// What reading the file says, or `take`. A file that is not a spool has no frames.
pub fn read(
    mut spool: impl BufRead,
    mut take: impl FnMut(u32, Sample) -> io::Result<()>,
) -> io::Result<u64> {
    let mut magic = [0; MAGIC.len()];
    if !fill(&mut spool, &mut magic)? || magic != *MAGIC {
        return Ok(0);
    }
    let mut whole = MAGIC.len() as u64;
    let mut payload = Vec::new();
    while let Some(series) = next_frame(&mut spool, &mut payload)? {
        for sample in payload.chunks_exact(SAMPLE_BYTES) {
            let (t, latency) = sample.split_at(8);
            take(series, Sample { t_ns: number(t), latency_ns: number(latency) })?;
        }
        whole += HEAD_BYTES + payload.len() as u64;
    }
    Ok(whole)
}

/// Reads one frame's samples into `payload` and returns its series, or nothing at the end.
fn next_frame(spool: &mut impl Read, payload: &mut Vec<u8>) -> io::Result<Option<u32>> {
    let (mut length, mut checksum, mut series) = ([0; 4], [0; 4], [0; 4]);
    if !fill(spool, &mut length)? || !fill(spool, &mut checksum)? {
        return Ok(None);
    }
    let length = u32::from_le_bytes(length) as usize;
    if !(4..=4 + SAMPLES_A_FRAME * SAMPLE_BYTES).contains(&length) {
        return Ok(None);
    }
    payload.resize(length - 4, 0);
    if !fill(spool, &mut series)? || !fill(spool, payload)? {
        return Ok(None);
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&series);
    hasher.update(payload);
    let whole = hasher.finalize() == u32::from_le_bytes(checksum);
    Ok(whole.then(|| u32::from_le_bytes(series)))
}

/// Fills `buffer`, or says that the file ended before.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn number(bytes: &[u8]) -> i64 {
    bytes.try_into().map_or(0, i64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool(frames: u32) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for frame in 0..frames {
            let t_ns = i64::from(frame);
            append(&mut bytes, frame, &[Sample { t_ns, latency_ns: -t_ns }; 3]);
        }
        bytes
    }

    /// Samples that are read, and the bytes that they take.
    fn samples(bytes: &[u8]) -> (usize, u64) {
        let mut there = 0;
        let whole = read(bytes, |series, sample| {
            assert_eq!((i64::from(series), sample.latency_ns), (sample.t_ns, -sample.t_ns));
            there += 1;
            Ok(())
        })
        .unwrap();
        (there, whole)
    }

    #[test]
    fn a_spool_cut_anywhere_gives_its_whole_frames() {
        let bytes = spool(4);
        let frame = (bytes.len() - MAGIC.len()) / 4;
        for cut in 0..=bytes.len() {
            let whole = cut.saturating_sub(MAGIC.len()) / frame;
            let taken = if cut < MAGIC.len() { 0 } else { MAGIC.len() + whole * frame };
            assert_eq!(samples(&bytes[..cut]), (whole * 3, taken as u64), "cut at {cut}");
        }
    }

    #[test]
    fn a_flipped_bit_ends_the_reading_and_invents_nothing() {
        let bytes = spool(3);
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            let (there, taken) = samples(&bytes);
            assert!(there < 9 && taken <= at as u64, "flipped at {at}: {there}, {taken}");
        }
    }
}

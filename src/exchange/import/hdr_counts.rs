//! The encodings of an HdrHistogram, of every version: what stands in a line of a log behind the
//! third comma, as base64.
//!
//! A cookie names the version, and whether the rest is deflated (zlib, behind its length):
//!
//! | version | cookie, deflated | header behind it | counts |
//! | --- | --- | --- | --- |
//! | V0 | `1c8493w8`, `1c8493w9` | digits, lowest, highest, total | w bytes each |
//! | V1 | `1c8493w1`, `1c8493w2` | length, offset, digits, lowest, highest, ratio | w bytes each |
//! | V2 | `1c849313`, `1c849314` | as V1 | ZigZag LEB128, a negative one is a run of zeros |
//!
//! Source: AbstractHistogram.java of HdrHistogram.

use std::io::Read;

use crate::limits::import::{MOST_COUNTS, MOST_UNPACKED as MOST_BYTES};
use base64::{Engine as _, engine::general_purpose::STANDARD};

/// One bucket: its lowest and its highest value, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HdrBucket {
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) count: u64,
}

/// What one holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HdrCounts {
    /// Those with samples, ascending.
    pub(super) buckets: Vec<HdrBucket>,
    /// What its values are to be multiplied by (`integerToDoubleValueConversionRatio`).
    pub(super) ratio: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V0,
    V1,
    V2,
}

/// Reads one; nothing where it is damaged.
pub(super) fn unpack(text: &str) -> Option<HdrCounts> {
    let bytes = STANDARD.decode(text.trim()).ok()?;
    let cookie = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
    match cookie & !0xf0 {
        0x1c84_9302 | 0x1c84_9304 | 0x1c84_9309 => {
            let mut plain = Vec::new();
            // Where less is there the line was cut: the decoder alone would hand over a part.
            let length = u32::from_be_bytes(bytes.get(4..8)?.try_into().ok()?);
            let packed = bytes.get(8..)?.get(..usize::try_from(length).ok()?)?;
            let packed = flate2::read::ZlibDecoder::new(packed);
            packed.take(MOST_BYTES).read_to_end(&mut plain).ok()?;
            read(&plain)
        }
        _ => read(&bytes),
    }
}

fn read(bytes: &[u8]) -> Option<HdrCounts> {
    let mut at = Cursor(bytes);
    let cookie = at.u32()?;
    let version = match cookie & !0xf0 {
        0x1c84_9308 => Version::V0,
        0x1c84_9301 => Version::V1,
        0x1c84_9303 => Version::V2,
        _ => return None,
    };
    if version != Version::V0 {
        let (length, offset) = (at.u32()?, at.u32()?);
        // Go's and JavaScript's libraries write 1, and shift nothing; others are of histograms that
        // were shifted, which no log has.
        if offset > 1 || u64::from(length) > MOST_BYTES {
            return None;
        }
        // Behind it come digits, lowest, highest and ratio: 28 bytes.
        if usize::try_from(length).ok()?.saturating_add(28) > at.0.len() {
            return None;
        }
    }
    let digits = at.u32()?;
    let (lowest, highest) = (at.u64()?, at.u64()?);
    let total_or_ratio = at.u64()?;
    if digits > 5 || lowest == 0 || highest < lowest.saturating_mul(2) {
        return None;
    }
    let layout = Layout::new(digits, lowest);
    let mut buckets = Vec::new();
    let word = usize::try_from((cookie & 0xf0) >> 4).ok()?;
    let mut index = 0_usize;
    while !at.0.is_empty() && index < MOST_COUNTS {
        let count = match version {
            Version::V2 => at.zigzag()?,
            _ => at.word(word)?,
        };
        if count < 0 {
            index = index.checked_add(usize::try_from(count.checked_neg()?).ok()?)?;
            continue;
        }
        if count > 0 {
            let (low, high) = layout.values(index)?;
            buckets.push(HdrBucket { low, high, count: u64::try_from(count).ok()? });
        }
        index += 1;
    }
    let ratio = if version == Version::V0 { 1.0 } else { ratio(total_or_ratio) };
    Some(HdrCounts { buckets, ratio })
}

/// Python's library writes the integer 1, of which a float is nearly 0.
fn ratio(bits: u64) -> f64 {
    Some(f64::from_bits(bits)).filter(|ratio| ratio.is_normal() && *ratio > 0.0).unwrap_or(1.0)
}

/// Which values a count is of.
struct Layout {
    unit_bits: u32,
    half_bits: u32,
}

impl Layout {
    fn new(digits: u32, lowest: u64) -> Self {
        // 2 * 10^digits values in the first bucket, rounded up to a power of two.
        let single = 2 * 10_u64.pow(digits);
        Self { unit_bits: lowest.ilog2(), half_bits: single.next_power_of_two().ilog2() - 1 }
    }

    fn values(&self, index: usize) -> Option<(u64, u64)> {
        let half = 1_usize << self.half_bits;
        let (shift, sub) = match index >> self.half_bits {
            0 => (0, index),
            row => (u32::try_from(row - 1).ok()?, (index & (half - 1)) + half),
        };
        let shift = shift.checked_add(self.unit_bits).filter(|shift| *shift < 63)?;
        let sub = u64::try_from(sub).ok()?;
        let low = sub.checked_mul(1 << shift)?;
        Some((low, low.checked_add((1 << shift) - 1)?))
    }
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take(&mut self, bytes: usize) -> Option<u64> {
        let (own, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(own.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte)))
    }

    fn u32(&mut self) -> Option<u32> {
        u32::try_from(self.take(4)?).ok()
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)
    }

    /// A count of this number of bytes.
    fn word(&mut self, bytes: usize) -> Option<i64> {
        if ![2, 4, 8].contains(&bytes) {
            return None;
        }
        // The last may be cut: a writer leaves zeros out.
        i64::try_from(self.take(bytes)?).ok()
    }

    /// At most 9 bytes: the ninth has 8 bits.
    fn zigzag(&mut self) -> Option<i64> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = self.take(1)?;
            if shift == 56 {
                value |= byte << shift;
                break;
            }
            value |= (byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
            shift += 7;
        }
        let half = i64::try_from(value >> 1).ok()?;
        Some(if value & 1 == 0 { half } else { !half })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> (u64, u64) {
        let buckets = unpack(text).unwrap().buckets;
        let count = buckets.iter().map(|bucket| bucket.count).sum();
        (count, buckets.iter().map(|bucket| bucket.high).max().unwrap())
    }

    #[test]
    fn every_version_is_read() {
        // jHiccup 2.0.3 of 2014: its line says a maximum of 0.115 ms, as the begin of a bucket of
        // 16384 ns, and its header says 4683 samples.
        let v0 = "HISTiQAAAEV42pNpmdzBwMDAxAAGfgoMDMxuBjsWQLgMQt4QmrkKQvNugkq8g9KKUJoHSjMzoAJGhl\
                  EwCkbBKBgFo2AUDDkAANEpBrU=";
        // jHiccup 2.0.7, 2.769 ms.
        let v2 = "HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYMcCBvsPEBEJISEuATEZMQ4uASkhIR4nrxg9v2l\
                  MaxhvMekILGZkKmcCAEf2CsI=";
        assert_eq!(count(v0), (4_683, 114_688 + 16_383));
        let (samples, max) = count(v2);
        assert!(samples > 0 && (2_768_000..=2_770_000).contains(&max), "{samples} {max}");
        // By hand: V1 with words of 2 bytes, three counts of 0, 1 and 2 ns.
        let mut v1 = Vec::new();
        for part in [0x1c84_9321_u32, 6, 0, 3] {
            v1.extend(part.to_be_bytes());
        }
        for part in [1_u64, 3_600_000, 0x3ff0_0000_0000_0000] {
            v1.extend(part.to_be_bytes());
        }
        v1.extend([0, 5, 0, 0, 0, 7]);
        assert_eq!(count(&STANDARD.encode(&v1)), (12, 2));
        // With no significant digit: 0, 1, 2 to 3, 4 to 7.
        v1.splice(12..16, [0, 0, 0, 0]);
        v1.splice(4..8, [0, 0, 0, 8]);
        v1.extend([0, 9]);
        let coarse = unpack(&STANDARD.encode(&v1)).unwrap();
        let last = HdrBucket { low: 4, high: 7, count: 9 };
        assert_eq!((coarse.buckets.last(), coarse.ratio), (Some(&last), 1.0));
        assert_eq!(coarse.buckets[1], HdrBucket { low: 2, high: 3, count: 7 });
        for (bits, ratio) in [(0.001_f64.to_bits(), 0.001), (1, 1.0), (0, 1.0), (u64::MAX, 1.0)] {
            v1.splice(32..40, bits.to_be_bytes());
            assert_eq!(unpack(&STANDARD.encode(&v1)).unwrap().ratio, ratio);
        }
        let plain = "HISTEwAAAAYAAAAAAAAAAwAAAAAAAAABAAAAAAAAD/8/8AAAAAAAAP8VAqkTAg==";
        assert_eq!(count(plain).0, 2, "V2 that is not deflated");
    }

    #[test]
    fn damage_is_nothing_and_never_a_panic() {
        let v2 = "HISTEwAAAAYAAAAAAAAAAwAAAAAAAAABAAAAAAAAD/8/8AAAAAAAAP8VAqkTAg==";
        let bytes = STANDARD.decode(v2).unwrap();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let _ = unpack(&STANDARD.encode(&damaged));
                let _ = unpack(&STANDARD.encode(&damaged[..at]));
            }
        }
        assert_eq!(unpack("HISTE"), None);
        let whole = "HISTFAAAAEJ42pNpmSzMwMAgxwABTBDKT4GBgdnNYMcCBvsPEBEWLj45FTExAT4pBSEBKa6UkAgBi\
                     1uM7xjfMMlwMDABAC0CCjM=";
        assert!(unpack(whole).is_some());
        for text in [whole, v2] {
            for end in (4..text.len()).step_by(4) {
                assert_eq!(unpack(&text[..end]), None, "cut where base64 still is whole: {end}");
            }
        }
        assert_eq!(unpack("%"), None);
    }
}

//! How much of the disk peaks may take: what comes beyond that is counted, and the worst is kept
//! all the same.

/// Beyond the room a new worst peak is still kept, in this part of it more.
const RESERVE_PART: u64 = 8;

/// The room for peaks, and what is in it.
#[derive(Debug, Clone)]
pub struct PeakRoom {
    bytes: u64,
    used: u64,
    worst_ns: i64,
    left_out: u64,
}

impl PeakRoom {
    /// Unless the user gives another: hours of peaks that come now and then, and minutes of those
    /// that come at every wake-up.
    pub const DEFAULT_BYTES: u64 = 32 << 20;

    /// Of this size, and empty.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self { bytes, used: 0, worst_ns: i64::MIN, left_out: 0 }
    }

    /// Whether a peak so late, which takes this number of bytes, is kept; else it is counted.
    pub fn take(&mut self, latency_ns: i64, bytes: u64) -> bool {
        let is_worst = latency_ns > self.worst_ns;
        let reserve = if is_worst { self.bytes / RESERVE_PART } else { 0 };
        let used = self.used.saturating_add(bytes);
        if used > self.bytes.saturating_add(reserve) {
            self.left_out += 1;
            return false;
        }
        (self.used, self.worst_ns) = (used, self.worst_ns.max(latency_ns));
        true
    }

    /// How many were not kept.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_room_only_a_new_worst_one_is_kept_and_the_others_are_counted() {
        let mut room = PeakRoom::new(1_000);
        let kept: Vec<i64> = (0..20).filter(|_| room.take(50, 100)).collect();
        assert_eq!((kept.len(), room.left_out()), (10, 10));
        assert!(room.take(60, 100) && !room.take(60, 20) && room.take(61, 25));
        assert!(!room.take(99, 1), "the reserve is full");
        assert_eq!(room.left_out(), 12);
    }
}

//! What has come to one histogram of an attached thread since it was read the last time.

use crate::kernel::{AttachedThread, AttachedTime, bucket_bounds};

/// How often, the sum, the extremes, and how many are in no bucket.
pub(super) type Totals = (u64, i64, (i64, i64), u64);

/// What was read of it the last time.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) count: u64,
    sum_ns: u64,
    above: u64,
    /// By bucket, in order, modulo 2^32.
    buckets: Vec<(u32, u32)>,
}

impl Reading {
    /// Hands over what has come: buckets first, then the totals, if there is something.
    pub(super) fn take(
        &mut self,
        thread: &AttachedThread<'_>,
        time: AttachedTime,
        mut each: impl FnMut(Option<(u32, u32)>, Option<Totals>),
    ) {
        let [count, sum_ns, min_ns, max_ns, above] = thread.totals(time);
        if count == self.count {
            return;
        }
        let mut before = std::mem::take(&mut self.buckets).into_iter().peekable();
        let mut now = Vec::new();
        thread.buckets(time, |bucket, count| {
            let mut last = 0;
            while let Some((_, then)) = before.next_if(|(then, _)| *then <= bucket) {
                last = then;
            }
            now.push((bucket, count));
            let fresh = count.wrapping_sub(last);
            if fresh > 0 {
                each(Some((bucket, fresh)), None);
            }
        });
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let sum = signed(sum_ns.wrapping_sub(self.sum_ns));
        let extremes = (signed(min_ns), signed(max_ns));
        let fresh = (count - self.count, sum, extremes, above - self.above);
        each(None, Some(fresh));
        *self = Self { count, sum_ns, above, buckets: now };
    }
}

/// What stands for the values of a bucket.
pub(super) const fn middle_ns(bucket: u32) -> u64 {
    let (low, next) = bucket_bounds(bucket);
    low + (next - low) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_bucket_stands_for_its_values() {
        assert_eq!((middle_ns(0), middle_ns(63)), (0, 63));
        let (low, next) = bucket_bounds(500);
        assert!(low < middle_ns(500) && middle_ns(500) < next);
    }
}

//! Bounds on what is answered per second, of which no single network can take all.

use std::{
    hash::{BuildHasher as _, RandomState},
    net::IpAddr,
};

use tardy_hot::echo::TokenBucket;

/// Parts of a bucket that is shared.
const PARTS: usize = 64;

/// A limit of messages per second to one part, and in all. Networks fall into parts by a keyed
/// hash, which nobody outside can aim at.
#[derive(Debug)]
pub(super) struct FairBucket {
    /// `None` if no part can take what is another's.
    all: Option<TokenBucket>,
    parts: Vec<TokenBucket>,
    keys: RandomState,
}

impl FairBucket {
    /// A full one of `per_s` in all, at least 2, and half of it to one part: two of them can take
    /// all.
    pub(super) fn shared(per_s: u64, now_ns: i64) -> Self {
        let apart = Self::apart(PARTS, per_s / 2, now_ns);
        Self { all: Some(TokenBucket::new(per_s, now_ns)), ..apart }
    }

    /// A full bucket of `per_s` for each of `parts` parts (at least 1), independent of the others.
    pub(super) fn apart(parts: usize, per_s: u64, now_ns: i64) -> Self {
        let part = || TokenBucket::new(per_s, now_ns);
        let parts = std::iter::repeat_with(part).take(parts.max(1)).collect();
        Self { all: None, parts, keys: RandomState::new() }
    }

    /// Takes one for `from`, where there is one.
    pub(super) fn take(&mut self, from: IpAddr, now_ns: i64) -> bool {
        let place = self.part_of(from);
        let part = self.parts.get_mut(place);
        part.is_some_and(|part| part.take(|| now_ns))
            && self.all.as_mut().is_none_or(|all| all.take(|| now_ns))
    }

    fn part_of(&self, from: IpAddr) -> usize {
        self.keys.hash_one(network(from)) as usize % self.parts.len()
    }
}

/// What one host can have many addresses of: an IPv6 network of 64 bits.
pub(super) fn network(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => u32::from(address).into(),
            None => u128::from(address) >> 64 << 64,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn taken(bucket: &mut FairBucket, from: &str, tries: usize, now_ns: i64) -> usize {
        let from = from.parse().unwrap();
        (0..tries).filter(|_| bucket.take(from, now_ns)).count()
    }

    #[test]
    fn one_network_gets_half_and_all_together_no_more_than_all() {
        let mut bucket = FairBucket::shared(100, 0);
        assert_eq!(taken(&mut bucket, "192.0.2.1", 1_000, 0), 50);
        assert_eq!(taken(&mut bucket, "::ffff:192.0.2.1", 1_000, 0), 0, "the same host");
        let others = (0..=255).map(|at| format!("198.51.100.{at}"));
        let others: usize = others.map(|from| taken(&mut bucket, &from, 1_000, 0)).sum();
        assert_eq!(others, 50);
        assert_eq!(taken(&mut bucket, "192.0.2.1", 1_000, SECOND), 50);
    }

    #[test]
    fn where_parts_have_nothing_in_common_none_is_kept_out_by_another() {
        let mut bucket = FairBucket::apart(PARTS, 50, 0);
        let honest: IpAddr = "192.0.2.1".parse().unwrap();
        let others = (0..=255).map(|at| IpAddr::from([198, 51, 100, at]));
        let place = bucket.part_of(honest);
        let others: Vec<_> = others.filter(|from| bucket.part_of(*from) != place).collect();
        for from in others {
            for _ in 0..1_000 {
                bucket.take(from, 0);
            }
        }
        assert_eq!(taken(&mut bucket, "192.0.2.1", 1_000, 0), 50);
    }

    #[test]
    fn the_addresses_of_one_ipv6_host_are_one() {
        let mut bucket = FairBucket::shared(100, 0);
        let each = (0..200).map(|at| format!("2001:db8::{at:x}"));
        assert_eq!(each.map(|from| taken(&mut bucket, &from, 1, 0)).sum::<usize>(), 50);
    }
}

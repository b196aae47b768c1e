//! Compiles generic functions of HdrHistogram for `u64`, and nothing calls them here.
//!
//! A generic function is compiled in the crate that uses it, without optimizations in a debug build
//! of tardy. This crate is optimized there, and a crate without optimizations takes the functions
//! that are compiled here already.

use hdrhistogram::{
    Histogram,
    serialization::{Deserializer, Serializer, V2DeflateSerializer},
};

/// Uses every function that walks all counts.
#[must_use]
pub fn all(mut packed: &[u8]) -> Option<(u64, Vec<u8>)> {
    let mut all: Histogram<u64> = Histogram::new_with_bounds(1, 3, 3).ok()?;
    let read: Histogram<u64> = Deserializer::new().deserialize(&mut packed).ok()?;
    all.add(&read).ok()?;
    all.subtract(&read).ok()?;
    all.add(read.clone()).ok()?;
    all.record(1).ok()?;
    all.record_n(1, 2).ok()?;
    let mut sum = all.value_at_quantile(0.5) + all.min() + all.max() + all.len();
    sum += all.count_at(3) + all.count_between(1, 2) + all.highest_equivalent(2);
    sum += all.mean() as u64 + all.stdev() as u64 + all.lowest_equivalent(2);
    for bucket in all.iter_recorded() {
        sum += bucket.count_at_value() + bucket.value_iterated_to();
    }
    let mut written = Vec::new();
    V2DeflateSerializer::new().serialize(&all, &mut written).ok()?;
    all.reset();
    Some((sum, written))
}

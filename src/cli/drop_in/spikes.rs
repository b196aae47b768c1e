//! `--spike`: the wake-ups that were later than a limit, in the order of their time.

use std::collections::BinaryHeap;

use anyhow::{Result, anyhow};

use crate::run::Run;

/// One late wake-up; ordered by its time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Spike {
    woke_ns: i64,
    thread: usize,
    latency_ns: i64,
}

/// The first ones, and how many there were.
#[derive(Debug)]
struct Spikes {
    over_ns: u64,
    most: usize,
    /// The last one on top, for another that was earlier to take its place.
    first: BinaryHeap<Spike>,
    count: u64,
}

impl Spikes {
    const fn new(over_ns: u64, most: usize) -> Self {
        Self { over_ns, most, first: BinaryHeap::new(), count: 0 }
    }

    fn add(&mut self, thread: usize, due_ns: i64, latency_ns: i64) {
        if u64::try_from(latency_ns).is_ok_and(|own| own > self.over_ns) {
            self.count += 1;
            self.first.push(Spike { woke_ns: due_ns + latency_ns, thread, latency_ns });
            if self.first.len() > self.most {
                self.first.pop();
            }
        }
    }

    /// As cyclictest prints them: thread, latency, and the time of the wake-up in us.
    fn text(self, unit_ns: i64) -> String {
        let mut out = String::from("\n");
        for Spike { woke_ns, thread, latency_ns } in self.first.into_sorted_vec() {
            let (latency, at_us) = (latency_ns / unit_ns, woke_ns / 1_000);
            out.push_str(&format!("T:{thread:2} Spike:{latency:8}: TS: {at_us:12}\n"));
        }
        out + &format!("spikes = {}\n\n", self.count)
    }
}

/// The spikes of a run whose samples were kept, at most the first `most` of them.
pub(super) fn text(run: &Run, over_ns: u64, unit_ns: i64, most: usize) -> Result<String> {
    let mut spikes = Spikes::new(over_ns, most);
    let read = run.samples(|thread, sample| spikes.add(thread, sample.t_ns, sample.latency_ns));
    read.map_err(|what| anyhow!("--spike: {what}"))?;
    Ok(spikes.text(unit_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_late_wake_ups_are_printed_in_the_order_of_their_time() {
        let mut spikes = Spikes::new(50_000, 2);
        // Of one thread after those of another, as files have them.
        for (thread, due_ns, latency_ns) in [
            (0, 73_869_142_000_000, 79_900),
            (0, 73_869_144_000_000, 66_000),
            (0, 73_869_145_000_000, 50_000),
            (1, 73_869_143_000_000, 75_000),
            (1, 73_869_143_500_000, -60_000),
        ] {
            spikes.add(thread, due_ns, latency_ns);
        }
        let expected = "\nT: 0 Spike:      79: TS:  73869142079\n\
                        T: 1 Spike:      75: TS:  73869143075\nspikes = 3\n\n";
        assert_eq!(spikes.text(1_000), expected);
    }
}

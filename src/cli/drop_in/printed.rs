//! What cyclictest prints and writes at its end.

use anyhow::{Result, anyhow};

use super::{report, spikes};
use crate::{
    cli::{
        cyclictest_flags::{CyclictestFlags, SPIKES},
        output,
    },
    exchange::export::{
        CountedRun,
        cyclictest::{CyclictestStyle, histogram, json, lines},
    },
    run::{Document, Run, RunDirectory, Status},
};

/// Samples of one thread, of which the oscilloscope mode prints the largest of each few.
#[derive(Debug, Clone, Copy, Default)]
struct Reduced {
    cycle: u64,
    taken: u64,
    /// The cycle of the largest one, and that.
    largest: Option<(u64, i64)>,
}

impl Reduced {
    /// One more; after `every` of them the largest and its cycle.
    fn add(&mut self, latency: i64, every: u64) -> Option<(u64, i64)> {
        if self.largest.is_none_or(|(_, largest)| latency > largest) {
            self.largest = Some((self.cycle, latency));
        }
        self.cycle += 1;
        self.taken += 1;
        if self.taken < every {
            return None;
        }
        self.taken = 0;
        self.largest.take()
    }
}

impl CyclictestFlags {
    /// How many spikes are printed.
    fn spikes(&self) -> usize {
        self.spike_nodes.and_then(|own| usize::try_from(own).ok()).unwrap_or(SPIKES)
    }

    /// 1,000, or 1 with `-N`.
    fn unit_ns(&self) -> i64 {
        if self.nsecs { 1 } else { 1_000 }
    }

    /// All of it.
    pub(super) fn put(&self, document: &Document, held: &RunDirectory) -> Result<()> {
        let run = Run::of(held.path(), document.clone());
        if let Some(us) = document.setup.found.dma_latency_us {
            output::put(&format!("# /dev/cpu_dma_latency set to {us}us\n"))?;
        }
        if self.verbose {
            self.put_samples(&run)?;
        }
        let bins = self.bins();
        let unit_ns = self.unit_ns();
        let spikes = self.spike.map(|over| {
            spikes::text(&run, over.saturating_mul(unit_ns.unsigned_abs()), unit_ns, self.spikes())
        });
        let counted = CountedRun::read(run).map_err(|what| anyhow!(what))?;
        let style = CyclictestStyle { unit_ns, bins, has_sums: self.histofall.is_some() };
        let mut out = String::new();
        if !self.verbose && (bins.is_none() || !self.quiet) {
            out.push_str(&lines(&counted, style));
        }
        if let Some(spikes) = spikes {
            out.push_str(&spikes?);
        }
        if bins.is_some() {
            let text = histogram(&counted, style)?;
            match &self.histfile {
                Some(path) => self.write(path, text.as_bytes())?,
                None => out.push_str(&text),
            }
        }
        if self.breaktrace.is_some() {
            out.push_str(&self.broken_off(document, unit_ns));
        }
        output::put_columns(&out)?;
        match &self.json {
            Some(path) if path.as_os_str() == "-" => {
                output::put(&String::from_utf8_lossy(&json(&counted, style)?))
            }
            Some(path) => self.write(path, &json(&counted, style)?),
            None => Ok(()),
        }
    }

    /// Writes a file, and says so unless `-q` is given.
    fn write(&self, path: &std::path::Path, bytes: &[u8]) -> Result<()> {
        if self.quiet { report::write_quietly(path, bytes) } else { report::write(path, bytes) }
    }

    /// Which threads there were, and the one that was too late.
    fn broken_off(&self, document: &Document, unit_ns: i64) -> String {
        let threads = &document.setup.found.threads;
        let ids = threads.iter().map(|thread| format!(" {:05}", thread.tid));
        let mut out = format!("# Thread Ids:{}\n", ids.collect::<String>());
        if document.status != Status::StoppedOver {
            return out;
        }
        let worst = document.wakeups().max_by_key(|series| series.max);
        if let Some((series, max)) = worst.and_then(|series| Some((series, series.max?))) {
            let own = threads.iter().find(|thread| thread.series == series.name);
            let tid = own.map_or(0, |own| own.tid);
            out.push_str(&format!("# Break thread: {tid}\n# Break value: {}\n", max / unit_ns));
        }
        out
    }

    /// A line a sample: task, cycle, latency. With `-o` the largest of each few.
    fn put_samples(&self, run: &Run) -> Result<()> {
        let unit_ns = self.unit_ns();
        let every = u64::from(self.oscope);
        let mut threads = vec![Reduced::default(); run.document.series.len()];
        let (mut text, mut failed) = (String::new(), Ok(()));
        let read = run.samples(|number, sample| {
            let Some(thread) = threads.get_mut(number).filter(|_| failed.is_ok()) else { return };
            let added = thread.add(sample.latency_ns.div_euclid(unit_ns), every);
            let Some((cycle, latency)) = added else { return };
            text.push_str(&format!("{number:8}:{cycle:8}:{latency:8}\n"));
            if text.len() > 64 << 10 {
                failed = output::put(&text);
                text.clear();
            }
        });
        failed?;
        read.map_err(|what| anyhow!(what))?;
        output::put(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oscilloscope_prints_the_largest_of_each_few_with_its_cycle() {
        let latencies = [5, 9, 7, 1, 2, 2, 8];
        let printed = |every: u64| {
            let mut thread = Reduced::default();
            latencies.iter().filter_map(|own| thread.add(*own, every)).collect::<Vec<_>>()
        };
        assert_eq!(printed(3), [(1, 9), (4, 2)], "an incomplete rest is not printed");
        assert_eq!(printed(1).len(), latencies.len());
        assert_eq!(printed(1).last(), Some(&(6, 8)));
    }
}

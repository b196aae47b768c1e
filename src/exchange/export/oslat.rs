//! What oslat 2.40 prints and writes about its cores, for those who parse it. A latency counts as
//! the us in which it ends: row 2 has those from 1 us on that are below 2 us.

use std::{collections::BTreeMap, io};

use serde::Serialize;

use super::{counted::CountedRun, cyclictest::keep_extremes, rt_tests};
use crate::run::SeriesSummary;

/// The clock of the loop counts ns.
const COUNTER_MHZ: u64 = 1_000;

/// How oslat was told to print.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OslatStyle {
    /// Rows of the histogram; the last one has what is longer, too.
    pub(crate) rows: u64,
    /// Rows begin above the smallest latency of all.
    pub(crate) is_biased: bool,
    /// Without rows that count nothing.
    pub(crate) omits_zeros: bool,
}

/// The cores of a run, as they are printed.
pub(crate) struct OslatTable {
    cores: Vec<Core>,
    style: OslatStyle,
    bias_us: u64,
    duration_s: f64,
}

/// One core.
struct Core {
    cpu: u32,
    /// How many turns of the loop took each number of us.
    by_us: BTreeMap<u64, u64>,
}

impl Core {
    fn of(run: &CountedRun, number: usize, series: &SeriesSummary) -> io::Result<Self> {
        let threads = run.document.conditions.iter().flat_map(|own| &own.threads);
        let mut own = threads.filter(|thread| thread.series == series.name);
        let turns = own.find_map(|thread| thread.turns).ok_or_else(|| {
            io::Error::other(format!("{}: nothing counted the turns of its loop", series.name))
        })?;
        let whole = |ns: Option<i64>| ns.and_then(|ns| u64::try_from(ns).ok());
        let (min_ns, max_ns) = (whole(series.min).unwrap_or(0), whole(series.max).unwrap_or(0));
        let mut bins = BTreeMap::new();
        for bucket in run.buckets(number) {
            // Nothing in the bucket is outside of these.
            let ns = run.value_ns(&bucket).min(max_ns).max(min_ns);
            *bins.entry(ns / 1_000).or_insert(0) += bucket.count;
        }
        keep_extremes(&mut bins, series, 1_000);
        if series.above > 0 {
            *bins.entry(max_ns / 1_000).or_insert(0) += series.above;
        }
        let mut by_us: BTreeMap<u64, u64> =
            bins.into_iter().map(|(bin, count)| (bin + 1, count)).collect();
        let undisturbed = turns.saturating_sub(series.count);
        if undisturbed > 0 {
            *by_us.entry(1).or_insert(0) += undisturbed;
        }
        Ok(Self { cpu: series.cpu.unwrap_or(0), by_us })
    }

    fn min_us(&self) -> u64 {
        self.by_us.keys().next().copied().unwrap_or(0)
    }

    fn max_us(&self) -> u64 {
        self.by_us.keys().next_back().copied().unwrap_or(0)
    }

    /// Of all turns. What the first row has counts as its row, as there.
    fn average(&self, bias_us: u64) -> f64 {
        let turns: u64 = self.by_us.values().sum();
        let sum =
            self.by_us.iter().map(|(us, turns)| *us.max(&(bias_us + 1)) as f64 * *turns as f64);
        sum.sum::<f64>() / turns.max(1) as f64
    }
}

impl OslatTable {
    /// Of a run that counted the turns of its loops.
    ///
    /// # Errors
    /// A core has none.
    pub(crate) fn of(run: &CountedRun, style: OslatStyle) -> io::Result<Self> {
        let cores = run.wakeups().map(|(number, series)| Core::of(run, number, series));
        let cores: Vec<Core> = cores.collect::<io::Result<_>>()?;
        let smallest = cores.iter().map(Core::min_us).min().unwrap_or(0);
        let bias_us = if style.is_biased { smallest } else { 0 };
        Ok(Self { cores, style, bias_us, duration_s: run.document.duration_ns as f64 / 1e9 })
    }

    /// What it says of its bias before it measures; here of the run itself.
    pub(crate) fn bias_line(&self) -> String {
        match self.style.is_biased {
            true => format!("Global bias set to {} (us)\n", self.bias_us),
            false => String::new(),
        }
    }

    /// The latency of each row, us.
    fn rows(&self) -> impl Iterator<Item = u64> {
        self.bias_us + 1..=self.bias_us + self.style.rows
    }

    /// How many turns of a core are in the row of this latency.
    fn count(&self, core: &Core, row_us: u64) -> u64 {
        let (first, last) = (self.bias_us + 1, self.bias_us + self.style.rows);
        let from = if row_us == first { 0 } else { row_us };
        let upto = if row_us == last { u64::MAX } else { row_us };
        core.by_us.range(from..=upto).map(|(_, turns)| turns).sum()
    }

    /// The table: a column a core.
    pub(crate) fn text(&self) -> String {
        let line = |name: &str, value: &dyn Fn(&Core) -> String, end: &str| {
            let values = self.cores.iter().map(|core| format!(" {}", value(core)));
            format!("{name:>12}:\t{}{end}\n", values.collect::<String>())
        };
        let mut out = line("Core", &|core| core.cpu.to_string(), "");
        out.push_str(&line("Counter Freq", &|_| COUNTER_MHZ.to_string(), " (Mhz)"));
        let (last, mut is_omitted) = (self.bias_us + self.style.rows, false);
        for row_us in self.rows() {
            let is_empty = self.cores.iter().all(|core| self.count(core, row_us) == 0);
            if self.style.omits_zeros && is_empty && row_us != last {
                is_omitted = true;
                continue;
            }
            if std::mem::take(&mut is_omitted) {
                out.push_str("    ...\n");
            }
            let end = if row_us == last { " (including overflows)" } else { "" };
            let counts = |core: &Core| self.count(core, row_us).to_string();
            out.push_str(&line(&format!("{row_us:03} (us)"), &counts, end));
        }
        let max_min = |core: &Core| (core.max_us() - core.min_us()).to_string();
        let average = |core: &Core| format!("{:.3}", core.average(self.bias_us));
        out.push_str(&line("Minimum", &|core| core.min_us().to_string(), " (us)"));
        out.push_str(&line("Average", &average, " (us)"));
        out.push_str(&line("Maximum", &|core| core.max_us().to_string(), " (us)"));
        out.push_str(&line("Max-Min", &max_min, " (us)"));
        out.push_str(&line("Duration", &|_| format!("{:.3}", self.duration_s), " (sec)"));
        out + "\n"
    }

    /// The JSON of its run, as `--json` writes it.
    ///
    /// # Errors
    /// It cannot be JSON.
    pub(crate) fn json(&self, run: &CountedRun) -> io::Result<Vec<u8>> {
        let thread = self.cores.iter().enumerate();
        let thread = thread.map(|(number, core)| (number.to_string(), self.result(core)));
        let results = Results { num_threads: self.cores.len(), thread: thread.collect() };
        rt_tests::json(&run.document, results)
    }

    fn result(&self, core: &Core) -> CoreResult {
        let rounded = |value: f64, unit: f64| (value * unit).round() / unit;
        let counts = self.rows().map(|row_us| (row_us, self.count(core, row_us)));
        CoreResult {
            cpu: core.cpu,
            freq: COUNTER_MHZ,
            min: core.min_us(),
            avg: rounded(core.average(self.bias_us), 1e6),
            max: core.max_us(),
            duration: rounded(self.duration_s, 1e3),
            histogram: counts.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

/// What its `--json` has besides what that of all rt-tests has.
#[derive(Serialize)]
struct Results {
    num_threads: usize,
    thread: BTreeMap<String, CoreResult>,
}

#[derive(Serialize)]
struct CoreResult {
    cpu: u32,
    freq: u64,
    min: u64,
    avg: f64,
    max: u64,
    duration: f64,
    histogram: BTreeMap<u64, u64>,
}

#[cfg(test)]
mod tests;

//! What rt-tests write with `--json`: cyclictest, oslat and their siblings, in one envelope.
//!
//! ```text
//! {"file_version": 1, "cmdline:": "...", "rt_test_version:": "2.40", "resolution_in_ns": 0,
//!  "sysinfo": {"nodename": ...}, "start_time": "Sat, 21 Nov 2026 19:05:27 +0000",
//!  "thread": {"0": {"histogram": {"3": 6}, "cycles": 1500, "min": 3, "max": 401, "avg": 19.8,
//!                   "cpu": 0}}}
//! ```
//!
//! Two keys end in a colon. cyclictest leaves what is beyond its last bin out of the histogram and
//! counts it in `cycles`; oslat has it in the last bin. `resolution_in_ns` is 1 where numbers are
//! ns, and 0 for us. The siblings have `sender` and `receiver` of each thread, and no histogram.

use std::collections::BTreeMap;

use jiff::{Timestamp, fmt::rfc2822};
use serde::Deserialize;

use super::{
    ImportOptions,
    imported_data::{ImportedData, LatencyUnit},
    json::json,
    oslat::UNDISTURBED_US,
    source::{ImportError, Source},
    stated::{Beyond, Stated},
};
use crate::{
    plain::cut,
    run::{
        FileLoss, ImportCaveat,
        facts::Preemption,
        probes::{DEFAULT_PROBE, ProbeInfo},
    },
    units::many,
};

/// As `tardy export` names itself in the command line.
const TARDY: &str = "tardy";

/// Whether it begins as such a file does.
pub(super) fn matches_format(head: &str) -> bool {
    head.trim_start().starts_with('{') && head.contains("\"rt_test_version")
}

#[derive(Debug, Deserialize)]
struct Envelope {
    #[serde(rename = "cmdline:", alias = "cmdline", default)]
    command: String,
    #[serde(rename = "rt_test_version:", alias = "rt_test_version", default)]
    version: String,
    #[serde(default)]
    start_time: String,
    #[serde(default)]
    end_time: String,
    #[serde(default)]
    sysinfo: SysInfo,
    #[serde(default)]
    resolution_in_ns: i64,
    num_threads: Option<u64>,
    #[serde(default)]
    return_code: i64,
    #[serde(default)]
    thread: BTreeMap<String, Thread>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SysInfo {
    nodename: String,
    release: String,
    version: String,
    machine: String,
    realtime: i64,
}

#[derive(Debug, Deserialize)]
struct Thread {
    histogram: Option<BTreeMap<String, u64>>,
    cycles: Option<u64>,
    min: Option<f64>,
    max: Option<f64>,
    avg: Option<f64>,
    cpu: Option<i64>,
    sender: Option<Sender>,
    receiver: Option<Receiver>,
}

#[derive(Debug, Deserialize)]
struct Sender {
    #[serde(default)]
    samples: u64,
    interval: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct Receiver {
    cpu: Option<i64>,
    min: Option<f64>,
    avg: Option<f64>,
    max: Option<f64>,
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let envelope: Envelope = json(&source.whole()?, "a program of rt-tests")?;
    let words: Vec<&str> = envelope.command.split_whitespace().collect();
    let program = words.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let program = if program.is_empty() { "rt-tests" } else { program };
    let same_as = if program == TARDY { probe_of(&words) } else { same_as(program) };
    let mut sheet = ImportedData::new(&cut(program, 40), same_as);
    // The resolution is that of its numbers.
    let stated = Some(envelope.unit(&words));
    let unit = options.unit_beside(stated).map_err(ImportError::new)?;
    let unit_ns = unit.map_or(1_000, LatencyUnit::ns);
    sheet.caveats.extend(rounding(program, unit_ns));
    let bins = bins_of(&sheet.program, &words);
    for (name, thread) in &envelope.thread {
        thread.put(&mut sheet, name, JsonBins { unit_ns, count: bins })?;
    }
    if let Some(interval) = number_of(&words, "-i", "--interval") {
        sheet.parameter("interval_ns", interval.saturating_mul(1_000));
    }
    envelope.facts(&mut sheet);
    let loss = envelope.loss(sheet.same_as.is_some());
    sheet.caveats.extend(loss);
    Ok(sheet)
}

/// In which direction its numbers are rounded, where they are.
fn rounding(program: &str, step_ns: i64) -> Option<ImportCaveat> {
    let rounded = match program {
        "oslat" => ImportCaveat::LatenciesRoundedUp { step_ns },
        _ => ImportCaveat::LatenciesRounded { step_ns, down: true },
    };
    (step_ns > 1).then_some(rounded)
}

/// The probe of tardy that measures the same: wake-ups by a timer, and gaps of a busy thread.
fn same_as(program: &str) -> Option<&'static str> {
    match program {
        "cyclictest" => Some("timer"),
        "oslat" => Some("noise"),
        _ => None,
    }
}

/// The probe of a command line of tardy: what follows `run`; nothing where it measured nothing.
fn probe_of(words: &[&str]) -> Option<&'static str> {
    let mut words = words.iter().skip_while(|word| **word != "run");
    words.next()?;
    let named = words.next().and_then(|word| ProbeInfo::find(word));
    Some(named.unwrap_or(DEFAULT_PROBE).name)
}

/// A number behind an option of cyclictest: `-i 200`, `-i200`, `--interval 200` or
/// `--interval=200`.
fn number_of(words: &[&str], short: &str, long: &str) -> Option<i64> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let own = match *word {
            word if word == short || word == long => words.next().copied(),
            word => match word.strip_prefix(long) {
                Some(rest) => rest.strip_prefix('='),
                None => word.strip_prefix(short),
            },
        };
        if let Some(value) = own.and_then(|value| value.parse().ok()) {
            return Some(value);
        }
    }
    None
}

/// How many bins cyclictest's histogram has, in its unit. What is not below that is beyond the
/// last bin, though the file has no bin without samples.
fn bins_of(program: &str, words: &[&str]) -> Option<i64> {
    let asked = || number_of(words, "-h", "--histogram");
    let asked = || asked().or_else(|| number_of(words, "-H", "--histofall"));
    if program == "cyclictest" { asked() } else { None }
}

impl Envelope {
    /// Threads that are counted and absent, and that the program failed. Each of `has_threads`
    /// writes all that it counts (write_stats of cyclictest.c and oslat.c).
    fn loss(&self, has_threads: bool) -> Option<ImportCaveat> {
        let found = self.thread.len() as u64;
        let threads = self
            .num_threads
            .filter(|stated| has_threads && *stated > found)
            .map(|stated| format!("{} of its {}", stated - found, many(stated, "thread")));
        let code = self.return_code;
        let failed = (code != 0).then(|| {
            format!("what the program did not measure, as it failed (return_code {code})")
        });
        let what: Vec<String> = threads.into_iter().chain(failed).collect();
        (!what.is_empty()).then(|| ImportCaveat::Loss(FileLoss::Stated { what: what.join(", ") }))
    }

    fn unit(&self, words: &[&str]) -> LatencyUnit {
        let is_ns = words.iter().any(|word| *word == "-N" || *word == "--nsecs");
        if self.resolution_in_ns == 1 || is_ns {
            LatencyUnit::Nanoseconds
        } else {
            LatencyUnit::Microseconds
        }
    }

    fn facts(&self, sheet: &mut ImportedData) {
        sheet.command = self.command.clone();
        // The version is cyclictest's, whose keys they are.
        if sheet.program != TARDY {
            sheet.version = self.version.clone();
        }
        let info = &self.sysinfo;
        let facts = &mut sheet.facts;
        facts.hostname = info.nodename.clone();
        facts.kernel = info.release.clone();
        facts.kernel_version = info.version.clone();
        facts.architecture = info.machine.clone();
        if info.realtime == 1 {
            let (model, source) = ("rt".into(), "sysinfo.realtime of the file".into());
            facts.preemption = Preemption { model, source };
        }
        let time = |text: &str| -> Option<Timestamp> {
            Some(rfc2822::DateTimeParser::new().parse_zoned(text).ok()?.timestamp())
        };
        sheet.started_at = time(&self.start_time);
        let ended = time(&self.end_time).zip(sheet.started_at);
        let lasted = ended.map(|(end, start)| end.duration_since(start).as_nanos());
        sheet.duration_ns = lasted.and_then(|ns| u64::try_from(ns).ok()).filter(|ns| *ns > 0);
    }
}

/// The bins of the histograms of a file.
#[derive(Clone, Copy)]
struct JsonBins {
    unit_ns: i64,
    /// Those with and without samples, where the command line says it.
    count: Option<i64>,
}

impl Thread {
    fn put(
        &self,
        sheet: &mut ImportedData,
        name: &str,
        JsonBins { unit_ns, count: bin_count }: JsonBins,
    ) -> Result<(), ImportError> {
        let cpu = self.receiver.as_ref().map_or(self.cpu, |receiver| receiver.cpu);
        let number = match cpu.and_then(|cpu| u32::try_from(cpu).ok()) {
            Some(cpu) => sheet.cpu(cpu)?,
            None => sheet.series(&format!("thread{}", cut(name, 20)), None)?,
        };
        let ns = |value: f64| (value * unit_ns as f64) as i64;
        let of = format!("thread {}", cut(name, 20));
        let stated = self.stated(&of);
        // Before its first cycle they are where they begin.
        if self.count() != Some(0) {
            stated.ordered().map_err(ImportError::new)?;
        }
        if let Some(Receiver { min, avg, max, .. }) = &self.receiver {
            let samples = self.sender.as_ref().map_or(0, |sender| sender.samples);
            let values = [min, avg, max].map(|value| ns(value.unwrap_or(0.0)));
            sheet.summary(number, samples, values);
            sheet.without_mean.extend(avg.is_none().then_some(number));
            let interval = self.sender.as_ref().and_then(|sender| sender.interval);
            interval.into_iter().for_each(|us| {
                sheet.parameter("interval_ns", us.saturating_mul(1_000));
            });
            return Ok(());
        }
        let [min, avg, max] = [self.min, self.avg, self.max].map(|value| value.map(ns));
        let Some(histogram) = self.histogram.as_ref().filter(|bins| !bins.is_empty()) else {
            let values = [min.unwrap_or(0), avg.unwrap_or(0), max.unwrap_or(0)];
            sheet.summary(number, self.cycles.unwrap_or(0), values);
            sheet.without_mean.extend(avg.is_none().then_some(number));
            return Ok(());
        };
        let bins = bins(&of, histogram)?;
        let (last, of_last) = bins.last().copied().unwrap_or_default();
        self.fits(&stated, &bins, sheet.program == "oslat").map_err(ImportError::new)?;
        // oslat counts in its last bin what is beyond it.
        let beyond =
            max.filter(|max| sheet.program == "oslat" && *max > last.saturating_mul(unit_ns));
        for (value, count) in bins {
            if sheet.program == "oslat" && value <= UNDISTURBED_US {
                sheet.leave_out_turns(count, UNDISTURBED_US * 1_000);
            } else if beyond.is_none() || value < last {
                sheet.add(number, value.saturating_mul(unit_ns), count);
            }
        }
        if let Some(max) = beyond {
            sheet.hidden(number, of_last, last.saturating_mul(unit_ns), max);
        }
        if let Some(cycles) = self.cycles {
            let found = histogram.values().copied().fold(0, u64::saturating_add);
            let next = last.saturating_add(1).saturating_mul(unit_ns);
            let asked = bin_count.map(|count| count.saturating_mul(unit_ns));
            let from = asked.filter(|asked| max >= Some(*asked)).map_or(next, |ns| ns.max(next));
            sheet.hidden(number, cycles.saturating_sub(found), from, max.unwrap_or(from));
            sheet.check_count(number, cycles);
            if let Some(min) = min {
                sheet.min_of_hidden(number, min);
            }
            if let Some(mean) = avg {
                sheet.mean_with_hidden(number, mean, unit_ns);
            }
        }
        Ok(())
    }

    /// Samples, where it counts them.
    fn count(&self) -> Option<u64> {
        match &self.receiver {
            Some(_) => self.sender.as_ref().map(|sender| sender.samples),
            None => self.cycles,
        }
    }

    fn stated<'a>(&self, of: &'a str) -> Stated<'a> {
        let values = match &self.receiver {
            Some(Receiver { min, avg, max, .. }) => [*min, *avg, *max],
            None => [self.min, self.avg, self.max],
        };
        Stated { of, names: ["\"min\"", "\"avg\"", "\"max\""], values }
    }

    /// Whether what is stated fits the bins.
    fn fits(&self, stated: &Stated<'_>, bins: &[Bin], is_oslat: bool) -> Result<(), String> {
        let mut filled =
            bins.iter().filter(|(_, count)| *count > 0).map(|(value, _)| *value as f64);
        let Some(first) = filled.next() else { return Ok(()) };
        let last = filled.next_back().unwrap_or(first);
        let binned = bins.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
        let is_all = !is_oslat && self.cycles == Some(binned);
        stated.fits((first, last), if is_all { Beyond::Nothing } else { Beyond::Maybe })
    }
}

/// A latency and how often it was had.
type Bin = (i64, u64);

/// In ascending order.
fn bins(of: &str, histogram: &BTreeMap<String, u64>) -> Result<Vec<Bin>, ImportError> {
    let read = histogram.iter().map(|(bin, count)| {
        let value: Option<i64> = bin.parse().ok();
        value.map(|value| (value, *count)).ok_or_else(|| {
            let bin = cut(bin, 40);
            ImportError::new(format!("{of}: \"{bin}\" is not a bin of a histogram"))
        })
    });
    let mut bins: Vec<Bin> = read.collect::<Result<_, _>>()?;
    bins.sort_unstable();
    Ok(bins)
}

#[cfg(test)]
mod tests;

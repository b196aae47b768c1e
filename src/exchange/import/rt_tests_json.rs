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
    oslat::UNDISTURBED_US,
    sheet::{LatencyUnit, Sheet},
    source::{ImportError, Source},
};
use crate::{
    plain::cut,
    run::{
        ImportCaveat,
        facts::Preemption,
        probes::{DEFAULT_PROBE, ProbeInfo},
    },
};

/// As `tardy export` names itself in the command line.
const TARDY: &str = "tardy";

/// Whether it begins as such a file does.
pub(super) fn is_it(head: &str) -> bool {
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
    #[serde(default)]
    min: f64,
    #[serde(default)]
    avg: f64,
    #[serde(default)]
    max: f64,
}

/// Reads it.
pub(super) fn read(source: &mut Source<'_>, options: &ImportOptions) -> Result<Sheet, ImportError> {
    let envelope: Envelope = json(&source.whole()?)?;
    let words: Vec<&str> = envelope.command.split_whitespace().collect();
    let program = words.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let program = if program.is_empty() { "rt-tests" } else { program };
    let same_as = if program == TARDY { probe_of(&words) } else { same_as(program) };
    let mut sheet = Sheet::new(&cut(program, 40), same_as);
    let unit_ns = options.unit.map_or_else(|| envelope.unit(&words), LatencyUnit::ns);
    if unit_ns > 1 {
        sheet.caveats.push(ImportCaveat::LatenciesRounded { step_ns: unit_ns, down: true });
    }
    for (name, thread) in &envelope.thread {
        thread.put(&mut sheet, name, unit_ns)?;
    }
    if let Some(interval) = interval_us(&words) {
        sheet.parameter("interval_ns", interval.saturating_mul(1_000));
    }
    envelope.facts(&mut sheet);
    Ok(sheet)
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

/// A document; an error names the line.
pub(super) fn json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ImportError> {
    serde_json::from_slice(bytes).map_err(|error| {
        let line = u64::try_from(error.line()).unwrap_or(0);
        ImportError { line: (line > 0).then_some(line), what: cut(&error.to_string(), 200) }
    })
}

/// `-i 200` or `--interval=200` of cyclictest, us.
fn interval_us(words: &[&str]) -> Option<i64> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let own = match *word {
            "-i" | "--interval" => words.next().copied(),
            word => word.strip_prefix("--interval=").or_else(|| word.strip_prefix("-i")),
        };
        if let Some(value) = own.and_then(|value| value.parse().ok()) {
            return Some(value);
        }
    }
    None
}

impl Envelope {
    fn unit(&self, words: &[&str]) -> i64 {
        let is_ns = words.iter().any(|word| *word == "-N" || *word == "--nsecs");
        if self.resolution_in_ns == 1 || is_ns { 1 } else { 1_000 }
    }

    fn facts(&self, sheet: &mut Sheet) {
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

impl Thread {
    fn put(&self, sheet: &mut Sheet, name: &str, unit_ns: i64) -> Result<(), ImportError> {
        let cpu = self.receiver.as_ref().map_or(self.cpu, |receiver| receiver.cpu);
        let number = match cpu.and_then(|cpu| u32::try_from(cpu).ok()) {
            Some(cpu) => sheet.cpu(cpu)?,
            None => sheet.series(&format!("thread{}", cut(name, 20)), None)?,
        };
        let ns = |value: f64| (value * unit_ns as f64) as i64;
        if let Some(Receiver { min, avg, max, .. }) = &self.receiver {
            let samples = self.sender.as_ref().map_or(0, |sender| sender.samples);
            sheet.summary(number, samples, [ns(*min), ns(*avg), ns(*max)]);
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
            return Ok(());
        };
        let (mut last, mut of_last, mut bins) = (0, 0, Vec::new());
        for (bin, count) in histogram {
            let value: i64 = bin.parse().map_err(|_| {
                let bin = cut(bin, 40);
                ImportError::new(format!("thread {name}: \"{bin}\" is no bin of a histogram"))
            })?;
            if value >= last {
                (last, of_last) = (value, *count);
            }
            bins.push((value, *count));
        }
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
            let from = last.saturating_add(1).saturating_mul(unit_ns);
            sheet.hidden(number, cycles.saturating_sub(found), from, max.unwrap_or(from));
            sheet.check_count(number, cycles);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::tests::{caveats, series, text};

    /// As cyclictest 2.40 wrote it.
    const CYCLICTEST: &str = r##"{
  "file_version": 1,
  "cmdline:": "cyclictest -q -t2 -i 200 -l 500 --json=j.json -h 60",
  "rt_test_version:": "2.40",
  "start_time": "Wed, 25 Nov 2026 15:45:57 +0000",
  "end_time": "Wed, 25 Nov 2026 15:45:58 +0000",
  "return_code": 0,
  "sysinfo": {
    "sysname": "Linux", "nodename": "vm", "release": "6.18.44",
    "version": "#1 SMP PREEMPT_RT @0", "machine": "x86_64", "realtime": 1
  },
  "num_threads": 2,
  "resolution_in_ns": 0,
  "thread": {
    "0": {
      "histogram": { "29": 1, "47": 1, "57": 1 },
      "cycles": 5, "min": 29, "max": 472, "avg": 65.01, "cpu": 0, "node": 0
    },
    "1": {
      "histogram": { },
      "cycles": 500, "min": 62, "max": 67, "avg": 63.87, "cpu": -1, "node": 0
    }
  }
}"##;

    fn cyclictest() -> String {
        CYCLICTEST.to_owned()
    }

    #[test]
    fn what_overflowed_without_a_word_is_found_by_the_cycles() {
        let sheet = text(&cyclictest()).unwrap();
        let expected = [("cpu0", 5, 29_000, 472_000), ("thread1", 500, 62_000, 67_000)];
        assert_eq!(series(&sheet), expected);
        let said = caveats(&sheet);
        assert!(said.contains("2 of 5 samples on cpu0 lie beyond the last bin, at 58.0 us"));
        assert!(said.contains("no_distribution"), "{said}");
        assert_eq!((sheet.program.as_str(), sheet.version.as_str()), ("cyclictest", "2.40"));
        assert_eq!(sheet.facts.preemption.model, "rt");
        assert_eq!(sheet.duration_ns, Some(1_000_000_000));
        assert_eq!(sheet.parameters["interval_ns"], 200_000);
    }

    #[test]
    fn an_export_of_tardy_is_of_its_probe_and_not_of_the_version_of_cyclictest() {
        let of = |command: &str| {
            let file = cyclictest().replacen("cyclictest -q -t2", command, 1);
            let sheet = text(&file).unwrap();
            assert_eq!((sheet.program.as_str(), sheet.version.as_str()), ("tardy", ""));
            sheet.same_as
        };
        assert_eq!(of("tardy --store x run timer"), Some("timer"));
        assert_eq!(of("/usr/bin/tardy run --load hackbench"), Some("timer"));
        assert_eq!(of("tardy run pingpong"), Some("pingpong"));
        assert_eq!(of("tardy import x.json"), None);
    }

    #[test]
    fn nanoseconds_are_known_by_the_resolution_or_the_command() {
        let resolution = cyclictest().replace("\"resolution_in_ns\": 0", "\"resolution_in_ns\": 1");
        let command = cyclictest().replace("-q -t2", "-N -t2");
        for file in [resolution, command] {
            assert_eq!(series(&text(&file).unwrap())[0], ("cpu0", 5, 29, 472));
        }
    }

    #[test]
    fn the_last_bin_of_oslat_has_what_is_beyond_it() {
        let file = r#"{"cmdline:": "oslat -D 1 --json=x", "rt_test_version:": "2.40", "thread":
            {"0": {"cpu": 0, "freq": 2597, "min": 1, "avg": 1.002135, "max": 5201,
            "duration": 1.002, "histogram": {"1": 47526984, "2": 110, "32": 51}}}}"#;
        let sheet = text(file).unwrap();
        assert_eq!(series(&sheet), [("cpu0", 161, 2_000, 5_201_000)]);
        assert!(caveats(&sheet).contains("51 of 161 samples on cpu0"));
        let within = file.replace("5201", "32");
        assert_eq!(caveats(&text(&within).unwrap()).matches("latencies_hidden").count(), 0);
    }

    #[test]
    fn siblings_have_no_histogram_and_their_summaries_are_taken() {
        let file = r#"{"file_version": 1, "cmdline:": "ptsematest -a -t1 -i 500 --json=x",
            "rt_test_version:": "2.40", "thread": {"0": {
            "sender": {"cpu": 0, "priority": 80, "samples": 120, "interval": 500},
            "receiver": {"cpu": 1, "priority": 80, "min": 3, "avg": 5.5, "max": 41}}}}"#;
        let sheet = text(file).unwrap();
        assert_eq!(series(&sheet), [("cpu1", 120, 3_000, 41_000)]);
        assert_eq!((sheet.program.as_str(), sheet.same_as), ("ptsematest", None));
    }

    #[test]
    fn damage_is_named_by_its_line() {
        let cut = cyclictest();
        let error = text(&cut[..300]).unwrap_err();
        assert!(error.line.is_some(), "{error}");
        let odd = cyclictest().replace("\"47\"", "\"4x\"");
        let error = text(&odd).unwrap_err().to_string();
        assert_eq!(error, "thread 0: \"4x\" is no bin of a histogram");
        let negative = cyclictest().replace("\"47\": 1", "\"47\": -1");
        assert_eq!(text(&negative).unwrap_err().line, Some(16));
    }
}

//! jitterdebugger's JSON, and the samples that jittersamples prints.
//!
//! ```text
//! {"version": 3, "sysinfo": {"nodename": ..., "resolution_in_ns": 1},
//!  "cpu": {"0": {"histogram": {"3": 3678}, "count": 3679, "min": 3, "max": 1200, "avg": 3.4}}}
//! ```
//! ```text
//! 0;1114.936950838;9
//! ```
//!
//! Keys of `cpu` are numbers of threads, `resolution_in_ns` is the unit of all numbers. Its
//! histogram ends at 1 ms: what is longer is in `count` and `max` alone. A line of samples is CPU,
//! time in s, latency in us.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    ImportOptions,
    imported_data::{ImportedData, LatencyUnit},
    json::json,
    source::{ImportError, Source},
    times::seconds_ns,
};
use crate::{plain::cut, run::ImportCaveat};

/// Whether it begins as its JSON does.
pub(super) fn matches_format(head: &str) -> bool {
    let text: String = head.chars().take(2_000).filter(|c| !c.is_whitespace()).collect();
    let versioned = text.starts_with("{\"version\":") || text.starts_with("{\"cpu\":{\"");
    versioned && text.contains("\"cpu") && !text.contains("rt_test_version")
}

#[derive(Debug, Deserialize)]
struct Results {
    #[serde(default)]
    sysinfo: SysInfo,
    cpu: BTreeMap<u32, Cpu>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SysInfo {
    nodename: String,
    release: String,
    version: String,
    machine: String,
    cpus_online: serde_json::Value,
    resolution_in_ns: Option<i64>,
}

impl SysInfo {
    /// What its numbers are in, ns.
    fn unit_ns(&self, sheet: &mut ImportedData) -> Result<i64, ImportError> {
        match self.resolution_in_ns {
            Some(ns @ 1..=1_000_000_000) => Ok(ns),
            Some(ns) => Err(ImportError::new(format!(
                "\"resolution_in_ns\" is {ns}: 1 or 1000 was expected; --unit says what it is"
            ))),
            None => {
                let unit = LatencyUnit::Microseconds;
                sheet.caveats.push(ImportCaveat::UnitAssumed { unit: unit.name() });
                Ok(unit.ns())
            }
        }
    }
}

#[derive(Debug, Deserialize)]
struct Cpu {
    histogram: BTreeMap<String, u64>,
    count: u64,
    max: i64,
}

/// Reads its JSON.
pub(super) fn read(
    source: &mut Source<'_>,
    options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let results: Results = json(&source.whole()?, "jitterdebugger")?;
    let mut sheet = ImportedData::new("jitterdebugger", Some("timer"));
    let unit_ns = match options.unit {
        Some(unit) => unit.ns(),
        None => results.sysinfo.unit_ns(&mut sheet)?,
    };
    for (thread, found) in &results.cpu {
        let number = sheet.series(&format!("thread{thread}"), None)?;
        let mut last = 0;
        for (bin, count) in &found.histogram {
            let value: i64 = bin.parse().map_err(|_| {
                let bin = cut(bin, 40);
                ImportError::new(format!("thread {thread}: \"{bin}\" is not a bin of a histogram"))
            })?;
            last = last.max(value);
            sheet.add(number, value.saturating_mul(unit_ns), *count);
        }
        let binned = found.histogram.values().copied().fold(0, u64::saturating_add);
        let from = last.saturating_add(1).saturating_mul(unit_ns);
        let hidden = found.count.saturating_sub(binned);
        sheet.hidden(number, hidden, from, found.max.saturating_mul(unit_ns));
        sheet.check_count(number, found.count);
    }
    if unit_ns > 1 {
        sheet.caveats.push(ImportCaveat::LatenciesRounded { step_ns: unit_ns, down: true });
    }
    let SysInfo { nodename, release, version, machine, cpus_online, .. } = results.sysinfo;
    let facts = &mut sheet.facts;
    (facts.hostname, facts.kernel) = (nodename, release);
    (facts.kernel_version, facts.architecture) = (version, machine);
    facts.cpus_online = match cpus_online {
        serde_json::Value::String(text) => text,
        serde_json::Value::Number(number) => format!("{number} CPUs"),
        _ => String::new(),
    };
    Ok(sheet)
}

/// Whether it begins as lines of samples do.
pub(super) fn is_samples(head: &str) -> bool {
    head.lines().next().is_some_and(|line| sample(line).is_some())
}

/// CPU, time in ns, latency in us.
fn sample(line: &str) -> Option<(u32, i64, i64)> {
    let mut fields = line.trim().split(';');
    let found =
        (fields.next()?.parse().ok()?, seconds_ns(fields.next()?)?, fields.next()?.parse().ok()?);
    fields.next().is_none().then_some(found)
}

/// Reads lines of samples.
pub(super) fn read_samples(
    source: &mut Source<'_>,
    options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut sheet = ImportedData::new("jitterdebugger", Some("timer"));
    let mut last_ns: BTreeMap<u32, i64> = BTreeMap::new();
    let unit_ns = options.unit.unwrap_or(LatencyUnit::Microseconds).ns();
    while let Some((number, line)) = source.text()? {
        if line.trim().is_empty() {
            continue;
        }
        if !source.is_whole() {
            // What a killed program leaves.
            break;
        }
        let (cpu, t_ns, latency) = sample(&line).ok_or_else(|| {
            ImportError::at(number, "a sample is CPU;seconds;us, as 0;1114.936950838;9")
        })?;
        let series = sheet.series(&format!("cpu{cpu}"), Some(cpu))?;
        if last_ns.insert(cpu, t_ns).is_some_and(|last_ns| last_ns >= t_ns) {
            let what = format!(
                "this sample of CPU {cpu} is not after the one before it: two files in one, or one \
                 twice; import one file for each"
            );
            return Err(ImportError::at(number, what));
        }
        sheet.sample(series, t_ns, latency.saturating_mul(unit_ns))?;
    }
    if unit_ns > 1 {
        sheet.caveats.push(ImportCaveat::LatenciesRounded { step_ns: unit_ns, down: true });
    }
    Ok(sheet)
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::tests::{caveats, series, text};

    #[test]
    fn what_is_beyond_its_thousand_bins_is_found_by_the_count() {
        let file = r#"{"version": 3,
            "sysinfo": {"sysname": "Linux", "nodename": "box", "release": "6.12", "version": "x",
                        "machine": "riscv64", "cpus_online": 2, "resolution_in_ns": 1000},
            "cpu": {"0": {"histogram": {"3": 3678, "9": 2}, "count": 3681, "min": 3, "max": 1200,
                          "avg": 3.41}}}"#;
        let sheet = text(file).unwrap();
        assert_eq!(series(&sheet), [("thread0", 3_681, 3_000, 1_200_000)]);
        assert!(caveats(&sheet).contains("1 of 3,681 samples on thread0 lie beyond the last bin"));
        assert_eq!(sheet.facts.hostname, "box");
        assert_eq!(text(&file[..file.len() - 60]).unwrap_err().line, Some(4));
    }

    #[test]
    fn samples_keep_their_times() {
        let file = "0;1114.936950838;9\n1;1114.937001000;4\n0;1115.936950838;12\n1;1116.0;7";
        let sheet = text(file).unwrap();
        assert_eq!(series(&sheet), [("cpu0", 2, 9_000, 12_000), ("cpu1", 1, 4_000, 4_000)]);
        assert_eq!(sheet.times_ns(), Some((1_114_936_950_838, 1_115_936_950_838)));
        let error = text("0;1.5;9\n0;1,6;9\n").unwrap_err().to_string();
        assert!(error.starts_with("line 2: a sample is CPU;seconds;us"), "{error}");
    }
}

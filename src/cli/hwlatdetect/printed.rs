//! What hwlatdetect prints.

use super::HwlatdetectFlags;
use crate::{kernel::tracefs::HwlatRecord, session::hwlat::HwlatSettings};

/// What is measured, before it begins.
pub(super) fn parameters(flags: &HwlatdetectFlags, settings: HwlatSettings) -> String {
    let HwlatSettings { threshold, window, width } = settings;
    let cpus = flags.cpu_list.as_ref().map_or("None".to_owned(), ToString::to_string);
    let report = flags.report.as_ref().map_or("None".to_owned(), |path| path.display().to_string());
    format!(
        "hwlatdetect:  test duration {} seconds\n   \
            detector: tracer\n   \
            parameters:\n        \
                 CPU list:          {cpus}\n        \
                 Latency threshold: {threshold}us\n        \
                 Sample window:      {window}us\n        \
                 Sample width:      {width}us\n     \
              Non-sampling period:  {}us\n        \
                 Output File:       {report}\n\n\
         Starting test\n",
        flags.seconds(),
        window.saturating_sub(width)
    )
}

/// What came of it, without the samples.
pub(super) fn result(records: &[HwlatRecord], settings: HwlatSettings) -> String {
    let longest = match longest_us(records) {
        0 => "Below threshold".to_owned(),
        us => format!("{us}us"),
    };
    let gaps = gaps(records);
    let mut text = format!(
        "test finished\nMax Latency: {longest}\nSamples recorded: {}\n\
         Samples exceeding threshold: {gaps}\n",
        records.len()
    );
    if let Some(between_s) = between_gaps_s(records, gaps, settings) {
        text.push_str(&format!("MTBF: {between_s:.3} seconds\n"));
    }
    text
}

/// `ts: 1700000000.123456789, inner:12, outer:14, cpu:1, count:2`
pub(super) fn sample(record: &HwlatRecord) -> String {
    let HwlatRecord { cpu, at_s, inner_us, outer_us, count } = record;
    let count = count.map(|count| format!(", count:{count}")).unwrap_or_default();
    format!("ts: {at_s}, inner:{inner_us}, outer:{outer_us}, cpu:{cpu}{count}\n")
}

/// The longest gap of all, us.
pub(super) fn longest_us(records: &[HwlatRecord]) -> u64 {
    records.iter().map(|record| record.inner_us.max(record.outer_us)).max().unwrap_or(0)
}

/// The gaps over the threshold; where the kernel does not count them, the samples.
fn gaps(records: &[HwlatRecord]) -> u64 {
    match records.first().and_then(|record| record.count) {
        Some(_) => records.iter().filter_map(|record| record.count).fold(0, u64::saturating_add),
        None => records.len() as u64,
    }
}

/// The mean time between gaps, s, of those that there are while nothing is measured, too.
fn between_gaps_s(records: &[HwlatRecord], gaps: u64, settings: HwlatSettings) -> Option<f64> {
    let HwlatSettings { window, width, .. } = settings;
    let at_s = |record: &HwlatRecord| record.at_s.parse::<f64>().ok();
    let (first_s, last_s) = (at_s(records.first()?)?, at_s(records.last()?)?);
    let measured = gaps.checked_sub(1).filter(|gaps| *gaps > 0 && width > 0)? * width;
    Some((last_s - first_s) * window as f64 / measured as f64)
}

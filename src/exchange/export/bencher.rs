//! Bencher's metric format (bencher.dev, "Bencher Metric Format"): benchmarks with their measures.

use std::{collections::BTreeMap, io};

use serde::Serialize;

use super::checks::CheckedRun;

/// A measure of a benchmark.
#[derive(Serialize)]
struct Measure {
    /// ns, the unit of Bencher's latencies.
    value: i64,
}

/// A benchmark a series, and a measure a latency of it.
pub(super) fn write(runs: &[CheckedRun]) -> io::Result<Vec<u8>> {
    let mut benchmarks: BTreeMap<String, BTreeMap<&str, Measure>> = BTreeMap::new();
    for run in runs {
        for figure in &run.figures {
            let own = benchmarks.entry(run.class(Some(&figure.series))).or_default();
            own.insert(&figure.name, Measure { value: figure.ns });
        }
    }
    let mut bytes = serde_json::to_vec_pretty(&benchmarks)?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::exchange::export::checks::tests::document;

    #[test]
    fn each_series_is_a_benchmark() {
        let mut document = document();
        document.series[0].max = Some(2_400_500);
        document.series[0].percentiles.clear();
        document.series.truncate(1);
        let bytes = write(&[CheckedRun::of(&document, &[])]).unwrap();
        let found: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(found, json!({"timer.idle.cpu0": {"max": {"value": 2_400_500}}}));
    }
}

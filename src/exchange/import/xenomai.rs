//! The output of Xenomai's and EVL's `latency` (`latmus` prints the same lines).
//!
//! ```text
//! RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst
//! RTD|      1.615|      1.923|      9.630|       0|     0|      1.615|      9.630
//! RTS|      1.615|      2.010|     12.410|       0|     0|    00:00:10/00:00:10
//! ```
//!
//! A line `RTD` is one second, in us; `RTS` is all of it. The output has no distribution, and no
//! line says how many samples it is of: the period is in the head.

use super::{
    ImportOptions,
    imported_data::ImportedData,
    source::{ImportError, Source},
    times::decimal,
};
use crate::{
    run::{FileLoss, ImportCaveat},
    units::many,
};

/// Whether it begins as such a file does.
pub(super) fn matches_format(head: &str) -> bool {
    head.lines().any(|line| line.starts_with("RTH|") && line.contains("lat max"))
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    _options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut sheet = ImportedData::new("latency (Xenomai)", Some("timer"));
    let series = sheet.series("all", None)?;
    let (mut period_us, mut seconds) = (None, 0_u64);
    let (mut min, mut max, mut sum) = (i64::MAX, i64::MIN, 0_i64);
    let (mut overruns, mut is_over, mut last_since) = (0_u64, false, String::new());
    while let Some((number, line)) = source.text()? {
        period_us = period_us.or_else(|| period(&line));
        is_over |= line.starts_with("RTS|");
        if let Some(rest) = line.strip_prefix("RTT|") {
            // Since its start: `00:00:21`.
            let since = rest.split_whitespace().next().unwrap_or_default().to_owned();
            is_over |= since < last_since;
            last_since = since;
        }
        if !line.starts_with("RTD|") {
            continue;
        }
        if is_over || overruns_before(&line, overruns) {
            let what = "a second run begins before this line: import one file for each";
            return Err(ImportError::at(number, what));
        }
        let mut fields = line.split('|').skip(1);
        let mut ns = || decimal(fields.next().unwrap_or_default(), 3);
        let (Some(low), Some(mean), Some(high)) = (ns(), ns(), ns()) else {
            return Err(ImportError::at(number, "a line RTD has smallest, mean and largest, us"));
        };
        let overrun = fields.next().and_then(|field| field.trim().parse().ok());
        overruns = overrun.unwrap_or(0).max(overruns);
        (min, max, sum) = (min.min(low), max.max(high), sum.saturating_add(mean));
        seconds += 1;
    }
    let Some(period_us) = period_us.filter(|_| seconds > 0) else {
        let what = "a line with its period (\"Sampling period: 100 us\", \"RTT| ... 1000 us \
                    period\") and lines RTD were expected, and one of these is missing";
        return Err(ImportError::new(what));
    };
    let samples = seconds.saturating_mul(1_000_000 / period_us);
    let mean = sum / i64::try_from(seconds).unwrap_or(i64::MAX);
    sheet.summary(series, samples.max(1), [min, mean, max]);
    sheet.parameter("interval_ns", period_us.saturating_mul(1_000));
    sheet.duration_ns = seconds.checked_mul(1_000_000_000);
    sheet.caveats.push(ImportCaveat::CountsEstimated { samples: samples.max(1) });
    if overruns > 0 {
        let what = many(overruns, "overrun");
        sheet.caveats.push(ImportCaveat::Loss(FileLoss::Stated { what }));
    }
    Ok(sheet)
}

/// Whether a line counts fewer overruns than one before it did: they are those of the run so far.
fn overruns_before(line: &str, overruns: u64) -> bool {
    let own = line.split('|').nth(4).and_then(|field| field.trim().parse::<u64>().ok());
    own.is_some_and(|own| own < overruns)
}

/// `== Sampling period: 100 us`, or `RTT|  00:00:01  (user, 1000 us period, priority 90, CPU1)`.
fn period(line: &str) -> Option<u64> {
    let number = match line.split_once("Sampling period:") {
        Some((_, rest)) => {
            let mut words = rest.split_whitespace();
            words.next().filter(|_| words.next() == Some("us"))?
        }
        None => line.split_once(" us period")?.0.rsplit([' ', ',', '(']).next()?,
    };
    number.parse().ok().filter(|us| (1..=1_000_000).contains(us))
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::tests::{caveats, series, text};

    const LATENCY: &str = "== Sampling period: 100 us\n== Test mode: periodic user-mode task\n\
        == All results in microseconds\nwarming up...\n\
        RTT|  00:00:01  (periodic user-mode task, 100 us period, priority 99)\n\
        RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst\n\
        RTD|      1.615|      1.923|      9.630|       0|     0|      1.615|      9.630\n\
        RTD|     -0.302|      2.077|     12.410|       0|     0|     -0.302|     12.410\n\
        ---|-----------|-----------|-----------|--------|------|-------------------------\n\
        RTS|     -0.302|      2.000|     12.410|       0|     0|    00:00:02/00:00:02\n";

    #[test]
    fn the_seconds_make_a_summary_whose_count_is_an_estimate() {
        let sheet = text(LATENCY).unwrap();
        assert_eq!(series(&sheet), [("all", 20_000, -302, 12_410)]);
        assert_eq!(sheet.series[0].totals.sum_ns, 2_000 * 20_000);
        let said = caveats(&sheet);
        assert!(said.contains("counts_estimated") && said.contains("no_distribution"), "{said}");
    }

    #[test]
    fn a_cut_or_odd_line_is_refused() {
        let odd = LATENCY.replace("12.410|       0|     0|     -0.302", "x|0|0|0");
        let error = text(&odd).unwrap_err().to_string();
        assert!(error.starts_with("line 8: a line RTD"), "{error}");
        let without = LATENCY.replace("eriod", "erio");
        assert!(text(&without).unwrap_err().to_string().contains("with its period"));
    }
}

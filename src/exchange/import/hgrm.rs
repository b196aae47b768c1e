//! `.hgrm`: the percentile distribution of an HdrHistogram, as outputPercentileDistribution and
//! wrk2 print it, or as its variant with commas.
//!
//! ```text
//!        Value     Percentile TotalCount 1/(1-Percentile)
//!
//!        0.921     0.000000            1         1.00
//!       12.503     1.000000        39500          inf
//! #[Mean    =        6.602, StdDeviation   =        1.919]
//! #[Max     =       12.496, Total count    =        39500]
//! ```
//!
//! `TotalCount` is how many samples are not above the value: those between two rows are taken as
//! the upper one.

use super::{
    ImportOptions,
    sheet::{LatencyUnit, Sheet},
    source::{ImportError, Source},
};
use crate::{plain::cut, run::ImportCaveat};

/// Whether it begins as such a file does.
pub(super) fn is_it(head: &str) -> bool {
    head.lines().any(is_heading)
}

fn is_heading(line: &str) -> bool {
    let plain: String = line.chars().filter(|c| !c.is_whitespace() && *c != '"').collect();
    plain.replace(',', "") == "ValuePercentileTotalCount1/(1-Percentile)"
}

/// Reads it.
pub(super) fn read(source: &mut Source<'_>, options: &ImportOptions) -> Result<Sheet, ImportError> {
    let mut sheet = Sheet::new("HdrHistogram", None);
    let unit = options.unit.unwrap_or(LatencyUnit::Milliseconds);
    let series = sheet.series("all", None)?;
    let (mut is_table, mut before, mut points, mut last) = (false, 0_u64, 0_u64, 0_i64);
    while let Some((number, line)) = source.text()? {
        if is_heading(&line) {
            if points > 0 {
                return Err(ImportError::at(number, "a second table: import one file for each"));
            }
            is_table = true;
        } else if is_table && line.starts_with('#') {
            summary(&line, &mut sheet, series, unit);
        } else if is_table && line.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
            let row = row(&line).ok_or_else(|| {
                let line = cut(line.trim(), 60);
                ImportError::at(number, format!("\"{line}\" is no row of the table"))
            })?;
            let value_ns = (row.0 * unit.ns() as f64).round() as i64;
            if row.1 < before || value_ns < last {
                return Err(ImportError::at(number, "values and counts must ascend"));
            }
            sheet.add(series, value_ns, row.1 - before);
            (before, last) = (row.1, value_ns);
            points += 1;
        }
    }
    if options.unit.is_none() {
        sheet.caveats.push(ImportCaveat::UnitAssumed { unit: unit.name() });
    }
    sheet.caveats.push(ImportCaveat::PointsOnly { points });
    Ok(sheet)
}

/// Value and count of a row.
fn row(line: &str) -> Option<(f64, u64)> {
    let mut fields = line.split(|c: char| c == ',' || c.is_whitespace());
    let mut fields = fields.by_ref().filter(|field| !field.is_empty());
    let value: f64 = fields.next()?.parse().ok()?;
    fields.next()?.parse::<f64>().ok()?;
    let count = fields.next()?.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some((value, count))
}

/// The mean and the maximum are exact there.
fn summary(line: &str, sheet: &mut Sheet, series: usize, unit: LatencyUnit) {
    let of = |name: &str| -> Option<f64> {
        let (_, rest) = line.split_once(name)?;
        let (_, value) = rest.split_once('=')?;
        value.split([',', ']']).next()?.trim().parse().ok()
    };
    let ns = |value: f64| (value * unit.ns() as f64).round() as i64;
    if let Some(mean) = of("[Mean").filter(|mean| mean.is_finite() && *mean >= 0.0) {
        sheet.set_mean(series, ns(mean));
    }
    if let Some(count) = of("Total count") {
        sheet.check_count(series, count as u64);
    }
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::tests::{caveats, series, text};

    /// In the form of wrk2.
    const TABLE: &str = "  Detailed Percentile spectrum:\n\
        \x20      Value   Percentile   TotalCount 1/(1-Percentile)\n\n\
        \x20      0.921     0.000000            1         1.00\n\
        \x20      4.053     0.100000         3951         1.11\n\
        \x20     12.503     1.000000        39500          inf\n\
        #[Mean    =        6.602, StdDeviation   =        1.919]\n\
        #[Max     =       12.496, Total count    =        39500]\n\
        #[Buckets =           27, SubBuckets     =         2048]\n";

    #[test]
    fn samples_between_two_rows_are_the_upper_one_and_the_mean_is_the_stated_one() {
        let sheet = text(TABLE).unwrap();
        assert_eq!(series(&sheet), [("all", 39_500, 921_000, 12_503_000)]);
        assert_eq!(sheet.series[0].totals.sum_ns, 6_602_000 * 39_500);
        let said = caveats(&sheet);
        assert!(
            said.contains("points_only") && said.contains("milliseconds are assumed"),
            "{said}"
        );
        let commas = TABLE.lines().map(|line| match line.starts_with('#') {
            true => line.to_owned(),
            false => line.split_whitespace().collect::<Vec<_>>().join(","),
        });
        let commas = commas.collect::<Vec<_>>().join("\n");
        assert_eq!(series(&text(&commas).unwrap()), series(&sheet));
    }

    #[test]
    fn a_table_that_descends_or_is_damaged_is_refused_by_its_line() {
        let descends = TABLE.replace("39500          inf", "3950          inf");
        assert_eq!(
            text(&descends).unwrap_err().to_string(),
            "line 6: values and counts must ascend"
        );
        let odd = TABLE.replace("3951", "39x1");
        assert!(text(&odd).unwrap_err().to_string().starts_with("line 5: "));
        let wrong = TABLE.replace("Total count    =        39500", "Total count    =        39501");
        assert!(caveats(&text(&wrong).unwrap()).contains("counts_differ"));
    }
}

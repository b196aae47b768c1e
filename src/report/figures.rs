//! Figures that are not latencies, as a table and in a sentence.

use super::table::Table;
use crate::{
    run::{Document, FigureRecord},
    units::{grouped, many},
};

/// The number of metrics in the headline; the table has all.
const IN_HEADLINE: usize = 3;

/// A row per figure; nothing where a run has none.
pub(super) fn table(document: &Document) -> Option<Table> {
    // Those of attached threads stand in their own table.
    if document.figures.is_empty() || document.attached.is_some() {
        return None;
    }
    let headings = ["metric", "unit", "mean", "95% from", "to", "least", "most", "repeats"];
    let mut table = Table::new(2, &headings);
    document.figures.iter().for_each(|figure| table.row(row(figure)));
    Some(table)
}

/// Columns that fit on a narrow terminal, the first of them first.
pub(super) const LEAST: [&str; 4] = ["least", "most", "repeats", "unit"];

fn row(figure: &FigureRecord) -> Vec<String> {
    let cell = |value: Option<f64>| value.map_or_else(|| "-".into(), number);
    let least = figure.values.iter().copied().reduce(f64::min);
    let most = figure.values.iter().copied().reduce(f64::max);
    let mut row = vec![figure.name.clone(), figure.unit.as_str().to_owned()];
    row.extend([figure.mean, figure.low, figure.high, least, most].map(cell));
    row.push(figure.values.len().to_string());
    row
}

/// The first of the figures that have a value, and how many more there are; nothing without any.
pub(super) fn sentence(document: &Document) -> Option<String> {
    let known = document.figures.iter().filter_map(|figure| Some((figure, figure.mean?)));
    let known: Vec<_> = known.collect();
    let first = known.iter().take(IN_HEADLINE).map(|(figure, mean)| {
        format!("{} {} {}", figure.name, number(*mean), figure.unit.as_str())
    });
    let first = first.collect::<Vec<_>>().join(", ");
    match known.len().saturating_sub(IN_HEADLINE) {
        _ if known.is_empty() => None,
        0 => Some(format!("{first}.")),
        more => Some(format!("{first}, and {}.", many(more as u64, "more figure"))),
    }
}

/// With three digits that count: `5,230`, `48.1`, `0.214`.
#[must_use]
pub(super) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        99.95.. => 0,
        9.995.. => 1,
        0.9995.. | 0.0 => 2,
        0.0999.. => 3,
        _ => 4,
    };
    grouped(&format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        report::fixture,
        run::{FigureHead, FigureUnit, figures::summarize_figure},
    };

    fn figure(name: &str, unit: FigureUnit, values: &[f64]) -> FigureRecord {
        summarize_figure(&FigureHead { name: name.into(), unit }, values)
    }

    #[test]
    fn each_figure_has_its_row_also_without_an_interval_and_without_a_value() {
        let mut document = fixture::of("timer", &[]);
        assert!(table(&document).is_none() && sentence(&document).is_none());
        document.figures = vec![
            figure("pipe/64KiB", FigureUnit::MegabytesPerSecond, &[5_000.0, 5_100.0]),
            figure("fork", FigureUnit::Microseconds, &[81.25]),
            figure("exec", FigureUnit::Microseconds, &[]),
        ];
        let lines = table(&document).unwrap().lines();
        let words = |at: usize| lines[at].split_whitespace().collect::<Vec<_>>();
        assert_eq!(words(1)[..4], ["pipe/64KiB", "MB/s", "5,050", "4,415"]);
        assert_eq!(words(2), ["fork", "us", "81.2", "-", "-", "81.2", "81.2", "1"]);
        assert_eq!(words(3), ["exec", "us", "-", "-", "-", "-", "-", "0"]);
        assert_eq!(sentence(&document).unwrap(), "pipe/64KiB 5,050 MB/s, fork 81.2 us.");
        let more = figure("switch/2", FigureUnit::Microseconds, &[2.0]);
        document.figures.extend([more.clone(), more]);
        assert!(sentence(&document).unwrap().ends_with("switch/2 2.00 us, and 1 more figure."));
    }

    #[test]
    fn numbers_have_three_digits_that_count() {
        assert_eq!([-12_345.6, -1.5].map(number), ["-12,346", "-1.50"]);
        let written = [12_345.6, 5_230.4, 48.12, 1.234, 0.2141, 0.012, 0.0].map(number);
        assert_eq!(written, ["12,346", "5,230", "48.1", "1.23", "0.214", "0.0120", "0.00"]);
    }
}

//! The tables of interbench: a simulated workload beside a load a row.
//!
//! ```text
//! Benchmarking kernel 6.12.0 at datestamp 202611261822
//!
//! --- Benchmarking simulated cpu of Video in the presence of simulated ---
//! Load    Latency +/- SD (ms)  Max Latency   % Desired CPU  % Deadlines Met
//! None       0.4 +/- 1.7       21.5             100           99.5
//! ```
//!
//! Of latencies there are mean, standard deviation and maximum alone, and neither the smallest nor
//! how many there were: they are not samples, but figures. A workload that has no deadlines
//! (Gaming) has no last column. With `-r` latencies are in us.

use super::{
    ImportOptions,
    imported_data::ImportedData,
    source::{ImportError, Source},
};
use crate::{
    plain::cut,
    run::{FigureHead, FigureUnit},
};

const TITLE: &str = "--- Benchmarking simulated cpu of ";

/// Whether it begins as such a file does.
pub(super) fn matches_format(head: &str) -> bool {
    head.lines().any(|line| line.starts_with(TITLE))
        && head.lines().any(|line| line.starts_with("Load") && line.contains("Latency +/- SD ("))
}

/// The table that rows are of.
struct Table {
    /// The simulated task.
    task: String,
    /// Its unit in us; absent before the heading.
    unit_us: Option<f64>,
    /// Whether it has deadlines.
    has_deadlines: bool,
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    _options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut sheet = ImportedData::new("interbench", None);
    let mut table: Option<Table> = None;
    while let Some((number, line)) = source.text()? {
        let refused =
            |what: &str| ImportError::at(number, format!("\"{}\" {what}", cut(line.trim(), 80)));
        if let Some(rest) = line.strip_prefix(TITLE) {
            let words = rest.split_whitespace().take_while(|word| *word != "in");
            let task = words.collect::<Vec<&str>>().join("_");
            if task.is_empty() {
                return Err(refused("names no simulated task"));
            }
            table = Some(Table { task, unit_us: None, has_deadlines: false });
        } else if let Some(rest) = line.strip_prefix("Benchmarking kernel ") {
            let (kernel, _) = rest.split_once(" at datestamp").unwrap_or((rest, ""));
            sheet.facts.kernel = cut(kernel.trim(), 100);
        } else if let Some(open) = &mut table {
            if line.trim().is_empty() {
                table = None;
            } else if line.starts_with("Load") {
                open.unit_us = Some(unit_us(&line).ok_or_else(|| refused("names no unit"))?);
                open.has_deadlines = line.contains("Deadlines Met");
            } else {
                let values = values(&line, open).filter(|_| source.is_whole());
                let values = values.ok_or_else(|| refused("is not a row of interbench's table"))?;
                for (head, value) in values {
                    let added = sheet.figure(head, value);
                    added.map_err(|error| ImportError { line: Some(number), ..error })?;
                }
            }
        }
    }
    if sheet.figures.is_empty() {
        return Err(ImportError::new("no table of it has a row"));
    }
    Ok(sheet)
}

/// How many us the unit of a heading has.
fn unit_us(heading: &str) -> Option<f64> {
    match () {
        () if heading.contains("SD (ms)") => Some(1_000.0),
        () if heading.contains("SD (us)") => Some(1.0),
        () => None,
    }
}

/// The figures of a row: `None  0.4 +/- 1.7  21.5  100  99.5`.
fn values(line: &str, table: &Table) -> Option<Vec<(FigureHead, f64)>> {
    let unit_us = table.unit_us?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let (load, rest) = words.split_first()?;
    let (mean, rest) = rest.split_first()?;
    let (_, rest) = rest.split_first().filter(|(sign, _)| **sign == "+/-")?;
    let number = |word: &str| {
        let is_plain = word.bytes().all(|byte| byte.is_ascii_digit() || b".e+".contains(&byte));
        word.parse::<f64>().ok().filter(|value| is_plain && value.is_finite())
    };
    let names = ["stddev", "max", "cpu", "deadlines"];
    let count = names.len() - usize::from(!table.has_deadlines);
    if rest.len() != count {
        return None;
    }
    let all = std::iter::once(("mean", *mean)).chain(names.into_iter().zip(rest.iter().copied()));
    let figure = |(name, word): (&str, &str)| {
        let value = number(word)?;
        let (unit, value) = match name {
            "cpu" | "deadlines" => (FigureUnit::Percent, value),
            _ => (FigureUnit::Microseconds, value * unit_us),
        };
        let name = format!("{}+{}/{name}", table.task, cut(load, 40));
        Some((FigureHead { name, unit }, value))
    };
    all.map(figure).collect()
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::tests::text;

    const TABLES: &str = "Using 1840490 loops per ms, running every load for 30 seconds\n\
        Benchmarking kernel 6.12.0-rt at datestamp 202611261822\n\n\
        --- Benchmarking simulated cpu of Audio real time in the presence of simulated ---\n\
        Load\tLatency +/- SD (us)  Max Latency   % Desired CPU  % Deadlines Met\n\
        None\t   0.2 +/- 0.8        5.1\t\t 100\t        100\n\n\
        --- Benchmarking simulated cpu of Gaming in the presence of simulated ---\n\
        Load\tLatency +/- SD (ms)  Max Latency   % Desired CPU\n\
        Burn\t  48.5 +/- 49.25    3335.5\t\t89.6\n\n\n";

    #[test]
    fn each_row_is_figures_of_a_task_beside_a_load() {
        let sheet = text(TABLES).unwrap();
        let figures: Vec<_> = sheet
            .figures
            .iter()
            .map(|(own, values)| (&*own.name, own.unit.as_str(), values[0]))
            .collect();
        let expected = [
            ("Audio_real_time+None/mean", "us", 0.2),
            ("Audio_real_time+None/stddev", "us", 0.8),
            ("Audio_real_time+None/max", "us", 5.1),
            ("Audio_real_time+None/cpu", "percent", 100.0),
            ("Audio_real_time+None/deadlines", "percent", 100.0),
            ("Gaming+Burn/mean", "us", 48_500.0),
            ("Gaming+Burn/stddev", "us", 49_250.0),
            ("Gaming+Burn/max", "us", 3_335_500.0),
            ("Gaming+Burn/cpu", "percent", 89.6),
        ];
        assert_eq!(figures, expected);
        assert_eq!(sheet.facts.kernel, "6.12.0-rt");
        assert!(sheet.series.is_empty());
    }

    #[test]
    fn a_damaged_row_is_refused_and_a_table_without_rows_too() {
        for (from, to) in [
            ("0.2 +/-", "0,2 +/-"),
            ("0.2 +/-", "-0.2 +/-"),
            ("0.2 +/-", "nan +/-"),
            ("0.2 +/-", "1e999 +/-"),
            ("5.1\t\t 100\t        100", "5.1\t\t 100"),
        ] {
            assert!(TABLES.contains(from), "{from:?}");
            let error = text(&TABLES.replace(from, to)).unwrap_err().to_string();
            assert!(error.starts_with("line 6: \"None"), "{to:?}: {error}");
        }
        let mixed = TABLES.replace("SD (us)", "SD (?)");
        assert!(text(&mixed).unwrap_err().to_string().starts_with("line 5: "));
        let cut = &TABLES[..TABLES.find(".6\n").unwrap()];
        assert!(text(cut).unwrap_err().to_string().starts_with("line 10: "));
        let empty = &TABLES[..TABLES.find("None").unwrap()];
        assert!(text(empty).unwrap_err().to_string().contains("has a row"));
    }
}

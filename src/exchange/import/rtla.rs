//! The histograms of `rtla timerlat hist` and `rtla osnoise hist`.
//!
//! ```text
//! # RTLA timerlat histogram
//! # Time unit is microseconds (us)
//! # Duration:   0 00:10:00
//! Index   IRQ-000   Thr-000   IRQ-001   Thr-001
//! 0        276489         0    206089         0
//! over:         0         0         0         0
//! count:   600002    600002    600002    600002
//! min:          0         1         0         1
//! avg:          0         5         0         5
//! max:         16        36        15        58
//! ```
//!
//! Which columns there are depends on its options, so that the heading decides. What is beyond the
//! last row is counted in `over:`. The blocks of sums behind it (`ALL:`) are not read; what its
//! auto-analysis says behind them is.

use super::{
    ImportOptions,
    imported_data::{ImportedData, LatencyUnit},
    rtla_analysis::{Analyses, Table, unfinished_by_counts},
    source::{ImportError, Source},
};
use crate::limits::import::MOST_COLUMNS;
use crate::{plain::cut, run::ImportCaveat};

/// Whether it begins as such a file does.
pub(super) fn matches_format(head: &str) -> bool {
    head.lines().any(|line| {
        line.starts_with("# RTLA timerlat histogram")
            || line.starts_with("# RTLA osnoise histogram")
    })
}

/// What is read of a file.
#[derive(Debug, Default)]
struct Found {
    /// The number of the series of each column.
    columns: Vec<usize>,
    unit: LatencyUnit,
    /// Whether the whole latencies are those of threads, or of their return to user space.
    has_threads: bool,
    last: i64,
    step: i64,
    rows: u64,
    over: Vec<u64>,
    counts: Vec<u64>,
    min: Vec<u64>,
    mean: Vec<u64>,
    max: Vec<u64>,
    is_over: bool,
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    _options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut sheet = ImportedData::new("rtla timerlat", Some("timer"));
    let mut found = Found::default();
    let mut analyses = Analyses::default();
    while let Some((number, line)) = source.text()? {
        if analyses.take(number, &line)? {
            continue;
        }
        let taken = found.take(&line, &mut sheet);
        taken.map_err(|error| ImportError { line: Some(number), ..error })?;
    }
    if found.columns.is_empty() {
        return Err(ImportError::new("it has no heading (Index IRQ-000 Thr-000 ...)"));
    }
    if found.counts.is_empty() {
        return Err(ImportError::new("a line count: was expected behind its rows, and is missing"));
    }
    for (column, series) in found.columns.iter().enumerate() {
        let of = |values: &[u64]| values.get(column).copied().unwrap_or(0);
        let from = found.last.saturating_add(found.step.max(1)).saturating_mul(found.unit.ns());
        let max = i64::try_from(of(&found.max)).unwrap_or(i64::MAX).saturating_mul(found.unit.ns());
        sheet.hidden(*series, of(&found.over), from, max);
        let ns = |values: &[u64]| i64::try_from(of(values)).ok()?.checked_mul(found.unit.ns());
        if let Some(min_ns) = ns(&found.min) {
            sheet.min_of_hidden(*series, min_ns);
        }
        if let Some(mean_ns) = ns(&found.mean) {
            sheet.mean_with_hidden(*series, mean_ns, found.unit.ns());
        }
        sheet.check_count(*series, of(&found.counts));
    }
    let table = match found.has_threads {
        true => Table::OfThreads(found.unit),
        false => Table::OfInterrupts(found.unit),
    };
    analyses.add_to(&mut sheet, table)?;
    unfinished_by_counts(&mut sheet)?;
    let step_ns = found.step.max(1).saturating_mul(found.unit.ns());
    sheet.caveats.push(ImportCaveat::LatenciesRounded { step_ns, down: true });
    Ok(sheet)
}

impl Found {
    fn take(&mut self, line: &str, sheet: &mut ImportedData) -> Result<(), ImportError> {
        if let Some(comment) = line.strip_prefix('#') {
            self.comment(comment, sheet);
            return Ok(());
        }
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { return Ok(()) };
        let is_heading = first == "Index" && words.clone().all(|word| word.contains('-'));
        if self.is_over {
            return match is_heading {
                true => Err(ImportError::new("a second run begins here: import one file for each")),
                false => Ok(()),
            };
        }
        if self.columns.is_empty() {
            if is_heading {
                self.heading(words, sheet)?;
            }
            return Ok(());
        }
        let values = || -> Result<Vec<u64>, ImportError> {
            // A CPU that was not measured has dashes.
            let one = |word: &str| if word == "-" { Some(0) } else { word.parse().ok() };
            let numbers: Option<Vec<u64>> = line.split_whitespace().skip(1).map(one).collect();
            numbers.filter(|numbers| numbers.len() == self.columns.len()).ok_or_else(|| {
                let line = cut(line.trim(), 60);
                let columns = self.columns.len();
                ImportError::new(format!("\"{line}\" has not {columns} numbers, one a column"))
            })
        };
        match first {
            "ALL:" => self.is_over = true,
            "over:" => self.over = values()?,
            "count:" => self.counts = values()?,
            "max:" => {
                self.max = values()?;
                self.is_over = true;
            }
            "min:" => self.min = values()?,
            "avg:" => self.mean = values()?,
            bin => {
                let numbers = values()?;
                let bin: i64 =
                    bin.parse().ok().filter(|bin| *bin >= self.last).ok_or_else(|| {
                        ImportError::new(format!(
                            "\"{}\" is not a row of the histogram",
                            cut(bin, 40)
                        ))
                    })?;
                self.row(bin, &numbers, sheet);
            }
        }
        Ok(())
    }

    fn comment(&mut self, comment: &str, sheet: &mut ImportedData) {
        if comment.contains("RTLA osnoise") {
            sheet.program = "rtla osnoise".into();
            sheet.same_as = Some("noise");
        }
        if comment.contains("nanoseconds") {
            self.unit = LatencyUnit::Nanoseconds;
        }
        if let Some((_, text)) = comment.split_once("Duration:") {
            sheet.duration_ns = duration_ns(text);
        }
    }

    fn heading<'a>(
        &mut self,
        words: impl Iterator<Item = &'a str> + Clone,
        sheet: &mut ImportedData,
    ) -> Result<(), ImportError> {
        let has_user = words.clone().any(|word| word.starts_with("Usr-"));
        let has_thread = words.clone().any(|word| word.starts_with("Thr-"));
        self.has_threads = has_thread || has_user;
        for word in words.take(MOST_COLUMNS) {
            let cpu = word.split_once('-').and_then(|(kind, cpu)| Some((kind, cpu.parse().ok()?)));
            let (kind, cpu): (&str, u32) = cpu.ok_or_else(|| {
                ImportError::new(format!("\"{}\" is not a column of rtla", cut(word, 40)))
            })?;
            // The last that there is of a CPU is the whole latency, and those before it are parts.
            let name = match kind {
                "IRQ" if has_thread || has_user => format!("cpu{cpu}/irq"),
                "Thr" if has_user => format!("cpu{cpu}/thread"),
                "IRQ" | "Thr" | "Usr" | "CPU" => format!("cpu{cpu}"),
                _ => return Err(ImportError::new(format!("no column {} is known", cut(word, 40)))),
            };
            let number = sheet.series(&name, Some(cpu))?;
            if self.columns.contains(&number) {
                return Err(ImportError::new(format!("column {word} comes twice")));
            }
            self.columns.push(number);
        }
        Ok(())
    }

    fn row(&mut self, bin: i64, numbers: &[u64], sheet: &mut ImportedData) {
        if self.rows > 0 && self.step == 0 {
            self.step = bin - self.last;
        }
        // Rows of zeros may be left out, so that the smallest distance is a step.
        if bin > self.last {
            self.step = self.step.min(bin - self.last).max(1);
        }
        (self.last, self.rows) = (bin, self.rows + 1);
        for (column, count) in numbers.iter().enumerate() {
            if let Some(series) = self.columns.get(column) {
                sheet.add(*series, bin.saturating_mul(self.unit.ns()), *count);
            }
        }
    }
}

/// `0 00:10:00`, days and the rest.
pub(super) fn duration_ns(text: &str) -> Option<u64> {
    let (days, rest) = text.trim().split_once(' ')?;
    let mut seconds: u64 = days.trim().parse().ok()?;
    for (part, factor) in rest.trim().split(':').zip([24, 60, 60]) {
        seconds = seconds.checked_mul(factor)?.checked_add(part.trim().parse().ok()?)?;
    }
    seconds.checked_mul(1_000_000_000).filter(|ns| *ns > 0 && *ns < 1 << 62)
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::tests::{caveats, series, text};

    /// In the form of the kernel's rtla-timerlat-hist.rst.
    const TIMERLAT: &str = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n\
        # Duration:   0 00:10:00\nIndex   IRQ-000   Thr-000   IRQ-003   Thr-003\n\
        0        276489         0    206089         0\n\
        1        318327     35487    388149     30024\n\
        2          3282    122584      4019    136412\n\
        4             4    441931      1745    433566\n\
        over:         0         2         0         0\n\
        count:   598102    600004    600002    600002\n\
        min:          0         1         0         1\n\
        avg:          0         3         0         3\n\
        max:          4        58         4         4\n\
        ALL:        IRQ       Thr\ncount:  1198104   1200006\nmax:  4  58\n";

    #[test]
    fn the_thread_is_the_whole_latency_and_the_interrupt_its_stage() {
        let sheet = text(TIMERLAT).unwrap();
        let expected = [
            ("cpu0/irq", 598_102, 0, 4_000),
            ("cpu0", 600_004, 1_000, 58_000),
            ("cpu3/irq", 600_002, 0, 4_000),
            ("cpu3", 600_002, 1_000, 4_000),
        ];
        assert_eq!(series(&sheet), expected);
        assert_eq!(sheet.duration_ns, Some(600_000_000_000));
        let said = caveats(&sheet);
        assert!(said.contains("2 of 600,004 samples on cpu0 lie beyond"), "{said}");
        assert!(!said.contains("counts_differ"), "{said}");
    }

    #[test]
    fn columns_follow_the_heading_and_osnoise_is_noise() {
        let user = TIMERLAT.replace("IRQ-003   Thr-003", "Usr-000   Thr-003");
        let names: Vec<String> =
            text(&user).unwrap().series.into_iter().map(|series| series.head.name).collect();
        assert_eq!(names, ["cpu0/irq", "cpu0/thread", "cpu0", "cpu3/thread", "cpu3"]);
        let osnoise = "# RTLA osnoise histogram\n# Time unit is nanoseconds (ns)\n\
            # Duration:   0 00:00:10\nIndex   CPU-000   CPU-001\n0        10        20\n\
            over:     0         0\ncount:   10        20\nmin:      0         0\n\
            avg:      0         0\nmax:      0         0\n";
        let sheet = text(osnoise).unwrap();
        assert_eq!((sheet.same_as, series(&sheet)[1]), (Some("noise"), ("cpu1", 20, 0, 0)));
    }

    #[test]
    fn a_cut_or_uneven_table_is_refused() {
        let cut = &TIMERLAT[..TIMERLAT.find("count:").unwrap()];
        assert!(text(cut).unwrap_err().to_string().contains("a line count: was expected"));
        let short = TIMERLAT.replace("3282    122584      4019", "3282    122584");
        let error = text(&short).unwrap_err().to_string();
        assert!(error.starts_with("line 7: ") && error.contains("has not 4 numbers"), "{error}");
    }
}

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
//! last row is counted in `over:`. Rows are of `-b` units each, and smallest, mean and largest of
//! one, whatever the rows are of. The blocks of sums behind it (`ALL:`) are not read; what its
//! auto-analysis says behind them is.

use super::{
    ImportOptions,
    imported_data::{ImportedData, LatencyUnit},
    rtla_analysis::{Analyses, Table, unfinished_by_counts},
    source::{ImportError, Source},
    stated::Stated,
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
    /// The first and the last row with samples of each column.
    ends: Vec<Option<(i64, i64)>>,
    /// The line of the largest.
    max_line: u64,
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
        if found.max.is_empty() {
            found.max_line = number;
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
    found.set_step();
    for column in 0..found.columns.len() {
        found.put(column, &mut sheet)?;
    }
    let table = match found.has_threads {
        true => Table::OfThreads(found.unit),
        false => Table::OfInterrupts(found.unit),
    };
    analyses.add_to(&mut sheet, table)?;
    unfinished_by_counts(&mut sheet)?;
    let step_ns = found.step.saturating_mul(found.unit.ns());
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
            self.ends.push(None);
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
            if let Some(ends) = self.ends.get_mut(column).filter(|_| *count > 0) {
                *ends = Some((ends.map_or(bin, |(first, _)| first), bin));
            }
        }
    }

    /// Of a single row the step is not known, but that row holds every sample.
    fn set_step(&mut self) {
        if self.rows == 1 && self.over.iter().all(|over| *over == 0) {
            let max = self.max.iter().max().copied().unwrap_or(0);
            self.step = (as_signed(max) - self.last).max(0).saturating_add(1);
        }
        self.step = self.step.max(1);
    }

    /// Adds what the lines below the rows say of a column.
    fn put(&self, column: usize, sheet: &mut ImportedData) -> Result<(), ImportError> {
        let Some(series) = self.columns.get(column).copied() else { return Ok(()) };
        let of = |values: &[u64]| values.get(column).copied().map(as_signed);
        let [over, count] = [&self.over, &self.counts].map(|own| own.get(column).copied());
        let (over, count) = (over.unwrap_or(0), count.unwrap_or(0));
        let ns = |value: i64| value.saturating_mul(self.unit.ns());
        let (from, max) = (self.last.saturating_add(self.step), of(&self.max));
        sheet.hidden(series, over, ns(from), ns(max.unwrap_or(0)));
        let found = sheet.series.get(series).map_or(0, |own| own.totals.count);
        sheet.check_count(series, count);
        if found == 0 || count == 0 {
            return Ok(());
        }
        let [min, mean] = [&self.min, &self.mean].map(|own| of(own));
        if let Some((first, last)) = self.ends.get(column).copied().flatten() {
            let name = sheet.series.get(series).map_or("", |own| own.head.name.as_str());
            let values = [min, mean, max].map(|value| value.map(|value| value as f64));
            let stated = Stated { of: name, names: ["min", "avg", "max"], values };
            stated.ordered().map_err(|what| ImportError::at(self.max_line, what))?;
            self.check_rows(name, (first, last), (min, max), over == 0 && found == count)?;
        }
        let are_coarse = self.step > 1 || self.ends.get(column).copied().flatten().is_none();
        if let Some(own) = sheet.series.get_mut(series).filter(|_| are_coarse) {
            own.totals.min_ns = min.map_or(own.totals.min_ns, ns);
            own.totals.max_ns = max.map_or(own.totals.max_ns, ns).max(own.totals.max_ns);
        }
        let Some(mean_ns) = mean.map(ns) else { return Ok(()) };
        if over > 0 {
            sheet.mean_with_hidden(series, mean_ns, ns(self.step));
        } else if self.step > 1 && found == count {
            sheet.set_mean(series, mean_ns);
        }
        Ok(())
    }

    /// Refuses a smallest or largest that the rows contradict. Rows without samples may be left
    /// out, so that a step is at most what is between two of them.
    fn check_rows(
        &self,
        name: &str,
        (first, last): (i64, i64),
        (min, max): (Option<i64>, Option<i64>),
        are_all: bool,
    ) -> Result<(), ImportError> {
        let wrong = |what: String| {
            let what = format!("{name}: {what}: the file contradicts itself");
            Err(ImportError::at(self.max_line, what))
        };
        match (min, max) {
            (_, Some(max)) if max < last => {
                wrong(format!("max {max} is below the largest row with samples, {last}"))
            }
            (_, Some(max)) if are_all && max >= last.saturating_add(self.step) => wrong(format!(
                "max {max} is above the largest row with samples, {last}, and no sample is beyond \
                 the rows"
            )),
            (Some(min), _) if min >= first.saturating_add(self.step) => {
                wrong(format!("min {min} is above the smallest row with samples, {first}"))
            }
            _ => Ok(()),
        }
    }
}

fn as_signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
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

    /// With `-b 10`.
    const WIDE: &str = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n\
        # Duration:   0 00:00:02\nIndex   IRQ-001   Thr-001   Usr-001   Usr-002\n\
        0          1000       944       134       986\n\
        10            0        55       863        13\n\
        20            0         1         3         0\n\
        over:         0         0         0         0\n\
        count:     1000      1000      1000       999\n\
        min:          0         3         4         3\n\
        avg:          1         7        10         3\n\
        max:          7        21        24        15\n";

    fn mean_ns(sheet: &crate::exchange::import::ImportedData, at: usize) -> i64 {
        let totals = &sheet.series[at].totals;
        totals.sum_ns / i64::try_from(totals.count).unwrap()
    }

    #[test]
    fn of_rows_of_several_units_the_stated_extremes_and_means_are_kept() {
        let sheet = text(WIDE).unwrap();
        let expected = [
            ("cpu1/irq", 1_000, 0, 7_000),
            ("cpu1/thread", 1_000, 3_000, 21_000),
            ("cpu1", 1_000, 4_000, 24_000),
            ("cpu2", 999, 3_000, 15_000),
        ];
        assert_eq!(series(&sheet), expected);
        assert_eq!([0, 1, 2, 3].map(|at| mean_ns(&sheet, at)), [1_000, 7_000, 10_000, 3_000]);
        let said = caveats(&sheet);
        assert!(said.contains("steps of 10.0 us"), "{said}");
        let one = WIDE.lines().filter(|line| !line.starts_with(['1', '2']));
        let one: String = one.map(|line| format!("{line}\n")).collect();
        let one = one.replace("944       134       986", "999       999       999");
        let sheet = text(&one.replace("15", "9")).unwrap();
        assert_eq!(series(&sheet)[3], ("cpu2", 999, 3_000, 9_000), "one row, of a step unknown");
        let over = WIDE
            .replace("over:         0         0         0", "over:         0         0         2");
        let over = over
            .replace("1000      1000      1000       999", "1000      1000      1002       999");
        let sheet = text(&over.replace("        24", "        57")).unwrap();
        assert_eq!(series(&sheet)[2], ("cpu1", 1_002, 4_000, 57_000));
        assert_eq!(mean_ns(&sheet, 2), 10_000);
    }

    #[test]
    fn extremes_that_the_rows_contradict_are_refused_by_line() {
        for (from, to, said) in [
            ("        24", "        19", "cpu1: max 19 is below the largest row with samples, 20"),
            ("        24", "        30", "cpu1: max 30 is above the largest row with samples, 20"),
            ("min:          0", "min:         10", "cpu1/irq: min 10 is above max 7"),
            ("avg:          1", "avg:          9", "cpu1/irq: avg 9 is above max 7"),
        ] {
            let error = text(&WIDE.replace(from, to)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("line 12: {said}")), "{error}");
        }
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

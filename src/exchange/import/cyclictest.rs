//! cyclictest's text: a line a thread, and with `-h` or `-H` the histogram behind it.
//!
//! ```text
//! T: 0 ( 7590) P:80 I:1000 C:    300 Min:      3 Act:    4 Avg:    4 Max:     12
//! # Histogram
//! 000003 000006 000011
//! # Total: 000001423 000001486
//! # Min Latencies: 00003 00003
//! # Max Latencies: 00401 00909
//! # Histogram Overflows: 00077 00014
//! ```
//!
//! A row is a latency and how often each thread had it; with `-H` one more column and one more
//! total are the sums. With `-N` numbers are ns: the lines of threads, not those of histograms,
//! then have wider columns. Those lines are redrawn while it runs: the last of each counts.

use std::collections::BTreeMap;

use super::{
    ImportOptions,
    imported_data::{ImportedData, LatencyUnit},
    source::{ImportError, Source, without_escapes},
    stated::{Beyond, Stated},
};
use crate::limits::import::{MOST_CELLS, MOST_THREADS};
use crate::{run::ImportCaveat, units::many};

/// Lines behind a histogram, each with a number for every thread.
const TOTAL: &str = "Total";
const MIN: &str = "Min Latencies";
const AVG: &str = "Avg Latencies";
const MAX: &str = "Max Latencies";
const OVERFLOWS: &str = "Histogram Overflows";
const SMIS: &str = "SMIs";

/// The latency at which it ended itself, of `-b`.
const BREAK_VALUE: &str = "Break value";

/// Cycles that the lines of threads may count beyond those of the histogram.
const MOST_BEHIND: u64 = 10;

/// Of a file with more than one run: their threads have the same numbers.
const SECOND_RUN: &str = "a second run begins here: import one file for each";

/// Whether it begins as such a file does.
pub(super) fn matches_format(head: &str) -> bool {
    head.lines()
        .any(|line| line.trim_end() == "# Histogram" || is_of_thread(&without_escapes(line)))
}

/// Whether a line is meant as one of a thread.
fn is_of_thread(line: &str) -> bool {
    let fields = [" P:", " C:", " Min:", " Max:"];
    line.trim_start().starts_with("T:") && fields.iter().all(|field| line.contains(field))
}

/// A thread's line.
#[derive(Debug, Clone, PartialEq)]
struct ThreadLine {
    number: usize,
    /// The kernel's number; 0 if the line lacks it.
    tid: i64,
    priority: i64,
    interval_us: i64,
    cycles: u64,
    min: i64,
    mean: i64,
    max: i64,
    /// Of its CPU, with `--smi`.
    smis: u64,
    /// Where its columns say so.
    unit: Option<LatencyUnit>,
    /// The number of the line in the file.
    line: u64,
}

fn thread_line(line: &str, at: u64) -> Option<ThreadLine> {
    let line = line.trim().strip_prefix("T:")?;
    let (number, rest) = line.split_once('(')?;
    let (tid, rest) = rest.split_once(')')?;
    let field = |name: &str| {
        let (_, value) = rest.split_once(name)?;
        let end = value.find(|c: char| c != ' ' && c != '-' && !c.is_ascii_digit());
        value.get(..end.unwrap_or(value.len()))
    };
    let number_in = |name: &str| field(name)?.split_whitespace().next()?.parse::<i64>().ok();
    let (_, last) = rest.split_once("Max:")?;
    let (max, smis) = match last.split_once(" SMI:") {
        Some((max, smis)) => (max, smis.trim().parse().ok()?),
        None => (last, 0),
    };
    Some(ThreadLine {
        number: number.trim().parse().ok().filter(|number| *number < MOST_THREADS)?,
        tid: tid.trim().parse().unwrap_or(0),
        priority: number_in("P:")?,
        interval_us: number_in("I:")?,
        cycles: u64::try_from(number_in("C:")?).ok()?,
        min: number_in("Min:")?,
        mean: number_in("Avg:")?,
        max: max.trim().parse().ok()?,
        smis,
        unit: match field("I:") {
            // Of 2006, and of Xenomai: all columns are as wide, and in us.
            Some(interval) if interval.starts_with(' ') => Some(LatencyUnit::Microseconds),
            _ => field("Act:").and_then(unit_of),
        },
        line: at,
    })
}

/// The unit by the width of the column: 5 characters for us, 8 for ns; one that is full says
/// nothing.
fn unit_of(column: &str) -> Option<LatencyUnit> {
    // Between it and the next stands a space.
    let column = column.strip_suffix(' ').unwrap_or(column);
    match (column.len(), column.starts_with(' ')) {
        (5, _) => Some(LatencyUnit::Microseconds),
        (8, true) => Some(LatencyUnit::Nanoseconds),
        _ => None,
    }
}

/// What is read of a file.
#[derive(Debug, Default)]
struct Found {
    threads: BTreeMap<usize, ThreadLine>,
    /// By bin and column.
    rows: BTreeMap<u64, Vec<u64>>,
    cells: usize,
    /// By name, with the number of the line.
    totals: BTreeMap<&'static str, (u64, Vec<u64>)>,
    last_bin: u64,
    /// What it ended itself at.
    break_value: Option<i64>,
    /// Whether its command line has -N.
    is_of_ns: bool,
}

impl ThreadLine {
    /// Whether it can be a later line of that thread, of one run.
    fn continues(&self, known: &Self) -> bool {
        let has_begun = known.cycles > 0;
        let is_same = self.tid == known.tid || self.tid * known.tid == 0;
        is_same
            && (self.priority, self.interval_us) == (known.priority, known.interval_us)
            && self.cycles >= known.cycles
            && (!has_begun || (self.min <= known.min && self.max >= known.max))
    }
}

/// Whether a line has one thread and nothing else.
fn is_alone(line: &str) -> bool {
    line.matches("T:").count() == 1
}

/// Whether it is a command line of cyclictest with -N.
fn says_ns(line: &str) -> bool {
    let Some((_, flags)) = line.split_once("cyclictest ") else { return false };
    flags.split_whitespace().any(|word| {
        let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let letters = short.map_or("", |rest| {
            rest.find(|c: char| !c.is_ascii_alphabetic()).map_or(rest, |end| rest.split_at(end).0)
        });
        word == "--nsecs" || letters.contains('N')
    })
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut found = Found::default();
    while let Some((number, line)) = source.text()? {
        let taken = found.take(&line, number, source.is_whole());
        taken.map_err(|what| ImportError::at(number, what))?;
    }
    let mut sheet = ImportedData::new("cyclictest", Some("timer"));
    let by_width = found.threads.values().find_map(|thread| thread.unit);
    let by_command = found.is_of_ns.then_some(LatencyUnit::Nanoseconds);
    let own = by_command.or(by_width);
    let unit = options.unit_or(own.unwrap_or(LatencyUnit::Microseconds), &mut sheet);
    let unit_ns = unit.ns();
    if unit_ns > 1 {
        sheet.caveats.push(ImportCaveat::LatenciesRounded { step_ns: unit_ns, down: true });
    }
    if found.is_histogram() {
        found.histogram(&mut sheet, unit_ns)?;
    } else {
        found.summaries(&mut sheet, unit_ns)?;
    }
    found.parameters(&mut sheet, unit_ns);
    Ok(sheet)
}

impl Found {
    fn take(&mut self, line: &str, at: u64, is_whole: bool) -> Result<(), String> {
        if let Some(total) = line.strip_prefix("# ") {
            if total.trim_end() == "Histogram" && self.totals.contains_key(MAX) {
                return Err(SECOND_RUN.into());
            }
            self.total(total, at);
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            self.row(line)?;
        } else if let Some(thread) = thread_line(line, at).filter(|_| is_alone(line)) {
            let known = self.threads.get(&thread.number);
            if known.is_some_and(|known| !thread.continues(known)) {
                return Err(SECOND_RUN.into());
            }
            self.threads.insert(thread.number, thread);
        } else if line.contains("T:") && (line.contains("C:") || line.contains("Max:")) {
            return self.odd_line(line, is_whole);
        } else {
            self.is_of_ns |= says_ns(line);
        }
        Ok(())
    }

    /// A line that is meant as one of a thread, and is not understood. The last one of a killed
    /// program says nothing of a thread that has others.
    fn odd_line(&self, line: &str, is_whole: bool) -> Result<(), String> {
        let number = line.trim().strip_prefix("T:").and_then(|rest| rest.split_once('('));
        let number = number.and_then(|(number, _)| number.trim().parse::<usize>().ok());
        if !is_whole && number.is_some_and(|number| self.threads.contains_key(&number)) {
            return Ok(());
        }
        Err(format!(
            "\"{}\" is not a line of a thread: T: 0 ( 12) P:80 I:1000 C: 300 Min: 3 Act: 4 Avg: 4 \
             Max: 12 was expected, and nothing before or behind it",
            crate::plain::cut(line.trim(), 80)
        ))
    }

    fn total(&mut self, line: &str, at: u64) {
        let Some((name, values)) = line.split_once(':') else { return };
        if name == BREAK_VALUE {
            self.break_value = values.trim().parse().ok();
        }
        let wanted = [TOTAL, MIN, AVG, MAX, OVERFLOWS, SMIS];
        let numbers: Option<Vec<u64>> =
            values.split_whitespace().map(|value| value.parse().ok()).collect();
        if let Some(name) = wanted.into_iter().find(|known| *known == name)
            && let Some(numbers) = numbers.filter(|numbers| numbers.len() <= MOST_THREADS)
        {
            self.totals.insert(name, (at, numbers));
        }
    }

    fn row(&mut self, line: &str) -> Result<(), String> {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        let bad = || format!("\"{}\" is not a row of a histogram", crate::plain::cut(line, 60));
        let bin = numbers.next().and_then(Result::ok).ok_or_else(bad)?;
        let counts: Vec<u64> = numbers.collect::<Result<_, _>>().map_err(|_| bad())?;
        if counts.is_empty() || counts.len() > MOST_THREADS {
            return Err(bad());
        }
        self.last_bin = self.last_bin.max(bin);
        if counts.iter().any(|count| *count > 0) {
            self.cells += counts.len();
            if self.cells > MOST_CELLS {
                return Err("its histogram has too many rows".into());
            }
            if self.rows.insert(bin, counts).is_some() {
                return Err(format!("the latency {bin} has a second row"));
            }
        }
        Ok(())
    }

    /// A histogram may be all zeros.
    fn is_histogram(&self) -> bool {
        !self.rows.is_empty() || self.totals.contains_key(OVERFLOWS)
    }

    fn of(&self, name: &str, thread: usize) -> Option<u64> {
        self.totals.get(name)?.1.get(thread).copied()
    }

    fn histogram(&self, sheet: &mut ImportedData, unit_ns: i64) -> Result<(), ImportError> {
        let threads = self.totals.get(AVG).or_else(|| self.totals.get(MIN));
        let threads = threads.map(|(_, threads)| threads.len()).filter(|threads| *threads > 0);
        let has_end = self.rows.is_empty() || self.totals.contains_key(MAX);
        let Some(threads) = threads.filter(|_| has_end) else {
            let what = "the lines # Total, # Min Latencies and so on were expected behind its rows";
            return Err(ImportError::new(what));
        };
        if let Some((bin, row)) = self.rows.iter().find(|(_, row)| row.len() < threads) {
            let what = format!(
                "the row of {bin} has {}, and there are {threads} threads",
                many(row.len() as u64, "count")
            );
            return Err(ImportError::new(what));
        }
        self.lines_fit(threads)?;
        let ns = |value: u64| i64::try_from(value).unwrap_or(i64::MAX).saturating_mul(unit_ns);
        for thread in 0..threads {
            self.check(thread)?;
            let number = sheet.series(&format!("thread{thread}"), None)?;
            for (bin, counts) in &self.rows {
                // One more column of sums, or an old file without.
                let count = counts.get(thread).copied().unwrap_or(0);
                sheet.add(number, ns(*bin), count);
            }
            if let Some(stated) = self.of(TOTAL, thread) {
                sheet.check_count(number, stated);
            }
            let hidden = self.of(OVERFLOWS, thread).unwrap_or(0);
            let max = self.of(MAX, thread).unwrap_or(0);
            sheet.hidden(number, hidden, ns(self.last_bin.saturating_add(1)), ns(max));
            if let Some(min) = self.of(MIN, thread) {
                sheet.min_of_hidden(number, ns(min));
            }
            if let Some(mean) = self.of(AVG, thread) {
                sheet.mean_with_hidden(number, ns(mean), unit_ns);
            }
        }
        Ok(())
    }

    /// Refuses lines of threads that are not of the run of the histogram.
    fn lines_fit(&self, threads: usize) -> Result<(), ImportError> {
        for line in self.threads.values() {
            let count = |name| self.of(name, line.number).unwrap_or(0);
            let all = count(TOTAL).saturating_add(count(OVERFLOWS)).saturating_add(MOST_BEHIND);
            let above = |name, value: i64| {
                self.of(name, line.number)
                    .is_some_and(|own| value > i64::try_from(own).unwrap_or(0))
            };
            let is_counted = !self.totals.contains_key(TOTAL) || line.cycles <= all;
            if line.number >= threads || above(MAX, line.max) || !is_counted {
                let what = format!(
                    "the line of thread {} is not of the run of the histogram: import one file for \
                     each",
                    line.number
                );
                return Err(ImportError::at(line.line, what));
            }
        }
        Ok(())
    }

    /// Refuses smallest, mean and largest of a thread that its histogram contradicts.
    fn check(&self, thread: usize) -> Result<(), ImportError> {
        let count = |counts: &Vec<u64>| counts.get(thread).copied().unwrap_or(0);
        let mut bins = self.rows.iter().filter(|(_, counts)| count(counts) > 0);
        let Some(first) = bins.next().map(|(bin, _)| *bin as f64) else { return Ok(()) };
        let last = bins.next_back().map_or(first, |(bin, _)| *bin as f64);
        let values = [MIN, AVG, MAX].map(|name| Some(self.of(name, thread)? as f64));
        let of = format!("thread {thread}");
        let stated = Stated { of: &of, names: [MIN, AVG, MAX], values };
        let has_more = self.of(OVERFLOWS, thread).is_some_and(|hidden| hidden > 0);
        let beyond = if has_more { Beyond::Maybe } else { Beyond::Nothing };
        let checked = stated.ordered().and_then(|()| stated.fits((first, last), beyond));
        // Of the lines that are compared the last one.
        let line = self.totals.get(MAX).map(|(line, _)| *line);
        checked.map_err(|what| ImportError { line, what })
    }

    fn summaries(&self, sheet: &mut ImportedData, unit_ns: i64) -> Result<(), ImportError> {
        for (number, thread) in &self.threads {
            let series = sheet.series(&format!("thread{number}"), None)?;
            let values = [thread.min, thread.mean, thread.max];
            // Before its first cycle they are where they begin.
            if thread.cycles > 0 {
                let of = format!("thread {number}");
                let own = values.map(|value| Some(value as f64));
                let stated = Stated { of: &of, names: ["Min", "Avg", "Max"], values: own };
                stated.ordered().map_err(|what| ImportError::at(thread.line, what))?;
            }
            let values = values.map(|value| value.saturating_mul(unit_ns));
            sheet.summary(series, thread.cycles, values);
        }
        Ok(())
    }

    /// What the file says beside latencies.
    fn parameters(&self, sheet: &mut ImportedData, unit_ns: i64) {
        if let Some(value) = self.break_value {
            sheet.parameter("break_value_ns", value.saturating_mul(unit_ns));
        }
        // Each interrupt stops every CPU.
        let totals = self.totals.get(SMIS).into_iter().flat_map(|(_, smis)| smis).copied();
        sheet.smis = totals.chain(self.threads.values().map(|own| own.smis)).max().unwrap_or(0);
        let Some(first) = self.threads.values().next() else { return };
        sheet.parameter("priority", first.priority);
        sheet.parameter("interval_ns", first.interval_us.saturating_mul(1_000));
        // Cycles of missed periods are skipped, so that it lasted longer.
        let lasted = |thread: &ThreadLine| {
            let cycles = i64::try_from(thread.cycles).unwrap_or(i64::MAX);
            let ns = cycles.saturating_mul(thread.interval_us.saturating_mul(1_000));
            u64::try_from(ns).unwrap_or(0)
        };
        let lasted = self.threads.values().map(lasted).max().filter(|ns| *ns > 0);
        sheet.duration_ns = lasted.filter(|ns| *ns < 1 << 60);
    }
}

#[cfg(test)]
mod tests;

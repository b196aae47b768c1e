//! What `rtla timerlat` says of the sample at which it stopped: its auto-analysis (`-a`,
//! `--aa-only`), alone or behind a table of `hist` or `top`.
//!
//! ```text
//! ## CPU 3 hit stop tracing, analyzing it ##
//!   IRQ handler delay:                            18.42 us (52.63 %)
//!   IRQ latency:                                  19.10 us
//!   Timerlat IRQ duration:                         6.05 us (17.29 %)
//!   Blocking thread:                               8.20 us (23.43 %)
//!                     rsync:2471                   8.20 us
//!     Blocking thread stack trace
//!                 -> timerlat_irq
//!   IRQ interference                               1.30 us (3.71 %)
//!                     nvme0q1:131                  1.30 us
//! ------------------------------------------------------------------------
//!   Thread latency:                               35.00 us (100%)
//! ```
//!
//! A block is of one CPU, and ends with its whole latency. Where rtla stopped in the timer's
//! interrupt, that is the interrupt's. What follows (`Max timerlat IRQ latency from idle`,
//! `Printing CPU tasks`) is of no sample, and not read. When it was, the text does not say.

use tardy_hot::tally::Totals;

use super::{
    ImportOptions,
    imported_data::{ImportedData, ImportedSeries, LatencyUnit},
    rtla_blame::{LateSample, peak},
    source::{ImportError, Source, without_escapes},
};
use crate::limits::import::{MOST_BLOCKS, MOST_LINES};
use crate::{
    plain::cut,
    run::{FileLoss, ImportCaveat},
};

/// Text that is further right than the heading by this much belongs to the line above it.
const NESTED: usize = 8;

const HEADING: (&str, &str) = ("## CPU ", " hit stop tracing, analyzing it ##");

/// Whether it begins as such a file does: with a block and without a table, whose formats read
/// the blocks behind it too.
pub(super) fn matches_format(head: &str) -> bool {
    head.lines().any(|line| cpu_of(line).is_some())
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    _options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut sheet = ImportedData::new("rtla timerlat", Some("timer"));
    let mut analyses = Analyses::default();
    while let Some((number, line)) = source.text()? {
        analyses.take(number, &line)?;
    }
    let samples = analyses.add_to(&mut sheet, Table::Absent)?;
    sheet.caveats.push(ImportCaveat::LateSamplesOnly { samples });
    Ok(sheet)
}

/// What else the file has.
#[derive(Debug, Clone, Copy)]
pub(super) enum Table {
    /// Nothing.
    Absent,
    /// A table whose whole latencies are those of interrupts.
    OfInterrupts(LatencyUnit),
    /// One whose whole latencies are those of threads, or of the return to user space.
    OfThreads(LatencyUnit),
}

/// What the next line may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Heads,
    Blocking,
    Stack,
    Irqs,
    Softirqs,
    Threads,
}

/// The blocks of a file, as they are being read.
#[derive(Debug, Default)]
pub(super) struct Analyses {
    done: Vec<LateSample>,
    /// The one that has no end yet, how far right its heading is, and where it is in it.
    open: Option<(LateSample, usize, Section)>,
}

impl Analyses {
    /// Takes a line, where it is one of a block; says whether it was.
    pub(super) fn take(&mut self, number: u64, line: &str) -> Result<bool, ImportError> {
        let line = without_escapes(line);
        if let Some(cpu) = cpu_of(&line) {
            self.check_end()?;
            let cpu = cpu.parse().map_err(|_| {
                ImportError::at(number, format!("\"{}\" is not a CPU of rtla", cut(cpu, 40)))
            })?;
            self.open = Some((LateSample::new(number, cpu), indent(&line), Section::Heads));
            return Ok(true);
        }
        let Some((sample, from, section)) = &mut self.open else { return Ok(false) };
        let is_nested = indent(&line) >= *from + NESTED;
        let taken = taken(&line, is_nested, sample, section).ok_or_else(|| {
            let line = cut(line.trim(), 80);
            ImportError::at(number, format!("\"{line}\" is not a line of rtla's analysis"))
        })?;
        if taken == Taken::End {
            if self.done.len() >= MOST_BLOCKS {
                let what = format!("it has more than {MOST_BLOCKS} analyses");
                return Err(ImportError::at(number, what));
            }
            if let Some((sample, ..)) = self.open.take() {
                sample.check(number)?;
                self.done.push(sample);
            }
        }
        Ok(true)
    }

    fn check_end(&self) -> Result<(), ImportError> {
        let Some((sample, ..)) = &self.open else { return Ok(()) };
        let what = format!(
            "the analysis of CPU {} has no latency at its end (Thread latency: ... \
             (100%)), which was expected there",
            sample.cpu
        );
        Err(ImportError::at(sample.line, what))
    }

    /// Adds all samples to a sheet that has the table of the file; says how many they were.
    pub(super) fn add_to(self, sheet: &mut ImportedData, table: Table) -> Result<u64, ImportError> {
        self.check_end()?;
        let are_irqs = self.done.iter().all(|sample| sample.is_irq);
        let mut unfinished: Vec<String> = Vec::new();
        let mut stopped: Vec<String> = Vec::new();
        for sample in &self.done {
            let whole = format!("cpu{}", sample.cpu);
            let (name, unit) = match (table, sample.is_irq) {
                (Table::Absent, true) if are_irqs => (whole, None),
                (Table::Absent, true) => (format!("{whole}/irq"), None),
                (Table::Absent, false) => (whole, None),
                (Table::OfInterrupts(unit), true) => (whole, Some(unit)),
                (Table::OfInterrupts(unit), false) => (format!("{whole}/thread"), Some(unit)),
                (Table::OfThreads(unit), true) => (format!("{whole}/irq"), Some(unit)),
                (Table::OfThreads(unit), false) => (thread(sheet, whole, sample, unit), Some(unit)),
            };
            if sample.is_irq && !unfinished.contains(&name) {
                unfinished.push(name.clone());
            }
            let number = sheet.series(&name, Some(sample.cpu))?;
            sheet.late(number, sample.latency_ns, unit);
            if let Table::OfThreads(_) = table {
                stopped.extend(stopped_early(sheet, sample, (&name, number))?);
            }
            sheet.peaks.push(peak(sample, name));
        }
        if !stopped.is_empty() {
            sheet.caveats.push(ImportCaveat::Loss(FileLoss::StoppedEarly { series: stopped }));
        }
        if !unfinished.is_empty() {
            sheet.caveats.push(ImportCaveat::InterruptsOnly { series: unfinished });
        }
        Ok(self.done.len() as u64)
    }
}

/// The same of a table without an analysis: a part that was counted more often than the whole, and
/// has a larger largest, is of a sample that was not over.
pub(super) fn unfinished_by_counts(sheet: &mut ImportedData) -> Result<(), ImportError> {
    let of = |own: &ImportedSeries| (own.head.name.clone(), own.head.cpu, own.totals);
    let all: Vec<_> = sheet.series.iter().map(of).collect();
    let mut stopped = Vec::new();
    for (part, cpu, totals) in all.iter().rev() {
        let Some((whole, _)) = part.rsplit_once('/') else { continue };
        let known = all.iter().find(|(name, ..)| name == whole).map(|(.., totals)| *totals);
        let known = known.unwrap_or(Totals::NONE);
        let is_more = totals.count > known.count && totals.max_ns > known.max_ns.max(0);
        if is_more && !stopped.iter().any(|own| own == whole) {
            let number = sheet.series(whole, *cpu)?;
            if sheet.series.get(number).is_none_or(|own| own.totals.count == known.count) {
                sheet.late(number, totals.max_ns, None);
                stopped.push(whole.to_owned());
            }
        }
    }
    if !stopped.is_empty() {
        sheet.caveats.push(ImportCaveat::Loss(FileLoss::StoppedEarly { series: stopped }));
    }
    Ok(())
}

/// Where rtla stopped before a whole latency was known, as in the interrupt or before the return to
/// user space, that latency was at least what it took until then: it counts as that. Says of which
/// series.
fn stopped_early(
    sheet: &mut ImportedData,
    sample: &LateSample,
    (part, part_number): (&str, usize),
) -> Result<Option<String>, ImportError> {
    let whole = format!("cpu{}", sample.cpu);
    if part == whole {
        return Ok(None);
    }
    let number = sheet.series(&whole, Some(sample.cpu))?;
    let count = |number: usize| sheet.series.get(number).map_or(0, |own| own.totals.count);
    if count(number) >= count(part_number) {
        return Ok(None);
    }
    sheet.add(number, sample.latency_ns, 1);
    Ok(Some(whole))
}

/// With user space in the table, rtla stops at the thread's latency as at that of the return: it
/// is the thread's where that alone has such a largest one.
fn thread(sheet: &ImportedData, whole: String, sample: &LateSample, unit: LatencyUnit) -> String {
    let thread = format!("{whole}/thread");
    let is_largest = |name: &str| {
        let own = sheet.series.iter().find(|own| own.head.name == name);
        own.is_some_and(|own| own.totals.max_ns == sample.latency_ns / unit.ns() * unit.ns())
    };
    if !is_largest(&whole) && is_largest(&thread) { thread } else { whole }
}

/// What a line was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Within,
    End,
}

/// `None` for any other line.
fn taken(
    line: &str,
    is_nested: bool,
    sample: &mut LateSample,
    section: &mut Section,
) -> Option<Taken> {
    let text = line.trim();
    if text.is_empty() || (text.len() >= NESTED && text.bytes().all(|byte| byte == b'-')) {
        return Some(Taken::Within);
    }
    // A task may be called as a heading is: its line is further right.
    if !is_nested && let Some(taken) = head(text, sample, section) {
        return Some(taken);
    }
    if *section == Section::Stack {
        let function = text.strip_prefix("->")?.trim();
        (!function.is_empty() && sample.stack.len() < MOST_LINES).then_some(())?;
        sample.stack.push(cut(function, 128));
        return Some(Taken::Within);
    }
    let into = match section {
        Section::Blocking => {
            let (name, took_ns) = blocking(text)?;
            let is_first = sample.blocking.is_none();
            (is_first && took_ns.is_some() == sample.blocking_ns.is_some()).then_some(())?;
            sample.blocking = Some(named(name)?);
            return Some(Taken::Within);
        }
        Section::Irqs => &mut sample.irqs,
        Section::Softirqs => &mut sample.softirqs,
        Section::Threads => &mut sample.threads,
        Section::Heads | Section::Stack => return None,
    };
    let (name, ns) = blocking(text)?;
    let (name, number) = named(name)?;
    (into.items.len() < MOST_LINES).then(|| into.items.push((name, number, ns.unwrap_or(0))))?;
    ns.map(|_| Taken::Within)
}

/// A line that begins a part of the block, or ends it.
fn head(text: &str, sample: &mut LateSample, section: &mut Section) -> Option<Taken> {
    let after = |key: &str| Some(text.strip_prefix(key)?.trim_start_matches(':').trim());
    let once = |into: &mut Option<i64>, ns: i64| into.is_none().then(|| *into = Some(ns));
    let mut next = Section::Heads;
    if let Some(rest) = after("Previous IRQ interference") {
        once(&mut sample.previous_ns, us(rest.strip_prefix("up to")?.trim())?)?;
    } else if let Some(rest) = after("IRQ handler delay") {
        let from_idle = rest.strip_prefix("(exit from idle)");
        sample.is_idle_exit = from_idle.is_some();
        once(&mut sample.delay_ns, us(from_idle.unwrap_or(rest).trim())?)?;
    } else if let Some(rest) = after("Timerlat IRQ duration") {
        once(&mut sample.irq_duration_ns, us(rest)?)?;
    } else if text.starts_with("Blocking thread stack") {
        (!sample.has_stack).then_some(())?;
        (sample.has_stack, next) = (true, Section::Stack);
    } else if let Some(rest) = after("Blocking thread") {
        (!sample.has_blocking).then_some(())?;
        (sample.has_blocking, next) = (true, Section::Blocking);
        sample.blocking_ns = if rest.is_empty() { None } else { Some(us(rest)?) };
    } else if let Some(rest) = after("NMI interference") {
        once(&mut sample.nmi_ns, us(rest)?)?;
    } else if let Some(rest) = after("IRQ interference") {
        next = Section::Irqs;
        once(&mut sample.irqs.sum_ns, us(rest)?)?;
    } else if let Some(rest) = after("Softirq interference") {
        next = Section::Softirqs;
        once(&mut sample.softirqs.sum_ns, us(rest)?)?;
    } else if let Some(rest) = after("Thread interference") {
        next = Section::Threads;
        once(&mut sample.threads.sum_ns, us(rest)?)?;
    } else {
        let irq = after("IRQ latency");
        let rest = irq.or_else(|| after("Thread latency"))?;
        if rest.ends_with("(100%)") {
            (sample.latency_ns, sample.is_irq) = (us(rest)?, irq.is_some());
            return Some(Taken::End);
        }
        irq?;
        once(&mut sample.irq_latency_ns, us(rest)?)?;
    }
    *section = next;
    Some(Taken::Within)
}

/// The number of a CPU, as it stands in the heading of a block.
fn cpu_of(line: &str) -> Option<&str> {
    line.trim().strip_prefix(HEADING.0)?.strip_suffix(HEADING.1)
}

/// `name:number`, and how long where that stands behind it.
fn blocking(text: &str) -> Option<(&str, Option<i64>)> {
    let Some(rest) = text.strip_suffix(" us") else { return Some((text, None)) };
    let (name, number) = rest.trim_end().rsplit_once(char::is_whitespace)?;
    Some((name.trim_end(), Some(us_number(number)?)))
}

/// `nvme0q1:131`.
fn named(text: &str) -> Option<(String, u64)> {
    let (name, number) = text.rsplit_once(':')?;
    Some((cut(name.trim(), 64), number.parse().ok()?))
}

/// `27.49 us (65.52 %)` in ns; the share follows from the time.
fn us(text: &str) -> Option<i64> {
    let (number, rest) = text.split_once(" us")?;
    let rest = rest.trim();
    let is_share = rest.starts_with('(') && rest.ends_with("%)");
    (rest.is_empty() || is_share).then(|| us_number(number.trim()))?
}

/// `27.49` in ns. A difference that rtla counted below 0 is beyond all bounds, and stays so.
fn us_number(text: &str) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !(1..=3).contains(&part.len()) || !are_digits(whole) || !are_digits(part)
    {
        return None;
    }
    let part_ns: i64 = format!("{part:0<3}").parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    let whole = i64::try_from(whole).unwrap_or(i64::MAX);
    Some(whole.saturating_mul(1_000).saturating_add(part_ns))
}

/// Columns before its text.
fn indent(line: &str) -> usize {
    let mut columns = 0;
    for c in line.chars() {
        match c {
            ' ' => columns += 1,
            '\t' => columns = (columns / 8 + 1) * 8,
            _ => break,
        }
    }
    columns
}

#[cfg(test)]
#[path = "rtla_analysis/tests.rs"]
mod tests;

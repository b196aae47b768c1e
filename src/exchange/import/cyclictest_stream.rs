//! cyclictest's `-v`: a line a sample, `task:cycle:latency`.
//!
//! ```text
//!        0:       1:       4
//! ```
//!
//! Cycles are numbered, so that what its buffer lost is seen.

use super::{
    ImportOptions,
    imported_data::{ImportedData, LatencyUnit},
    source::{ImportError, Source},
};
use crate::limits::import::MOST_THREADS;
use crate::run::ImportCaveat;

/// Whether it begins as such a file does: soon after lines about the machine come samples.
pub(super) fn matches_format(head: &str) -> bool {
    // The last line may be cut.
    head.lines().take(200).filter(|line| sample(line.as_bytes()).is_some()).take(2).count() == 2
}

/// Task, cycle and latency of a line.
fn sample(line: &[u8]) -> Option<(usize, u64, i64)> {
    let mut at = 0;
    let task = number(line, &mut at)?;
    colon(line, &mut at)?;
    let cycle = number(line, &mut at)?;
    colon(line, &mut at)?;
    let latency = number(line, &mut at)?;
    let rest = line.get(at..)?;
    let whole = rest.iter().all(u8::is_ascii_whitespace);
    let task = usize::try_from(task).ok().filter(|task| whole && *task < MOST_THREADS)?;
    Some((task, u64::try_from(cycle).ok()?, latency))
}

fn colon(line: &[u8], at: &mut usize) -> Option<()> {
    (*line.get(*at)? == b':').then(|| *at += 1)
}

/// A number behind spaces.
fn number(line: &[u8], at: &mut usize) -> Option<i64> {
    while line.get(*at) == Some(&b' ') {
        *at += 1;
    }
    let is_negative = line.get(*at) == Some(&b'-');
    *at += usize::from(is_negative);
    let (mut value, from) = (0_i64, *at);
    while let Some(digit) = line.get(*at).filter(|byte| byte.is_ascii_digit()) {
        value = value.checked_mul(10)?.checked_add(i64::from(digit - b'0'))?;
        *at += 1;
    }
    (*at > from).then_some(if is_negative { -value } else { value })
}

/// What is known of a thread: the number of its series, and the cycle that comes next.
#[derive(Debug, Clone, Copy)]
struct Thread {
    series: usize,
    next: u64,
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut sheet = ImportedData::new("cyclictest", Some("timer"));
    let unit = options.unit.unwrap_or(LatencyUnit::Microseconds);
    let mut threads: Vec<Option<Thread>> = Vec::new();
    let (mut missing, mut samples) = (0_u64, 0_u64);
    while let Some(line) = source.line()? {
        let found = sample(line);
        let is_meant = found.is_none() && begins_like_one(line);
        if !source.is_whole() {
            // What a killed cyclictest leaves.
            break;
        }
        let Some((task, cycle, latency)) = found else {
            if is_meant {
                let what = "a sample was expected, as 0:1:4 (task:cycle:latency)";
                return Err(ImportError::at(source.number(), what));
            }
            continue;
        };
        if threads.len() <= task {
            threads.resize(task + 1, None);
        }
        let Some(own) = threads.get_mut(task) else { continue };
        let thread = match own {
            Some(thread) => thread,
            None => {
                let series = sheet.series(&format!("thread{task}"), None)?;
                own.insert(Thread { series, next: cycle })
            }
        };
        if cycle < thread.next {
            let what = format!(
                "the samples of thread {task} begin again, at {cycle} after {}: two streams in one \
                 file, or one twice; import one file for each",
                thread.next.saturating_sub(1)
            );
            return Err(ImportError::at(source.number(), what));
        }
        missing = missing.saturating_add(cycle - thread.next);
        thread.next = cycle.saturating_add(1);
        samples += 1;
        sheet.add(thread.series, latency.saturating_mul(unit.ns()), 1);
    }
    if missing > 0 {
        sheet.caveats.push(ImportCaveat::StreamGaps { missing, samples });
    }
    if options.unit.is_none() {
        sheet.caveats.push(ImportCaveat::UnitAssumed { unit: unit.name() });
    }
    if unit.ns() > 1 {
        sheet.caveats.push(ImportCaveat::LatenciesRounded { step_ns: unit.ns(), down: true });
    }
    Ok(sheet)
}

/// Whether a line that is not a sample was meant to be one: digits and colons, and not the text of
/// the head.
fn begins_like_one(line: &[u8]) -> bool {
    let first = line.iter().find(|byte| **byte != b' ');
    first.is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::import::tests::{caveats, read_as, series, text};

    const STREAM: &str = "Max CPUs = 2\nOnline CPUs = 2\n# /dev/cpu_dma_latency set to 0us\n\
        Thread 0 Interval: 1500\n       0:       0:      70\n       0:       1:      65\n       \
        1:       0:     -3\n       0:       4:      64\n       1:       1:      99\n";

    #[test]
    fn each_line_is_a_sample_and_cycles_that_were_lost_are_counted() {
        let sheet = text(STREAM).unwrap();
        let expected = [("thread0", 3, 64_000, 70_000), ("thread1", 2, -3_000, 99_000)];
        assert_eq!(series(&sheet), expected);
        assert_eq!(sheet.series[1].totals.early, 1);
        assert!(caveats(&sheet).contains("2 samples are missing in the stream, beside 5"));
    }

    #[test]
    fn the_unit_can_be_said() {
        let options =
            ImportOptions { unit: Some(LatencyUnit::Nanoseconds), ..ImportOptions::default() };
        let sheet = read_as(STREAM, &options).unwrap();
        assert_eq!(series(&sheet)[0], ("thread0", 3, 64, 70));
        assert_eq!(caveats(&sheet).matches("unit_assumed").count(), 0);
    }

    #[test]
    fn a_line_that_is_half_a_sample_is_named() {
        for bad in ["       0:       5\n", "  0: 5: 99999999999999999999\n", "  0:5:7x\n"] {
            let error = text(&format!("{STREAM}{bad}")).unwrap_err().to_string();
            assert!(error.starts_with("line 10: a sample was expected"), "{error}");
        }
        let cut = text(&format!("{STREAM}       0:       5:      7")).unwrap();
        assert_eq!(series(&cut)[0].1, 3, "the number may have had more digits");
    }

    #[test]
    fn two_streams_in_one_file_are_no_run() {
        let error = text(&format!("{STREAM}{STREAM}")).unwrap_err().to_string();
        assert!(error.starts_with("line 14: the samples of thread 0 begin again, at 0 after 4"));
        assert!(error.contains("one file for each"), "{error}");
    }
}

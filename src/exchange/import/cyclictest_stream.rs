//! cyclictest's `-v`: a line a sample, `task:cycle:latency`.
//!
//! ```text
//!        0:       1:       4
//! ```
//!
//! Cycles are numbered, so that what its buffer lost is seen. With `--smi` a line ends with the
//! number of SMIs since the one before.

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
    head.lines().take(200).filter(|line| sample(line).is_some()).take(2).count() == 2
}

/// A line.
struct Sample {
    task: usize,
    cycle: u64,
    latency: i64,
    smis: u64,
}

fn sample(line: &str) -> Option<Sample> {
    let line = line.as_bytes();
    let mut at = 0;
    let task = number(line, &mut at)?;
    colon(line, &mut at)?;
    let cycle = number(line, &mut at)?;
    colon(line, &mut at)?;
    let latency = number(line, &mut at)?;
    let is_over = |at: usize| line.get(at..).is_some_and(|rest| rest.trim_ascii().is_empty());
    let smis = if is_over(at) { 0 } else { u64::try_from(number(line, &mut at)?).ok()? };
    let task = usize::try_from(task).ok().filter(|task| is_over(at) && *task < MOST_THREADS)?;
    Some(Sample { task, cycle: u64::try_from(cycle).ok()?, latency, smis })
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

/// What is known of a thread: the number of its series, the cycle that comes next, and the SMIs
/// since its first.
#[derive(Debug, Clone, Copy)]
struct Thread {
    series: usize,
    next: u64,
    smis: u64,
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
    while let Some((_, line)) = source.text()? {
        let found = sample(&line);
        let is_meant = found.is_none() && begins_like_one(&line);
        if !source.is_whole() {
            // What a killed cyclictest leaves.
            break;
        }
        let Some(Sample { task, cycle, latency, smis }) = found else {
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
                own.insert(Thread { series, next: cycle, smis: 0 })
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
        thread.smis = thread.smis.saturating_add(smis);
        // Each interrupt stops every CPU.
        sheet.smis = sheet.smis.max(thread.smis);
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
fn begins_like_one(line: &str) -> bool {
    line.trim_start_matches(' ').starts_with(|c: char| c.is_ascii_digit())
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
    fn stamps_before_samples_and_smis_behind_them_are_read() {
        let logged: String = (1..)
            .zip(STREAM.lines())
            .map(|(at, line)| format!("[    {at}.000001] {line}       1\n"))
            .collect();
        let sheet = text(&logged).unwrap();
        let expected = [("thread0", 3, 64_000, 70_000), ("thread1", 2, -3_000, 99_000)];
        assert_eq!((series(&sheet).as_slice(), sheet.smis), (expected.as_slice(), 3));
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

//! How often a run that stays the same is called one that does not, and how often what changes is
//! found.

use tardy::analysis::stationarity::{
    Aspect, ChangeKind, LoggedInterval, Unsteadiness, unsteadiness,
};

use super::{
    processes::{PROCESSES, Process},
    table::{Effort, markdown, percent},
};

/// Samples of a run of a minute, and of each of its intervals.
const SAMPLES: usize = 60_000;
const BLOCK: usize = 100;

/// What happens to a run of independent samples, by the place from 0 to 1.
type Level = fn(f64) -> f64;

const CHANGES: [(&str, Level); 8] = [
    ("step of 5% in the middle", |at| if at < 0.5 { 1.0 } else { 1.05 }),
    ("step of 10% in the middle", |at| if at < 0.5 { 1.0 } else { 1.1 }),
    ("step of 20% in the middle", |at| if at < 0.5 { 1.0 } else { 1.2 }),
    ("step of 20% after nine tenths", |at| if at < 0.9 { 1.0 } else { 1.2 }),
    ("10% more for a fifth, then as before", |at| if (0.4..0.6).contains(&at) { 1.1 } else { 1.0 }),
    ("drift of 10%", |at| 1.0 + 0.1 * at),
    ("drift of 20%", |at| 1.0 + 0.2 * at),
    ("drift of 50%", |at| 1.0 + 0.5 * at),
];

/// A row each for runs that stay the same, and for runs that do not.
pub(super) fn table(effort: Effort) -> String {
    let mut rows = Vec::new();
    for (name, process) in PROCESSES {
        let found = effort.repeat(&format!("steady {name}"), |random| {
            unsteadiness(&blocks(&process.draw(SAMPLES, random), |_| 1.0), 1)
        });
        rows.push(line(name, &found));
    }
    for (name, level) in CHANGES {
        let found = effort.repeat(&format!("change {name}"), |random| {
            unsteadiness(&blocks(&Process::Independent.draw(SAMPLES, random), level), 1)
        });
        rows.push(line(name, &found));
    }
    let head = ["data", "step", "drift", "of the median", "of the maxima", "period", "anything"];
    let title = format!("Change within a run of {SAMPLES} samples, {} repeats", effort.repeats);
    markdown(&title, &head, &rows)
}

fn blocks(samples: &[u64], level: Level) -> Vec<LoggedInterval> {
    let count = (samples.len() / BLOCK).max(1);
    let block = |(number, block): (usize, &[u64])| {
        let factor = level(number as f64 / count as f64);
        let mut sorted: Vec<u64> =
            block.iter().map(|sample| (*sample as f64 * factor) as u64).collect();
        sorted.sort_unstable();
        LoggedInterval {
            start_s: number as f64 * 0.1,
            length_s: 0.1,
            samples: block.len() as u64,
            median_ns: sorted.get(block.len().div_ceil(2) - 1).copied().unwrap_or(0),
            max_ns: sorted.last().copied().unwrap_or(0),
        }
    };
    samples.chunks(BLOCK).enumerate().map(block).collect()
}

fn line(name: &str, found: &[Option<Unsteadiness>]) -> Vec<String> {
    let share = |holds: &dyn Fn(&Unsteadiness) -> bool| {
        percent(found.iter().flatten().filter(|found| holds(found)).count(), found.len())
    };
    let kind =
        |kind: ChangeKind| share(&|found| found.changes.iter().any(|change| change.kind == kind));
    let aspect =
        |aspect: Aspect| share(&|found| found.changes.iter().any(|change| change.aspect == aspect));
    vec![
        name.to_owned(),
        kind(ChangeKind::Step),
        kind(ChangeKind::Drift),
        aspect(Aspect::Middle),
        aspect(Aspect::Worst),
        share(&|found| found.period.is_some()),
        share(&|found| !found.is_steady()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_table_finds_large_changes_and_has_a_row_for_each() {
        let effort = Effort { repeats: 2, threads: 2, seed: 1 };
        let text = table(effort);
        assert_eq!(text.lines().count(), 5 + PROCESSES.len() + CHANGES.len(), "{text}");
        let drift = text.lines().find(|line| line.contains("drift of 50%")).unwrap_or_default();
        assert!(drift.ends_with("| 100.0% |"), "{drift}");
    }
}

//! Nights that stay the same, and nights that do not: how often a change is seen, in retrospect and
//! night after night.

use std::collections::BTreeMap;

use jiff::{Timestamp, ToSpan as _};
use tardy::analysis::{
    change_points::{alarms, steps},
    random::SplitMix64,
    trend::{TrendKey, TrendRun, trend},
};

use super::{
    processes::normal,
    table::{Effort, markdown, percent, quantile},
};

/// Correlations of neighbouring nights.
const CORRELATIONS: [f64; 4] = [0.0, 0.3, 0.5, 0.7];

/// Nights.
const NIGHTS: [usize; 3] = [30, 100, 365];

/// Steps in standard deviations of a night.
const STEPS: [f64; 4] = [0.5, 1.0, 2.0, 3.0];

/// Run lengths that are asked for.
const RUN_LENGTHS: [f64; 3] = [365.0, 1_000.0, 5_000.0];

/// Nights of one sequence, for false alarms night after night.
const LONG: usize = 730;

/// Nights of a store that is asked after each of them.
const STORED: usize = 170;

/// Correlations of its nights.
const QUIET: [f64; 3] = [0.0, 0.3, 0.5];

/// Where the level of a store changes, in nights.
const PLACES: [usize; 3] = [30, 85, 140];

/// The number of stores for each row: each is analyzed after each night.
const STORES: usize = 100;

/// What the alarm is asked for where nothing is said.
const ALARM: f64 = 10_000.0;

/// False changes, found changes, false alarms, and how soon a change is seen.
pub(super) fn tables(effort: Effort) -> String {
    tables_looking(effort, 1)
}

/// The tables, with quiet stores analyzed after every `every`-th night.
fn tables_looking(effort: Effort, every: usize) -> String {
    let stores = Effort { repeats: effort.repeats.min(STORES), ..effort };
    quiet(stores, every)
        + &planted(stores)
        + &equal(effort)
        + &found(effort)
        + &false_alarms(effort)
        + &delays(effort)
}

fn nights(count: usize, correlation: f64, random: &mut SplitMix64) -> Vec<f64> {
    let mut last = normal(random);
    let rest = (1.0 - correlation * correlation).sqrt();
    let next = |_| {
        last = correlation * last + rest * normal(random);
        last
    };
    (0..count).map(next).collect()
}

/// Runs whose p99 is 100 us with an SD of 5 us, and whose usual maximum is 1 ms with one of 0.1 ms;
/// from `change` on p99 is longer by 3 SD.
fn store(correlation: f64, change: usize, random: &mut SplitMix64) -> Vec<TrendRun> {
    let p99 = nights(STORED, correlation, random);
    let max = nights(STORED, correlation, random);
    let run = |(night, (p99, max)): (usize, (f64, f64))| {
        let step = if night >= change { 3.0 } else { 0.0 };
        let hours = i64::try_from(24 * night).unwrap_or(0);
        TrendRun {
            started: Timestamp::UNIX_EPOCH + hours.hours(),
            kernel: "6.12".into(),
            program: String::new(),
            p99_ns: Some((100_000.0 + 5_000.0 * (p99 + step)) as i64),
            block_max_ns: Some((1_000_000.0 + 100_000.0 * max) as i64),
            max_ns: None,
            late: None,
        }
    };
    p99.into_iter().zip(max).enumerate().map(run).collect()
}

/// The nights of changes of p99 and of the usual maximum, and whether the alarm was raised.
fn analysed(runs: &[TrendRun]) -> (Vec<String>, bool) {
    let key = TrendKey { series: "cpu0".into(), ..TrendKey::default() };
    let rows = trend(BTreeMap::from([(key, runs.to_vec())]), Some(ALARM));
    let figures = || rows.iter().flat_map(|row| &row.figures);
    let days = figures().flat_map(|figure| &figure.changes).map(|change| change.day.clone());
    (days.collect(), figures().any(|figure| !figure.alarms.is_empty()))
}

/// What is done every night, or every few nights, with a store in which nothing changes.
fn quiet(effort: Effort, every: usize) -> String {
    let mut rows = Vec::new();
    for correlation in QUIET {
        let found = effort.repeat(&format!("trend quiet {correlation}"), |random| {
            let runs = store(correlation, STORED, random);
            let is_changed =
                |nights| runs.get(..nights).is_some_and(|runs| !analysed(runs).0.is_empty());
            ((every..=STORED).step_by(every).any(is_changed), analysed(&runs).1)
        });
        let changed = found.iter().filter(|(changed, _)| *changed).count();
        let alarmed = found.iter().filter(|(_, alarmed)| *alarmed).count();
        let row = [correlation.to_string(), changed.to_string(), alarmed.to_string()];
        rows.push(row.to_vec());
    }
    let title = format!(
        "Quiet stores of {STORED} nights, analysed after each night, {} of them",
        effort.repeats
    );
    let head = ["correlation of neighbours", "a change in any night", "an alarm in any night"];
    markdown(&title, &head, &rows)
}

/// A step of 3 SD in such a store.
fn planted(effort: Effort) -> String {
    let mut rows = Vec::new();
    for correlation in [0.0, 0.3] {
        for place in PLACES {
            let found = effort.repeat(&format!("trend planted {correlation} {place}"), |random| {
                let runs = store(correlation, place, random);
                let (days, is_alarm) = analysed(&runs);
                let from = place.saturating_sub(2);
                let near = runs.get(from..place + 3).unwrap_or_default();
                let is_near =
                    |day: &String| near.iter().any(|run| run.started.to_string().starts_with(day));
                (days.iter().any(is_near), days.iter().all(is_near), is_alarm)
            });
            let near = found.iter().filter(|(near, ..)| *near).count();
            let alone = found.iter().filter(|(near, alone, _)| *near && *alone).count();
            let alarms = found.iter().filter(|(.., alarm)| *alarm).count();
            let row = [correlation.to_string(), place.to_string(), near.to_string()];
            rows.push([&row[..], &[alone.to_string(), alarms.to_string()]].concat());
        }
    }
    let title = format!("A step of 3 SD in {STORED} nights, {} stores", effort.repeats);
    let head = [
        "correlation of neighbours",
        "step after",
        "found within two nights",
        "and nothing else",
        "alarm",
    ];
    markdown(&title, &head, &rows)
}

fn equal(effort: Effort) -> String {
    let mut rows = Vec::new();
    for correlation in CORRELATIONS {
        for count in NIGHTS {
            let row = format!("trend equal {correlation} {count}");
            let found = effort.repeat(&row, |random| {
                !steps(&nights(count, correlation, random), 0.05).is_empty()
            });
            let share = percent(found.iter().filter(|found| **found).count(), found.len());
            rows.push(vec![correlation.to_string(), count.to_string(), share]);
        }
    }
    let title =
        format!("Nights that stay the same, called changed at 5%, {} repeats", effort.repeats);
    markdown(&title, &["correlation of neighbours", "nights", "changed (false)"], &rows)
}

/// Steps in the middle of 100 nights.
fn found(effort: Effort) -> String {
    let mut rows = Vec::new();
    for correlation in [0.0, 0.3] {
        for size in STEPS {
            let places = effort.repeat(&format!("trend step {correlation} {size}"), |random| {
                let mut values = nights(100, correlation, random);
                values.iter_mut().skip(50).for_each(|value| *value += size);
                steps(&values, 0.01)
            });
            let any = places.iter().filter(|places| !places.is_empty()).count();
            let is_near = |places: &&Vec<usize>| places.iter().any(|at| at.abs_diff(50) <= 2);
            let near = places.iter().filter(is_near).count();
            rows.push(vec![
                correlation.to_string(),
                size.to_string(),
                percent(any, places.len()),
                percent(near, any),
            ]);
        }
    }
    let title =
        format!("A step after 50 of 100 nights, at a level of 1%, {} repeats", effort.repeats);
    let head = ["correlation of neighbours", "step, SD", "found", "of these within two nights"];
    markdown(&title, &head, &rows)
}

fn false_alarms(effort: Effort) -> String {
    let mut rows = Vec::new();
    // Each is as long as many of the others.
    let effort = Effort { repeats: effort.repeats.div_ceil(20), ..effort };
    for correlation in CORRELATIONS {
        for run_length in RUN_LENGTHS {
            let row = format!("trend alarms {correlation} {run_length}");
            let found = effort.repeat(&row, |random| {
                alarms(&nights(LONG, correlation, random), run_length, |_, _, _| true).len()
            });
            let all: usize = found.iter().sum();
            let between = match all {
                0 => format!("more than {}", LONG * found.len()),
                _ => format!("{:.0}", (LONG * found.len()) as f64 / all as f64),
            };
            rows.push(vec![correlation.to_string(), run_length.to_string(), between]);
        }
    }
    let title =
        format!("Nights to a false alarm of either side, {} sequences of {LONG}", effort.repeats);
    let head = ["correlation of neighbours", "asked for", "nights between alarms"];
    markdown(&title, &head, &rows)
}

fn delays(effort: Effort) -> String {
    let mut rows = Vec::new();
    for size in STEPS {
        let seen = effort.repeat(&format!("trend delay {size}"), |random| {
            let mut values = nights(160, 0.0, random);
            values.iter_mut().skip(60).for_each(|value| *value += size);
            let alarms = alarms(&values, 1_000.0, |_, _, _| true);
            alarms.into_iter().find(|alarm| alarm.is_up && alarm.seen >= 60).map(|a| a.seen - 59)
        });
        let delays: Vec<f64> = seen.iter().flatten().map(|nights| *nights as f64).collect();
        rows.push(vec![
            size.to_string(),
            percent(delays.len(), seen.len()),
            format!("{:.0}", quantile(&delays, 0.5)),
            format!("{:.0}", quantile(&delays, 0.9)),
        ]);
    }
    let title = format!(
        "Nights until a step after 60 is seen, run length 1,000, {} repeats",
        effort.repeats
    );
    markdown(&title, &["step, SD", "seen within 100", "half within", "90% within"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_steps_are_found_near_their_place_and_quiet_stores_stay_quiet() {
        // The statement of docs/how-to/trend.md with few stores; the seeds are fixed.
        let planted = Effort { repeats: 4, threads: 2, seed: 19 };
        let text = super::planted(planted);
        let cells = |line: &str| line.split('|').map(|own| own.trim().to_owned()).collect();
        let rows: Vec<Vec<String>> = text.lines().map(cells).collect();
        let near = rows.iter().filter_map(|row| row.get(3)?.parse::<u32>().ok());
        let near: Vec<u32> = near.collect();
        assert!(near.len() == 6 && near.iter().all(|found| *found >= 3), "{text}");
        let text = super::quiet(Effort { repeats: 2, ..planted }, 17);
        for correlation in ["| 0 | 0 | 0 |", "| 0.3 | 0 | 0 |"] {
            assert!(text.contains(correlation), "{text}");
        }
    }

    #[test]
    fn a_small_table_finds_large_steps_and_has_a_row_for_each() {
        let text = tables_looking(Effort { repeats: 1, threads: 2, seed: 1 }, 17);
        let rows = CORRELATIONS.len() * (NIGHTS.len() + RUN_LENGTHS.len()) + 3 * STEPS.len();
        let rows = rows + QUIET.len() + 2 * PLACES.len();
        assert_eq!(text.lines().count(), 6 * 5 + rows, "{text}");
        assert!(text.contains("| 0 | 3 | 100.0% | 100.0% |"), "{text}");
    }
}

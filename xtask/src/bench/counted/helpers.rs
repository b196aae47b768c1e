//! How often threads wake up beside the one that measures, on the CPU that it measures.

use std::{collections::BTreeMap, fmt, fs, path::Path};

use anyhow::{Context, Result, ensure};

use super::guest::OUT;
use crate::bench::sheet::FigureRow;

/// Between two looks at what threads have done, s.
const APART_S: i64 = 2;

/// Voluntary context switches per second, by the name of the thread.
struct WakeRates(BTreeMap<String, f64>);

impl fmt::Display for WakeRates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}/s", self.0.values().sum::<f64>())?;
        let each: Vec<String> =
            self.0.iter().map(|(name, rate)| format!("`{name}` {rate:.1}")).collect();
        if each.is_empty() { Ok(()) } else { write!(f, " ({})", each.join(", ")) }
    }
}

/// How long a program runs that is looked at, s.
pub(super) const LENGTH_S: i64 = SETTLES_S + APART_S + 2;

/// After which it has begun to measure, s.
const SETTLES_S: i64 = 2;

/// Looks at the threads of both programs, one after the other; they run for [`LENGTH_S`].
pub(super) fn script(ours: &str, theirs: &str) -> String {
    let looks = |command: &str, side: &str| {
        format!(
            "{command} >/dev/null & p=$!\nsleep {SETTLES_S}\n\
             grep -H . /proc/$p/task/*/comm >{OUT}/{side}-names\n\
             grep -H ^voluntary /proc/$p/task/*/status >{OUT}/{side}-before\n\
             sleep {APART_S}\n\
             grep -H ^voluntary /proc/$p/task/*/status >{OUT}/{side}-after\n\
             wait $p\n"
        )
    };
    looks(ours, "ours") + &looks(theirs, "theirs")
}

/// What the script left in `left`, in a row.
pub(super) fn row(name: &str, left: Result<&Path, &anyhow::Error>) -> FigureRow {
    let what = format!("{name}: wake-ups of other threads");
    let both = left.map_err(ToString::to_string).and_then(|left| {
        let both = rates(left, "ours").and_then(|ours| Ok((ours, rates(left, "theirs")?)));
        both.map_err(|error| format!("{error:#}"))
    });
    match both {
        Ok((ours, theirs)) => FigureRow::new(what, format!("{ours} against {theirs}")),
        Err(error) => FigureRow::not_measured(what, "-", &error),
    }
}

fn rates(left: &Path, side: &str) -> Result<WakeRates> {
    let read = |what: &str| -> Result<BTreeMap<String, String>> {
        Ok(by_thread(&fs::read_to_string(left.join(format!("{side}-{what}")))?))
    };
    between(&read("names")?, &read("before")?, &read("after")?)
}

/// `/proc/7/task/8/status:voluntary_ctxt_switches: 5`: `8`, and what stands behind the last colon.
fn by_thread(lines: &str) -> BTreeMap<String, String> {
    let entry = |line: &str| {
        let (path, text) = line.split_once(':')?;
        let thread = path.rsplit('/').nth(1)?;
        Some((thread.to_owned(), text.rsplit(':').next()?.trim().to_owned()))
    };
    lines.lines().filter_map(entry).collect()
}

/// The thread that woke most often is the one that measures.
fn between(
    names: &BTreeMap<String, String>,
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Result<WakeRates> {
    let mut rates: Vec<(f64, String)> = Vec::new();
    for (thread, after) in after {
        let (Some(before), Some(name)) = (before.get(thread), names.get(thread)) else { continue };
        let count = after.parse::<u64>()?.saturating_sub(before.parse()?);
        rates.push((count as f64 / APART_S as f64, name.clone()));
    }
    rates.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (most, _) = rates.pop().context("no thread was there at both looks")?;
    ensure!(most > 500.0, "nothing measured meanwhile: {most} wake-ups per second at the most");
    let mut by_name = BTreeMap::new();
    for (rate, name) in rates {
        *by_name.entry(name).or_insert(0.0) += rate;
    }
    Ok(WakeRates(by_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_ups_are_counted_by_thread_without_the_one_that_measures() {
        let of = |first: u64, second: u64, third: u64| {
            let line = |thread: u64, count: u64| {
                format!("/proc/7/task/{thread}/status:voluntary_ctxt_switches:\t{count}\n")
            };
            by_thread(&(line(7, first) + &line(8, second) + &line(9, third)))
        };
        let names = "/proc/7/task/7/comm:tardy\n/proc/7/task/8/comm:tardy/cpu0\n\
                     /proc/7/task/9/comm:tardy/drain\n";
        let rates = between(&by_thread(names), &of(5, 100, 1), &of(45, 2100, 22)).unwrap();
        assert_eq!(rates.to_string(), "30.5/s (`tardy` 20.0, `tardy/drain` 10.5)");
        let still = between(&by_thread(names), &of(5, 100, 1), &of(45, 100, 22));
        assert!(still.is_err(), "no thread measured");
    }
}

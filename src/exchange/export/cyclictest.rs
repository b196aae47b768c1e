//! What cyclictest 2.40 prints and writes: its line a thread, its histogram, and its JSON, for
//! those who parse them. Latencies are whole us, rounded down, as there.

use std::{collections::BTreeMap, io};

use serde::Serialize;

use super::{counted::CountedRun, rt_tests};
use crate::{limits::export::MOST_CELLS, run::SeriesSummary};

/// Latencies of more than this number of us are counted as overflows.
const MOST_BINS: u64 = 100_000;

/// How cyclictest was told to print.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CyclictestStyle {
    /// 1,000, or 1 with `-N`.
    pub(crate) unit_ns: i64,
    /// The rows of the histogram; without it as many as the largest latency needs.
    pub(crate) bins: Option<u64>,
    /// With the sums of `-H`.
    pub(crate) has_sums: bool,
}

impl CyclictestStyle {
    /// As it prints where nothing is said.
    const PLAIN: Self = Self { unit_ns: 1_000, bins: None, has_sums: false };

    /// Whole units, rounded down.
    fn whole(self, ns: Option<i64>) -> i64 {
        ns.unwrap_or(0).div_euclid(self.unit_ns)
    }
}

/// One thread as cyclictest sees it.
struct Thread<'a> {
    series: &'a SeriesSummary,
    /// How often each latency was had, in units.
    bins: BTreeMap<u64, u64>,
    overflows: u64,
    /// Latencies from this on, in units, are overflows; of an imported run that has some.
    limit: u64,
}

fn threads(run: &CountedRun, style: CyclictestStyle) -> Vec<Thread<'_>> {
    let most = style.bins.unwrap_or(MOST_BINS);
    let unit_ns = style.unit_ns.unsigned_abs().max(1);
    run.wakeups()
        .map(|(number, series)| {
            let mut bins = BTreeMap::new();
            let mut overflows = series.above;
            if series.early > 0 {
                bins.insert(0, series.early);
            }
            for bucket in run.buckets(number) {
                let bin = run.value_ns(&bucket) / unit_ns;
                let own = if bin < most { bins.entry(bin).or_insert(0) } else { &mut overflows };
                *own = own.saturating_add(bucket.count);
            }
            if series.early == 0 && overflows == 0 && run.hidden(series).is_none() {
                keep_extremes(&mut bins, series, unit_ns);
            }
            let mut limit = 0;
            if let Some(hidden) = run.hidden(series) {
                // As its file had them.
                let own = bins.entry(hidden.taken_ns / unit_ns).or_insert(0);
                let moved = hidden.count.min(*own);
                *own -= moved;
                overflows = overflows.saturating_add(moved);
                limit = hidden.from_ns / unit_ns;
            }
            bins.retain(|_, count| *count > 0);
            Thread { series, bins, overflows, limit }
        })
        .collect()
}

/// Smallest and largest are known exactly, and buckets to a thousandth or less: where they lie
/// outside of the bins, the first and the last bin are of these.
pub(super) fn keep_extremes(bins: &mut BTreeMap<u64, u64>, series: &SeriesSummary, unit_ns: u64) {
    let bin_of = |ns: Option<i64>| Some(u64::try_from(ns?).ok()? / unit_ns);
    let (first, last) = (bins.keys().next().copied(), bins.keys().next_back().copied());
    // A single sample is the largest.
    let is_one = bins.values().copied().fold(0, u64::saturating_add) < 2;
    let below = bin_of(series.min).zip(first);
    let below = below.filter(|(exact, found)| !is_one && exact < found);
    let above = bin_of(series.max).zip(last).filter(|(exact, found)| exact > found);
    for (exact, found) in below.into_iter().chain(above) {
        let Some(count) = bins.get_mut(&found).filter(|count| **count > 0) else { continue };
        *count -= 1;
        *bins.entry(exact).or_insert(0) += 1;
    }
    bins.retain(|_, count| *count > 0);
}

/// The lines of the threads, as `-q` prints them. `Act`, the last latency, is 0: no run has it.
pub(super) fn write_text(run: &CountedRun) -> io::Result<Vec<u8>> {
    Ok(lines(run, CyclictestStyle::PLAIN).into_bytes())
}

/// The lines of the threads.
pub(crate) fn lines(run: &CountedRun, style: CyclictestStyle) -> String {
    let document = &run.document;
    // By their width readers know ns.
    let width = if style.unit_ns == 1 { 8 } else { 5 };
    let line = |(thread, (_, series)): (usize, (usize, &SeriesSummary))| {
        let found = &document.setup.found.threads;
        let own = found.iter().find(|found| found.series == series.name);
        let (tid, priority) = own.map_or((0, 0), |own| (own.tid, own.priority));
        let interval_us = document.probe.interval_of(thread).unwrap_or(0) / 1_000;
        format!(
            "T:{thread:2} ({tid:5}) P:{priority:2} I:{interval_us} C:{:7} Min:{:7} Act:{:width$} \
             Avg:{:width$} Max:{:8}\n",
            series.count,
            style.whole(series.min),
            0,
            style.whole(series.mean),
            style.whole(series.max)
        )
    };
    run.wakeups().enumerate().map(line).collect()
}

/// The histogram, as `-q -h` prints it. At which cycles it overflowed no run has.
pub(super) fn write_histogram(run: &CountedRun) -> io::Result<Vec<u8>> {
    Ok(histogram(run, CyclictestStyle::PLAIN)?.into_bytes())
}

/// The histogram.
///
/// # Errors
/// It has more cells than are written.
pub(crate) fn histogram(run: &CountedRun, style: CyclictestStyle) -> io::Result<String> {
    let threads = threads(run, style);
    // The sum of one is left out there.
    let has_sums = style.has_sums && threads.len() > 1;
    let last = threads.iter().filter_map(|own| own.bins.keys().next_back()).max();
    let limit = threads.iter().map(|own| own.limit).max().unwrap_or(0);
    let bins = style.bins.unwrap_or_else(|| last.map_or(1, |last| last + 1).max(limit));
    if bins.saturating_mul(threads.len() as u64) > MOST_CELLS {
        return Err(io::Error::other(format!(
            "the histogram of {} threads has {bins} rows, and at most {MOST_CELLS} cells are \
             written; export it --to histogram-csv, which leaves empty buckets out",
            threads.len()
        )));
    }
    let sum = |values: &[u64]| values.iter().copied().fold(0, u64::saturating_add);
    let mut out = String::from("# Histogram\n");
    for bin in 0..bins {
        let counts = threads.iter().map(|own| own.bins.get(&bin).copied().unwrap_or(0));
        let mut counts: Vec<u64> = counts.collect();
        counts.extend(has_sums.then(|| sum(&counts)));
        let counts: Vec<String> = counts.iter().map(|count| format!("{count:06}")).collect();
        out.push_str(&format!("{bin:06} {}\n", counts.join("\t")));
    }
    let mut total = |name: &str, width: usize, values: Vec<u64>, all: Option<u64>| {
        let values = values.into_iter().chain(all.filter(|_| has_sums));
        let values = values.map(|value| format!(" {value:0width$}"));
        out.push_str(&format!("# {name}:{}\n", values.collect::<String>()));
    };
    let each = |value: &dyn Fn(&Thread<'_>) -> u64| threads.iter().map(value).collect::<Vec<_>>();
    let whole = |ns: Option<i64>| u64::try_from(style.whole(ns)).unwrap_or(0);
    let totals = each(&|own| own.bins.values().copied().fold(0, u64::saturating_add));
    let all = sum(&totals);
    total("Total", 9, totals, Some(all));
    total("Min Latencies", 5, each(&|own| whole(own.series.min)), None);
    total("Avg Latencies", 5, each(&|own| whole(own.series.mean)), None);
    let maxima = each(&|own| whole(own.series.max));
    let max = maxima.iter().copied().max();
    total("Max Latencies", 5, maxima, max);
    let overflows = each(&|own| own.overflows);
    let all = sum(&overflows);
    total("Histogram Overflows", 5, overflows, Some(all));
    out.push_str("# Histogram Overflow at cycle number:\n");
    (0..threads.len()).for_each(|thread| out.push_str(&format!("# Thread {thread}:\n")));
    Ok(out + "\n")
}

/// What its `--json` has besides what that of all rt-tests has.
#[derive(Serialize)]
struct Results {
    num_threads: usize,
    resolution_in_ns: u32,
    thread: BTreeMap<String, ThreadResult>,
}

#[derive(Serialize)]
struct ThreadResult {
    histogram: BTreeMap<u64, u64>,
    cycles: u64,
    min: i64,
    max: i64,
    avg: f64,
    cpu: i64,
    node: i32,
}

/// The JSON, as `--json` writes it. `cycles` counts overflows too, which have no bin.
pub(super) fn write_json(run: &CountedRun) -> io::Result<Vec<u8>> {
    json(run, CyclictestStyle::PLAIN)
}

/// The JSON.
pub(crate) fn json(run: &CountedRun, style: CyclictestStyle) -> io::Result<Vec<u8>> {
    let threads = threads(run, style);
    rt_tests::json(
        &run.document,
        Results {
            num_threads: threads.len(),
            resolution_in_ns: u32::from(style.unit_ns == 1),
            thread: threads
                .into_iter()
                .map(|own| result(own, style))
                .enumerate()
                .map(numbered)
                .collect(),
        },
    )
}

fn numbered((thread, result): (usize, ThreadResult)) -> (String, ThreadResult) {
    (thread.to_string(), result)
}

fn result(thread: Thread<'_>, style: CyclictestStyle) -> ThreadResult {
    let Thread { series, bins, .. } = thread;
    ThreadResult {
        histogram: bins,
        cycles: series.count,
        min: style.whole(series.min),
        max: style.whole(series.max),
        // Two decimals, as there.
        avg: (series.mean.unwrap_or(0) as f64 / style.unit_ns as f64 * 100.0).round() / 100.0,
        cpu: series.cpu.map_or(-1, i64::from),
        node: -1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{
        exchange::{
            export::{
                counted::tests::{measured, text},
                rt_tests::tests::shape,
            },
            import,
        },
        run::ProbeRecord,
    };

    fn counts(sheet: &import::ImportedData) -> Vec<u64> {
        import::tests::series(sheet).into_iter().map(|(_, count, ..)| count).collect()
    }

    #[test]
    fn what_is_exported_is_imported_with_the_same_counts() {
        let run = measured();
        let whole: Vec<&SeriesSummary> = run.wakeups().map(|(_, series)| series).collect();
        let expected: Vec<u64> = whole.iter().map(|series| series.count).collect();
        for written in [write_histogram(&run), write_json(&run), write_text(&run)] {
            let written = text(written);
            let sheet = import::tests::text(&written).unwrap();
            assert_eq!(counts(&sheet), expected, "{written}");
            for (series, found) in whole.iter().zip(import::tests::series(&sheet)) {
                let ours = CyclictestStyle::PLAIN.whole(series.max) * 1_000;
                assert!((ours - found.3).abs() <= 1_000 + ours / 1_000, "{found:?} {ours}");
            }
            assert!(!import::tests::caveats(&sheet).contains("counts_differ"));
        }
    }

    #[test]
    fn the_first_and_the_last_bin_are_of_the_known_extremes() {
        let mut series = crate::report::fixture::summary("cpu0");
        (series.min, series.max) = (Some(2_000), Some(2_769_000));
        let kept = |mut bins: BTreeMap<u64, u64>| {
            keep_extremes(&mut bins, &series, 1_000);
            bins.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(kept([(5, 3), (2_759, 1)].into()), [(2, 1), (5, 2), (2_769, 1)]);
        assert_eq!(kept([(2, 3), (2_769, 1)].into()), [(2, 3), (2_769, 1)]);
        assert_eq!(kept([(99_999, 1)].into()), [(99_999, 1)], "no bin is moved inwards");
    }

    #[test]
    fn keys_and_types_are_those_of_cyclictest() {
        let ours: Value = serde_json::from_str(&text(write_json(&measured()))).unwrap();
        let theirs = include_str!("../../../fuzz/seeds/import/cyclictest.json");
        let theirs: Value = serde_json::from_str(theirs).unwrap();
        let mut known = ours.clone();
        let made_by = known.as_object_mut().unwrap().remove("tardy_version");
        assert!(made_by.is_some_and(|version| version.is_string()), "{ours}");
        assert_eq!(shape(&known), shape(&theirs));
        assert_eq!(shape(&ours["sysinfo"]), shape(&theirs["sysinfo"]));
        assert_eq!(shape(&ours["thread"]["0"]), shape(&theirs["thread"]["0"]));
    }

    #[test]
    fn the_line_of_each_thread_has_its_own_interval() {
        let mut run = measured();
        let ProbeRecord::Timer(timer) = &mut run.document.probe else { panic!("a timer") };
        (timer.interval_ns, timer.interval_step_ns) = (1_000_000, Some(500_000));
        for (thread, line) in lines(&run, CyclictestStyle::PLAIN).lines().enumerate() {
            assert!(line.contains(&format!(" I:{} C:", 1_000 + 500 * thread)), "{line}");
        }
        assert!(run.wakeups().count() > 1);
    }

    #[test]
    fn nanoseconds_sums_and_a_given_number_of_rows_are_as_there() {
        let run = measured();
        let style = CyclictestStyle { unit_ns: 1, bins: None, has_sums: false };
        let sheet = import::tests::text(&lines(&run, style)).unwrap();
        let found = import::tests::series(&sheet);
        let max = run.wakeups().next().and_then(|(_, series)| series.max);
        assert_eq!(Some(found[0].3), max, "its columns say that it is ns");
        let style = CyclictestStyle { unit_ns: 1_000, bins: Some(5), has_sums: true };
        let text = histogram(&run, style).unwrap();
        let rows = text.lines().filter(|line| line.starts_with("00000"));
        assert_eq!(rows.count(), 5, "{text}");
        let columns = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_once(':').unwrap().1.split_whitespace().count()
        };
        let threads = run.wakeups().count();
        assert_eq!((columns("# Total"), columns("# Min Latencies")), (threads + 1, threads));
        let expected: Vec<u64> = run.wakeups().map(|(_, series)| series.count).collect();
        assert_eq!(counts(&import::tests::text(&text).unwrap()), expected);
    }
}

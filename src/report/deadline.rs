//! `tardy show RUN --deadline 500us`: what share of periods met it, and how misses follow each
//! other.
//!
//! A deadline is met where the wake-up (the answer, the packet) came within it. Where there is a
//! schedule each period counts, also those that passed while the thread slept: a wake-up served
//! them late. Of work after wake-ups each period without any is missed. Counts say how many were
//! missed, but not in which order: that takes the samples that `--raw` keeps, of wake-ups.

use serde::{Deserialize, Serialize};

use crate::{
    analysis::{
        deadline::{Misses, share_missed},
        percentile::BlockCount,
    },
    run::{
        AttachedLatency, AttachedRow, CycleBegin, Deadlines, Document, Run, SeriesSummary,
        counts::SeriesCounts, names, per_period::per_period,
    },
};

/// Windows in which the most misses are counted, in periods.
const WINDOWS: [usize; 3] = [10, 100, 1_000];

/// Slept-through periods that are gone through one by one: a record may make them as many as it
/// likes. With more of them only counts are told.
const MOST_PERIODS: i64 = 100_000_000;

/// What a deadline is to one series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SeriesDeadline {
    /// The series.
    pub series: String,
    /// The deadline, ns.
    pub deadline_ns: i64,
    /// Periods; of what has no schedule, samples. Of work after wake-ups its cycles, and the
    /// periods that passed without one.
    pub periods: u64,
    /// Those that missed it. Of counts: those in the bucket that holds the deadline are counted as
    /// missed, a thousandth of its value wide; of cycles of an attached thread as they were
    /// counted.
    pub missed: u64,
    /// Of an attached thread how often something that it did was not seen: at most this
    /// number of cycles is in neither count. 0 for others.
    #[serde(default)]
    pub unseen: u64,
    /// The cycles of an attached thread begin when others wake it: what was done before for the
    /// same work is not in them, so that they do not tell whether the work met the deadline. False
    /// for others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_wakeup: bool,
    /// A thread has no period, so that what it skipped without a cycle is in no count. False
    /// for what is not attached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cycles_alone: bool,
    /// Of an event loop without a period, its longest work for others, ns, if that took longer
    /// than the deadline: what fell due meanwhile had no timer yet by which its lateness would be
    /// known. Absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_work_ns: Option<i64>,
    /// The share that met it, 0 to 1; null if that is not known: of cycles that begin when others
    /// wake the thread, and beside such work for others.
    pub share_met: Option<f64>,
    /// The lower end of its 95% interval; null with fewer than 10 independent misses.
    pub share_met_low: Option<f64>,
    /// The upper end; null likewise.
    pub share_met_high: Option<f64>,
    /// Misses in a row; null where single samples were not kept.
    pub longest_burst: Option<u64>,
    /// The most misses in any such number of periods in a row; empty likewise.
    pub windows: Vec<MissesInWindow>,
    /// The interval of the log with most late samples.
    pub worst_interval: Option<WorstInterval>,
}

/// The most misses in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MissesInWindow {
    /// A number of periods in a row.
    pub periods: u64,
    /// The most misses in any of them.
    pub most_missed: u64,
}

/// The interval of the log with most late samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorstInterval {
    /// When it began, s from the start of the run.
    pub start_s: f64,
    /// Its samples.
    pub samples: u64,
    /// Those that missed the deadline.
    pub missed: u64,
}

/// What a deadline is to each series of whole latencies. Of an attached thread whose work is
/// measured that is in the place of its wake-ups; without a deadline, threads of `SCHED_DEADLINE`
/// have their own.
///
/// # Errors
/// A damaged log, or more counts than memory is given to.
pub fn deadlines(run: &Run, asked: &Deadlines) -> Result<Vec<SeriesDeadline>, String> {
    let series = &run.document.series;
    let judged = judged(&run.document, asked);
    if judged.is_empty() {
        return Ok(Vec::new());
    }
    let mut limits: Vec<u64> = vec![u64::MAX; series.len()];
    for (number, deadline_ns) in &judged {
        limits[*number] = u64::try_from(*deadline_ns).unwrap_or(0);
    }
    let mut counts = SeriesCounts::new(series.len());
    let mut blocks: Vec<Vec<BlockCount>> = vec![Vec::new(); series.len()];
    let mut worst: Vec<Option<WorstInterval>> = vec![None; series.len()];
    let read = run.intervals(|number, span, block| {
        let missed = late(&block, limits.get(number).copied().unwrap_or(u64::MAX));
        counts.add(number, &block);
        if let (Some(blocks), Some(own)) = (blocks.get_mut(number), series.get(number)) {
            let limit = limits.get(number).copied().unwrap_or(u64::MAX);
            blocks.push(by_schedule(own, &block, limit));
        }
        if let Some(own) = worst.get_mut(number)
            && missed > own.map_or(0, |own| own.missed)
        {
            *own = Some(WorstInterval { start_s: span.start_s, samples: block.len(), missed });
        }
    });
    let damage = read.err().map(|error| error.to_string()).or_else(|| counts.refusal());
    if let Some(what) = damage {
        return Err(format!("series.hlog: {what}"));
    }
    let kept = asked.all_ns.and_then(|deadline_ns| kept(run, deadline_ns));
    let one = |(number, deadline_ns): &(usize, i64)| {
        let (number, deadline_ns, own) = (*number, *deadline_ns, &series[*number]);
        let kept = kept.as_ref().and_then(|kept| kept.get(number).filter(|_| !own.is_part()));
        let (periods, missed) = match kept {
            Some(kept) => (kept.periods(), kept.missed()),
            None => counted(own, &counts, number, limits[number]),
        };
        let missed = cycles_over(&run.document, own, deadline_ns).unwrap_or(missed);
        let row = row_of_response(&run.document, own);
        let from_wakeup = row.is_some_and(is_stage);
        let is_timed = |row: &&AttachedRow| !is_stage(row);
        let timed = row.filter(is_timed);
        let other_work_ns = timed.and_then(|row| run.document.other_work_over(row, deadline_ns));
        let unserved = timed.map_or(0, |row| run.document.periods_without_cycle(row, own.count));
        let (periods, missed) = (periods + unserved, missed + unserved);
        let blocks = with_unplaced(blocks.get(number).map_or(&[][..], Vec::as_slice), missed);
        let is_known = !from_wakeup && other_work_ns.is_none();
        let share = share_missed(missed, periods, &blocks).filter(|_| is_known);
        SeriesDeadline {
            series: own.name.clone(),
            deadline_ns,
            periods,
            missed,
            unseen: row.map_or(0, |row| row.unmatched),
            from_wakeup,
            cycles_alone: timed.is_some_and(|row| run.document.is_without_period(row)),
            other_work_ns,
            share_met: is_known.then(|| 1.0 - missed as f64 / periods.max(1) as f64),
            share_met_low: share.map(|(_, high)| 1.0 - high),
            share_met_high: share.map(|(low, _)| 1.0 - low),
            longest_burst: kept.map(Misses::longest_burst),
            windows: kept.map(windows).unwrap_or_default(),
            worst_interval: worst.get(number).copied().flatten(),
        }
    };
    Ok(judged.iter().map(one).collect())
}

const fn is_stage(row: &AttachedRow) -> bool {
    matches!(row.cycle_begin, CycleBegin::WakeUp)
}

/// The numbers of the series that have a deadline, and which.
fn judged(document: &Document, asked: &Deadlines) -> Vec<(usize, i64)> {
    let response_of = |name: &str| {
        document
            .series
            .iter()
            .position(|series| series.stage_of.as_deref() == Some(name) && series.is_response())
    };
    if !asked.is_empty() {
        let whole = document.series.iter().enumerate().filter(|(_, own)| !own.is_part());
        // A wake-up by others does not tell since when its work is due.
        let is_one = |own: &SeriesSummary| {
            let latency = document.attached_row(own).and_then(|row| row.latency);
            document.attached.is_none() || latency == Some(AttachedLatency::Lateness)
        };
        let place = |(number, own): (usize, &SeriesSummary)| {
            let deadline_ns = asked.of(&own.name)?;
            let number = response_of(&own.name).or(is_one(own).then_some(number))?;
            Some((number, deadline_ns))
        };
        let odd = |(row, response): (&AttachedRow, &SeriesSummary)| {
            let name = row.series.rsplit_once('/').map_or("", |(name, _)| name);
            let number = document.series.iter().position(|own| own.name == response.name)?;
            Some((number, asked.of(&row.series).or(asked.of(name))?))
        };
        let odd = document.of_other_kind().into_iter().filter_map(odd);
        return whole.filter_map(place).chain(odd).collect();
    }
    let rows = document.attached.iter().flat_map(|record| &record.rows);
    let own = |row: &AttachedRow| {
        let deadline_ns = i64::try_from(row.budget?.deadline_ns).ok()?;
        Some((response_of(&row.series)?, deadline_ns))
    };
    rows.filter_map(own).collect()
}

/// Cycles over the deadline of the attached thread whose response this is, where each was judged by
/// that when it ended.
fn cycles_over(document: &Document, series: &SeriesSummary, deadline_ns: i64) -> Option<u64> {
    let over = row_of_response(document, series)?.over.as_ref()?;
    (i64::try_from(over.deadline_ns) == Ok(deadline_ns)).then_some(over.cycles)
}

/// The attached thread, or the name, whose response this is.
fn row_of_response<'a>(document: &'a Document, series: &SeriesSummary) -> Option<&'a AttachedRow> {
    document.attached_row(series).filter(|_| series.is_response())
}

/// Samples in the bucket that holds the deadline, or above it.
fn late(counts: &hdrhistogram::Histogram<u64>, limit: u64) -> u64 {
    let over = counts.iter_recorded().filter(|bucket| bucket.value_iterated_to() > limit);
    over.map(|bucket| bucket.count_since_last_iteration()).fold(0, u64::saturating_add)
}

/// Periods and misses by counts; early ones met it, and those above the histogram's range did not.
fn counted(series: &SeriesSummary, counts: &SeriesCounts, number: usize, limit: u64) -> (u64, u64) {
    let total = counts.of(number);
    let missed = series.missed.unwrap_or(0);
    let (view, without) = match (series.period_ns, series.max) {
        // Skipped periods have neither a latency nor a wake-up. Work that did not begin in its
        // period missed the deadline, however late the last was.
        _ if series.scheduled.is_none() || series.is_response() => (total, missed),
        (Some(period_ns), Some(max)) if missed > 0 => (per_period(&total, max, period_ns), 0),
        _ => (total, 0),
    };
    let met = view.len().saturating_add(series.early);
    let late = late(&view, limit).saturating_add(series.above).saturating_add(without);
    (met.saturating_add(series.above).saturating_add(without), late)
}

/// The periods of one interval of the log, and those missed, with those that passed in a long sleep
/// or in long work: one stall is one group of misses.
fn by_schedule(
    series: &SeriesSummary,
    block: &hdrhistogram::Histogram<u64>,
    limit: u64,
) -> BlockCount {
    let has_schedule = series.scheduled.is_some() || series.is_response();
    let period_ns = series.period_ns.filter(|period_ns| has_schedule && *period_ns > 0);
    let is_over = |period_ns: &i64| block.max() >= period_ns.unsigned_abs();
    let Some(period_ns) = period_ns.filter(is_over) else {
        return BlockCount { samples: block.len(), beyond: late(block, limit) };
    };
    let max_ns = i64::try_from(block.max()).unwrap_or(i64::MAX);
    let view = per_period(block, max_ns, period_ns);
    if series.is_response() {
        // Those in which no work was begun missed it.
        let without = view.len().saturating_sub(block.len());
        return BlockCount { samples: view.len(), beyond: late(block, limit) + without };
    }
    BlockCount { samples: view.len(), beyond: late(&view, limit) }
}

/// Blocks with all misses: those of which the log does not show when they were are taken for one
/// group, in the worst of the blocks.
fn with_unplaced(blocks: &[BlockCount], missed: u64) -> Vec<BlockCount> {
    let mut blocks = blocks.to_vec();
    let placed = blocks.iter().map(|block| block.beyond).fold(0, u64::saturating_add);
    let unplaced = missed.saturating_sub(placed);
    if let Some(worst) = blocks.iter_mut().max_by_key(|block| block.beyond) {
        worst.samples = worst.samples.saturating_add(unplaced);
        worst.beyond = worst.beyond.saturating_add(unplaced);
    }
    blocks
}

fn windows(misses: &Misses) -> Vec<MissesInWindow> {
    let looked_at = misses.windows().filter(|(length, _)| *length as u64 <= misses.periods());
    looked_at
        .map(|(length, most_missed)| MissesInWindow { periods: length as u64, most_missed })
        .collect()
}

/// Misses of each series in their order, where every sample was kept.
fn kept(run: &Run, deadline_ns: i64) -> Option<Vec<Misses>> {
    if !run.path.join(names::SAMPLES).is_dir() {
        return None;
    }
    let series = &run.document.series;
    let mut found = vec![Misses::new(&WINDOWS); series.len()];
    let mut samples = vec![0_u64; series.len()];
    let mut left = MOST_PERIODS;
    let read = run.samples(|number, sample| {
        if let (Some(found), Some(samples), Some(own)) =
            (found.get_mut(number), samples.get_mut(number), series.get(number))
        {
            let period_ns = own.period_ns.filter(|_| own.missed.is_some()).unwrap_or(0);
            let passed = if period_ns > 0 { sample.latency_ns / period_ns } else { 0 };
            left = left.saturating_sub(passed.max(0));
            if left > 0 {
                found.add_sample(sample.latency_ns, period_ns, deadline_ns);
                *samples += 1;
            }
        }
    });
    let mut each = series.iter().zip(&samples).filter(|(own, _)| !own.is_part());
    let is_whole = read.is_ok() && each.all(|(own, samples)| own.count == *samples);
    is_whole.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        report::fixture,
        run::{AttachRecord, ThreadDeadline},
    };

    fn all(deadline_ns: i64) -> Deadlines {
        Deadlines::of_all(Some(deadline_ns))
    }

    #[test]
    fn each_series_is_judged_by_its_own_deadline_and_others_by_none() {
        let place = tempfile::tempdir().unwrap();
        let blocks = || vec![vec![300_000_u64; 90], vec![2_000_000; 10]];
        let series = [("ctl", blocks()), ("act", blocks()), ("log", blocks())];
        let run = fixture::written(&place.path().join("r"), &series);
        let own = |name: &str, deadline_ns| ThreadDeadline { name: name.into(), deadline_ns };
        let of_threads = vec![own("act", 3_000_000), own("ctl", 1_000_000)];
        let found = deadlines(&run, &Deadlines { all_ns: None, of_threads }).unwrap();
        let found: Vec<_> =
            found.iter().map(|own| (own.series.as_str(), own.deadline_ns, own.missed)).collect();
        // Each of the ten also slept through a period.
        assert_eq!(found, [("ctl", 1_000_000, 20), ("act", 3_000_000, 0)]);
    }

    #[test]
    fn counts_say_how_many_missed_and_not_in_which_order() {
        let place = tempfile::tempdir().unwrap();
        let block = |number: u64| {
            (0..100).map(|n| if n < number % 2 { 600_000 } else { 5_000 }).collect::<Vec<u64>>()
        };
        let blocks = (0..100).map(block).collect();
        let run = fixture::written(&place.path().join("r"), &[("cpu0", blocks)]);
        let found = deadlines(&run, &all(500_000)).unwrap().remove(0);
        assert_eq!((found.periods, found.missed), (10_000, 50));
        assert!((found.share_met.unwrap() - 0.995).abs() < 1e-12);
        assert!(found.share_met_low.unwrap() < 0.995 && found.share_met_high.unwrap() > 0.995);
        assert_eq!((found.longest_burst, found.windows.len()), (None, 0));
        assert_eq!(found.worst_interval.map(|own| (own.missed, own.samples)), Some((1, 100)));
        let met = deadlines(&run, &all(700_000)).unwrap().remove(0);
        assert_eq!((met.missed, met.share_met_low, met.worst_interval), (0, None, None));
    }

    #[test]
    fn one_long_stall_is_one_group_of_misses_and_gives_no_interval() {
        let place = tempfile::tempdir().unwrap();
        let mut blocks = vec![vec![5_000_u64; 1_000]; 10];
        blocks[4].truncate(100);
        blocks[4][50] = 900_000_000;
        let run = fixture::written(&place.path().join("r"), &[("cpu0", blocks.clone())]);
        let found = deadlines(&run, &all(500_000)).unwrap().remove(0);
        assert_eq!((found.periods, found.missed), (9_999, 900));
        assert_eq!((found.share_met_low, found.share_met_high), (None, None));
        // Work after wake-ups likewise; and periods of which nothing shows when they passed.
        let series = [("cpu0", blocks.clone()), ("cpu0/response", blocks)];
        for (name, unplaced) in [("work", 0), ("unplaced", 900)] {
            let run = fixture::written_with(&place.path().join(name), &series, |document| {
                let work = &mut document.series[1];
                work.stage_of = Some("cpu0".into());
                work.stage = Some("response".into());
                work.missed = Some(work.missed.unwrap_or(0) + unplaced);
            });
            let found = deadlines(&run, &all(500_000)).unwrap().remove(0);
            assert_eq!((found.missed >= 900, found.share_met_low), (true, None), "{name}");
        }
    }

    #[test]
    fn periods_that_passed_in_a_long_sleep_missed_it_too() {
        let place = tempfile::tempdir().unwrap();
        let mut blocks = vec![vec![5_000_u64; 100]; 50];
        blocks[7][3] = 3_400_000;
        let run = fixture::written(&place.path().join("r"), &[("cpu0", blocks)]);
        let found = deadlines(&run, &all(500_000)).unwrap().remove(0);
        // The sample, and of the three periods that it slept through the two that were over it.
        assert_eq!((found.periods, found.missed), (5_003, 3));
    }

    #[test]
    fn a_period_in_which_no_work_was_begun_is_missed_however_late_the_work_before_was() {
        let place = tempfile::tempdir().unwrap();
        let blocks = |late| {
            let mut blocks = vec![vec![300_000_u64; 100]; 50];
            blocks[7][3] = late;
            blocks
        };
        let series = [("cpu0", blocks(3_400_000)), ("cpu0/response", blocks(3_700_000))];
        let run = fixture::written_with(&place.path().join("r"), &series, |document| {
            let work = &mut document.series[1];
            work.stage_of = Some("cpu0".into());
            work.stage = Some("response".into());
        });
        let found = deadlines(&run, &all(2_000_000)).unwrap().remove(0);
        assert_eq!(found.series, "cpu0/response");
        // One cycle over it, and three periods without any; the view per period has two of those
        // within it.
        assert_eq!((found.periods, found.missed), (5_003, 4));
    }

    #[test]
    fn where_a_thread_has_no_period_only_cycles_are_judged_and_that_is_said() {
        let row = |name: &str, tid: &str, missed: &str| -> AttachedRow {
            let text = format!(
                r#"{{"series": "{name}", {tid} "wakeups": 9, "by_timer": 9, "by_interrupt": 0,
                "by_ipi": 0, "by_task": 0, "by_own_timer": 9, "in_slack": 0, {missed}
                "preempted": 0, "unmatched": 0, "run": {{"count": 0}}, "ready": {{"count": 0}},
                "blocked": {{"count": 0}}, "response": {{"count": 9}}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let place = tempfile::tempdir().unwrap();
        let blocks = || vec![vec![300_000_u64; 100]];
        let series = [("app", blocks()), ("app/response", blocks())];
        let judged = |of: &str, rows: Vec<AttachedRow>| {
            let run = fixture::written_with(&place.path().join(of), &series, |document| {
                let work = &mut document.series[1];
                work.stage_of = Some("app".into());
                work.stage = Some("response".into());
                document.attached = Some(AttachRecord { rows, ..AttachRecord::default() });
            });
            deadlines(&run, &all(2_000_000)).unwrap().remove(0)
        };
        let kept = r#""missed": 4,"#;
        let [one, two] = [r#""tid": 1,"#, r#""tid": 2,"#];
        let all = judged("a", vec![row("app", "", kept), row("app/1", one, kept)]);
        assert!(!all.cycles_alone, "{all:?}");
        let rows = vec![row("app", "", kept), row("app/1", one, kept), row("app/2", two, "")];
        assert!(judged("b", rows).cycles_alone);
        assert!(judged("c", vec![row("app", "", "")]).cycles_alone);
    }
}

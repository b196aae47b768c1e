//! What happened beside the samples, from rows to columns. A short file can ask for much: one row
//! for each of many CPUs at each of many times.

use std::collections::HashMap;

use super::page::{CpuBusy, InterruptRow, LoadTrack, MachineTrack};
use crate::limits::tracks::MOST_CELLS;
use crate::run::{
    LoadRecord,
    tracks::{InterruptCount, LoadRow, MachineRow},
};

/// The machine over time.
///
/// # Errors
/// What is too much in the file.
pub(super) fn machine(rows: &[MachineRow]) -> Result<MachineTrack, String> {
    let mut track = MachineTrack::default();
    let mut places: HashMap<u32, usize> = HashMap::new();
    for row in rows {
        if track.t_s.last() != Some(&row.t_s) {
            track.t_s.push(row.t_s);
        }
        match row.what.as_str() {
            "interrupts" => track.interrupts_per_s.push(row.value),
            "softirqs" => track.softirqs_per_s.push(row.value),
            "context_switches" => track.context_switches_per_s.push(row.value),
            what => {
                let Some(cpu) = what.strip_prefix("cpu").and_then(|cpu| cpu.parse().ok()) else {
                    continue;
                };
                let next = track.cpu_busy.len();
                let place = *places.entry(cpu).or_insert(next);
                if place == next {
                    track.cpu_busy.push(CpuBusy { cpu, busy: Vec::new() });
                }
                refuse_cells(track.cpu_busy.len(), track.t_s.len())?;
                if let Some(known) = track.cpu_busy.get_mut(place) {
                    push_busy(known, track.t_s.len(), row.value);
                }
            }
        }
    }
    cut_to_whole(&mut track);
    merge_machine(&mut track);
    Ok(track)
}

/// The last interval and the one before it are drawn as one where the run ended soon after the
/// interval before: rates of a few milliseconds are of another scale than all others.
struct LastTwo {
    /// Lengths, s.
    before: f64,
    last: f64,
}

impl LastTwo {
    /// Of intervals that end at these times; nothing if the last one is complete.
    fn of(t_s: &[f64]) -> Option<Self> {
        let (from, middle, end) = match *t_s {
            [.., from, middle, end] => (from, middle, end),
            [middle, end] => (0.0, middle, end),
            _ => return None,
        };
        let (before, last) = (middle - from, end - middle);
        (last > 0.0 && last < before / 2.0).then_some(Self { before, last })
    }

    /// Makes one of the last two values, each weighted by its interval.
    fn merge(&self, values: &mut Vec<f64>) {
        let &mut [.., ref mut before, last] = values.as_mut_slice() else { return };
        *before = (*before * self.before + last * self.last) / (self.before + self.last);
        values.pop();
    }

    /// The merged interval ends where the last one did.
    fn merge_ends(t_s: &mut Vec<f64>) {
        if let Some(end) = t_s.pop()
            && let Some(before) = t_s.last_mut()
        {
            *before = end;
        }
    }
}

fn merge_machine(track: &mut MachineTrack) {
    let Some(two) = LastTwo::of(&track.t_s) else { return };
    LastTwo::merge_ends(&mut track.t_s);
    let columns =
        [&mut track.interrupts_per_s, &mut track.softirqs_per_s, &mut track.context_switches_per_s];
    let busy = track.cpu_busy.iter_mut().map(|cpu| &mut cpu.busy);
    columns.into_iter().chain(busy).for_each(|values| two.merge(values));
}

fn refuse_cells(cpus: usize, intervals: usize) -> Result<(), String> {
    if cpus.saturating_mul(intervals) <= MOST_CELLS {
        return Ok(());
    }
    Err(format!(
        "{cpus} CPUs in {intervals} intervals are more than the {MOST_CELLS} figures that are read"
    ))
}

/// A run that was killed may have written part of its last second.
fn cut_to_whole(track: &mut MachineTrack) {
    let whole = track.t_s.len().min(track.context_switches_per_s.len());
    track.t_s.truncate(whole);
    track.interrupts_per_s.truncate(whole);
    track.softirqs_per_s.truncate(whole);
    track.context_switches_per_s.truncate(whole);
    track.cpu_busy.iter_mut().for_each(|cpu| cpu.busy.resize(whole, 0.0));
}

/// Puts `value` at place `length - 1` of its CPU; a CPU that was away meanwhile was not busy.
fn push_busy(cpu: &mut CpuBusy, length: usize, value: f64) {
    cpu.busy.resize(length.saturating_sub(1), 0.0);
    cpu.busy.push(value);
}

/// Each load over time.
pub(super) fn loads(loads: &[LoadRecord], rows: &[LoadRow]) -> Vec<LoadTrack> {
    let track = |load: &LoadRecord| {
        let unit = load.proof.as_ref().map(|proof| proof.unit.clone()).unwrap_or_default();
        LoadTrack { name: load.name.clone(), unit, t_s: Vec::new(), operations_per_s: Vec::new() }
    };
    let mut tracks: Vec<LoadTrack> = loads.iter().map(track).collect();
    for row in rows {
        if let Some(track) = tracks.get_mut(row.load) {
            track.t_s.push(row.t_s);
            track.operations_per_s.push(row.operations_per_s);
        }
    }
    for track in &mut tracks {
        if let Some(two) = LastTwo::of(&track.t_s) {
            LastTwo::merge_ends(&mut track.t_s);
            two.merge(&mut track.operations_per_s);
        }
    }
    tracks
}

/// The sources of interrupts that moved in `seconds`, busiest first.
pub(super) fn interrupts(counts: &[InterruptCount], seconds: f64) -> Vec<InterruptRow> {
    let mut rows: Vec<InterruptRow> = Vec::new();
    let mut places: HashMap<(&str, &str), usize> = HashMap::new();
    for count in counts.iter().filter(|count| count.difference > 0) {
        let next = rows.len();
        let place = *places.entry((&count.kind, &count.source)).or_insert(next);
        if place == next {
            rows.push(InterruptRow {
                kind: count.kind.clone(),
                source: count.source.clone(),
                description: count.description.clone(),
                per_s: 0.0,
                per_cpu: Vec::new(),
            });
        }
        if let Some(row) = rows.get_mut(place) {
            row.per_s += count.difference as f64 / seconds;
            row.per_cpu.push((count.cpu, count.difference));
        }
    }
    rows.iter_mut().for_each(|row| row.per_s = (row.per_s * 10.0).round() / 10.0);
    rows.sort_by(|a, b| b.per_s.total_cmp(&a.per_s));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(t_s: f64, what: &str, value: f64) -> MachineRow {
        MachineRow { t_s, what: what.into(), value }
    }

    #[test]
    fn a_cpu_that_was_away_was_not_busy_meanwhile() {
        let rows = [
            row(1.0, "context_switches", 5.0),
            row(1.0, "cpu0", 0.5),
            row(2.0, "context_switches", 6.0),
            row(3.0, "context_switches", 7.0),
            row(3.0, "cpu0", 0.25),
            row(3.0, "cpu7", 1.0),
            row(4.0, "cpu0", 1.0),
        ];
        let track = machine(&rows).unwrap();
        assert_eq!(track.t_s, [1.0, 2.0, 3.0], "the last one is not whole");
        let busy: Vec<_> = track.cpu_busy.iter().map(|cpu| (cpu.cpu, &cpu.busy[..])).collect();
        assert_eq!(busy, [(0, &[0.5, 0.0, 0.25][..]), (7, &[0.0, 0.0, 1.0][..])]);
    }

    #[test]
    fn a_rest_at_the_end_is_part_of_the_interval_before_it() {
        let at = |t_s: f64, switches: f64, busy: f64| {
            let rates = ["interrupts", "softirqs", "context_switches"];
            let mut rows: Vec<MachineRow> = rates.map(|what| row(t_s, what, switches)).into();
            rows.push(row(t_s, "cpu0", busy));
            rows
        };
        let rows = [at(1.0, 100.0, 0.5), at(2.0, 100.0, 0.5), at(2.25, 900.0, 1.0)].concat();
        let track = machine(&rows).unwrap();
        assert_eq!(track.t_s, [1.0, 2.25]);
        assert_eq!(track.context_switches_per_s, [100.0, 260.0]);
        assert_eq!(
            (&track.interrupts_per_s, &track.softirqs_per_s[1]),
            (&vec![100.0, 260.0], &260.0)
        );
        assert_eq!(track.cpu_busy[0].busy, [0.5, 0.6]);
        let half = [at(1.0, 100.0, 0.5), at(2.0, 100.0, 0.5), at(2.75, 900.0, 1.0)].concat();
        assert_eq!(machine(&half).unwrap().t_s, [1.0, 2.0, 2.75], "no rest, an interval");
        let short = [at(1.0, 100.0, 0.5), at(1.25, 900.0, 1.0)].concat();
        assert_eq!(machine(&short).unwrap().context_switches_per_s, [260.0]);
        assert_eq!(machine(&rows[..4]).unwrap().t_s, [1.0], "there is nothing before it");
    }

    #[test]
    fn a_load_has_no_rest_at_its_end_either() {
        let load = LoadRecord {
            name: "a".into(),
            parameters: serde_json::Map::new(),
            proof: None,
            ended: None,
        };
        let row = |t_s, operations_per_s| LoadRow { t_s, load: 0, operations_per_s };
        let tracks = loads(&[load], &[row(1.0, 4.0), row(2.0, 4.0), row(2.25, 9.0)]);
        assert_eq!(
            (&tracks[0].t_s[..], &tracks[0].operations_per_s[..]),
            (&[1.0, 2.25][..], &[4.0, 5.0][..])
        );
    }

    #[test]
    fn many_cpus_at_many_times_are_refused_before_they_fill_the_memory() {
        let row = |at: u32| row(f64::from(at), &format!("cpu{at}"), 1.0);
        let rows: Vec<MachineRow> = (0..15_000).map(row).collect();
        let refused = machine(&rows).unwrap_err();
        assert!(refused.contains("2049 CPUs in 2049 intervals"), "{refused}");
        assert!(refused.contains("4194304 figures"), "{refused}");
        assert!(machine(&rows[..2_000]).is_ok());
    }

    #[test]
    fn rows_find_their_load_and_those_of_no_load_are_passed_over() {
        let load = |name: &str| LoadRecord {
            name: name.into(),
            parameters: serde_json::Map::new(),
            proof: None,
            ended: None,
        };
        let row = |load: usize, operations_per_s: f64| LoadRow { t_s: 1.0, load, operations_per_s };
        let rows = [row(1, 5.0), row(0, 6.0), row(1, 7.0), row(usize::MAX, 8.0)];
        let tracks = loads(&[load("a"), load("b")], &rows);
        assert_eq!((tracks[0].operations_per_s.as_slice(), tracks.len()), (&[6.0][..], 2));
        assert_eq!(tracks[1].operations_per_s, [5.0, 7.0]);
    }

    #[test]
    fn the_counts_of_one_source_are_one_row_and_the_busiest_comes_first() {
        let count = |source: &str, cpu: u32, difference: u64| InterruptCount {
            kind: "irq".into(),
            source: source.into(),
            description: String::new(),
            cpu,
            before: 0,
            after: difference,
            difference,
        };
        let counts = [count("a", 0, 10), count("b", 0, 30), count("a", 1, 10), count("c", 0, 0)];
        let rows = interrupts(&counts, 2.0);
        let found: Vec<_> =
            rows.iter().map(|row| (row.source.as_str(), row.per_s, row.per_cpu.len())).collect();
        assert_eq!(found, [("b", 15.0, 1), ("a", 10.0, 2)]);
    }
}

//! What happened when, for viewers of traces: the late samples of a run on tracks of their series,
//! and what the CPUs did meanwhile on tracks of theirs.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use crate::{
    run::{
        Run, names,
        peaks::{Lane, Moment, Part, Peak, StagesOf},
        recording::Recording,
    },
    units::Nanos,
};

/// Of one CPU, or of one series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TraceTrack {
    /// What it is under: `late samples`, `CPU 1`.
    pub(super) group: TrackGroup,
    /// Its place within the group, and its name.
    pub(super) name: (u8, String),
    /// Spans of one track lie within each other or beside; what would cross goes to the next row.
    pub(super) row: usize,
}

/// What tracks are under, in the order of viewers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum TrackGroup {
    Late,
    Cpu(u32),
}

impl TrackGroup {
    pub(super) fn name(self) -> String {
        match self {
            Self::Late => "late samples".into(),
            Self::Cpu(cpu) => format!("CPU {cpu}"),
        }
    }

    /// No two have one number, and none has 0.
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Late => 1,
            Self::Cpu(cpu) => 2 + u64::from(cpu),
        }
    }
}

/// A span, or a point where it has no length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TraceEntry {
    /// Number of its track.
    pub(super) track: usize,
    /// `CLOCK_MONOTONIC`, ns.
    pub(super) at_ns: i64,
    pub(super) ns: Option<u64>,
    pub(super) name: String,
    /// By name; of the measured thread, the blame among others.
    pub(super) details: Vec<(String, String)>,
}

impl TraceEntry {
    pub(super) fn end_ns(&self) -> i64 {
        self.at_ns.saturating_add_unsigned(self.ns.unwrap_or(0))
    }
}

/// Tracks in the order of viewers, and entries by time, the outer before the inner.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TraceTimeline {
    /// Of what it is: a run's name.
    pub(super) name: String,
    pub(super) tracks: Vec<TraceTrack>,
    pub(super) entries: Vec<TraceEntry>,
}

impl TraceTimeline {
    /// The late samples that a run kept whole, and what the CPUs did in its last seconds, where it
    /// kept that.
    ///
    /// # Errors
    /// A run that kept neither, or a file of it that is damaged.
    pub(crate) fn of_run(run: &Run) -> Result<Self, String> {
        let (peaks, name) = (run.peaks().worst, &run.document.name);
        let recording = Recording::read(&run.path)
            .map_err(|error| format!("{name}: {}: {error}", names::RECORDING))?;
        if peaks.is_empty() && recording.is_none() {
            return Err(format!(
                "{name} kept no late samples whole; measure with --trace peaks, which needs root"
            ));
        }
        if recording.is_none() && peaks.iter().all(|peak| peak.at_ns.is_none()) {
            return Err(format!(
                "the file of {name} does not say when its late samples were, so that they have no \
                 place in time; `tardy why` shows them"
            ));
        }
        let mut drawing = Drawing::default();
        drawing.peaks(&peaks);
        drawing.recording(&recording.unwrap_or_default());
        Ok(drawing.finish(name))
    }

    /// What the CPUs did.
    pub(crate) fn of_recording(name: &str, recording: &Recording) -> Self {
        let mut drawing = Drawing::default();
        drawing.recording(recording);
        drawing.finish(name)
    }
}

/// A track whose rows are not settled yet.
type Place = (TrackGroup, (u8, String));

/// Entries by track. What two late samples have in common is in both of their timelines, each
/// cut to its own: it is joined.
#[derive(Default)]
struct Drawing {
    entries: BTreeMap<Place, Vec<TraceEntry>>,
}

impl Drawing {
    fn peaks(&mut self, peaks: &[Peak]) {
        // What has no time has no place on a track.
        for (at_ns, peak) in peaks.iter().filter_map(|peak| Some((peak.at_ns?, peak))) {
            self.late(at_ns, peak);
            peak.timeline.iter().for_each(|moment| self.moment(at_ns, moment));
        }
    }

    fn recording(&mut self, recording: &Recording) {
        recording.moments.iter().for_each(|moment| self.moment(recording.from_ns, moment));
    }

    fn put(&mut self, place: Place, entry: TraceEntry) {
        self.entries.entry(place).or_default().push(entry);
    }

    /// The sample itself, and within it its stages.
    fn late(&mut self, at_ns: i64, peak: &Peak) {
        let place = (TrackGroup::Late, (0, peak.series.clone()));
        let mut details = vec![("cpu".to_owned(), peak.cpu.to_string())];
        details.extend(peak.tid.map(|tid| ("thread".to_owned(), tid.to_string())));
        let parts = peak.parts_by_name().into_iter().enumerate();
        details.extend(parts.map(|(at, part)| (format!("cause {}", at + 1), in_words(&part))));
        if peak.left_out > 0 {
            let what = format!("{} entries of the timeline were not kept", peak.left_out);
            details.push(("left out".into(), what));
        }
        let whole = |from_ns: i64, ns: i64, name: String, details| TraceEntry {
            track: 0,
            at_ns: from_ns,
            ns: Some(ns.max(0).unsigned_abs()),
            name,
            details,
        };
        let name = format!("{} late", Nanos(peak.latency_ns));
        self.put(place.clone(), whole(at_ns, peak.latency_ns, name, details));
        let mut from_ns = at_ns;
        for (name, ns) in stages(peak) {
            if ns > 0 {
                self.put(place.clone(), whole(from_ns, ns, name, Vec::new()));
            }
            from_ns = from_ns.saturating_add(ns);
        }
    }

    /// One entry of a timeline that counts from `zero_ns`.
    fn moment(&mut self, zero_ns: i64, moment: &Moment) {
        let texts = [
            ("kind", Some(moment.what.clone())),
            ("pid", moment.pid.map(|pid| pid.to_string())),
            ("priority", moment.priority.clone()),
            ("detail", moment.detail.clone()),
            ("stack", (!moment.stack.is_empty()).then(|| moment.stack.join("\n"))),
        ];
        let details = texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?)));
        let entry = TraceEntry {
            track: 0,
            at_ns: zero_ns.saturating_add(moment.at),
            ns: moment.ns,
            name: moment.name.clone(),
            details: details.collect(),
        };
        let (rank, name) = track(moment);
        self.put((TrackGroup::Cpu(moment.cpu), (rank, name.into())), entry);
    }

    fn finish(self, name: &str) -> TraceTimeline {
        let mut timeline = TraceTimeline { name: name.to_owned(), ..TraceTimeline::default() };
        for ((group, name), entries) in self.entries {
            let first = timeline.tracks.len();
            let mut rows: Vec<Vec<i64>> = Vec::new();
            let entries = match group {
                // Two late samples are two, whatever they have in common.
                TrackGroup::Late => by_time(entries),
                TrackGroup::Cpu(_) => joined(entries),
            };
            for mut entry in entries {
                let row = row_for(&mut rows, &entry);
                entry.track = first + row;
                timeline.entries.push(entry);
            }
            let track = |row| TraceTrack { group, name: name.clone(), row };
            timeline.tracks.extend((0..rows.len()).map(track));
        }
        timeline.entries = by_time(timeline.entries);
        timeline
    }
}

/// One track for what a CPU runs, whoever it is: a CPU runs one thing at a time.
fn track(moment: &Moment) -> (u8, &'static str) {
    match (moment.lane, moment.what.as_str()) {
        (_, "stack") => (6, "stacks"),
        (_, "function" | "poll") => (4, "long functions"),
        (_, "stopped" | "lock" | "lock_owner") => (5, "held up"),
        (Lane::Host, _) => (0, "host"),
        (Lane::Hardirq, "irq" | "vector") => (1, "hard interrupts"),
        (Lane::Softirq, _) => (2, "softirqs"),
        (_, "task" | "idle") => (3, "running"),
        _ => (7, "points"),
    }
}

/// The stages that the record has, by time.
fn stages(peak: &Peak) -> Vec<(String, i64)> {
    let Some(StagesOf { irq, softirq, handler, dispatch, user }) = peak.stages else {
        let ways = peak.ways.iter();
        return ways.map(|way| (way.way.clone(), way.ns)).collect();
    };
    let all = [("irq", irq), ("softirq", softirq), ("handler", handler)];
    let all = all.into_iter().chain([("dispatch", dispatch), ("user", user)]);
    all.map(|(name, ns)| (name.to_owned(), ns)).collect()
}

fn in_words(part: &Part) -> String {
    let task = part.task.as_ref().map(|task| format!(", {task}")).unwrap_or_default();
    let evidence = match (part.basis, &part.evidence) {
        (_, Some(evidence)) => format!(" (inferred: {evidence})"),
        _ => String::new(),
    };
    format!("{} {}: {}{task}{evidence}", Nanos(part.ns as i64), part.cause.code(), part.name)
}

/// The outer before the inner.
fn by_time(mut entries: Vec<TraceEntry>) -> Vec<TraceEntry> {
    entries.sort_by_key(|entry| (entry.at_ns, Reverse(entry.end_ns())));
    entries
}

/// By time, and each thing once: spans of one name that touch or overlap, where
/// they say the same, are one that was cut at the ends of two timelines.
fn joined(entries: Vec<TraceEntry>) -> Vec<TraceEntry> {
    let mut kept: Vec<TraceEntry> = Vec::with_capacity(entries.len());
    let mut last_of: HashMap<String, usize> = HashMap::new();
    for entry in by_time(entries) {
        let last = last_of.get(&entry.name).copied();
        let same = last.filter(|at| kept[*at].is_same_as(&entry));
        if let Some(at) = same {
            let end_ns = kept[at].end_ns().max(entry.end_ns());
            let known = &mut kept[at];
            known.ns = known.ns.map(|_| end_ns.abs_diff(known.at_ns));
            continue;
        }
        last_of.insert(entry.name.clone(), kept.len());
        kept.push(entry);
    }
    kept
}

impl TraceEntry {
    fn is_same_as(&self, later: &Self) -> bool {
        let alike = self.details == later.details && self.ns.is_some() == later.ns.is_some();
        let overlaps = match self.ns {
            Some(_) => later.at_ns < self.end_ns(),
            None => later.at_ns == self.at_ns,
        };
        alike && overlaps
    }
}

/// The first row in which an entry lies within what is open there, or after it; `rows` holds the
/// ends of what is open in each, the outermost first.
fn row_for(rows: &mut Vec<Vec<i64>>, entry: &TraceEntry) -> usize {
    for (number, open) in rows.iter_mut().enumerate() {
        while open.last().is_some_and(|end| *end <= entry.at_ns) {
            open.pop();
        }
        if open.last().is_none_or(|end| entry.end_ns() <= *end) {
            open.push(entry.end_ns());
            return number;
        }
    }
    rows.push(vec![entry.end_ns()]);
    rows.len() - 1
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::run::peaks::{Basis, Cause};

    fn moment(at: i64, ns: Option<u64>, lane: Lane, what: &str, name: &str) -> Moment {
        let (what, name) = (what.to_owned(), name.to_owned());
        let (pid, priority, detail, stack) = (None, None, None, Vec::new());
        Moment { at, ns, cpu: 1, lane, what, name, pid, priority, detail, stack }
    }

    fn of_peaks(peaks: &[Peak]) -> TraceTimeline {
        let mut drawing = Drawing::default();
        drawing.peaks(peaks);
        drawing.finish("r")
    }

    fn peak(at_ns: i64, latency_ns: i64, timeline: Vec<Moment>) -> Peak {
        let blame = vec![Part {
            cause: Cause::Hardirq,
            name: "virtio0".into(),
            task: None,
            ns: latency_ns.unsigned_abs(),
            basis: Basis::Measured,
            evidence: None,
            stack: Vec::new(),
        }];
        let stages =
            StagesOf { irq: latency_ns - 300, dispatch: 200, user: 100, ..StagesOf::default() };
        Peak {
            at_ns: Some(at_ns),
            series: "cpu1".into(),
            tid: None,
            cpu: 1,
            latency_ns,
            stages: Some(stages),
            ways: Vec::new(),
            blame,
            timeline,
            left_out: 2,
        }
    }

    /// Two late wake-ups with an interrupt that reaches from one into the other.
    pub(in crate::exchange::export) fn two_late() -> TraceTimeline {
        let first = vec![
            moment(-100, Some(1_100), Lane::Idle, "idle", "idle"),
            moment(0, Some(1_000), Lane::Hardirq, "irq", "virtio0"),
            moment(0, None, Lane::Thread, "expiry", "timer expires"),
        ];
        let second = vec![moment(-100, Some(300), Lane::Hardirq, "irq", "virtio0")];
        of_peaks(&[peak(5_000, 1_000, first), peak(6_050, 400, second)])
    }

    #[test]
    fn late_samples_have_their_stages_within_and_their_causes_in_words() {
        let timeline = two_late();
        let of = |track: usize| timeline.entries.iter().filter(move |entry| entry.track == track);
        let spans: Vec<_> =
            of(0).map(|entry| (entry.at_ns, entry.end_ns(), &*entry.name)).collect();
        let first = [(5_000, 6_000, "1.00 us late"), (5_000, 5_700, "irq")];
        assert_eq!(spans[..2], first);
        assert_eq!(spans[2..4], [(5_700, 5_900, "dispatch"), (5_900, 6_000, "user")]);
        let details = &of(0).next().unwrap().details;
        assert_eq!(details[1], ("cause 1".into(), "1.00 us hardirq: virtio0".into()));
        assert!(details[2].1.starts_with("2 entries"), "{details:?}");
    }

    #[test]
    fn what_two_timelines_cut_is_one_again() {
        let timeline = two_late();
        let tracks: Vec<(String, &str)> =
            timeline.tracks.iter().map(|track| (track.group.name(), &*track.name.1)).collect();
        let cpu = |name| ("CPU 1".to_owned(), name);
        let late = ("late samples".to_owned(), "cpu1");
        assert_eq!(tracks, [late, cpu("hard interrupts"), cpu("running"), cpu("points")]);
        let irqs: Vec<_> = timeline.entries.iter().filter(|entry| entry.track == 1).collect();
        assert_eq!(irqs.len(), 1, "{irqs:?}");
        assert_eq!((irqs[0].at_ns, irqs[0].end_ns()), (5_000, 6_250));
    }

    #[test]
    fn spans_that_would_cross_are_in_rows() {
        let late = |at_ns, ns| peak(at_ns, ns, Vec::new());
        let timeline = of_peaks(&[late(0, 1_000), late(500, 1_000)]);
        let rows: Vec<usize> = timeline.tracks.iter().map(|track| track.row).collect();
        assert_eq!(rows, [0, 1]);
        let second = timeline.entries.iter().filter(|entry| entry.track == 1);
        assert_eq!(second.map(|entry| entry.at_ns).min(), Some(500));
    }
}

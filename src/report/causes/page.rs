//! Causes as data of a page: what bands of latencies were blamed on, and the worst
//! wake-ups with their timelines. Texts and stacks of all peaks are kept once, in tables.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::Causes;
use crate::{
    analysis::bands::Band,
    run::{
        kept_peaks,
        peaks::{Basis, Cause, Lane, Moment, Part, Peak, StagesOf, WayOf},
    },
};

/// Maximum number of peaks on a page.
pub const MOST_PEAKS: usize = 100;

/// Causes of a band, and series of a cause, at the most; the largest stay.
const MOST_CAUSES: usize = 40;
const MOST_SERIES: usize = 8;

/// The number of worst ones that keep all of their timeline; the number of entries of the others.
const WHOLE_TIMELINES: usize = 20;
const MOST_MOMENTS: usize = 120;

/// What all late wake-ups of a run were blamed on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageBlame {
    /// Above this every wake-up was blamed, at the end of the run; ns.
    pub threshold_ns: i64,
    /// The lowest that this threshold was: no wake-up below it was blamed; ns.
    #[serde(default)]
    pub lowest_threshold_ns: i64,
    /// Late wake-ups that were blamed.
    pub blamed: u64,
    /// Late wake-ups that were not: their events were overwritten by then, or too many later ones
    /// were waiting.
    pub passed_over: u64,
    /// Wake-ups that matched no record of the BPF programs.
    pub unmatched: u64,
    /// Events that the recorder lost.
    pub lost_events: u64,
    /// From the widest to the worst; of many causes the largest 40.
    pub bands: Vec<Band>,
    /// What late responses were spent on, in one sentence; null if none was late, or none could be
    /// measured.
    #[serde(default)]
    pub responses: Option<String>,
}

/// The worst wake-ups, worst first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PagePeaks {
    /// Lines of `peaks.jsonl` that could not be read, and why.
    pub damaged: Vec<String>,
    /// Texts that peaks share; the first is empty.
    pub strings: Vec<String>,
    /// Stacks that peaks share, innermost function first, as places in `strings`; the first is
    /// empty.
    pub stacks: Vec<Vec<u32>>,
    /// Causes that peaks share.
    pub parts: Vec<PagePart>,
    /// The peaks.
    pub peaks: Vec<PagePeak>,
}

/// One late wake-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PagePeak {
    /// The programmed expiry, seconds since the start of the run; null where nobody knows.
    pub t_s: Option<f64>,
    /// The same, `CLOCK_MONOTONIC` ns.
    pub at_ns: Option<i64>,
    /// Whose.
    pub series: String,
    /// The CPU on which the thread ran when it woke up.
    pub cpu: u32,
    /// How late, ns.
    pub latency_ns: i64,
    /// Its stages in ns; null where the kernel's record did not match, and of a message.
    pub stages: Option<StagesOf>,
    /// The ways of a message, by time; of nothing else.
    #[serde(default)]
    pub ways: Vec<WayOf>,
    /// Why, largest part first: pairs of place in `parts` and ns, which sum to the latency.
    pub blame: Vec<(u32, u64)>,
    /// What happened.
    pub timeline: PageTimeline,
    /// Entries left out of the timeline, in the run or here.
    pub left_out: u64,
}

/// What a part of a latency went to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PagePart {
    /// What kind of cause.
    pub cause: Cause,
    /// Which one.
    pub name: String,
    /// Whose work, `name/pid`; empty if it is not a task's.
    pub task: String,
    /// What the name rests on.
    pub basis: Basis,
    /// Of an inference: what it was concluded from; else empty.
    pub evidence: String,
    /// Place in `stacks`; 0 for none.
    pub stack: u32,
}

/// Entries by time; columns of one length. Texts are places in `strings`, 0 for none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageTimeline {
    /// ns after the programmed expiry.
    pub at: Vec<i64>,
    /// How long, ns; null for a point.
    pub ns: Vec<Option<u64>>,
    /// On which CPU.
    pub cpu: Vec<u32>,
    /// 0 host, 1 hard interrupts, 2 softirqs, 3 the measured thread, 4 other tasks, 5 idle.
    pub lane: Vec<u8>,
    /// What kind of entry: `irq`, `task`, `waking`, ...
    pub what: Vec<u32>,
    /// Its name.
    pub name: Vec<u32>,
    /// Number of the task; 0 where it is about none.
    pub pid: Vec<u32>,
    /// Its priority, as users know it.
    pub priority: Vec<u32>,
    /// What else is known.
    pub detail: Vec<u32>,
    /// Place in `stacks`.
    pub stack: Vec<u32>,
}

/// What all late wake-ups were blamed on, and late responses in one sentence; nothing where that
/// was not recorded.
#[must_use]
pub fn blame(causes: &Causes, responses: Option<String>) -> Option<PageBlame> {
    let blame = causes.blame.as_ref()?;
    let mut bands = causes.bands.clone();
    for band in &mut bands {
        band.causes.truncate(MOST_CAUSES);
        band.causes.iter_mut().for_each(|cause| cause.series.truncate(MOST_SERIES));
    }
    Some(PageBlame {
        threshold_ns: blame.threshold_ns,
        lowest_threshold_ns: blame.lowest_threshold_ns,
        blamed: blame.blamed,
        passed_over: blame.passed_over,
        unmatched: blame.unmatched,
        lost_events: blame.lost_events,
        bands,
        responses,
    })
}

/// The worst wake-ups, and the worst of each series, of a run that started at this time,
/// `CLOCK_MONOTONIC` ns.
#[must_use]
pub fn peaks(causes: &Causes, start_ns: i64) -> PagePeaks {
    let series: Vec<&str> = causes.worst.iter().map(|peak| peak.series.as_str()).collect();
    let chosen = kept_peaks::choose(&series, MOST_PEAKS);
    let both = causes.worst.iter().zip(chosen);
    let worst: Vec<&Peak> = both.filter_map(|(peak, is)| is.then_some(peak)).collect();
    page_peaks(&worst, causes.damaged.iter().map(ToString::to_string).collect(), start_ns)
}

fn page_peaks(worst: &[&Peak], damaged: Vec<String>, start_ns: i64) -> PagePeaks {
    let mut texts = Texts::new();
    let peak = |(rank, &peak): (usize, &&Peak)| {
        let kept = if rank < WHOLE_TIMELINES { usize::MAX } else { MOST_MOMENTS };
        let moments = telling(peak, kept);
        let thinned = (peak.timeline.len() - moments.len()) as u64;
        PagePeak {
            t_s: peak.at_ns.map(|at| (at.saturating_sub(start_ns) / 1_000) as f64 / 1e6),
            at_ns: peak.at_ns,
            series: match peak.tid {
                Some(tid) => format!("{}/{tid}", peak.series),
                None => peak.series.clone(),
            },
            cpu: peak.cpu,
            latency_ns: peak.latency_ns,
            stages: peak.stages,
            ways: peak.ways.clone(),
            blame: peak.parts_by_name().iter().map(|part| (texts.part(part), part.ns)).collect(),
            timeline: page_timeline(&moments, &mut texts),
            left_out: peak.left_out.saturating_add(thinned),
        }
    };
    let peaks = worst.iter().enumerate().map(peak).collect();
    PagePeaks { damaged, strings: texts.strings, stacks: texts.stacks, parts: texts.parts, peaks }
}

/// At most `most` entries, by time: first those of the late interval, of these the longest.
fn telling(peak: &Peak, most: usize) -> Vec<&Moment> {
    let mut kept: Vec<&Moment> = peak.timeline.iter().collect();
    if kept.len() > most {
        let weight = |moment: &&Moment| {
            let ns = moment.ns.unwrap_or(0);
            let end = moment.at.saturating_add_unsigned(ns);
            let late = end >= 0 && moment.at <= peak.latency_ns;
            std::cmp::Reverse((moment.what == "stack", late, ns))
        };
        kept.sort_by_key(weight);
        kept.truncate(most);
        kept.sort_by_key(|moment| moment.at);
    }
    kept
}

fn page_timeline(moments: &[&Moment], texts: &mut Texts) -> PageTimeline {
    let mut line = PageTimeline::default();
    for moment in moments {
        line.at.push(moment.at);
        line.ns.push(moment.ns);
        line.cpu.push(moment.cpu);
        line.lane.push(lane(moment.lane));
        line.what.push(texts.text(&moment.what));
        line.name.push(texts.text(&moment.name));
        line.pid.push(moment.pid.unwrap_or(0));
        line.priority.push(texts.text(moment.priority.as_deref().unwrap_or_default()));
        line.detail.push(texts.text(moment.detail.as_deref().unwrap_or_default()));
        line.stack.push(texts.stack(&moment.stack));
    }
    line
}

fn lane(lane: Lane) -> u8 {
    match lane {
        Lane::Host => 0,
        Lane::Hardirq => 1,
        Lane::Softirq => 2,
        Lane::Thread => 3,
        Lane::Others => 4,
        Lane::Idle => 5,
    }
}

/// Texts, stacks and causes, each once.
struct Texts {
    strings: Vec<String>,
    stacks: Vec<Vec<u32>>,
    parts: Vec<PagePart>,
    known: HashMap<String, u32>,
    known_stacks: HashMap<Vec<u32>, u32>,
    known_parts: HashMap<PagePart, u32>,
}

impl Texts {
    fn new() -> Self {
        Self {
            strings: vec![String::new()],
            stacks: vec![Vec::new()],
            parts: Vec::new(),
            known: HashMap::from([(String::new(), 0)]),
            known_stacks: HashMap::from([(Vec::new(), 0)]),
            known_parts: HashMap::new(),
        }
    }

    fn text(&mut self, text: &str) -> u32 {
        if let Some(place) = self.known.get(text) {
            return *place;
        }
        let place = self.strings.len() as u32;
        self.strings.push(text.to_owned());
        self.known.insert(text.to_owned(), place);
        place
    }

    fn part(&mut self, part: &Part) -> u32 {
        let part = PagePart {
            cause: part.cause,
            name: part.name.clone(),
            task: part.task.clone().unwrap_or_default(),
            basis: part.basis,
            evidence: part.evidence.clone().unwrap_or_default(),
            stack: self.stack(&part.stack),
        };
        if let Some(place) = self.known_parts.get(&part) {
            return *place;
        }
        let place = self.parts.len() as u32;
        self.parts.push(part.clone());
        self.known_parts.insert(part, place);
        place
    }

    fn stack(&mut self, functions: &[String]) -> u32 {
        let stack: Vec<u32> = functions.iter().map(|name| self.text(name)).collect();
        if let Some(place) = self.known_stacks.get(&stack) {
            return *place;
        }
        let place = self.stacks.len() as u32;
        self.stacks.push(stack.clone());
        self.known_stacks.insert(stack, place);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(at: i64, ns: Option<u64>) -> Moment {
        Moment {
            at,
            ns,
            cpu: 0,
            lane: Lane::Others,
            what: "task".into(),
            name: "hog".into(),
            pid: Some(7),
            priority: None,
            detail: None,
            stack: vec!["a+0x1".into(), "b+0x2".into()],
        }
    }

    fn peak(latency_ns: i64, timeline: Vec<Moment>) -> Peak {
        let part = Part {
            cause: Cause::IrqsOff,
            name: "b".into(),
            task: None,
            ns: latency_ns.unsigned_abs(),
            basis: Basis::Inferred,
            evidence: Some("a sign".into()),
            stack: vec!["b+0x2".into()],
        };
        Peak {
            at_ns: Some(3_000_000),
            series: "cpu0".into(),
            cpu: 0,
            latency_ns,
            stages: None,
            ways: Vec::new(),
            blame: vec![part],
            timeline,
            tid: None,
            left_out: 1,
        }
    }

    #[test]
    fn texts_stacks_and_causes_are_kept_once() {
        let worst = peak(9_000, vec![moment(-5, Some(3)), moment(1, None)]);
        let peaks = [worst, peak(8_000, Vec::new())];
        let page = page_peaks(&peaks.iter().collect::<Vec<_>>(), Vec::new(), 1_000_000);
        assert_eq!(page.strings, ["", "b+0x2", "task", "hog", "a+0x1"]);
        assert_eq!(page.stacks, [vec![], vec![1], vec![4, 1]]);
        let own = page.peaks.first().unwrap();
        assert_eq!((own.t_s, own.left_out, page.parts[0].stack), (Some(0.002), 1, 1));
        assert_eq!((page.parts.len(), &own.blame), (1, &vec![(0, 9_000)]));
        assert_eq!(page.peaks[1].blame, [(0, 8_000)]);
        assert_eq!(own.timeline.stack, [2, 2]);
        assert_eq!(own.timeline.ns, [Some(3), None]);
    }

    #[test]
    fn a_long_timeline_keeps_what_was_long_and_what_lies_in_the_late_interval() {
        let mut timeline: Vec<Moment> = (0..300).map(|at| moment(-400_000 + at, None)).collect();
        timeline.push(moment(10, Some(900)));
        let many: Vec<Peak> =
            (0..=WHOLE_TIMELINES).map(|_| peak(1_000, timeline.clone())).collect();
        let page = page_peaks(&many.iter().collect::<Vec<_>>(), Vec::new(), 0);
        assert_eq!(page.peaks[0].timeline.at.len(), 301);
        let last = page.peaks.last().unwrap();
        assert_eq!((last.timeline.at.len(), last.left_out), (MOST_MOMENTS, 1 + 301 - 120));
        assert_eq!(last.timeline.at.last(), Some(&10));
        assert!(last.timeline.at.is_sorted());
    }
}

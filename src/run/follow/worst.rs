//! `peaks.jsonl`, followed: of each series and cause the worst sample that was kept whole.

use std::{collections::HashMap, path::Path};

use serde::Deserialize;

use super::tail::Tail;
use crate::limits::follow::{MOST_KEPT, MOST_PEAK_BYTES as MOST_BYTES};
use crate::run::{
    files,
    peaks::{Basis, Cause, Part, Peak},
    writer::names,
};

/// A late sample that was kept whole, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPeak {
    /// When it was due, `CLOCK_MONOTONIC` ns; absent as in [`Peak::at_ns`].
    pub at_ns: Option<i64>,
    /// Whose.
    pub series: String,
    /// The CPU on which it ended.
    pub cpu: u32,
    /// How late, ns.
    pub latency_ns: i64,
    /// Its largest part by cause and name; nothing where it was not blamed.
    pub main: Option<MainPart>,
    /// Where in the file it is.
    place: (u64, usize),
}

/// The largest part of a late sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MainPart {
    /// What kind of cause.
    pub cause: Cause,
    /// Which one.
    pub name: String,
    /// The task whose work it was, where there is one.
    pub task: Option<String>,
    /// What the name rests on.
    pub basis: Basis,
    /// How much of the latency, ns.
    pub ns: u64,
}

/// What is read of a line; its timeline is skipped.
#[derive(Deserialize)]
struct PeakLine {
    at_ns: Option<i64>,
    series: String,
    cpu: u32,
    latency_ns: i64,
    blame: Vec<Part>,
}

/// The file, and the worst of it.
#[derive(Debug)]
pub(super) struct PeakLog {
    file: Tail,
    worst: HashMap<(String, Option<Cause>), KeptPeak>,
    /// Lines that could not be read.
    pub damaged: u64,
    is_refused: bool,
}

impl PeakLog {
    pub(super) fn new(directory: &Path) -> Self {
        let file = Tail::new(directory.join(names::PEAKS));
        Self { file, worst: HashMap::new(), damaged: 0, is_refused: false }
    }

    /// Reads what is new.
    pub(super) fn look(&mut self) {
        if self.is_refused {
            return;
        }
        let Ok(appended) = self.file.look(MOST_BYTES) else {
            (self.is_refused, self.damaged) = (true, self.damaged + 1);
            return;
        };
        if appended.is_new {
            self.worst.clear();
        }
        let mut at = appended.at;
        for line in appended.lines.split_inclusive(|byte| *byte == b'\n') {
            match serde_json::from_slice::<PeakLine>(line) {
                Ok(peak) => self.take(peak, (at, line.len())),
                Err(_) => self.damaged += 1,
            }
            at += line.len() as u64;
        }
    }

    fn take(&mut self, line: PeakLine, place: (u64, usize)) {
        let PeakLine { at_ns, series, cpu, latency_ns, blame } = line;
        let main = main_part(blame);
        let key = (series.clone(), main.as_ref().map(|main| main.cause));
        let kept = KeptPeak { at_ns, series, cpu, latency_ns, main, place };
        let is_full = self.worst.len() >= MOST_KEPT;
        match self.worst.get_mut(&key) {
            Some(worst) if worst.latency_ns < latency_ns => *worst = kept,
            None if !is_full => drop(self.worst.insert(key, kept)),
            _ => {}
        }
    }

    /// Of each series and main cause the worst, the worst of all first.
    pub(super) fn worst(&self) -> Vec<KeptPeak> {
        let mut worst: Vec<_> = self.worst.values().cloned().collect();
        worst.sort_by_key(|peak| (std::cmp::Reverse(peak.latency_ns), peak.at_ns, peak.cpu));
        worst
    }
}

impl KeptPeak {
    /// Reads it whole.
    ///
    /// # Errors
    /// The file cannot be read, or does not have it any more.
    pub fn whole(&self, directory: &Path) -> Result<Peak, String> {
        use std::os::unix::fs::FileExt as _;
        let (at, length) = self.place;
        let mut line = vec![0; length];
        let file = files::open(&directory.join(names::PEAKS));
        let read = file.and_then(|file| file.read_exact_at(&mut line, at));
        read.map_err(|error| format!("{} cannot be read: {error}", names::PEAKS))?;
        serde_json::from_slice(&line).map_err(|_| format!("{} is damaged", names::PEAKS))
    }
}

fn main_part(blame: Vec<Part>) -> Option<MainPart> {
    let peak = Peak {
        at_ns: None,
        series: String::new(),
        tid: None,
        cpu: 0,
        latency_ns: 0,
        stages: None,
        ways: Vec::new(),
        blame,
        timeline: Vec::new(),
        left_out: 0,
    };
    let Part { cause, name, task, ns, basis, .. } = peak.parts_by_name().into_iter().next()?;
    Some(MainPart { cause, name, task, basis, ns })
}

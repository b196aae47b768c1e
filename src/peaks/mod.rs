//! Which wake-ups were late, what each was blamed on, and the sums of that.
//!
//! Events come from the kernel's side, late wake-ups from the measuring threads; both are judged
//! here, and nothing is measured or written. `docs/blame.md` has the rules.

pub mod blame;
pub mod contexts;
pub mod course;
pub mod covers;
pub mod functions;
pub mod interrupt;
pub mod keep;
pub mod names;
pub mod overlaps;
pub mod piece;
pub mod rules;
#[cfg(test)]
mod sample;
pub mod scene;
pub mod source;
pub mod stacks;
pub mod sums;
#[cfg(test)]
mod tests;
pub mod timeline;

use std::collections::{BTreeMap, HashMap};

use tardy_hot::stages::{Late, Stages};

pub use crate::kernel::{Event, EventKind};
pub use source::Source;

use crate::run::peaks::{Blame, Peak, StagesOf};
use interrupt::Usual;
use keep::{Keep, Pace};
use scene::Scene;
use sums::Sums;

/// A measured thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// Its series: `cpu0`.
    pub series: String,
    /// The CPU it is meant to run on.
    pub cpu: u32,
    /// Its number.
    pub tid: u32,
    /// The kernel's priority: -1 deadline, 0 to 98 real-time (98 is FIFO 1), 100 to 139 fair.
    pub prio: i16,
    /// Of a real-time policy or deadline.
    pub real_time: bool,
}

/// What was asked for, and what the machine is.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// So many of the worst peaks are kept whole.
    pub keep: usize,
    /// Instead all over this, ns.
    pub peak_over_ns: Option<i64>,
    /// This is a virtual machine.
    pub virtual_machine: bool,
    /// Names of interrupt lines, by number.
    pub interrupt_names: HashMap<u32, String>,
}

/// What may be done about a late wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Blame it.
    All,
    /// Blame it where it is a peak, else count it.
    Peaks,
}

/// What is known of one thread as the run goes on.
#[derive(Debug, Default)]
struct Progress {
    /// Above this every wake-up is blamed.
    late_ns: i64,
    /// Below this none is kept whole.
    least_peak_ns: i64,
    /// So long its timer's interrupt usually takes to come.
    usual_irq: Usual,
    pace: Pace,
    /// System management interrupts of its CPU at its last late wake-up.
    smis: Option<u64>,
}

/// Judges late wake-ups while a run goes on.
pub struct Blamer {
    followed: Vec<Followed>,
    progress: Vec<Progress>,
    wishes: Wishes,
    source: Box<dyn Source + Send>,
    sums: Sums,
    keep: Keep,
    lowest_ns: Option<i64>,
    passed_over: u64,
    unmatched: u64,
    steal_is_counted: bool,
}

impl Blamer {
    /// For these threads; the n-th `Late::thread` is the n-th of them.
    #[must_use]
    pub fn new(followed: Vec<Followed>, wishes: Wishes, source: Box<dyn Source + Send>) -> Self {
        let progress = followed.iter().map(|_| Progress::default()).collect();
        let keep = Keep::new(wishes.keep, wishes.peak_over_ns);
        Self {
            followed,
            progress,
            wishes,
            source,
            sums: Sums::default(),
            keep,
            lowest_ns: None,
            passed_over: 0,
            unmatched: 0,
            steal_is_counted: false,
        }
    }

    /// The thresholds to begin with: the warm-up's 99th and 99.9th percentile, ns.
    pub fn begin(&mut self, thread: usize, p99_ns: i64, p999_ns: i64) {
        let Some(followed) = self.followed.get(thread) else { return };
        let smis = self.source.smis(followed.cpu);
        if let Some(progress) = self.progress.get_mut(thread) {
            progress.smis = smis;
        }
        self.follow_p99(thread, p99_ns);
        if let Some(progress) = self.progress.get_mut(thread) {
            progress.least_peak_ns = p999_ns;
        }
    }

    /// The 99th percentile of the thread's series by now, ns; the threshold of being late follows.
    pub fn follow_p99(&mut self, thread: usize, p99_ns: i64) {
        let over_ns = self.wishes.peak_over_ns.unwrap_or(i64::MAX);
        if let Some(progress) = self.progress.get_mut(thread) {
            // What is kept whole is blamed too.
            progress.late_ns = p99_ns.min(over_ns).max(0);
            // A warm-up that was worse than the run must not keep all its peaks away.
            if self.keep.has_room() && progress.least_peak_ns > p99_ns {
                progress.least_peak_ns -= (progress.least_peak_ns - p99_ns) / 2;
            }
            let lowest_ns = self.lowest_ns.unwrap_or(i64::MAX);
            self.lowest_ns = Some(lowest_ns.min(progress.late_ns));
        }
    }

    /// What the measuring thread shall compare with from now on, ns.
    #[must_use]
    pub fn threshold_ns(&self, thread: usize) -> i64 {
        self.progress.get(thread).map_or(i64::MAX, |progress| progress.late_ns)
    }

    /// Blames one late wake-up; the peak where it is among the worst, to be kept whole. What
    /// `effort` leaves out is counted as passed over.
    pub fn late(&mut self, thread: usize, late: &Late, effort: Effort) -> Option<Peak> {
        let me = self.followed.get(thread)?;
        let progress = self.progress.get_mut(thread)?;
        self.unmatched += u64::from(!late.matched);
        let is_peak = self.keep.would_take(late.latency_ns, progress.least_peak_ns);
        let in_time = match effort {
            Effort::All => progress.pace.allows(late.t_ns) || is_peak,
            Effort::Peaks => is_peak,
        };
        if late.latency_ns <= 0 || !in_time {
            self.passed_over += 1;
            return None;
        }
        let smis = self.source.smis(me.cpu);
        let smis_came = smis > progress.smis && progress.smis.is_some();
        progress.smis = smis;
        let mut scene = Scene {
            me,
            late,
            wishes: &self.wishes,
            source: &*self.source,
            smis_came,
            usual_irq_ns: progress.usual_irq.ns(),
            steal_is_counted: self.steal_is_counted,
            cpus: BTreeMap::new(),
            course: course::Course::default(),
        };
        let all: Vec<u32> = self.followed.iter().map(|followed| followed.cpu).collect();
        scene.look(&all);
        let parts = blame::parts(&scene);
        if late.matched {
            progress.usual_irq.learn(late.stages.irq_ns);
        }
        self.sums.add(thread, &me.series, late.latency_ns, &parts);
        let peak = is_peak.then(|| peak(&scene, parts));
        let is_steal = |event: &Event| matches!(event.kind, EventKind::Steal { .. });
        let steals = scene.cpus.values().any(|cpu| cpu.events.iter().any(is_steal));
        self.steal_is_counted |= steals;
        if is_peak {
            self.keep.take(late.latency_ns);
        }
        peak
    }

    /// The sums by now.
    #[must_use]
    pub fn record(&self) -> Blame {
        let thresholds = self.progress.iter().map(|progress| progress.late_ns);
        Blame {
            threshold_ns: thresholds.max().unwrap_or(0),
            lowest_threshold_ns: self.lowest_ns.unwrap_or(0),
            passed_over: self.passed_over,
            unmatched: self.unmatched,
            lost_events: self.source.lost(),
            ..self.sums.record()
        }
    }
}

fn peak(scene: &Scene<'_>, blame: Vec<crate::run::peaks::Part>) -> Peak {
    let (timeline, left_out) = timeline::timeline(scene);
    Peak {
        at_ns: scene.late.t_ns,
        series: scene.me.series.clone(),
        cpu: scene.course.spans.last().map_or(scene.me.cpu, |span| span.cpu),
        latency_ns: scene.late.latency_ns,
        stages: scene.late.matched.then(|| stages(&scene.late.stages)),
        blame,
        timeline,
        left_out,
    }
}

fn stages(stages: &Stages) -> StagesOf {
    StagesOf {
        irq: stages.irq_ns,
        softirq: stages.softirq_ns,
        handler: stages.handler_ns,
        dispatch: stages.dispatch_ns,
        user: stages.user_ns,
    }
}

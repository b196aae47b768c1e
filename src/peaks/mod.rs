//! Which wake-ups were late, what each was blamed on, and the sums of that.
//!
//! Events come from the BPF programs, late wake-ups from the measuring threads; both are judged
//! here, and nothing is measured or written. `docs/explanation/blame.md` has the rules.

mod below_kernel;
pub(crate) mod blame;
pub(crate) mod contexts;
pub(crate) mod state_history;
pub(crate) mod overlays;
mod cycle;
mod dispatch;
mod frequencies;
mod holders;
pub(crate) mod holds;
mod idle;
pub(crate) mod interrupt;
pub(crate) mod recording;
pub(crate) mod retention;
pub(crate) mod named_work;
pub(crate) mod names;
mod kept;
mod ksoftirqd;
pub(crate) mod locks;
pub(crate) mod long_functions;
mod marks;
mod message;
pub(crate) mod mutexes;
pub(crate) mod piece;
pub(crate) mod rules;
#[cfg(test)]
mod test_events;
pub(crate) mod late_wakeup;
mod precedence;
mod senders;
pub(crate) mod source;
mod siblings;
mod smis;
pub(crate) mod stacks;
pub(crate) mod stolen;
pub(crate) mod sums;
#[cfg(test)]
mod tests;
pub(crate) mod timeline;
pub(crate) mod unseen;
mod usual;
pub(crate) mod waiting;
pub(crate) mod way;

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use tardy_hot::stages::Late;

pub(crate) use crate::kernel::{Event, EventKind};
pub(crate) use holds::HoldEvidence;
pub(crate) use source::EventSource;
pub(crate) use usual::{TypicalLeg, UsualStages};
pub(crate) use way::{MessageWay, WayKind};

use crate::run::{
    measured_steal::stolen_ns,
    peaks::{Blame, EVENTS_LOST, NOT_ANALYSED, Peak},
};
use late_wakeup::LateWakeup;
use retention::WorstPeaks;
use smis::Smis;
use stolen::StolenSamples;
use sums::Sums;
use waiting::{Waiting, drop_backlog, is_lost};

/// A measured thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MeasuredThread {
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
    /// It never sleeps, and what is late are gaps in which it did not have its CPU.
    pub spins: bool,
    /// What is late is its work, from an expiry of its timer to the end: it has the CPU for that,
    /// and may sleep meanwhile.
    pub works: bool,
}

/// What was asked for, and what the machine is.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlameOptions {
    /// The number of worst peaks that are kept complete.
    pub keep: usize,
    /// Instead all over this, ns.
    pub peak_over_ns: Option<i64>,
    /// A latency over this ends the run, and so is late; ns.
    pub stop_over_ns: Option<i64>,
    /// This is a virtual machine.
    pub virtual_machine: bool,
    /// The threads are another program's, and run on any CPU.
    pub roams: bool,
    /// How the record tells what holds real-time threads back.
    pub holds: HoldEvidence,
    /// The kernel may let a CPU be idle while a thread is ready for it, and does not tell.
    pub idles_beside_ready: bool,
    /// Names of the handlers of interrupt lines, by number.
    pub interrupt_names: HashMap<u32, Vec<String>>,
    /// By CPU and number of the idle state: its exit latency, ns.
    pub idle_exit_ns: HashMap<(u32, u32), i64>,
    /// By CPU: the highest frequency that it can have, kHz; `None` if changes are not all told.
    pub highest_khz: HashMap<u32, u32>,
    /// By CPU: the other hardware threads of its core.
    pub siblings: HashMap<u32, Vec<u32>>,
}

/// What may be done now about late wake-ups that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlameScope {
    /// Blame them.
    All,
    /// Blame the peaks among them; the others wait.
    Peaks,
    /// All wait: there may be later ones by now.
    Nothing,
}

/// The blame has fallen behind where it skipped more than one in this number of late wake-ups.
const FEW: u64 = 10;

/// What is known of one thread during the run.
#[derive(Debug, Default)]
struct Progress {
    /// Above this every wake-up is blamed.
    late_ns: i64,
    /// Below this none is kept whole.
    least_peak_ns: i64,
    /// The medians of its stages, and of those of its messages.
    usual: UsualStages,
    usual_ways: Vec<TypicalLeg>,
    /// The threshold is not below this while the blame falls behind, ns.
    raised_ns: i64,
    /// Late wake-ups, and those of them skipped, since the threshold was last set.
    late: u64,
    passed_over: u64,
    /// System management interrupts, as far as they were counted.
    smis: Smis,
}

/// Evaluates late wake-ups during a run.
pub(crate) struct Blamer {
    followed: Vec<MeasuredThread>,
    progress: Vec<Progress>,
    wishes: BlameOptions,
    source: Box<dyn EventSource + Send>,
    sums: Sums,
    stolen: StolenSamples,
    keep: [WorstPeaks; 2],
    waiting: Vec<Waiting>,
    lowest_ns: Option<i64>,
    /// Of wake-ups, and of work.
    passed_over: [u64; 2],
    unmatched: u64,
}

impl Blamer {
    /// For these threads; the n-th `Late::thread` is the n-th of them.
    #[must_use]
    pub(crate) fn new(
        followed: Vec<MeasuredThread>,
        wishes: BlameOptions,
        source: Box<dyn EventSource + Send>,
    ) -> Self {
        let progress = followed.iter().map(|_| Progress::default()).collect();
        let keep = [(); 2].map(|()| WorstPeaks::new(wishes.keep, wishes.peak_over_ns));
        Self {
            followed,
            progress,
            wishes,
            source,
            sums: Sums::default(),
            stolen: StolenSamples::default(),
            keep,
            waiting: Vec::new(),
            lowest_ns: None,
            passed_over: [0; 2],
            unmatched: 0,
        }
    }

    /// One thread more; its number is the next.
    pub(crate) fn follow_more(&mut self, thread: MeasuredThread) {
        self.followed.push(thread);
        self.progress.push(Progress::default());
    }

    /// The priority that a thread has now.
    pub(crate) fn set_prio(&mut self, thread: usize, prio: i16) {
        if let Some(followed) = self.followed.get_mut(thread) {
            (followed.prio, followed.real_time) = (prio, prio < 100);
        }
    }

    /// The thresholds to begin with: the warm-up's 99th and 99.9th percentile, ns.
    pub(crate) fn begin(&mut self, thread: usize, p99_ns: i64, p999_ns: i64) {
        self.follow_p99(thread, p99_ns);
        let over_ns = self.wishes.stop_over_ns.unwrap_or(i64::MAX);
        if let Some(progress) = self.progress.get_mut(thread) {
            progress.least_peak_ns = p999_ns.min(over_ns);
        }
    }

    /// The 99th percentile of the thread's series by now, ns; the threshold of being late follows.
    /// While many were skipped since the last time, it rises above that.
    pub(crate) fn follow_p99(&mut self, thread: usize, p99_ns: i64) {
        // So that the interrupts that may explain a peak came little before it.
        if let (Some(me), Some(it)) = (self.followed.get(thread), self.progress.get_mut(thread)) {
            it.smis.begin(self.source.smis(me.cpu));
        }
        let limits = [self.wishes.peak_over_ns, self.wishes.stop_over_ns];
        let over_ns = limits.into_iter().flatten().min().unwrap_or(i64::MAX);
        let kind = self.kind(thread);
        if let Some(progress) = self.progress.get_mut(thread) {
            let is_behind = progress.passed_over * FEW > progress.late;
            (progress.late, progress.passed_over) = (0, 0);
            progress.raised_ns = match is_behind {
                true => progress.late_ns / 4 * 5,
                false => progress.raised_ns / 5 * 4,
            };
            // What is kept whole is blamed too.
            progress.late_ns = p99_ns.max(progress.raised_ns).min(over_ns).max(0);
            // A warm-up that was worse than the run must not keep all its peaks away.
            if self.keep[kind].has_room() && progress.least_peak_ns > p99_ns {
                progress.least_peak_ns -= (progress.least_peak_ns - p99_ns) / 2;
            }
            if kind == 0 {
                let lowest_ns = self.lowest_ns.unwrap_or(i64::MAX);
                self.lowest_ns = Some(lowest_ns.min(progress.late_ns));
            }
        }
    }

    /// The medians of the thread's stages by now.
    pub(crate) fn set_usual(&mut self, thread: usize, usual: UsualStages) {
        if let Some(progress) = self.progress.get_mut(thread) {
            progress.usual = usual;
        }
    }

    /// The medians of the ways of the thread's messages by now, in their order.
    pub(crate) fn set_usual_ways(&mut self, thread: usize, usual: Vec<TypicalLeg>) {
        if let Some(progress) = self.progress.get_mut(thread) {
            progress.usual_ways = usual;
        }
    }

    /// The threshold that the measuring thread must compare with from now on, ns.
    #[must_use]
    pub(crate) fn threshold_ns(&self, thread: usize) -> i64 {
        self.progress.get(thread).map_or(i64::MAX, |progress| progress.late_ns)
    }

    /// One more late wake-up of a thread, which waits for [`Blamer::work`].
    pub(crate) fn add(&mut self, thread: usize, late: Late) {
        self.add_message(thread, late, Vec::new());
    }

    /// The same for a message that took these ways.
    pub(crate) fn add_message(&mut self, thread: usize, late: Late, ways: Vec<MessageWay>) {
        let Some(progress) = self.progress.get_mut(thread) else { return };
        progress.late += 1;
        self.unmatched += u64::from(!late.matched);
        if late.latency_ns > 0 {
            self.waiting.push(Waiting { thread, late, ways });
        } else {
            self.count_passed_over(thread);
        }
    }

    /// Blames those that wait, the latest of each kind first, as `effort` says, which is asked
    /// after each; the peaks among them, to be kept whole. What was overwritten meanwhile, and the
    /// least late of too many, is counted as skipped; a peak is kept even so, and says that its
    /// events were lost.
    pub(crate) fn work(&mut self, mut effort: impl FnMut() -> BlameScope) -> Vec<Peak> {
        let mut peaks = self.drop_backlog();
        self.count_smis_for_peaks();
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut now = effort();
        waiting.retain(|one| {
            let goes = match now {
                BlameScope::All => true,
                BlameScope::Peaks => self.is_urgent(one),
                BlameScope::Nothing => false,
            };
            if goes {
                peaks.extend(self.blame(one));
                now = effort();
            }
            !goes
        });
        self.waiting = waiting;
        peaks
    }

    fn count_smis(&mut self, thread: usize) {
        if let (Some(me), Some(it)) = (self.followed.get(thread), self.progress.get_mut(thread)) {
            it.smis.read(self.source.smis(me.cpu));
        }
    }

    /// Reading the counter interrupts a CPU, and so is left to peaks.
    fn count_smis_for_peaks(&mut self) {
        let mut threads: Vec<usize> =
            self.waiting.iter().filter(|one| self.is_urgent(one)).map(|one| one.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        threads.into_iter().for_each(|thread| self.count_smis(thread));
    }

    /// Whether late wake-ups wait that are peaks.
    #[must_use]
    pub(crate) fn is_behind(&self) -> bool {
        self.waiting.iter().any(|one| self.is_urgent(one))
    }

    /// Whether more wait than are ever kept.
    #[must_use]
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= 2 * waiting::MOST_WITH_PEAKS
    }

    /// How many late wake-ups wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Passes over all that wait; the peaks among them, which nobody has looked at.
    pub(crate) fn give_up(&mut self) -> Vec<Peak> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.iter().filter_map(|one| self.pass_over(one, NOT_ANALYSED)).collect()
    }

    /// 1 for a thread whose work is judged, 0 for others: each kind has its own peaks, or those of
    /// work, which are longer, would be all.
    fn kind(&self, thread: usize) -> usize {
        usize::from(self.followed.get(thread).is_some_and(|me| me.works))
    }

    fn is_peak(&self, one: &Waiting) -> bool {
        let least_ns = self.progress.get(one.thread).map_or(i64::MAX, |it| it.least_peak_ns);
        let series = self.followed.get(one.thread).map_or("", |me| &me.series);
        self.keep[self.kind(one.thread)].would_take(series, one.late.latency_ns, least_ns)
    }

    /// Whether it is a peak that is blamed whatever that takes: packets behind a late one are kept
    /// as far as there is time for them.
    fn is_urgent(&self, one: &Waiting) -> bool {
        !one.follows_later() && self.is_peak(one)
    }

    /// Gives up what cannot be blamed any more, or is too much.
    fn drop_backlog(&mut self) -> Vec<Peak> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let place = |one: &Waiting| match self.wishes.roams {
            true => one.late.cpus.1,
            false => self.followed.get(one.thread).map_or(0, |followed| followed.cpu),
        };
        let mut recorded: HashMap<u32, Range<u64>> = HashMap::new();
        for one in &waiting {
            let cpu = place(one);
            recorded.entry(cpu).or_insert_with(|| self.source.recorded(cpu));
        }
        let is_gone = |one: &Waiting| {
            recorded.get(&place(one)).is_some_and(|known| is_lost(known, &one.late))
        };
        let is_work = |one: &Waiting| self.kind(one.thread) == 1;
        let given_up = drop_backlog(&mut waiting, is_work, is_gone, |one| self.is_urgent(one));
        self.waiting = waiting;
        given_up.iter().filter_map(|one| self.pass_over(one, EVENTS_LOST)).collect()
    }

    fn count_passed_over(&mut self, thread: usize) {
        self.passed_over[self.kind(thread)] += 1;
    }

    /// Counts one that is not analysed; a peak is kept for its latency and its stages, and says
    /// why.
    fn pass_over(&mut self, one: &Waiting, why: &str) -> Option<Peak> {
        let is_peak = self.is_urgent(one);
        self.count_passed_over(one.thread);
        let me = self.followed.get(one.thread)?;
        self.progress.get_mut(one.thread)?.passed_over += 1;
        if !is_peak {
            return None;
        }
        self.keep[usize::from(me.works)].take(&me.series, one.late.latency_ns);
        Some(kept::lost(me, one, self.wishes.roams, why))
    }

    fn blame(&mut self, one: &Waiting) -> Option<Peak> {
        let is_peak = self.is_peak(one);
        let late = &one.late;
        // One that is bound to no CPU was where it had it.
        let me = match (self.followed.get(one.thread)?, self.wishes.roams) {
            (own, true) => &MeasuredThread { cpu: late.cpus.1, ..own.clone() },
            (own, false) => own,
        };
        let progress = self.progress.get_mut(one.thread)?;
        let mut wakeup = LateWakeup {
            me,
            late,
            wishes: &self.wishes,
            source: &*self.source,
            smis: progress.smis.evidence(),
            usual: progress.usual,
            cpus: BTreeMap::new(),
            history: state_history::StateHistory::default(),
            ways: &one.ways,
            followed: &self.followed,
            route: None,
            earlier: way::Earlier::default(),
        };
        let message = match one.ways.is_empty() {
            true => {
                let all = match self.wishes.roams {
                    true => (0..self.source.cpus()).collect(),
                    false => self.followed.iter().map(|followed| followed.cpu).collect::<Vec<_>>(),
                };
                wakeup.gather(all.into_iter());
                dispatch::find_route(&mut wakeup);
                None
            }
            false => Some(message::gather(&mut wakeup, &progress.usual_ways)),
        };
        if wakeup.is_lost() {
            return self.pass_over(one, EVENTS_LOST);
        }
        let parts = match &message {
            Some(message) => message.parts(&mut wakeup),
            None => blame::parts(&wakeup),
        };
        progress.smis.explains(&parts);
        match me.works {
            true => self.sums.add_response(one.thread, &me.series, late.latency_ns, &parts),
            false => self.sums.add(one.thread, &me.series, late.latency_ns, &parts),
        }
        let stolen_ns = stolen_ns(&parts);
        if stolen_ns > 0 {
            let taken_ns = late.t_ns.saturating_add(late.latency_ns);
            self.stolen.add(&me.series, taken_ns, late.latency_ns, stolen_ns);
        }
        let ways = message.map(|message| message.ways).unwrap_or_default();
        let peak = is_peak.then(|| kept::peak(&wakeup, parts, ways));
        if is_peak {
            self.keep[usize::from(me.works)].take(&me.series, late.latency_ns);
        }
        peak
    }

    /// The sums by now.
    #[must_use]
    pub(crate) fn record(&self) -> Blame {
        let all = self.followed.iter().zip(&self.progress);
        let thresholds = all.filter(|(me, _)| !me.works).map(|(_, progress)| progress.late_ns);
        Blame {
            threshold_ns: thresholds.max().unwrap_or(0),
            lowest_threshold_ns: self.lowest_ns.unwrap_or(0),
            passed_over: self.passed_over[0],
            responses_passed_over: self.passed_over[1],
            unmatched: self.unmatched,
            lost_events: self.source.lost(),
            stolen: Some(self.stolen.record(self.source.counts_steal())),
            ..self.sums.record()
        }
    }
}

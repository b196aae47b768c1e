//! The recorder: the helper thread that has late wake-ups blamed during the run, and writes
//! `peaks.jsonl` and `blame.json`.
//!
//! It runs as the drain does, below the measured threads and above every load. The kernel keeps its
//! events for some 50 ms, so it looks every 5 ms. Where it falls behind all the same, it takes the
//! latest first and passes over the least late. What it changes on the machine: the programs that
//! trace run until it ends.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{Builder, JoinHandle},
};

use tardy_hot::{
    clock::now_ns,
    histogram::{HIGHEST_NS, highest_of, index_of},
    traced::StageSeries,
    wakeup::Series,
};

use super::{cadence::Cadence, drain::wait_until, evidence::RefusedWrite};
use crate::{
    kernel::Tracer,
    peaks::{BlameOptions, Blamer, Effort, MeasuredThread, UsualStages},
    probes::TracedThread,
    run::{
        BlameFiles, OsError, names,
        peaks::{Blame, Peak},
    },
    setup::threads::become_helper,
    sys::{counters::interrupt_sources, cpus::Cpus, idle::exit_latencies_ns, root::Root},
};

/// The kernel's events last ten times as long.
const TICK_NS: i64 = 5_000_000;

/// Thresholds follow the series so often.
const FOLLOW_NS: i64 = 1_000_000_000;

/// And the first time so soon: the warm-up knows no medians of stages.
const FIRST_FOLLOW_NS: i64 = 100_000_000;

/// The sums are written so often.
const WRITE_NS: i64 = 10_000_000_000;

/// With fewer samples beyond it, a percentile is little more than the maximum, and a threshold
/// there would keep what comes after one stall from being analysed.
const ENOUGH: u64 = 10;

/// One part in so many of the time is for blaming.
const SHARE: i64 = 10;

/// Time that was not needed is there later, up to this; ns.
const MOST_SAVED_NS: i64 = 20_000_000;

/// Peaks are few, or asked for by `--peak-over`, and take what they need; so much of it at the most
/// is made up for by others, ns.
const MOST_OWED_NS: i64 = 100_000_000;

/// Once nothing more comes, what still waits is blamed for so long, ns.
const AFTERWARDS_NS: i64 = 500_000_000;

/// So many peaks wait for a disk that refuses them; what comes then is in the sums alone.
const MOST_WAITING: usize = 1000;

/// What is late until something is known, ns.
const LATE_NS: i64 = 50_000;

/// What the recorder works with.
pub(super) struct BlameInputs {
    /// The BPF side, switched on.
    pub tracer: Tracer,
    /// What judges.
    pub blamer: Blamer,
    /// The measured threads, in the order in which the blamer knows them.
    pub threads: Vec<TracedThread>,
    /// Where everything goes.
    pub files: BlameFiles,
    /// The first recorded expiry, `CLOCK_MONOTONIC` ns; the warm-up ends there.
    pub start_ns: i64,
    /// When it is to wake up.
    pub cadence: Cadence,
    /// Priority of the measured threads, 0 where they are ordinary tasks.
    pub measured_priority: u32,
    /// CPUs that are not measured.
    pub housekeeping: Cpus,
}

/// What the recorder leaves.
#[derive(Debug)]
pub(super) struct Blamed {
    /// The sums.
    pub blame: Blame,
    /// What the disk refused, the first time.
    pub refused: Option<RefusedWrite>,
}

/// The running thread.
#[derive(Debug)]
pub(super) struct BlameRecorder {
    finished: Arc<AtomicBool>,
    handle: JoinHandle<Blamed>,
}

impl BlameRecorder {
    /// Starts it.
    ///
    /// # Errors
    /// No thread could be started.
    pub(super) fn start(work: BlameInputs) -> io::Result<Self> {
        let finished = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&finished);
        let handle = Builder::new()
            .name("tardy/recorder".into())
            .spawn(move || Thread::new(work).run(&ends))?;
        Ok(Self { finished, handle })
    }

    /// Waits until every late wake-up is blamed; the measured threads must have ended.
    ///
    /// # Errors
    /// The thread died.
    pub(super) fn finish(self) -> Result<Blamed, String> {
        self.finished.store(true, Ordering::Release);
        self.handle.thread().unpark();
        self.handle.join().map_err(|_| "the thread that blames died".to_owned())
    }
}

/// Wake-ups so far that matched no record of the BPF side.
pub(super) fn unmatched(threads: &[TracedThread]) -> u64 {
    threads.iter().map(|thread| thread.control.unmatched.load(Ordering::Relaxed)).sum()
}

/// The threads as the blamer knows them.
pub(super) fn followed(threads: &[TracedThread]) -> Vec<MeasuredThread> {
    let one = |thread: &TracedThread| MeasuredThread {
        series: thread.name.clone(),
        cpu: thread.cpu,
        tid: thread.tid.unsigned_abs(),
        prio: thread.priority.0,
        real_time: thread.priority.1,
    };
    threads.iter().map(one).collect()
}

/// What the machine says to the blamer, and the user wishes of it.
pub(super) fn wishes(
    threads: &[TracedThread],
    keep: usize,
    peak_over_ns: Option<i64>,
    virtual_machine: bool,
) -> BlameOptions {
    let root = Root::default();
    let sources = interrupt_sources(&root);
    let lines = sources.into_iter().filter_map(|source| {
        let number = source.name.parse().ok()?;
        // Chip, line and kind, then the handlers.
        let name = source.description.rsplit(' ').next().unwrap_or_default().to_owned();
        Some((number, name))
    });
    let interrupt_names: HashMap<u32, String> = lines.collect();
    let cpus = threads.iter().map(|thread| thread.cpu).collect();
    let idle_exit_ns = exit_latencies_ns(&root, &cpus);
    BlameOptions { keep, peak_over_ns, virtual_machine, interrupt_names, idle_exit_ns }
}

struct Thread {
    work: BlameInputs,
    /// Admitted, and not written yet.
    peaks: Vec<Peak>,
    next_follow_ns: i64,
    next_write_ns: i64,
    /// What blaming may still take, ns; less than nothing where it took more.
    allowance_ns: i64,
    looked_ns: i64,
    refused: Option<RefusedWrite>,
}

impl Thread {
    fn new(work: BlameInputs) -> Self {
        Self {
            peaks: Vec::new(),
            next_follow_ns: work.start_ns + FIRST_FOLLOW_NS,
            next_write_ns: work.start_ns + WRITE_NS,
            allowance_ns: MOST_SAVED_NS,
            looked_ns: now_ns(),
            refused: None,
            work,
        }
    }

    fn run(mut self, finished: &AtomicBool) -> Blamed {
        // The drain reports where this is refused.
        let _ = become_helper(self.work.measured_priority, &self.work.housekeeping);
        // The first recorded wake-up must find its threshold.
        if !wait_until(self.work.start_ns - TICK_NS / 5, finished) {
            self.begin();
        }
        let cadence = self.work.cadence;
        let mut due_ns = cadence.after(self.work.start_ns + TICK_NS);
        while !wait_until(due_ns, finished) {
            self.tick();
            // Peaks that wait do so no longer than it takes to look for later ones.
            let is_behind = self.work.blamer.is_behind();
            due_ns = if is_behind { 0 } else { cadence.after(now_ns() + TICK_NS) };
        }
        // Nothing more comes; what there is stays in memory.
        self.work.tracer.detach();
        self.blame_the_rest();
        self.write_peaks();
        let blame = self.sums();
        self.write_blame(&blame);
        Blamed { blame, refused: self.refused }
    }

    /// Thresholds from the warm-up.
    fn begin(&mut self) {
        for (number, thread) in self.work.threads.iter().enumerate() {
            let of = |most| tail(&thread.warmup, most).unwrap_or(LATE_NS);
            self.work.blamer.begin(number, of(990), of(999));
        }
        self.set_thresholds();
    }

    fn tick(&mut self) {
        self.blame();
        if !self.peaks.is_empty() {
            self.write_peaks();
            self.spend();
        }
        let now = now_ns();
        if now >= self.next_follow_ns {
            self.next_follow_ns = now + FOLLOW_NS;
            self.follow();
        }
        if now >= self.next_write_ns {
            self.next_write_ns = now + WRITE_NS;
            let blame = self.sums();
            self.write_blame(&blame);
        }
    }

    /// Has blamed what has come, as far as time allows: this thread goes before all loads, so what
    /// it takes is missing elsewhere. Peaks go before others. After a while it is time to look for
    /// later ones.
    fn blame(&mut self) {
        self.earn();
        self.collect();
        let until_ns = self.looked_ns + TICK_NS;
        let (allowance_ns, looked_ns) = (&mut self.allowance_ns, &mut self.looked_ns);
        let effort = || {
            spend(allowance_ns, looked_ns);
            match *allowance_ns > 0 {
                _ if *looked_ns >= until_ns => Effort::Nothing,
                true => Effort::All,
                false => Effort::Peaks,
            }
        };
        self.peaks.extend(self.work.blamer.work(effort));
    }

    /// Has blamed what waits, all peaks and others for a while.
    fn blame_the_rest(&mut self) {
        self.collect();
        let until_ns = now_ns() + AFTERWARDS_NS;
        let effort = || if now_ns() < until_ns { Effort::All } else { Effort::Peaks };
        self.peaks.extend(self.work.blamer.work(effort));
        self.peaks.extend(self.work.blamer.give_up());
    }

    /// Takes what the measured threads have handed over.
    fn collect(&mut self) {
        for (number, thread) in self.work.threads.iter_mut().enumerate() {
            let blamer = &mut self.work.blamer;
            thread.late.drain(|late| blamer.add(number, late));
        }
    }

    /// A share of the time since the last look is for blaming.
    fn earn(&mut self) {
        let now = now_ns();
        let earned_ns = (now - self.looked_ns) / SHARE;
        self.allowance_ns = (self.allowance_ns + earned_ns).min(MOST_SAVED_NS);
        self.looked_ns = now;
    }

    /// And what was taken since is spent.
    fn spend(&mut self) {
        spend(&mut self.allowance_ns, &mut self.looked_ns);
    }

    /// Lets the thresholds follow the 99th percentile of the series, and what is usual the medians
    /// of its stages.
    fn follow(&mut self) {
        for (number, thread) in self.work.threads.iter().enumerate() {
            if let Some(usual) = usual(&thread.stages) {
                self.work.blamer.set_usual(number, usual);
            }
            if let Some(p99_ns) = tail(&thread.total, 990) {
                self.work.blamer.follow_p99(number, p99_ns);
            }
        }
        self.set_thresholds();
    }

    /// Sets it for the measured threads, and the lowest one for the BPF programs: they walk a stack
    /// before they know whose wake-up will be late.
    fn set_thresholds(&self) {
        let mut lowest_ns = i64::MAX;
        for (number, thread) in self.work.threads.iter().enumerate() {
            let late_ns = self.work.blamer.threshold_ns(number);
            lowest_ns = lowest_ns.min(late_ns);
            thread.control.late_over_ns.store(late_ns, Ordering::Relaxed);
        }
        self.work.tracer.set_late_ns(u64::try_from(lowest_ns).unwrap_or(0));
    }

    fn sums(&self) -> Blame {
        let mut blame = self.work.blamer.record();
        // What no ring had room for was late too.
        let dropped = self.work.threads.iter().map(|thread| thread.late.dropped());
        blame.passed_over = blame.passed_over.saturating_add(dropped.sum());
        blame.unmatched = unmatched(&self.work.threads);
        blame
    }

    fn write_peaks(&mut self) {
        // What the disk refuses comes again with the next.
        let written = self.work.files.append_peaks(&self.peaks);
        match written {
            Ok(()) => self.peaks.clear(),
            Err(_) => self.peaks.truncate(MOST_WAITING),
        }
        self.note(written, names::PEAKS);
    }

    fn write_blame(&mut self, blame: &Blame) {
        let written = self.work.files.replace_blame(blame);
        self.note(written, names::BLAME);
    }

    fn note(&mut self, written: io::Result<()>, file: &str) {
        if let (Err(error), None) = (written, &self.refused) {
            let (at_ns, error) = (Some(now_ns() - self.work.start_ns), OsError::from(&error));
            self.refused = Some(RefusedWrite { file: file.into(), at_ns, error });
        }
    }
}

/// The medians of a thread's stages; absent with too few samples.
fn usual(stages: &StageSeries) -> Option<UsualStages> {
    let median_ns = |series: &Series| quantile(series, 500);
    (stages.user.tally.totals().count >= ENOUGH).then(|| UsualStages {
        irq_ns: median_ns(&stages.irq),
        dispatch_ns: median_ns(&stages.dispatch),
        user_ns: median_ns(&stages.user),
    })
}

/// Takes the time since the last look off an allowance; both ns.
fn spend(allowance_ns: &mut i64, looked_ns: &mut i64) {
    let now = now_ns();
    *allowance_ns = (*allowance_ns - (now - *looked_ns)).max(-MOST_OWED_NS);
    *looked_ns = now;
}

/// The highest of the 90th, 99th and 99.9th percentile, up to `most` in a thousand, that has enough
/// samples beyond it; ns.
fn tail(series: &Series, most: u64) -> Option<i64> {
    let count = series.tally.totals().count;
    let fits = |per_mille: &u64| *per_mille <= most && count * (1000 - per_mille) / 1000 >= ENOUGH;
    [999, 990, 900].into_iter().find(fits).map(|per_mille| quantile(series, per_mille))
}

/// The value that so many in a thousand of a series' samples reach, ns; 0 without samples. Read
/// while the series is written, so it may be a sample off.
pub(super) fn quantile(series: &Series, per_mille: u64) -> i64 {
    let totals = series.tally.totals();
    let bound = |ns: i64| index_of(ns.clamp(0, HIGHEST_NS));
    let mut left = totals.count.saturating_sub(totals.early) * per_mille / 1000;
    for index in bound(totals.min_ns)..=bound(totals.max_ns) {
        let count = series.histogram.count(index);
        if count > left {
            return highest_of(index);
        }
        left -= count;
    }
    totals.max_ns.max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_lies_where_samples_are_beyond_it() {
        let series = Series::default();
        (1..=99).for_each(|ns| series.record(ns));
        assert_eq!(tail(&series, 999), None);
        series.record(100);
        assert_eq!((tail(&series, 990), tail(&series, 999)), (Some(91), Some(91)));
        (101..=1000).for_each(|ns| series.record(ns));
        assert_eq!((tail(&series, 990), tail(&series, 999)), (Some(991), Some(991)));
        (0..9_000).for_each(|_| series.record(1));
        assert_eq!((tail(&series, 990), tail(&series, 999)), (Some(901), Some(991)));
    }

    #[test]
    fn quantiles_are_those_of_the_samples_so_far() {
        let series = Series::default();
        assert_eq!(quantile(&series, 990), 0);
        (1..=1000).for_each(|ns| series.record(ns));
        series.record(-5);
        assert_eq!((quantile(&series, 990), quantile(&series, 999)), (991, 1000));
        series.record(2_000_000);
        assert!(quantile(&series, 999) <= 1001 && quantile(&series, 1000) >= 2_000_000);
    }
}

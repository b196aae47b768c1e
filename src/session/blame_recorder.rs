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
    thread::{self, Builder, JoinHandle},
    time::Duration,
};

use tardy_hot::clock::now_ns;

use super::{
    blame_time::{BlameTime, TICK_NS},
    cadence::Cadence,
    evidence::RefusedWrite,
    helper_use::HelperUse,
    late_samples,
    quantiles::tail,
    ticks::wait_until,
};
use crate::{
    kernel::Tracer,
    peaks::{BlameOptions, Blamer, Effort, MeasuredThread},
    probes::{TracedSamples, TracedThread},
    run::{
        BlameFiles, HelperTime, OsError, names,
        peaks::{Blame, Peak},
    },
    setup::{siblings::siblings_of, threads::become_helper},
    sys::{counters::interrupt_sources, cpus::Cpus, idle::exit_latencies_ns, root::Root},
};

/// Thresholds follow the series so often.
const FOLLOW_NS: i64 = 1_000_000_000;

/// And the first time so soon: the warm-up knows no medians of stages.
const FIRST_FOLLOW_NS: i64 = 100_000_000;

/// The sums are written once so much more of the run is over as they were of it, from one second
/// up to ten: who looks at a young run finds most of it, and a long one disturbs the disk little.
const WRITE_NS: (i64, i64) = (1_000_000_000, 10_000_000_000);

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
    /// What it took of a CPU in the measured time.
    pub helper: HelperTime,
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
        spins: matches!(thread.samples, TracedSamples::Gaps { .. }),
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
    let cpus: Cpus = threads.iter().map(|thread| thread.cpu).collect();
    let idle_exit_ns = exit_latencies_ns(&root, &cpus);
    let siblings = cpus.iter().map(|cpu| (cpu, siblings_of(&root, cpu).iter().collect())).collect();
    BlameOptions { keep, peak_over_ns, virtual_machine, interrupt_names, idle_exit_ns, siblings }
}

struct Thread {
    work: BlameInputs,
    /// Admitted, and not written yet.
    peaks: Vec<Peak>,
    next_follow_ns: i64,
    next_write_ns: i64,
    time: BlameTime,
    used: HelperUse,
    refused: Option<RefusedWrite>,
}

impl Thread {
    fn new(work: BlameInputs) -> Self {
        Self {
            peaks: Vec::new(),
            next_follow_ns: work.start_ns + FIRST_FOLLOW_NS,
            next_write_ns: next_write_ns(work.start_ns, work.start_ns),
            time: BlameTime::new(work.cadence, work.measured_priority),
            used: HelperUse::begin(),
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
        self.used = HelperUse::begin();
        let mut due_ns = self.work.cadence.after(self.work.start_ns + TICK_NS);
        while !wait_until(due_ns, finished) {
            self.tick();
            due_ns = self.next_due_ns();
        }
        let helper = self.used.of("tardy/recorder");
        // Nothing more comes; what there is stays in memory.
        self.work.tracer.detach();
        self.blame_the_rest();
        self.write_peaks();
        let blame = self.sums();
        self.write_blame(&blame);
        Blamed { blame, refused: self.refused, helper }
    }

    /// When it goes on. Peaks that wait do so no longer than it takes to look for later ones.
    fn next_due_ns(&mut self) -> i64 {
        let due_ns = match self.work.blamer.is_behind() {
            true => self.time.rested_ns(now_ns()),
            false => Some(self.work.cadence.after(now_ns() + TICK_NS)),
        };
        if due_ns.is_some() {
            self.used.rest();
        }
        due_ns.unwrap_or(0)
    }

    /// Lets ordinary tasks have their turn, where they must.
    fn step_aside(&mut self) {
        let now = now_ns();
        if let Some(rested_ns) = self.time.rested_ns(now) {
            self.used.rest();
            thread::sleep(Duration::from_nanos((rested_ns - now).max(0).unsigned_abs()));
            self.used.work();
        }
    }

    /// Thresholds from the warm-up.
    fn begin(&mut self) {
        for (number, thread) in judged(&self.work.threads) {
            let of = |most| tail(&thread.warmup, most).unwrap_or(LATE_NS);
            let late_ns = late_samples::least(&thread.samples).unwrap_or_else(|| of(990));
            self.work.blamer.begin(number, late_ns, of(999));
        }
        self.set_thresholds();
    }

    fn tick(&mut self) {
        self.blame();
        if !self.peaks.is_empty() {
            self.write_peaks();
        }
        self.time.end_piece();
        let now = now_ns();
        if now >= self.next_follow_ns {
            self.next_follow_ns = now + FOLLOW_NS;
            self.step_aside();
            self.follow();
        }
        if now >= self.next_write_ns {
            self.next_write_ns = next_write_ns(self.work.start_ns, now);
            self.step_aside();
            let blame = self.sums();
            self.write_blame(&blame);
        }
    }

    /// Has blamed what has come, as far as time allows: this thread goes before all loads, so what
    /// it takes is missing elsewhere. Peaks go before others. After a while it is time to look for
    /// later ones.
    fn blame(&mut self) {
        self.time.begin_piece();
        self.collect();
        self.peaks.extend(self.work.blamer.work(|| self.time.effort()));
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
            late_samples::collect(&mut self.work.blamer, number, &mut thread.samples);
        }
    }

    /// Lets the thresholds follow the 99th percentile of the series, and what is usual the medians
    /// of its stages.
    fn follow(&mut self) {
        for (number, thread) in judged(&self.work.threads) {
            late_samples::follow(&mut self.work.blamer, number, &thread.samples);
            let least_ns = late_samples::least(&thread.samples);
            if let Some(p99_ns) = least_ns.or_else(|| tail(&thread.total, 990)) {
                self.work.blamer.follow_p99(number, p99_ns);
            }
        }
        self.set_thresholds();
    }

    /// Sets it for the measured threads, and the lowest one for the BPF programs: they walk a stack
    /// before they know whose wake-up will be late.
    fn set_thresholds(&self) {
        let mut lowest_ns = i64::MAX;
        for (number, thread) in judged(&self.work.threads) {
            let late_ns = self.work.blamer.threshold_ns(number);
            lowest_ns = lowest_ns.min(late_ns);
            thread.control.late_over_ns.store(late_ns, Ordering::Relaxed);
        }
        self.work.tracer.set_late_ns(u64::try_from(lowest_ns).unwrap_or(0));
    }

    fn sums(&self) -> Blame {
        let mut blame = self.work.blamer.record();
        blame.until_ns = Some(now_ns());
        // What no ring had room for was late too.
        let dropped = self.work.threads.iter().map(|thread| thread.samples.dropped());
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

/// When the sums of a run that began at `start_ns` are written after `now_ns`.
fn next_write_ns(start_ns: i64, now_ns: i64) -> i64 {
    let (least_ns, most_ns) = WRITE_NS;
    now_ns + (now_ns - start_ns).clamp(least_ns, most_ns)
}

/// The threads that have samples, with their numbers.
fn judged(threads: &[TracedThread]) -> impl Iterator<Item = (usize, &TracedThread)> {
    threads.iter().enumerate().filter(|(_, thread)| late_samples::is_judged(&thread.samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_of_a_young_run_are_written_soon_and_those_of_an_old_one_seldom() {
        let mut written_s = vec![0];
        while written_s.last().is_some_and(|last| *last < 40) {
            let last_ns = written_s.last().copied().unwrap_or(0) * 1_000_000_000;
            written_s.push((next_write_ns(7, 7 + last_ns) - 7) / 1_000_000_000);
        }
        assert_eq!(written_s, [0, 1, 2, 4, 8, 16, 26, 36, 46]);
    }
}

//! The recorder: the helper thread that has late wake-ups blamed during the run, and writes
//! `peaks.jsonl` and `blame.json`.
//!
//! It runs as the drain does, below the measured threads and above every load. The kernel keeps its
//! events for some 50 ms, so it looks every 5 ms. Where it falls behind all the same, it takes the
//! latest first and passes over the least late. What it changes on the machine: the programs that
//! trace run until it ends.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
        mpsc::Receiver,
    },
    thread::{self, Builder, JoinHandle},
    time::Duration,
};

use tardy_hot::clock::now_ns;

use super::{
    blame_pace::BlamePace,
    blame_time::{BlameTime, TICK_NS},
    cadence::Cadence,
    ending::{Ending, TimeLeft},
    evidence::RefusedWrite,
    helper_use::HelperUse,
    late_samples::{self, measured},
    quantiles::tail,
    ticks::wait_until,
    traced_by::{TracedBy, each_once},
};
use crate::{
    peaks::Blamer,
    probes::TracedThread,
    run::{
        BlameFiles, HelperTime, LostEvents, OsError, names,
        peaks::{Blame, Peak},
    },
    setup::threads::become_helper,
    sys::{cpus::Cpus, sched},
};

/// Thresholds follow the series so often.
const FOLLOW_NS: i64 = 1_000_000_000;

/// And the first time so soon: the warm-up knows no medians of stages.
const FIRST_FOLLOW_NS: i64 = 100_000_000;

/// The number of peaks that wait for a disk that refuses them; later ones are in the sums alone.
const MOST_WAITING: usize = 1000;

/// What is late until something is known, ns.
const LATE_NS: i64 = 50_000;

/// What the recorder works with.
pub(super) struct BlameInputs {
    /// What traces, switched on.
    pub tracer: TracedBy,
    /// What judges.
    pub blamer: Blamer,
    /// The measured threads, in the order in which the blamer knows them.
    pub threads: Vec<TracedThread>,
    /// More of them, as they are found.
    pub later: Option<Receiver<TracedThread>>,
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
    /// The time at the end of the run of which all activity of the CPUs is kept, ns.
    pub record_ns: Option<i64>,
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
    /// What the kernel's own tracer lost.
    pub lost_on: Vec<LostEvents>,
}

/// The running thread.
#[derive(Debug)]
pub(super) struct BlameRecorder {
    finished: Arc<AtomicBool>,
    ended_ns: Arc<AtomicI64>,
    left: TimeLeft,
    handle: JoinHandle<Blamed>,
}

impl BlameRecorder {
    /// Starts it.
    ///
    /// # Errors
    /// No thread could be started.
    pub(super) fn start(work: BlameInputs) -> io::Result<Self> {
        let finished = Arc::new(AtomicBool::new(false));
        let (ends, ended_ns) = (Arc::clone(&finished), Arc::new(AtomicI64::new(i64::MAX)));
        let known_end_ns = Arc::clone(&ended_ns);
        let left = TimeLeft::default();
        let until = left.clone();
        let handle = Builder::new()
            .name("tardy/recorder".into())
            .spawn(move || Thread::new(work, until).run(&ends, &known_end_ns))?;
        Ok(Self { finished, ended_ns, left, handle })
    }

    /// Waits until what is left is blamed, as far as there is time for it; the measured threads
    /// must have ended, at `end_ns`.
    ///
    /// # Errors
    /// The thread died.
    pub(super) fn finish(self, end_ns: i64, ending: &mut Ending<'_>) -> Result<Blamed, String> {
        self.left.begin(ending);
        self.ended_ns.store(end_ns, Ordering::Relaxed);
        self.finished.store(true, Ordering::Release);
        self.handle.thread().unpark();
        self.left.wait(&self.handle, ending);
        self.handle.join().map_err(|_| "the thread that blames died".to_owned())
    }
}

/// Wake-ups so far that matched no record of the BPF side.
pub(super) fn unmatched(threads: &[TracedThread]) -> u64 {
    threads.iter().map(|thread| thread.control.unmatched.load(Ordering::Relaxed)).sum()
}

struct Thread {
    work: BlameInputs,
    /// Admitted, and not written yet.
    peaks: Vec<Peak>,
    next_follow_ns: i64,
    pace: BlamePace,
    time: BlameTime,
    used: HelperUse,
    refused: Option<RefusedWrite>,
    left: TimeLeft,
}

impl Thread {
    fn new(work: BlameInputs, left: TimeLeft) -> Self {
        Self {
            peaks: Vec::new(),
            next_follow_ns: work.start_ns + FIRST_FOLLOW_NS,
            pace: BlamePace::new(work.start_ns),
            time: BlameTime::new(work.cadence, work.measured_priority),
            used: HelperUse::begin(),
            refused: None,
            left,
            work,
        }
    }

    fn run(mut self, finished: &AtomicBool, ended_ns: &AtomicI64) -> Blamed {
        // The drain reports where this is refused.
        let _ = become_helper(self.work.measured_priority, &self.work.housekeeping);
        // The first recorded wake-up must find its threshold.
        if !self.wait_for_start(finished) {
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
        self.work.tracer.stop();
        let detached_ns = now_ns();
        if self.work.measured_priority <= 1 {
            // Nothing hurries any more, and the monitored threads continue.
            sched::level_nice();
        }
        self.blame_the_rest();
        self.work.tracer.detach();
        self.write_peaks();
        let blame = self.sums();
        self.write_blame(&blame);
        if let Some(last_ns) = self.work.record_ns {
            // On a busy machine it takes a while until this thread hears of the end.
            let end_ns = ended_ns.load(Ordering::Relaxed).min(detached_ns);
            let recording = self.work.blamer.recording(end_ns - last_ns..detached_ns);
            let written = recording.write(self.work.files.directory());
            self.note(written, names::RECORDING);
        }
        let lost_on = self.work.tracer.lost_on();
        Blamed { blame, refused: self.refused, helper, lost_on }
    }

    /// Until shortly before the first recorded wake-up; true where it was told to finish.
    fn wait_for_start(&mut self, finished: &AtomicBool) -> bool {
        let begin_ns = self.work.start_ns - TICK_NS / 5;
        while let TracedBy::Tracefs(matcher) = &mut self.work.tracer
            && now_ns() < begin_ns
        {
            // What the kernel's buffers hold of the warm-up must not be overwritten unread.
            matcher.look(&mut self.work.threads, false, |_, _| {});
            if wait_until(begin_ns.min(now_ns() + TICK_NS), finished) {
                return true;
            }
        }
        wait_until(begin_ns, finished)
    }

    /// When it continues. Peaks that wait do so no longer than it takes to look for later ones.
    fn next_due_ns(&mut self) -> i64 {
        let due_ns = match self.time.may_work() && self.work.blamer.is_behind() {
            true => self.time.rested_ns(now_ns()),
            false => Some(self.work.cadence.after(now_ns() + TICK_NS)),
        };
        match due_ns {
            Some(_) => self.used.rest(),
            None => self.used.go_on(),
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

    /// Follows threads that were found since the last time, too.
    fn admit(&mut self) {
        let Some(later) = &self.work.later else { return };
        let first = self.work.threads.len();
        self.work.threads.extend(later.try_iter());
        if self.work.threads.len() == first {
            return;
        }
        for (number, thread) in self.work.threads.iter().enumerate().skip(first) {
            self.work.blamer.follow_more(measured(thread));
            let late_ns = late_samples::least(&thread.samples).unwrap_or(LATE_NS);
            self.work.blamer.begin(number, late_ns, LATE_NS);
        }
        let followed = each_once(&self.work.threads);
        // Of those beyond, late wake-ups lack their own events.
        if let TracedBy::Bpf(tracer) = &mut self.work.tracer {
            let _ = tracer.follow(&followed);
        }
        self.set_thresholds();
    }

    fn tick(&mut self) {
        self.admit();
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
        if self.pace.is_due(now, || self.work.files.is_watched()) {
            self.step_aside();
            let began_ns = now_ns();
            let blame = self.sums();
            self.write_blame(&blame);
            self.pace.note(now, (began_ns, now_ns()));
        }
    }

    /// Has blamed what has come, as far as time allows: this thread goes before all loads, so what
    /// it takes is missing elsewhere. Peaks go before others. After a while it is time to look for
    /// later ones.
    fn blame(&mut self) {
        self.time.begin_piece();
        self.collect(false);
        // Else time would go into putting in order what cannot be blamed yet.
        if self.time.may_work() || self.work.blamer.is_full() {
            self.peaks.extend(self.work.blamer.work(|| self.time.effort()));
        }
    }

    /// Has blamed what waits, as far as there is time for it.
    fn blame_the_rest(&mut self) {
        self.collect(true);
        let since_ns = now_ns();
        let effort = || self.left.effort(now_ns() - since_ns);
        self.peaks.extend(self.work.blamer.work(effort));
        self.peaks.extend(self.work.blamer.give_up());
    }

    /// Takes what the measured threads have handed over. Where all is over nothing more comes.
    fn collect(&mut self, is_over: bool) {
        if let TracedBy::Tracefs(matcher) = &mut self.work.tracer {
            let blamer = &mut self.work.blamer;
            let late = |number, late| blamer.add(number, late);
            matcher.look(&mut self.work.threads, is_over, late);
        }
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
        if let TracedBy::Bpf(tracer) = &self.work.tracer {
            tracer.set_late_ns(u64::try_from(lowest_ns).unwrap_or(0));
        }
    }

    fn sums(&self) -> Blame {
        let mut blame = self.work.blamer.record();
        blame.until_ns = Some(now_ns());
        blame.peaks_left_out = self.work.files.left_out();
        // What no ring had room for was late too.
        for thread in &self.work.threads {
            let dropped = thread.samples.dropped();
            let passed_over = match measured(thread).works {
                true => &mut blame.responses_passed_over,
                false => &mut blame.passed_over,
            };
            *passed_over = passed_over.saturating_add(dropped);
        }
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

/// The threads that have samples, with their numbers.
fn judged(threads: &[TracedThread]) -> impl Iterator<Item = (usize, &TracedThread)> {
    threads.iter().enumerate().filter(|(_, thread)| late_samples::is_judged(&thread.samples))
}

//! The drain: the helper thread that carries samples and counts from memory into the run directory.
//!
//! It runs below the measured threads and above every load. Rings hold 5 s; when it is later than
//! that, single samples are lost and counted, and histograms are whole all the same.

mod intervals;
mod meanwhile;
mod simulated;
mod tracks;

pub(super) use meanwhile::Begun;

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    thread::{Builder, JoinHandle},
};

use tardy_hot::{
    clock::now_ns,
    ring::{Reader, Sample},
    stop::Stop,
};

use super::{
    cadence::{BEFORE_NS, Cadence},
    conditions_monitor::ConditionsMonitor,
    evidence::{Recording, RefusedWrite},
    figure_collector::FigureCollector,
    helper_use::HelperUse,
    interval_reader::IntervalReader,
    machine::MachineCounters,
    ticks::{in_pause, interval_ns, on_grid, pauses, step_aside, wait_until},
};
use crate::{
    loads::RunningLoad,
    probes::{found_series::FoundSeriesList, simulated_time::SimulatedTime},
    run::{OsError, RunWriter, names, tracks::to_csv},
    setup::threads::become_helper,
    sys::{cpus::Cpus, root::Root},
};

const SECOND_NS: i64 = 1_000_000_000;

/// An open file of samples is closed so often.
const SAMPLES_FILE_NS: i64 = 10 * SECOND_NS;

/// What the drain works with.
#[derive(Debug)]
pub(super) struct DrainInputs {
    /// Where everything goes.
    pub maker: RunWriter,
    /// The series, and the rings of those whose samples are kept.
    pub series: Vec<(IntervalReader, Option<Reader<Sample>>)>,
    /// Series that are found meanwhile.
    pub found: FoundSeriesList,
    /// The figures, and where their repeats come from.
    pub figures: FigureCollector,
    /// The loads, for their progress.
    pub loads: Vec<Arc<RunningLoad>>,
    /// What is known of the run when it begins.
    pub begun: Begun,
    /// The zero of all times: `CLOCK_MONOTONIC` ns.
    pub start_ns: i64,
    /// When it is to wake up.
    pub cadence: Cadence,
    /// Asks the measuring loop for a pause, if it has some.
    pub pausing: Option<Arc<Stop>>,
    /// Length of an interval of the log, ns.
    pub interval_ns: i64,
    /// Priority of the measured threads, 0 where they are ordinary tasks.
    pub measured_priority: u32,
    /// CPUs that are not measured.
    pub housekeeping: Cpus,
    /// Watches over what must not change.
    pub monitor: ConditionsMonitor,
    /// The time of samples that are made up, where it is another.
    pub simulated: Option<SimulatedTime>,
}

/// What the drain leaves.
#[derive(Debug)]
pub(super) struct Drained {
    /// The directory, for the last record.
    pub maker: RunWriter,
    /// The series, for their totals.
    pub series: Vec<IntervalReader>,
    /// The figures, for their values.
    pub figures: FigureCollector,
    /// How recording went.
    pub recording: Recording,
    /// What changed meanwhile.
    pub monitor: ConditionsMonitor,
}

impl Drained {
    /// Appends what is known at the end only, and waits until the disk holds everything but the
    /// record. What it refused, the first.
    pub(super) fn settle(&mut self, interrupts: &[u8]) -> Option<RefusedWrite> {
        let at_end = |file: String, error: io::Error| RefusedWrite {
            file,
            at_ns: None,
            error: OsError::from(&error),
        };
        let appended = self.maker.append(names::INTERRUPTS, interrupts);
        let synced = self.maker.sync();
        let appended = appended.err().map(|error| at_end(names::INTERRUPTS.into(), error));
        appended.or_else(|| synced.err().map(|refused| at_end(refused.file, refused.error)))
    }
}

/// The running thread.
#[derive(Debug)]
pub(super) struct Drain {
    finished: Arc<AtomicBool>,
    ended_ns: Arc<AtomicI64>,
    handle: JoinHandle<Drained>,
}

impl Drain {
    /// Starts it.
    ///
    /// # Errors
    /// No thread could be started.
    pub(super) fn start(work: DrainInputs) -> io::Result<Self> {
        let finished = Arc::new(AtomicBool::new(false));
        let (ends, ended_ns) = (Arc::clone(&finished), Arc::new(AtomicI64::new(i64::MAX)));
        let known_end_ns = Arc::clone(&ended_ns);
        let handle = Builder::new()
            .name("tardy/drain".into())
            .spawn(move || Thread::new(work, known_end_ns).run(&ends))?;
        Ok(Self { finished, ended_ns, handle })
    }

    /// Tells it that the loops have ended by `end_ns`: what the machine and the loads do from now
    /// on, while late samples are still blamed, is not the run's.
    pub(super) fn measured_until(&self, end_ns: i64) {
        self.ended_ns.store(end_ns, Ordering::Relaxed);
    }

    /// Waits until everything that has been measured is written; the loops must have ended.
    ///
    /// # Errors
    /// The thread died.
    pub(super) fn finish(self) -> Result<Drained, String> {
        self.finished.store(true, Ordering::Release);
        self.handle.thread().unpark();
        self.handle.join().map_err(|_| "the thread that records died".to_owned())
    }
}

struct Thread {
    work: DrainInputs,
    /// When the loops ended; far off until that is known.
    ended_ns: Arc<AtomicI64>,
    /// Whether the machine and the loads were looked at after that.
    has_looked_last: bool,
    machine: MachineCounters,
    /// Start of the interval in progress: when the one before was really read.
    interval_start_ns: i64,
    /// On the grid of intervals, so that a tick a little late does not shift those after it.
    next_interval_ns: i64,
    next_live_ns: i64,
    next_look_ns: i64,
    next_watch_ns: i64,
    next_file_ns: i64,
    load_before: Vec<(i64, u64)>,
    batch: Vec<Sample>,
    headers: Vec<&'static str>,
    late_ns: i64,
    used: HelperUse,
    refused: Option<RefusedWrite>,
    /// The reason why this thread is not a real-time one, if it was to be.
    not_real_time: Option<OsError>,
}

impl Thread {
    fn new(work: DrainInputs, ended_ns: Arc<AtomicI64>) -> Self {
        let start_ns = work.start_ns;
        Self {
            ended_ns,
            has_looked_last: false,
            machine: MachineCounters::new(Root::default(), now_ns()),
            interval_start_ns: start_ns,
            next_interval_ns: start_ns + work.interval_ns,
            next_live_ns: start_ns + SECOND_NS,
            next_look_ns: start_ns + SECOND_NS,
            next_watch_ns: start_ns + SECOND_NS,
            next_file_ns: start_ns + SAMPLES_FILE_NS,
            load_before: vec![(0, 0); work.loads.len()],
            batch: Vec::new(),
            headers: Vec::new(),
            late_ns: 0,
            used: HelperUse::begin(),
            refused: None,
            not_real_time: None,
            work,
        }
    }

    fn run(mut self, finished: &AtomicBool) -> Drained {
        let refused = become_helper(self.work.measured_priority, &self.work.housekeeping);
        self.not_real_time = refused.err().as_ref().map(OsError::from);
        let (start_ns, cadence) = (self.work.start_ns, self.work.cadence);
        wait_until(cadence.after(start_ns - BEFORE_NS), finished);
        let pausing = self.work.pausing.clone();
        in_pause(pausing.as_deref(), |_| {
            self.work.monitor.begin_counts();
            // What the machine and the loads did in the warm-up is not the run's.
            wait_until(cadence.after(cadence.first_counts_ns(start_ns)), finished);
            self.machine = MachineCounters::new(Root::default(), now_ns());
        });
        wait_until(cadence.after(start_ns), finished);
        self.load_rows();
        self.used = HelperUse::begin();
        match self.work.simulated.take() {
            Some(time) => self.follow(&time, finished),
            None => self.tick_until(finished),
        }
        let (series, rings): (Vec<_>, Vec<_>) = self.work.series.drain(..).unzip();
        let recording = Recording {
            length_ns: 0,
            lost: rings.iter().flatten().map(Reader::dropped).sum(),
            late_ns: self.late_ns,
            refused: self.refused,
            helpers: vec![self.used.of("tardy/drain")],
            blamed_on_helpers: None,
            not_real_time: self.not_real_time,
        };
        let DrainInputs { maker, figures, monitor, .. } = self.work;
        Drained { maker, series, figures, recording, monitor }
    }

    /// Works at each tick until everything is measured.
    fn tick_until(&mut self, finished: &AtomicBool) {
        let (start_ns, cadence) = (self.work.start_ns, self.work.cadence);
        let tick_ns = self.work.interval_ns.min(SECOND_NS);
        let mut due_ns = start_ns + tick_ns;
        loop {
            let woken_ns = cadence.after(due_ns);
            let done = self.rest_until(woken_ns, finished);
            if !done {
                self.late_ns = self.late_ns.max(now_ns() - woken_ns);
            }
            self.tick_in_pause(finished);
            if done {
                break;
            }
            // What is due while this tick works, or stands still, is late, and not made up for.
            due_ns += tick_ns;
            let now = now_ns();
            self.late_ns = self.late_ns.max(now - due_ns);
            while due_ns <= now {
                due_ns += tick_ns;
            }
        }
        self.end(now_ns());
    }

    fn tick_in_pause(&mut self, finished: &AtomicBool) {
        let (cadence, pausing) = (self.work.cadence, self.work.pausing.clone());
        in_pause(pausing.as_deref(), |is_paused| {
            if is_paused {
                self.work.cadence = cadence.without_breaks();
            }
            self.tick(finished);
            self.work.cadence = cadence;
            if is_paused {
                // It took the CPU from nothing that is measured.
                self.used.work();
            }
        });
    }

    /// As [`wait_until`], in the steps of its cadence.
    fn rest_until(&mut self, due_ns: i64, finished: &AtomicBool) -> bool {
        self.used.rest();
        loop {
            let next_ns = self.work.cadence.towards(due_ns, now_ns());
            let done = wait_until(next_ns, finished);
            if done || next_ns >= due_ns {
                self.used.work();
                return done;
            }
        }
    }

    /// Waits until it may begin another piece of work.
    fn step_aside(&mut self, finished: &AtomicBool) {
        step_aside(self.work.cadence, &mut self.used, finished);
    }

    fn tick(&mut self, finished: &AtomicBool) {
        self.move_samples();
        self.move_figures();
        // Samples may take a while; an interval is as long as its counts say.
        let now = now_ns();
        if now >= self.next_interval_ns {
            self.next_interval_ns = on_grid(self.next_interval_ns, self.interval_ns(now), now);
            self.write_interval(now, finished);
            self.step_aside(finished);
        } else if now >= self.next_live_ns {
            let step_ns = self.least_ns().max(SECOND_NS);
            self.next_live_ns = on_grid(self.next_live_ns, step_ns, now);
            let found = self.work.found.all();
            let replaced = self.put_intervals(now, finished, &found, RunWriter::replace_live);
            self.note(replaced, "live.hlog");
            self.step_aside(finished);
        }
        if now >= self.next_look_ns.min(self.measured_until()) && !self.has_looked_last {
            // A day has no more rows than its log has intervals.
            let step_ns = self.interval_ns(now).max(SECOND_NS);
            self.next_look_ns = on_grid(self.next_look_ns, step_ns, now);
            self.look(finished);
        }
        if now >= self.next_watch_ns {
            self.next_watch_ns = on_grid(self.next_watch_ns, SECOND_NS, now);
            self.work.monitor.poll(
                now_ns() - self.work.start_ns,
                &mut pauses(self.work.cadence, &mut self.used, finished),
            );
            self.write_state(finished);
        }
        if now >= self.next_file_ns {
            self.next_file_ns = on_grid(self.next_file_ns, SAMPLES_FILE_NS, now);
            self.step_aside(finished);
            let closed = self.work.maker.close_samples();
            self.note(closed, "samples");
        }
    }

    fn interval_ns(&self, now: i64) -> i64 {
        let planned_ns = interval_ns(self.work.interval_ns, now - self.work.start_ns);
        planned_ns.max(self.least_ns())
    }

    /// The last of everything, now that nothing more comes and the last interval ends.
    fn end(&mut self, end_ns: i64) {
        self.work.maker.release_reserve();
        self.move_samples();
        self.move_figures();
        // Nothing is measured any more that could wait.
        self.write_interval(end_ns, &AtomicBool::new(true));
        if !self.has_looked_last {
            self.look(&AtomicBool::new(true));
        }
        self.work.monitor.end();
        let closed = self.work.maker.close_samples();
        self.note(closed, "samples");
    }

    fn move_samples(&mut self) {
        for number in 0..self.work.series.len() {
            self.batch.clear();
            if let Some((_, Some(ring))) = self.work.series.get_mut(number) {
                ring.drain(|sample| self.batch.push(sample));
            }
            let appended = self.work.maker.append_samples(number, &self.batch);
            self.note(appended, "samples");
        }
    }

    fn move_figures(&mut self) {
        let rows = self.work.figures.take(self.work.start_ns);
        if !rows.is_empty() {
            let written = self.append(names::FIGURES, |header| to_csv(&rows, header));
            self.note(written, names::FIGURES);
        }
    }

    fn append(&mut self, name: &'static str, csv: impl FnOnce(bool) -> Vec<u8>) -> io::Result<()> {
        let first = !self.headers.contains(&name);
        self.work.maker.append(name, &csv(first))?;
        if first {
            self.headers.push(name);
        }
        Ok(())
    }

    fn note(&mut self, written: io::Result<()>, file: &str) {
        if let Err(error) = written
            && self.refused.is_none()
        {
            let (at_ns, error) = (Some(now_ns() - self.work.start_ns), OsError::from(&error));
            self.refused = Some(RefusedWrite { file: file.into(), at_ns, error });
        }
    }
}

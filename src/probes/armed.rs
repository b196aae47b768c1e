//! A probe whose sources wait, record and report: measuring threads, or sources that take
//! samples from elsewhere.

use std::{
    fmt, io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
};

use tardy_hot::{stop::Stop, wakeup::Ended};

use super::{
    ArmError, FigureValue, FinishedAttach, FinishedProbe, LateCycle, ProbeSupervisor, Recorded,
    STACK_BYTES, Schedule, ThreadReport, TracedThread,
    found_series::FoundSeriesList,
    measured_thread::{self, LoopEnd},
    simulated_time::SimulatedTime,
};
use crate::{
    run::Deviation,
    setup::threads::{Found, ThreadConfig},
    sys::{notifier::Notifier, signals},
};

/// What records series: a measuring thread, or something that takes samples from the kernel or from
/// a file and needs no thread.
pub trait SeriesSource: fmt::Debug {
    /// The schedule is known: it begins.
    fn start(&mut self, schedule: Schedule);

    /// Whether it is to be polled.
    fn is_polled(&self) -> bool {
        false
    }

    /// Takes what there is since the last call, where no thread does; about every 50 ms.
    fn poll(&mut self) {}

    /// Whether nothing more will come of it.
    fn is_done(&mut self) -> bool;

    /// Ends it before its time. To be repeated until [`SeriesSource::is_done`].
    fn stop(&mut self);

    /// How it went; waits until nothing more will come. Also of one that was never started.
    fn finish(&mut self) -> Vec<ThreadReport>;

    /// Figures that could not be measured, by their place among `Probe::figures`, and why; after
    /// [`SeriesSource::finish`].
    fn refusals(&mut self) -> Vec<(usize, String)> {
        Vec::new()
    }

    /// What is known of threads of others; after [`SeriesSource::finish`].
    fn attached(&mut self) -> Option<FinishedAttach> {
        None
    }

    /// Closes what it has open; after [`SeriesSource::finish`], when whatever is at the other end
    /// has ended too.
    fn close(self: Box<Self>) {}
}

/// A probe whose sources wait for the start.
#[derive(Debug)]
pub struct Armed {
    /// Its series, in the order of `Probe::heads`.
    pub recorded: Vec<Recorded>,
    /// What its threads run as, per series; a source without a thread has nothing here.
    pub found: Vec<(String, Found)>,
    /// Those whose stages are recorded: all or none, in the order of [`Armed::tids`].
    pub traced: Vec<TracedThread>,
    /// More of them, as they are found while it measures.
    pub traced_later: Option<Receiver<TracedThread>>,
    /// Cycles of attached threads that missed their deadline, as they end.
    pub late_cycles: Option<Receiver<LateCycle>>,
    /// Where the repeats of its figures come out, where it has some. A measuring thread sends none
    /// from within a loop: to send may allocate.
    pub figures: Option<Receiver<FigureValue>>,
    /// What else must be looked after.
    pub supervisor: Option<Box<dyn ProbeSupervisor>>,
    /// Late samples come out by [`Armed::poll`], and must do so while the kernel still has the
    /// events around them: it is to be called every few milliseconds.
    pub hurries: bool,
    /// Its loop pauses for helpers that ask for it by the stop flag.
    pub pauses: bool,
    /// When its threads are due, where they have a schedule.
    pub grid: Option<ExpiryGrid>,
    /// Series that are found while it measures.
    pub found_series: Option<FoundSeriesList>,
    /// The time that its samples are made up for, where nothing is waited for.
    pub simulated: Option<SimulatedTime>,
    ends: Arc<Ends>,
    sources: Vec<Box<dyn SeriesSource>>,
    tids: Vec<i32>,
    stop: Arc<Stop>,
}

/// When measuring threads are due: at the start and these phases, and then every interval; ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiryGrid {
    /// From one expiry of a thread to its next.
    pub interval_ns: i64,
    /// From the start to the first expiry, one or more.
    pub phases_ns: Vec<i64>,
}

/// Waits for measuring threads to end.
#[derive(Debug, Default)]
struct Ends {
    bell: OnceLock<Notifier>,
    running: AtomicUsize,
}

impl Ends {
    /// A thread has reported. Only the last one is waited for, or, where all are to stop, any.
    fn one_more(&self, stop: &Stop) {
        let was_running = self.running.fetch_sub(1, Ordering::AcqRel);
        if was_running == 1 || stop.is_set() {
            self.bell.get().into_iter().for_each(Notifier::ring);
        }
    }
}

/// A measuring thread.
#[derive(Debug)]
struct Thread {
    series: String,
    tid: i32,
    has_begun: bool,
    /// Until it must close what it opened.
    go: Option<Sender<Schedule>>,
    /// What it said at the end of its loop, once it has.
    report: Option<ThreadReport>,
    reported: Receiver<ThreadReport>,
    handle: JoinHandle<()>,
}

impl SeriesSource for Thread {
    fn start(&mut self, schedule: Schedule) {
        self.has_begun = true;
        if let Some(go) = &self.go {
            // A thread that is gone shows when it is joined.
            let _ = go.send(schedule);
        }
    }

    /// Whether its loop is over; it may still hold what it opened.
    fn is_done(&mut self) -> bool {
        if self.report.is_none() {
            self.report = self.reported.try_recv().ok();
        }
        self.report.is_some() || self.handle.is_finished()
    }

    /// A nudge between two turns has no effect.
    fn stop(&mut self) {
        if !self.is_done() {
            signals::nudge(self.tid);
        }
    }

    fn finish(&mut self) -> Vec<ThreadReport> {
        if !self.has_begun {
            // It ends when its gate closes.
            self.go = None;
        }
        let report = self.report.take().or_else(|| self.reported.recv().ok());
        vec![report.unwrap_or_else(|| match self.has_begun {
            true => ThreadReport {
                broken: Some(Deviation::Died),
                ..ThreadReport::of(&self.series, Ended::Failed(0))
            },
            false => ThreadReport::of(&self.series, Ended::Stopped),
        })]
    }

    fn close(self: Box<Self>) {
        drop(self.go);
        // One that died has said so by its silence.
        let _ = self.handle.join();
    }
}

impl Armed {
    pub(super) fn new(stop: &Arc<Stop>) -> Self {
        Self {
            recorded: Vec::new(),
            found: Vec::new(),
            traced: Vec::new(),
            traced_later: None,
            late_cycles: None,
            figures: None,
            supervisor: None,
            hurries: false,
            pauses: false,
            grid: None,
            found_series: None,
            simulated: None,
            ends: Arc::default(),
            sources: Vec::new(),
            tids: Vec::new(),
            stop: Arc::clone(stop),
        }
    }

    /// Starts a measuring thread on these terms; without any it runs as it is born. `loops` are
    /// run when the schedule is known.
    pub(super) fn spawn(
        &mut self,
        recorded: Recorded,
        terms: Option<ThreadConfig>,
        loops: impl FnOnce(Schedule) -> LoopEnd + Send + 'static,
    ) -> Result<(), ArmError> {
        self.spawn_with(recorded, terms, || Ok(()), move |schedule, ()| loops(schedule))
    }

    /// The same for a thread that opens something which is its own alone, on its terms. It is
    /// closed only when everything has ended, after the supervisor: the other end must not miss it
    /// before.
    pub(super) fn spawn_with<O: 'static>(
        &mut self,
        recorded: Recorded,
        terms: Option<ThreadConfig>,
        open: impl FnOnce() -> Result<O, ArmError> + Send + 'static,
        loops: impl FnOnce(Schedule, &mut O) -> LoopEnd + Send + 'static,
    ) -> Result<(), ArmError> {
        let series = recorded.head.name.clone();
        let name = series.clone();
        let (go, start): (Sender<Schedule>, Receiver<Schedule>) = channel();
        let ((send_found, found), (report, reported)) = (channel(), channel());
        let (ends, stop) = (Arc::clone(&self.ends), Arc::clone(&self.stop));
        self.ends.running.fetch_add(1, Ordering::AcqRel);
        let body = move || {
            let refused = |source| ArmError::ThreadConfig { series: name.clone(), source };
            let set_up = || {
                let found = measured_thread::set_up(terms.as_ref()).map_err(refused)?;
                Ok((found, open()?))
            };
            let (found, mut own) = match set_up() {
                Ok(ready) => ready,
                Err(error) => return drop(send_found.send(Err(error))),
            };
            let _ = send_found.send(Ok(found.clone()));
            if let Ok(schedule) = start.recv() {
                let loops = || loops(schedule, &mut own);
                let _ = report.send(measured_thread::measure(&name, terms.as_ref(), &found, loops));
                ends.one_more(&stop);
                // Until the channel closes.
                let _ = start.recv();
            }
        };
        let handle = std::thread::Builder::new()
            .name(format!("tardy/{series}"))
            .stack_size(STACK_BYTES)
            .spawn(body)
            .map_err(|source| ArmError::Thread { series: series.clone(), source })?;
        let ended = || io::Error::other("the thread ended at once");
        let found = found.recv().unwrap_or_else(|_| {
            Err(ArmError::ThreadConfig { series: series.clone(), source: ended() })
        })?;
        let tid = found.tid;
        self.tids.push(tid);
        let thread = Thread {
            series: series.clone(),
            tid,
            has_begun: false,
            go: Some(go),
            report: None,
            reported,
            handle,
        };
        self.found.push((series, found));
        self.add(vec![recorded], Box::new(thread));
        Ok(())
    }

    /// Adds a source that records these series.
    pub(super) fn add(&mut self, recorded: Vec<Recorded>, source: Box<dyn SeriesSource>) {
        self.recorded.extend(recorded);
        self.sources.push(source);
    }

    /// The kernel's numbers of its threads.
    #[must_use]
    pub fn tids(&self) -> Vec<i32> {
        self.tids.clone()
    }

    /// Also counts this thread among [`Armed::tids`]: it helps a measuring one and ends with it.
    pub(super) fn also_watch(&mut self, tid: i32) {
        self.tids.push(tid);
    }

    /// Rings `bell` when its last thread has ended its loop; or any, once the stop flag is set.
    pub fn rings(&self, bell: &Notifier) {
        // There is one waiter.
        let _ = self.ends.bell.set(bell.clone());
    }

    /// Whether [`Armed::poll`] does anything.
    #[must_use]
    pub fn is_polled(&self) -> bool {
        self.supervisor.is_some() || self.sources.iter().any(|source| source.is_polled())
    }

    /// Lets the sources begin, and remote endpoints before them.
    pub fn start(&mut self, schedule: Schedule) {
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.start(schedule);
        }
        self.sources.iter_mut().for_each(|source| source.start(schedule));
    }

    /// Takes what sources without a thread have, and looks after what must be looked after. To be
    /// repeated about every 50 ms, or sooner where it hurries.
    pub fn poll(&mut self) {
        self.sources.iter_mut().for_each(|source| source.poll());
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.poll(&self.stop);
        }
    }

    /// Whether nothing more will come of any source.
    #[must_use]
    pub fn is_done(&mut self) -> bool {
        self.sources.iter_mut().all(|source| source.is_done())
    }

    /// Ends the sources, also threads that sleep. To be repeated until [`Armed::is_done`].
    pub fn stop(&mut self) {
        self.stop.set();
        self.sources.iter_mut().for_each(|source| source.stop());
    }

    /// Waits for the sources, then ends what was looked after.
    #[must_use]
    pub fn finish(self) -> FinishedProbe {
        let Self { mut sources, supervisor, .. } = self;
        let mut reports: Vec<ThreadReport> =
            sources.iter_mut().flat_map(|source| source.finish()).collect();
        let measured = reports.len();
        let figure_refusals = sources.iter_mut().flat_map(|source| source.refusals()).collect();
        let attached = sources.iter_mut().find_map(|source| source.attached());
        if supervisor.as_ref().is_some_and(|supervisor| supervisor.closes_first()) {
            sources.drain(..).for_each(SeriesSource::close);
        }
        let kept = supervisor.map(|supervisor| supervisor.finish(&mut reports)).unwrap_or_default();
        sources.into_iter().for_each(SeriesSource::close);
        FinishedProbe { reports, measured, figure_refusals, kept, attached }
    }
}

#[cfg(test)]
mod tests {
    use tardy_hot::wakeup::Series;

    use super::*;
    use crate::run::SeriesHead;

    /// Takes one sample a poll, as from a file, until it has three.
    #[derive(Debug)]
    struct Replayed {
        series: Arc<Series>,
        schedule: Option<Schedule>,
        stop: Arc<Stop>,
    }

    impl Replayed {
        fn count(&self) -> u64 {
            self.series.tally.totals().count
        }
    }

    impl SeriesSource for Replayed {
        fn start(&mut self, schedule: Schedule) {
            self.schedule = Some(schedule);
        }

        fn is_polled(&self) -> bool {
            true
        }

        fn poll(&mut self) {
            if !self.is_done() {
                self.series.record(1_000);
            }
        }

        fn is_done(&mut self) -> bool {
            let most = self.schedule.map_or(0, |schedule| schedule.samples);
            self.count() >= most || self.stop.is_set()
        }

        fn stop(&mut self) {}

        fn finish(&mut self) -> Vec<ThreadReport> {
            let ended = if self.stop.is_set() { Ended::Stopped } else { Ended::Done };
            vec![ThreadReport::of("replayed", ended)]
        }
    }

    const SCHEDULE: Schedule = Schedule {
        warmup_ns: 0,
        start_ns: 0,
        end_ns: i64::MAX,
        samples: 3,
        stop_over_ns: i64::MAX,
    };

    fn recorded(name: &str) -> Recorded {
        let head = SeriesHead { name: name.into(), cpu: None, period_ns: None };
        Recorded { head, series: Arc::default(), samples: None }
    }

    fn armed(stop: &Arc<Stop>) -> Armed {
        let mut armed = Armed::new(stop);
        let recorded = recorded("replayed");
        let series = Arc::clone(&recorded.series);
        let source = Replayed { series, schedule: None, stop: Arc::clone(stop) };
        armed.add(vec![recorded], Box::new(source));
        armed
    }

    #[test]
    fn a_source_without_a_thread_records_while_it_is_polled() {
        let stop = Arc::new(Stop::new());
        let mut armed = armed(&stop);
        assert!(armed.is_polled());
        armed.start(SCHEDULE);
        let mut polls = 0;
        while !armed.is_done() {
            armed.poll();
            polls += 1;
        }
        assert_eq!((polls, armed.recorded[0].series.tally.totals().count), (3, 3));
        assert!(armed.tids().is_empty() && armed.found.is_empty());
        let FinishedProbe { reports, measured, .. } = armed.finish();
        assert_eq!((measured, reports[0].ended), (1, Ended::Done));
    }

    #[test]
    fn a_source_is_stopped_and_reports_beside_threads() {
        signals::accept_nudges().unwrap();
        let stop = Arc::new(Stop::new());
        let mut armed = armed(&stop);
        let never = Arc::clone(&stop);
        let wait = move |_| {
            while !never.is_set() {
                std::thread::yield_now();
            }
            LoopEnd::unmeasured(Ended::Stopped)
        };
        armed.spawn(recorded("cpu0"), None, wait).unwrap();
        let bell = Notifier::new().unwrap();
        armed.rings(&bell);
        armed.start(SCHEDULE);
        armed.poll();
        assert!(!armed.is_done());
        assert!(!bell.wait(Some(0)), "no thread has ended");
        armed.stop();
        assert!(bell.wait(None), "the only one has");
        while !armed.is_done() {
            armed.stop();
        }
        let names: Vec<_> = armed.recorded.iter().map(|one| one.head.name.clone()).collect();
        let FinishedProbe { reports, measured, .. } = armed.finish();
        assert_eq!(measured, 2);
        assert!(reports.iter().all(|report| report.ended == Ended::Stopped));
        assert_eq!(names, reports.iter().map(|one| one.series.clone()).collect::<Vec<_>>());
    }
}

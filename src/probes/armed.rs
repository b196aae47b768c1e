//! A probe whose threads wait, measure, and are asked how they fared.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
};

use tardy_hot::{stop::Stop, wakeup::Ended};

use super::{ArmError, Finished, Keeper, Recorded, Report, STACK_BYTES, Schedule, TracedThread};
use crate::{run::Deviation, setup::threads::Found, sys::signals};

/// A probe whose threads wait for the start.
#[derive(Debug)]
pub struct Armed {
    /// Its series, in the order of `Probe::heads`.
    pub recorded: Vec<Recorded>,
    /// What its threads run as, per series.
    pub found: Vec<(String, Found)>,
    /// Those whose stages are recorded: all or none, in the order of [`Armed::tids`].
    pub traced: Vec<TracedThread>,
    /// What else must be looked after.
    pub keeper: Option<Box<dyn Keeper>>,
    threads: Vec<Thread>,
    has_begun: bool,
    stop: Arc<Stop>,
}

#[derive(Debug)]
struct Thread {
    series: String,
    tid: i32,
    /// Until it shall close what it opened.
    go: Option<Sender<Schedule>>,
    /// What it said at the end of its loop, once it has.
    report: Option<Report>,
    reported: Receiver<Report>,
    handle: JoinHandle<()>,
}

impl Thread {
    /// Whether its loop is over; it may still hold what it opened.
    fn is_done(&mut self) -> bool {
        if self.report.is_none() {
            self.report = self.reported.try_recv().ok();
        }
        self.report.is_some() || self.handle.is_finished()
    }
}

impl Armed {
    pub(super) fn new(stop: &Arc<Stop>) -> Self {
        Self {
            recorded: Vec::new(),
            found: Vec::new(),
            traced: Vec::new(),
            keeper: None,
            threads: Vec::new(),
            has_begun: false,
            stop: Arc::clone(stop),
        }
    }

    /// Starts a measuring thread. `set_up` runs in it at once and says what it runs as; `measure`
    /// runs when the schedule is known.
    pub(super) fn spawn(
        &mut self,
        recorded: Recorded,
        set_up: impl FnOnce() -> io::Result<Found> + Send + 'static,
        measure: impl FnOnce(Schedule, &Found) -> Report + Send + 'static,
    ) -> Result<(), ArmError> {
        let series = recorded.head.name.clone();
        let cannot = move |source| ArmError::Terms { series, source };
        self.spawn_with(
            recorded,
            move || set_up().map(|found| (found, ())).map_err(cannot),
            move |schedule, found, ()| measure(schedule, found),
        )
    }

    /// The same for a thread that opens something which is its own alone. It is closed only when
    /// everything has ended, after the keeper: the other end must not miss it before.
    pub(super) fn spawn_with<O: 'static>(
        &mut self,
        recorded: Recorded,
        set_up: impl FnOnce() -> Result<(Found, O), ArmError> + Send + 'static,
        measure: impl FnOnce(Schedule, &Found, &mut O) -> Report + Send + 'static,
    ) -> Result<(), ArmError> {
        let series = recorded.head.name.clone();
        let (go, gate): (Sender<Schedule>, Receiver<Schedule>) = channel();
        let ((tell, told), (report, reported)) = (channel(), channel());
        let body = move || {
            let (found, mut own) = match set_up() {
                Ok(ready) => ready,
                Err(error) => return drop(tell.send(Err(error))),
            };
            let _ = tell.send(Ok(found.clone()));
            if let Ok(schedule) = gate.recv() {
                let _ = report.send(measure(schedule, &found, &mut own));
                // Until the gate closes.
                let _ = gate.recv();
            }
        };
        let handle = std::thread::Builder::new()
            .name(format!("tardy/{series}"))
            .stack_size(STACK_BYTES)
            .spawn(body)
            .map_err(|source| ArmError::Thread { series: series.clone(), source })?;
        let ended = || io::Error::other("it ended at once");
        let found = told
            .recv()
            .unwrap_or_else(|_| Err(ArmError::Terms { series: series.clone(), source: ended() }))?;
        let tid = found.tid;
        self.threads.push(Thread {
            series: series.clone(),
            tid,
            go: Some(go),
            report: None,
            reported,
            handle,
        });
        self.found.push((series, found));
        self.recorded.push(recorded);
        Ok(())
    }

    /// The kernel's numbers of its threads.
    #[must_use]
    pub fn tids(&self) -> Vec<i32> {
        self.threads.iter().map(|thread| thread.tid).collect()
    }

    /// Lets the threads go, and far ends before them.
    pub fn start(&mut self, schedule: Schedule) {
        if let Some(keeper) = &mut self.keeper {
            keeper.start(schedule);
        }
        self.has_begun = true;
        for go in self.threads.iter().filter_map(|thread| thread.go.as_ref()) {
            // A thread that is gone shows when it is joined.
            let _ = go.send(schedule);
        }
    }

    /// Looks after what must be looked after. To be repeated about every 50 ms.
    pub fn tend(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            keeper.tend(&self.stop);
        }
    }

    /// Whether every loop has ended.
    #[must_use]
    pub fn is_done(&mut self) -> bool {
        self.threads.iter_mut().all(Thread::is_done)
    }

    /// Ends the loops, also those that sleep. To be repeated until [`Armed::is_done`]: a nudge
    /// between two turns has no effect.
    pub fn stop(&mut self) {
        self.stop.set();
        for thread in &mut self.threads {
            if !thread.is_done() {
                signals::nudge(thread.tid);
            }
        }
    }

    /// Waits for the loops, then ends what was looked after.
    #[must_use]
    pub fn finish(self) -> Finished {
        let Self { mut threads, keeper, has_begun, .. } = self;
        if !has_begun {
            // They end when their gates close.
            threads.iter_mut().for_each(|thread| thread.go = None);
        }
        let report = |thread: &mut Thread| {
            let report = thread.report.take().or_else(|| thread.reported.recv().ok());
            report.unwrap_or_else(|| match has_begun {
                true => Report {
                    broken: Some(Deviation::Died),
                    ..Report::of(&thread.series, Ended::Failed(0))
                },
                false => Report::of(&thread.series, Ended::Stopped),
            })
        };
        let mut reports: Vec<Report> = threads.iter_mut().map(report).collect();
        let measured = reports.len();
        if keeper.as_ref().is_some_and(|keeper| keeper.closes_first()) {
            close(threads.drain(..));
        }
        let kept = keeper.map(|keeper| keeper.finish(&mut reports)).unwrap_or_default();
        close(threads);
        Finished { reports, measured, kept }
    }
}

/// Lets threads whose loops are over close what they opened.
fn close(threads: impl IntoIterator<Item = Thread>) {
    for thread in threads {
        drop(thread.go);
        // One that died has said so by its silence.
        let _ = thread.handle.join();
    }
}

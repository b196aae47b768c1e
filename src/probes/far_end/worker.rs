//! The thread of a remote endpoint, in whichever process it is.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread::{Builder, JoinHandle},
    time::Duration,
};

use serde_json::Value;
use tardy_hot::{stop::Stop, wakeup::Ended};

use super::{FarEndWork, Opened, Outlet, WakeFn, spec::Ready};
use crate::{
    probes::{
        STACK_BYTES, Schedule, ThreadReport,
        measured_thread::{self, LoopEnd},
    },
    run::Deviation,
    setup::threads::{Found, ThreadConfig, plain},
    sys::{faults::ThreadUsage, signals},
};

/// Usage is read this time before the end of the warm-up. Later it would keep a message waiting,
/// and hide what is to be reported.
const EARLY_NS: i64 = 20_000_000;

/// A thread that works, as others hold it.
pub(super) struct FarEndThread {
    name: String,
    tid: i32,
    stop: Arc<Stop>,
    go: Option<Sender<Schedule>>,
    handle: JoinHandle<WorkOutcome>,
    outlet: Option<Outlet>,
    is_hurried: bool,
    nudger: Option<WakeFn>,
    /// When the measured time begins, once that is known; ns.
    start_ns: i64,
    /// What it had used by then.
    warmed_up: Option<ThreadUsage>,
}

/// How it fared, and what it had to say.
pub(super) struct WorkOutcome {
    /// Its usage is that since it began to work, after [`FarEndThread::finish`] without the
    /// warm-up.
    pub report: ThreadReport,
    pub value: Value,
    /// What it had used before it began to work.
    before: ThreadUsage,
}

impl std::fmt::Debug for FarEndThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("name", &self.name).field("tid", &self.tid).finish()
    }
}

impl FarEndThread {
    /// Starts it on its terms, has it open what it needs, and lets it wait.
    pub(super) fn start(
        name: &str,
        mut work: Box<dyn FarEndWork>,
        terms: ThreadConfig,
        stop: Arc<Stop>,
    ) -> Result<(Self, Ready), String> {
        let (outlet, is_hurried) = (work.outlet(), work.is_hurried());
        let (ready_sender, ready_receiver) = channel();
        let (go, start) = channel();
        let (own_name, own_stop) = (name.to_owned(), Arc::clone(&stop));
        let body = move || {
            let opened = set_up(work, &terms);
            let ready = opened.as_ref().map_err(String::clone);
            let _ =
                ready_sender.send(ready.map(|(ready, opened)| (ready.clone(), opened.nudger())));
            match opened {
                Ok((ready, opened)) => {
                    work_when_started(&own_name, opened, &start, &terms, &ready.found, &own_stop)
                }
                Err(_) => stopped(&own_name),
            }
        };
        let handle = Builder::new()
            .name(format!("tardy/{name}"))
            .stack_size(STACK_BYTES)
            .spawn(body)
            .map_err(|error| format!("cannot start its thread: {}", plain(&error)))?;
        let opened =
            ready_receiver.recv().unwrap_or_else(|_| Err("its thread ended at once".into()));
        let (ready, nudger) = opened?;
        let thread = Self {
            name: name.into(),
            tid: ready.found.tid,
            stop,
            go: Some(go),
            handle,
            outlet,
            is_hurried,
            nudger,
            start_ns: i64::MAX,
            warmed_up: None,
        };
        Ok((thread, ready))
    }

    /// Lets it begin.
    pub(super) fn go(&mut self, schedule: Schedule) {
        self.start_ns = schedule.start_ns;
        if let Some(go) = &self.go {
            // A thread that is gone shows when it is joined.
            let _ = go.send(schedule);
        }
    }

    /// Whether it has ended.
    pub(super) fn is_done(&self) -> bool {
        self.handle.is_finished()
    }

    /// Takes note of what the warm-up used, when that is nearly over: to read it takes longer than
    /// a round trip. To be repeated until the end; how long there is still time, ns.
    pub(super) fn poll(&mut self, now_ns: i64) -> i64 {
        let due_ns = self.start_ns.saturating_sub(EARLY_NS);
        if self.warmed_up.is_none() && now_ns >= due_ns {
            // If it is not known in time, the warm-up counts too.
            let is_in_time = now_ns <= self.start_ns;
            self.warmed_up = is_in_time.then(|| ThreadUsage::of_thread(self.tid)).flatten();
            self.start_ns = i64::MAX;
            return i64::MAX;
        }
        due_ns - now_ns
    }

    /// Whether it records something that must be let out.
    pub(super) const fn has_outlet(&self) -> bool {
        self.outlet.is_some()
    }

    /// Whether that must be soon.
    pub(super) const fn is_hurried(&self) -> bool {
        self.is_hurried
    }

    /// Lets out what it has recorded.
    pub(super) fn fresh(&mut self, into: &mut Vec<u8>) {
        if let Some(outlet) = &mut self.outlet {
            outlet(into);
        }
    }

    /// Ends its work, also one that sleeps. A nudge between two turns has no effect, so that this
    /// takes as many as it takes.
    pub(super) fn stop(&mut self) {
        self.stop.set();
        // One that was never started ends when its channel closes.
        self.go = None;
        while !self.is_done() {
            signals::nudge(self.tid);
            if let Some(nudge) = &self.nudger {
                nudge();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for it; what it has not let out yet comes too.
    pub(super) fn finish(mut self, into: &mut Vec<u8>) -> WorkOutcome {
        drop(self.go.take());
        let joined = self.handle.join();
        if let Some(mut outlet) = self.outlet {
            outlet(into);
        }
        let mut outcome = joined.unwrap_or_else(|_| {
            let died = ThreadReport::of(&self.name, Ended::Failed(0));
            let report = ThreadReport { broken: Some(Deviation::Died), ..died };
            WorkOutcome { report, value: Value::Null, before: ThreadUsage::default() }
        });
        if let Some(warmed_up) = self.warmed_up {
            let usage = &mut outcome.report.usage;
            *usage = usage.since(warmed_up.since(outcome.before));
        }
        outcome
    }
}

fn set_up(
    work: Box<dyn FarEndWork>,
    terms: &ThreadConfig,
) -> Result<(Ready, Box<dyn Opened>), String> {
    let found = measured_thread::set_up(Some(terms)).map_err(|error| plain(&error))?;
    let opened = work.open()?;
    Ok((Ready { found, facts: opened.facts() }, opened))
}

fn work_when_started(
    name: &str,
    mut opened: Box<dyn Opened>,
    start: &Receiver<Schedule>,
    terms: &ThreadConfig,
    found: &Found,
    stop: &Stop,
) -> WorkOutcome {
    let Ok(schedule) = start.recv() else { return stopped(name) };
    let mut before = ThreadUsage::default();
    let report = measured_thread::measure(name, Some(terms), found, || {
        before = ThreadUsage::of_this_thread();
        LoopEnd::since(before, opened.run(schedule, stop))
    });
    WorkOutcome { report, value: opened.value(), before }
}

fn stopped(name: &str) -> WorkOutcome {
    let report = ThreadReport::of(name, Ended::Stopped);
    WorkOutcome { report, value: Value::Null, before: ThreadUsage::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        probes::far_end::{Launched, RunningFarEnd},
        sys::{cpus::Cpus, sched::Policy},
    };

    /// Sleeps until it is stopped, and counts how often it was woken.
    struct Sleeper {
        woken: u64,
    }

    impl FarEndWork for Sleeper {
        fn outlet(&mut self) -> Option<Outlet> {
            Some(Box::new(|into| into.push(7)))
        }

        fn open(self: Box<Self>) -> Result<Box<dyn Opened>, String> {
            if self.woken > 0 { Err("no sleep is available".into()) } else { Ok(self) }
        }
    }

    impl Opened for Sleeper {
        fn run(&mut self, _: Schedule, stop: &Stop) -> Ended {
            // At least once, however late this thread gets to run.
            loop {
                std::thread::park_timeout(Duration::from_millis(1));
                self.woken += 1;
                if stop.is_set() {
                    return Ended::Stopped;
                }
            }
        }

        fn value(&self) -> Value {
            self.woken.into()
        }
    }

    fn terms() -> ThreadConfig {
        let cpu = Cpus::allowed().unwrap().iter().next().unwrap();
        ThreadConfig { policy: Policy::Other, priority: 0, cpu, slack_ns: 1 }
    }

    fn far_end(woken: u64) -> Result<RunningFarEnd, super::super::ArmError> {
        signals::accept_nudges().unwrap();
        Launched::thread("far", Box::new(Sleeper { woken }), terms()).ready()
    }

    #[test]
    fn it_works_from_the_word_to_the_stop_and_says_how_it_fared() {
        let mut far_end = far_end(0).unwrap();
        assert_eq!(terms().broken_by(&far_end.found().1), None);
        far_end.go(Schedule {
            warmup_ns: 0,
            start_ns: 0,
            end_ns: i64::MAX,
            samples: u64::MAX,
            stop_over_ns: i64::MAX,
        });
        assert_eq!((far_end.poll(), far_end.place()), (None, "thread"));
        let mut fresh = Vec::new();
        far_end.fresh(&mut fresh);
        let end = far_end.finish();
        let report = end.report.unwrap();
        assert_eq!((report.ended, report.broken), (Ended::Stopped, None));
        assert!(end.value.as_u64().unwrap() > 0);
        assert_eq!((fresh, end.fresh), (vec![7], vec![7]), "what is left comes with the end");
    }

    #[test]
    fn one_that_was_never_started_ends_as_well() {
        let report = far_end(0).unwrap().finish().report.unwrap();
        assert_eq!(report.ended, Ended::Stopped);
    }

    #[test]
    fn what_cannot_be_opened_is_reported_with_the_name_of_the_end() {
        let error = far_end(1).unwrap_err().to_string();
        assert!(error.contains("far") && error.contains("no sleep is available"), "{error}");
    }
}

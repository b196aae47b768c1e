//! A real-time thread that is planted on a measured CPU and keeps it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{Builder, JoinHandle, sleep},
    time::{Duration, Instant},
};

use tardy::sys::{
    root::Root,
    sched::{self, RawScheduling},
    tasks,
};

use super::settings::only;

pub(crate) const NAME: &str = "greedy";
pub(crate) const ABOVE_ALL: RawScheduling =
    RawScheduling { policy: libc::SCHED_FIFO, priority: 95 };

/// A thread above all others that keeps a CPU for 4 ms of each 20 ms, until dropped.
pub(crate) struct Greedy {
    pub tid: i32,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Greedy {
    /// Nothing where this user may have no real-time thread.
    pub(crate) fn on(cpu: u32) -> Option<Self> {
        Self::on_while(cpu, || true)
    }

    /// One that keeps the CPU only while `is_bad`, which it asks before it does.
    pub(crate) fn on_while(cpu: u32, is_bad: impl Fn() -> bool + Send + 'static) -> Option<Self> {
        let (stop, (sender, tid)) = (Arc::new(AtomicBool::new(false)), mpsc::channel());
        let is_stopped = Arc::clone(&stop);
        let work = move || {
            let own = sched::thread_id();
            let is_set = only(cpu).pin(own).and_then(|()| sched::set_raw(own, ABOVE_ALL));
            sender.send(is_set.is_ok().then_some(own)).unwrap();
            while is_set.is_ok() && !is_stopped.load(Ordering::Relaxed) {
                let start = Instant::now();
                while is_bad() && start.elapsed() < Duration::from_millis(4) {}
                sleep(Duration::from_millis(16));
            }
        };
        let thread = Builder::new().name(NAME.into()).spawn(work).unwrap();
        Some(Self { tid: tid.recv().unwrap()?, stop, thread: Some(thread) })
    }

    /// Its CPUs, and its policy.
    pub(crate) fn terms(&self) -> (String, RawScheduling) {
        let cpus = tasks::cpus(&Root::default(), self.tid).unwrap();
        (cpus.to_string(), sched::raw_of_thread(self.tid).unwrap())
    }
}

impl Drop for Greedy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

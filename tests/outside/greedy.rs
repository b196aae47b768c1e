//! A real-time thread that is planted on a measured CPU and keeps it.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{Builder, JoinHandle},
    time::Duration,
};

use tardy::sys::{
    root::Root,
    sched::{self, RawScheduling},
    tasks,
};
use tardy_hot::clock::now_ns;

use super::{
    settings::only,
    support::{list, pause, read_record, whole},
};

pub(crate) const NAME: &str = "greedy";
pub(crate) const ABOVE_ALL: RawScheduling =
    RawScheduling { policy: libc::SCHED_FIFO, priority: 95 };

/// How long it keeps the CPU each time.
const BURST_NS: i64 = 4_000_000;

/// A thread above all others that keeps a CPU for 4 ms of each 20 ms, until dropped.
pub(crate) struct Greedy {
    pub tid: i32,
    spared: Arc<AtomicBool>,
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
        let spared = Arc::new(AtomicBool::new(false));
        let (is_stopped, has_spared) = (Arc::clone(&stop), Arc::clone(&spared));
        let work = move || {
            let own = sched::thread_id();
            let is_set = only(cpu).pin(own).and_then(|()| sched::set_raw(own, ABOVE_ALL));
            sender.send(is_set.is_ok().then_some(own)).unwrap();
            while is_set.is_ok() && !is_stopped.load(Ordering::Relaxed) {
                let end_ns = now_ns() + BURST_NS;
                let mut keeps_it = true;
                while keeps_it && now_ns() < end_ns {
                    keeps_it = is_bad() && rustix::thread::sched_getcpu() == cpu as usize;
                }
                has_spared.fetch_or(!keeps_it, Ordering::Relaxed);
                pause(Duration::from_millis(16));
            }
        };
        let thread = Builder::new().name(NAME.into()).spawn(work).unwrap();
        Some(Self { tid: tid.recv().unwrap()?, spared, stop, thread: Some(thread) })
    }

    /// Whether it did not want its CPU at some time, or had to be on another one.
    pub(crate) fn has_spared_its_cpu(&self) -> bool {
        self.spared.load(Ordering::Relaxed)
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

/// Asserts that each block of A in the comparison in this directory has a wake-up that a burst of
/// the thread made late.
pub(crate) fn assert_kept_in_a(comparison: &Path) {
    let record = fs::read_to_string(comparison.join("ab.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let blocks = list(&record["blocks"]).iter().filter(|block| block["side"] == "a");
    let paths: Vec<&str> = blocks.map(|block| block["path"].as_str().unwrap()).collect();
    // The first look comes after four pairs, and may decide.
    assert!(paths.len() >= 4, "{record}");
    for path in paths {
        let run = read_record(&comparison.join(path));
        let worst = whole(&list(&run["series"])[0]["max"]);
        assert!(worst >= BURST_NS * 3 / 4, "{path}: {worst} ns");
    }
}

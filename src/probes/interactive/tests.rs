//! Tasks on this machine: their order, their figures, and a game beside a hog.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use tardy_hot::{
    clock::now_ns,
    frames::{Even, Frames, TaskCpu, ThisCpu, periodic},
    ring::Sample,
    wakeup::{Ended, Sink, Until},
};

use super::{
    task::SliceOfTask,
    thread::{AccountedCpu, TaskLoop, periods},
    *,
};
use crate::{
    probes::{Schedule, timer::stages::MeasuredLoop},
    sys::{cpus::Cpus, sched},
};

fn terms() -> ThreadConfig {
    let cpu = Cpus::allowed().unwrap().iter().next().unwrap();
    ThreadConfig { policy: Policy::Other, priority: 0, cpu, slack_ns: 1 }
}

/// What a probe of these tasks leaves: whether each thread was done, and values by figure.
fn measured(tasks: Vec<SimulatedTask>, length_ns: i64) -> (Armed, Vec<(String, Vec<f64>)>) {
    crate::sys::signals::accept_nudges().unwrap();
    let probe = Interactive { tasks, terms: terms(), loops_per_ms: Some(1_000) };
    let stop = Arc::new(Stop::new());
    let mut armed = probe.arm(&ArmOptions::default(), &stop).unwrap();
    let start_ns = now_ns() + 5_000_000;
    let (end_ns, samples, stop_over_ns) = (start_ns + length_ns, u64::MAX, i64::MAX);
    armed.start(Schedule { warmup_ns: start_ns, start_ns, end_ns, samples, stop_over_ns });
    while !armed.is_done() {
        thread::sleep(Duration::from_millis(1));
    }
    let names = probe.figures().into_iter().map(|head| (head.name, Vec::new()));
    let mut values: Vec<(String, Vec<f64>)> = names.collect();
    for one in armed.figures.as_ref().unwrap().try_iter() {
        values[one.figure].1.push(one.value);
    }
    (armed, values)
}

#[test]
fn tasks_go_one_after_another_and_each_has_its_figures() {
    let tasks = vec![SimulatedTask::custom(5_000_000, 100_000), X];
    let (armed, values) = measured(tasks, 800_000_000);
    let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
    let of_task = |task: &str| ["cpu", "deadlines", "overrun"].map(|what| format!("{task}/{what}"));
    let expected = ["work".to_owned()].into_iter().chain(of_task("custom")).chain(of_task("x"));
    assert_eq!(names, expected.collect::<Vec<_>>());
    let (work, of_tasks) = values.split_first().unwrap();
    assert_eq!(work.1.len(), 2 * crate::run::WORK_REPEATS, "before and after");
    for (name, values) in of_tasks {
        // A machine that did nothing else for a whole slice leaves a figure of it without a value.
        assert!(values.len() <= 10, "{name}: {values:?}");
        let is_share = !name.ends_with("overrun");
        let fits = |value: &f64| *value >= 0.0 && (!is_share || *value <= 100.0) || value.is_nan();
        assert!(values.iter().all(fits), "{name}: {values:?}");
    }
    let counts: Vec<u64> =
        armed.recorded.iter().map(|one| one.series.tally.totals().count).collect();
    assert!(counts[0] <= 80 && counts[1] <= 4, "{counts:?}: no more frames than periods");
    let reports = armed.finish().reports;
    assert!(reports.iter().all(|report| report.ended == Ended::Done), "{reports:?}");
    assert!(reports[0].ended_ns <= reports[1].ended_ns);
}

#[test]
fn a_stop_ends_a_task_and_those_that_wait_for_their_turn() {
    crate::sys::signals::accept_nudges().unwrap();
    let tasks = vec![SimulatedTask::custom(1_000_000, 1), AUDIO, GAME];
    let probe = Interactive { tasks, terms: terms(), loops_per_ms: Some(1) };
    let stop = Arc::new(Stop::new());
    let mut armed = probe.arm(&ArmOptions::default(), &stop).unwrap();
    let start_ns = now_ns();
    let (end_ns, samples, stop_over_ns) = (start_ns + 3_600_000_000_000, u64::MAX, i64::MAX);
    armed.start(Schedule { warmup_ns: start_ns, start_ns, end_ns, samples, stop_over_ns });
    while armed.recorded[0].series.tally.totals().count == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(!armed.is_done());
    while !armed.is_done() {
        armed.stop();
        thread::sleep(Duration::from_millis(1));
    }
    let reports = armed.finish().reports;
    assert_eq!(reports.len(), 3);
    assert_eq!(reports[0].ended, Ended::Stopped);
}

struct Nowhere;

impl Sink for Nowhere {
    fn take(&mut self, _: Sample) {}
    fn miss(&mut self, _: u64) {}
}

/// How long the calling thread had its CPU and waited for it, ns; `None` if the kernel does not
/// say.
fn accounts_ns() -> Option<[i64; 2]> {
    let tid = sched::thread_id();
    let text = fs::read_to_string(format!("/proc/self/task/{tid}/schedstat")).ok()?;
    let mut times = text.split_whitespace().map(|time| time.parse().ok());
    Some([times.next()??, times.next()??])
}

/// A task that takes its CPU for 3 ms of every 10 ms, until `over`.
fn hog(terms: ThreadConfig, loops_per_ms: u64, over: &AtomicBool) {
    terms.apply().unwrap();
    let mut frames = Frames::new(now_ns(), 10_000_000, Even(3 * loops_per_ms));
    let until = Until { end_ns: i64::MAX, samples: 1, stop_over_ns: i64::MAX };
    while !over.load(Ordering::Relaxed) {
        periodic(&mut frames, &mut ThisCpu, &mut Nowhere, until, &Stop::new());
    }
}

/// The share of the time that a game says it had, and between what it lies by the kernel's account:
/// what the thread had, and what it did not wait for; in percent.
fn shares(loops_per_ms: u64) -> Option<(f64, [f64; 2])> {
    let (stop, mut slices) = (Stop::new(), Vec::new());
    let from_ns = now_ns();
    let turn = TaskLoop {
        task: SimulatedTask { name: "game", rhythm: TaskRhythm::FlatOut { frame_ns: 5_000_000 } },
        loops_per_ms,
        from_ns,
        to_ns: from_ns + 100_000_000,
        samples: u64::MAX,
        stop_over_ns: i64::MAX,
        stop: &stop,
    };
    let (before_ns, [had_ns, waited_ns]) = (now_ns(), accounts_ns()?);
    turn.into_slices(&mut slices).record_into(&mut Nowhere);
    let (all_ns, after) = (now_ns() - before_ns, accounts_ns()?);
    let (mut took, mut cpu) = (0, 0);
    for (_, slice) in &slices {
        let SliceOfTask::Time { took_ns, cpu_ns } = slice else { return None };
        (took, cpu) = (took + took_ns, cpu + cpu_ns);
    }
    let percent = |part_ns: i64, of_ns: i64| part_ns as f64 / of_ns as f64 * 100.0;
    let kernel =
        [percent(after[0] - had_ns, all_ns), 100.0 - percent(after[1] - waited_ns, all_ns)];
    Some((percent(cpu, took), kernel))
}

/// A CPU that a hog has for the first 3 ms of every 10 ms. A loop of work takes 1 ns.
#[derive(Default)]
struct SharedCpu {
    now_ns: i64,
    had_ns: i64,
    waited_ns: i64,
}

impl SharedCpu {
    const PERIOD_NS: i64 = 10_000_000;
    const HOG_NS: i64 = 3_000_000;

    /// Waits until the hog leaves the CPU.
    fn dispatch(&mut self) {
        let wait_ns = (Self::HOG_NS - self.now_ns % Self::PERIOD_NS).max(0);
        self.now_ns += wait_ns;
        self.waited_ns += wait_ns;
    }
}

impl TaskCpu for &mut SharedCpu {
    fn now_ns(&mut self) -> i64 {
        self.now_ns
    }

    fn sleep_until(&mut self, t_ns: i64) -> Result<(), i32> {
        self.now_ns = self.now_ns.max(t_ns);
        Ok(())
    }

    fn work(&mut self, loops: u64) {
        let mut left_ns = i64::try_from(loops).unwrap();
        while left_ns > 0 {
            self.dispatch();
            let free_ns = SharedCpu::PERIOD_NS - self.now_ns % SharedCpu::PERIOD_NS;
            let own_ns = left_ns.min(free_ns);
            self.now_ns += own_ns;
            self.had_ns += own_ns;
            left_ns -= own_ns;
        }
    }
}

impl AccountedCpu for &mut SharedCpu {
    fn cpu_ns(&mut self) -> i64 {
        self.had_ns
    }
}

#[test]
fn what_a_simulated_hog_takes_from_a_game_is_what_it_waited() {
    let (stop, mut slices, mut cpu) = (Stop::new(), Vec::new(), SharedCpu::default());
    let task = SimulatedTask { name: "game", rhythm: TaskRhythm::FlatOut { frame_ns: 5_000_000 } };
    let turn = TaskLoop {
        task,
        loops_per_ms: 1_000_000,
        from_ns: 20_000_000,
        to_ns: 1_020_000_000,
        samples: u64::MAX,
        stop_over_ns: i64::MAX,
        stop: &stop,
    };
    let ended = turn.into_slices_on(&mut cpu, &mut slices).record_into(&mut Nowhere);
    assert_eq!((ended, slices.len()), (Ended::Done, 10));
    let mut sums = [0; 2];
    for (end_ns, slice) in &slices {
        let SliceOfTask::Time { took_ns, cpu_ns } = *slice else { panic!("{slice:?}") };
        // It began with the hog, and ends with a frame, which is at most a period from there.
        let share = slice.values(&task, 1_000_000)[0];
        assert!((64.0..=76.0).contains(&share), "{share}% until {end_ns}");
        sums = [sums[0] + took_ns, sums[1] + cpu_ns];
    }
    assert_eq!(sums, [cpu.now_ns - 20_000_000, cpu.had_ns]);
    assert_eq!(sums[0] - sums[1], cpu.waited_ns, "of 1 s");
    assert_eq!(cpu.waited_ns, 300_000_000);
}

#[test]
#[ignore = "live: twin tests::what_a_simulated_hog_takes_from_a_game_is_what_it_waited"]
fn what_a_hog_takes_from_a_game_is_what_the_kernel_says_that_it_waited() {
    terms().apply().unwrap();
    if accounts_ns().is_none() {
        println!("skipped: this kernel does not say how long a thread waits (CONFIG_SCHED_INFO)");
        return;
    }
    let loops_per_ms = work_speed::fastest(&work_speed::measure());
    let over = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&over);
    let hogging = thread::spawn(move || hog(terms(), loops_per_ms, &flag));
    // What comes between the reads of the two is in one of them only: then once more.
    let tries: Vec<_> = (0..10).map_while(|_| shares(loops_per_ms)).collect();
    over.store(true, Ordering::Relaxed);
    hogging.join().unwrap();
    // What the host or interrupts took, some kernels count as had.
    let agrees = |(own, [had, not_waited]): &&(f64, [f64; 2])| {
        *own >= had - 2.0 && *own <= had.max(*not_waited) + 2.0 && *own < 95.0
    };
    let agreed = tries.iter().filter(agrees).count();
    assert!(agreed > 0 && agreed >= tries.len() / 2, "{tries:?}");
}

#[test]
fn periods_are_counted_by_their_beginnings() {
    for (ns, many) in [(0, 0), (1, 1), (10, 1), (11, 2), (30, 3)] {
        assert_eq!(periods(ns, 10), many, "{ns}");
    }
}

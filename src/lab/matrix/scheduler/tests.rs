//! A measurer without machines: what is measured once, kept, failed and stopped.

use std::{
    fs,
    os::unix::fs::symlink,
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::bail;

use super::*;
use crate::lab::matrix::results::tests::write_run;

struct Fake {
    measured: AtomicUsize,
    /// Kernel 1 cannot.
    fails: bool,
    /// What the keys begin with: another program, another kernel.
    version: &'static str,
    together: AtomicUsize,
    most: AtomicUsize,
}

fn fake(version: &'static str) -> Fake {
    let zero = AtomicUsize::default;
    Fake { measured: zero(), fails: false, version, together: zero(), most: zero() }
}

impl Measure for Fake {
    fn key(&self, task: &CellTask) -> Result<Option<String>> {
        Ok(Some(format!("{}{:02x}{:02x}{:02x}", self.version, task.load, task.kernel, task.seed)))
    }

    fn measure(
        &self,
        task: &CellTask,
        place: &RunDirectory,
        stop: &dyn Fn() -> bool,
    ) -> Result<()> {
        self.measured.fetch_add(1, Ordering::SeqCst);
        let now = self.together.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(5));
        self.together.fetch_sub(1, Ordering::SeqCst);
        if stop() {
            bail!("ended early");
        }
        write_run(&place.path(), "complete");
        if self.fails && task.kernel == 1 {
            bail!("the kernel panicked");
        }
        Ok(())
    }
}

struct Lab {
    directory: tempfile::TempDir,
    results: Results,
}

impl Lab {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let results = Results::at(&directory.path().join("cells"));
        Self { directory, results }
    }

    /// Where the runs of one matrix go.
    fn place(&self, name: &str) -> RunDirectory {
        RunDirectory::make(&self.directory.path().join(name)).unwrap()
    }

    fn run_tasks(&self, name: &str, measure: &Fake, again: bool) -> Vec<TaskOutcome> {
        let directory = self.place(name);
        let orders = ScheduleOptions { again, ..self.orders(&directory) };
        run_tasks(&tasks(), measure, &orders, &mut |_| ())
    }

    fn orders<'a>(&'a self, directory: &'a RunDirectory) -> ScheduleOptions<'a> {
        let results = &self.results;
        ScheduleOptions {
            directory,
            jobs: 2,
            results,
            again: false,
            pause: Duration::ZERO,
            stop: &|| false,
        }
    }
}

/// Three loads under two kernels.
fn tasks() -> Vec<CellTask> {
    let task = |number: usize| CellTask {
        load: number / 2,
        kernel: number % 2,
        seed: 0,
        place: number.to_string().into(),
        name: number.to_string(),
    };
    (0..6).map(task).collect()
}

fn count(measure: &Fake) -> usize {
    measure.measured.load(Ordering::SeqCst)
}

#[test]
fn unchanged_cells_are_not_measured_again_and_changed_ones_are() {
    let lab = Lab::new();
    let first = fake("a");
    assert_eq!(lab.run_tasks("1", &first, false).len(), 6);
    assert_eq!(count(&first), 6);
    let again = fake("a");
    assert_eq!(lab.run_tasks("2", &again, false), vec![TaskOutcome::Known; 6]);
    assert_eq!(count(&again), 0);
    assert!(lab.directory.path().join("2/5/run.json").exists());
    assert_eq!(lab.run_tasks("3", &again, true).len(), 6);
    assert_eq!(count(&again), 6, "--again measures all");
    let other = fake("b");
    lab.run_tasks("4", &other, false);
    assert_eq!(count(&other), 6, "another program has other keys");
}

#[test]
fn one_that_fails_does_not_end_the_others_and_is_tried_again_later() {
    let lab = Lab::new();
    let failing = Fake { fails: true, ..fake("a") };
    let outcomes = lab.run_tasks("1", &failing, false);
    let failed =
        |outcome: &&TaskOutcome| **outcome == TaskOutcome::Failed("the kernel panicked".into());
    assert_eq!(outcomes.iter().filter(failed).count(), 3);
    let measured = |outcome: &&TaskOutcome| matches!(outcome, TaskOutcome::Measured(_));
    assert_eq!(outcomes.iter().filter(measured).count(), 3);
    let left = fs::read_dir(lab.directory.path().join("1")).unwrap();
    assert_eq!(left.count(), 3, "what failed leaves nothing");
    let repaired = fake("a");
    lab.run_tasks("2", &repaired, false);
    assert_eq!(count(&repaired), 3);
}

#[test]
fn never_more_at_once_than_allowed() {
    let lab = Lab::new();
    let measure = fake("a");
    lab.run_tasks("1", &measure, false);
    assert!((1..=2).contains(&measure.most.load(Ordering::SeqCst)));
}

#[test]
fn a_stop_leaves_what_is_done_and_begins_nothing_more() {
    let lab = Lab::new();
    let (measure, ended) = (fake("a"), AtomicUsize::new(0));
    let stop = || ended.load(Ordering::SeqCst) > 0;
    let directory = lab.place("1");
    let orders = ScheduleOptions { jobs: 1, stop: &stop, ..lab.orders(&directory) };
    let mut watch = |event: TaskEvent| {
        if matches!(event, TaskEvent::Ended(..)) {
            ended.fetch_add(1, Ordering::SeqCst);
        }
    };
    let outcomes = run_tasks(&tasks(), &measure, &orders, &mut watch);
    assert!(matches!(outcomes[0], TaskOutcome::Measured(_)));
    assert_eq!(outcomes[5], TaskOutcome::Stopped);
    assert!(count(&measure) < 6);
}

#[test]
fn a_watcher_hears_of_every_start_and_end() {
    let lab = Lab::new();
    let (mut began, mut ended) = (0, 0);
    let directory = lab.place("1");
    let orders = ScheduleOptions { jobs: 3, ..lab.orders(&directory) };
    run_tasks(&tasks(), &fake("a"), &orders, &mut |event| match event {
        TaskEvent::Began(_) => began += 1,
        TaskEvent::Ended(..) => ended += 1,
        TaskEvent::Tick => (),
    });
    assert_eq!((began, ended), (6, 6));
}

#[test]
fn what_takes_the_place_of_the_matrix_or_of_a_cell_gets_nothing() {
    let lab = Lab::new();
    let at = |name: &str| lab.directory.path().join(name);
    let directory = lab.place("lab");
    fs::create_dir(at("other")).unwrap();
    fs::rename(at("lab"), at("moved")).unwrap();
    symlink(at("other"), at("lab")).unwrap();
    symlink(at("other"), at("moved/0")).unwrap();
    // Measured now, and known then.
    for cells in ["", "again"] {
        let in_cells = |task: CellTask| CellTask { place: task.place.join(cells), ..task };
        let tasks: Vec<CellTask> = tasks().into_iter().map(in_cells).collect();
        let outcomes = run_tasks(&tasks, &fake("a"), &lab.orders(&directory), &mut |_| ());
        assert!(matches!(&outcomes[0], TaskOutcome::Failed(why) if why.contains("cannot make 0")));
        let failed = |outcome: &&TaskOutcome| matches!(outcome, TaskOutcome::Failed(_));
        assert_eq!(outcomes.iter().filter(failed).count(), 1, "{outcomes:?}");
    }
    assert_eq!(fs::read_dir(at("other")).unwrap().count(), 0);
    assert!(at("moved/5/run.json").exists() && at("moved/5/again/run.json").exists());
}

#[test]
fn time_left_comes_from_what_was_measured_and_not_from_what_was_known() {
    let measured = |seconds| Some(TaskOutcome::Measured(Duration::from_secs(seconds)));
    let outcomes = [measured(8), measured(12), Some(TaskOutcome::Known), None, None, None];
    assert_eq!(time_left(&outcomes, 2), Some(Duration::from_secs(15)));
    assert_eq!(time_left(&outcomes[2..], 2), None);
}

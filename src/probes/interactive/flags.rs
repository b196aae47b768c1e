//! Options of the interactive probe.

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};

use super::{AUDIO, GAME, Interactive, SimulatedTask, VIDEO, X};
use crate::{
    probes::request::{
        DEFAULT_INTERVAL_NS, MeasuredCpus, PlannedProbe, ProbeFlags, ProbeRequest, SharedOptions,
        Unsupported, check_cpu_left, one_cpu,
    },
    setup::threads::ThreadConfig,
    sys::{cpus::Cpus, sched::Policy},
    units::{
        Nanos,
        typed::{HowLong, interval, positive},
    },
};

/// About the time from one sample to the next, ns.
const FRAME_NS: i64 = 16_666_667;

/// A longer frame leaves too long a time in which nothing can end a run, ns.
const LONGEST_NS: i64 = 10_000_000_000;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Probe")]
pub(in crate::probes) struct InteractiveFlags {
    /// Tasks to simulate, one after another, for equal shares of the time [default:
    /// audio,video,x,game]
    #[arg(long = "task", value_enum, value_name = "TASKS", value_delimiter = ',')]
    tasks: Vec<TaskName>,
    /// How often the task custom is due
    #[arg(long, value_name = "TIME", value_parser = interval, allow_hyphen_values = true)]
    interval: Option<Nanos>,
    /// CPU time of each frame of the task custom
    #[arg(long, value_name = "TIME", value_parser = positive)]
    work: Option<Nanos>,
    /// Loops per millisecond of work, from the metric `work` of another run
    ///
    /// Default: measured on this CPU before the run. Give the same number to runs at other
    /// frequencies or on other machines, so that they do the same work.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    loops_per_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TaskName {
    /// Every 50 ms 5% of a CPU
    Audio,
    /// 60 times a second 40% of a CPU
    Video,
    /// Every 100 ms a burst, from 0 to 100% of a CPU and again
    X,
    /// All the CPU time that it gets, in frames of 100 ms
    Game,
    /// Every --interval --work
    Custom,
}

impl ProbeFlags for InteractiveFlags {
    const UNSUPPORTED: &'static [Unsupported] = &[Unsupported {
        options: &["calibrate"],
        why: "its tasks have too few frames in half a second; use it with timer, whose wake-ups \
              cost the same",
    }];
}

impl ProbeRequest for InteractiveFlags {
    /// Its tasks are ordinary programs.
    fn usual_policy(&self) -> Policy {
        Policy::Other
    }

    fn interval_ns(&self) -> i64 {
        self.interval.map_or(DEFAULT_INTERVAL_NS, |interval| interval.0)
    }

    fn cpus(&self, shared: &SharedOptions<'_>) -> Result<MeasuredCpus> {
        one_cpu(shared, "the tasks of interactive run one after another on one CPU; name one")
    }

    fn check_policy(
        &self,
        policy: Policy,
        _: u32,
        cpus: &MeasuredCpus,
        shared: &SharedOptions<'_>,
    ) -> Result<()> {
        let tasks = self.tasks()?;
        check_policy(&tasks, policy, &cpus.all, shared.allowed)?;
        check_length(&tasks, shared.samples, shared.duration)
    }

    fn plan(
        &self,
        terms: ThreadConfig,
        _: &MeasuredCpus,
        _: &SharedOptions<'_>,
    ) -> Result<PlannedProbe> {
        let (tasks, loops_per_ms) = (self.tasks()?, self.loops_per_ms);
        Ok(PlannedProbe::new(Interactive { tasks, terms, loops_per_ms }, FRAME_NS))
    }
}

impl InteractiveFlags {
    /// The tasks, in their order.
    ///
    /// # Errors
    /// Names the option that cannot be used, and the remedy.
    fn tasks(&self) -> Result<Vec<SimulatedTask>> {
        let names = match self.tasks.as_slice() {
            [] => &[TaskName::Audio, TaskName::Video, TaskName::X, TaskName::Game],
            named => named,
        };
        let mut tasks = Vec::new();
        for (place, name) in names.iter().enumerate() {
            let task = match name {
                TaskName::Audio => AUDIO,
                TaskName::Video => VIDEO,
                TaskName::X => X,
                TaskName::Game => GAME,
                TaskName::Custom => self.custom()?,
            };
            let twice = names.iter().take(place).any(|other| other == name);
            ensure!(!twice, "--task: {} is named twice; name each task once", task.name);
            tasks.push(task);
        }
        if !names.contains(&TaskName::Custom) {
            let vain = [("--interval", self.interval.is_some()), ("--work", self.work.is_some())];
            if let Some((flag, _)) = vain.into_iter().find(|(_, given)| *given) {
                bail!("{flag} is of the task custom; add --task custom, or leave it out");
            }
        }
        Ok(tasks)
    }

    fn custom(&self) -> Result<SimulatedTask> {
        let (Some(interval), Some(Nanos(work_ns))) = (self.interval, self.work) else {
            bail!(
                "--task custom: say how often it has a frame, and how long that takes: \
                 --interval 20ms --work 2ms"
            );
        };
        ensure!(
            interval.0 <= LONGEST_NS,
            "--interval {interval}: a simulated task has a frame at least every 10 s; use a \
             shorter interval"
        );
        ensure!(
            work_ns <= interval.0,
            "--work {}: that is more than the period of {interval}, so that no frame could be done \
             in time; use a longer --interval or less --work",
            Nanos(work_ns)
        );
        Ok(SimulatedTask::custom(interval.0, work_ns))
    }
}

/// A length of which each task has a share that it can use.
///
/// # Errors
/// Names the flag and the remedy.
fn check_length(tasks: &[SimulatedTask], samples: Option<u64>, duration: HowLong) -> Result<()> {
    let many = tasks.len() as i64;
    ensure!(
        many == 1 || samples.is_none(),
        "--samples: the tasks share out a time; use --duration, or name one --task"
    );
    if samples.is_some() {
        return Ok(());
    }
    let HowLong::Time(Nanos(ns)) = duration else {
        ensure!(
            many == 1,
            "--duration inf: the tasks share out a time that has an end; name one --task"
        );
        return Ok(());
    };
    let needed = tasks.iter().max_by_key(|task| task.frame_ns());
    let Some(needed) = needed.filter(|task| ns / many < 2 * task.frame_ns()) else { return Ok(()) };
    bail!(
        "--duration {}: that leaves {} to each task, and {} needs at least {} for two frames; use \
         a longer time or fewer tasks",
        Nanos(ns),
        Nanos(ns / many),
        needed.name,
        Nanos(2 * needed.frame_ns())
    )
}

/// A policy under which the tasks leave the machine usable.
///
/// # Errors
/// Names the flag and the remedy.
fn check_policy(
    tasks: &[SimulatedTask],
    policy: Policy,
    measured: &Cpus,
    allowed: &Cpus,
) -> Result<()> {
    ensure!(
        !matches!(policy, Policy::Deadline(_)),
        "--policy deadline is not supported with interactive: its tasks differ in how often they \
         run, and for how long; use other, fifo or rr"
    );
    match tasks.iter().find(|task| task.may_fill_cpu()) {
        Some(task) => check_cpu_left(&format!("the task {}", task.name), policy, measured, allowed),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tasks: &[TaskName], interval_ns: Option<i64>, work_ns: Option<i64>) -> InteractiveFlags {
        InteractiveFlags {
            tasks: tasks.to_vec(),
            interval: interval_ns.map(Nanos),
            work: work_ns.map(Nanos),
            loops_per_ms: None,
        }
    }

    fn refusal(tasks: &[TaskName], interval_ns: Option<i64>, work_ns: Option<i64>) -> String {
        of(tasks, interval_ns, work_ns).tasks().unwrap_err().to_string()
    }

    #[test]
    fn a_custom_task_needs_a_period_that_is_longer_than_its_work() {
        let custom = [TaskName::Custom];
        let tasks = of(&custom, Some(20_000_000), Some(2_000_000)).tasks().unwrap();
        assert_eq!(tasks, [SimulatedTask::custom(20_000_000, 2_000_000)]);
        let error = refusal(&custom, Some(20_000_000), Some(30_000_000));
        assert!(
            error.contains("--work 30.0 ms: that is more than the period of 20.0 ms"),
            "{error}"
        );
        assert!(refusal(&custom, Some(1_000_000), None).contains("--interval 20ms --work 2ms"));
        let error = refusal(&custom, Some(60_000_000_000), Some(1));
        assert!(error.contains("at least every 10 s"), "{error}");
        assert!(refusal(&[], None, Some(1)).contains("--work is of the task custom"));
        let error = refusal(&[TaskName::Game], Some(1_000_000), None);
        assert!(error.contains("--interval is of the task custom"), "{error}");
    }

    #[test]
    fn tasks_have_their_shares_of_a_time_that_is_long_enough() {
        let four = of(&[], None, None).tasks().unwrap();
        assert_eq!(four, [AUDIO, VIDEO, X, GAME]);
        let twice = refusal(&[TaskName::X, TaskName::X], None, None);
        assert!(twice.contains("x is named twice"), "{twice}");
        let time = |ms: i64| HowLong::Time(Nanos(ms * 1_000_000));
        check_length(&four, None, time(800)).unwrap();
        check_length(&four[..1], Some(5), HowLong::Unlimited).unwrap();
        check_length(&four[..1], None, HowLong::Unlimited).unwrap();
        for (samples, duration, why) in [
            (None, time(799), "game needs at least 200 ms"),
            (None, HowLong::Unlimited, "name one --task"),
            (Some(5), time(60_000), "use --duration"),
        ] {
            let error = check_length(&four, samples, duration).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn what_may_fill_a_cpu_goes_before_others_only_where_a_cpu_is_left() {
        let cpus = |list: &[u32]| list.iter().copied().collect::<Cpus>();
        let check = |tasks: &[SimulatedTask], policy, allowed: &[u32]| {
            check_policy(tasks, policy, &cpus(&[0]), &cpus(allowed))
        };
        check(&[AUDIO, VIDEO], Policy::Fifo, &[0]).unwrap();
        check(&[GAME], Policy::Other, &[0]).unwrap();
        check(&[GAME], Policy::Fifo, &[0, 1]).unwrap();
        let error = check(&[AUDIO, GAME], Policy::Fifo, &[0]).unwrap_err().to_string();
        assert!(error.contains("the task game") && error.contains("--policy other"), "{error}");
    }
}

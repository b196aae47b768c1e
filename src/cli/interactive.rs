//! Flags of the interactive probe.

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};

use super::{
    flags::{CpuList, HowLong, positive},
    noise,
};
use crate::{
    probes::{
        interactive::{AUDIO, GAME, Interactive, SimulatedTask, VIDEO, X},
        timer::{Timer, TimerWork},
    },
    run::probes::{ProbeInfo, Rhythm, Traceable},
    setup::threads::Terms,
    sys::{cpus::Cpus, sched::Policy},
    units::Nanos,
};

/// About the time from one sample to the next, ns.
pub(super) const FRAME_NS: i64 = 16_666_667;

/// A longer frame leaves too long a time in which nothing can end a run, ns.
const LONGEST_NS: i64 = 10_000_000_000;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Interactive")]
pub(super) struct InteractiveFlags {
    /// Tasks to simulate, one after another, for equal shares of the time [default:
    /// audio,video,x,game]
    #[arg(long = "task", value_enum, value_name = "TASKS", value_delimiter = ',')]
    tasks: Vec<TaskName>,
    /// CPU time of each frame of the task custom, or of timer's work per wake-up
    ///
    /// --interval sets how often it is due.
    ///
    /// With timer, the series cpu0/response has the time from the expiry to the end of the work.
    /// --deadline judges it.
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

impl InteractiveFlags {
    /// Refuses the flags for a probe that does not use them.
    ///
    /// # Errors
    /// Names the flag.
    pub(super) fn check(&self, probe: &ProbeInfo) -> Result<()> {
        if probe.rhythm == Rhythm::Tasks {
            return Ok(());
        }
        // A fake has no CPU on which it could work.
        let works = probe.rhythm == Rhythm::Interval && probe.traceable != Traceable::No;
        let given = [
            ("--task", !self.tasks.is_empty()),
            ("--work", self.work.is_some() && !works),
            ("--loops-per-ms", self.loops_per_ms.is_some() && !works),
        ];
        ensure!(
            !works || self.work.is_some() || self.loops_per_ms.is_none(),
            "--loops-per-ms says how much work a millisecond is; add --work, or leave it out"
        );
        if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
            bail!(
                "{flag} is not supported with {}; leave it out, or measure interactive",
                probe.name
            );
        }
        Ok(())
    }

    /// The work of each thread of a timer, of which `threads` are on each CPU, with this period.
    ///
    /// # Errors
    /// It could never be done in time, or ordinary tasks would get no CPU.
    pub(super) fn of_timer(
        &self,
        timer: &Timer,
        deadline_ns: Option<i64>,
    ) -> Result<Option<TimerWork>> {
        let Some(work) = self.work else { return Ok(None) };
        let period = Nanos(timer.interval_ns);
        let all_ns = work.0.saturating_mul(timer.threads_per_cpu.into());
        ensure!(
            all_ns <= period.0 / 10 * 9,
            "--work {work}: the threads of a CPU ({}) would take more than 90% of the --interval \
             of {period}; use a longer interval, or less work",
            timer.threads_per_cpu
        );
        let in_time = deadline_ns.is_none_or(|deadline_ns| deadline_ns > work.0);
        ensure!(
            in_time,
            "--deadline {}: the work alone takes {work} (--work); use a later deadline, or less \
             work",
            Nanos(deadline_ns.unwrap_or(0))
        );
        let (work_ns, loops_per_ms) = (work.0, self.loops_per_ms);
        Ok(Some(TimerWork { work_ns, loops_per_ms, deadline_ns }))
    }

    /// The probe that these flags describe; `interval_ns` is that of `--interval`.
    ///
    /// # Errors
    /// Names the flag that cannot be used, and the remedy.
    pub(super) fn interactive(
        &self,
        terms: Terms,
        interval_ns: Option<i64>,
    ) -> Result<Interactive> {
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
                TaskName::Custom => self.custom(interval_ns)?,
            };
            let twice = names.iter().take(place).any(|other| other == name);
            ensure!(!twice, "--task: {} is named twice; name each task once", task.name);
            tasks.push(task);
        }
        if !names.contains(&TaskName::Custom) {
            let vain = [("--interval", interval_ns.is_some()), ("--work", self.work.is_some())];
            if let Some((flag, _)) = vain.into_iter().find(|(_, given)| *given) {
                bail!("{flag} is of the task custom; add --task custom, or leave it out");
            }
        }
        Ok(Interactive { tasks, terms, loops_per_ms: self.loops_per_ms })
    }

    fn custom(&self, interval_ns: Option<i64>) -> Result<SimulatedTask> {
        let (Some(interval_ns), Some(Nanos(work_ns))) = (interval_ns, self.work) else {
            bail!(
                "--task custom: say how often it has a frame, and how long that takes: \
                 --interval 20ms --work 2ms"
            );
        };
        let interval = Nanos(interval_ns);
        ensure!(
            interval_ns <= LONGEST_NS,
            "--interval {interval}: a simulated task has a frame at least every 10 s; use a \
             shorter interval"
        );
        ensure!(
            work_ns <= interval_ns,
            "--work {}: that is more than the period of {interval}, so that no frame could be done \
             in time; use a longer --interval or less --work",
            Nanos(work_ns)
        );
        Ok(SimulatedTask::custom(interval_ns, work_ns))
    }
}

/// The CPU on which tasks run, of those that are allowed.
///
/// # Errors
/// `asked` has several.
pub(super) fn cpu(asked: Option<&CpuList>, allowed: &Cpus) -> Result<u32> {
    let Some(asked) = asked else { return Ok(allowed.iter().next().unwrap_or(0)) };
    match asked.in_order.as_slice() {
        [cpu] => Ok(*cpu),
        _ => bail!(
            "--cpus {}: the tasks of interactive run one after another on one CPU; name one",
            asked.cpus
        ),
    }
}

/// A length of which each task has a share that it can use.
///
/// # Errors
/// Names the flag and the remedy.
pub(super) fn check_length(
    tasks: &[SimulatedTask],
    samples: Option<u64>,
    duration: HowLong,
) -> Result<()> {
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
pub(super) fn check_policy(
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
        Some(task) => {
            noise::check_left(&format!("the task {}", task.name), policy, measured, allowed)
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(flags: &InteractiveFlags, interval_ns: Option<i64>) -> Result<Interactive> {
        let terms = Terms { policy: Policy::Other, priority: 0, cpu: 0, slack_ns: 1 };
        flags.interactive(terms, interval_ns)
    }

    fn refusal(flags: &InteractiveFlags, interval_ns: Option<i64>) -> String {
        planned(flags, interval_ns).unwrap_err().to_string()
    }

    fn of(tasks: &[TaskName], work_ns: Option<i64>) -> InteractiveFlags {
        InteractiveFlags { tasks: tasks.to_vec(), work: work_ns.map(Nanos), loops_per_ms: None }
    }

    #[test]
    fn a_custom_task_needs_a_period_that_is_longer_than_its_work() {
        let custom = [TaskName::Custom];
        let probe = planned(&of(&custom, Some(2_000_000)), Some(20_000_000)).unwrap();
        assert_eq!(probe.tasks, [SimulatedTask::custom(20_000_000, 2_000_000)]);
        let error = refusal(&of(&custom, Some(30_000_000)), Some(20_000_000));
        assert!(
            error.contains("--work 30.0 ms: that is more than the period of 20.0 ms"),
            "{error}"
        );
        assert!(
            refusal(&of(&custom, None), Some(1_000_000)).contains("--interval 20ms --work 2ms")
        );
        let error = refusal(&of(&custom, Some(1)), Some(60_000_000_000));
        assert!(error.contains("at least every 10 s"), "{error}");
        assert!(refusal(&of(&[], Some(1)), None).contains("--work is of the task custom"));
        let error = refusal(&of(&[TaskName::Game], None), Some(1_000_000));
        assert!(error.contains("--interval is of the task custom"), "{error}");
    }

    #[test]
    fn tasks_have_their_shares_of_a_time_that_is_long_enough() {
        let four = planned(&of(&[], None), None).unwrap().tasks;
        assert_eq!(four, [AUDIO, VIDEO, X, GAME]);
        let twice = refusal(&of(&[TaskName::X, TaskName::X], None), None);
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

    #[test]
    fn tasks_run_on_one_cpu() {
        let allowed: Cpus = "2-5".parse().unwrap();
        assert_eq!(cpu(None, &allowed).unwrap(), 2);
        assert_eq!(cpu(Some(&"4".parse().unwrap()), &allowed).unwrap(), 4);
        let error = cpu(Some(&"2,3".parse().unwrap()), &allowed).unwrap_err().to_string();
        assert!(error.contains("--cpus 2-3") && error.contains("name one"), "{error}");
    }
}

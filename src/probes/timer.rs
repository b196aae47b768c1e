//! The `timer` probe: threads that sleep until a programmed time, and how late they wake up.
//!
//! One thread per CPU, or several of falling priority. `tardy_hot::wakeup` documents what lies
//! between the clock reads, per kind of wait; `tardy_hot::traced`, what tracing adds to a turn.

pub(super) mod flags;
pub(super) mod stages;
mod thread_count;
mod wake_kind;
mod work;

use std::{io, os::fd::AsRawFd, sync::Arc};

use rustix::event::epoll;
use tardy_hot::{
    clock::now_ns,
    ring::{Sample, Writer, ring},
    stop::Stop,
    timeouts::{EpollCall, PpollCall, PselectCall, TimeOut, TimerSignal},
    uring::TimeOutRing,
    wakeup::{
        Absolute, CompiledWake, Counted, Ended, Kept, Periodic, Relative, Series, Sink, Until, run,
    },
};

use self::{
    stages::{MeasuredLoop as _, ThreadTrace, TimerLoop, WorkLoop},
    work::{WorkOfThread, WorkPlan, response_head},
};
pub use self::{thread_count::ThreadCount, wake_kind::WakeKind, work::TimerWork};
use super::{
    ArmError, ArmOptions, Armed, ExpiryGrid, Probe, Recorded, Schedule, Tracing,
    measured_thread::LoopEnd,
};
use crate::{
    run::{FigureHead, ProbeRecord, SeriesHead, TimerParameters},
    setup::threads::ThreadConfig,
    sys::{cpus::Cpus, sched::Policy, timer},
};

/// A planned timer probe.
#[derive(Debug, Clone)]
pub struct Timer {
    /// The CPUs to measure.
    pub cpus: Cpus,
    /// How many threads, and where.
    pub threads: ThreadCount,
    /// Time between expiries of the first thread, ns.
    pub interval_ns: i64,
    /// How much longer that is for each thread than for the one before, ns.
    pub interval_step_ns: i64,
    /// Distance between the expiries of one thread and the next, ns.
    pub distance_ns: i64,
    /// How they wait.
    pub wake: WakeKind,
    /// Their policy.
    pub policy: Policy,
    /// Priority of the first thread on each CPU; 0 for `other`.
    pub priority: u32,
    /// By how much the priority falls from one thread of a CPU to the next.
    pub priority_step: u32,
    /// Timer slack in ns.
    pub slack_ns: u64,
    /// What they do after each wake-up, if anything.
    pub work: Option<TimerWork>,
}

/// One thread to be.
struct ThreadPlan {
    head: SeriesHead,
    terms: ThreadConfig,
    interval_ns: i64,
    phase_ns: i64,
    /// On its CPU.
    is_alone: bool,
}

impl Timer {
    /// On real-time kernels the timers of ordinary tasks, and those of timerfds, POSIX timers and
    /// io_uring, expire in a softirq: `hrtimer_init_sleeper`, `timerfd_create`,
    /// `common_timer_create` and `io_timeout_setup` of the kernel.
    const fn has_softirq(&self, tracing: &Tracing) -> bool {
        let in_interrupt = !matches!(self.policy, Policy::Other);
        tracing.is_rt && (!in_interrupt || self.wake.is_soft_on_rt())
    }

    /// How long after the programmed expiry that of the kernel may lie, ns: a relative sleep begins
    /// a little after the clock read before it.
    const fn within_ns(&self, interval_ns: i64) -> u64 {
        if self.wake.is_for_a_time() { interval_ns.unsigned_abs() / 2 } else { 0 }
    }

    fn places(&self) -> Vec<ThreadPlan> {
        let seats = self.threads.seats(&self.cpus);
        let place = |(thread, (cpu, number)): (usize, &(u32, u32))| {
            let name = match number {
                0 => format!("cpu{cpu}"),
                _ => format!("cpu{cpu}#{number}"),
            };
            let thread = thread as i64;
            let step_ns = self.interval_step_ns.saturating_mul(thread);
            let interval_ns = self.interval_ns.saturating_add(step_ns);
            let period_ns = self.wake.has_schedule().then_some(interval_ns);
            let priority = self.priority.saturating_sub(number * self.priority_step);
            let grid_ns = interval_ns.max(1);
            ThreadPlan {
                head: SeriesHead { name, cpu: Some(*cpu), period_ns },
                terms: ThreadConfig {
                    policy: self.policy,
                    priority,
                    cpu: *cpu,
                    slack_ns: self.slack_ns,
                },
                interval_ns,
                phase_ns: thread * (self.distance_ns % grid_ns) % grid_ns,
                is_alone: seats.iter().filter(|(other, _)| other == cpu).count() == 1,
            }
        };
        seats.iter().enumerate().map(place).collect()
    }

    /// When they are due, if all have one interval.
    fn grid(&self, places: &[ThreadPlan]) -> Option<ExpiryGrid> {
        let is_one = self.interval_step_ns == 0 || places.len() == 1;
        (self.wake.has_schedule() && is_one).then(|| ExpiryGrid {
            interval_ns: self.interval_ns,
            phases_ns: places.iter().map(|place| place.phase_ns).collect(),
        })
    }
}

impl Probe for Timer {
    fn name(&self) -> &'static str {
        "timer"
    }

    fn parameters(&self) -> ProbeRecord {
        ProbeRecord::Timer(TimerParameters {
            wake: self.wake.as_str().into(),
            interval_ns: self.interval_ns,
            interval_step_ns: Some(self.interval_step_ns).filter(|step_ns| *step_ns > 0),
            distance_ns: self.distance_ns,
            cpus: self.cpus.to_string(),
            threads_per_cpu: self.threads.most_on_one(&self.cpus),
            total_threads: match self.threads {
                ThreadCount::OnEach(_) => None,
                ThreadCount::InTotal(threads) => Some(threads),
            },
            priority_step: self.priority_step,
            work_ns: self.work.map(|work| work.work_ns),
            loops_per_ms: self.work.and_then(|work| work.loops_per_ms),
        })
    }

    fn heads(&self, tracing: Option<&Tracing>) -> Vec<SeriesHead> {
        let mut heads = Vec::new();
        for ThreadPlan { head, .. } in self.places() {
            let of_stages = tracing.map(|tracing| stages::heads(&head, self.has_softirq(tracing)));
            let of_work = self.work.map(|_| response_head(&head));
            heads.push(head);
            heads.extend(of_stages.into_iter().flatten().chain(of_work));
        }
        heads
    }

    fn figures(&self) -> Vec<FigureHead> {
        self.work.map_or_else(Vec::new, |_| work::figures(&self.cpus))
    }

    fn arm(&self, wants: &ArmOptions, stop: &Arc<Stop>) -> Result<Armed, ArmError> {
        self.wake.check()?;
        let mut armed = Armed::new(stop);
        let mut work = self.work.map(|work| {
            let (plan, figures) = WorkPlan::new(work);
            armed.figures = Some(figures);
            plan
        });
        let (places, mut works) = (self.places(), Vec::new());
        armed.grid = self.grid(&places);
        let longest_ns = places.iter().map(|place| place.interval_ns).max().unwrap_or(0);
        for (number, place) in places.into_iter().enumerate() {
            let ThreadPlan { head, terms, interval_ns, phase_ns, is_alone } = place;
            let series = Arc::new(Series::default());
            let scratch = Arc::new(Series::default());
            let (writer, reader) = wants.ring_samples.map(ring).unzip();
            let traced = wants.tracing.as_ref().map(|tracing| {
                ThreadTrace::new(
                    &head,
                    tracing,
                    number,
                    self.has_softirq(tracing),
                    self.within_ns(interval_ns),
                )
            });
            let (own, others) = traced.unzip();
            let refused = |source| ArmError::ThreadConfig { series: head.name.clone(), source };
            let work = work.as_mut().map(|plan| plan.next(&head, &terms).map_err(refused));
            let mut work = work.transpose()?;
            let response = work.as_ref().map(WorkOfThread::recorded);
            let late_work = own.as_ref().zip(work.as_mut()).and_then(|(own, work)| work.trace(own));
            let thread = Thread {
                series: Arc::clone(&series),
                scratch: Arc::clone(&scratch),
                writer,
                stages: own,
                work,
                stop: Arc::clone(stop),
                wake: self.wake,
                interval_ns,
                phase_ns,
                last_ns: if is_alone { 0 } else { longest_ns.clamp(0, PATIENCE_NS) },
            };
            let (name, cpu) = (head.name.clone(), terms.cpu);
            armed.spawn(
                Recorded { head, series: Arc::clone(&series), samples: reader },
                Some(terms),
                move |schedule| thread.both_loops(schedule),
            )?;
            if let (Some(others), Some((_, found))) = (others, armed.found.last()) {
                let (recorded, traced) = others.known(name, cpu, found, scratch, series);
                armed.recorded.extend(recorded);
                let late_work = late_work.zip(response.as_ref());
                works.extend(late_work.map(|((others, warm), to)| others.known(&traced, to, warm)));
                armed.traced.push(traced);
            }
            armed.recorded.extend(response);
        }
        // The kernel's records are numbered as the threads are.
        armed.traced.extend(works);
        Ok(armed)
    }
}

/// What a measuring thread owns.
struct Thread {
    series: Arc<Series>,
    /// Takes the samples of the warm-up, and stays until the end: freeing memory within the run
    /// would interrupt every CPU.
    scratch: Arc<Series>,
    writer: Option<Writer<Sample>>,
    /// Where stages go, if they are recorded.
    stages: Option<ThreadTrace>,
    /// What it has to do after each wake-up.
    work: Option<WorkOfThread>,
    stop: Arc<Stop>,
    wake: WakeKind,
    interval_ns: i64,
    phase_ns: i64,
    /// How long others of its CPU may still have an expiry before them at its end, ns.
    last_ns: i64,
}

/// The longest that a thread waits for its neighbours at the end.
const PATIENCE_NS: i64 = 100_000_000;

impl Thread {
    fn both_loops(mut self, schedule: Schedule) -> LoopEnd {
        let period_ns = self.interval_ns;
        let mut end = match self.wake {
            WakeKind::Nanosleep => {
                self.loops_by(schedule, |first_ns| Ok(Absolute::new(first_ns, period_ns)))
            }
            WakeKind::Relative => self.loops_by(schedule, |_| Ok(Relative::new(period_ns))),
            WakeKind::Timerfd => self.loops_by_timerfd(schedule),
            WakeKind::Ppoll => {
                self.loops_by(schedule, |first_ns| Ok(TimeOut::new(PpollCall, first_ns, period_ns)))
            }
            WakeKind::Pselect => self
                .loops_by(schedule, |first_ns| Ok(TimeOut::new(PselectCall, first_ns, period_ns))),
            WakeKind::Epoll => self.loops_by_epoll(schedule),
            WakeKind::Signal => self.loops_by_signal(schedule),
            WakeKind::Uring => self.loops_by(schedule, |first_ns| {
                let ring = TimeOutRing::new().map_err(io::Error::from_raw_os_error)?;
                Ok(TimeOut::new(ring, first_ns, period_ns))
            }),
        };
        let ended_ns = now_ns();
        if self.last_ns > 0 {
            // Those of lower priority may have their last expiry still before them; what comes now
            // would be a latency of theirs.
            std::thread::sleep(std::time::Duration::from_nanos(self.last_ns.unsigned_abs()));
        }
        if let Some(work) = &self.work {
            end.end_ns = end.end_ns.min(ended_ns);
            work.send_speeds(schedule.start_ns);
        }
        end
    }

    fn loops_by_timerfd(&mut self, schedule: Schedule) -> LoopEnd {
        let mut timers = Vec::with_capacity(2);
        let period_ns = self.interval_ns;
        self.loops_by(schedule, |first_ns| {
            let timer = timer::periodic(first_ns, period_ns)?;
            let descriptor = timer.as_raw_fd();
            // Kept open until both loops are over.
            timers.push(timer);
            Ok(Periodic::new(descriptor, first_ns, period_ns))
        })
    }

    fn loops_by_epoll(&mut self, schedule: Schedule) -> LoopEnd {
        let period_ns = self.interval_ns;
        match epoll::create(epoll::CreateFlags::CLOEXEC) {
            Ok(instance) => self.loops_by(schedule, |first_ns| {
                Ok(TimeOut::new(EpollCall(instance.as_raw_fd()), first_ns, period_ns))
            }),
            Err(error) => LoopEnd::unmeasured(Ended::Failed(error.raw_os_error())),
        }
    }

    fn loops_by_signal(&mut self, schedule: Schedule) -> LoopEnd {
        let mut timers = Vec::with_capacity(2);
        let period_ns = self.interval_ns;
        self.loops_by(schedule, |first_ns| {
            // Signals of the warm-up that nobody took must not end a wait of the measured loop.
            let signal = timer::SignalTimer::signal(if timers.is_empty() { 0 } else { 1 });
            timers.push(timer::SignalTimer::start(signal, first_ns, period_ns)?);
            Ok(TimerSignal::new(signal, first_ns, period_ns))
        })
    }

    /// The warm-up, then the measured loop; their waits are made by `wake_from` beforehand.
    fn loops_by<W: CompiledWake>(
        &mut self,
        schedule: Schedule,
        mut wake_from: impl FnMut(i64) -> io::Result<W>,
    ) -> LoopEnd {
        let made = wake_from(schedule.warmup_ns + self.phase_ns)
            .and_then(|warm| Ok((warm, wake_from(schedule.start_ns + self.phase_ns)?)));
        let (mut warm, mut wake) = match made {
            Ok(both) => both,
            Err(error) => {
                return LoopEnd::unmeasured(Ended::Failed(error.raw_os_error().unwrap_or(0)));
            }
        };
        let warm_until =
            Until { end_ns: schedule.start_ns, samples: u64::MAX, stop_over_ns: i64::MAX };
        let mut scratch = Counted(Arc::clone(&self.scratch));
        let warmed = match &self.work {
            Some(work) => run(&mut warm, &mut work.warming(scratch), warm_until, &self.stop),
            None => warm.count(&mut scratch, warm_until, &self.stop),
        };
        let Schedule { end_ns, samples, stop_over_ns, .. } = schedule;
        let until = Until { end_ns, samples, stop_over_ns };
        let series = Arc::clone(&self.series);
        let (writer, stages) = (self.writer.take(), self.stages.take());
        let stop = &self.stop;
        LoopEnd::after_warm_up(warmed, || match (writer, stages, &mut self.work) {
            (Some(writer), None, None) => wake.keep(&mut Kept(series, writer), until, stop),
            (None, None, None) => wake.count(&mut Counted(series), until, stop),
            (writer, stages, work) => {
                let run = TimerLoop { wake: &mut wake, until, stop };
                match (writer, work) {
                    (Some(writer), None) => recorded(stages, Kept(series, writer), run),
                    (None, None) => recorded(stages, Counted(series), run),
                    (Some(writer), Some(work)) => worked(stages, Kept(series, writer), work, run),
                    (None, Some(work)) => worked(stages, Counted(series), work, run),
                }
            }
        })
    }
}

/// The measured loop with the work of each turn, into `sink`.
fn worked<W: CompiledWake>(
    stages: Option<ThreadTrace>,
    sink: impl Sink,
    work: &mut WorkOfThread,
    run: TimerLoop<'_, W>,
) -> Ended {
    let sink = work.measuring(sink);
    match (stages, work.take_trace()) {
        (Some(stages), Some(trace)) => stages.measured(sink, WorkLoop { run, trace }),
        (stages, _) => recorded(stages, sink, run),
    }
}

/// The measured loop, into `sink`, with its stages if they are recorded.
fn recorded<W: CompiledWake>(
    stages: Option<ThreadTrace>,
    mut sink: impl Sink,
    run: TimerLoop<'_, W>,
) -> Ended {
    match stages {
        Some(stages) => stages.measured(sink, run),
        None => run.record_into(&mut sink),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(threads: ThreadCount) -> Timer {
        Timer {
            cpus: "2,5".parse().unwrap(),
            threads,
            interval_ns: 1_000,
            interval_step_ns: 500,
            distance_ns: 1_100,
            wake: WakeKind::Nanosleep,
            policy: Policy::Fifo,
            priority: 9,
            priority_step: 2,
            slack_ns: 1,
            work: None,
        }
    }

    fn names(timer: &Timer) -> Vec<String> {
        timer.places().into_iter().map(|place| place.head.name).collect()
    }

    #[test]
    fn threads_in_total_are_on_one_cpu_after_another_each_with_a_longer_interval() {
        let timer = timer(ThreadCount::InTotal(3));
        assert_eq!(names(&timer), ["cpu2", "cpu5", "cpu2#1"]);
        let places = timer.places();
        let terms: Vec<_> = places
            .iter()
            .map(|own| (own.terms.cpu, own.terms.priority, own.head.period_ns, own.phase_ns))
            .collect();
        // A phase is that of the thread's own grid.
        let expected =
            [(2, 9, Some(1_000), 0), (5, 9, Some(1_500), 1_100), (2, 7, Some(2_000), 200)];
        assert_eq!(terms, expected);
        assert_eq!(places.iter().map(|own| own.is_alone).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(timer.grid(&places), None, "no common one");
        let ProbeRecord::Timer(parameters) = timer.parameters() else { panic!("a timer") };
        let counts = (parameters.threads_per_cpu, parameters.total_threads);
        assert_eq!((counts, parameters.interval_step_ns), ((2, Some(3)), Some(500)));
    }

    #[test]
    fn threads_on_each_cpu_have_one_grid_unless_their_intervals_differ() {
        let mut timer = timer(ThreadCount::OnEach(2));
        timer.interval_step_ns = 0;
        assert_eq!(names(&timer), ["cpu2", "cpu2#1", "cpu5", "cpu5#1"]);
        let grid = timer.grid(&timer.places()).unwrap();
        assert_eq!((grid.interval_ns, grid.phases_ns), (1_000, vec![0, 100, 200, 300]));
        let ProbeRecord::Timer(parameters) = timer.parameters() else { panic!("a timer") };
        assert_eq!((parameters.total_threads, parameters.interval_step_ns), (None, None));
    }
}

//! The `timer` probe: threads that sleep until a programmed time, and how late they wake up.
//!
//! One thread per CPU, or several of falling priority. `tardy_hot::wakeup` documents what lies
//! between the clock reads, per kind of wait; `tardy_hot::traced`, what tracing adds to a turn.

pub(super) mod stages;

use std::{io, os::fd::AsRawFd, sync::Arc};

use tardy_hot::{
    ring::{Sample, Writer, ring},
    stop::Stop,
    wakeup::{Absolute, CompiledWake, Counted, Ended, Kept, Periodic, Relative, Series, Until},
};

use self::stages::OfThread;
use super::{
    ArmError, Armed, ExpiryGrid, Probe, Recorded, Schedule, Tracing, Wants,
    measured_thread::LoopEnd,
};
use crate::{
    run::{ProbeRecord, SeriesHead, TimerParameters},
    setup::threads::Terms,
    sys::{cpus::Cpus, sched::Policy, timer},
};

/// How a thread waits for its next expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeKind {
    /// Absolute `clock_nanosleep`.
    Nanosleep,
    /// Relative `clock_nanosleep`.
    Relative,
    /// `read` of a periodic timerfd.
    Timerfd,
}

impl WakeKind {
    /// As on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nanosleep => "nanosleep",
            Self::Relative => "relative",
            Self::Timerfd => "timerfd",
        }
    }

    /// Whether expiries lie on a grid, so that periods can be missed.
    #[must_use]
    pub const fn has_schedule(self) -> bool {
        !matches!(self, Self::Relative)
    }
}

/// A planned timer probe.
#[derive(Debug, Clone)]
pub struct Timer {
    /// The CPUs to measure.
    pub cpus: Cpus,
    /// Threads on each of them.
    pub threads_per_cpu: u32,
    /// Time between expiries, ns.
    pub interval_ns: i64,
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
}

/// One thread to be.
struct ThreadPlan {
    head: SeriesHead,
    terms: Terms,
    phase_ns: i64,
}

impl Timer {
    /// On real-time kernels the timers of ordinary tasks, and those of timerfds, expire in a
    /// softirq: `hrtimer_init_sleeper` and `timerfd_create` of the kernel.
    const fn has_softirq(&self, tracing: &Tracing) -> bool {
        let in_interrupt = !matches!(self.policy, Policy::Other);
        tracing.is_rt && (!in_interrupt || matches!(self.wake, WakeKind::Timerfd))
    }

    /// How long after the programmed expiry that of the kernel may lie, ns: a relative sleep begins
    /// a little after the clock read before it.
    const fn within_ns(&self) -> u64 {
        if self.wake.has_schedule() { 0 } else { self.interval_ns.unsigned_abs() / 2 }
    }

    fn places(&self) -> Vec<ThreadPlan> {
        let mut places = Vec::new();
        for cpu in self.cpus.iter() {
            for number in 0..self.threads_per_cpu {
                let name = match number {
                    0 => format!("cpu{cpu}"),
                    _ => format!("cpu{cpu}#{number}"),
                };
                let period_ns = self.wake.has_schedule().then_some(self.interval_ns);
                let interval_ns = self.interval_ns.max(1);
                let phase_ns =
                    (places.len() as i64 * (self.distance_ns % interval_ns)) % interval_ns;
                let priority = self.priority.saturating_sub(number * self.priority_step);
                places.push(ThreadPlan {
                    head: SeriesHead { name, cpu: Some(cpu), period_ns },
                    terms: Terms { policy: self.policy, priority, cpu, slack_ns: self.slack_ns },
                    phase_ns,
                });
            }
        }
        places
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
            distance_ns: self.distance_ns,
            cpus: self.cpus.to_string(),
            threads_per_cpu: self.threads_per_cpu,
            priority_step: self.priority_step,
        })
    }

    fn heads(&self, tracing: Option<&Tracing>) -> Vec<SeriesHead> {
        let mut heads = Vec::new();
        for ThreadPlan { head, .. } in self.places() {
            let of_stages = tracing.map(|tracing| stages::heads(&head, self.has_softirq(tracing)));
            heads.push(head);
            heads.extend(of_stages.into_iter().flatten());
        }
        heads
    }

    fn arm(&self, wants: &Wants, stop: &Arc<Stop>) -> Result<Armed, ArmError> {
        let mut armed = Armed::new(stop);
        let places = self.places();
        armed.grid = self.wake.has_schedule().then(|| ExpiryGrid {
            interval_ns: self.interval_ns,
            phases_ns: places.iter().map(|place| place.phase_ns).collect(),
        });
        for (number, ThreadPlan { head, terms, phase_ns }) in places.into_iter().enumerate() {
            let series = Arc::new(Series::default());
            let scratch = Arc::new(Series::default());
            let (writer, reader) = wants.ring_samples.map(ring).unzip();
            let traced = wants.tracing.as_ref().map(|tracing| {
                OfThread::new(&head, tracing, number, self.has_softirq(tracing), self.within_ns())
            });
            let (own, others) = traced.unzip();
            let thread = Thread {
                series: Arc::clone(&series),
                scratch: Arc::clone(&scratch),
                writer,
                stages: own,
                stop: Arc::clone(stop),
                wake: self.wake,
                interval_ns: self.interval_ns,
                phase_ns,
                is_alone: self.threads_per_cpu == 1,
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
                armed.traced.push(traced);
            }
        }
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
    stages: Option<OfThread>,
    stop: Arc<Stop>,
    wake: WakeKind,
    interval_ns: i64,
    phase_ns: i64,
    /// On its CPU.
    is_alone: bool,
}

/// The longest that a thread waits for its neighbours at the end.
const PATIENCE_NS: i64 = 100_000_000;

impl Thread {
    fn both_loops(mut self, schedule: Schedule) -> LoopEnd {
        let period_ns = self.interval_ns;
        let end = match self.wake {
            WakeKind::Nanosleep => {
                self.loops_by(schedule, |first_ns| Ok(Absolute::new(first_ns, period_ns)))
            }
            WakeKind::Relative => self.loops_by(schedule, |_| Ok(Relative::new(period_ns))),
            WakeKind::Timerfd => self.loops_by_timerfd(schedule),
        };
        if !self.is_alone {
            // Those of lower priority may have their last expiry still before them; what comes now
            // would be a latency of theirs.
            let wait_ns = self.interval_ns.clamp(0, PATIENCE_NS).unsigned_abs();
            std::thread::sleep(std::time::Duration::from_nanos(wait_ns));
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
        let warmed = warm.count(&mut scratch, warm_until, &self.stop);
        let Schedule { end_ns, samples, stop_over_ns, .. } = schedule;
        let until = Until { end_ns, samples, stop_over_ns };
        let series = Arc::clone(&self.series);
        let (writer, stages) = (self.writer.take(), self.stages.take());
        let stop = &self.stop;
        LoopEnd::after_warm_up(warmed, || match (writer, stages) {
            (Some(writer), None) => wake.keep(&mut Kept(series, writer), until, stop),
            (None, None) => wake.count(&mut Counted(series), until, stop),
            (Some(writer), Some(stages)) => {
                stages.measured(&mut wake, Kept(series, writer), until, stop)
            }
            (None, Some(stages)) => stages.measured(&mut wake, Counted(series), until, stop),
        })
    }
}

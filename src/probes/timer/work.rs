//! What a timer thread does after each wake-up, where it has work to do: the computation phase of a
//! program with a period.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
};

use tardy_hot::{
    wakeup::{Series, Sink},
    worked::Worked,
};

use super::stages::{SharedWork, ThreadTrace, WorkTrace};
use crate::{
    probes::{
        FigureValue, Recorded,
        work_speed::{fastest, loops_of, measure_on, send},
    },
    run::{FigureHead, FigureUnit, RESPONSE, SeriesHead, WORK_FIGURE},
    setup::threads::ThreadConfig,
    sys::{cpus::Cpus, sched::Policy},
};

/// The work of each turn.
#[derive(Debug, Clone, Copy)]
pub struct TimerWork {
    /// The time that the work takes alone, ns.
    pub work_ns: i64,
    /// What stands for a millisecond of it, loops; absent: what each CPU does in one.
    pub loops_per_ms: Option<u64>,
    /// What takes longer from the expiry on is late, ns; absent: what takes longer than usual.
    pub deadline_ns: Option<i64>,
}

/// The series of the responses of the thread of `head`: with its period, as a period that passed
/// meanwhile had no turn.
pub(super) fn response_head(head: &SeriesHead) -> SeriesHead {
    SeriesHead { period_ns: head.period_ns, ..head.stage(RESPONSE) }
}

/// The figures of how much work the CPUs do.
pub(super) fn figures(cpus: &Cpus) -> Vec<FigureHead> {
    let unit = FigureUnit::LoopsPerMillisecond;
    let of = |cpu| FigureHead { name: format!("{WORK_FIGURE}/cpu{cpu}"), unit: unit.clone() };
    cpus.iter().map(of).collect()
}

/// What the threads of a run have in common while they are made.
pub(super) struct WorkPlan {
    work: TimerWork,
    figures: Sender<FigureValue>,
    /// Of the CPU whose threads are being made: its number, and the loops of a turn.
    of_cpu: Option<(u32, u64)>,
    next_figure: usize,
}

impl WorkPlan {
    pub(super) fn new(work: TimerWork) -> (Self, Receiver<FigureValue>) {
        let (figures, receiver) = channel();
        (Self { work, figures, of_cpu: None, next_figure: 0 }, receiver)
    }

    /// That of the next thread, whose CPU is measured unless the thread before is on it too.
    ///
    /// # Errors
    /// The CPU cannot be measured.
    pub(super) fn next(
        &mut self,
        head: &SeriesHead,
        terms: &ThreadConfig,
    ) -> io::Result<WorkOfThread> {
        let (loops, speed) = match self.of_cpu {
            Some((cpu, loops)) if cpu == terms.cpu => (loops, None),
            _ => {
                let speed = self.measured(terms)?;
                let loops_per_ms = self.work.loops_per_ms.unwrap_or_else(|| fastest(&speed.values));
                (loops_of(self.work.work_ns, loops_per_ms), Some(speed))
            }
        };
        self.of_cpu = Some((terms.cpu, loops));
        Ok(WorkOfThread {
            head: response_head(head),
            loops,
            period_ns: head.period_ns.unwrap_or(0),
            response: Arc::default(),
            scratch: Arc::default(),
            deadline_ns: self.work.deadline_ns,
            trace: None,
            speed,
        })
    }

    /// How fast that CPU is.
    fn measured(&mut self, terms: &ThreadConfig) -> io::Result<SpeedBefore> {
        // A budget of CPU time would only make it longer.
        let terms = match terms.policy {
            Policy::Deadline(_) => {
                ThreadConfig { policy: Policy::Other, priority: 0, ..terms.clone() }
            }
            _ => terms.clone(),
        };
        let values = measure_on(&terms)?;
        let figure = self.next_figure;
        self.next_figure += 1;
        Ok(SpeedBefore { figure, values, to: self.figures.clone() })
    }
}

/// What a thread that works owns.
pub(super) struct WorkOfThread {
    head: SeriesHead,
    loops: u64,
    period_ns: i64,
    response: Arc<Series>,
    /// Takes the responses of the warm-up.
    scratch: Arc<Series>,
    deadline_ns: Option<i64>,
    /// How late ones are handed on, if they are.
    trace: Option<WorkTrace>,
    /// Of the first thread of a CPU.
    speed: Option<SpeedBefore>,
}

/// How fast a CPU was before the run.
struct SpeedBefore {
    /// The place of the figure that has it.
    figure: usize,
    /// Loops in a millisecond.
    values: Vec<f64>,
    /// Where the figure goes.
    to: Sender<FigureValue>,
}

impl WorkOfThread {
    /// The series that is recorded.
    pub(super) fn recorded(&self) -> Recorded {
        let series = Arc::clone(&self.response);
        Recorded { head: self.head.clone(), series, samples: None }
    }

    /// Has late ones handed on, to whom follows the stages of the thread too. None are where the
    /// thread itself has no record of its wake-ups.
    pub(super) fn trace(&mut self, stages: &ThreadTrace) -> Option<(SharedWork, Arc<Series>)> {
        let (own, others) = WorkTrace::new(stages, self.deadline_ns)?;
        self.trace = Some(own);
        Some((others, Arc::clone(&self.scratch)))
    }

    /// For the measured loop, where late ones are handed on.
    pub(super) fn take_trace(&mut self) -> Option<WorkTrace> {
        self.trace.take()
    }

    /// A sink that works in each turn of the warm-up.
    pub(super) fn warming<S: Sink>(&self, inner: S) -> Worked<S> {
        self.sink(inner, &self.scratch)
    }

    /// A sink that works in each turn that is measured.
    pub(super) fn measuring<S: Sink>(&self, inner: S) -> Worked<S> {
        self.sink(inner, &self.response)
    }

    fn sink<S: Sink>(&self, inner: S, response: &Arc<Series>) -> Worked<S> {
        let (loops, period_ns) = (self.loops, self.period_ns);
        Worked { inner, response: Arc::clone(response), loops, period_ns, wakeup_missed: 0 }
    }

    /// Says how fast the CPU was before `start_ns`, and how fast it is now that nothing is
    /// measured.
    pub(super) fn send_speeds(&self, start_ns: i64) {
        let Some(SpeedBefore { figure, values: before, to }) = &self.speed else { return };
        send((*figure, to), before, start_ns);
    }
}

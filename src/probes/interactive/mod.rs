//! The `interactive` probe: simulated audio, video, X and game tasks, as interbench has them, one
//! after another on one CPU.
//!
//! `tardy_hot::frames` documents the loops,
//! `docs/reference/probes/classics.md` what each figure is and where interbench differs.

pub(super) mod flags;
mod task;
mod thread;
mod order;

use std::sync::{
    Arc,
    mpsc::{Sender, channel},
};

use tardy_hot::{ring::ring, stop::Stop, wakeup::Series};

pub use self::task::{AUDIO, GAME, SimulatedTask, TaskRhythm, VIDEO, X};
use self::{order::TaskOrder, thread::TaskThread};
use super::{
    ArmError, ArmOptions, Armed, FigureValue, Probe, Recorded, TracedThread, Tracing,
    timer::stages::{self, ThreadTrace},
    work_speed,
};
use crate::{
    run::{FigureHead, FigureUnit, InteractiveParameters, ProbeRecord, SeriesHead, WORK_FIGURE},
    setup::threads::ThreadConfig,
    sys::sched::Policy,
};

/// A planned interactive probe.
#[derive(Debug, Clone)]
pub struct Interactive {
    /// The tasks, in the order in which they are measured.
    pub tasks: Vec<SimulatedTask>,
    /// What each of them runs as.
    pub terms: ThreadConfig,
    /// What stands for a millisecond of work, loops; absent: what this CPU does in one.
    pub loops_per_ms: Option<u64>,
}

impl Interactive {
    fn head(&self, task: &SimulatedTask) -> SeriesHead {
        SeriesHead { name: task.name.into(), cpu: Some(self.terms.cpu), period_ns: None }
    }

    /// As the timer probe has it.
    const fn has_softirq(&self, tracing: &Tracing) -> bool {
        tracing.is_rt && matches!(self.terms.policy, Policy::Other)
    }
}

impl Probe for Interactive {
    fn name(&self) -> &'static str {
        "interactive"
    }

    fn parameters(&self) -> ProbeRecord {
        ProbeRecord::Interactive(InteractiveParameters {
            tasks: self.tasks.iter().map(SimulatedTask::record).collect(),
            cpu: self.terms.cpu,
            loops_per_ms: self.loops_per_ms,
        })
    }

    fn heads(&self, tracing: Option<&Tracing>) -> Vec<SeriesHead> {
        let mut heads = Vec::new();
        for task in &self.tasks {
            let head = self.head(task);
            let of_stages = tracing
                .filter(|_| task.sleeps())
                .map(|tracing| stages::heads(&head, self.has_softirq(tracing)));
            heads.push(head);
            heads.extend(of_stages.into_iter().flatten());
        }
        heads
    }

    fn figures(&self) -> Vec<FigureHead> {
        let work = FigureHead { name: WORK_FIGURE.into(), unit: FigureUnit::LoopsPerMillisecond };
        let of_tasks = self.tasks.iter().flat_map(SimulatedTask::figures);
        [work].into_iter().chain(of_tasks).collect()
    }

    fn arm(&self, wants: &ArmOptions, stop: &Arc<Stop>) -> Result<Armed, ArmError> {
        let refused = |source| ArmError::ThreadConfig { series: WORK_FIGURE.into(), source };
        let speeds = work_speed::measure_on(&self.terms).map_err(refused)?;
        let mut making = Making {
            wants,
            stop: Arc::clone(stop),
            loops_per_ms: self.loops_per_ms.unwrap_or_else(|| work_speed::fastest(&speeds)),
            order: Arc::default(),
            speeds: Some(speeds),
            next_figure: 1,
        };
        let mut armed = Armed::new(stop);
        let (send, figures) = channel();
        armed.figures = Some(figures);
        for number in 0..self.tasks.len() {
            making.add(self, number, &mut armed, send.clone())?;
        }
        Ok(armed)
    }
}

/// What the threads of a run have in common while they are made.
struct Making<'a> {
    wants: &'a ArmOptions,
    stop: Arc<Stop>,
    loops_per_ms: u64,
    order: Arc<TaskOrder>,
    /// Until the last thread has them, which measures the same again at the end.
    speeds: Option<Vec<f64>>,
    /// The place of the first figure of the next task.
    next_figure: usize,
}

impl Making<'_> {
    fn add(
        &mut self,
        probe: &Interactive,
        number: usize,
        armed: &mut Armed,
        figures: Sender<FigureValue>,
    ) -> Result<(), ArmError> {
        let Some(task) = probe.tasks.get(number).copied() else { return Ok(()) };
        let head = probe.head(&task);
        let (series, scratch): (Arc<Series>, Arc<Series>) = Default::default();
        let (writer, samples) = self.wants.ring_samples.map(ring).unzip();
        let tracing = self.wants.tracing.as_ref();
        let (own, others) = tracing
            .filter(|_| task.sleeps())
            .map(|tracing| ThreadTrace::new(&head, tracing, number, probe.has_softirq(tracing), 0))
            .unzip();
        let is_last = number + 1 == probe.tasks.len();
        let thread = TaskThread {
            task,
            turn: (number, probe.tasks.len()),
            loops_per_ms: self.loops_per_ms,
            series: Arc::clone(&series),
            scratch: Arc::clone(&scratch),
            writer,
            stages: own,
            figures: (self.next_figure, figures),
            speeds: self.speeds.take_if(|_| is_last),
            order: Arc::clone(&self.order),
            stop: Arc::clone(&self.stop),
        };
        self.next_figure += task.figures().len();
        let (name, cpu) = (head.name.clone(), probe.terms.cpu);
        let recorded = Recorded { head, series: Arc::clone(&series), samples };
        armed.spawn(recorded, Some(probe.terms.clone()), move |schedule| thread.run(schedule))?;
        let (Some(_), Some((_, found))) = (tracing, armed.found.last()) else { return Ok(()) };
        match others {
            Some(others) => {
                let (recorded, traced) = others.known(name, cpu, found, scratch, series);
                armed.recorded.extend(recorded);
                armed.traced.push(traced);
            }
            // It is followed, so that the others stay at their places, and has no wake-ups.
            None => armed.traced.push(TracedThread::far(&name, cpu, found)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

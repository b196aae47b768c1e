//! The thread of a task: it waits for its turn, warms up, waits again, and does its frames.

use std::sync::{Arc, mpsc::Sender};

use tardy_hot::{
    clock::now_ns,
    frames::{Bursts, BusyTask, Even, Frames, Rising, TaskCpu, ThisCpu, flat_out, periodic},
    ring::{Sample, Writer},
    stop::Stop,
    wakeup::{Counted, Ended, Kept, Series, Sink, Until},
};

use super::{
    order::{TaskOrder, share},
    task::{SimulatedTask, SliceOfTask, TaskRhythm},
};
use crate::{
    probes::{
        FigureValue, Schedule,
        measured_thread::LoopEnd,
        timer::stages::{MeasuredLoop, ThreadTrace},
        work_speed::{self, loops_of},
    },
    sys::clock::thread_cpu_ns,
};

/// The greatest number of slices of a task's time; each slice is one repeat of its metrics.
const SLICES: i64 = 10;

/// The least number of frames in a slice.
const FRAMES_OF_SLICE: i64 = 4;

/// What a measuring thread owns.
pub(super) struct TaskThread {
    pub(super) task: SimulatedTask,
    /// Its number, of how many.
    pub(super) turn: (usize, usize),
    pub(super) loops_per_ms: u64,
    pub(super) series: Arc<Series>,
    /// Takes the samples of the warm-up, and stays until the end: freeing memory within the run
    /// would interrupt every CPU.
    pub(super) scratch: Arc<Series>,
    pub(super) writer: Option<Writer<Sample>>,
    /// Where stages go, if they are recorded.
    pub(super) stages: Option<ThreadTrace>,
    /// The place of its first figure, and where the figures go when its loop is over.
    pub(super) figures: (usize, Sender<FigureValue>),
    /// How much work the CPU did in a millisecond before; only the last task has them.
    pub(super) speeds: Option<Vec<f64>>,
    pub(super) order: Arc<TaskOrder>,
    pub(super) stop: Arc<Stop>,
}

impl TaskThread {
    /// The whole of it.
    pub(super) fn run(mut self, schedule: Schedule) -> LoopEnd {
        let Schedule { warmup_ns, start_ns, end_ns, samples, stop_over_ns } = schedule;
        let (number, of) = self.turn;
        let warm = self.turn_of((warmup_ns, start_ns), number);
        let warm = TaskLoop { samples: u64::MAX, stop_over_ns: i64::MAX, ..warm };
        let mut slices = Vec::with_capacity(SLICES as usize);
        let scratch = Arc::clone(&self.scratch);
        let warmed = warm.into_slices(&mut slices).record_into(&mut Counted(scratch));
        self.order.ended(number);
        slices.clear();
        let (series, writer, stages) =
            (Arc::clone(&self.series), self.writer.take(), self.stages.take());
        let mut end = LoopEnd::after_warm_up(warmed, || {
            let own = self.turn_of((start_ns, end_ns), of + number);
            let own = TaskLoop { samples, stop_over_ns, ..own }.into_slices(&mut slices);
            match (writer, stages) {
                (Some(writer), Some(stages)) => stages.measured(Kept(series, writer), own),
                (Some(writer), None) => own.record_into(&mut Kept(series, writer)),
                (None, Some(stages)) => stages.measured(Counted(series), own),
                (None, None) => own.record_into(&mut Counted(series)),
            }
        });
        end.end_ns = now_ns();
        self.order.ended(of + number);
        self.send(&slices);
        self.send_speeds(start_ns);
        end
    }

    /// Waits for turn `number`, whose task has its share of that time.
    fn turn_of(&self, (from_ns, to_ns): (i64, i64), number: usize) -> TaskLoop<'_> {
        let (from_ns, to_ns) = share(from_ns, to_ns, self.turn.0, self.turn.1);
        let first_ns = self.order.wait(number, from_ns, &self.stop);
        TaskLoop {
            task: self.task,
            loops_per_ms: self.loops_per_ms,
            from_ns: first_ns,
            to_ns,
            samples: u64::MAX,
            stop_over_ns: i64::MAX,
            stop: &self.stop,
        }
    }

    fn send(&self, slices: &[(i64, SliceOfTask)]) {
        let (first, to) = &self.figures;
        for (end_ns, slice) in slices {
            for (place, value) in
                slice.values(&self.task, self.loops_per_ms).into_iter().enumerate()
            {
                // A receiver that is gone does not need the value.
                let _ = to.send(FigureValue { figure: first + place, end_ns: *end_ns, value });
            }
        }
    }

    /// How fast the CPU was before the run, and how fast it is now that nothing is measured.
    fn send_speeds(&self, start_ns: i64) {
        let Some(before) = &self.speeds else { return };
        work_speed::send((0, &self.figures.1), before, start_ns);
    }
}

/// A CPU that accounts for what this thread had of it: this machine's, or one of a test.
pub(super) trait AccountedCpu: TaskCpu {
    /// CPU time of this thread, ns.
    fn cpu_ns(&mut self) -> i64;
}

impl AccountedCpu for ThisCpu {
    fn cpu_ns(&mut self) -> i64 {
        thread_cpu_ns()
    }
}

/// One turn of a task.
pub(super) struct TaskLoop<'a> {
    pub(super) task: SimulatedTask,
    pub(super) loops_per_ms: u64,
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
    pub(super) samples: u64,
    pub(super) stop_over_ns: i64,
    pub(super) stop: &'a Stop,
}

impl<'a> TaskLoop<'a> {
    pub(super) fn into_slices(
        self,
        slices: &'a mut Vec<(i64, SliceOfTask)>,
    ) -> SlicedLoop<'a, ThisCpu> {
        self.into_slices_on(ThisCpu, slices)
    }

    pub(super) fn into_slices_on<C>(
        self,
        cpu: C,
        slices: &'a mut Vec<(i64, SliceOfTask)>,
    ) -> SlicedLoop<'a, C> {
        SlicedLoop { turn: self, cpu, slices }
    }

    /// When each of its slices ends, ns.
    fn slice_ends(&self) -> Vec<i64> {
        if self.to_ns == i64::MAX {
            return vec![i64::MAX];
        }
        let all_ns = (self.to_ns - self.from_ns).max(0);
        let many = (all_ns / (FRAMES_OF_SLICE * self.task.frame_ns())).clamp(1, SLICES);
        (1..=many).map(|number| self.from_ns + all_ns / many * number).collect()
    }
}

/// The same, and where what came of it goes: the end of each slice, ns, with its counts.
pub(super) struct SlicedLoop<'a, C> {
    turn: TaskLoop<'a>,
    cpu: C,
    slices: &'a mut Vec<(i64, SliceOfTask)>,
}

impl<C: AccountedCpu> MeasuredLoop for SlicedLoop<'_, C> {
    fn record_into<S: Sink>(self, sink: &mut S) -> Ended {
        let TaskLoop { task, loops_per_ms, from_ns, .. } = self.turn;
        let loops = |ns| loops_of(ns, loops_per_ms);
        match task.rhythm {
            TaskRhythm::Even { period_ns, work_ns } => {
                self.periodic(Frames::new(from_ns, period_ns, Even(loops(work_ns))), sink)
            }
            TaskRhythm::Rising { period_ns } => {
                let bursts = Rising::new(loops(period_ns / 100));
                self.periodic(Frames::new(from_ns, period_ns, bursts), sink)
            }
            TaskRhythm::FlatOut { frame_ns } => {
                self.flat_out(BusyTask { loops: loops(frame_ns), frame_ns }, sink)
            }
        }
    }
}

impl<C: AccountedCpu> SlicedLoop<'_, C> {
    const fn until(&self, end_ns: i64, samples: u64) -> Until {
        Until { end_ns, samples, stop_over_ns: self.turn.stop_over_ns }
    }

    /// Frames, slice by slice. The last begins a period before the end, so that it can be done by
    /// then.
    fn periodic<B: Bursts, S: Sink>(mut self, mut frames: Frames<B>, sink: &mut S) -> Ended {
        let (first_ns, period_ns) = (frames.next_ns, frames.period_ns);
        let last_ns = self.turn.to_ns.saturating_sub(period_ns).saturating_add(1);
        let (mut ended, mut left, mut from) = (Ended::Done, self.turn.samples, 0);
        for slice_end_ns in self.turn.slice_ends() {
            let until = self.until(slice_end_ns.min(last_ns), left);
            (ended, left) = periodic(&mut frames, &mut self.cpu, sink, until, self.turn.stop);
            let is_over = ended != Ended::Done || left == 0;
            // Also of frames that were left out and would lie in the slices that follow.
            let planned_ns = if is_over { frames.next_ns.min(until.end_ns) } else { until.end_ns };
            let to = periods((planned_ns - first_ns).max(0), period_ns).max(from);
            let counts = std::mem::take(&mut frames.counts);
            self.slices.push((planned_ns, SliceOfTask::Frames { frames: (from, to), counts }));
            from = to;
            if is_over {
                break;
            }
        }
        ended
    }

    /// Frames without a pause, slice by slice, with the CPU time that the kernel accounts for them.
    fn flat_out<S: Sink>(mut self, task: BusyTask, sink: &mut S) -> Ended {
        let (mut ended, mut left) = (Ended::Done, self.turn.samples);
        // Ended early only by the stop flag, which the loop sees.
        let _ = self.cpu.sleep_until(self.turn.from_ns);
        let mut before = (self.cpu.now_ns(), self.cpu.cpu_ns());
        for slice_end_ns in self.turn.slice_ends() {
            let until = self.until(slice_end_ns, left);
            (ended, left) = flat_out(task, &mut self.cpu, sink, until, self.turn.stop);
            let now = (self.cpu.now_ns(), self.cpu.cpu_ns());
            let (took_ns, cpu_ns) = (now.0 - before.0, now.1 - before.1);
            if took_ns >= task.frame_ns {
                self.slices.push((now.0, SliceOfTask::Time { took_ns, cpu_ns }));
                before = now;
            }
            if ended != Ended::Done || left == 0 {
                break;
            }
        }
        ended
    }
}

/// How many periods begin within `ns` of the first one.
pub(super) const fn periods(ns: i64, period_ns: i64) -> u64 {
    ns.unsigned_abs().div_ceil(period_ns.unsigned_abs())
}

//! The simulated tasks: how often each has a frame of work, how much, and what becomes of it.

use tardy_hot::frames::{FrameCounts, STEPS};

use crate::{
    probes::work_speed::loops_of,
    run::{FigureHead, FigureUnit, InteractiveTask},
};

/// A task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulatedTask {
    /// `audio`, ...: also the name of its series.
    pub name: &'static str,
    /// When it works.
    pub rhythm: TaskRhythm,
}

/// When a task has work to do, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskRhythm {
    /// The same in each period.
    Even {
        /// From the start of one frame to that of the next, ns.
        period_ns: i64,
        /// The time that a frame takes alone, ns.
        work_ns: i64,
    },
    /// From one period to the next a hundredth of it more, from nothing to all of it.
    Rising {
        /// From the start of one frame to that of the next, ns.
        period_ns: i64,
    },
    /// All the time, frame after frame.
    FlatOut {
        /// The time that a frame takes alone, ns.
        frame_ns: i64,
    },
}

/// Sound in buffers of 50 ms, which take 5% of a CPU.
pub const AUDIO: SimulatedTask = SimulatedTask {
    name: "audio",
    rhythm: TaskRhythm::Even { period_ns: 50_000_000, work_ns: 2_500_000 },
};
/// 60 pictures a second, which take 40% of a CPU.
pub const VIDEO: SimulatedTask = SimulatedTask {
    name: "video",
    rhythm: TaskRhythm::Even { period_ns: 16_666_667, work_ns: 6_666_667 },
};
/// A window that is dragged over the screen: bursts of 0 to 100% of 100 ms.
pub const X: SimulatedTask =
    SimulatedTask { name: "x", rhythm: TaskRhythm::Rising { period_ns: 100_000_000 } };
/// A game without a limit of its frame rate; it is looked at after each 100 ms of work.
pub const GAME: SimulatedTask =
    SimulatedTask { name: "game", rhythm: TaskRhythm::FlatOut { frame_ns: 100_000_000 } };

impl SimulatedTask {
    /// A periodic task of the user's own.
    #[must_use]
    pub const fn custom(period_ns: i64, work_ns: i64) -> Self {
        Self { name: "custom", rhythm: TaskRhythm::Even { period_ns, work_ns } }
    }

    /// The time from frame to frame, or that of a frame which is done alone; ns.
    #[must_use]
    pub const fn frame_ns(&self) -> i64 {
        match self.rhythm {
            TaskRhythm::Even { period_ns, .. } | TaskRhythm::Rising { period_ns } => period_ns,
            TaskRhythm::FlatOut { frame_ns } => frame_ns,
        }
    }

    /// Whether it may keep its CPU from all others for a whole frame.
    #[must_use]
    pub const fn may_fill_cpu(&self) -> bool {
        match self.rhythm {
            TaskRhythm::Even { period_ns, work_ns } => work_ns >= period_ns,
            TaskRhythm::Rising { .. } | TaskRhythm::FlatOut { .. } => true,
        }
    }

    /// Whether it sleeps between frames, by a timer.
    #[must_use]
    pub const fn sleeps(&self) -> bool {
        !matches!(self.rhythm, TaskRhythm::FlatOut { .. })
    }

    /// As in `run.json`.
    pub(super) fn record(&self) -> InteractiveTask {
        let (period_ns, work_ns) = match self.rhythm {
            TaskRhythm::Even { period_ns, work_ns } => (Some(period_ns), Some(work_ns)),
            TaskRhythm::Rising { period_ns } => (Some(period_ns), None),
            TaskRhythm::FlatOut { frame_ns } => (None, Some(frame_ns)),
        };
        InteractiveTask { name: self.name.into(), period_ns, work_ns }
    }

    /// Its figures, in the order of [`SliceOfTask::values`].
    pub(super) fn figures(&self) -> Vec<FigureHead> {
        let head = |what: &str, unit| FigureHead { name: format!("{}/{what}", self.name), unit };
        let mut heads = vec![head("cpu", FigureUnit::Percent)];
        if self.sleeps() {
            heads.push(head("deadlines", FigureUnit::Percent));
            heads.push(head("overrun", FigureUnit::Microseconds));
        }
        heads
    }

    /// The work of the frames `from..to` of a periodic task, loops.
    fn wanted(&self, frames: (u64, u64), loops_per_ms: u64) -> u64 {
        match self.rhythm {
            TaskRhythm::Even { work_ns, .. } => {
                loops_of(work_ns, loops_per_ms) * frames.1.saturating_sub(frames.0)
            }
            TaskRhythm::Rising { period_ns } => {
                let hundredths = |end: u64| {
                    let rest = end % STEPS;
                    end / STEPS * (STEPS * (STEPS - 1) / 2) + rest * rest.saturating_sub(1) / 2
                };
                let all = hundredths(frames.1) - hundredths(frames.0.min(frames.1));
                loops_of(period_ns / 100, loops_per_ms) * all
            }
            TaskRhythm::FlatOut { .. } => 0,
        }
    }
}

/// What became of a task in a slice of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SliceOfTask {
    /// Of a periodic task, for which these frames were planned, by their numbers.
    Frames { frames: (u64, u64), counts: FrameCounts },
    /// Of one that never sleeps.
    Time { took_ns: i64, cpu_ns: i64 },
}

impl SliceOfTask {
    /// The values of the figures of `task`; what there is nothing to say of is not a number.
    pub(super) fn values(&self, task: &SimulatedTask, loops_per_ms: u64) -> Vec<f64> {
        let percent = |part: f64, whole: f64| part / whole * 100.0;
        match *self {
            Self::Frames { frames, counts } => {
                let planned = frames.1.saturating_sub(frames.0);
                let done = counts.met + counts.overrun;
                vec![
                    percent(counts.loops as f64, task.wanted(frames, loops_per_ms) as f64),
                    percent(counts.met as f64, planned as f64),
                    counts.overrun_ns as f64 / 1e3 / done as f64,
                ]
            }
            Self::Time { took_ns, cpu_ns } => vec![percent(cpu_ns as f64, took_ns as f64)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_frames_want_is_the_sum_of_their_bursts_also_from_the_middle_of_a_round() {
        // A hundredth of 100 ms is 1 ms, which here is one loop.
        for (frames, sum) in
            [((0, 0), 0), ((0, 101), 5_050), ((100, 103), 101), ((0, 202), 10_100), ((3, 5), 7)]
        {
            assert_eq!(X.wanted(frames, 1), sum, "{frames:?}");
        }
        assert_eq!(AUDIO.wanted((10, 14), 1_000), 4 * 2_500);
        assert_eq!((loops_of(0, 1_000), loops_of(1, 1)), (0, 1));
    }

    #[test]
    fn of_a_slice_the_work_done_the_frames_in_time_and_the_lateness_of_others_are_told() {
        let counts = FrameCounts { met: 6, overrun: 2, overrun_ns: 8_000_000, loops: 8 * 2_500 };
        let slice = SliceOfTask::Frames { frames: (20, 30), counts };
        assert_eq!(slice.values(&AUDIO, 1_000), [80.0, 60.0, 1_000.0]);
        let slice = SliceOfTask::Time { took_ns: 2_000, cpu_ns: 500 };
        assert_eq!(slice.values(&GAME, 1_000), [25.0]);
        for task in [AUDIO, VIDEO, X, GAME] {
            let slice = match task.sleeps() {
                true => SliceOfTask::Frames { frames: (0, 0), counts: FrameCounts::default() },
                false => SliceOfTask::Time { took_ns: 0, cpu_ns: 0 },
            };
            let values = slice.values(&task, 1_000);
            assert_eq!(values.len(), task.figures().len());
            assert!(values.iter().all(|value| value.is_nan()), "{values:?}");
        }
    }
}

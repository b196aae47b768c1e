//! The loops of the `interactive` probe: tasks that have a frame of work to do, again and again.
//!
//! # What a sample is
//!
//! Of [`periodic`] it is how late a frame began: the clock after the sleep, less the start of its
//! period. In it is what [`crate::wakeup::Absolute`] has. Of [`flat_out`] it is how late a frame
//! was done: the clock after its work, less its start and the time that its work takes alone.
//!
//! Per turn there is one sleep, or none, one clock read after it, the work, and one clock read
//! after that. The sample is recorded before the work begins, so that the work of a frame is in no
//! latency but those of the frames that it delays.

use core::{ffi::c_int, hint::black_box};

use crate::{
    clock,
    ring::Sample,
    stop::Stop,
    wakeup::{self, Ended, Sink, Until},
};

/// Where a task runs: this machine, or one of a test.
pub trait TaskCpu {
    /// The clock, ns.
    fn now_ns(&mut self) -> i64;

    /// Sleeps until then, ns.
    ///
    /// # Errors
    /// The `errno` of the system call; `EINTR` when a signal ended the sleep.
    fn sleep_until(&mut self, t_ns: i64) -> Result<(), c_int>;

    /// Does `loops` loops of work.
    fn work(&mut self, loops: u64);
}

/// This machine: `CLOCK_MONOTONIC`, absolute sleeps, and [`work`].
#[derive(Debug, Clone, Copy)]
pub struct ThisCpu;

impl TaskCpu for ThisCpu {
    #[inline(always)]
    fn now_ns(&mut self) -> i64 {
        clock::now_ns()
    }

    #[inline(always)]
    fn sleep_until(&mut self, t_ns: i64) -> Result<(), c_int> {
        match wakeup::sleep(libc::TIMER_ABSTIME, t_ns) {
            0 => Ok(()),
            errno => Err(errno),
        }
    }

    #[inline(always)]
    fn work(&mut self, loops: u64) {
        work(loops);
    }
}

/// Loops that take time and nothing else: each waits for the one before, and none touches more than
/// one word of the stack. Not inlined, so that they take as long wherever they are called.
#[inline(never)]
pub fn work(loops: u64) {
    let mut state = 1_u64;
    for _ in 0..loops {
        state = black_box(state.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1));
    }
    black_box(state);
}

/// How much work each frame has.
pub trait Bursts {
    /// The loops of the next frame.
    fn take(&mut self) -> u64;

    /// Leaves out this number of frames.
    fn skip(&mut self, frames: u64);
}

/// This number of loops in every frame.
#[derive(Debug, Clone, Copy)]
pub struct Even(pub u64);

impl Bursts for Even {
    #[inline(always)]
    fn take(&mut self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn skip(&mut self, _: u64) {}
}

/// The steps of a [`Rising`] task: 0, 1, ... 100 hundredths of its period.
pub const STEPS: u64 = 101;

/// From frame to frame a hundredth of the period more, from nothing to all of it, and again.
#[derive(Debug, Clone, Copy)]
pub struct Rising {
    hundredth: u64,
    next: u64,
}

impl Rising {
    /// `hundredth` loops take a hundredth of the period.
    #[must_use]
    pub const fn new(hundredth: u64) -> Self {
        Self { hundredth, next: 0 }
    }
}

impl Bursts for Rising {
    #[inline(always)]
    fn take(&mut self) -> u64 {
        let loops = self.next * self.hundredth;
        self.skip(1);
        loops
    }

    #[inline(always)]
    fn skip(&mut self, frames: u64) {
        self.next = (self.next + frames) % STEPS;
    }
}

/// What became of the frames that were done; the others of their time were left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Done before the next period began.
    pub met: u64,
    /// Done, but later.
    pub overrun: u64,
    /// By how much those were late in all, ns.
    pub overrun_ns: i64,
    /// The work of all of them, loops.
    pub loops: u64,
}

/// A task that has a frame of work in each period.
#[derive(Debug)]
pub struct Frames<B> {
    /// The start of the next period, ns.
    pub next_ns: i64,
    /// The length of each, ns; positive.
    pub period_ns: i64,
    /// The work of each frame.
    pub bursts: B,
    /// What became of them; to be taken whenever the loop is not running.
    pub counts: FrameCounts,
}

impl<B: Bursts> Frames<B> {
    /// The first period begins at `first_ns`.
    #[must_use]
    pub fn new(first_ns: i64, period_ns: i64, bursts: B) -> Self {
        Self { next_ns: first_ns, period_ns, bursts, counts: FrameCounts::default() }
    }

    /// The frame of `loops` was done at `done_ns`. If that was late, the periods that had begun by
    /// then have no frame.
    #[inline(always)]
    fn done(&mut self, loops: u64, done_ns: i64) {
        self.counts.loops += loops;
        self.next_ns += self.period_ns;
        let late_ns = done_ns - self.next_ns;
        if late_ns <= 0 {
            self.counts.met += 1;
            return;
        }
        self.counts.overrun += 1;
        self.counts.overrun_ns += late_ns;
        self.drop_begun(late_ns);
    }

    /// Leaves out the period that is next and those that begin in the `late_ns` after its start.
    #[inline(always)]
    fn drop_begun(&mut self, late_ns: i64) {
        let begun = late_ns.checked_div(self.period_ns).unwrap_or(0) + 1;
        self.bursts.skip(begun as u64);
        self.next_ns += begun * self.period_ns;
    }
}

/// Sleeps until a period begins, records how late that was, and does the frame's work; until
/// `until` or `stop` ends it. A frame whose period is over when the task wakes up is left out.
/// Returns why it ended, and how many samples of `until` are left.
///
/// Not inlined, so that the loop stands alone in a profile.
#[inline(never)]
pub fn periodic<C: TaskCpu, B: Bursts, S: Sink>(
    frames: &mut Frames<B>,
    cpu: &mut C,
    sink: &mut S,
    until: Until,
    stop: &Stop,
) -> (Ended, u64) {
    let mut left = until.samples;
    while left > 0 && frames.next_ns < until.end_ns {
        let t_ns = frames.next_ns;
        match cpu.sleep_until(t_ns) {
            Ok(()) => {}
            Err(libc::EINTR) if !stop.is_set() => continue,
            Err(_) if stop.is_set() => return (Ended::Stopped, left),
            Err(errno) => return (Ended::Failed(errno), left),
        }
        let latency_ns = cpu.now_ns() - t_ns;
        sink.take(Sample { t_ns, latency_ns });
        if latency_ns > until.stop_over_ns {
            stop.set_over(latency_ns);
        }
        if stop.is_set() {
            return (Ended::Stopped, left);
        }
        if latency_ns < frames.period_ns {
            let loops = frames.bursts.take();
            cpu.work(loops);
            frames.done(loops, cpu.now_ns());
        } else {
            frames.drop_begun(latency_ns);
        }
        left -= 1;
    }
    (Ended::Done, left)
}

/// A task that never sleeps: frame after frame of the same work.
#[derive(Debug, Clone, Copy)]
pub struct BusyTask {
    /// The work of a frame.
    pub loops: u64,
    /// So long that takes alone, ns.
    pub frame_ns: i64,
}

/// Does frame after frame, and records of each how late it was done, 0 where it was not; until
/// `until` or `stop` ends it. No frame begins that would end after `until` even alone.
/// Returns why it ended, and how many samples of `until` are left.
#[inline(never)]
pub fn flat_out<C: TaskCpu, S: Sink>(
    task: BusyTask,
    cpu: &mut C,
    sink: &mut S,
    until: Until,
    stop: &Stop,
) -> (Ended, u64) {
    let mut left = until.samples;
    let mut due_ns = cpu.now_ns() + task.frame_ns;
    while left > 0 && due_ns <= until.end_ns {
        cpu.work(task.loops);
        let done_ns = cpu.now_ns();
        let latency_ns = (done_ns - due_ns).max(0);
        sink.take(Sample { t_ns: due_ns, latency_ns });
        left -= 1;
        if latency_ns > until.stop_over_ns {
            stop.set_over(latency_ns);
        }
        if stop.is_set() {
            return (Ended::Stopped, left);
        }
        due_ns = done_ns + task.frame_ns;
    }
    (Ended::Done, left)
}

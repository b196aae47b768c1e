//! The `irq` probe: how late a thread is that a periodic interrupt wakes, and what a loop of known
//! work takes it in each turn.
//!
//! The interrupt is that of a real-time clock, whose device is opened by one process and read by
//! one thread, or in its place that of a timerfd, one for each CPU.
//!
//! Changes on the machine: the rate of the clock and its periodic interrupt, both restored at the
//! end; the kernel ends the interrupt when a killed tardy is gone.

pub(super) mod flags;

use std::{
    io,
    os::fd::AsRawFd,
    path::Path,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
};

use tardy_hot::{
    interrupts::{SLICES, SliceCounts, TurnWork, WITHIN_NS, find_grid, turns_in},
    ring::{Sample, Writer, ring},
    stages::Records,
    stop::Stop,
    wakeup::{self, Counted, Ended, Kept, Periodic, Series, Sink, Until},
};

use super::{
    ArmError, ArmOptions, Armed, ExpiryGrid, FigureValue, Probe, Recorded, Schedule, Tracing,
    measured_thread::LoopEnd,
    timer::stages::{self, ThreadTrace, TimerLoop},
};
use crate::{
    run::{FigureHead, FigureUnit, IrqParameters, ProbeRecord, SeriesHead},
    setup::threads::ThreadConfig,
    sys::{cpus::Cpus, rtc::PeriodicClock, sched::Policy, timer},
};

/// The clock that is read.
pub const CLOCK: &str = "/dev/rtc";

/// The same without udev.
const FIRST_CLOCK: &str = "/dev/rtc0";

/// Of each CPU: shares of its wake-ups, in percent, and the loop, in us.
const FIGURES: [(&str, FigureUnit); 4] = [
    ("within_1ms", FigureUnit::Percent),
    ("within_2ms", FigureUnit::Percent),
    ("loop", FigureUnit::Microseconds),
    ("longest_loop", FigureUnit::Microseconds),
];

/// What interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeriodicSource {
    /// The periodic interrupt of [`CLOCK`].
    Rtc,
    /// A periodic timerfd.
    Timerfd,
}

impl PeriodicSource {
    /// As on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rtc => "rtc",
            Self::Timerfd => "timerfd",
        }
    }
}

/// What interrupts, how often, and what follows.
#[derive(Debug, Clone, Copy)]
pub struct InterruptPlan {
    /// The source.
    pub source: PeriodicSource,
    /// Interrupts per second.
    pub rate_hz: u32,
    /// How long the loop of each turn takes undisturbed, ns; 0 for none.
    pub loop_ns: i64,
}

impl InterruptPlan {
    /// From one interrupt to the next, ns: whole nanoseconds, as the kernel has it
    /// (`rtc_update_hrtimer` of `drivers/rtc/interface.c`).
    #[must_use]
    pub fn period_ns(&self) -> i64 {
        1_000_000_000 / i64::from(self.rate_hz.max(1))
    }

    /// How many of [`FIGURES`] a CPU has: those of the loop only where there is one.
    const fn known_figures(&self) -> usize {
        if self.loop_ns > 0 { FIGURES.len() } else { WITHIN_NS.len() }
    }
}

/// A planned irq probe.
#[derive(Debug, Clone)]
pub struct Irq {
    /// The CPUs to measure; of a clock one.
    pub cpus: Cpus,
    /// What interrupts.
    pub interrupts: InterruptPlan,
    /// What the threads run as; of the CPU of each.
    pub policy: Policy,
    /// Their priority; 0 for `other`.
    pub priority: u32,
    /// Timer slack in ns.
    pub slack_ns: u64,
}

impl Irq {
    fn head(&self, cpu: u32) -> SeriesHead {
        let period_ns = Some(self.interrupts.period_ns());
        SeriesHead { name: format!("cpu{cpu}"), cpu: Some(cpu), period_ns }
    }
}

/// On real-time kernels both kinds of timers expire in a softirq: `timerfd_create` and
/// `rtc_device_register` ask for no hard interrupt.
const fn has_softirq(tracing: &Tracing) -> bool {
    tracing.is_rt
}

impl Probe for Irq {
    fn name(&self) -> &'static str {
        "irq"
    }

    fn parameters(&self) -> ProbeRecord {
        let InterruptPlan { source, rate_hz, loop_ns } = self.interrupts;
        ProbeRecord::Irq(IrqParameters {
            source: source.as_str().into(),
            rate_hz,
            interval_ns: self.interrupts.period_ns(),
            loop_ns,
            cpus: self.cpus.to_string(),
        })
    }

    fn heads(&self, tracing: Option<&Tracing>) -> Vec<SeriesHead> {
        let mut heads = Vec::new();
        for cpu in self.cpus.iter() {
            let head = self.head(cpu);
            let of_stages = tracing.map(|tracing| stages::heads(&head, has_softirq(tracing)));
            heads.push(head);
            heads.extend(of_stages.into_iter().flatten());
        }
        heads
    }

    fn figures(&self) -> Vec<FigureHead> {
        let known = self.interrupts.known_figures();
        let of = |cpu: u32| {
            let known = FIGURES.into_iter().take(known);
            known.map(move |(name, unit)| FigureHead { name: format!("cpu{cpu}/{name}"), unit })
        };
        self.cpus.iter().flat_map(of).collect()
    }

    fn arm(&self, wants: &ArmOptions, stop: &Arc<Stop>) -> Result<Armed, ArmError> {
        let mut armed = Armed::new(stop);
        let (values, figures) = channel();
        armed.figures = Some(figures);
        if self.interrupts.source == PeriodicSource::Timerfd {
            let phases_ns = self.cpus.iter().map(|_| 0).collect();
            armed.grid = Some(ExpiryGrid { interval_ns: self.interrupts.period_ns(), phases_ns });
        }
        for (number, cpu) in self.cpus.iter().enumerate() {
            self.arm_cpu(&mut armed, (wants, stop), (number, cpu), &values)?;
        }
        Ok(armed)
    }
}

impl Irq {
    fn arm_cpu(
        &self,
        armed: &mut Armed,
        (wants, stop): (&ArmOptions, &Arc<Stop>),
        (number, cpu): (usize, u32),
        values: &Sender<FigureValue>,
    ) -> Result<(), ArmError> {
        let head = self.head(cpu);
        let (series, scratch): (Arc<Series>, Arc<Series>) = Default::default();
        let (writer, samples) = wants.ring_samples.map(ring).unzip();
        let traced = wants
            .tracing
            .as_ref()
            .map(|tracing| ThreadTrace::new(&head, tracing, number, has_softirq(tracing), 0));
        let (own, others) = traced.unzip();
        let clock = (self.interrupts.source == PeriodicSource::Rtc).then(|| self.clock());
        let thread = Thread {
            series: Arc::clone(&series),
            scratch: Arc::clone(&scratch),
            writer,
            stages: own,
            records: wants.tracing.as_ref().map(|own| (Arc::clone(&own.records), number)),
            clock: clock.transpose()?,
            interrupts: self.interrupts,
            figures: (number * self.interrupts.known_figures(), values.clone()),
            stop: Arc::clone(stop),
        };
        let Self { policy, priority, slack_ns, .. } = *self;
        let terms = ThreadConfig { policy, priority, cpu, slack_ns };
        let name = head.name.clone();
        let recorded = Recorded { head, series: Arc::clone(&series), samples };
        armed.spawn(recorded, Some(terms), move |schedule| thread.both_loops(schedule))?;
        if let (Some(others), Some((_, found))) = (others, armed.found.last()) {
            let (recorded, traced) = others.known(name, cpu, found, scratch, series);
            armed.recorded.extend(recorded);
            armed.traced.push(traced);
        }
        Ok(())
    }

    fn clock(&self) -> Result<PeriodicClock, ArmError> {
        let rate_hz = self.interrupts.rate_hz;
        // The first name is a link that udev makes, the second the kernel's own.
        let open = |name: &str| PeriodicClock::open(Path::new(name), rate_hz);
        let opened = match open(CLOCK) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => open(FIRST_CLOCK),
            opened => opened,
        };
        opened.map_err(|error| ArmError::Transport(refusal(&error, rate_hz)))
    }
}

/// Why the clock cannot be used, and the remedy.
fn refusal(error: &io::Error, rate_hz: u32) -> String {
    let remedy = match error.raw_os_error() {
        Some(libc::ENOENT) => "this machine has no real-time clock that interrupts".to_owned(),
        Some(libc::EBUSY) => "another process has it open; end that process".to_owned(),
        Some(libc::EACCES) => format!(
            "run as root, or use a --frequency up to /sys/class/rtc/rtc0/max_user_freq instead of \
             {rate_hz}"
        ),
        _ => "it has no periodic interrupt".to_owned(),
    };
    let why = crate::setup::threads::plain(error);
    format!("--source rtc: {CLOCK}: {why}: {remedy}; or use --source timerfd, a timer in its place")
}

/// What a measuring thread owns.
struct Thread {
    series: Arc<Series>,
    /// Takes the samples of the warm-up.
    scratch: Arc<Series>,
    writer: Option<Writer<Sample>>,
    stages: Option<ThreadTrace>,
    /// The kernel's records, and which of them is this thread's.
    records: Option<(Arc<dyn Records>, usize)>,
    clock: Option<PeriodicClock>,
    interrupts: InterruptPlan,
    /// The place of its first figure, and where the figures go when the loop is over.
    figures: (usize, Sender<FigureValue>),
    stop: Arc<Stop>,
}

impl Thread {
    fn both_loops(mut self, schedule: Schedule) -> LoopEnd {
        let turns = match self.interrupts.loop_ns {
            0 => 0,
            ns => turns_in(ns),
        };
        match self.clock.take() {
            Some(clock) => self.by_clock(schedule, turns, &clock),
            None => self.by_timerfd(schedule, turns),
        }
    }

    fn by_timerfd(&mut self, schedule: Schedule, turns: u64) -> LoopEnd {
        let period_ns = self.interrupts.period_ns();
        let armed = |first_ns| timer::periodic(first_ns, period_ns);
        let both = armed(schedule.warmup_ns).and_then(|warm| Ok((warm, armed(schedule.start_ns)?)));
        let (warm, own) = match both {
            Ok(both) => both,
            Err(error) => {
                return LoopEnd::unmeasured(Ended::Failed(error.raw_os_error().unwrap_or(0)));
            }
        };
        let mut wake = Periodic::new(warm.as_raw_fd(), schedule.warmup_ns, period_ns);
        let warmed = self.warm_up(&mut wake, schedule, turns);
        let mut wake = Periodic::new(own.as_raw_fd(), schedule.start_ns, period_ns);
        LoopEnd::after_warm_up(warmed, || self.measured(&mut wake, schedule, turns))
    }

    /// The grid is found first, and then the clock continues interrupting on it.
    fn by_clock(&mut self, schedule: Schedule, turns: u64, clock: &PeriodicClock) -> LoopEnd {
        if let Err(error) = clock.start() {
            return LoopEnd::unmeasured(Ended::Failed(error.raw_os_error().unwrap_or(0)));
        }
        let period_ns = self.interrupts.period_ns();
        let half_ns = schedule.warmup_ns + (schedule.start_ns - schedule.warmup_ns) / 2;
        let own = self.records.clone();
        let record = own.as_ref().and_then(|(records, number)| records.record(*number));
        let found = find_grid(clock.descriptor(), period_ns, record, half_ns, &self.stop);
        let grid = match found {
            Ok(grid) => grid,
            Err(libc::ECANCELED) => return LoopEnd::unmeasured(Ended::Stopped),
            Err(errno) => return LoopEnd::unmeasured(Ended::Failed(errno)),
        };
        let mut wake = Periodic::of_clock(clock.descriptor(), grid.next_ns, period_ns);
        let warmed = self.warm_up(&mut wake, schedule, turns);
        LoopEnd::after_warm_up(warmed, || self.measured(&mut wake, schedule, turns))
    }

    fn warm_up(&self, wake: &mut Periodic, schedule: Schedule, turns: u64) -> Ended {
        let until = Until { end_ns: schedule.start_ns, samples: u64::MAX, stop_over_ns: i64::MAX };
        let mut slices = [SliceCounts::default(); SLICES];
        let inner = Counted(Arc::clone(&self.scratch));
        let mut sink = work(inner, &mut slices, (schedule.warmup_ns, i64::MAX), turns);
        wakeup::run(wake, &mut sink, until, &self.stop)
    }

    fn measured(&mut self, wake: &mut Periodic, schedule: Schedule, turns: u64) -> Ended {
        let Schedule { start_ns, end_ns, samples, stop_over_ns, .. } = schedule;
        let until = Until { end_ns, samples, stop_over_ns };
        let slice_ns = match end_ns {
            i64::MAX => i64::MAX,
            _ => ((end_ns - start_ns) / SLICES as i64 + 1).max(1),
        };
        let mut slices = [SliceCounts::default(); SLICES];
        let (times, series) = ((start_ns, slice_ns), Arc::clone(&self.series));
        let ended = match self.writer.take() {
            None => self.traced(wake, work(Counted(series), &mut slices, times, turns), until),
            Some(writer) => {
                self.traced(wake, work(Kept(series, writer), &mut slices, times, turns), until)
            }
        };
        self.send(&slices);
        ended
    }

    fn traced<S: Sink>(&mut self, wake: &mut Periodic, mut sink: S, until: Until) -> Ended {
        match self.stages.take() {
            Some(stages) => {
                let run = TimerLoop { wake, until, stop: &self.stop };
                stages.measured(sink, run)
            }
            None => wakeup::run(wake, &mut sink, until, &self.stop),
        }
    }

    fn send(&self, slices: &[SliceCounts; SLICES]) {
        let (first, to) = &self.figures;
        for slice in slices.iter().filter(|slice| slice.wakeups > 0) {
            let wakeups = slice.wakeups as f64;
            let [one, two] = slice.within.map(|within| within as f64 / wakeups * 100.0);
            let loops = [slice.loops_ns as f64 / wakeups / 1e3, slice.longest_ns as f64 / 1e3];
            let values = [one, two, loops[0], loops[1]];
            for (place, value) in
                values.into_iter().take(self.interrupts.known_figures()).enumerate()
            {
                // A receiver that is gone does not need the value.
                let _ = to.send(FigureValue { figure: first + place, end_ns: slice.end_ns, value });
            }
        }
    }
}

fn work<S>(
    inner: S,
    slices: &mut [SliceCounts; SLICES],
    (begin_ns, slice_ns): (i64, i64),
    turns: u64,
) -> TurnWork<'_, S> {
    TurnWork { inner, slices, begin_ns, slice_ns, turns }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(loop_ns: i64) -> Irq {
        let cpus = Cpus::allowed().unwrap().iter().take(1).collect();
        let interrupts = InterruptPlan { source: PeriodicSource::Timerfd, rate_hz: 1_000, loop_ns };
        Irq { cpus, interrupts, policy: Policy::Other, priority: 0, slack_ns: 1 }
    }

    /// Runs it for 300 periods of 1 ms, or until it has `samples` samples; what each of its
    /// `figures` was, and its samples.
    fn run(loop_ns: i64, samples: u64, figures: usize) -> (Vec<Vec<f64>>, u64) {
        let (probe, stop) = (plan(loop_ns), Arc::new(Stop::new()));
        let mut armed = probe.arm(&ArmOptions::default(), &stop).unwrap();
        let start_ns = tardy_hot::clock::now_ns() + 10_000_000;
        let end_ns = if samples == u64::MAX { start_ns + 300_000_000 } else { i64::MAX };
        let (warmup_ns, stop_over_ns) = (start_ns - 5_000_000, i64::MAX);
        armed.start(Schedule { warmup_ns, start_ns, end_ns, samples, stop_over_ns });
        while !armed.is_done() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(probe.figures().len(), figures);
        let mut values = vec![Vec::new(); figures];
        for one in armed.figures.as_ref().unwrap().try_iter() {
            values[one.figure].push(one.value);
        }
        let count = armed.recorded[0].series.tally.totals().count;
        assert_eq!(armed.finish().reports[0].ended, Ended::Done);
        (values, count)
    }

    #[test]
    fn each_wake_up_is_counted_in_a_slice_and_the_loop_is_timed_where_there_is_one() {
        for (loop_ns, figures) in [(0, 2), (50_000, 4)] {
            // A stall may take any of them, also one over the beginning or the end; one that takes
            // all is not to last.
            let tries = std::iter::repeat_with(|| run(loop_ns, u64::MAX, figures)).take(300);
            let (values, count) = { tries }.find(|(_, count)| *count > 0).unwrap();
            assert!(count <= 300, "{count}");
            assert!(values.iter().all(|own| !own.is_empty() && own.len() <= SLICES), "{values:?}");
            for (one, two) in values[0].iter().zip(&values[1]) {
                assert!(0.0 <= *one && one <= two && *two <= 100.0, "{values:?}");
            }
        }
    }

    #[test]
    fn samples_that_were_asked_for_are_one_slice() {
        let (values, count) = run(50_000, 100, 4);
        assert_eq!(count, 100);
        assert!(values.iter().all(|own| own.len() == 1), "{values:?}");
        assert!(values[2][0] <= values[3][0], "the mean of the loop, and the longest: {values:?}");
    }

    #[test]
    fn what_keeps_a_clock_from_being_used_is_said_with_a_remedy() {
        let of = |errno| refusal(&io::Error::from_raw_os_error(errno), 8_192);
        assert!(of(libc::ENOENT).contains("has no real-time clock"), "{}", of(libc::ENOENT));
        assert!(of(libc::EBUSY).contains("end that process"));
        assert!(of(libc::EACCES).contains("instead of 8192"));
        assert!(of(libc::EINVAL).contains("use --source timerfd"));
    }
}

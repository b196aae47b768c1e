//! The `noise` probe: threads that read the clock all the time, and the gaps between two reads in
//! which their CPU did something else.
//!
//! One thread per CPU. `tardy_hot::gaps` documents what a gap is. A thread that never sleeps and
//! goes before all others would keep them from its CPU, so that these are ordinary tasks unless a
//! policy is asked for, and that is refused where no CPU is left for others.

pub(super) mod flags;
#[cfg(test)]
mod tests;

use std::sync::{
    Arc,
    mpsc::{Sender, channel},
};

use tardy_hot::{
    gaps::{ByLength, CLASSES_NS, CompiledSink, Spin, TracedGaps, class_of},
    ring::{Reader, Sample, Writer, ring},
    stages::Late,
    stop::Stop,
    traced::TraceControl,
    wakeup::{Counted, Ended, Kept, Series, Until},
};

use super::{
    ArmError, ArmOptions, Armed, FigureValue, Probe, Recorded, Schedule, TracedSamples,
    TracedThread, Tracing, measured_thread::LoopEnd,
};
use crate::{
    run::{FigureHead, FigureUnit, NoiseParameters, ProbeRecord, SeriesHead},
    setup::threads::{Found, ThreadConfig},
    sys::{cpus::Cpus, sched::Policy},
};

/// Long gaps that wait to be blamed: of those between two looks of the thread that blames them,
/// many times more than come.
const LATE_RING: usize = 4096;

/// The number of slices of the measured time, so that the lost share of each is known.
const SLICES: i64 = 20;

/// The lost share by how long gaps are, the classes of `tardy_hot::gaps`.
const PARTS: [&str; CLASSES_NS.len() + 1] = ["/to_10us", "/to_100us", "/to_1ms", "/longer"];

/// A planned noise probe.
#[derive(Debug, Clone)]
pub struct Noise {
    /// The CPUs to measure.
    pub cpus: Cpus,
    /// A longer time between two clock reads is a gap, ns.
    pub over_ns: i64,
    /// Policy of the threads.
    pub policy: Policy,
    /// Their priority; 0 for `other`.
    pub priority: u32,
    /// Timer slack in ns.
    pub slack_ns: u64,
}

impl Noise {
    fn terms(&self, cpu: u32) -> ThreadConfig {
        let Self { policy, priority, slack_ns, .. } = *self;
        ThreadConfig { policy, priority, cpu, slack_ns }
    }
}

impl Probe for Noise {
    fn name(&self) -> &'static str {
        "noise"
    }

    fn parameters(&self) -> ProbeRecord {
        ProbeRecord::Noise(NoiseParameters {
            gap_over_ns: self.over_ns,
            cpus: self.cpus.to_string(),
        })
    }

    fn heads(&self, _: Option<&Tracing>) -> Vec<SeriesHead> {
        let head = |cpu| SeriesHead { name: format!("cpu{cpu}"), cpu: Some(cpu), period_ns: None };
        self.cpus.iter().map(head).collect()
    }

    fn figures(&self) -> Vec<FigureHead> {
        let of = |cpu: u32| {
            let head = move |part: &str| FigureHead {
                name: format!("cpu{cpu}/lost{part}"),
                unit: FigureUnit::Percent,
            };
            [head("")].into_iter().chain(PARTS.map(head))
        };
        self.cpus.iter().flat_map(of).collect()
    }

    fn arm(&self, wants: &ArmOptions, stop: &Arc<Stop>) -> Result<Armed, ArmError> {
        let mut armed = Armed::new(stop);
        let (send, figures) = channel();
        armed.figures = Some(figures);
        for (number, (cpu, head)) in self.cpus.iter().zip(self.heads(None)).enumerate() {
            let (series, scratch): (Arc<Series>, Arc<Series>) = Default::default();
            let (writer, samples) = wants.ring_samples.map(ring).unzip();
            let traced = wants.tracing.as_ref().map(|_| ring(LATE_RING));
            let (late_writer, late) = traced.unzip();
            let control: Arc<TraceControl> = Arc::default();
            let thread = Thread {
                series: Arc::clone(&series),
                scratch: Arc::clone(&scratch),
                writer,
                late: late_writer.map(|writer| (Arc::clone(&control), writer)),
                over_ns: self.over_ns,
                figures: (number * (1 + PARTS.len()), send.clone()),
                stop: Arc::clone(stop),
            };
            let name = head.name.clone();
            let recorded = Recorded { head, series: Arc::clone(&series), samples };
            armed.spawn(recorded, Some(self.terms(cpu)), move |schedule| thread.spin(schedule))?;
            if let (Some(late), Some((_, found))) = (late, armed.found.last()) {
                let watched = self.watched(name, cpu, found, late);
                armed.traced.push(TracedThread {
                    warmup: scratch,
                    total: series,
                    control,
                    ..watched
                });
            }
        }
        Ok(armed)
    }
}

impl Noise {
    fn watched(&self, name: String, cpu: u32, found: &Found, late: Reader<Late>) -> TracedThread {
        let samples = TracedSamples::Gaps { over_ns: self.over_ns, late };
        TracedThread { samples, ..TracedThread::far(&name, cpu, found) }
    }
}

/// What a measuring thread owns.
struct Thread {
    series: Arc<Series>,
    /// Takes the gaps of the warm-up, and stays until the end: freeing memory within the run would
    /// interrupt every CPU.
    scratch: Arc<Series>,
    writer: Option<Writer<Sample>>,
    late: Option<(Arc<TraceControl>, Writer<Late>)>,
    over_ns: i64,
    /// The place of its first figure, and where the figures go when the loop is over.
    figures: (usize, Sender<FigureValue>),
    stop: Arc<Stop>,
}

/// A slice of the measured time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Slice {
    end_ns: i64,
    took_ns: i64,
    /// What gaps had of it, by the classes of their length, ns.
    lost_ns: [i64; CLASSES_NS.len() + 1],
    /// Turns of the loop in it, with those that gaps were found in.
    turns: u64,
}

impl Thread {
    fn spin(mut self, schedule: Schedule) -> LoopEnd {
        let mut spin = Spin::new(self.over_ns);
        let until = Until { end_ns: schedule.start_ns, samples: u64::MAX, stop_over_ns: i64::MAX };
        let mut warm = ByLength::new(Counted(Arc::clone(&self.scratch)));
        let warmed = warm.spin(&mut spin, until, &self.stop).0;
        let series = Arc::clone(&self.series);
        let (writer, late) = (self.writer.take(), self.late.take());
        let mut slices = Vec::with_capacity(SLICES as usize);
        let end = LoopEnd::after_warm_up(warmed, || match (writer, late) {
            (None, None) => self.slices(schedule, Counted(series), &mut slices),
            (Some(writer), None) => self.slices(schedule, Kept(series, writer), &mut slices),
            (None, Some((control, late))) => {
                let inner = Counted(series);
                self.slices(schedule, TracedGaps { inner, control, late }, &mut slices)
            }
            (Some(writer), Some((control, late))) => {
                let inner = Kept(series, writer);
                self.slices(schedule, TracedGaps { inner, control, late }, &mut slices)
            }
        });
        self.send(&slices);
        LoopEnd { turns: Some(slices.iter().map(|slice| slice.turns).sum()), ..end }
    }

    /// The measured time, slice by slice into `slices`, which has room for them.
    fn slices<S>(&self, schedule: Schedule, inner: S, slices: &mut Vec<Slice>) -> Ended
    where
        ByLength<S>: CompiledSink,
    {
        let mut spin = Spin::new(self.over_ns);
        slice_by_slice(schedule, inner, slices, &mut spin, |sink, spin, until| {
            sink.spin(spin, until, &self.stop)
        })
    }

    /// The lost share of each slice, and its parts.
    fn send(&self, slices: &[Slice]) {
        let (first, to) = &self.figures;
        for (end_ns, shares) in lost_shares(slices) {
            for (place, value) in shares.enumerate() {
                // A receiver that is gone does not need the value.
                let _ = to.send(FigureValue { figure: first + place, end_ns, value });
            }
        }
    }
}

/// The measured time by what spins until the end of a slice. No time lies between two of them, and
/// a gap that reaches over the end of one continues in the next.
fn slice_by_slice<S>(
    schedule: Schedule,
    inner: S,
    slices: &mut Vec<Slice>,
    spin: &mut Spin,
    mut until_end: impl FnMut(&mut ByLength<S>, &mut Spin, Until) -> (Ended, u64),
) -> Ended {
    let mut sink = ByLength::new(inner);
    let (mut left, mut ended) = (schedule.samples, Ended::Done);
    let mut from_ns = schedule.start_ns;
    let mut over = InterruptionCarryOver::before_first_turn(spin.before_ns - from_ns, spin.over_ns);
    for number in 1..=SLICES {
        let planned_ns = slice_end(&schedule, number);
        let mut lost_ns = over.take(planned_ns - from_ns);
        let turns_before = spin.turns;
        if over.ns == 0 {
            let stop_over_ns = schedule.stop_over_ns;
            let until = Until { end_ns: planned_ns, samples: left, stop_over_ns };
            (ended, left) = until_end(&mut sink, spin, until);
            let sums_ns = std::mem::take(&mut sink.sums_ns);
            lost_ns.iter_mut().zip(sums_ns).for_each(|(lost, sum)| *lost += sum);
            over =
                InterruptionCarryOver { ns: (sink.end_ns - planned_ns).max(0), class: sink.last };
            if let Some(lost) = lost_ns.get_mut(over.class) {
                *lost -= over.ns;
            }
        }
        let is_over = ended != Ended::Done || left == 0;
        let end_ns = if is_over { planned_ns.min(spin.before_ns) } else { planned_ns };
        let turns = spin.turns - turns_before;
        slices.push(Slice { end_ns, took_ns: end_ns - from_ns, lost_ns, turns });
        from_ns = planned_ns;
        if is_over || planned_ns == i64::MAX {
            break;
        }
    }
    ended
}

/// The end of each slice, ns, with its lost share and the parts of it, in percent. All weigh the
/// same: the last is shorter where it was not the end of the measured time.
fn lost_shares(slices: &[Slice]) -> impl Iterator<Item = (i64, impl Iterator<Item = f64>)> {
    let whole_ns = slices.first().map_or(0, |slice| slice.took_ns);
    let is_whole = move |slice: &&Slice| slice.took_ns > 0 && slice.took_ns >= whole_ns;
    slices.iter().filter(is_whole).map(|Slice { end_ns, took_ns, lost_ns, .. }| {
        let percent = |ns: i64| ns as f64 / *took_ns as f64 * 100.0;
        (*end_ns, [lost_ns.iter().sum()].into_iter().chain(*lost_ns).map(percent))
    })
}

/// What of a gap reaches over the end of a slice.
#[derive(Debug, Clone, Copy)]
struct InterruptionCarryOver {
    ns: i64,
    class: usize,
}

impl InterruptionCarryOver {
    /// The time of the first slice before the loop began, which is a gap where it is longer than
    /// `over_ns`.
    fn before_first_turn(ns: i64, over_ns: i64) -> Self {
        let ns = if ns > over_ns { ns } else { 0 };
        Self { ns, class: class_of(ns) }
    }

    /// What of it lies in a slice of this length; the rest is in the next one.
    fn take(&mut self, slice_ns: i64) -> [i64; CLASSES_NS.len() + 1] {
        let own_ns = self.ns.min(slice_ns);
        self.ns -= own_ns;
        let mut lost_ns = [0; CLASSES_NS.len() + 1];
        if let Some(lost) = lost_ns.get_mut(self.class) {
            *lost = own_ns;
        }
        lost_ns
    }
}

/// When the slice of that number, from 1, ends, ns; the first has all where the measured time has
/// no end known beforehand.
const fn slice_end(schedule: &Schedule, number: i64) -> i64 {
    let Schedule { start_ns, end_ns, .. } = *schedule;
    match number {
        _ if end_ns == i64::MAX => end_ns,
        SLICES => end_ns,
        _ => start_ns + (end_ns - start_ns) / SLICES * number,
    }
}

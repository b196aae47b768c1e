//! The `inversion` probe: how long a thread of high priority waits for a mutex that one of low
//! priority has, while one of medium priority wants the CPU; with priority inheritance and without.
//!
//! Three `SCHED_FIFO` threads on each CPU, of falling priority. `tardy_hot::inversion` documents
//! what a round is. The one of high priority measures; the others are its helpers, and end with it.
//! They use at most a fourth of their CPU.

pub(super) mod flags;

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
};

use tardy_hot::{
    inversion::{Contest, High, KINDS, SLICES, WaitSums, burst, hold},
    ring::{Sample, Writer, ring},
    stop::Stop,
    wakeup::{Counted, Ended, Kept, Series, Sink, Until},
};

use super::{
    ArmError, ArmOptions, Armed, FigureValue, Probe, Recorded, STACK_BYTES, Schedule, Tracing,
    measured_thread::{self, LoopEnd},
};
use crate::{
    run::{FigureHead, FigureUnit, InversionParameters, ProbeRecord, SeriesHead},
    setup::threads::{Found, ThreadConfig},
    sys::{cpus::Cpus, memory, sched::Policy},
};

/// The mutexes, in the order of [`Contest`].
const NAMES: [&str; KINDS] = ["inherit", "none"];

/// Who had the CPU within a wait.
const SHARES: [&str; 2] = ["low", "hog"];

/// Rounds begin after this multiple of what the helpers work in each: the rest is for others.
const ROOM: i64 = 4;

/// From the begin of one round to that of the next, ns, where the low thread and the hog work so
/// long in each; the mutexes take turns.
#[must_use]
pub const fn period_ns(hold_ns: i64, hog_ns: i64) -> i64 {
    (hold_ns + hog_ns) * ROOM
}

/// A planned inversion probe.
#[derive(Debug, Clone)]
pub struct Inversion {
    /// The CPUs, each with three threads.
    pub cpus: Cpus,
    /// CPU time for which the low thread has the mutex, ns.
    pub hold_ns: i64,
    /// CPU time of the medium thread in each round, ns.
    pub hog_ns: i64,
    /// Priority of the high thread; the others have the two below it.
    pub priority: u32,
}

impl Inversion {
    const fn period_ns(&self) -> i64 {
        period_ns(self.hold_ns, self.hog_ns)
    }

    /// On a CPU, so far below the priority of the high thread.
    const fn terms(&self, cpu: u32, below: u32) -> ThreadConfig {
        let priority = self.priority.saturating_sub(below);
        ThreadConfig { policy: Policy::Fifo, priority, cpu, slack_ns: 1 }
    }

    fn heads_of(cpu: u32) -> [SeriesHead; KINDS] {
        let head =
            |kind| SeriesHead { name: format!("cpu{cpu}-{kind}"), cpu: Some(cpu), period_ns: None };
        NAMES.map(head)
    }
}

impl Probe for Inversion {
    fn name(&self) -> &'static str {
        "inversion"
    }

    fn parameters(&self) -> ProbeRecord {
        ProbeRecord::Inversion(InversionParameters {
            hold_ns: self.hold_ns,
            hog_ns: self.hog_ns,
            period_ns: self.period_ns(),
            cpus: self.cpus.to_string(),
        })
    }

    fn why_untraceable(&self) -> &'static str {
        "waits for a mutex by design, and its figures say who had the CPU meanwhile"
    }

    fn heads(&self, _: Option<&Tracing>) -> Vec<SeriesHead> {
        self.cpus.iter().flat_map(Self::heads_of).collect()
    }

    fn figures(&self) -> Vec<FigureHead> {
        let of = |series: SeriesHead| {
            SHARES.map(|share| FigureHead {
                name: format!("{}/{share}", series.name),
                unit: FigureUnit::Microseconds,
            })
        };
        self.heads(None).into_iter().flat_map(of).collect()
    }

    fn arm(&self, wants: &ArmOptions, stop: &Arc<Stop>) -> Result<Armed, ArmError> {
        let mut armed = Armed::new(stop);
        let (values, figures) = channel();
        armed.figures = Some(figures);
        for (number, cpu) in self.cpus.iter().enumerate() {
            let first = number * KINDS * SHARES.len();
            self.arm_cpu(&mut armed, (wants, stop), cpu, (first, values.clone()))?;
        }
        Ok(armed)
    }
}

impl Inversion {
    /// The three threads of one CPU; `figures` is the place of its first one and where they go.
    fn arm_cpu(
        &self,
        armed: &mut Armed,
        (wants, stop): (&ArmOptions, &Arc<Stop>),
        cpu: u32,
        figures: (usize, Sender<FigureValue>),
    ) -> Result<(), ArmError> {
        let [head, other_head] = Self::heads_of(cpu);
        let series: [Arc<Series>; KINDS] = Default::default();
        let [own, other] = [(); KINDS].map(|()| wants.ring_samples.map(ring::<Sample>).unzip());
        let measuring = Measuring {
            series: series.each_ref().map(Arc::clone),
            scratch: Default::default(),
            writers: own.0.zip(other.0).map(|(own, other)| [own, other]),
            period_ns: self.period_ns(),
            figures,
            stop: Arc::clone(stop),
        };
        let [series, other_series] = series;
        let recorded = Recorded { head, series, samples: own.1 };
        let (send_found, found) = channel();
        let plan = self.clone();
        let open = move || Helpers::start(&plan, cpu, &send_found);
        armed.spawn_with(recorded, Some(self.terms(cpu, 0)), open, move |schedule, helpers| {
            measuring.both_loops(schedule, helpers)
        })?;
        let samples = other.1;
        armed.recorded.push(Recorded { head: other_head, series: other_series, samples });
        for (name, found) in found.iter() {
            armed.also_watch(found.tid);
            armed.found.push((name, found));
        }
        Ok(())
    }
}

/// The low thread and the hog of one CPU, until this is dropped.
struct Helpers {
    contest: Arc<Contest>,
    tids: (i32, i32),
    handles: Vec<JoinHandle<()>>,
}

impl Helpers {
    fn start(
        plan: &Inversion,
        cpu: u32,
        found: &Sender<(String, Found)>,
    ) -> Result<Self, ArmError> {
        let refused = |source| ArmError::Thread { series: format!("cpu{cpu}-none"), source };
        let contest = Arc::new(Contest::new().map_err(refused)?);
        let mut helpers = Self { contest: Arc::clone(&contest), tids: (0, 0), handles: Vec::new() };
        let (low, own) = (plan.hold_ns, Arc::clone(&contest));
        let names = SHARES.map(|share| format!("cpu{cpu}-{share}"));
        let [low_name, hog_name] = names;
        helpers.tids.0 =
            helpers.add(low_name, plan.terms(cpu, 2), found, move || hold(&own, low))?;
        let hog = plan.hog_ns;
        helpers.tids.1 =
            helpers.add(hog_name, plan.terms(cpu, 1), found, move || burst(&contest, hog))?;
        Ok(helpers)
    }

    /// Starts one of them; its number.
    fn add(
        &mut self,
        name: String,
        terms: ThreadConfig,
        found: &Sender<(String, Found)>,
        rounds: impl FnOnce() + Send + 'static,
    ) -> Result<i32, ArmError> {
        let (send, is_set_up): (Sender<io::Result<Found>>, Receiver<_>) = channel();
        let body = move || {
            let set_up = measured_thread::set_up(Some(&terms));
            let may_go = set_up.is_ok();
            memory::touch_stack();
            if send.send(set_up).is_ok() && may_go {
                rounds();
            }
        };
        let made = std::thread::Builder::new()
            .name(format!("tardy/{name}"))
            .stack_size(STACK_BYTES)
            .spawn(body)
            .map_err(|source| ArmError::Thread { series: name.clone(), source })?;
        self.handles.push(made);
        let ended = || Err(io::Error::other("the thread ended at once"));
        let own = is_set_up.recv().unwrap_or_else(|_| ended());
        let own = own.map_err(|source| ArmError::ThreadConfig { series: name.clone(), source })?;
        let tid = own.tid;
        // Who arms listens until it has both.
        let _ = found.send((name, own));
        Ok(tid)
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        self.contest.end();
        // One that died has nothing to say.
        self.handles.drain(..).for_each(|handle| drop(handle.join()));
    }
}

/// What the high thread owns.
struct Measuring {
    series: [Arc<Series>; KINDS],
    /// Takes the waits of the warm-up.
    scratch: [Arc<Series>; KINDS],
    writers: Option<[Writer<Sample>; KINDS]>,
    period_ns: i64,
    /// The place of its first figure, and where the figures go when the loop is over.
    figures: (usize, Sender<FigureValue>),
    stop: Arc<Stop>,
}

impl Measuring {
    fn both_loops(mut self, schedule: Schedule, helpers: &Helpers) -> LoopEnd {
        let scratch = self.scratch.each_ref().map(|series| Counted(Arc::clone(series)));
        let until = Until { end_ns: schedule.start_ns, samples: u64::MAX, stop_over_ns: i64::MAX };
        let mut warm = self.high(helpers, scratch, schedule.warmup_ns, i64::MAX);
        let warmed = warm.run(until, &self.stop);
        let Schedule { start_ns, end_ns, samples, stop_over_ns, .. } = schedule;
        let until = Until { end_ns, samples, stop_over_ns };
        let slice_ns = match end_ns {
            i64::MAX => i64::MAX,
            _ => ((end_ns - start_ns) / SLICES as i64 + 1).max(1),
        };
        let [own, other] = self.series.each_ref().map(Arc::clone);
        let mut sums = [[WaitSums::default(); KINDS]; SLICES];
        let end = LoopEnd::after_warm_up(warmed, || match self.writers.take() {
            None => {
                let sinks = [Counted(own), Counted(other)];
                run(self.high(helpers, sinks, start_ns, slice_ns), until, &self.stop, &mut sums)
            }
            Some([writer, other_writer]) => {
                let sinks = [Kept(own, writer), Kept(other, other_writer)];
                run(self.high(helpers, sinks, start_ns, slice_ns), until, &self.stop, &mut sums)
            }
        });
        self.send(&sums);
        end
    }

    fn high<'a, S: Sink>(
        &self,
        helpers: &'a Helpers,
        sinks: [S; KINDS],
        next_ns: i64,
        slice_ns: i64,
    ) -> High<'a, S> {
        High {
            contest: &helpers.contest,
            sinks,
            sums: [[WaitSums::default(); KINDS]; SLICES],
            tids: helpers.tids,
            next_ns,
            period_ns: self.period_ns,
            slice_ns,
        }
    }

    /// What the low thread and the hog had of a wait, as the mean of each slice, us.
    fn send(&self, sums: &[[WaitSums; KINDS]; SLICES]) {
        let (first, to) = &self.figures;
        for (kind, sums) in sums.iter().flat_map(|slice| slice.iter().enumerate()) {
            if sums.rounds == 0 {
                continue;
            }
            for (share, ns) in [sums.low_ns, sums.hog_ns].into_iter().enumerate() {
                let figure = first + kind * SHARES.len() + share;
                let value = ns as f64 / sums.rounds as f64 / 1e3;
                // A receiver that is gone does not need the value.
                let _ = to.send(FigureValue { figure, end_ns: sums.end_ns, value });
            }
        }
    }
}

fn run<S: Sink>(
    mut high: High<'_, S>,
    until: Until,
    stop: &Stop,
    sums: &mut [[WaitSums; KINDS]; SLICES],
) -> Ended {
    let ended = high.run(until, stop);
    *sums = high.sums;
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_has_a_series_and_two_figures_for_each_mutex() {
        let cpus: Cpus = [0, 3].into_iter().collect();
        let probe = Inversion { cpus, hold_ns: 500_000, hog_ns: 5_000_000, priority: 90 };
        let names: Vec<_> = probe.heads(None).into_iter().map(|head| head.name).collect();
        assert_eq!(names, ["cpu0-inherit", "cpu0-none", "cpu3-inherit", "cpu3-none"]);
        let figures: Vec<_> = probe.figures().into_iter().map(|head| head.name).collect();
        assert_eq!(figures.len(), 8);
        assert_eq!(figures[2..4], ["cpu0-none/low", "cpu0-none/hog"]);
        assert_eq!(probe.period_ns(), 22_000_000);
        let below = [0, 1, 2].map(|below| probe.terms(3, below).priority);
        assert_eq!(below, [90, 89, 88]);
    }
}

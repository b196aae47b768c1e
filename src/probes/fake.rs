//! The `fake` probe: known samples, fed instead of slept for. For tests, benchmarks and demos: what
//! a run, a page or a statistic should show of it can be computed beforehand.
//!
//! Drawn from a distribution they come in simulated time: an hour of them takes a second.

pub(super) mod flags;
mod distribution;

use std::{sync::Arc, time::Duration};

use tardy_hot::{
    clock,
    ring::{Sample, ring},
    stop::Stop,
    wakeup::{Counted, Ended, Kept, Series, Sink},
};

pub use self::distribution::{Distribution, DistributionError};
use super::{
    ArmError, ArmOptions, Armed, Probe, Recorded, Schedule, Tracing,
    measured_thread::LoopEnd,
    simulated_time::{Follower, SimulatedTime},
};
use crate::{
    run::{FakeParameters, ProbeRecord, SeriesHead},
    setup::threads::ThreadConfig,
    sys::{cpus::Cpus, faults::ThreadUsage, sched::Policy},
};

/// A planned fake probe.
#[derive(Debug, Clone)]
pub struct Fake {
    /// One series for each.
    pub cpus: Cpus,
    /// Time between its made-up expiries, ns.
    pub interval_ns: i64,
    /// Feed as fast as possible instead of one sample an interval.
    pub unpaced: bool,
    /// What they are drawn from, in simulated time; absent for [`latency_of`] each.
    pub distribution: Option<Distribution>,
    /// Policy and priority of its threads, each bound to its CPU; absent: as they are born.
    pub scheduling: Option<(Policy, u32)>,
}

impl Probe for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn parameters(&self) -> ProbeRecord {
        ProbeRecord::Fake(FakeParameters {
            interval_ns: self.interval_ns,
            cpus: self.cpus.to_string(),
            unpaced: self.unpaced,
            distribution: self.distribution.map(|own| own.to_string()),
        })
    }

    fn heads(&self, _: Option<&Tracing>) -> Vec<SeriesHead> {
        let head = |cpu| SeriesHead {
            name: format!("cpu{cpu}"),
            cpu: Some(cpu),
            period_ns: Some(self.interval_ns),
        };
        self.cpus.iter().map(head).collect()
    }

    fn arm(&self, wants: &ArmOptions, stop: &Arc<Stop>) -> Result<Armed, ArmError> {
        let mut armed = Armed::new(stop);
        armed.simulated = self.distribution.map(|_| SimulatedTime::new());
        for head in self.heads(None) {
            let series = Arc::new(Series::default());
            let (writer, reader) = wants.ring_samples.map(ring).unzip();
            let feed = Feed {
                seed: u64::from(head.cpu.unwrap_or(0)),
                interval_ns: self.interval_ns,
                unpaced: self.unpaced,
                drawn: self.distribution.zip(armed.simulated.as_ref().map(SimulatedTime::follow)),
                stop: Arc::clone(stop),
            };
            let terms = self.scheduling.zip(head.cpu).map(|((policy, priority), cpu)| {
                ThreadConfig { policy, priority, cpu, slack_ns: 1 }
            });
            let sink = Arc::clone(&series);
            armed.spawn(Recorded { head, series, samples: reader }, terms, move |schedule| {
                match writer {
                    Some(writer) => feed.run(schedule, &mut Kept(sink, writer)),
                    None => feed.run(schedule, &mut Counted(sink)),
                }
            })?;
        }
        Ok(armed)
    }
}

/// The latency of fake sample number `n` (from 0) of CPU `seed`, ns: 2 to 6 us, one in a thousand
/// up to 100 us more, and sample 777,777 of each million 3 ms.
#[must_use]
pub fn latency_of(seed: u64, n: u64) -> i64 {
    let mixed = mixed(seed << 48 ^ n);
    let body = 2_000 + (mixed & 0xfff) as i64;
    match n % 1_000_000 {
        777_777 => 3_000_000,
        _ if n % 1_000 == 500 => body + (mixed >> 20) as i64 % 100_000,
        _ => body,
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): any number can be computed without those before it.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

struct Feed {
    seed: u64,
    interval_ns: i64,
    unpaced: bool,
    drawn: Option<(Distribution, Follower)>,
    stop: Arc<Stop>,
}

impl Feed {
    fn run(self, schedule: Schedule, sink: &mut impl Sink) -> LoopEnd {
        std::thread::sleep(Duration::from_nanos(
            u64::try_from(schedule.start_ns - clock::now_ns()).unwrap_or(0),
        ));
        let before = ThreadUsage::of_this_thread();
        let ended = match &self.drawn {
            Some((distribution, time)) => self.draw(*distribution, time, schedule, sink),
            None => self.feed(schedule, sink),
        };
        LoopEnd::since(before, ended)
    }

    /// Each sample where simulated time has come to it.
    fn draw(
        &self,
        distribution: Distribution,
        time: &Follower,
        schedule: Schedule,
        sink: &mut impl Sink,
    ) -> Ended {
        let mut t_ns = schedule.start_ns;
        for n in 0..schedule.samples {
            if t_ns >= schedule.end_ns {
                break;
            }
            time.wait_for(t_ns, &self.stop);
            if self.stop.is_set() {
                time.end(t_ns);
                return Ended::Stopped;
            }
            let latency_ns = distribution.latency_ns(self.seed, n);
            sink.take(Sample { t_ns, latency_ns });
            t_ns = t_ns.saturating_add(self.interval_ns);
            if latency_ns > schedule.stop_over_ns {
                self.stop.set_over(latency_ns);
            }
        }
        time.end(t_ns.min(schedule.end_ns));
        Ended::Done
    }

    fn feed(&self, schedule: Schedule, sink: &mut impl Sink) -> Ended {
        let mut t_ns = schedule.start_ns;
        for n in 0..schedule.samples {
            if t_ns >= schedule.end_ns {
                break;
            }
            if !self.unpaced && clock::now_ns() < t_ns {
                // Sleep a batch's worth: single sleeps would be the timer probe.
                std::thread::sleep(Duration::from_millis(1));
            }
            let latency_ns = latency_of(self.seed, n);
            sink.take(Sample { t_ns, latency_ns });
            t_ns += self.interval_ns;
            if latency_ns > schedule.stop_over_ns {
                self.stop.set_over(latency_ns);
            }
            if self.stop.is_set() {
                return Ended::Stopped;
            }
        }
        Ended::Done
    }
}

//! The `audio` probe: a client of a JACK server, and how late its process callback is called.
//!
//! The measured thread is JACK's own: the library makes it, and the server says by which policy
//! and priority it runs. tardy binds it to one CPU, so that who else was there can be named.
//! `tardy_hot::cycles` documents what a latency is. Nothing is played: the client has no ports.

pub(super) mod flags;
mod client;
mod source;
mod stages;

use std::sync::{Arc, mpsc::channel};

use tardy_hot::{
    ring::{Sample, Writer, ring},
    stop::Stop,
    wakeup::{Counted, Kept, Series},
};

use self::{
    client::Opened,
    source::AudioSource,
    stages::{Around, Parts, Same},
};
use super::{ArmError, ArmOptions, Armed, Probe, Recorded, TracedThread, Tracing};
use crate::{
    run::{AudioParameters, CYCLE, FigureHead, FigureUnit, ProbeRecord, SeriesHead},
    sys::sched::Policy,
};

/// The series of whole latencies.
const SERIES: &str = CYCLE;

/// The parts of a traced cycle by name, in the order of time.
const PARTS: [&str; 3] = ["server", "dispatch", "callback"];

/// What JACK says of itself.
const FIGURES: [(&str, FigureUnit); 5] = [
    ("dsp_load", FigureUnit::Percent),
    ("dsp_load/least", FigureUnit::Percent),
    ("dsp_load/most", FigureUnit::Percent),
    ("xruns", FigureUnit::Count),
    ("xrun_delay", FigureUnit::Microseconds),
];

/// A server that is silent for this time is gone, ns.
const SILENT_NS: i64 = 5_000_000_000;

/// What a server was found to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerFacts {
    /// Frames of a cycle.
    pub frames: u32,
    /// Frames of a second.
    pub rate_hz: u32,
    /// Policy and priority of the thread that it gave its client.
    pub policy: (Policy, u32),
}

impl ServerFacts {
    /// Asks the server called `server`, or the default one, as a client for some of its cycles.
    ///
    /// # Errors
    /// The library or the server is absent, or has no cycles; with the remedy.
    pub fn ask(server: Option<&str>) -> Result<Self, ArmError> {
        let sink = Counted(Arc::default());
        let opened = Opened::new(server, sink, &Arc::default(), &Arc::new(Stop::new()))?;
        Ok(opened.facts)
    }

    /// From one cycle to the next by the rate that the server states, ns, rounded down.
    #[must_use]
    pub fn period_ns(&self) -> i64 {
        i64::from(self.frames) * 1_000_000_000 / i64::from(self.rate_hz.max(1))
    }
}

/// A planned audio probe.
#[derive(Debug, Clone)]
pub struct Audio {
    /// The server; absent for the default one.
    pub server: Option<String>,
    /// What it was found to do.
    pub facts: ServerFacts,
    /// The CPU of the measured thread.
    pub cpu: u32,
}

impl Audio {
    fn head(&self) -> SeriesHead {
        let period_ns = Some(self.facts.period_ns());
        SeriesHead { name: SERIES.into(), cpu: Some(self.cpu), period_ns }
    }
}

impl Probe for Audio {
    fn name(&self) -> &'static str {
        "audio"
    }

    fn parameters(&self) -> ProbeRecord {
        let ServerFacts { frames, rate_hz, .. } = self.facts;
        ProbeRecord::Audio(AudioParameters {
            server: self.server.clone(),
            frames,
            rate_hz,
            interval_ns: self.facts.period_ns(),
            cpu: self.cpu,
        })
    }

    fn heads(&self, tracing: Option<&Tracing>) -> Vec<SeriesHead> {
        let head = self.head();
        let parts = tracing.map(|_| PARTS.map(|part| head.stage(part)));
        [head].into_iter().chain(parts.into_iter().flatten()).collect()
    }

    fn figures(&self) -> Vec<FigureHead> {
        let head = |(name, unit): (&str, FigureUnit)| FigureHead { name: name.into(), unit };
        FIGURES.into_iter().map(head).collect()
    }

    fn arm(&self, wants: &ArmOptions, stop: &Arc<Stop>) -> Result<Armed, ArmError> {
        let mut armed = Armed::new(stop);
        let (send, figures) = channel();
        armed.figures = Some(figures);
        let (series, warmup): (Arc<Series>, Arc<Series>) = Default::default();
        let (writer, samples) = wants.ring_samples.map(ring::<Sample>).unzip();
        let mut traced = None;
        let opened = match &wants.tracing {
            None => self.open(Arc::clone(&series), writer, Same, &warmup, stop)?,
            Some(tracing) => {
                let (trace, thread) = Parts::new(tracing, &series, &warmup);
                traced = Some(thread);
                self.open(Arc::clone(&series), writer, trace, &warmup, stop)?
            }
        };
        let found = opened.bind(self.cpu)?;
        let mut recorded = vec![Recorded { head: self.head(), series, samples }];
        if let Some((parts, thread)) = traced {
            let heads = self.heads(wants.tracing.as_ref()).into_iter().skip(1);
            let one = |(head, series)| Recorded { head, series, samples: None };
            recorded.extend(heads.zip(parts).map(one));
            armed.traced.push(thread.following(TracedThread::far(SERIES, self.cpu, &found)));
        }
        armed.also_watch(found.tid);
        armed.found.push((SERIES.into(), found));
        let (source, watch) = AudioSource::new(opened, send, stop);
        armed.supervisor = Some(Box::new(watch));
        armed.add(recorded, Box::new(source));
        Ok(armed)
    }
}

impl Audio {
    fn open(
        &self,
        series: Arc<Series>,
        writer: Option<Writer<Sample>>,
        around: impl Around,
        warmup: &Arc<Series>,
        stop: &Arc<Stop>,
    ) -> Result<Opened, ArmError> {
        let of = (self, warmup, stop);
        let opened = match writer {
            None => around.open(Counted(series), of)?,
            Some(writer) => around.open(Kept(series, writer), of)?,
        };
        if opened.facts != self.facts {
            let (was, is) = (self.facts, opened.facts);
            return Err(ArmError::Transport(format!(
                "the JACK server changed while the run was prepared, from {} frames at {} Hz to \
                 {} at {}, or in the policy of its threads; start the run again",
                was.frames, was.rate_hz, is.frames, is.rate_hz
            )));
        }
        Ok(opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_is_that_of_the_frames_and_parts_follow_the_whole() {
        let policy = (Policy::Fifo, 5);
        let facts = ServerFacts { frames: 64, rate_hz: 48_000, policy };
        let probe = Audio { server: None, facts, cpu: 1 };
        assert_eq!(facts.period_ns(), 1_333_333);
        assert_eq!(probe.parameters().interval_ns(), Some(1_333_333));
        assert!(probe.parameters().has_estimated_grid());
        let names: Vec<_> = probe.heads(None).into_iter().map(|head| head.name).collect();
        assert_eq!(names, [SERIES]);
        assert_eq!(probe.figures().len(), FIGURES.len());
    }
}

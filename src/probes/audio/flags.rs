//! Options of the audio probe, and what its server decides.

use std::cell::OnceCell;

use anyhow::Result;
use clap::Args;

use super::{Audio, ServerFacts};
use crate::{
    probes::request::{
        MeasuredCpus, PlannedProbe, ProbeFlags, ProbeRequest, SharedOptions, ThreadPriority,
        Unsupported, one_cpu,
    },
    setup::{Choice, Requested, threads::ThreadConfig},
    sys::sched::Policy,
};

#[derive(Debug, Args)]
#[command(next_help_heading = "Probe")]
pub(in crate::probes) struct AudioFlags {
    /// Name of the JACK server to measure [default: that of JACK_DEFAULT_SERVER, or default]
    ///
    /// The server sets the period, the sample rate, and the policy and priority of the measured
    /// thread.
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// What it says, asked once.
    #[arg(skip)]
    facts: OnceCell<ServerFacts>,
}

impl ProbeFlags for AudioFlags {
    const UNSUPPORTED: &'static [Unsupported] = &[Unsupported {
        options: &["policy", "priority"],
        why: "the JACK server says what its clients run as (jackd: -R, -P PRIORITY)",
    }];
}

impl ProbeRequest for AudioFlags {
    fn cpus(&self, shared: &SharedOptions<'_>) -> Result<MeasuredCpus> {
        one_cpu(shared, "a JACK client has one thread that is called; name one CPU")
    }

    /// Those that the server gives its clients.
    fn settle(&self, _: Choice<Policy>, _: Choice<u32>) -> Result<ThreadPriority> {
        let (policy, priority) = self.facts()?.policy;
        Ok(ThreadPriority {
            policy: Requested { asked: Choice::new(None, policy), granted: policy },
            priority: Requested { asked: Choice::new(None, priority), granted: priority },
            refused: None,
        })
    }

    fn plan(
        &self,
        terms: ThreadConfig,
        _: &MeasuredCpus,
        _: &SharedOptions<'_>,
    ) -> Result<PlannedProbe> {
        let facts = self.facts()?;
        let audio = Audio { server: self.server.clone(), facts, cpu: terms.cpu };
        Ok(PlannedProbe::new(audio, facts.period_ns()))
    }
}

impl AudioFlags {
    fn facts(&self) -> Result<ServerFacts> {
        if let Some(known) = self.facts.get() {
            return Ok(*known);
        }
        let facts = ServerFacts::ask(self.server.as_deref())?;
        Ok(*self.facts.get_or_init(|| facts))
    }
}

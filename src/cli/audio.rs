//! Flags of the audio probe, and what its server decides.

use std::cell::OnceCell;

use anyhow::{Result, bail, ensure};
use clap::Args;

use super::flags::CpuList;
use crate::{
    probes::audio::{Audio, ServerFacts},
    run::probes::{ProbeInfo, Rhythm},
    setup::Wish,
    sys::{cpus::Cpus, sched::Policy},
};

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Audio")]
pub(super) struct AudioFlags {
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

impl AudioFlags {
    /// Refuses the flags for a probe that does not use them.
    ///
    /// # Errors
    /// Names the flag.
    pub(super) fn check(&self, probe: &ProbeInfo) -> Result<()> {
        if probe.rhythm != Rhythm::Cycles && self.server.is_some() {
            bail!("--server is not supported with {}; leave it out, or measure audio", probe.name);
        }
        Ok(())
    }

    /// The policy and the priority that the server gives its clients.
    ///
    /// # Errors
    /// The user asked for others, or no server runs.
    pub(super) fn settle(
        &self,
        policy: Wish<Policy>,
        priority: Wish<u32>,
    ) -> Result<(Wish<Policy>, Wish<u32>)> {
        let given = [("--policy", policy.explicit), ("--priority", priority.explicit)];
        if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
            bail!(
                "{flag} is not supported with audio: the JACK server says what its clients run as \
                 (jackd: -R, -P PRIORITY); leave it out"
            );
        }
        let (policy, priority) = self.facts()?.policy;
        Ok((Wish::new(None, policy), Wish::new(None, priority)))
    }

    /// The probe that these flags describe.
    ///
    /// # Errors
    /// No server runs.
    pub(super) fn audio(&self, cpu: u32) -> Result<Audio> {
        Ok(Audio { server: self.server.clone(), facts: self.facts()?, cpu })
    }

    fn facts(&self) -> Result<ServerFacts> {
        if let Some(known) = self.facts.get() {
            return Ok(*known);
        }
        let facts = ServerFacts::ask(self.server.as_deref())?;
        Ok(*self.facts.get_or_init(|| facts))
    }
}

/// The CPU of the measured thread: the one that is named, or the first that is allowed.
///
/// # Errors
/// The user named several.
pub(super) fn cpu(asked: Option<&CpuList>, allowed: &Cpus) -> Result<u32> {
    let Some(asked) = asked else { return Ok(allowed.iter().next().unwrap_or(0)) };
    ensure!(
        asked.in_order.len() == 1,
        "--cpus {}: a JACK client has one thread that is called; name one CPU",
        asked.cpus
    );
    Ok(asked.in_order.first().copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::probes::DEFAULT_PROBE;

    #[test]
    fn a_server_is_for_this_probe_alone_and_decides_the_policy() {
        let flags = AudioFlags { server: Some("studio".into()), ..AudioFlags::default() };
        flags.check(ProbeInfo::find("audio").unwrap()).unwrap();
        let refused = flags.check(DEFAULT_PROBE).unwrap_err().to_string();
        assert!(refused.contains("or measure audio"), "{refused}");
        let asked = (Wish::new(Some(Policy::Fifo), Policy::Other), Wish::new(None, 90));
        let refused = flags.settle(asked.0, asked.1).unwrap_err().to_string();
        assert!(refused.contains("--policy") && refused.contains("leave it out"), "{refused}");
    }
}

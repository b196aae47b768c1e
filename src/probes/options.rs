//! The table of probes on the command line.

use clap::{ArgMatches, Command};

use super::{
    attach::flags::AttachFlags,
    audio::flags::AudioFlags,
    bandwidth::flags::BandwidthFlags,
    fake::flags::FakeFlags,
    interactive::flags::InteractiveFlags,
    inversion::flags::InversionFlags,
    irq::flags::IrqFlags,
    noise::flags::NoiseFlags,
    pingpong::flags::PingpongFlags,
    receive::flags::ReceiveFlags,
    request::{ProbeFlags, ProbeRequest, Unsupported},
    stream::flags::StreamFlags,
    timer::flags::TimerFlags,
};

/// A probe on the command line.
#[derive(Debug)]
pub struct ProbeOptions {
    /// Its name.
    pub name: &'static str,
    /// Adds its options to a command.
    pub augment: fn(Command) -> Command,
    /// Reads them.
    pub read: fn(&ArgMatches) -> Result<Box<dyn ProbeRequest>, clap::Error>,
    /// Options of all probes that it does not support.
    pub unsupported: &'static [Unsupported],
}

/// Every probe, the default one first.
pub const PROBE_OPTIONS: [ProbeOptions; 12] = [
    ProbeOptions::of::<TimerFlags>("timer"),
    ProbeOptions::of::<PingpongFlags>("pingpong"),
    ProbeOptions::of::<ReceiveFlags>("receive"),
    ProbeOptions::of::<StreamFlags>("stream"),
    ProbeOptions::of::<NoiseFlags>("noise"),
    ProbeOptions::of::<BandwidthFlags>("bandwidth"),
    ProbeOptions::of::<InteractiveFlags>("interactive"),
    ProbeOptions::of::<InversionFlags>("inversion"),
    ProbeOptions::of::<IrqFlags>("irq"),
    ProbeOptions::of::<AudioFlags>("audio"),
    ProbeOptions::of::<AttachFlags>("attach"),
    ProbeOptions::of::<FakeFlags>("fake"),
];

impl ProbeOptions {
    const fn of<F: ProbeFlags>(name: &'static str) -> Self {
        Self {
            name,
            augment: F::augment_args,
            read: |matches| Ok(Box::new(F::from_arg_matches(matches)?)),
            unsupported: F::UNSUPPORTED,
        }
    }

    /// Why it does not support this option, if so.
    #[must_use]
    pub fn why_not(&self, option: &str) -> Option<&'static str> {
        let is_named = |row: &&Unsupported| row.options.contains(&option);
        self.unsupported.iter().find(is_named).map(|row| row.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::probes::PROBES;

    #[test]
    fn every_probe_of_the_table_has_its_options() {
        let names = PROBE_OPTIONS.map(|row| row.name);
        assert_eq!(names.as_slice(), PROBES.iter().map(|probe| probe.name).collect::<Vec<_>>());
    }
}

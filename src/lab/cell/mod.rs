//! One run of one kernel in one guest: its description, and the key of its stored outcome.
//!
//! - [`phase`]: when it begins to measure
//! - [`parts`]: what its guest is given
//! - [`guest_runner`]: runs it
//! - [`guest_record`]: what is added to its record
//! - [`verify`]: whether a repetition is identical

pub mod guest_record;
pub mod guest_runner;
mod guest_scratch;
pub mod parts;
pub mod phase;
pub mod published;
pub mod verify;

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use sha2::{Digest, Sha256};

use self::phase::StartPhase;
use crate::{
    lab::{
        guest::{nodes::Nodes, qemu::Emulation},
        kernels::Kernel,
    },
    run::probes::ProbeInfo,
};

/// What an instruction takes in counted time: 2^1 ns.
pub const SHIFT: u8 = 1;

/// The first QEMU whose counted time works with several CPUs.
const SEVERAL_CPUS_SINCE: u32 = 10;

/// Flags of `tardy run` that are the lab's.
const TAKEN: [&str; 7] = ["-o", "--output", "--raw", "--name", "--quiet", "--json", "--store"];

/// The flag that keeps single samples, for a run with these arguments; a probe without latencies
/// has none to keep.
#[must_use]
pub fn keeps_samples(arguments: &[String]) -> Option<&'static str> {
    let probe = arguments.first().and_then(|name| ProbeInfo::find(name));
    probe.is_none_or(ProbeInfo::has_latencies).then_some("--raw")
}

/// What drives a guest's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClockMode {
    /// The count of its instructions.
    Deterministic,
    /// The host, by KVM where that works and by plain emulation where not.
    Real,
}

/// One run of one kernel in a guest.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The kernel.
    pub kernel: Kernel,
    /// What drives its clock.
    pub mode: ClockMode,
    /// The number of its phase offset.
    pub seed: u32,
    /// Where that begins.
    pub start: StartPhase,
    /// Whether it repeats another column of the table with other padding.
    pub is_control: bool,
    /// The plan's name of the load.
    pub load: String,
    /// For `tardy run`, without the flags that are the lab's own: where the run goes and what it is
    /// called, `--raw`, and what it prints.
    pub arguments: Vec<String>,
    /// For the tardy in the second box; none where there is one box.
    pub far: Vec<String>,
    /// CPUs of the machine.
    pub cpus: u8,
    /// How long it may take in all, of the host's time.
    pub limit: Duration,
}

impl Cell {
    /// Whether it can be run by a QEMU of this version.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub fn check(&self, qemu: &str) -> Result<()> {
        let name = |argument: &String| argument.split('=').next().unwrap_or_default().to_owned();
        let taken = self.arguments.iter().map(name).find(|name| TAKEN.contains(&name.as_str()));
        if let Some(taken) = taken {
            bail!("load \"{}\": {taken} is set by the lab; leave it out", self.load);
        }
        ensure!((1..=64).contains(&self.cpus), "{} CPUs: a guest has 1 to 64", self.cpus);
        let major = qemu.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0_u32);
        let counts = self.mode == ClockMode::Deterministic && self.cpus > 1;
        ensure!(
            !counts || major >= SEVERAL_CPUS_SINCE,
            "{} CPUs in --mode deterministic: QEMU {qemu} cannot count time for more than one; use \
             one CPU, or QEMU {SEVERAL_CPUS_SINCE} or later",
            self.cpus
        );
        Ok(())
    }

    /// Whether there is a second box.
    #[must_use]
    pub fn nodes(&self) -> Nodes {
        if self.far.is_empty() { Nodes::One } else { Nodes::Two }
    }

    /// What executes it, where its time is counted.
    #[must_use]
    pub fn counted(&self) -> Option<Emulation> {
        (self.mode == ClockMode::Deterministic).then_some(Emulation::Counted { shift: SHIFT })
    }
}

/// A sum over texts that cannot be mistaken for other texts.
pub struct Key(Sha256);

impl Key {
    /// Of a kind of key; other kinds are other keys.
    #[must_use]
    pub fn of(kind: &str) -> Self {
        Self(Sha256::new()).and(kind)
    }

    /// With one more text.
    #[must_use]
    pub fn and(mut self, text: &str) -> Self {
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(text);
        self
    }

    /// In hexadecimal digits.
    #[must_use]
    pub fn hex(self) -> String {
        hex(&self.0.finalize())
    }
}

/// Two digits a byte.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn cell(arguments: &[&str]) -> Cell {
        Cell {
            kernel: Kernel { name: "6.1-x".into(), ..Kernel::default() },
            mode: ClockMode::Deterministic,
            seed: 0,
            start: StartPhase::default(),
            is_control: false,
            load: "idle".into(),
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            far: Vec::new(),
            cpus: 1,
            limit: Duration::from_secs(60),
        }
    }

    #[test]
    fn a_probe_without_latencies_keeps_no_samples() {
        let flag = |probe: &str| keeps_samples(&[probe.to_owned(), "--duration=1s".into()]);
        assert_eq!(flag("bandwidth"), None);
        assert_eq!((flag("timer"), flag("noise")), (Some("--raw"), Some("--raw")));
    }

    #[test]
    fn what_the_lab_gives_itself_is_refused_by_name() {
        for taken in ["-o", "--raw", "--name=x", "--store=/x", "--json"] {
            let error = cell(&["timer", taken]).check("7.2.22").unwrap_err().to_string();
            let name = taken.split('=').next().unwrap();
            assert!(error.contains(name) && error.contains("\"idle\""), "{error}");
        }
        cell(&["timer", "--interval=1ms"]).check("7.2.22").unwrap();
    }

    #[test]
    fn several_cpus_are_counted_only_by_a_qemu_that_can() {
        let mut several = cell(&[]);
        several.cpus = 2;
        let error = several.check("7.2.22 (Debian)").unwrap_err().to_string();
        assert!(error.contains("QEMU 7.2.22") && error.contains("QEMU 10"), "{error}");
        several.check("10.0.2").unwrap();
        several.mode = ClockMode::Real;
        several.check("7.2.22").unwrap();
        several.cpus = 0;
        assert!(several.check("10.0.2").is_err());
    }

    #[test]
    fn keys_of_other_texts_are_other_keys() {
        let key = |texts: &[&str]| {
            let key = texts.iter().fold(Key::of("x"), |key, text| key.and(text));
            key.hex()
        };
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["a"]), key(&["a", ""]));
        assert_eq!(key(&["a"]), key(&["a"]));
        assert_eq!(key(&[]).len(), 64);
    }
}

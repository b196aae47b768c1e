//! What an entry of a list has of the setup of a run: all by which runs differ.

use serde::{Deserialize, Serialize};

use super::setup::{AskedSetup, FoundSetup};

/// What a [`super::RunEntry`] has of the setup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntrySetup {
    /// What the user or the default wanted; `None` for runs of other programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<EntryAsked>,
    /// What the kernel said after it was arranged.
    pub found: EntryFound,
}

/// What a [`super::RunEntry`] has of what was wanted; as in [`AskedSetup`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntryAsked {
    /// Timer slack of the measured threads, ns.
    pub timer_slack_ns: u64,
    /// CPUs for loads and recording threads, as a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub housekeeping: Option<String>,
}

/// What a [`super::RunEntry`] has of what the kernel said; as in [`FoundSetup`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntryFound {
    /// Policy and priority of the measured threads: `fifo 90`.
    pub policy: Option<String>,
    /// CPUs that were measured, as a list.
    pub cpus: Option<String>,
    /// The longest latency of idle states that was asked for, us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dma_latency_us: Option<i32>,
    /// The frequency governor that was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// CPUs that were taken offline, as a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub siblings_offline: Option<String>,
    /// The shield, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shield: Option<EntryShield>,
    /// Settings of the machine that were set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<EntrySetting>,
}

/// A shield.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntryShield {
    /// The shielded CPUs, as a list.
    pub cpus: String,
}

/// A setting of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntrySetting {
    /// Its name, as in `--set`.
    pub name: String,
    /// What was read back.
    pub found: String,
}

impl From<&AskedSetup> for EntryAsked {
    fn from(asked: &AskedSetup) -> Self {
        Self { timer_slack_ns: asked.timer_slack_ns, housekeeping: asked.housekeeping.clone() }
    }
}

impl From<FoundSetup> for EntryFound {
    fn from(found: FoundSetup) -> Self {
        let setting =
            |own: super::setup::FoundSetting| EntrySetting { name: own.name, found: own.found };
        Self {
            policy: found.policy,
            cpus: found.cpus,
            dma_latency_us: found.dma_latency_us,
            governor: found.governor,
            siblings_offline: found.siblings_offline,
            shield: found.shield.map(|own| EntryShield { cpus: own.cpus }),
            settings: found.settings.into_iter().map(setting).collect(),
        }
    }
}

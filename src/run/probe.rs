//! Which probe measured, and the parameters that it ran with.
//!
//! One variant a probe, each with its own typed parameters. In `run.json` it is the name and an
//! object: `"probe": {"name": "timer", "parameters": {...}}`.

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error},
};
use serde_json::{Map, Value};

/// What measured, with every parameter that it ran with. What a run has whatever its probe, as its
/// length, is in [`super::RunParameters`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "name", content = "parameters", rename_all = "snake_case")]
pub enum ProbeRecord {
    /// Threads that wait for their timers.
    Timer(TimerParameters),
    /// Messages there and back.
    Pingpong(PingpongParameters),
    /// Packets from their time stamp to the thread that reads them.
    Receive(ReceiveParameters),
    /// Packets at a steady rate.
    Stream(StreamParameters),
    /// Made-up samples.
    Fake(FakeParameters),
    /// A probe that this version does not know, or an early run of a known one that lacks some
    /// parameters.
    #[serde(untagged)]
    Other(OtherProbe),
}

/// The parameters of `timer`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimerParameters {
    /// How its threads wait: `nanosleep`, `relative` or `timerfd`.
    pub wake: String,
    /// Time from one expiry to the next, ns.
    pub interval_ns: i64,
    /// Distance between the expiries of one thread and the next, ns.
    pub distance_ns: i64,
    /// The measured CPUs, as a list: `0-3,7`.
    pub cpus: String,
    /// Threads on each of them.
    pub threads_per_cpu: u32,
    /// How much the priority falls from one thread of a CPU to the next.
    pub priority_step: u32,
}

/// The parameters of `pingpong`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PingpongParameters {
    /// What carries the messages: `tcp`, `futex`, ...
    pub transport: String,
    /// Bytes of one message.
    pub size: u64,
    /// The CPU of the near end.
    pub cpu: u32,
    /// The CPU of the far end; absent where another program is the far end.
    pub far_cpu: Option<u32>,
    /// The priority of the far end; absent likewise.
    pub far_priority: Option<u32>,
    /// The address of the far end; absent where this tardy starts it.
    pub to: Option<String>,
    /// Whether the far end is a program that is no tardy.
    pub foreign: bool,
    /// So long an answer is waited for, ns.
    pub timeout_ns: i64,
}

/// The parameters of `receive`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReceiveParameters {
    /// The UDP port; 0 for a free one. Absent with `iface`.
    pub listen: Option<u16>,
    /// The network interface; absent with `listen`.
    pub iface: Option<String>,
    /// How packets are waited for: `block`, `spin`, ...
    pub wait: String,
    /// The CPU of the thread that reads.
    pub cpu: u32,
    /// Who sends: `builtin` for a process of this tardy, `none` for others.
    pub sender: String,
    /// Bytes of one packet; absent without a sender, as all that follows.
    pub size: Option<u64>,
    /// Packets per second: `1kpps`.
    pub rate: Option<String>,
    /// The CPU of the sender.
    pub far_cpu: Option<u32>,
    /// The priority of the sender.
    pub far_priority: Option<u32>,
}

/// The parameters of `stream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StreamParameters {
    /// What carries the packets: `udp`, `tcp`, `multicast`, ...
    pub transport: String,
    /// Bytes of one packet.
    pub size: u64,
    /// Packets per second of each sender.
    pub rate_per_s: f64,
    /// Whether the far end sends as well.
    pub both_ways: bool,
    /// How the near end waits: `sleep`, `spin`, ...
    pub wait: String,
    /// How the far end waits; absent where it is an echo.
    pub far_wait: Option<String>,
    /// A packet is late when it comes later than this after its time, ns.
    pub late_over_ns: i64,
    /// The CPU of the near end.
    pub cpu: u32,
    /// The CPU of the far end; absent where it is an echo.
    pub far_cpu: Option<u32>,
    /// The priority of the far end; absent where it is an echo.
    pub far_priority: Option<u32>,
    /// The address of the echo; absent where there is none.
    pub to: Option<String>,
    /// The multicast group; absent where there is none.
    pub group: Option<String>,
    /// Receivers in the group; absent where there is none.
    pub receivers: Option<u32>,
}

/// The parameters of `fake`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FakeParameters {
    /// Time from one expiry to the next, ns.
    pub interval_ns: i64,
    /// The CPUs in whose names samples are made up, as a list.
    pub cpus: String,
    /// Whether they are made up as fast as possible.
    pub unpaced: bool,
}

/// A probe whose parameters have no type here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OtherProbe {
    /// Its name.
    pub name: String,
    /// Its parameters as they are.
    pub parameters: Map<String, Value>,
}

impl ProbeRecord {
    /// As on the command line: `timer`, ...
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Timer(_) => "timer",
            Self::Pingpong(_) => "pingpong",
            Self::Receive(_) => "receive",
            Self::Stream(_) => "stream",
            Self::Fake(_) => "fake",
            Self::Other(other) => &other.name,
        }
    }

    /// Time from one expiry to the next, ns; absent for probes that have no timer.
    #[must_use]
    pub const fn interval_ns(&self) -> Option<i64> {
        match self {
            Self::Timer(timer) => Some(timer.interval_ns),
            Self::Fake(fake) => Some(fake.interval_ns),
            Self::Pingpong(_) | Self::Receive(_) | Self::Stream(_) | Self::Other(_) => None,
        }
    }

    /// What carries messages and how many bytes each has; absent where nothing was chosen.
    #[must_use]
    pub fn carrier(&self) -> Option<(&str, u64)> {
        match self {
            Self::Pingpong(pingpong) => Some((&pingpong.transport, pingpong.size)),
            Self::Stream(stream) => Some((&stream.transport, stream.size)),
            Self::Timer(_) | Self::Receive(_) | Self::Fake(_) | Self::Other(_) => None,
        }
    }

    /// With the types of its probe; unchanged where this version knows none of that name.
    fn typed(other: OtherProbe) -> Result<Self, serde_json::Error> {
        fn of<T: DeserializeOwned>(other: OtherProbe) -> Result<T, serde_json::Error> {
            serde_json::from_value(Value::Object(other.parameters))
                .map_err(|error| Error::custom(format!("parameters of {}: {error}", other.name)))
        }
        Ok(match other.name.as_str() {
            "timer" => Self::Timer(of(other)?),
            "pingpong" => Self::Pingpong(of(other)?),
            "receive" => Self::Receive(of(other)?),
            "stream" => Self::Stream(of(other)?),
            "fake" => Self::Fake(of(other)?),
            _ => Self::Other(other),
        })
    }

    /// The same for a run of version 1, in which parameters may be missing: then they stay as they
    /// are.
    pub(super) fn typed_if_whole(other: OtherProbe) -> Self {
        Self::typed(other.clone()).unwrap_or(Self::Other(other))
    }
}

impl<'de> Deserialize<'de> for ProbeRecord {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::typed(OtherProbe::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// A probe as [`ProbeRecord::typed_if_whole`] has it.
pub(super) fn lenient<'de, D: Deserializer<'de>>(from: D) -> Result<ProbeRecord, D::Error> {
    OtherProbe::deserialize(from).map(ProbeRecord::typed_if_whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_probe_of_another_version_keeps_its_parameters() {
        let unknown = json!({"name": "irq", "parameters": {"line": 24}});
        let record: ProbeRecord = serde_json::from_value(unknown.clone()).unwrap();
        assert_eq!((record.name(), record.interval_ns()), ("irq", None));
        assert_eq!(serde_json::to_value(&record).unwrap(), unknown);
    }

    #[test]
    fn a_parameter_that_is_missing_or_of_another_type_is_an_error_that_names_it() {
        let fake = json!({"interval_ns": 1_000, "cpus": "0", "unpaced": false});
        let read = |parameters: &Value| {
            let probe = json!({"name": "fake", "parameters": parameters});
            serde_json::from_value::<ProbeRecord>(probe).map_err(|error| error.to_string())
        };
        assert_eq!(read(&fake).unwrap().interval_ns(), Some(1_000));
        let mut without = fake.clone();
        without.as_object_mut().unwrap().remove("cpus");
        assert_eq!(read(&without).unwrap_err(), "parameters of fake: missing field `cpus`");
        let mut wrong = fake;
        wrong["interval_ns"] = json!("1ms");
        assert!(read(&wrong).unwrap_err().starts_with("parameters of fake: invalid type"));
    }
}

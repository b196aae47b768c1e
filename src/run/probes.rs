//! The table of probes: all that others must know of each, and the parameters that one ran with.
//! The command line, reports and the lab read it; `probes` has what makes them.
//!
//! A probe is one block of the table, with one type for its parameters. In `run.json` it is the
//! name and an object: `"probe": {"name": "timer", "parameters": {...}}`.

mod parameters;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error},
};
use serde_json::{Map, Value};

pub use self::parameters::{
    AttachParameters, AudioParameters, BandwidthParameters, FakeParameters, InversionParameters,
    IrqParameters, NoiseParameters, TimerParameters,
};
use super::interactive::InteractiveParameters;
pub use super::probe_info::{LatencyFrom, MeasuredThreads, ProbeInfo, SampleName, Traceable};

/// Makes [`PROBES`] and [`ProbeRecord`] of one block for each probe.
macro_rules! probes {
    ($(
        $(#[$doc:meta])*
        $variant:ident($parameters:ty) is $name:literal {
            $($field:ident: $value:expr,)*
        }
    )*) => {
        /// All probes.
        pub const PROBES: &[ProbeInfo] = &[$(ProbeInfo { name: $name, $($field: $value,)* },)*];

        /// What measured, with every parameter that it ran with. What a run has whatever its probe,
        /// as its length, is in [`super::RunParameters`].
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(tag = "name", content = "parameters")]
        pub enum ProbeRecord {
            $(
                $(#[$doc])*
                #[serde(rename = $name)]
                $variant($parameters),
            )*
            /// A probe that this version does not know, or an early run of a known one that lacks
            /// some parameters.
            #[serde(untagged)]
            Other(OtherProbe),
        }

        impl ProbeRecord {
            /// As on the command line: `timer`, ...
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Other(other) => &other.name,
                }
            }

            fn parameters(&self) -> &dyn ProbeParameters {
                match self {
                    $(Self::$variant(parameters) => parameters,)*
                    Self::Other(other) => other,
                }
            }

            /// With the types of its probe; unchanged where this version knows none of that name.
            fn typed(other: OtherProbe) -> Result<Self, serde_json::Error> {
                Ok(match other.name.as_str() {
                    $($name => Self::$variant(of_type(other)?),)*
                    _ => Self::Other(other),
                })
            }
        }
    };
}

probes! {
    /// Threads that wait for their timers.
    Timer(TimerParameters) is "timer" {
        help: "Sleep until a programmed time; how late is the wake-up?",
        sample: SampleName::WakeUp,
        latency_from: LatencyFrom::Schedule,
        threads: MeasuredThreads::WaitForTime,
        default_samples: None,
        traceable: Traceable::All,
        takes_echo: false,
    }
    /// Messages there and back.
    Pingpong(PingpongParameters) is "pingpong" {
        help: "Send a message and wait for its answer; how long is the round trip?",
        sample: SampleName::RoundTrip,
        latency_from: LatencyFrom::Sending,
        threads: MeasuredThreads::WaitForMessages,
        default_samples: Some(1_000_000),
        traceable: Traceable::OnRequest,
        takes_echo: true,
    }
    /// Packets from their time stamp to the thread that reads them.
    Receive(ReceiveParameters) is "receive" {
        help: "Read packets: from the kernel's receive time stamp to the thread that reads it",
        sample: SampleName::Packet,
        latency_from: LatencyFrom::Stamp,
        threads: MeasuredThreads::WaitForMessages,
        default_samples: None,
        traceable: Traceable::OnRequest,
        takes_echo: false,
    }
    /// Packets at a steady rate.
    Stream(StreamParameters) is "stream" {
        help: "Send packets on a schedule: from the scheduled send time to the arrival",
        sample: SampleName::Packet,
        latency_from: LatencyFrom::Schedule,
        threads: MeasuredThreads::WaitForMessages,
        default_samples: None,
        traceable: Traceable::OnRequest,
        takes_echo: true,
    }
    /// Gaps of threads that never sleep.
    Noise(NoiseParameters) is "noise" {
        help: "Read the clock all the time: when, and for how long, is the CPU taken away?",
        sample: SampleName::Gap,
        latency_from: LatencyFrom::ClockRead,
        threads: MeasuredThreads::NeverWait,
        default_samples: None,
        traceable: Traceable::Causes,
        takes_echo: false,
    }
    /// Bytes per second, and times of system calls and processes.
    Bandwidth(BandwidthParameters) is "bandwidth" {
        help: "Bytes per second of pipes, sockets, files and memory; times of calls and processes",
        sample: SampleName::Sample,
        latency_from: LatencyFrom::Sending,
        threads: MeasuredThreads::Work,
        default_samples: None,
        traceable: Traceable::No,
        takes_echo: false,
    }
    /// Simulated tasks.
    Interactive(InteractiveParameters) is "interactive" {
        help: "Simulated audio, video, X and game tasks: latency, share of the CPU, deadlines met",
        sample: SampleName::Frame,
        latency_from: LatencyFrom::Schedule,
        threads: MeasuredThreads::WaitForTime,
        default_samples: None,
        traceable: Traceable::All,
        takes_echo: false,
    }
    /// Waits for a mutex that a thread of lower priority has.
    Inversion(InversionParameters) is "inversion" {
        help: "Wait for a mutex of a low-priority thread under a hog, with inheritance and without",
        sample: SampleName::Wait,
        latency_from: LatencyFrom::ClockRead,
        threads: MeasuredThreads::WaitForTime,
        default_samples: None,
        traceable: Traceable::No,
        takes_echo: false,
    }
    /// Wake-ups by a periodic interrupt.
    Irq(IrqParameters) is "irq" {
        help: "Wait for a periodic interrupt; how late is the thread, how long a known loop?",
        sample: SampleName::WakeUp,
        latency_from: LatencyFrom::Schedule,
        threads: MeasuredThreads::WaitForTime,
        default_samples: None,
        traceable: Traceable::All,
        takes_echo: false,
    }
    /// Cycles of a JACK server.
    Audio(AudioParameters) is "audio" {
        help: "Be a client of a JACK server; how late is its process callback, against the period?",
        sample: SampleName::WakeUp,
        latency_from: LatencyFrom::Schedule,
        threads: MeasuredThreads::WaitForServer,
        default_samples: None,
        traceable: Traceable::OnRequest,
        takes_echo: false,
    }
    /// Threads of others.
    Attach(AttachParameters) is "attach" {
        help: "Look at your own program's threads: how late do they get the CPU, what do they do?",
        sample: SampleName::WakeUp,
        latency_from: LatencyFrom::WakeUp,
        threads: MeasuredThreads::Foreign,
        default_samples: None,
        traceable: Traceable::All,
        takes_echo: false,
    }
    /// Made-up samples.
    Fake(FakeParameters) is "fake" {
        help: "Synthetic samples with known values: for tests and demos",
        sample: SampleName::WakeUp,
        latency_from: LatencyFrom::Schedule,
        threads: MeasuredThreads::WaitForTime,
        default_samples: None,
        traceable: Traceable::No,
        takes_echo: false,
    }
}

/// The probe that is measured by default.
pub const DEFAULT_PROBE: &ProbeInfo = &PROBES[0];

impl ProbeInfo {
    /// The probe called `name`.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        PROBES.iter().find(|probe| probe.name == name)
    }
}

/// What is asked of the parameters of any probe.
trait ProbeParameters {
    /// See [`ProbeRecord::interval_ns`].
    fn interval_ns(&self) -> Option<i64> {
        None
    }

    /// See [`ProbeRecord::has_estimated_grid`].
    fn has_estimated_grid(&self) -> bool {
        false
    }

    /// See [`ProbeRecord::carrier`].
    fn carrier(&self) -> Option<(&str, u64)> {
        None
    }
}

/// The parameters of `pingpong`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PingpongParameters {
    /// What carries the messages: `tcp`, `futex`, ...
    pub transport: String,
    /// Bytes of one message.
    pub size: u64,
    /// The CPU of the local endpoint.
    pub cpu: u32,
    /// The CPU of the remote endpoint; absent if another program is the remote endpoint.
    pub far_cpu: Option<u32>,
    /// The priority of the remote endpoint; absent likewise.
    pub far_priority: Option<u32>,
    /// The address of the remote endpoint; absent if this tardy starts it.
    pub to: Option<String>,
    /// Whether the remote endpoint is another program than tardy.
    pub foreign: bool,
    /// The time-out of an answer, ns.
    pub timeout_ns: i64,
}

impl ProbeParameters for PingpongParameters {
    fn carrier(&self) -> Option<(&str, u64)> {
        Some((&self.transport, self.size))
    }
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

impl ProbeParameters for ReceiveParameters {}

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
    /// Whether the remote endpoint sends as well.
    pub both_ways: bool,
    /// How the local endpoint waits: `sleep`, `spin`, ...
    pub wait: String,
    /// How the remote endpoint waits; absent if it is an echo.
    pub far_wait: Option<String>,
    /// A packet is late when it comes later than this after its time, ns.
    pub late_over_ns: i64,
    /// The CPU of the local endpoint.
    pub cpu: u32,
    /// The CPU of the remote endpoint; absent if it is an echo.
    pub far_cpu: Option<u32>,
    /// The priority of the remote endpoint; absent if it is an echo.
    pub far_priority: Option<u32>,
    /// The address of the echo; absent if it has none.
    pub to: Option<String>,
    /// The multicast group; absent if it has none.
    pub group: Option<String>,
    /// Receivers in the group; absent if it has none.
    pub receivers: Option<u32>,
}

impl ProbeParameters for StreamParameters {
    fn carrier(&self) -> Option<(&str, u64)> {
        Some((&self.transport, self.size))
    }
}

impl ProbeParameters for InteractiveParameters {}

/// A probe whose parameters have no type here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OtherProbe {
    /// Its name.
    pub name: String,
    /// Its parameters as they are.
    pub parameters: Map<String, Value>,
}

/// The parameter of an imported probe that names the one of tardy whose samples are the same thing.
pub const SAME_AS: &str = "same_as";

impl ProbeParameters for OtherProbe {
    fn interval_ns(&self) -> Option<i64> {
        self.parameters.get("interval_ns").and_then(Value::as_i64)
    }
}

impl ProbeRecord {
    /// The name of the probe whose samples these are: its own, but of an imported one that measures
    /// as a probe of tardy does, the name of that: `timer` for cyclictest.
    #[must_use]
    pub fn measured_as(&self) -> &str {
        let Self::Other(other) = self else { return self.name() };
        other.parameters.get(SAME_AS).and_then(Value::as_str).unwrap_or(&other.name)
    }

    /// What is known of it; nothing of a probe that this version does not know.
    #[must_use]
    pub fn info(&self) -> Option<&'static ProbeInfo> {
        ProbeInfo::find(self.measured_as())
    }

    /// Time from one expiry to the next, ns; absent for probes that have no timer.
    #[must_use]
    pub fn interval_ns(&self) -> Option<i64> {
        self.parameters().interval_ns()
    }

    /// Whether the times at which samples were due are estimated from earlier ones, as those of a
    /// device are that does not say when it interrupted: one may then come before them.
    #[must_use]
    pub fn has_estimated_grid(&self) -> bool {
        self.parameters().has_estimated_grid()
    }

    /// What carries messages and how many bytes each has; `None` if nothing was chosen.
    #[must_use]
    pub fn carrier(&self) -> Option<(&str, u64)> {
        self.parameters().carrier()
    }

    /// With the types of its probe, for a run of version 1, in which parameters may be missing:
    /// then they stay as they are.
    pub(super) fn typed_if_whole(other: OtherProbe) -> Self {
        Self::typed(other.clone()).unwrap_or(Self::Other(other))
    }
}

fn of_type<T: DeserializeOwned>(other: OtherProbe) -> Result<T, serde_json::Error> {
    serde_json::from_value(Value::Object(other.parameters))
        .map_err(|error| Error::custom(format!("parameters of {}: {error}", other.name)))
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
    fn names_are_plain_and_found_again() {
        for probe in PROBES {
            assert_eq!(ProbeInfo::find(probe.name), Some(probe));
            assert!(probe.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
            assert!(!probe.help.is_empty() && !probe.help.ends_with('.'));
        }
        assert_eq!(ProbeInfo::find("nosuch"), None);
    }

    #[test]
    fn a_probe_of_another_version_keeps_its_parameters() {
        let unknown = json!({"name": "gpio", "parameters": {"line": 24}});
        let record: ProbeRecord = serde_json::from_value(unknown.clone()).unwrap();
        assert_eq!((record.name(), record.interval_ns()), ("gpio", None));
        assert_eq!((record.measured_as(), record.info()), ("gpio", None));
        assert_eq!(serde_json::to_value(&record).unwrap(), unknown);
    }

    #[test]
    fn an_imported_probe_is_known_by_the_one_that_it_is_the_same_as() {
        let parameters = json!({"interval_ns": 1_000_000, "same_as": "timer"});
        let probe = json!({"name": "cyclictest", "parameters": parameters});
        let record: ProbeRecord = serde_json::from_value(probe).unwrap();
        assert_eq!((record.name(), record.measured_as()), ("cyclictest", "timer"));
        assert_eq!((record.interval_ns(), record.info()), (Some(1_000_000), PROBES.first()));
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

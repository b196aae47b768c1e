//! Settings of power: frequency and idle states.

use super::{Setting, SettingPlace, SettingValues};

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "governor",
        what: "the frequency governor of the measured CPUs",
        place: SettingPlace::OfCpus("/sys/devices/system/cpu/cpu", "/cpufreq/scaling_governor"),
        values: SettingValues::Name,
        better: "performance",
        may_break: "more power and heat; on a hot machine the firmware then throttles",
        boot: "cpufreq.default_governor=performance",
    },
    Setting {
        name: "idle_states",
        what: "the longest exit latency of an idle state that the measured CPUs enter, us",
        place: SettingPlace::IdleStates,
        values: SettingValues::Number(0, 1_000_000),
        better: "10",
        may_break: "more power and heat, and lower turbo frequencies of the other CPUs",
        boot: "processor.max_cstate=1 intel_idle.max_cstate=1",
    },
];

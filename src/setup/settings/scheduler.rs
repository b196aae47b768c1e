//! Settings of the scheduler: timers, throttling, watchdogs, preemption.

use super::{Setting, SettingPlace, SettingValues};

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "timer_migration",
        what: "whether timers of idle CPUs move to busy ones",
        place: SettingPlace::File("/proc/sys/kernel/timer_migration"),
        values: SettingValues::Number(0, 1),
        better: "0",
        may_break: "idle CPUs wake for their own timers, and take more power",
        boot: "",
    },
    Setting {
        name: "rt_runtime",
        what: "how much of each second real-time tasks may take before others get the CPU, us",
        place: SettingPlace::File("/proc/sys/kernel/sched_rt_runtime_us"),
        values: SettingValues::Number(-1, 1_000_000),
        better: "-1",
        may_break: "a real-time task that never sleeps hangs its CPU, and in the end the machine",
        boot: "",
    },
    Setting {
        name: "fair_server",
        what: "the time that the kernel keeps for ordinary tasks on the measured CPUs, ns a second",
        place: SettingPlace::OfCpus("/sys/kernel/debug/sched/fair_server/cpu", "/runtime"),
        values: SettingValues::Number(0, 1_000_000_000),
        better: "0",
        may_break: "a real-time task that never sleeps hangs its CPU, and in the end the machine",
        boot: "",
    },
    Setting {
        name: "preempt",
        what: "how far the kernel is preempted",
        place: SettingPlace::File("/sys/kernel/debug/sched/preempt"),
        values: SettingValues::Words(&["none", "voluntary", "full", "lazy"]),
        better: "full",
        may_break: "some throughput of busy kernel work",
        boot: "preempt=full",
    },
    Setting {
        name: "nmi_watchdog",
        what: "the watchdog that counts cycles and sends NMIs",
        place: SettingPlace::File("/proc/sys/kernel/nmi_watchdog"),
        values: SettingValues::Number(0, 1),
        better: "0",
        may_break: "a CPU that hangs with interrupts off is not reported",
        boot: "nmi_watchdog=0",
    },
    Setting {
        name: "soft_watchdog",
        what: "the watchdog that wakes a task of the highest priority on each CPU",
        place: SettingPlace::File("/proc/sys/kernel/soft_watchdog"),
        values: SettingValues::Number(0, 1),
        better: "0",
        may_break: "a CPU that hangs in the kernel is not reported",
        boot: "nosoftlockup",
    },
];

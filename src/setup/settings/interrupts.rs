//! Settings of interrupts and of the kernel's unbound work: on which CPUs they run.

use super::{Setting, SettingPlace, SettingValues};

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "irq_affinity",
        what: "on which CPUs device interrupts fire",
        place: SettingPlace::Interrupts,
        values: SettingValues::Cpus,
        better: "away",
        may_break: "the other CPUs take all device interrupts; queues of a card share them",
        boot: "irqaffinity=OTHERS",
    },
    Setting {
        name: "workqueue_mask",
        what: "on which CPUs unbound kernel work runs",
        place: SettingPlace::Mask("/sys/devices/virtual/workqueue/cpumask"),
        values: SettingValues::Cpus,
        better: "away",
        may_break: "the other CPUs do all of it: write-back and encryption may take longer",
        boot: "workqueue.unbound_cpus=OTHERS",
    },
];

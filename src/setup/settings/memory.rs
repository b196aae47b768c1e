//! Settings of memory: its statistics, huge pages, compaction, write-back.

use super::{Setting, SettingPlace, SettingValues};

const MODES: &[&str] = &["always", "defer", "defer+madvise", "madvise", "never"];

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "vm_stat_interval",
        what: "how often memory statistics are collected on every CPU, s",
        place: SettingPlace::File("/proc/sys/vm/stat_interval"),
        values: SettingValues::Number(1, 86_400),
        better: "60",
        may_break: "counters of free memory lag, so that reclaim may begin late",
        boot: "",
    },
    Setting {
        name: "thp",
        what: "which memory may become transparent huge pages",
        place: SettingPlace::File("/sys/kernel/mm/transparent_hugepage/enabled"),
        values: SettingValues::Words(&["always", "madvise", "never"]),
        better: "never",
        may_break: "programs with much memory take more TLB misses",
        boot: "transparent_hugepage=never",
    },
    Setting {
        name: "thp_defrag",
        what: "whether an allocation waits until a huge page is made",
        place: SettingPlace::File("/sys/kernel/mm/transparent_hugepage/defrag"),
        values: SettingValues::Words(MODES),
        better: "never",
        may_break: "fewer huge pages for programs that ask for them",
        boot: "",
    },
    Setting {
        name: "compaction",
        what: "how eagerly kcompactd makes room for huge pages beforehand",
        place: SettingPlace::File("/proc/sys/vm/compaction_proactiveness"),
        values: SettingValues::Number(0, 100),
        better: "0",
        may_break: "an allocation of a huge page compacts memory itself, and waits for it",
        boot: "",
    },
    Setting {
        name: "numa_balancing",
        what: "whether pages are moved to the node that uses them",
        place: SettingPlace::File("/proc/sys/kernel/numa_balancing"),
        values: SettingValues::Number(0, 2),
        better: "0",
        may_break: "programs that are not bound to a node use more memory of others",
        boot: "numa_balancing=disable",
    },
    Setting {
        name: "dirty_writeback",
        what: "how often the kernel looks for pages to write to the disk, 1/100 s",
        place: SettingPlace::File("/proc/sys/vm/dirty_writeback_centisecs"),
        values: SettingValues::Number(0, 360_000),
        better: "1500",
        may_break: "a power cut costs more of what was written last",
        boot: "",
    },
];

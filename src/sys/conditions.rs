//! What must not change during a run: CPUs online, clock source, governors, locked memory; and what
//! must not come meanwhile: throttling.

use super::{
    clock,
    cpus::Cpus,
    kernel_config::{ConfigOptions, release},
    kmsg, memory,
    quota::QuotaUse,
    root::{Root, SHOWN},
};

/// What the kernel says once in a boot, when it first stops real-time tasks for the others' sake.
const THROTTLING: &str = "RT throttling activated";

/// A file of the kernel's that every Linux has, and that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadFile {
    /// What nothing is known of without it.
    pub what: &'static str,
    /// The file.
    pub file: &'static str,
}

const LOG: UnreadFile = UnreadFile { what: "RT throttling", file: "/dev/kmsg" };

/// What CPU quotas are looked up in is a matter of the version of control groups.
const fn quota(file: &'static str) -> UnreadFile {
    UnreadFile { what: "CPU quotas", file }
}

/// What the conditions of a run are read from beside what some machines do not have.
const SOURCES: [UnreadFile; 7] = [
    UnreadFile { what: "use of the CPUs and steal time", file: "/proc/stat" },
    UnreadFile { what: "interrupts and NMIs", file: "/proc/interrupts" },
    UnreadFile { what: "locked memory", file: "/proc/self/status" },
    UnreadFile { what: "moves of the measured threads", file: "/proc/thread-self/stat" },
    UnreadFile { what: "whether this is a virtual machine", file: "/proc/cpuinfo" },
    UnreadFile { what: "CPUs that come or go, their governors and heat", file: ONLINE },
    UnreadFile { what: "the clock source", file: CLOCK_SOURCE },
];

const ONLINE: &str = "/sys/devices/system/cpu/online";

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Those of the sources that cannot be read below `root`, or are empty: containers put an empty
/// file over some of them, and an empty directory over those of heat.
fn unread(root: &Root, measured: &[CpuConditions]) -> Vec<UnreadFile> {
    let is_unread =
        |source: &&UnreadFile| root.read_shown(source.file).is_none_or(|text| text.is_empty());
    let mut unread: Vec<_> = SOURCES.iter().filter(is_unread).copied().collect();
    let is_hidden = |cpu: &CpuConditions| {
        cpu.throttles.is_none() && root.path(throttle_directory(cpu.cpu)).exists()
    };
    unread.extend(measured.iter().any(is_hidden).then_some(HEAT));
    unread
}

const HEAT: UnreadFile = UnreadFile {
    what: "CPUs that are slowed down because of heat",
    file: "/sys/devices/system/cpu/cpu*/thermal_throttle",
};

fn throttle_directory(cpu: u32) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle")
}

/// The conditions at one moment. What cannot be read is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    /// CPUs online.
    pub online: Option<Cpus>,
    /// The current clock source.
    pub clock_source: Option<String>,
    /// The measured CPUs, one by one.
    pub cpus: Vec<CpuConditions>,
    /// Time spent suspended since boot, ns.
    pub suspended_ns: i64,
    /// Bytes of this process that are locked; read at the ends of a run only.
    pub locked_bytes: Option<u64>,
    /// What the kernel's log says of RT throttling; read at the ends of a run only.
    pub rt_throttling: ThrottlingLog,
    /// How often its control groups had used up their CPU quotas; read at the ends of a run only.
    pub quota: Option<QuotaUse>,
    /// What could not be read at all; looked for at the ends of a run only.
    pub unread: Vec<UnreadFile>,
}

/// What the kernel's log says of RT throttling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThrottlingLog {
    /// The log cannot be read, or was not.
    #[default]
    Unread,
    /// Nothing, which means nothing: this kernel never says it, or may have said what is
    /// overwritten by now.
    Silent,
    /// It has not happened since boot.
    Never,
    /// That there was some.
    Throttled,
}

impl ThrottlingLog {
    fn read(root: &Root) -> Self {
        match kmsg::search(root, THROTTLING) {
            None => Self::Unread,
            Some(log) if log.found.is_some() => Self::Throttled,
            Some(log) if log.is_whole && logs_throttling(root) => Self::Never,
            Some(_) => Self::Silent,
        }
    }
}

/// Whether this kernel has the message. From 6.12 on only groups of real-time tasks are throttled,
/// and the fair server, which does the rest, logs nothing.
fn logs_throttling(root: &Root) -> bool {
    !has_fair_server(root).unwrap_or(true) || throttles_groups(root) == Some(true)
}

/// Whether this kernel has the fair server (`fair_server_init`, kernel/sched/fair.c): from 6.12 on.
pub fn has_fair_server(root: &Root) -> Option<bool> {
    release(root).map(|release| release >= (6, 12))
}

/// Whether this kernel may let a CPU be idle while a thread is ready for it: by core scheduling,
/// which lets the threads of a core run tasks of one group alone (kernel/sched/core_sched.c, 5.14),
/// or under a scheduler of sched_ext (kernel/sched/ext.c, 6.12).
pub fn may_idle_beside_ready(root: &Root) -> bool {
    let (config, release) = (ConfigOptions::read(root), release(root));
    let may_have = |option, since| {
        let is_on = config.is_on(option);
        is_on.unwrap_or_else(|| release.is_none_or(|release| release >= since))
    };
    may_have("SCHED_CORE", (5, 14)) || may_have("SCHED_CLASS_EXT", (6, 12))
}

/// Whether it throttles groups of real-time tasks, the first of which has all that are in no other:
/// a matter of how it was built, and of `rt_group_sched=` in later kernels (`setup_rt_group_sched`,
/// kernel/sched/core.c). `None` if its configuration cannot be read.
pub fn throttles_groups(root: &Root) -> Option<bool> {
    let config = ConfigOptions::read(root);
    let asked = root.read("/proc/cmdline").unwrap_or_default();
    let word = asked.split_whitespace().rev().find_map(|it| it.strip_prefix("rt_group_sched="));
    match (config.is_on("RT_GROUP_SCHED")?, word) {
        (false, _) => Some(false),
        (true, Some("0")) => Some(false),
        (true, Some("1")) => Some(true),
        (true, _) => config.is_on("RT_GROUP_SCHED_DEFAULT_DISABLED").map(|is_off| !is_off),
    }
}

/// One measured CPU at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuConditions {
    /// Its number.
    pub cpu: u32,
    /// Its frequency governor.
    pub governor: Option<String>,
    /// Changes of its frequency since boot.
    pub transitions: Option<u64>,
    /// Times it was slowed down because of heat, since boot.
    pub throttles: Option<u64>,
    /// Its frequency; read at the ends of a run only.
    pub frequency_khz: Option<u64>,
}

impl Conditions {
    /// Reads what can be read without disturbing a measurement, with a `pause` before each file.
    #[must_use]
    pub fn glimpse(root: &Root, measured: &Cpus, pause: &mut dyn FnMut()) -> Self {
        let mut read = |path: &str| root.read_in_pieces(path, pause);
        Self {
            online: read(ONLINE).and_then(|text| text.parse().ok()),
            clock_source: read(CLOCK_SOURCE),
            cpus: measured.iter().map(|cpu| CpuConditions::glimpse(cpu, &mut read)).collect(),
            suspended_ns: if root.is_this_machine() { clock::suspended_ns() } else { 0 },
            locked_bytes: None,
            rt_throttling: ThrottlingLog::Unread,
            quota: None,
            unread: Vec::new(),
        }
    }

    /// Reads everything. Some kernels interrupt a CPU to ask for its frequency, and the log is
    /// long: for before and after a measurement.
    #[must_use]
    pub fn read(root: &Root, measured: &Cpus) -> Self {
        let mut found = Self::glimpse(root, measured, &mut || {});
        for cpu in &mut found.cpus {
            cpu.frequency_khz = root.value(frequency_file(cpu.cpu, "scaling_cur_freq"));
        }
        let status = root.read("/proc/self/status");
        found.locked_bytes = status.and_then(|status| memory::kib_in(&status, "VmLck:"));
        found.rt_throttling = ThrottlingLog::read(root);
        found.unread = unread(root, &found.cpus);
        match QuotaUse::read(root) {
            Ok(used) => found.quota = Some(used),
            Err(file) => found.unread.push(quota(file)),
        }
        // Where the kernel would not say it, there is nothing to be missed.
        if found.rt_throttling == ThrottlingLog::Unread && logs_throttling(root) {
            found.unread.push(LOG);
        }
        found
    }
}

impl CpuConditions {
    fn glimpse(cpu: u32, read: &mut dyn FnMut(&str) -> Option<String>) -> Self {
        let governor = read(&frequency_file(cpu, "scaling_governor"));
        let mut count = |path: &str| read(path)?.parse::<u64>().ok();
        let transitions = count(&frequency_file(cpu, "stats/total_trans"));
        let mut throttles = |of: &str| {
            let file = format!("{}/{of}_throttle_count", throttle_directory(cpu));
            count(&file).or_else(|| count(&format!("{SHOWN}{file}")))
        };
        let core = throttles("core");
        let throttles = core.map(|core| core.saturating_add(throttles("package").unwrap_or(0)));
        Self { cpu, governor, transitions, throttles, frequency_khz: None }
    }
}

fn frequency_file(cpu: u32, name: &str) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cpus_online_and_a_clock_source() {
        let measured = Cpus::allowed().unwrap();
        let found = Conditions::read(&Root::default(), &measured);
        assert!(found.online.unwrap().without(&measured).len() < 10_000);
        assert!(found.clock_source.is_some() && found.locked_bytes.is_some());
        // Containers may hide those.
        let hidden = [LOG, quota(crate::sys::quota::MOUNT)];
        assert!(found.unread.iter().all(|unread| hidden.contains(unread)), "{:?}", found.unread);
        assert_eq!(found.cpus.len(), measured.len());
    }

    #[test]
    fn a_kernel_may_idle_beside_ready_threads_by_its_configuration_or_else_by_its_age() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        let write = |path: &str, text: String| {
            let path = root.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let may = |release: &str, config: Option<&str>| {
            write("/proc/sys/kernel/osrelease", format!("{release}\n"));
            let path = format!("/boot/config-{release}");
            config.into_iter().for_each(|config| write(&path, format!("CONFIG_SMP=y\n{config}\n")));
            may_idle_beside_ready(&root)
        };
        assert!(!may("5.10.0", None) && may("6.1.0", None));
        assert!(!may("6.1.1", Some("# CONFIG_SCHED_CORE is not set")));
        assert!(may("6.1.2", Some("CONFIG_SCHED_CORE=y")));
        assert!(may("7.2.0", Some("CONFIG_SCHED_CLASS_EXT=y")));
    }

    #[test]
    fn a_machine_that_shows_nothing_is_one_of_which_nothing_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        let files = |root: &Root| {
            let found = Conditions::read(root, &Cpus::default()).unread;
            found.into_iter().map(|unread| unread.file).collect::<Vec<_>>()
        };
        let quota = [crate::sys::quota::GROUPS];
        assert_eq!(files(&root), [&SOURCES.map(|source| source.file)[..], &quota].concat());
        for source in &SOURCES {
            let path = root.path(source.file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "1\n").unwrap();
        }
        assert_eq!(files(&root), [""; 0]);
        let heat = |root: &Root| {
            let found = Conditions::read(root, &"0".parse().unwrap());
            (found.unread.contains(&HEAT), found.cpus[0].throttles)
        };
        assert_eq!(heat(&root), (false, None), "no such counters here");
        std::fs::create_dir_all(root.path(throttle_directory(0))).unwrap();
        assert_eq!(heat(&root), (true, None), "a container hides them");
        let shown = root.path(format!("{SHOWN}{}", throttle_directory(0)));
        std::fs::create_dir_all(&shown).unwrap();
        std::fs::write(shown.join("core_throttle_count"), "7\n").unwrap();
        assert_eq!(heat(&root), (false, Some(7)));
        std::fs::write(root.path("/proc/interrupts"), "").unwrap();
        assert_eq!(files(&root), ["/proc/interrupts"], "hidden by a container");
        // This kernel would say that it throttles, and its log cannot be read.
        std::fs::create_dir_all(root.path("/proc/sys/kernel")).unwrap();
        std::fs::write(root.path("/proc/sys/kernel/osrelease"), "6.1.0\n").unwrap();
        assert_eq!(files(&root), ["/proc/interrupts", "/dev/kmsg"]);
    }
}

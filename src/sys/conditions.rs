//! What must not change during a run: CPUs online, clock source, governors, locked memory.

use super::{
    clock,
    cpus::Cpus,
    kernel_config::{ConfigOptions, release},
    kmsg, memory,
    root::Root,
};

/// What the kernel says once in a boot, when it first stops real-time tasks for the others' sake.
const THROTTLING: &str = "RT throttling activated";

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
    /// That there was none since boot.
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
    let is_old = release(root).is_some_and(|release| release < (6, 12));
    let config = ConfigOptions::read(root);
    let has_groups = config.is_on("RT_GROUP_SCHED") == Some(true)
        && config.is_on("RT_GROUP_SCHED_DEFAULT_DISABLED") == Some(false);
    is_old || has_groups
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
    /// Reads what can be read without disturbing a measurement.
    #[must_use]
    pub fn glimpse(root: &Root, measured: &Cpus) -> Self {
        let system = "/sys/devices/system";
        Self {
            online: root.value(format!("{system}/cpu/online")),
            clock_source: root
                .read(format!("{system}/clocksource/clocksource0/current_clocksource")),
            cpus: measured.iter().map(|cpu| CpuConditions::glimpse(root, cpu)).collect(),
            suspended_ns: if root.is_this_machine() { clock::suspended_ns() } else { 0 },
            locked_bytes: None,
            rt_throttling: ThrottlingLog::Unread,
        }
    }

    /// Reads everything. Some kernels interrupt a CPU to ask for its frequency, and the log is
    /// long: for before and after a measurement.
    #[must_use]
    pub fn read(root: &Root, measured: &Cpus) -> Self {
        let mut found = Self::glimpse(root, measured);
        for cpu in &mut found.cpus {
            cpu.frequency_khz = root.value(frequency_file(cpu.cpu, "scaling_cur_freq"));
        }
        let status = root.read("/proc/self/status");
        found.locked_bytes = status.and_then(|status| memory::kib_in(&status, "VmLck:"));
        found.rt_throttling = ThrottlingLog::read(root);
        found
    }
}

impl CpuConditions {
    fn glimpse(root: &Root, cpu: u32) -> Self {
        let throttles = |of: &str| {
            let directory = format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle");
            root.value::<u64>(format!("{directory}/{of}_throttle_count"))
        };
        Self {
            cpu,
            governor: root.read(frequency_file(cpu, "scaling_governor")),
            transitions: root.value(frequency_file(cpu, "stats/total_trans")),
            throttles: throttles("core")
                .map(|core| core.saturating_add(throttles("package").unwrap_or(0))),
            frequency_khz: None,
        }
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
        assert_eq!(found.cpus.len(), measured.len());
    }
}

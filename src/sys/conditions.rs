//! What must not change during a run: CPUs online, clock source, governors, locked memory.

use super::{clock, cpus::Cpus, kmsg, memory, root::Root};

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
    /// Whether the kernel's log reports RT throttling; absent where it cannot be read, and between
    /// the ends of a run.
    pub rt_throttled: Option<bool>,
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
            rt_throttled: None,
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
        let has_log = kmsg::find_in(root, "").is_some();
        found.rt_throttled = has_log.then(|| kmsg::find_in(root, THROTTLING).is_some());
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

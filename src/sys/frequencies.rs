//! Frequencies that CPUs can have.

use std::collections::HashMap;

use super::{cpus::Cpus, root::Root};

/// Drivers that leave no change of a frequency untold by the tracepoint `cpu_frequency`. Others
/// leave the choice to the processor (`intel_pstate` with HWP, `amd-pstate-epp`), or go past the
/// tracepoint (`intel_pstate`; `adjust_perf` of `amd-pstate`): drivers/cpufreq/ of the kernel.
const TELLING: [&str; 8] = [
    "acpi-cpufreq",
    "cpufreq-dt",
    "mtk-cpufreq",
    "mtk-cpufreq-hw",
    "pcc-cpufreq",
    "qcom-cpufreq-hw",
    "scmi",
    "scpi-cpufreq",
];

/// The driver of `intel_pstate` in its passive mode, which goes past the tracepoint with HWP alone.
const INTEL_PASSIVE: &str = "intel_cpufreq";

/// Of each CPU of which each change of its frequency is told: the highest that it can have, kHz, as
/// its driver states it; with turbo, where it has that (Documentation/admin-guide/pm/cpufreq.rst,
/// `cpuinfo_max_freq`).
#[must_use]
pub fn highest_where_told_khz(root: &Root, cpus: &Cpus) -> HashMap<u32, u32> {
    let highest = |cpu| {
        let file = |name: &str| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}");
        let driver = root.read(file("scaling_driver"))?;
        // With HWP alone there is a preference of energy to state.
        let has_hwp = || root.read(file("energy_performance_preference")).is_some();
        let tells =
            TELLING.contains(&driver.trim()) || driver.trim() == INTEL_PASSIVE && !has_hwp();
        let khz = root.value(file("cpuinfo_max_freq")).filter(|_| tells)?;
        Some((cpu, khz))
    };
    cpus.iter().filter_map(highest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_has_a_highest_frequency_where_its_driver_tells_each_change() {
        let place = tempfile::tempdir().unwrap();
        let cpus = [
            (0, "acpi-cpufreq\n", ""),
            (1, "intel_pstate\n", ""),
            (2, "intel_cpufreq\n", ""),
            (3, "intel_cpufreq\n", "balance_power\n"),
        ];
        for (cpu, driver, preference) in cpus {
            let path = place.path().join(format!("sys/devices/system/cpu/cpu{cpu}/cpufreq"));
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("cpuinfo_max_freq"), "3600000\n").unwrap();
            std::fs::write(path.join("scaling_driver"), driver).unwrap();
            if !preference.is_empty() {
                std::fs::write(path.join("energy_performance_preference"), preference).unwrap();
            }
        }
        let found = highest_where_told_khz(&Root::at(place.path()), &(0..5).collect());
        assert_eq!(found, HashMap::from([(0, 3_600_000), (2, 3_600_000)]));
    }
}

//! Frequencies that CPUs can have.

use std::collections::HashMap;

use super::{cpus::Cpus, root::Root};

/// The highest frequency of each CPU, kHz, as its driver states it; with turbo, where it has that
/// (Documentation/admin-guide/pm/cpufreq.rst, `cpuinfo_max_freq`).
#[must_use]
pub fn highest_frequencies_khz(root: &Root, cpus: &Cpus) -> HashMap<u32, u32> {
    let path = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq");
    cpus.iter().filter_map(|cpu| Some((cpu, root.value(path(cpu))?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_has_one_where_its_driver_states_it() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("sys/devices/system/cpu/cpu3/cpufreq");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("cpuinfo_max_freq"), "3600000\n").unwrap();
        let found = highest_frequencies_khz(&Root::at(place.path()), &[0, 3].into_iter().collect());
        assert_eq!(found, HashMap::from([(3, 3_600_000)]));
    }
}

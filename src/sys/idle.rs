//! Idle states, as the kernel's table has them.

use std::collections::HashMap;

use super::{cpus::Cpus, root::Root};

/// The exit latency of each idle state, in ns, by CPU and number of the state: empty where the
/// kernel has no table of them. It holds for the whole of the state, its entry included
/// (Documentation/admin-guide/pm/cpuidle.rst).
#[must_use]
pub fn exit_latencies_ns(root: &Root, cpus: &Cpus) -> HashMap<(u32, u32), i64> {
    let mut found = HashMap::new();
    for cpu in cpus.iter() {
        for state in 0.. {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}/latency");
            let Some(exit_us) = root.value::<u32>(path) else { break };
            found.insert((cpu, state), i64::from(exit_us) * 1_000);
        }
    }
    found
}

/// Whether the kernel chooses among idle states at all: without a driver of them a request for
/// short exits (`/dev/cpu_dma_latency`) changes nothing (`cpuidle_idle_call`, kernel/sched/idle.c).
/// `None` if that cannot be read.
#[must_use]
pub fn chooses_states(root: &Root) -> Option<bool> {
    let driver = root.read("/sys/devices/system/cpu/cpuidle/current_driver")?;
    (!driver.is_empty()).then(|| driver != "none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_of_each_cpu_has_its_latency() {
        let place = tempfile::tempdir().unwrap();
        for (cpu, state, us) in [(0, 0, "0\n"), (0, 1, "2\n"), (3, 0, "1\n"), (3, 2, "9\n")] {
            let state = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}");
            let state = place.path().join(state);
            std::fs::create_dir_all(&state).unwrap();
            std::fs::write(state.join("latency"), us).unwrap();
        }
        let found = exit_latencies_ns(&Root::at(place.path()), &[0, 3, 4].into_iter().collect());
        assert_eq!(found, HashMap::from([((0, 0), 0), ((0, 1), 2_000), ((3, 0), 1_000)]));
    }

    #[test]
    fn without_a_driver_no_idle_state_is_chosen() {
        let place = tempfile::tempdir().unwrap();
        let root = Root::at(place.path());
        assert_eq!(chooses_states(&root), None);
        let directory = root.path("/sys/devices/system/cpu/cpuidle");
        std::fs::create_dir_all(&directory).unwrap();
        for (driver, expected) in [("none\n", false), ("intel_idle\n", true)] {
            std::fs::write(directory.join("current_driver"), driver).unwrap();
            assert_eq!(chooses_states(&root), Some(expected));
        }
    }
}

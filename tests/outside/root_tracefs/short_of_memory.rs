//! A run whose allocations fail: an error, and the machine as it was.

use super::Machine;
use crate::chance::Campaign;

/// The steps by which the address space grows from what just starts tardy, KiB, and their number.
/// A run with tracing by tracefs needs ten of them more.
const STEP_KIB: u64 = 1_000;
const STEPS: u64 = 16;

/// A run that makes an instance of the tracer.
const SHORT_RUN: [&str; 12] = [
    "run",
    "timer",
    "--cpus",
    "0",
    "--warmup",
    "50ms",
    "--samples",
    "100",
    "--trace",
    "stages",
    "--trace-by",
    "tracefs",
];

/// Whether the loader can start tardy with this address space, KiB.
fn starts(machine: &Machine, kib: u64) -> bool {
    machine.shell(&format!("ulimit -v {kib}"), &["--version"]).code == Some(0)
}

#[test]
fn a_run_whose_allocations_fail_is_an_error_and_leaves_the_machine_as_it_was() {
    let Some(machine) = Machine::new() else { return };
    let (mut low, mut high) = (1, 1 << 20);
    assert!(starts(&machine, high));
    while high - low > STEP_KIB {
        let middle = low + (high - low) / 2;
        if starts(&machine, middle) { high = middle } else { low = middle }
    }
    let mut campaign = Campaign::new("memory limits of a traced run");
    for step in 0..STEPS {
        let name = format!("r{step}");
        let script = format!("ulimit -v {}", high + step * STEP_KIB);
        // Looks for an instance of the tracer at its end.
        let said = machine.shell(&script, &[&SHORT_RUN[..], &["--name", &name]].concat());
        assert!(!machine.store.path().join("state/journal").exists(), "{script}: {said:?}");
        let is_measured = matches!(said.code, Some(0 | 4));
        let is_error = said.code == Some(2) && said.err.contains("error:");
        assert!(is_measured || is_error, "{script}: {said:?}");
        campaign.came(match () {
            () if is_measured => "a run",
            () if said.err.contains("out of memory") => "an allocation that failed",
            () => "another error",
        });
    }
    campaign.end();
}

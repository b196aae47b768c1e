//! What a run says of a thread on kernels that differ.

use super::{
    tests::{MS, ns},
    *,
};
use crate::kernel::replay::machine::{ENTRY_NS, Machine, Step::*, TaskPlan, WAKING_NS};

/// The late cycles of a thread whose work takes 6 ms, where 4 ms are allowed.
fn late_cycles(kernel: &str) -> Vec<Late> {
    let steps = [UntilNext(20 * MS, 0), Work(6 * MS)];
    let mut happened = Machine::run(vec![TaskPlan::fair("late", &steps)], 3_100 * MS);
    happened.tasks.insert_str(0, kernel);
    let asked = ReplayRequest::name("late", Some(4 * MS), [100 * MS, 3_100 * MS]);
    run(&asked, &happened).late_cycles
}

#[test]
fn the_interrupt_has_its_time_on_kernels_that_pass_it_by_value_and_by_address() {
    for kernel in ["", "kernel expire_has_time\n"] {
        let late = late_cycles(kernel);
        assert!(late.len() > 40, "{kernel}: {late:?}");
        for late in late {
            let stages = (ns(ENTRY_NS), ns(WAKING_NS));
            let found = (Some(late.stages.irq_ns), Some(late.stages.handler_ns));
            assert_eq!(found, stages, "{kernel}: {late:?}");
        }
    }
}

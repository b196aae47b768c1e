//! What a run says of a thread on kernels that differ.

use std::fmt::Write as _;

use tardy_hot::stages::Stages;

use super::{
    tests::{MS, ns},
    *,
};
use crate::kernel::replay::{
    FIRST_TID,
    machine::{ENTRY_NS, Machine, Step::*, TaskPlan, WAKING_NS},
};

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

/// The thread's timer expires in a softirq, 50 us after its interrupt raised that.
fn in_softirqs(cycles: u64) -> String {
    let mut text = format!("500 0 fork {FIRST_TID}\n1000 0 switch R {FIRST_TID}\n");
    for due_ns in (1..=cycles).map(|number| number * 20 * MS) {
        let slept_ns = due_ns - 10 * MS;
        let _ = writeln!(text, "{slept_ns} 0 start {due_ns} {due_ns} abs\n{slept_ns} 0 switch S 0");
        let (irq_ns, softirq_ns) = (due_ns + 1_000, due_ns + 51_200);
        let _ = writeln!(text, "{irq_ns} 0 !timer_irq\n{} 0 raise 8", irq_ns + 200);
        let _ = writeln!(text, "{} 0 !timer_irq_end\n{softirq_ns} 0 softirq 8", irq_ns + 500);
        let _ = writeln!(text, "{softirq_ns} 0 expire {FIRST_TID}");
        let _ = writeln!(text, "{} 0 waking {FIRST_TID}", softirq_ns + 500);
        let _ = writeln!(text, "{0} 0 expired\n{0} 0 softirq_end 8", softirq_ns + 600);
        let _ = writeln!(text, "{} 0 switch R {FIRST_TID}", softirq_ns + 1_000);
    }
    text
}

#[test]
fn the_wait_for_a_softirq_of_timers_is_not_the_interrupts() {
    let asked = ReplayRequest::name("late", Some(4 * MS), [100 * MS, 3_000 * MS]);
    let tasks = format!("kernel rt\ntask {FIRST_TID} 120 late {FIRST_TID}\n");
    let at = |line: &str| line.split(' ').next().and_then(|at| at.parse().ok()).unwrap();
    let lines = in_softirqs(150).lines().map(|line| (at(line), line.to_owned())).collect();
    let late = run(&asked, &Happened { tasks, lines }).late_cycles;
    assert!(late.len() > 40, "{late:?}");
    for late in late {
        let Stages { irq_ns, softirq_ns, handler_ns, .. } = late.stages;
        assert_eq!((irq_ns, softirq_ns, handler_ns), (1_200, 50_000, 500), "{late:?}");
    }
}

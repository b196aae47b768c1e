//! The timer's interrupt comes late.

use std::sync::{Arc, atomic::Ordering};

use super::*;

#[test]
fn an_interrupt_that_comes_as_late_as_usual() {
    let events = wake_up(hack(), 1, 5_500, 6_500, 9_000);
    let named = case([5_500, 0, 1_000, 2_500, 2_000], events).named();
    assert_eq!(named, is(Cause::Nonpreemptible, "wake-up path", 9_500));
}

/// A timer interrupt that comes 100 us late in a virtual machine, onto this stack.
fn late(frames: &[&'static str]) -> Case {
    let mut events = wake_up(hack(), 2, 100_000, 101_000, 105_000);
    events.push((101_500, stack(500, 1, 7, 300)));
    case([100_000, 0, 1_000, 4_000, 2_000], events).in_virtual_machine().stack(7, frames)
}

#[test]
fn another_interrupt_found_user_mode_first() {
    let frames = [
        "hrtimer_wakeup",
        "asm_sysvec_apic_timer_interrupt",
        "irqentry_exit_to_user_mode",
        "asm_sysvec_reschedule_ipi",
    ];
    assert_eq!(late(&frames).named(), is(Cause::Host, "hypervisor (not counted)", 97_000));
}

#[test]
fn a_task_that_comes_back_from_an_interrupt_of_user_mode_was_in_the_scheduler() {
    let frames = [
        "hrtimer_wakeup",
        "asm_sysvec_apic_timer_interrupt",
        "finish_task_switch.isra.0",
        "__schedule",
        "schedule",
        "exit_to_user_mode_loop",
        "irqentry_exit_to_user_mode",
        "asm_sysvec_reschedule_ipi",
    ];
    assert_eq!(late(&frames).main().cause, Cause::IrqsOff);
}

#[test]
fn a_late_timer_interrupt_that_found_interrupts_just_enabled() {
    let mut events = wake_up(hack(), 2, 100_000, 101_000, 105_000);
    events.push((101_500, stack(500, 1, 7, 300)));
    let case = case([100_000, 0, 1_000, 4_000, 2_000], events).stack(
        7,
        &["hrtimer_wakeup", "asm_sysvec_apic_timer_interrupt", "_raw_spin_unlock_irq", "foo_work"],
    );
    assert_eq!(case.named(), is(Cause::IrqsOff, "foo_work", 99_000));
    assert_eq!(case.main().basis, Basis::Measured);
    assert_eq!(case.main().task.as_deref(), Some("hackbench/500"));
    assert_eq!(case.main().stack, ["_raw_spin_unlock_irq+0x10", "foo_work+0x10"]);
}

#[test]
fn bytes_that_look_like_enabling_interrupts_alone_are_no_measurement() {
    let mut events = wake_up(hack(), 2, 100_000, 101_000, 105_000);
    events.push((101_500, stack(500, 1, 7, 300)));
    let frames = ["hrtimer_wakeup", "asm_sysvec_apic_timer_interrupt", "foo_work"];
    let main = case([100_000, 0, 1_000, 4_000, 2_000], events).stack(7, &frames).main();
    assert_eq!((main.cause, main.name.as_str()), (Cause::IrqsOff, "foo_work"));
    assert_eq!((main.basis, main.ns), (Basis::Inferred, 99_000));
}

#[test]
fn a_late_timer_interrupt_right_after_another_one() {
    let mut events = wake_up(hack(), 1, 50_000, 51_000, 55_000);
    events.extend([(-1_000, irq(5)), (49_000, irq_end(5))]);
    let mut case = case([50_000, 0, 1_000, 4_000, 2_000], events).in_virtual_machine();
    case.wishes.interrupt_names.insert(5, vec!["virtio1-req.0".into()]);
    assert_eq!(case.named(), is(Cause::Hardirq, "virtio1-req.0", 49_000));
}

#[test]
fn a_late_timer_interrupt_after_a_switch_with_interrupts_off() {
    let mut events = wake_up(hack(), 0, 50_000, 51_000, 55_000);
    events.push((49_000, switch(501, 120, "other")));
    let case = case([50_000, 0, 1_000, 4_000, 2_000], events).in_virtual_machine();
    assert_eq!(case.named(), is(Cause::IrqsOff, "hackbench", 49_000));
    assert_eq!(case.main().basis, Basis::Inferred, "the switch only came right before");
}

#[test]
fn a_late_timer_interrupt_in_an_enabling_function() {
    let events = wake_up(hack(), 0, 50_000, 51_000, 55_000);
    let case = || case([50_000, 0, 1_000, 4_000, 2_000], events.clone()).in_virtual_machine();
    let main = case().stack(1, &["finish_task_switch"]).main();
    assert_eq!((main.cause, main.name.as_str()), (Cause::IrqsOff, "hackbench"));
    assert_eq!((main.basis, main.ns), (Basis::Inferred, 49_000), "it also runs with them on");
    let main = case().stack(1, &["_raw_spin_unlock_irqrestore"]).main();
    assert_eq!((main.cause, main.basis, main.ns), (Cause::IrqsOff, Basis::Measured, 49_000));
}

#[test]
fn a_late_timer_interrupt_in_user_mode_of_a_virtual_machine_is_the_hosts() {
    let user = wake_up(hack(), 1, 50_000, 51_000, 55_000);
    let named = case([50_000, 0, 1_000, 4_000, 2_000], user).in_virtual_machine().named();
    assert_eq!(named, is(Cause::Host, "hypervisor (not counted)", 47_000));
}

#[test]
fn a_late_timer_interrupt_in_the_kernel_of_a_virtual_machine_is_nobodys() {
    let mut events = wake_up(hack(), 0, 50_000, 51_000, 55_000);
    let unseen = case([50_000, 0, 1_000, 4_000, 2_000], events.clone()).in_virtual_machine();
    assert_eq!(unseen.named(), is(Cause::Unexplained, "interrupt late", 47_000));
    events.push((51_000, stack(500, 1, 7, 0)));
    let seen = case([50_000, 0, 1_000, 4_000, 2_000], events).in_virtual_machine();
    let named = seen.stack(7, &["foo_work", "do_syscall_64"]).named();
    assert_eq!(named, is(Cause::Unexplained, "interrupt late", 47_000), "it may have had them off");
}

#[test]
fn a_late_timer_interrupt_without_evidence_on_hardware() {
    let kernel = wake_up(hack(), 0, 50_000, 51_000, 55_000);
    let named = case([50_000, 0, 1_000, 4_000, 2_000], kernel).named();
    assert_eq!(named, is(Cause::Unexplained, "interrupt late", 47_000));
    let user = wake_up(hack(), 1, 50_000, 51_000, 55_000);
    let named = case([50_000, 0, 1_000, 4_000, 2_000], user).named();
    assert_eq!(named, is(Cause::Unexplained, "interrupt late in user mode", 47_000));
}

#[test]
fn a_late_timer_interrupt_with_system_management_interrupts() {
    let events = wake_up(hack(), 1, 50_000, 51_000, 55_000);
    let mut case = case([50_000, 0, 1_000, 4_000, 2_000], events);
    case.fake.smis_step = 1;
    assert_eq!(case.named(), is(Cause::Hardware, "SMI", 47_000));
}

#[test]
fn a_softirq_that_kept_interrupts_off() {
    let mut events = wake_up(hack(), 2, 60_000, 61_000, 65_000);
    events.extend([(-2_000, softirq(3)), (63_000, softirq_end(3))]);
    let main = case([60_000, 0, 1_000, 4_000, 2_000], events).main();
    assert_eq!((main.cause, main.name.as_str()), (Cause::IrqsOff, "NET_RX"));
    assert_eq!(main.task.as_deref(), Some("NET_RX"));
}

#[test]
fn an_idle_cpu_that_came_late_to_its_interrupt() {
    let mut events = wake_up(switch(0, 120, "swapper/0"), 0, 80_000, 81_000, 85_000);
    events.push((-400_000, idle(2)));
    let mut case = case([80_000, 0, 1_000, 4_000, 2_000], events);
    assert_eq!(case.named(), is(Cause::Unexplained, "idle CPU woke up late", 77_000));
    case.wishes.idle_exit_ns.insert((0, 2), 30_000);
    let parts = case.peak().blame;
    let exit = parts.iter().find(|part| part.cause == Cause::IdleExit).unwrap();
    assert_eq!(
        (exit.name.as_str(), exit.ns, exit.basis),
        ("idle state 2", 30_000, Basis::Inferred)
    );
    assert_eq!(case.named(), is(Cause::Unexplained, "idle CPU woke up late", 50_000));
    let guest = case.in_virtual_machine();
    assert_eq!(guest.named(), is(Cause::Unexplained, "idle CPU woke up late", 50_000));
}

#[test]
fn a_cpu_that_goes_idle_with_interrupts_off_is_not_in_an_idle_state() {
    let mut events = wake_up(hack(), 2, 80_000, 81_000, 85_000);
    events.push((-5_000, flagged(1, switch(0, 120, "swapper/0"))));
    let mut case = case([80_000, 0, 1_000, 4_000, 2_000], events).in_virtual_machine();
    case.wishes.idle_exit_ns.insert((0, 0), 0);
    assert_eq!(case.named(), is(Cause::IrqsOff, "swapper/0", 79_000));
}

#[test]
fn a_timer_interrupt_that_raised_the_softirq_late_and_no_record_matched() {
    // PREEMPT_RT: the timer expires in a softirq that its own thread runs.
    let ktimers = switch(15, 98, "ktimers/0");
    let events = vec![
        (-500_000, switch(0, 120, "swapper/0")),
        (80_000, vector(TIMER, 0x1000, 2)),
        (81_000, waking(15, 0)),
        (82_000, vector_end(TIMER)),
        (85_000, ktimers),
        (86_000, softirq(8)),
        (87_000, timer(T)),
        (87_500, waking(ME, 15)),
        (89_000, softirq_end(8)),
        (93_000, switch(ME, 9, "timer")),
    ];
    let late = case([0, 0, 0, 0, 95_000], events).unmatched();
    assert_eq!(late.named(), is(Cause::IrqsOff, "swapper/0", 79_000));
}

#[test]
fn interrupts_were_not_off_across_several_switches() {
    let mut events = wake_up(hack(), 2, 90_000, 91_000, 95_000);
    events.extend([(40_000, switch(501, 120, "b")), (60_000, switch(502, 120, "c"))]);
    let parts = case([90_000, 0, 1_000, 4_000, 2_000], events).peak().blame;
    let off: Vec<(&str, u64)> = parts
        .iter()
        .filter(|part| part.cause == Cause::IrqsOff)
        .map(|part| (part.name.as_str(), part.ns))
        .collect();
    assert_eq!(off, [("c", 29_000)], "the switches let interrupts in");
}

#[test]
fn one_system_management_interrupt_explains_one_wake_up() {
    let late = wake_up(hack(), 1, 50_000, 51_000, 55_000);
    let mut case = case([50_000, 0, 1_000, 4_000, 2_000], late);
    case.wishes.keep = 10;
    let mut source = case.fake.clone();
    source.events.sort_by_key(|event| event.at_ns);
    let counter = Arc::clone(&source.smis);
    let mut blamer = Blamer::new(vec![case.me.clone()], case.wishes.clone(), Box::new(source));
    blamer.begin(0, 0, 0);
    counter.store(1, Ordering::Relaxed);
    blamer.add(0, case.late);
    blamer.add(0, case.late);
    let causes: Vec<Cause> =
        blamer.work(|| BlameScope::All).iter().map(|peak| peak.blame[0].cause).collect();
    assert_eq!(causes, [Cause::Hardware, Cause::Unexplained]);
    counter.store(2, Ordering::Relaxed);
    // The counter is read once a second: what came before that explains nothing after it.
    blamer.follow_p99(0, 0);
    assert_eq!(
        blame(&mut blamer, &case.late, BlameScope::All).unwrap().blame[0].cause,
        Cause::Unexplained
    );
}

#[test]
fn an_interrupt_in_progress_at_the_expiry() {
    let mut events = wake_up(hack(), 1, 40_000, 41_000, 45_000);
    events.extend([(-20_000, vector(2, 0, 0)), (39_000, vector_end(2))]);
    let named = case([40_000, 0, 1_000, 4_000, 2_000], events).named();
    assert_eq!(named, is(Cause::Hardirq, "reschedule interrupt", 39_000));
}

#[test]
fn a_long_timer_interrupt_before_the_wake_up() {
    let events = wake_up(hack(), 1, 2_000, 52_000, 56_000);
    let named = case([2_000, 0, 50_000, 4_000, 2_000], events).named();
    assert_eq!(named, is(Cause::Hardirq, "timer interrupt", 50_500));
}

#[test]
fn each_handler_of_a_shared_line_has_its_own_time() {
    let mut events = wake_up(hack(), 1, 51_000, 52_000, 54_000);
    events.extend([(-1_000, irq_of(5, "mouse")), (4_000, irq_end(5))]);
    events.extend([(4_000, irq_of(5, "eth0")), (49_000, irq_end(5))]);
    let mut case = case([51_000, 0, 1_000, 2_000, 2_000], events);
    let both = vec!["eth0".to_owned(), "mouse".to_owned()];
    case.wishes.interrupt_names.insert(5, both);
    let parts = case.peak().blame;
    let took = |name: &str| parts.iter().find(|part| part.name == name).map(|part| part.ns);
    assert_eq!((took("eth0"), took("mouse")), (Some(45_000), Some(4_000)), "{parts:?}");
}

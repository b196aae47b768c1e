//! The thread is woken on CPU 1, where its timer expires, and queued on CPU 0.

use super::*;

const RESCHEDULE: u32 = 2;
const INTERRUPTED: [&str; 3] = ["__schedule", "preempt_schedule_irq", "asm_sysvec_reschedule_ipi"];

/// Woken at 3 us and switched in at 303 us; `before` is on CPU 0 until then.
fn woken_elsewhere(before: Event) -> Case {
    let events = vec![
        (-500_000, on(1, switch(0, 120, "swapper/1"))),
        (-500_000, before),
        (2_000, on(1, vector(TIMER, 0x1000, 0))),
        (3_000, on(1, waking(ME, 0))),
        (4_500, on(1, vector_end(TIMER))),
        (303_000, switch(ME, 9, "timer")),
    ];
    let mut case = case([2_000, 0, 1_000, 300_000, 2_000], events);
    case.late.cpus = (1, 0);
    case
}

fn sent() -> Vec<(i64, Event)> {
    vec![(3_500, on(1, ipi(0, 0, 0)))]
}

fn came(at_ns: i64) -> Vec<(i64, Event)> {
    vec![(at_ns, vector(RESCHEDULE, 0, 0)), (at_ns + 500, vector_end(RESCHEDULE))]
}

/// The interrupt comes at 300 us onto these functions.
fn late_onto(functions: &[&'static str]) -> Case {
    let all = [&INTERRUPTED[..], functions].concat();
    let seen = vec![(303_000, stack(500, 2, 9, 300))];
    woken_elsewhere(hack()).with(came(300_000)).with(seen).stack(9, &all)
}

#[test]
fn an_interrupt_from_the_cpu_of_the_waker_that_was_kept_off() {
    let functions = ["_raw_spin_unlock_irqrestore", "exit_mmap", "do_exit"];
    let seen = late_onto(&functions).with(sent()).main();
    assert_eq!((seen.cause, seen.name.as_str()), (Cause::IrqsOff, "exit_mmap"));
    assert_eq!((seen.basis, seen.ns), (Basis::Measured, 297_000));
    let unseen = late_onto(&functions).main();
    assert_eq!((unseen.cause, unseen.basis), (Cause::IrqsOff, Basis::Inferred), "as before 6.4");
}

#[test]
fn an_interrupt_from_the_cpu_of_the_waker_right_after_another_one() {
    let other = vec![(2_500, irq(5)), (299_000, irq_end(5))];
    let case = woken_elsewhere(hack()).with(other).with(came(300_000));
    assert_eq!(case.main().cause, Cause::Hardirq);
    let switched = vec![(4_000, switch(501, 120, "other")), (299_000, softirq_end(3))];
    let main = woken_elsewhere(hack()).with(switched).with(came(300_000)).main();
    assert_eq!((main.cause, main.name.as_str()), (Cause::IrqsOff, "other"));
    assert_eq!(main.basis, Basis::Inferred);
}

#[test]
fn an_interrupt_from_the_cpu_of_the_waker_that_comes_late_accuses_nobody() {
    let named = late_onto(&["unmap_page_range"]).with(sent()).named();
    assert_eq!(named, is(Cause::Unexplained, "interrupt late", 297_000));
    let never = woken_elsewhere(hack()).named();
    assert_eq!(never, is(Cause::Unexplained, "interrupt late", 298_000));
    let in_user = late_onto(&[]).in_virtual_machine().named();
    assert_eq!(in_user, is(Cause::Host, "hypervisor (not counted)", 297_000));
}

#[test]
fn who_is_chosen_before_the_interrupt_of_the_waker_came_was_not_chosen_instead_of_the_thread() {
    let switched = vec![(100_000, switch(501, 120, "other"))];
    let before = woken_elsewhere(hack()).with(switched.clone()).with(sent()).with(came(300_000));
    let main = before.main();
    let late = (Cause::Unexplained, "interrupt late");
    assert_eq!((main.cause, main.name.as_str()), late, "the thread may not be in the queue yet");
    // The interrupt had come, so that it was.
    let main = woken_elsewhere(hack()).with(switched).with(sent()).with(came(5_000)).main();
    let another = (Cause::Unexplained, "ready, but another task ran");
    assert_eq!((main.cause, main.name.as_str()), another);
}

#[test]
fn what_keeps_the_cpu_after_the_interrupt_of_the_waker_is_still_named() {
    let seen = vec![(303_000, stack(500, 2, 9, 300))];
    let case = woken_elsewhere(hack()).with(sent()).with(came(5_000)).with(seen);
    let main = case.stack(9, &["__schedule", "preempt_schedule", "exit_mmap"]).main();
    assert_eq!((main.cause, main.name.as_str()), (Cause::Nonpreemptible, "exit_mmap"));
}

#[test]
fn a_move_after_the_wake_up_does_not_hide_that_the_waker_was_elsewhere() {
    let moved = vec![(300_000, migrate(ME, 0, 1)), (303_000, on(1, switch(ME, 9, "timer")))];
    let mut case = woken_elsewhere(hack()).with(moved);
    case.fake.events.retain(|event| (event.cpu, event.pid) != (0, ME) || event.at_ns < T + 303_000);
    case.late.cpus = (1, 1);
    assert_eq!(case.named(), is(Cause::Unexplained, "interrupt late", 295_000));
}

#[test]
fn an_idle_cpu_that_polls_needs_no_interrupt_and_none_is_late() {
    let events = vec![(-400_000, idle(2)), (301_000, idle(Event::NOT_IDLE))];
    let mut case = woken_elsewhere(switch(0, 120, "swapper/0")).with(events);
    assert_eq!(case.named(), is(Cause::Unexplained, "idle CPU woke up late", 298_000));
    case.wishes.idle_exit_ns.insert((0, 2), 300_000);
    assert_eq!(case.named(), is(Cause::IdleExit, "idle state 2", 298_000));
}

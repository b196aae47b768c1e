//! What may be below the kernel: several CPUs that are silent at once.

use super::*;

/// What remains where nothing shows who had the CPU.
const NOBODY: (Cause, &str, u64) = (Cause::Unexplained, "interrupt late", 497_000);

/// A timer interrupt that comes half a millisecond late, without a sign why.
fn late_interrupt() -> Case {
    let events = wake_up(hack(), 0, 500_000, 501_000, 505_000);
    case([500_000, 0, 1_000, 4_000, 2_000], events)
}

/// An event on CPU 1.
fn there(at_ns: i64, event: Event) -> (i64, Event) {
    (at_ns, on(1, event))
}

/// A task on CPU 1 that wakes another one at these times.
fn busy(times: impl IntoIterator<Item = i64>) -> Vec<(i64, Event)> {
    let first = there(-9_000_000, switch(700, 120, "busy"));
    let wakes = times.into_iter().map(|at_ns| there(at_ns, waking(900, 700)));
    std::iter::once(first).chain(wakes).collect()
}

/// All the time up to a little after the expiry, and again from `again_ns` on.
fn silenced(again_ns: i64) -> Vec<(i64, Event)> {
    busy((-60..1).map(|n| n * 100_000 + 20_000).chain([again_ns]))
}

fn on_cpus(cpus: u32, events: Vec<(i64, Event)>) -> Case {
    let mut case = late_interrupt().with(events);
    case.fake.cpus = cpus;
    case
}

#[test]
fn several_cpus_that_are_silent_at_once() {
    let both = on_cpus(2, silenced(510_000));
    let name = "hypervisor or firmware: 2 CPUs silent at once";
    assert_eq!(both.named(), is(Cause::Hardware, name, 497_000));
    assert_eq!(both.main().basis, Basis::Inferred);
    assert!(both.main().evidence.is_some_and(|evidence| evidence.contains("busy")));
    let guest = both.in_virtual_machine();
    assert_eq!(guest.named(), is(Cause::Host, name, 497_000));
}

#[test]
fn cpus_that_come_back_a_little_apart_were_silent_at_once() {
    assert_eq!(on_cpus(2, silenced(480_000)).main().cause, Cause::Hardware);
    let (cause, name, ns) = NOBODY;
    assert_eq!(on_cpus(2, silenced(430_000)).named(), is(cause, name, ns), "far too early");
}

#[test]
fn a_cpu_that_is_silent_anyway_shows_nothing() {
    let (cause, name, ns) = NOBODY;
    let nobody = || is(cause, name, ns);
    let idle = vec![there(-9_000_000, switch(0, 120, "swapper/1")), there(-8_000_000, idle(1))];
    assert_eq!(on_cpus(2, idle.clone()).named(), nobody(), "idle");
    assert_eq!(on_cpus(2, busy([-2_000_000, 510_000])).named(), nobody(), "it computes");
    let mut once = busy([-5_000_000]);
    once.extend(
        silenced(510_000).into_iter().filter(|(at_ns, _)| !(-800_000..-500_000).contains(at_ns)),
    );
    assert_eq!(on_cpus(2, once).named(), nobody(), "it was as silent before");
    assert_eq!(on_cpus(1, silenced(510_000)).named(), nobody(), "one CPU is recorded");
    assert_eq!(on_cpus(2, Vec::new()).named(), nobody(), "what it ran is not known");
}

#[test]
fn a_cpu_that_waits_for_an_answer_of_the_silent_one_shows_nothing() {
    let mut events = silenced(510_000);
    events.push(there(25_000, ipi(700, 0, 7)));
    let (cause, name, ns) = NOBODY;
    assert_eq!(on_cpus(2, events.clone()).named(), is(cause, name, ns));
    events.push(there(30_000, waking(900, 700)));
    assert_eq!(on_cpus(2, events).main().cause, Cause::Hardware, "it continued");
}

#[test]
fn idle_cpus_and_cpus_without_events_of_their_own_count_for_nothing() {
    let mut events = silenced(510_000);
    events.push((-9_000_000, on(2, switch(0, 120, "swapper/2"))));
    events.push((-9_000_000, on(3, switch(701, 120, "computes"))));
    let main = on_cpus(4, events.clone()).main();
    assert_eq!(main.name, "hypervisor or firmware: 3 CPUs silent at once");
    events.push((200_000, on(2, irq(9))));
    let (cause, name, ns) = NOBODY;
    assert_eq!(on_cpus(4, events).named(), is(cause, name, ns), "one of them continues");
}

#[test]
fn a_short_silence_of_several_cpus_shows_nothing() {
    let events = wake_up(hack(), 0, 45_000, 46_000, 50_000);
    let silent = busy((-60..1).map(|n| n * 10_000).chain([60_000]));
    let mut case = case([45_000, 0, 1_000, 4_000, 2_000], events).with(silent);
    case.fake.cpus = 2;
    assert_eq!(case.named(), is(Cause::Unexplained, "interrupt late", 42_000));
}

#[test]
fn a_silence_that_events_explain_is_not_looked_at() {
    let mut seen = on_cpus(2, silenced(510_000));
    seen.fake.smis_step = 1;
    assert_eq!(seen.named(), is(Cause::Hardware, "SMI", 497_000));
    let mut flagged = on_cpus(2, silenced(510_000));
    let entry = |event: &&mut Event| matches!(event.kind, EventKind::VectorEntry { .. });
    flagged.fake.events.iter_mut().find(entry).unwrap().flags = crate::kernel::entry::JUST_ENABLED;
    assert_eq!(flagged.main().cause, Cause::IrqsOff);
}

#[test]
fn an_idle_cpu_that_woke_up_late_with_others_silent() {
    let mut events = wake_up(switch(0, 120, "swapper/0"), 0, 500_000, 501_000, 505_000);
    events.push((-400_000, idle(2)));
    let mut case = case([500_000, 0, 1_000, 4_000, 2_000], events).with(silenced(510_000));
    case.fake.cpus = 2;
    assert_eq!(case.main().name, "hypervisor or firmware: 2 CPUs silent at once");
}

#[test]
fn where_nothing_counts_system_management_interrupts_the_name_says_so() {
    let mut uncounted = late_interrupt();
    uncounted.fake.no_smi_count = true;
    uncounted.fake.smis_step = 1;
    let name = "interrupt late (SMIs not counted)";
    assert_eq!(uncounted.named(), is(Cause::Unexplained, name, 497_000));
    uncounted.fake.no_smi_count = false;
    assert_eq!(uncounted.named(), is(Cause::Hardware, "SMI", 497_000));
    uncounted.fake.smis_step = 0;
    assert_eq!(uncounted.named(), is(Cause::Unexplained, "interrupt late", 497_000));
}

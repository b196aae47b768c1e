//! Each rule of `docs/blame.md` by a made-up wake-up; and what holds for all of them.
//!
//! Times are ns after the programmed expiry, which is at [`T`].

use std::collections::HashMap;

use proptest::prelude::*;
use tardy_hot::stages::{Late, Stages};

use super::{Blamer, Event, EventKind, Followed, Source, Wishes, sample::*};
use crate::run::peaks::{Cause, Part, Peak};

/// The programmed expiry.
const T: u64 = 10_000_000;
/// The measured thread.
const ME: u32 = 77;
/// The timer's vector.
const TIMER: u32 = 1;

/// A recorder of made-up events.
#[derive(Default, Clone)]
struct Fake {
    events: Vec<Event>,
    stacks: HashMap<u64, Vec<&'static str>>,
    names: Vec<&'static str>,
    smis: u64,
    forgets: bool,
}

impl Source for Fake {
    fn events(&self, cpu: u32, _: u64, to_ns: u64, into: &mut Vec<Event>) -> bool {
        into.extend(self.events.iter().filter(|e| e.cpu == cpu && e.at_ns <= to_ns));
        !self.forgets
    }

    fn stack(&self, number: u64) -> Option<Vec<u64>> {
        let address = |name: &&str| self.names.iter().position(|known| known == name);
        let addresses = |stack: &Vec<&'static str>| {
            stack.iter().filter_map(address).map(|at| 0x1000 + at as u64).collect()
        };
        self.stacks.get(&number).map(addresses)
    }

    fn symbol(&self, address: u64) -> Option<(String, u64)> {
        let at = usize::try_from(address.checked_sub(0x1000)?).ok()?;
        self.names.get(at).map(|name| ((*name).to_owned(), 0x10))
    }

    fn lost(&self) -> u64 {
        3
    }

    fn smis(&mut self, _: u32) -> Option<u64> {
        self.smis += 1;
        (self.smis > 100).then_some(self.smis)
    }
}

/// A wake-up to be judged.
#[derive(Clone)]
struct Case {
    fake: Fake,
    late: Late,
    me: Followed,
    wishes: Wishes,
}

/// Real-time, woken and run on CPU 0; the stages in ns: irq, softirq, handler, dispatch, user.
fn case(stages: [i64; 5], events: Vec<(i64, Event)>) -> Case {
    let [irq_ns, softirq_ns, handler_ns, dispatch_ns, user_ns] = stages;
    let late = Late {
        t_ns: T.cast_signed(),
        latency_ns: stages.iter().sum(),
        stages: Stages { irq_ns, softirq_ns, handler_ns, dispatch_ns, user_ns },
        matched: true,
        cpus: (0, 0),
        stopped_ns: (0, 0),
    };
    let me = Followed { series: "cpu0".into(), cpu: 0, tid: ME, prio: 9, real_time: true };
    let timed = |(at_ns, event): (i64, Event)| at(T.saturating_add_signed(at_ns), event);
    let events = events.into_iter().map(timed).collect();
    let fake = Fake { events, ..Fake::default() };
    Case { fake, late, me, wishes: Wishes { keep: 1, ..Wishes::default() } }
}

/// The events of a wake-up by a timer interrupt over `task`: entry, wake-up, exit, switch.
fn wake_up(
    task: Event,
    flags: u8,
    entry: i64,
    waking_at: i64,
    switch_at: i64,
) -> Vec<(i64, Event)> {
    vec![
        (-500_000, task),
        (entry, vector(TIMER, 0x1000, flags)),
        (waking_at, waking(ME, task.pid)),
        (waking_at + 500, vector_end(TIMER)),
        (switch_at, switch(ME, 9, "timer")),
    ]
}

impl Case {
    fn with(mut self, events: Vec<(i64, Event)>) -> Self {
        let timed = |(at_ns, event): (i64, Event)| at(T.saturating_add_signed(at_ns), event);
        self.fake.events.extend(events.into_iter().map(timed));
        self
    }

    fn stack(mut self, number: u64, functions: &[&'static str]) -> Self {
        self.fake.names.extend(functions);
        self.fake.stacks.insert(number, functions.to_vec());
        self
    }

    fn in_virtual_machine(mut self) -> Self {
        self.wishes.virtual_machine = true;
        self
    }

    fn unmatched(mut self) -> Self {
        self.late.matched = false;
        self.late.stages = Stages::default();
        self
    }

    fn peak(&self) -> Peak {
        let mut events = self.clone();
        events.fake.events.sort_by_key(|event| event.at_ns);
        let source = Box::new(events.fake);
        let mut blamer = Blamer::new(vec![self.me.clone()], self.wishes.clone(), source);
        blamer.begin(0, 0, 0);
        let peak = blamer.late(0, &self.late).unwrap();
        let total: u64 = peak.blame.iter().map(|part| part.ns).sum();
        assert_eq!(total.cast_signed(), self.late.latency_ns, "the parts sum: {:?}", peak.blame);
        assert_eq!(blamer.record().blamed, 1);
        peak
    }

    /// The largest part.
    fn main(&self) -> Part {
        self.peak().blame.remove(0)
    }

    fn told(&self) -> (Cause, String, u64) {
        let main = self.main();
        (main.cause, main.name, main.ns)
    }
}

fn is(cause: Cause, name: &str, ns: u64) -> (Cause, String, u64) {
    (cause, name.to_owned(), ns)
}

fn hack() -> Event {
    switch(500, 120, "hackbench")
}

#[test]
fn a_late_timer_interrupt_that_found_interrupts_just_enabled() {
    let mut events = wake_up(hack(), 2, 100_000, 101_000, 105_000);
    events.push((101_500, stack(500, 1, 7, 300)));
    let case = case([100_000, 0, 1_000, 4_000, 2_000], events).stack(
        7,
        &["hrtimer_wakeup", "asm_sysvec_apic_timer_interrupt", "_raw_spin_unlock_irq", "foo_work"],
    );
    assert_eq!(case.told(), is(Cause::IrqsOff, "foo_work", 97_000));
    assert_eq!(case.main().task.as_deref(), Some("hackbench/500"));
    assert_eq!(case.main().stack, ["_raw_spin_unlock_irq+0x10", "foo_work+0x10"]);
}

#[test]
fn a_late_timer_interrupt_right_after_another_one() {
    let mut events = wake_up(hack(), 1, 50_000, 51_000, 55_000);
    events.extend([(-1_000, irq(5)), (49_000, irq_end(5))]);
    let mut case = case([50_000, 0, 1_000, 4_000, 2_000], events).in_virtual_machine();
    case.wishes.interrupt_names.insert(5, "virtio1-req.0".into());
    assert_eq!(case.told(), is(Cause::Hardirq, "virtio1-req.0", 49_000));
}

#[test]
fn a_late_timer_interrupt_after_a_switch_with_interrupts_off() {
    let mut events = wake_up(hack(), 0, 50_000, 51_000, 55_000);
    events.push((49_000, switch(501, 120, "other")));
    let case = case([50_000, 0, 1_000, 4_000, 2_000], events).in_virtual_machine();
    assert_eq!(case.told(), is(Cause::IrqsOff, "hackbench", 47_000));
}

#[test]
fn a_late_timer_interrupt_in_an_enabling_function() {
    let events = wake_up(hack(), 0, 50_000, 51_000, 55_000);
    let case = case([50_000, 0, 1_000, 4_000, 2_000], events).in_virtual_machine();
    let told = case.stack(1, &["finish_task_switch"]).told();
    assert_eq!(told, is(Cause::IrqsOff, "hackbench", 47_000));
}

#[test]
fn a_late_timer_interrupt_without_evidence_in_a_virtual_machine_is_the_hosts() {
    let user = wake_up(hack(), 1, 50_000, 51_000, 55_000);
    let told = case([50_000, 0, 1_000, 4_000, 2_000], user).in_virtual_machine().told();
    assert_eq!(told, is(Cause::Host, "hypervisor, probable", 47_000));
    let mut kernel = wake_up(hack(), 0, 50_000, 51_000, 55_000);
    kernel.push((51_000, stack(500, 1, 7, 0)));
    let case = case([50_000, 0, 1_000, 4_000, 2_000], kernel).in_virtual_machine();
    let told = case.stack(7, &["foo_work", "do_syscall_64"]).told();
    assert_eq!(told, is(Cause::Host, "hypervisor, probable", 47_000));
}

#[test]
fn a_late_timer_interrupt_in_a_virtual_machine_that_nobody_looked_at() {
    let events = wake_up(hack(), 0, 50_000, 51_000, 55_000);
    let told = case([50_000, 0, 1_000, 4_000, 2_000], events).in_virtual_machine().told();
    assert_eq!(told, is(Cause::Unexplained, "interrupt late", 47_000));
}

#[test]
fn a_late_timer_interrupt_without_evidence_on_hardware() {
    let kernel = wake_up(hack(), 0, 50_000, 51_000, 55_000);
    let told = case([50_000, 0, 1_000, 4_000, 2_000], kernel).told();
    assert_eq!(told, is(Cause::IrqsOff, "hackbench", 47_000));
    let user = wake_up(hack(), 1, 50_000, 51_000, 55_000);
    let told = case([50_000, 0, 1_000, 4_000, 2_000], user).told();
    assert_eq!(told, is(Cause::Unexplained, "interrupt late in user mode", 47_000));
}

#[test]
fn a_late_timer_interrupt_with_system_management_interrupts() {
    let events = wake_up(hack(), 1, 50_000, 51_000, 55_000);
    let mut case = case([50_000, 0, 1_000, 4_000, 2_000], events);
    case.fake.smis = 200;
    assert_eq!(case.told(), is(Cause::Hardware, "SMI", 47_000));
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
    let case = case([80_000, 0, 1_000, 4_000, 2_000], events);
    assert_eq!(case.told(), is(Cause::IdleExit, "idle state 2", 83_500));
}

#[test]
fn an_interrupt_in_progress_at_the_expiry() {
    let mut events = wake_up(hack(), 1, 40_000, 41_000, 45_000);
    events.extend([(-20_000, vector(2, 0, 0)), (39_000, vector_end(2))]);
    let told = case([40_000, 0, 1_000, 4_000, 2_000], events).told();
    assert_eq!(told, is(Cause::Hardirq, "reschedule interrupt", 39_000));
}

#[test]
fn a_long_timer_interrupt_before_the_wake_up() {
    let events = wake_up(hack(), 1, 2_000, 52_000, 56_000);
    let told = case([2_000, 0, 50_000, 4_000, 2_000], events).told();
    assert_eq!(told, is(Cause::Hardirq, "timer interrupt", 50_500));
}

#[test]
fn a_softirq_before_the_switch() {
    let mut events = wake_up(hack(), 1, 2_000, 3_000, 60_000);
    events.extend([(4_000, softirq(3)), (58_000, softirq_end(3))]);
    let told = case([2_000, 0, 1_000, 57_000, 2_000], events).told();
    assert_eq!(told, is(Cause::Softirq, "NET_RX", 54_000));
}

#[test]
fn a_softirq_in_which_the_timer_expires() {
    let events = vec![
        (-500_000, hack()),
        (2_000, vector(TIMER, 0, 1)),
        (3_000, vector_end(TIMER)),
        (4_000, softirq(8)),
        (50_000, waking(ME, 500)),
        (51_000, softirq_end(8)),
        (54_000, switch(ME, 9, "timer")),
    ];
    let told = case([2_000, 3_000, 45_000, 4_000, 2_000], events).told();
    assert_eq!(told, is(Cause::Softirq, "HRTIMER", 47_000));
}

#[test]
fn a_thread_of_higher_priority() {
    let events = wake_up(switch(600, 4, "hog"), 1, 2_000, 3_000, 300_000);
    let case = case([2_000, 0, 1_000, 297_000, 2_000], events);
    assert_eq!(case.told(), is(Cause::Thread, "hog", 296_500));
    assert_eq!(case.main().task.as_deref(), Some("hog/600"));
}

#[test]
fn a_thread_of_equal_priority_goes_first_too() {
    let events = wake_up(switch(600, 9, "equal"), 1, 2_000, 3_000, 300_000);
    let told = case([2_000, 0, 1_000, 297_000, 2_000], events).told();
    assert_eq!(told, is(Cause::Thread, "equal", 296_500));
}

#[test]
fn without_real_time_any_task_goes_first() {
    let mut events = wake_up(hack(), 1, 2_000, 3_000, 300_000);
    events.push((100_000, switch(501, 139, "nice")));
    let mut case = case([2_000, 0, 1_000, 297_000, 2_000], events);
    (case.me.prio, case.me.real_time) = (120, false);
    assert_eq!(case.told(), is(Cause::Thread, "nice", 200_000));
}

#[test]
fn a_lower_task_in_the_kernel_that_cannot_be_preempted() {
    let mut events = wake_up(hack(), 0, 2_000, 3_000, 300_000);
    events.push((299_500, stack(500, 2, 9, 300)));
    let case = case([2_000, 0, 1_000, 297_000, 2_000], events)
        .stack(9, &["__schedule", "preempt_schedule", "unmap_page_range", "exit_mmap", "do_exit"]);
    let main = case.main();
    assert_eq!((main.cause, main.name.as_str()), (Cause::Nonpreemptible, "exit_mmap"));
    assert_eq!(main.task.as_deref(), Some("hackbench/500"));
    assert!((293_000..=295_000).contains(&main.ns), "{}", main.ns);
}

#[test]
fn the_stack_of_the_wake_up_names_it_where_that_of_the_switch_shows_only_the_way_out() {
    let mut events = wake_up(hack(), 0, 2_000, 3_000, 300_000);
    events.extend([(3_200, stack(500, 3, 8, 100)), (299_500, stack(500, 2, 9, 300))]);
    let case = case([2_000, 0, 1_000, 297_000, 2_000], events)
        .stack(9, &["__schedule", "schedule", "exit_to_user_mode_loop", "do_syscall_64"])
        .stack(8, &["hrtimer_wakeup", "asm_sysvec_apic_timer_interrupt", "kill_something_info"]);
    let told = case.main();
    assert_eq!((told.cause, told.name.as_str()), (Cause::Nonpreemptible, "kill_something_info"));
}

#[test]
fn a_lower_task_without_a_stack_is_named_by_itself() {
    let events = wake_up(hack(), 0, 2_000, 3_000, 300_000);
    let main = case([2_000, 0, 1_000, 297_000, 2_000], events).main();
    assert_eq!((main.cause, main.name.as_str()), (Cause::Nonpreemptible, "hackbench"));
}

#[test]
fn a_spin_lock_on_top_of_the_stack() {
    let mut events = wake_up(hack(), 0, 2_000, 3_000, 300_000);
    events.push((299_500, stack(500, 3, 9, 300)));
    let told = case([2_000, 0, 1_000, 297_000, 2_000], events)
        .stack(9, &["native_queued_spin_lock_slowpath", "_raw_spin_lock", "do_anonymous_page"])
        .main();
    assert_eq!((told.cause, told.name.as_str()), (Cause::Lock, "do_anonymous_page"));
}

#[test]
fn a_short_way_through_the_scheduler() {
    let events = wake_up(hack(), 1, 1_500, 2_500, 12_000);
    let told = case([1_500, 0, 1_000, 9_500, 2_000], events).told();
    assert_eq!(told, is(Cause::Nonpreemptible, "wake-up path", 12_500));
}

#[test]
fn an_idle_cpu_that_is_slow_to_switch() {
    let events = wake_up(switch(0, 120, "swapper/0"), 0, 2_000, 3_000, 60_000);
    let told = case([2_000, 0, 1_000, 57_000, 2_000], events).told();
    assert_eq!(told, is(Cause::IdleExit, "idle", 58_500));
}

#[test]
fn a_lower_task_that_is_switched_in_while_the_thread_is_runnable() {
    let mut events = wake_up(switch(600, 4, "hog"), 1, 2_000, 3_000, 5_000_000);
    events.extend([(100_000, hack()), (2_000_000, switch(0, 120, "swapper/0"))]);
    let peak = case([2_000, 0, 1_000, 4_997_000, 2_000], events).peak();
    let throttled: u64 =
        peak.blame.iter().filter(|p| p.cause == Cause::Throttled).map(|p| p.ns).sum();
    assert_eq!(throttled, 4_900_000);
}

#[test]
fn a_page_fault_of_its_own() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.push((6_000, fault(ME)));
    let told = case([1_500, 0, 1_000, 2_500, 90_000], events).told();
    assert_eq!(told, is(Cause::PageFault, "page fault", 89_000));
}

#[test]
fn an_interrupt_on_its_way_to_user_mode() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([(6_000, irq(9)), (80_000, irq_end(9))]);
    let told = case([1_500, 0, 1_000, 2_500, 80_000], events).told();
    assert_eq!(told, is(Cause::Hardirq, "irq 9", 74_000));
}

#[test]
fn preempted_again_before_it_read_the_clock() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([(6_000, switch(600, 4, "hog")), (90_000, switch(ME, 9, "timer"))]);
    let told = case([1_500, 0, 1_000, 2_500, 90_000], events).told();
    assert_eq!(told, is(Cause::Thread, "hog", 84_000));
}

#[test]
fn preempted_by_a_lower_task_it_was_throttled() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([(6_000, hack()), (90_000, switch(ME, 9, "timer"))]);
    let told = case([1_500, 0, 1_000, 2_500, 90_000], events).told();
    assert_eq!(told, is(Cause::Throttled, "real-time throttling", 84_000));
}

#[test]
fn moved_to_another_cpu() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([
        (6_000, switch(15, 0, "migration/0")),
        (10_000, migrate(ME, 0, 1)),
        (-9_000, on(1, switch(0, 120, "swapper/1"))),
        (70_000, on(1, switch(ME, 9, "timer"))),
    ]);
    let case = case([1_500, 0, 1_000, 2_500, 90_000], events);
    assert_eq!(case.told(), is(Cause::Migration, "CPU 0 to CPU 1", 60_000));
    let parts = case.peak().blame;
    let stopper = parts.iter().find(|part| part.name == "migration/0").unwrap();
    assert_eq!((stopper.cause, stopper.ns), (Cause::Migration, 4_000));
    assert_eq!(case.peak().cpu, 1);
}

#[test]
fn woken_on_one_cpu_and_run_on_another() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.pop();
    events.extend([
        (3_000, migrate(ME, 0, 1)),
        (-9_000, on(1, switch(600, 4, "hog"))),
        (80_000, on(1, switch(ME, 9, "timer"))),
    ]);
    let mut case = case([1_500, 0, 1_000, 77_500, 2_000], events);
    case.late.cpus = (0, 1);
    assert_eq!(case.told(), is(Cause::Thread, "hog", 77_500));
}

#[test]
fn waiting_for_a_lock_on_its_way() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([(6_000, lock(ME)), (80_000, lock_end(ME))]);
    let told = case([1_500, 0, 1_000, 2_500, 90_000], events).told();
    assert_eq!(told, is(Cause::Lock, "a lock", 74_000));
}

#[test]
fn sleeping_for_a_lock_on_its_way() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([
        (6_000, lock(ME)),
        (7_000, flagged(2, hack())),
        (80_000, switch(ME, 9, "timer")),
        (80_500, lock_end(ME)),
    ]);
    let told = case([1_500, 0, 1_000, 2_500, 90_000], events).told();
    assert_eq!(told, is(Cause::Lock, "a lock", 74_500));
}

#[test]
fn stopped_while_its_timer_expired() {
    let events =
        vec![(-500_000, hack()), (800_000, waking(ME, 500)), (805_000, switch(ME, 9, "timer"))];
    let mut case = case([0, 0, 0, 0, 810_000], events).unmatched();
    case.late.stopped_ns = (T - 100_000, T + 800_000);
    assert_eq!(case.told(), is(Cause::Stopped, "stopped", 800_000));
}

#[test]
fn stopped_on_its_way_to_user_mode() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([(6_000, flagged(3, hack())), (90_000, switch(ME, 9, "timer"))]);
    let told = case([1_500, 0, 1_000, 2_500, 90_000], events).told();
    assert_eq!(told, is(Cause::Stopped, "stopped", 84_000));
}

#[test]
fn time_that_the_hypervisor_took() {
    let events = wake_up(hack(), 1, 1_500, 2_500, 400_000);
    let case = case([1_500, 0, 1_000, 397_500, 2_000], events)
        .with(vec![(403_000, steal(300_000, T - 1_000_000))]);
    assert_eq!(case.told(), is(Cause::Host, "hypervisor (steal)", 300_000));
}

#[test]
fn tardys_own_stack_walk() {
    let mut events = wake_up(hack(), 0, 1_500, 2_500, 30_000);
    events.push((30_100, stack(500, 2, 9, 20_000)));
    let told = case([1_500, 0, 1_000, 27_500, 22_000], events).told();
    assert_eq!(told, is(Cause::Nonpreemptible, "hackbench", 25_000));
    let events = wake_up(hack(), 0, 1_500, 2_500, 5_000);
    let case = case([1_500, 0, 1_000, 2_500, 22_000], events);
    let told = case.with(vec![(5_100, stack(500, 2, 9, 20_000))]).told();
    assert_eq!(told, is(Cause::Tracing, "stack walk", 20_000));
}

#[test]
fn a_non_maskable_interrupt() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 60_000);
    events.push((55_000, nmi(50_000)));
    let told = case([1_500, 0, 1_000, 57_500, 2_000], events).told();
    assert_eq!(told, is(Cause::Hardirq, "NMI", 50_000));
}

#[test]
fn what_was_overwritten_is_unexplained() {
    let mut case = case([2_000, 0, 1_000, 297_000, 2_000], vec![(250_000, hack())]);
    case.fake.forgets = true;
    assert_eq!(case.told(), is(Cause::Unexplained, "not recorded any more", 250_000));
}

#[test]
fn a_long_way_of_its_own_with_nothing_recorded() {
    let events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    let case = case([1_500, 0, 1_000, 2_500, 300_000], events);
    assert_eq!(case.main().name, "wake-up path");
    let guest = case.clone().in_virtual_machine();
    assert_eq!(guest.told(), is(Cause::Host, "hypervisor, probable", 298_000));
    let mut counted = guest.with(vec![(400_000, steal(1, T + 390_000))]);
    counted.fake.events.push(at(T - 900_000, steal(1, T - 910_000)));
    assert!(matches!(counted.main().cause, Cause::Nonpreemptible | Cause::Host));
    let mut managed = case;
    managed.fake.smis = 200;
    assert_eq!(managed.told(), is(Cause::Hardware, "SMI", 298_000));
}

#[test]
fn an_unmatched_wake_up_is_followed_by_its_events() {
    let events = wake_up(switch(600, 4, "hog"), 1, 2_000, 3_000, 300_000);
    let case = case([2_000, 0, 1_000, 297_000, 2_000], events).unmatched();
    assert_eq!(case.told(), is(Cause::Thread, "hog", 296_500));
    assert_eq!(case.peak().stages, None);
}

#[test]
fn a_wake_up_that_nobody_recorded() {
    let kept = case([0, 0, 0, 0, 90_000], vec![(-500_000, hack())]).unmatched();
    assert_eq!(kept.told(), is(Cause::Nonpreemptible, "hackbench", 90_000));
    let later = kept.with(vec![(10_000, switch(501, 120, "other"))]);
    assert_eq!(later.told(), is(Cause::Unexplained, "wake-up not recorded", 80_000));
    let idle = case([0, 0, 0, 0, 90_000], vec![(-500_000, switch(0, 120, "swapper/0"))]);
    assert_eq!(idle.unmatched().told(), is(Cause::Unexplained, "wake-up not recorded", 90_000));
}

#[test]
fn a_timeline_tells_spans_and_points_by_time() {
    let mut events = wake_up(hack(), 1, 2_000, 3_000, 60_000);
    events.extend([(4_000, softirq(3)), (58_000, softirq_end(3))]);
    let peak = case([2_000, 0, 1_000, 57_000, 2_000], events).peak();
    let what: Vec<&str> = peak.timeline.iter().map(|moment| moment.what.as_str()).collect();
    for wanted in ["expiry", "vector", "waking", "softirq", "task", "woke"] {
        assert!(what.contains(&wanted), "{wanted}: {what:?}");
    }
    assert!(peak.timeline.is_sorted_by_key(|moment| moment.at));
    let mine = peak.timeline.iter().find(|moment| moment.pid == Some(ME) && moment.ns.is_some());
    assert_eq!(mine.unwrap().priority.as_deref(), Some("fifo 90"));
    assert!(peak.timeline[0].at >= -15_500, "a quarter of the latency before: {peak:?}");
}

#[test]
fn a_crowded_timeline_keeps_the_threads_own_points_and_the_longest_spans() {
    let mut events = wake_up(hack(), 1, 2_000, 3_000, 4_000_000);
    events.extend((0..2_000_u32).map(|n| (10_000 + i64::from(n) * 1_000, waking(900 + n, 500))));
    let peak = case([2_000, 0, 1_000, 3_997_000, 2_000], events).peak();
    assert_eq!(peak.timeline.len(), 300);
    assert!(peak.left_out > 1_500);
    assert!(peak.timeline.iter().any(|moment| moment.what == "expiry"));
    assert!(peak.timeline.iter().any(|moment| moment.name == "hackbench"));
}

#[test]
fn the_threshold_follows_but_not_over_what_is_to_be_kept() {
    let wishes = Wishes { peak_over_ns: Some(500), ..Wishes::default() };
    let me = case([0; 5], Vec::new()).me;
    let mut blamer = Blamer::new(vec![me], wishes, Box::new(Fake::default()));
    blamer.begin(0, 100, 1_000);
    assert_eq!(blamer.threshold_ns(0), 100);
    blamer.follow_p99(0, 700);
    assert_eq!(blamer.threshold_ns(0), 500);
    let record = blamer.record();
    assert_eq!(
        (record.threshold_ns, record.lowest_threshold_ns, record.lost_events),
        (500, 100, 3)
    );
    assert_eq!(blamer.threshold_ns(9), i64::MAX);
}

#[test]
fn every_rule_of_the_documentation_names_a_test_that_is_there() {
    let rules = include_str!("../../docs/blame.md").split_once("## The rules").unwrap().1;
    let rows = rules.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |"));
    let tests = rows.filter_map(|row| row.trim_end_matches(" |").rsplit(" | ").next());
    let names: Vec<&str> = tests.flat_map(|cell| cell.split(", ")).collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        let function = format!("\nfn {}()", name.trim_matches('`'));
        assert!(include_str!("tests.rs").contains(&function), "{name}");
    }
}

#[test]
fn a_bad_warm_up_keeps_no_peaks_away_for_long() {
    let events = wake_up(hack(), 1, 1_500, 2_500, 12_000);
    let late = case([1_500, 0, 1_000, 9_500, 2_000], events);
    let (me, fake) = (late.me.clone(), late.fake.clone());
    let mut blamer = Blamer::new(vec![me], late.wishes.clone(), Box::new(fake));
    blamer.begin(0, 10_000, 5_000_000);
    assert!(blamer.late(0, &late.late).is_none());
    (0..12).for_each(|_| blamer.follow_p99(0, 10_000));
    assert!(blamer.late(0, &late.late).is_some());
}

fn any_event() -> impl Strategy<Value = (i64, Event)> {
    let times = -100_000_i64..400_000;
    let tasks = prop_oneof![Just(ME), Just(0), 500_u32..503];
    let kind = prop_oneof![
        Just(EventKind::Switch { comm: *b"some\0\0\0\0\0\0\0\0\0\0\0\0" }),
        Just(EventKind::Waking { by: 500, cpu: 1 }),
        (0_u32..2, 0_u32..3).prop_map(|(from, to)| EventKind::Migrate { from, to }),
        (0_u32..3).prop_map(|line| EventKind::IrqEntry { line }),
        (0_u32..3).prop_map(|line| EventKind::IrqExit { line }),
        (0_u32..12).prop_map(|vector| EventKind::SoftirqEntry { vector }),
        (0_u32..12).prop_map(|vector| EventKind::SoftirqExit { vector }),
        (0_u32..7, 0_u64..0x1004)
            .prop_map(|(vector, address)| EventKind::VectorEntry { vector, address }),
        (0_u32..7).prop_map(|vector| EventKind::VectorExit { vector }),
        Just(EventKind::Idle { state: 1 }),
        Just(EventKind::Idle { state: u32::MAX }),
        Just(EventKind::PageFault { address: 1, instruction: 2 }),
        any::<u64>().prop_map(|took_ns| EventKind::Nmi { took_ns, handler: 0 }),
        (0_u64..1_000_000, any::<u64>())
            .prop_map(|(ns, since_ns)| EventKind::Steal { ns, since_ns }),
        Just(EventKind::LockBegin { lock: 5, flags: 0 }),
        Just(EventKind::LockEnd { lock: 5 }),
        (0_u64..3, 0_u64..100_000)
            .prop_map(|(number, took_ns)| EventKind::Stack { number, took_ns }),
    ];
    (times, 0_u32..3, -1_i16..140, tasks, 0_u8..8, kind).prop_map(
        |(at_ns, cpu, prio, pid, flags, kind)| {
            (at_ns, Event { at_ns: 0, cpu, prio, pid, flags, kind })
        },
    )
}

proptest! {
    /// `Case::peak` asserts that the parts sum to the latency.
    #[test]
    fn whatever_is_recorded_the_parts_sum_to_the_latency(
        events in prop::collection::vec(any_event(), 0..80),
        stages in prop::array::uniform5(-5_000_i64..100_000),
        matched in any::<bool>(),
        cpus in (0_u32..3, 0_u32..3),
        stopped_ns in prop_oneof![Just((0, 0)), (any::<u64>(), any::<u64>()),
            (T - 9_000..T + 90_000, T - 9_000..T + 90_000)],
        (real_time, guest, forgets) in any::<(bool, bool, bool)>(),
    ) {
        prop_assume!(stages.iter().sum::<i64>() > 0);
        let mut case = case(stages, events).stack(1, &["a", "_raw_spin_lock", "exit_mmap"]);
        case.late.matched = matched;
        (case.late.cpus, case.late.stopped_ns) = (cpus, stopped_ns);
        (case.me.real_time, case.wishes.virtual_machine) = (real_time, guest);
        case.fake.forgets = forgets;
        let peak = case.peak();
        prop_assert!(peak.blame.iter().all(|part| part.ns > 0));
        prop_assert!(peak.timeline.len() <= 300);
    }
}

//! What the decoder makes of a recorded page, and of events that no kernel writes.

use super::*;
use crate::kernel::tracefs::wakeups::Wakeups;

/// The recorded page: 13 ms of CPU 0 of a virtual machine with kernel 6.18, on which a task of this
/// number slept 700 us at a time.
const PAGE: &[u8] = include_bytes!("../fixtures/page");
const TASK: u32 = 29605;

fn decoder() -> Decoder {
    let formats = [
        ("sched/sched_waking", include_str!("../fixtures/sched_waking.format")),
        ("sched/sched_switch", include_str!("../fixtures/sched_switch.format")),
        ("sched/sched_migrate_task", include_str!("../fixtures/sched_migrate_task.format")),
        ("timer/hrtimer_start", include_str!("../fixtures/hrtimer_start.format")),
        ("timer/hrtimer_expire_entry", include_str!("../fixtures/hrtimer_expire_entry.format")),
        ("irq_vectors/local_timer_entry", include_str!("../fixtures/local_timer_entry.format")),
        ("irq/softirq_raise", include_str!("../fixtures/softirq_raise.format")),
        ("irq/irq_handler_entry", include_str!("../fixtures/irq_handler_entry.format")),
        ("power/cpu_idle", include_str!("../fixtures/cpu_idle.format")),
        ("ipi/ipi_send_cpu", include_str!("../fixtures/ipi_send_cpu.format")),
        ("ipi/ipi_send_cpumask", include_str!("../fixtures/ipi_send_cpumask.format")),
        ("nmi/nmi_handler", include_str!("../fixtures/nmi_handler.format")),
    ];
    let formats = formats.map(|(path, text)| (path, text.to_owned()));
    let header = include_str!("../fixtures/header_event");
    Decoder::new(include_str!("../fixtures/header_page"), header, &formats).unwrap()
}

fn recorded() -> Vec<Timed> {
    let mut found = Vec::new();
    assert_eq!(decoder().read(0, PAGE, &mut found), PageEnd::default());
    found
}

/// An event with this number and these bytes at these places.
fn raw(id: u16, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut data = vec![0; 64];
    data[..2].copy_from_slice(&id.to_le_bytes());
    for (at, bytes) in fields {
        data[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    data
}

fn all_typed(data: &[u8]) -> Result<Vec<TraceEvent>, ()> {
    let mut found = Vec::new();
    decoder().typed(3, &RawEvent { at_ns: 9, data }, &mut found)?;
    Ok(found.into_iter().map(|timed| timed.event).collect())
}

fn typed(data: &[u8]) -> Result<Option<TraceEvent>, ()> {
    all_typed(data).map(|events| events.first().copied())
}

#[test]
fn a_recorded_page_says_what_the_kernel_shows_as_text() {
    let events = recorded();
    // From the file `trace` of the same buffer: 8640.961237, .961947, .961948, .961949, .961957.
    let us: Vec<u64> = events.iter().take(5).map(|timed| (timed.at_ns + 500) / 1000).collect();
    assert_eq!(us, [8_640_961_237, 8_640_961_947, 8_640_961_948, 8_640_961_949, 8_640_961_957]);
    let TraceEvent::TimerStart { timer, expires_ns } = events[0].event else { panic!() };
    assert_eq!(expires_ns, 8_640_961_927_917);
    assert!(
        matches!(events[2].event, TraceEvent::TimerExpires { timer: same, .. } if same == timer)
    );
    let TraceEvent::Event(waking) = events[3].event else { panic!() };
    assert_eq!((waking.pid, waking.prio), (TASK, 49));
    assert_eq!(waking.kind, EventKind::Waking { by: 0, cpu: 0 });
    let TraceEvent::Event(switch) = events[4].event else { panic!() };
    assert_eq!((switch.pid, switch.prio, switch.flags), (TASK, 49, out::PREEMPTED));
    let comm = *b"python3\0\0\0\0\0\0\0\0\0";
    assert_eq!(switch.kind, EventKind::Switch { comm, ahead: None });
    assert!(events.is_sorted_by_key(|timed| timed.at_ns));
}

#[test]
fn its_wakeups_have_all_their_stages() {
    let events = recorded();
    let mut wakeups = Wakeups::new(&[TASK], true, false);
    for timed in &events {
        wakeups.take(0, timed);
    }
    let first = wakeups.matching(0, (8_640_961_927_917, 0), u64::MAX).unwrap();
    let stages = [first.entry_ns, first.callback_ns, first.waking_ns, first.switch_ns];
    assert!(stages.is_sorted() && stages[0] > first.expires_ns, "{first:?}");
    let starts = events.iter().filter_map(|timed| match timed.event {
        TraceEvent::TimerStart { expires_ns, .. } => Some(expires_ns),
        _ => None,
    });
    let found = starts.filter(|at| wakeups.matching(0, (*at, 0), u64::MAX).is_some()).count();
    let switches = events.iter().filter(|timed| {
        matches!(timed.event, TraceEvent::Event(Event { kind: EventKind::Switch { .. }, .. }))
    });
    assert_eq!(found, switches.count(), "every one that ran within the page");
    assert!(found > 10);
}

#[test]
fn states_priorities_and_masks_are_read() {
    let switch = |state: u64| {
        let data = raw(372, &[(32, &state.to_le_bytes()), (56, &[7]), (60, &[0xff; 4])]);
        let Ok(Some(TraceEvent::Event(event))) = typed(&data) else { panic!() };
        (event.pid, event.prio, event.flags)
    };
    let reasons = [0, 1, 2, 4, 8, 0x10, 0x20, 0x80, 0x100].map(|state| switch(state).2);
    let (stopped, dead) = (out::STOPPED, out::DEAD);
    let expected = [out::PREEMPTED, out::SLEEPING, out::WAITING, stopped, stopped, dead, dead];
    assert_eq!(reasons[..7], expected);
    assert_eq!(reasons[7..], [out::SLEEPING, out::PREEMPTED], "an idle kthread; preempted");
    assert_eq!(switch(0), (7, -1, out::PREEMPTED));
    let mask = raw(353, &[(4, &[5]), (8, &[32, 0, 8, 0]), (24, &[0x70]), (32, &[0b110])]);
    let Ok(Some(TraceEvent::Event(event))) = typed(&mask) else { panic!() };
    assert_eq!((event.pid, event.cpu), (5, 3));
    assert_eq!(event.recipients().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(event.sends_to(2), Some(0x70));
}

#[test]
fn an_interrupt_line_is_read_with_its_handler() {
    let name = |length: u8| [20, 0, length, 0];
    let data = raw(225, &[(8, &[4]), (12, &name(6)), (20, b"ttyS1\0")]);
    let Ok(Some(TraceEvent::Event(event))) = typed(&data) else { panic!() };
    let action = *b"ttyS1\0\0\0\0\0\0\0\0\0\0\0";
    assert_eq!(event.kind, EventKind::IrqEntry { line: 4, action });
    assert_eq!(typed(&raw(225, &[(12, &name(60))])), Err(()), "it ends beyond its event");
}

#[test]
fn an_interrupt_for_cpus_beyond_the_first_64_is_read() {
    let cpus = [0_u64, 1 << 36, 0b110, 1].map(u64::to_le_bytes).concat();
    let mut mask = raw(353, &[(4, &[5]), (8, &[32, 0, 32, 0]), (24, &[0x70])]);
    mask.splice(32.., cpus);
    let events = all_typed(&mask).unwrap();
    let of_one = |event: &TraceEvent| match event {
        TraceEvent::Event(event) => event.recipients().collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    assert_eq!(events.iter().flat_map(of_one).collect::<Vec<_>>(), [100, 129, 130, 192]);
    let TraceEvent::Event(first) = events[0] else { panic!() };
    assert_eq!((first.pid, first.cpu, first.at_ns), (5, 3, 9));
    assert_eq!((first.sends_to(100), first.sends_to(36)), (Some(0x70), None));
}

#[test]
fn other_events_are_passed_over_and_short_ones_are_damage() {
    assert_eq!(typed(&raw(9999, &[])), Ok(None));
    assert_eq!(typed(&raw(372, &[])[..40]), Err(()));
    assert_eq!(typed(&[1]), Err(()));
    // A mask that would lie beyond its event.
    assert_eq!(typed(&raw(353, &[(8, &[60, 0, 8, 0])])), Err(()));
    let mut found = Vec::new();
    assert!(decoder().read(0, &PAGE[..PAGE.len() - 8], &mut found).is_damaged);
}

#[test]
fn a_kernel_without_a_field_has_no_such_event() {
    let text = include_str!("../fixtures/sched_switch.format").replace("next_pid", "next_tid");
    let formats = [("sched/sched_switch", text)];
    let (page, header) =
        (include_str!("../fixtures/header_page"), include_str!("../fixtures/header_event"));
    assert!(Decoder::new(page, header, &formats).is_none(), "nothing that it knows is left");
    let waking = include_str!("../fixtures/sched_waking.format").to_owned();
    let [switch] = formats;
    let decoder = Decoder::new(page, header, &[switch, ("sched/sched_waking", waking)]).unwrap();
    assert!(decoder.knows(Kind::Waking) && !decoder.knows(Kind::Switch));
    assert_eq!(decoder.page_bytes(), 4096);
}

//! What shares a core with the measured CPU: shown, and never blamed.

use super::*;
use crate::run::peaks::Moment;

/// CPU 0 wakes a thread 20 us late; CPU 1 shares its core.
fn beside(events: Vec<(i64, Event)>) -> (Vec<Moment>, Vec<Part>) {
    let own = wake_up(hack(), 0, 15_000, 16_000, 18_000);
    let events = events.into_iter().map(|(at_ns, event)| (at_ns, on(1, event)));
    let mut case = case([15_000, 0, 1_000, 2_000, 2_000], own).with(events.collect());
    case.fake.cpus = 2;
    case.wishes.siblings = HashMap::from([(0, vec![1])]);
    let peak = case.peak();
    (peak.timeline.into_iter().filter(|moment| moment.cpu == 1).collect(), peak.blame)
}

fn said(events: Vec<(i64, Event)>) -> (String, Vec<String>) {
    let (shown, blame) = beside(events);
    assert_eq!(blame, beside(Vec::new()).1, "it is not a cause");
    let own = shown.iter().find(|moment| moment.what == "sibling").unwrap();
    assert_eq!((own.at, own.name.as_str()), (0, "sibling of CPU 0"));
    let spans = shown.iter().filter(|moment| moment.ns.is_some());
    (own.detail.clone().unwrap(), spans.map(|moment| moment.name.clone()).collect())
}

#[test]
fn a_sibling_is_shown_with_what_it_ran_and_how_long() {
    let (busy, ran) = said(vec![
        (-500_000, switch(0, 120, "swapper/1")),
        (5_000, switch(700, 120, "make")),
        (15_000, switch(0, 120, "swapper/1")),
    ]);
    assert_eq!(busy, "busy 50% of the time");
    assert_eq!(ran.iter().filter(|name| *name == "make").count(), 1, "{ran:?}");
}

#[test]
fn interrupts_of_an_idle_sibling_count() {
    let idle = switch(0, 120, "swapper/1");
    let (busy, _) = said(vec![(-500_000, idle), (0, irq(9)), (2_000, irq_end(9))]);
    assert_eq!(busy, "busy 10% of the time");
}

#[test]
fn a_sibling_of_which_too_little_is_known_has_no_share() {
    assert_eq!(said(vec![(5_000, switch(700, 120, "make"))]).0, "not all of it recorded");
}

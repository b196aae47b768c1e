//! What is recorded of the time that the hypervisor took.

use tardy_hot::histogram::{index_of, lowest_of};

use super::*;
use crate::run::peaks::Blame;

/// What the blamer records of one late wake-up.
fn recorded(case: &Case) -> Blame {
    let source = Box::new(case.fake.clone());
    let mut blamer = Blamer::new(vec![case.me.clone()], case.wishes.clone(), source);
    blamer.begin(0, 0, 0);
    blame(&mut blamer, &case.late, BlameScope::All).unwrap();
    blamer.record()
}

#[test]
fn what_the_steal_counter_measured_is_recorded_so_that_it_can_be_removed() {
    let events = wake_up(hack(), 1, 1_500, 2_500, 400_000);
    let case = case([1_500, 0, 1_000, 397_500, 2_000], events)
        .with(vec![(403_000, steal(300_000, T - 1_000_000))]);
    let blame = recorded(&case);
    let stolen = blame.stolen.unwrap();
    assert!(stolen.counted);
    let own = &stolen.series[0];
    assert_eq!((own.series.as_str(), own.samples, own.ns), ("cpu0", 1, 300_000));
    let [from_ns, to_ns] = [402_000, 102_000].map(|ns| lowest_of(index_of(ns)));
    let it = own.moves[0];
    assert_eq!((it.slot, it.from_ns, it.to_ns, it.count), (0, from_ns, to_ns, 1));
    let [left] = blame.without_host.as_slice() else { panic!("{:?}", blame.without_host) };
    assert_eq!((left.wakeups, left.ns), (1, 102_000));
    assert_eq!(left.parts.iter().map(|(_, _, ns)| ns).sum::<u64>(), 102_000);
    let hypervisor = blame.causes.iter().position(|it| it.cause == Cause::Host).unwrap() as u32;
    assert!(left.parts.iter().all(|(cause, ..)| *cause != hypervisor));
    assert_eq!(blame.buckets[0].ns, 402_000, "the sums of what was measured stay");
}

#[test]
fn what_is_only_inferred_to_be_the_hypervisors_is_not_recorded_as_stolen() {
    let events = wake_up(hack(), 1, 50_000, 51_000, 55_000);
    let case = case([50_000, 0, 1_000, 4_000, 2_000], events).in_virtual_machine();
    assert_eq!(case.named(), is(Cause::Host, "hypervisor (not counted)", 47_000));
    let blame = recorded(&case);
    assert_eq!(blame.stolen.unwrap().series, []);
    assert!(blame.without_host.is_empty());
}

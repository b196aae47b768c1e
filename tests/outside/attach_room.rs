//! More threads of others than there is room for.

use std::{collections::HashSet, fs, thread, time::Duration};

use super::{
    attach::{Workers, can_attach},
    support::{LONG, Store, codes, eventually, finish, list, signal, whole},
};

#[test]
#[ignore = "live: twin replayed::active_threads_take_the_places_of_idle_ones"]
fn of_more_threads_than_there_is_room_for_those_that_become_active_are_measured() {
    if !can_attach() {
        return;
    }
    // All there is room for, and a few more.
    let _idle = Workers::start("att-crowd", 514, thread::park);
    let _first = Workers::start("att-crowd", 1, || thread::sleep(Duration::from_millis(5)));
    let store = Store::new();
    let asked = ["run", "attach", "--name", "r", "--comm", "att-crowd", "--warmup", "50ms"];
    let run = store.start(&[&asked[..], &["--duration", LONG, "--trace", "off"]].concat());
    store.wait_measuring("r");
    let _active = Workers::start("att-crowd", 8, || thread::sleep(Duration::from_millis(5)));
    eventually("each of those that are active has a series", || {
        let log = fs::read_to_string(store.runs().join("r/series.hlog")).unwrap_or_default();
        let numbers = log.split("Tag=att-crowd/").skip(1);
        let numbers = numbers.filter_map(|rest| rest.split_once(',')?.0.parse::<u32>().ok());
        numbers.collect::<HashSet<_>>().len() == 9
    });
    signal(&run, "INT");
    let said = finish(run);
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    let attached = &record["attached"];
    let rows = list(&attached["rows"]).iter().filter(|row| !row["tid"].is_null());
    assert_eq!(rows.filter(|row| whole(&row["by_own_timer"]) > 0).count(), 9, "{attached}");
    // Of those that slept as many gave way; the few that had no room at first never had any.
    assert_eq!((whole(&attached["gave_way"]), whole(&attached["no_room"])), (8, 4), "{attached}");
    assert!(codes(&record).contains(&"attach_threads_without_room"), "{record}");
    let (shown, why) = (store.run(&["show", "r"]).out, "8 threads were measured for a part");
    assert!(shown.contains(why), "{shown}");
}

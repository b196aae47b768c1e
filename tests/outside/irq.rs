//! The irq probe: by a timerfd everywhere, by a real-time clock where there is one; its figures,
//! and what is refused.

use std::{path::Path, time::Duration};

use serde_json::Value;

use super::{
    schema::{faults, schema},
    support::{Said, Store, eventually, is_root, is_stopped, list, pause, signal, skip, whole},
};

const RUN: [&str; 8] = ["run", "irq", "--warmup", "200ms", "--name", "r", "--trace", "off"];

fn first_cpu() -> String {
    tardy::sys::cpus::Cpus::allowed().unwrap().iter().next().unwrap().to_string()
}

fn figure<'a>(record: &'a Value, name: &str) -> &'a Value {
    list(&record["figures"]).iter().find(|figure| figure["name"] == name).unwrap()
}

fn check(store: &Store, said: &Said, source: &str, cpu: &str) -> Value {
    assert!(matches!(said.code, Some(0)), "{said:?}");
    let record = store.show("r");
    assert_eq!(faults(&schema(), &record), [""; 0], "{record}");
    assert_eq!(record["probe"]["parameters"]["source"], source, "{record}");
    let series = &list(&record["series"])[0];
    assert_eq!(series["name"], format!("cpu{cpu}"));
    assert!(whole(&series["count"]) > 0, "{series}");
    let of = |name: &str| figure(&record, &format!("cpu{cpu}/{name}"))["mean"].as_f64().unwrap();
    assert!(of("within_1ms") <= of("within_2ms") && of("within_2ms") <= 100.0, "{record}");
    assert!(of("loop") > 0.0 && of("loop") <= of("longest_loop"), "{record}");
    record
}

#[test]
fn a_timerfd_stands_in_for_a_device_and_is_named() {
    let (store, cpu) = (Store::new(), first_cpu());
    let asked = ["--source", "timerfd", "--cpus", &cpu, "--frequency", "500", "--duration", "1s"];
    let said = store.run(&[&RUN[..], &asked].concat());
    let record = check(&store, &said, "timerfd", &cpu);
    let series = &list(&record["series"])[0];
    let all = whole(&series["count"]) + whole(&series["missed"]);
    assert_eq!(all, 500, "{series}");
}

#[test]
fn a_stop_of_known_length_is_late_and_not_within_the_limits() {
    let (store, cpu) = (Store::new(), first_cpu());
    let asked = ["--source", "timerfd", "--cpus", &cpu, "--duration", "15m"];
    let mut child = store.start(&[&RUN[..], &asked].concat());
    store.wait_measuring("r");
    signal(&child, "STOP");
    eventually("it stands still", || is_stopped(child.id()) || child.try_wait().unwrap().is_some());
    pause(Duration::from_millis(30));
    signal(&child, "CONT");
    store.wait_late("r", 29_000_000);
    let (_, record) = store.interrupt("r", child);
    let series = &list(&record["series"])[0];
    assert!(whole(&series["max"]) >= 29_000_000 && whole(&series["missed"]) >= 29, "{series}");
    let within = figure(&record, &format!("cpu{cpu}/within_2ms"));
    assert!(list(&within["values"])[0].as_f64().unwrap() < 100.0, "{within}");
}

#[test]
fn a_real_time_clock_is_read_where_there_is_one_and_else_refused_with_a_remedy() {
    let (store, cpu) = (Store::new(), first_cpu());
    let asked = ["--source", "rtc", "--cpus", &cpu, "--frequency", "256", "--duration", "1s"];
    let said = store.run(&[&RUN[..], &asked].concat());
    if !Path::new("/dev/rtc").exists() && !Path::new("/dev/rtc0").exists() {
        assert_eq!(said.code, Some(2), "{said:?}");
        let err = said.err.replace('\n', " ");
        assert!(err.contains("/dev/rtc") && err.contains("--source timerfd"), "{err}");
        return;
    }
    if !is_root() {
        return skip("a rate of 256 a second needs CAP_SYS_RESOURCE");
    }
    let record = check(&store, &said, "rtc", &cpu);
    let series = &list(&record["series"])[0];
    // The device counts every interrupt: they are on the grid, however late they are read.
    let all = whole(&series["count"]) + whole(&series["missed"]);
    assert!((255..=257).contains(&all), "{series}");
    let rate = std::fs::read_to_string("/proc/driver/rtc").unwrap_or_default();
    assert!(!rate.contains("periodic_IRQ\t: yes"), "{rate}");
}

#[test]
fn what_means_nothing_is_refused_with_a_remedy() {
    let store = Store::new();
    for (arguments, remedy) in [
        (&["irq", "--cpu-loop", "600us"][..], "half of the period"),
        (&["irq", "--frequency", "63"], "64..=8192"),
        (&["irq", "--interval", "1ms"], "leave it out, or measure timer"),
        (&["timer", "--frequency", "100"], "leave it out, or measure irq"),
        (&["irq", "--source", "gpio"], "rtc, timerfd"),
    ] {
        let said = store.run(&[&["run"], arguments].concat());
        assert_eq!(said.code, Some(2), "{arguments:?}: {said:?}");
        assert!(said.err.replace('\n', " ").contains(remedy), "{arguments:?}: {}", said.err);
    }
}

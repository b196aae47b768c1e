//! Timer threads that have work to do after each wake-up.

use serde_json::Value;

use super::{
    attach::{Workers, can_attach, work},
    attach_response::{explained, part, pin, sleep_until_next},
    support::{Store, is_root, list, skip, whole},
    turn::Turn,
};

const MS: i64 = 1_000_000;

fn first_cpu() -> String {
    tardy::sys::cpus::Cpus::allowed().unwrap().iter().next().unwrap().to_string()
}

#[test]
fn a_response_is_a_series_of_its_own_that_the_deadline_judges() {
    let (store, cpu) = (Store::new(), first_cpu());
    let plan = ["run", "timer", "--cpus", &cpu, "--warmup", "200ms", "--duration", "2s"];
    let work = ["--interval", "5ms", "--work", "1ms", "--deadline", "4ms", "--name", "r"];
    let gate = format!("cpu{cpu}/response:p50<=1s");
    let said = store.run(&[&plan[..], &work, &["--gate", &gate]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    assert_eq!(record["probe"]["parameters"]["work_ns"], 1_000_000, "{record}");
    let of = |name: &str| {
        let all = list(&record["series"]).iter();
        let mut own = all.filter(|series| series["name"] == format!("cpu{cpu}{name}"));
        own.next().unwrap_or_else(|| panic!("{name}: {record}"))
    };
    let (wakeup, response) = (of(""), of("/response"));
    assert_eq!(wakeup["count"], response["count"], "{record}");
    // What the work takes alone is measured before; a CPU may become twice as fast, not more.
    let more = whole(&response["mean"]) - whole(&wakeup["mean"]);
    assert!(more >= 500_000, "{more} ns of 1 ms: {record}");
    assert!(whole(&response["missed"]) >= whole(&wakeup["missed"]), "{record}");
    let figure = &list(&record["figures"])[0];
    assert_eq!(figure["name"], format!("work/cpu{cpu}"), "{record}");
    let shown = store.run(&["show", "r"]).out;
    // In the table of latencies and in that of deadlines; where misses come together, below too.
    let named = format!("cpu{cpu}/response ");
    assert_eq!(shown.lines().filter(|line| line.starts_with(&named)).count(), 2, "{shown}");
}

#[test]
fn a_response_over_the_deadline_names_who_came_in_the_midst_of_the_work() {
    if !can_attach() || !is_root() {
        return skip("it needs the rights to trace and to real time");
    }
    // Both are real-time threads that take half of a CPU.
    let _alone = Turn::alone();
    // The work fits between two of its turns by chance only.
    let _hog = Workers::start("work-hog", 1, || {
        pin();
        tardy::sys::sched::set_this_thread(tardy::sys::sched::Policy::Fifo, 60).unwrap();
        sleep_until_next(7 * MS, 0);
        work(3 * MS);
    });
    let (store, cpu) = (Store::new(), first_cpu());
    let plan = ["run", "timer", "--cpus", &cpu, "--warmup", "200ms", "--duration", "2s"];
    let terms = ["--policy", "fifo", "--priority", "50", "--trace", "peaks", "--name", "r"];
    let work = ["--interval", "20ms", "--work", "4ms", "--deadline", "5ms"];
    let said = store.run(&[&plan[..], &terms, &work].concat());
    assert!(matches!(said.code, Some(0 | 4)), "{said:?}");
    explained(&store, |peak| {
        assert!(whole(&peak["latency_ns"]) > 5 * MS, "{peak}");
        part(peak, "thread", "work-hog") >= 2 * MS && part(peak, "own_work", "own work") >= MS
    });
    let why: Value = serde_json::from_str(&store.run(&["why", "r", "--json"]).out).unwrap();
    // Work is no part of a wake-up, and has sums and peaks of its own.
    let bands = || list(&why["bands"]).iter().flat_map(|band| list(&band["causes"]));
    assert!(bands().count() > 0 && bands().all(|cause| cause["cause"] != "own_work"), "{why}");
    let is_late = |name: &str| {
        let mut all = list(&why["responses"]).iter();
        all.any(|one| one["name"] == name && one["share"].as_f64().unwrap() > 0.1)
    };
    assert!(is_late("work-hog") && is_late("own work"), "{why}");
    let series = format!("cpu{cpu}");
    assert!(list(&why["peaks"]).iter().any(|peak| peak["series"] == series), "{why}");
    let text = store.run(&["why", "r"]).out;
    assert!(text.contains("The time of late responses: "), "{text}");
}

#[test]
fn work_that_cannot_be_done_in_time_is_refused() {
    let store = Store::new();
    for (asked, why) in [
        (&["timer", "--work", "950us"][..], "--work 950 us: the threads of a CPU (1)"),
        (&["timer", "--work", "500us", "--threads", "2"], "the threads of a CPU (2)"),
        (&["timer", "--work", "500us", "--deadline", "400us"], "the work alone takes 500 us"),
        (&["timer", "--loops-per-ms", "1000"], "add --work"),
        (&["noise", "--work", "500us"], "--work has no meaning with noise"),
    ] {
        let said = store.run(&[&["run"], asked].concat());
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(why), "{asked:?}: {said:?}");
    }
}

//! Timer threads that have work to do after each wake-up.

use serde_json::Value;

use super::{
    attach::{Workers, can_attach, work},
    attach_response::{part, pin, sleep_until_next},
    support::{Store, is_counted, is_root, list, skip, whole, with_little_time},
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
    // What the work takes alone is measured before. A CPU may become faster, but not one whose time
    // is its count of instructions.
    let more = whole(&response["mean"]) - whole(&wakeup["mean"]);
    let least = if is_counted() { 990_000 } else { 1 };
    assert!(more >= least, "{more} ns of 1 ms: {record}");
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
    // The work fits between two of its turns by chance only.
    let _hog = Workers::start("work-hog", 1, || {
        pin();
        tardy::sys::sched::set_this_thread(tardy::sys::sched::Policy::Fifo, 60).unwrap();
        sleep_until_next(7 * MS, 0);
        work(3 * MS);
    });
    let cpu = first_cpu();
    // A busy machine may spoil all cycles of a short time: then for longer.
    let (store, why) = with_little_time(|duration| {
        let store = Store::new();
        let why = beside_the_hog(&store, &cpu, duration);
        let is_named = |peak: &Value| {
            whole(&peak["latency_ns"]) > 5 * MS
                && part(peak, "thread", "work-hog") >= 2 * MS
                && part(peak, "own_work", "own work") >= MS
        };
        let own = format!("cpu{cpu}");
        let has_wakeup = list(&why["peaks"]).iter().any(|peak| peak["series"] == *own);
        (has_wakeup && responses(&why, &cpu).any(is_named)).then_some((store, why))
    });
    for peak in responses(&why, &cpu) {
        let parts: i64 = list(&peak["blame"]).iter().map(|part| whole(&part["ns"])).sum();
        assert_eq!(parts, whole(&peak["latency_ns"]), "{peak}");
        assert!(peak["stages"].is_null(), "{peak}");
    }
    // Work is not part of a wake-up, and has its own sums and peaks.
    let bands = || list(&why["bands"]).iter().flat_map(|band| list(&band["causes"]));
    assert!(bands().count() > 0 && bands().all(|cause| cause["cause"] != "own_work"), "{why}");
    let is_late = |name: &str| {
        let mut all = list(&why["responses"]).iter();
        all.any(|one| one["name"] == name && one["share"].as_f64().unwrap() > 0.0)
    };
    assert!(is_late("work-hog") && is_late("own work"), "{why}");
    let text = store.run(&["why", "r"]).out;
    assert!(text.contains("The time of late responses: "), "{text}");
}

/// Wake-ups with work that a thread of a higher priority comes in the middle of; what `why` says of
/// their run.
fn beside_the_hog(store: &Store, cpu: &str, duration: &str) -> Value {
    let plan = ["run", "timer", "--cpus", cpu, "--warmup", "200ms", "--duration", duration];
    let terms = ["--policy", "fifo", "--priority", "50", "--trace", "peaks", "--name", "r"];
    let work = ["--interval", "20ms", "--work", "4ms", "--deadline", "5ms"];
    let said = store.run(&[&plan[..], &terms, &work].concat());
    assert!(matches!(said.code, Some(0 | 4)), "{said:?}");
    serde_json::from_str(&store.run(&["why", "r", "--json"]).out).unwrap()
}

/// Late responses of this CPU, one by one.
fn responses<'a>(why: &'a Value, cpu: &str) -> impl Iterator<Item = &'a Value> {
    let series = format!("cpu{cpu}/response");
    list(&why["peaks"]).iter().filter(move |peak| peak["series"] == *series)
}

#[test]
fn work_that_cannot_be_done_in_time_is_refused() {
    let store = Store::new();
    for (asked, why) in [
        (&["timer", "--work", "950us"][..], "--work 950 us: the threads of a CPU (1)"),
        (&["timer", "--work", "500us", "--threads", "2"], "the threads of a CPU (2)"),
        (&["timer", "--work", "500us", "--deadline", "400us"], "the work alone takes 500 us"),
        (&["timer", "--loops-per-ms", "1000"], "add --work"),
        (&["noise", "--work", "500us"], "--work is not supported with noise"),
    ] {
        let said = store.run(&[&["run"], asked].concat());
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(why), "{asked:?}: {said:?}");
    }
}

//! How long threads of others work from one expiry of their timers to the next: work, and what
//! delays it, is planted, so that its size is known.

use rustix::{
    thread::{ClockId, clock_nanosleep_absolute},
    time::{Timespec, clock_gettime},
};

use serde_json::Value;

use super::{
    attach::{Workers, attach, can_attach, row, series, work},
    support::{Said, Store, is_root, list, skip, whole},
};

const MS: i64 = 1_000_000;

/// On one CPU, the first that this process may use.
pub(super) fn pin() {
    let cpus = tardy::sys::cpus::Cpus::allowed().unwrap();
    cpus.iter().take(1).collect::<tardy::sys::cpus::Cpus>().pin_this_thread().unwrap();
}

/// Sleeps until the next multiple of the period since the clock began, and then for `after_ns`: so
/// threads keep their distance from each other.
pub(super) fn sleep_until_next(period_ns: i64, after_ns: i64) {
    let now = clock_gettime(rustix::time::ClockId::Monotonic);
    let now_ns = now.tv_sec * 1_000_000_000 + now.tv_nsec;
    let next_ns = ((now_ns - after_ns) / period_ns + 1) * period_ns + after_ns;
    let next = Timespec { tv_sec: next_ns / 1_000_000_000, tv_nsec: next_ns % 1_000_000_000 };
    clock_nanosleep_absolute(ClockId::Monotonic, &next).unwrap();
}

/// How much of a peak was that, ns.
pub(super) fn part(peak: &Value, cause: &str, name: &str) -> i64 {
    let parts = list(&peak["blame"]).iter();
    parts
        .filter(|part| part["cause"] == cause && part["name"] == name)
        .map(|p| whole(&p["ns"]))
        .sum()
}

/// Some cycle over the deadline is like that, and the parts of each sum to it.
pub(super) fn explained(store: &Store, is_it: impl Fn(&Value) -> bool) {
    let why: Value = serde_json::from_str(&store.run(&["why", "r", "--json"]).out).unwrap();
    let is_cycle = |peak: &&Value| peak["series"].as_str().unwrap().ends_with("/response");
    let cycles: Vec<&Value> = list(&why["peaks"]).iter().filter(is_cycle).collect();
    assert!(cycles.iter().any(|peak| is_it(peak)), "{why}");
    for peak in cycles {
        let parts: i64 = list(&peak["blame"]).iter().map(|part| whole(&part["ns"])).sum();
        assert_eq!(parts, whole(&peak["latency_ns"]), "{peak}");
        assert!(peak["stages"].is_null(), "{peak}");
    }
}

#[test]
#[ignore = "live: twin replayed::a_preemption_is_in_the_response_and_work_is_all_there_is_without"]
fn a_planted_preemption_is_in_the_response_and_known_work_is_all_there_is_without() {
    if !can_attach() || !is_root() {
        return skip("it needs the rights to trace and to real time");
    }
    let _victim = Workers::start("resp-victim", 1, || {
        pin();
        sleep_until_next(20 * MS, 0);
        work(2 * MS);
    });
    // It comes in the middle of every fifth cycle.
    let _hog = Workers::start("resp-hog", 1, || {
        pin();
        tardy::sys::sched::set_this_thread(tardy::sys::sched::Policy::Fifo, 50).unwrap();
        sleep_until_next(100 * MS, MS);
        work(5 * MS);
    });
    // Where others keep it from the CPU, it is looked at for longer.
    let (store, said, record) = ["2s", "8s", "30s"].into_iter().find_map(with_victim).unwrap();
    // Too few cycles for that percentile: the gate was found, and is undecided.
    assert!(said.out.contains("resp-victim/response"), "{said:?}");
    assert_eq!(record["parameters"]["deadline_ns"], 6 * MS, "{record}");
    let row = row(&record, "resp-victim");
    assert_eq!((&row["period_ns"], &row["latency"]), (&(20 * MS).into(), &"lateness".into()));
    let (response, over) = (&row["response"], &row["over"]);
    let all = series(&record, "resp-victim/response");
    assert_eq!((&all["count"], &all["max"]), (&response["count"], &response["max"]), "{record}");
    assert!(whole(&all["min"]) >= 19 * MS / 10, "the work itself: {all}");
    let cycles = whole(&over["cycles"]);
    assert!(cycles >= 10 && whole(&over["deadline_ns"]) == 6 * MS, "{row}");
    // Of each of those that it hit.
    assert!(whole(&over["ready_ns"]) >= 10 * 9 * MS / 2, "{row}");
    let parts = ["late_ns", "run_ns", "ready_ns", "wait_ns", "unseen_ns"];
    let sum: i64 = parts.map(|part| whole(&over[part])).iter().sum();
    assert!(sum > cycles * 6 * MS && sum <= cycles * whole(&response["max"]), "{row}");
    assert_eq!(whole(&over["wait_ns"]), 0, "it never waits: {row}");
    assert_eq!(row["policy"], "other", "{row}");
    explained(&store, |peak| {
        part(peak, "thread", "resp-hog") >= 9 * MS / 2
            && part(peak, "own_work", "own work") >= 19 * MS / 10
    });
    let shown = store.show("r");
    let judged = &list(&shown["deadlines"])[0];
    assert_eq!(judged["series"], "resp-victim/response", "{shown}");
    // With the periods that it skipped, where the machine is so slow.
    let passed = whole(&judged["missed"]) - cycles;
    assert!((0..=whole(&row["missed"])).contains(&passed), "{judged} {row}");
    let text = store.run(&["show", "r"]).out;
    assert!(text.contains("response us") && text.contains("deadline 6ms"), "{text}");
}

/// Where it had 50 cycles in this time.
fn with_victim(duration: &str) -> Option<(Store, Said, Value)> {
    let store = Store::new();
    let asked = ["--comm", "resp-victim", "--duration", duration, "--warmup", "100ms"];
    let gates = ["--gate", "resp-victim/response:p99.9<=1s", "--gate", "p50<=1s"];
    let deadline = ["--deadline", "6ms"];
    let (said, record) = attach(&store, &[&asked[..], &deadline, &gates].concat());
    let cycles = whole(&row(&record, "resp-victim")["response"]["count"]);
    (cycles >= 50).then_some((store, said, record))
}

#[test]
#[ignore = "live: twin work_that_takes_longer_than_its_period_is_later_by_the_rest_each_time"]
fn work_that_takes_longer_than_its_period_is_late_by_more_each_time() {
    if !can_attach() {
        return;
    }
    // Its next expiry is always over by the time that it would sleep.
    let _worker = Workers::start("resp-overrun", 1, || {
        let now = clock_gettime(rustix::time::ClockId::Monotonic);
        let mut next_ns = now.tv_sec * 1_000_000_000 + now.tv_nsec;
        for _ in 0..40 {
            next_ns += 4 * MS;
            let next =
                Timespec { tv_sec: next_ns / 1_000_000_000, tv_nsec: next_ns % 1_000_000_000 };
            clock_nanosleep_absolute(ClockId::Monotonic, &next).unwrap();
            work(6 * MS);
        }
    });
    // Where others keep it from the CPU for a second, it is looked at for longer.
    let row = ["1s", "4s", "15s"].into_iter().find_map(with_overrun).unwrap();
    let (count, max) = (whole(&row["response"]["count"]), whole(&row["response"]["max"]));
    // After n cycles it is behind by n times 2 ms and its own 6 ms.
    assert!(max >= 6 * MS + (count.min(35) - 10) * 2 * MS, "{row}");
    assert!(whole(&row["over"]["cycles"]) + 2 >= count, "{row}");
}

/// The row of the thread, if it had this number of cycles.
fn with_overrun(duration: &str) -> Option<Value> {
    let asked = ["--comm", "resp-overrun", "--duration", duration, "--warmup", "0s"];
    let (said, record) = attach(&Store::new(), &[&asked[..], &["--deadline", "4ms"]].concat());
    if said.code != Some(0) {
        return None;
    }
    let row = row(&record, "resp-overrun");
    (whole(&row["response"]["count"]) >= 20).then(|| row.clone())
}

#[test]
#[ignore = "live: twin a_thread_of_a_grid_has_a_period_and_one_that_sleeps_for_a_time_has_none"]
fn a_thread_that_passes_expiries_over_has_a_period_and_one_that_sleeps_for_a_time_has_none() {
    if !can_attach() {
        return;
    }
    let _grid = Workers::start("resp-grid", 1, || {
        sleep_until_next(15 * MS, 0);
        sleep_until_next(15 * MS, 5 * MS);
    });
    // On an idle machine it drifts by little.
    let _relative = Workers::start("resp-relative", 1, || {
        let _ = rustix::thread::nanosleep(&Timespec { tv_sec: 0, tv_nsec: 20 * MS });
    });
    let store = Store::new();
    let asked = ["--comm", "resp-grid", "--duration", "800ms", "--warmup", "50ms"];
    let (said, record) = attach(&store, &asked);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(row(&record, "resp-grid")["period_ns"], 5 * MS, "{record}");
    let asked = ["run", "attach", "--name", "relative", "--comm", "resp-relative"];
    store.run(&[&asked[..], &["--duration", "700ms", "--warmup", "0s"]].concat());
    let record = store.show("relative");
    let own = row(&record, "resp-relative");
    assert!(own["period_ns"].is_null() && whole(&own["by_own_timer"]) > 16, "{record}");
}

/// A mutex with priority inheritance, which lives as long as the program.
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one thing is made, and checked in steps")]
fn pi_mutex() -> usize {
    static MUTEX: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *MUTEX.get_or_init(|| {
        // SAFETY: both are made of integers, for which zero is a value, and are initialised before
        // use; the mutex is never moved or freed.
        unsafe {
            let mutex: *mut libc::pthread_mutex_t = Box::into_raw(Box::new(std::mem::zeroed()));
            let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
            assert_eq!(libc::pthread_mutexattr_init(&raw mut attributes), 0);
            let inherit = libc::PTHREAD_PRIO_INHERIT;
            assert_eq!(libc::pthread_mutexattr_setprotocol(&raw mut attributes, inherit), 0);
            assert_eq!(libc::pthread_mutex_init(mutex, &raw const attributes), 0);
            mutex as usize
        }
    })
}

/// Works for `ns` with the mutex.
fn locked(ns: i64) {
    let mutex = pi_mutex() as *mut libc::pthread_mutex_t;
    // SAFETY: it was initialised, and lives on.
    unsafe { assert_eq!(libc::pthread_mutex_lock(mutex), 0) };
    work(ns);
    // SAFETY: this thread has it.
    unsafe { assert_eq!(libc::pthread_mutex_unlock(mutex), 0) };
}

#[test]
#[ignore = "live: twin replayed::a_wait_for_a_mutex_with_priority_inheritance_names_its_owner"]
fn a_wait_for_a_mutex_in_the_midst_of_the_work_names_its_owner() {
    if !can_attach() || !is_root() {
        return skip("it needs the rights to trace and to real time");
    }
    let _owner = Workers::start("resp-owner", 1, || {
        pin();
        sleep_until_next(50 * MS, 0);
        locked(6 * MS);
    });
    // It comes 1 ms after the owner, before whom it goes, and works for 1 ms before it wants it.
    let _waiter = Workers::start("resp-waiter", 1, || {
        pin();
        tardy::sys::sched::set_this_thread(tardy::sys::sched::Policy::Fifo, 50).unwrap();
        sleep_until_next(50 * MS, MS);
        work(MS);
        locked(0);
    });
    let store = Store::new();
    let asked = ["--comm", "resp-waiter", "--duration", "2s", "--warmup", "100ms"];
    let (said, record) = attach(&store, &[&asked[..], &["--deadline", "3ms"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let row = row(&record, "resp-waiter");
    assert!(whole(&row["over"]["wait_ns"]) >= 3 * MS, "{row}");
    explained(&store, |peak| {
        part(peak, "lock", "PI mutex") >= 3 * MS
            && list(&peak["blame"]).iter().any(|part| {
                let task = part["task"].as_str().unwrap_or_default();
                part["name"] == "PI mutex" && task.starts_with("resp-owner/")
            })
    });
}

#[test]
fn threads_of_a_container_are_seen_by_their_numbers_outside_of_it() {
    if !can_attach() || !is_root() {
        return skip("it needs the rights to trace and to make namespaces");
    }
    let container = ["unshare", "--pid", "--fork", "--mount-proc"];
    let probe = std::process::Command::new("unshare").args(&container[1..]).arg("true").output();
    if !probe.is_ok_and(|said| said.status.success()) {
        return skip("a namespace of process numbers cannot be made here");
    }
    let store = Store::new();
    // Within it the shell is number 1, as it says.
    let script = "echo number $$ >&2; i=0; while [ $i -lt 120 ]; do sleep 0.003; i=$((i+1)); done";
    let command = [&["--"], &container[..], &["sh", "-c", script]].concat();
    let (said, record) = attach(&store, &command);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("number 1\n"), "{said:?}");
    assert_eq!(record["attached"]["command"]["exit_code"], 0, "{record}");
    assert!(whole(&row(&record, "sleep")["threads"]) > 0, "{record}");
    let rows = list(&record["attached"]["rows"]).iter();
    let shells = rows.filter(|row| row["series"].as_str().unwrap().starts_with("sh/"));
    let tids: Vec<i64> = shells.map(|row| whole(&row["tid"])).collect();
    assert!(!tids.is_empty() && tids.iter().all(|tid| *tid > 1), "{tids:?}");
}

#[test]
#[ignore = "long: compiling takes too long for each change"]
fn the_threads_of_a_go_program_whose_goroutine_sleeps_irregularly_have_no_period() {
    if !can_attach() {
        return;
    }
    let store = Store::new();
    let (source, program) = (store.path().join("ticks.go"), store.path().join("ticks"));
    let text = "package main\nimport \"time\"\nfunc main() {\n\
                for i := 0; i < 150; i++ {\n\
                time.Sleep(time.Duration(7+i*i%6) * time.Millisecond)\n}\n\
                }\n";
    std::fs::write(&source, text).unwrap();
    let mut compiler = std::process::Command::new("go");
    compiler.arg("build").arg("-o").arg(&program).arg(&source).env("GOCACHE", store.path());
    if !compiler.status().is_ok_and(|status| status.success()) {
        return skip("no compiler of Go is installed, or it does not work here");
    }
    let (said, record) = attach(&store, &["--", program.to_str().unwrap()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let row = row(&record, "ticks");
    assert!(whole(&row["by_own_timer"]) > 30 && row["period_ns"].is_null(), "{row}");
}

#[test]
fn without_a_deadline_no_work_is_measured() {
    if !can_attach() {
        return;
    }
    let _worker = Workers::start("resp-none", 1, || sleep_until_next(4 * MS, 0));
    let store = Store::new();
    let asked = ["--comm", "resp-none", "--duration", "400ms", "--warmup", "50ms"];
    let (said, record) = attach(&store, &asked);
    assert_eq!(said.code, Some(0), "{said:?}");
    let row = row(&record, "resp-none");
    assert!(row.get("response").is_none() && row.get("over").is_none(), "{row}");
    assert!(list(&record["series"]).iter().all(|one| one["stage"] != "response"), "{record}");
}

#[test]
fn a_thread_of_sched_deadline_is_judged_by_its_own_deadline() {
    if !can_attach() || !is_root() {
        return skip("it needs the rights to trace and to SCHED_DEADLINE");
    }
    use tardy::sys::sched::{Budget, Policy, set_this_thread};
    const BUDGET: Budget =
        Budget { runtime_ns: 4_000_000, deadline_ns: 9_000_000, period_ns: 20_000_000 };
    let can = std::thread::spawn(|| set_this_thread(Policy::Deadline(BUDGET), 0)).join().unwrap();
    if let Err(error) = can {
        return skip(&format!("SCHED_DEADLINE is refused here: {error}"));
    }
    let _worker = Workers::start("resp-budget", 1, || {
        let _ = set_this_thread(Policy::Deadline(BUDGET), 0);
        for _ in 0..20 {
            sleep_until_next(20 * MS, 0);
            work(MS);
        }
    });
    std::thread::sleep(std::time::Duration::from_millis(50));
    let store = Store::new();
    let asked = ["--comm", "resp-budget", "--duration", "1s", "--warmup", "100ms"];
    let (said, record) = attach(&store, &asked);
    assert_eq!(said.code, Some(0), "{said:?}");
    let rows = list(&record["attached"]["rows"]);
    let own = rows.iter().find(|row| !row["tid"].is_null()).unwrap();
    let budget = &own["budget"];
    assert_eq!(
        (&budget["runtime_ns"], &budget["deadline_ns"]),
        (&(4 * MS).into(), &(9 * MS).into())
    );
    assert_eq!(budget["period_ns"], 20 * MS, "{own}");
    assert!(whole(&own["response"]["count"]) >= 10, "{own}");
    assert_eq!(own["over"]["deadline_ns"], 9 * MS, "{own}");
    let shown = store.show("r");
    let judged = &list(&shown["deadlines"])[0];
    let name = format!("{}/response", own["series"].as_str().unwrap());
    assert_eq!((&judged["series"], &judged["deadline_ns"]), (&name.into(), &(9 * MS).into()));
}

//! Threads of others: what is seen of them from outside has to be what they know of themselves, and
//! they come, go, change their names and end as they like.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::thread::JoinHandleExt as _,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::channel,
    },
    thread::{Builder, JoinHandle, sleep},
    time::Duration,
};

use serde_json::Value;

use super::{
    schema::{faults, schema},
    support::{
        LONG, Said, Store, codes, eventually, finish, list, read_record, signal, skip, whole,
    },
};

pub(super) fn can_attach() -> bool {
    let can = tardy::kernel::can_trace();
    if let Err(lack) = &can {
        skip(&format!("threads of others cannot be looked at here: {lack}"));
    }
    can.is_ok()
}

pub(super) fn attach(store: &Store, asked: &[&str]) -> (Said, Value) {
    let said = store.run(&[&["run", "attach", "--name", "r"], asked].concat());
    let record = store.show("r");
    assert_eq!(faults(&schema(), &record), [""; 0], "{record}");
    (said, record)
}

pub(super) fn series<'a>(record: &'a Value, name: &str) -> &'a Value {
    let found = list(&record["series"]).iter().find(|series| series["name"] == name);
    found.unwrap_or_else(|| panic!("no series {name}: {record}"))
}

pub(super) fn row<'a>(record: &'a Value, name: &str) -> &'a Value {
    let found = list(&record["attached"]["rows"]).iter().find(|row| row["series"] == name);
    found.unwrap_or_else(|| panic!("no row {name}: {record}"))
}

/// Threads of this process that continue until they are told to end.
pub(super) struct Workers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Each has its name by then.
    pub(super) fn start(name: &str, count: usize, work: fn()) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (begun, begins) = channel();
        let threads = (0..count).map(|_| {
            let (stop, begun) = (Arc::clone(&stop), begun.clone());
            let body = move || {
                begun.send(()).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    work();
                }
            };
            Builder::new().name(name.into()).stack_size(64 << 10).spawn(body).unwrap()
        });
        let threads = threads.collect();
        (0..count).for_each(|_| begins.recv().unwrap());
        Self { threads, stop }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.iter().for_each(|thread| thread.thread().unpark());
        for thread in self.threads.drain(..) {
            let _ = thread.as_pthread_t();
            thread.join().unwrap();
        }
    }
}

#[test]
#[ignore = "live: twin a_thread_of_a_timer_has_the_lateness_of_its_switches_and_its_period"]
fn a_timer_thread_is_seen_from_outside_as_it_sees_itself_less_its_way_to_user_space() {
    if !can_attach() {
        return;
    }
    let store = Store::new();
    let cpu = tardy::sys::cpus::Cpus::allowed().unwrap().iter().next().unwrap().to_string();
    let inner = store.runs().join("inner");
    let (program, inner) = (super::support::TARDY, inner.to_str().unwrap());
    let timer = ["run", "timer", "--cpus", &cpu, "--interval", "2ms", "--duration", "2s"];
    let asked = ["--warmup", "100ms", "--trace", "stages", "-o", inner, "--quiet"];
    let command = [&["--", program][..], &timer, &asked].concat();
    let (said, record) = attach(&store, &command);
    assert_eq!(said.code, Some(0), "{said:?}");
    let own = read_record(&store.runs().join("inner"));
    let itself = series(&own, &format!("cpu{cpu}"));
    let user = series(&own, &format!("cpu{cpu}/user"));
    let name = format!("tardy%2Fcpu{cpu}");
    let outside = series(&record, &name);
    // It had a warm-up, and wake-ups that were over before it slept do not count for the scheduler.
    let (count, own_count) = (whole(&outside["count"]), whole(&itself["count"]));
    assert!(count * 10 >= own_count * 9 && count <= own_count + own_count / 5, "{count}: {own}");
    let median = |of: &Value| whole(&of["percentiles"]["50"]);
    let (seen, known) = (median(outside), median(itself));
    let way = whole(&user["percentiles"]["99.9"]);
    assert!(seen <= known + known / 20, "{seen} of {known}: {record}");
    assert!(seen + way >= known - known / 10, "{seen} of {known}, {way} of it the way: {record}");
    let row = row(&record, &name);
    assert_eq!((&row["latency"], &row["period_ns"]), (&"lateness".into(), &2_000_000.into()));
    assert_eq!(whole(&row["slack_ns"]), 0, "it asked for none: {row}");
    assert_eq!(outside["period_ns"], 2_000_000, "{outside}");
    let thread = list(&record["series"]).iter().find(|one| one["thread_of"] == name.as_str());
    assert!(thread.is_some_and(|one| one["count"] == outside["count"]), "{record}");
    let text = store.run(&["show", "r"]).out;
    assert!(text.contains("2.00 ms") && text.contains("exit 0"), "{text}");
}

#[test]
#[ignore = "live: twin a_thread_of_a_timer_has_the_lateness_of_its_switches_and_its_period"]
fn cyclictest_is_seen_from_outside_as_it_sees_itself_less_its_way_to_user_space() {
    if !can_attach() || !super::support::is_root() {
        return skip("it needs the rights to trace and to real time");
    }
    let measured = ["-q", "-m", "-p", "80", "-i", "2000", "-l", "700", "-t", "1"];
    if Command::new("cyclictest").arg("--help").output().is_err() {
        return skip("cyclictest is not installed");
    }
    let store = Store::new();
    // What it prints goes to the standard error with --json.
    let command = [&["--json", "--trace", "off", "--", "cyclictest"][..], &measured].concat();
    let (said, record) = attach(&store, &command);
    assert_eq!(said.code, Some(0), "{said:?}");
    let line = said.err.lines().rfind(|line| line.contains("Max:")).unwrap_or_default();
    let printed = |name: &str| {
        let after = line.split_once(name).map_or("", |(_, after)| after);
        let number = after.split_whitespace().next().and_then(|word| word.parse::<i64>().ok());
        number.unwrap_or_else(|| panic!("no {name} in {}", said.err)) * 1_000
    };
    let rows = list(&record["attached"]["rows"]).iter();
    let threads = rows.filter(|row| !row["tid"].is_null());
    let row = threads.max_by_key(|row| whole(&row["wakeups"])).unwrap();
    assert_eq!(row["period_ns"], 2_000_000, "{row}");
    let seen = series(&record, row["series"].as_str().unwrap());
    assert!((650..=710).contains(&whole(&seen["count"])), "{seen}");
    // It prints whole microseconds, rounded down.
    for (own, name) in [("min", "Min:"), ("mean", "Avg:"), ("max", "Max:")] {
        assert!(whole(&seen[own]) <= printed(name) + 1_000, "{own}: {seen} {line}");
    }
    assert!(whole(&seen["mean"]) * 4 >= printed("Avg:"), "{seen} {line}");
}

#[test]
fn a_command_that_forks_and_execs_all_the_time_is_seen_with_all_its_children_and_its_exit_code() {
    if !can_attach() {
        return;
    }
    let store = Store::new();
    let script = "i=0; while [ $i -lt 40 ]; do sleep 0.005; i=$((i+1)); done; exit 3";
    let (said, record) = attach(&store, &["--json", "--", "sh", "-c", script]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let printed: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(printed["attached"]["command"]["exit_code"], 3, "{printed}");
    assert!(codes(&record).contains(&"attach_command_failed"), "{record}");
    let sleeps = row(&record, "sleep");
    // That it is all of them is exact in a replay: `what_an_attached_shell_starts_is_attached...`.
    assert!(whole(&sleeps["threads"]) > 0 && whole(&sleeps["by_own_timer"]) > 0, "{record}");
    assert!(whole(&row(&record, "sh")["wakeups"]) > 0, "by the ends of its children: {record}");
    let threads = whole(&record["attached"]["threads"]);
    assert!(threads >= 2 && whole(&record["attached"]["no_room"]) == 0, "{record}");
    assert!(fs::read_to_string(store.runs().join("r/series.hlog")).unwrap().contains("Tag=sleep,"));
}

/// Uses `ns` of CPU time.
pub(super) fn work(ns: i64) {
    let cpu_ns = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    let from_ns = cpu_ns();
    while cpu_ns() - from_ns < ns {
        std::hint::spin_loop();
    }
}

#[test]
#[ignore = "live: twin session::replayed::a_preemption_is_the_cause_of_the_wake_ups_that_it_delays"]
fn a_planted_preemption_is_counted_and_named_as_the_cause_of_what_it_delays() {
    if !can_attach() || !super::support::is_root() {
        return skip("it needs the rights to trace and to real time");
    }
    fn pinned() {
        let cpus = tardy::sys::cpus::Cpus::allowed().unwrap();
        cpus.iter().take(1).collect::<tardy::sys::cpus::Cpus>().pin_this_thread().unwrap();
    }
    let _victim = Workers::start("att-victim", 1, || {
        pinned();
        work(1_000_000);
        sleep(Duration::from_millis(4));
    });
    let _hog = Workers::start("att-hog", 1, || {
        pinned();
        tardy::sys::sched::set_this_thread(tardy::sys::sched::Policy::Fifo, 50).unwrap();
        work(5_000_000);
        sleep(Duration::from_millis(200));
    });
    let store = Store::new();
    let asked = ["--comm", "att-victim", "--duration", "4s", "--peak-over", "2ms"];
    let (said, record) = attach(&store, &asked);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(record["trace"]["found"], "peaks", "{record}");
    let row = row(&record, "att-victim");
    assert!(whole(&row["preempted"]) > 0 && whole(&row["ready"]["count"]) > 0, "{row}");
    assert!(whole(&row["ready"]["max"]) >= 2_000_000, "{row}");
    let why: Value = serde_json::from_str(&store.run(&["why", "r", "--json"]).out).unwrap();
    let peaks = list(&why["peaks"]);
    let by_hog = |peak: &&Value| {
        let first = &peak["blame"][0];
        first["cause"] == "thread" && first["name"] == "att-hog"
    };
    assert!(peaks.iter().any(|peak| by_hog(&peak)), "{why}");
    // While the last of them were blamed, nobody continued to look at the machine: that is done
    // once after the end, and perhaps before the end is noticed.
    let csv = fs::read_to_string(store.runs().join("r/machine.csv")).unwrap();
    let times = csv.lines().filter_map(|line| line.split_once(',')?.0.parse::<f64>().ok());
    let end_s = whole(&record["duration_ns"]) as f64 / 1e9;
    let after: BTreeSet<u64> = times.filter(|t_s| *t_s > end_s).map(f64::to_bits).collect();
    assert!(after.len() <= 3, "{end_s}: {csv}");
    for peak in peaks {
        let parts: i64 = list(&peak["blame"]).iter().map(|part| whole(&part["ns"])).sum();
        assert_eq!(parts, whole(&peak["latency_ns"]), "{peak}");
        assert_eq!((&peak["series"], &peak["tid"]), (&"att-victim".into(), &only_tid(&record)));
        let late = whole(&peak["latency_ns"]) > 2_000_000 && whole(&peak["stages"]["user"]) == 0;
        assert!(late, "{peak}");
    }
}

#[test]
fn threads_that_sleep_all_the_time_are_no_result() {
    if !can_attach() {
        return;
    }
    let store = Store::new();
    let asked = ["--warmup", "50ms", "--duration", "200ms"];
    let mut target = Command::new("sleep").arg("1000").spawn().unwrap();
    let (said, record) =
        attach(&store, &[&["--pid", &target.id().to_string()], &asked[..]].concat());
    target.kill().unwrap();
    target.wait().unwrap();
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(codes(&record).contains(&"attach_nothing_woke"), "{record}");
}

/// That of the only thread.
pub(super) fn only_tid(record: &Value) -> Value {
    let rows = list(&record["attached"]["rows"]);
    rows.iter().find(|row| !row["tid"].is_null()).unwrap()["tid"].clone()
}

#[test]
#[ignore = "live: twin replayed::work_of_known_length_is_the_run_time_of_each_wake_up"]
fn work_of_known_length_is_the_run_time_of_a_wake_up() {
    if !can_attach() {
        return;
    }
    let _workers = Workers::start("known, work/1", 1, || {
        work(3_000_000);
        sleep(Duration::from_millis(5));
    });
    let store = Store::new();
    let asked = ["--comm", "known, work/1", "--duration", "1s", "--warmup", "100ms"];
    let (said, record) = attach(&store, &asked);
    assert_eq!(said.code, Some(0), "{said:?}");
    let row = row(&record, "known%2C%20work%2F1");
    let run = whole(&row["run"]["p50"]);
    // What the scheduler accounts is a little less where interrupts and the host are left out.
    assert!((2_900_000..9_000_000).contains(&run), "{row}");
    assert!(whole(&row["blocked"]["p50"]) >= 4_500_000, "{row}");
    assert_eq!(row["period_ns"], Value::Null, "it sleeps for a time, not until one: {row}");
    assert!(whole(&row["slack_ns"]) > 0, "{row}");
    let text = store.run(&["show", "r"]).out;
    assert!(text.contains("no period"), "{text}");
    let figures = list(&record["figures"]).iter();
    let names: Vec<&str> = figures.filter_map(|figure| figure["name"].as_str()).collect();
    assert!(names.contains(&"known%2C%20work%2F1/run"), "{names:?}");
}

#[test]
fn threads_of_one_name_are_together_what_each_of_them_is() {
    if !can_attach() {
        return;
    }
    const THREADS: usize = 200;
    let _workers = Workers::start("att-many", THREADS, || sleep(Duration::from_millis(100)));
    let store = Store::new();
    let asked = ["--comm", "att-many", "--duration", "1s", "--warmup", "100ms"];
    let (said, record) = attach(&store, &asked);
    assert_eq!(said.code, Some(0), "{said:?}");
    let all = row(&record, "att-many");
    assert_eq!(whole(&all["threads"]), THREADS as i64, "{all}");
    let of = |name: &str| {
        let own = list(&record["series"]).iter().filter(|one| one["thread_of"] == "att-many");
        let own = own.filter(|one| one["stage"].is_null());
        own.map(|one| one[name].as_i64().unwrap_or(0)).collect::<Vec<_>>()
    };
    assert_eq!(of("count").len(), THREADS);
    let pool = series(&record, "att-many");
    assert_eq!(of("count").iter().sum::<i64>(), whole(&pool["count"]));
    assert_eq!(of("max").iter().max(), pool["max"].as_i64().as_ref());
    assert_eq!(whole(&record["attached"]["no_room"]), 0);
}

#[test]
fn a_process_that_ends_ends_the_run_which_stays_whole() {
    if !can_attach() {
        return;
    }
    let store = Store::new();
    let mut target =
        Command::new("sh").args(["-c", "while :; do sleep 0.01; done"]).spawn().unwrap();
    let pid = target.id().to_string();
    let asked = ["run", "attach", "--name", "r", "--duration", LONG, "--warmup", "50ms"];
    let child = store.start(&[&asked[..], &["--pid", &pid]].concat());
    store.wait_measuring("r");
    eventually("the thread has a series", || {
        let log = fs::read_to_string(store.runs().join("r/series.hlog")).unwrap_or_default();
        log.contains("Tag=sh/")
    });
    target.kill().unwrap();
    target.wait().unwrap();
    let said = finish(child);
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    assert_eq!(record["status"], "complete", "{record}");
    assert!(codes(&record).contains(&"attach_target_ended"), "{record}");
    assert!(whole(&record["duration_ns"]) < 60_000_000_000, "{record}");
    let row = row(&record, "sh");
    assert!(whole(&row["by_task"]) + whole(&row["by_interrupt"]) > 0, "{row}");
    let tid = format!("sh/{pid}");
    assert_eq!(series(&record, &tid)["thread_of"], "sh", "{record}");
}

#[test]
fn of_a_killed_tardy_the_series_are_there_and_the_command_goes_with_it() {
    if !can_attach() {
        return;
    }
    let store = Store::new();
    let script = "while :; do sleep 0.01; done";
    let asked = ["run", "attach", "--name", "r", "--duration", LONG, "--", "sh", "-c", script];
    let child = store.start(&asked);
    store.wait_measuring("r");
    eventually("the thread has a series", || {
        let log = fs::read_to_string(store.runs().join("r/series.hlog")).unwrap_or_default();
        log.contains("Tag=sh,") && log.contains("Tag=sh/")
    });
    signal(&child, "KILL");
    finish(child);
    eventually("the command has ended", || store.processes().is_empty());
    let record = store.show("r");
    assert_eq!(record["status"], "crashed", "{record}");
    assert!(whole(&series(&record, "sh")["count"]) > 0, "{record}");
    let threads = list(&record["series"]).iter().filter(|one| one["thread_of"] == "sh");
    assert!(threads.count() > 0, "{record}");
}

#[test]
fn what_is_not_there_and_what_has_no_meaning_is_refused_with_a_remedy() {
    let store = Store::new();
    let free = "are not touched; leave it out";
    for (arguments, remedy) in [
        (&["attach"][..], "-- COMMAND"),
        (&["attach", "--pid", "1", "--tid", "1"], "Name them in one way"),
        (&["attach", "--pid", "4194304"], "no such process"),
        (&["attach", "--tid", "4194304"], "no such thread"),
        (&["attach", "--comm", "no such thread"], "nearest are \""),
        (&["attach", "--cgroup", "/nonexistent"], "no such directory"),
        (&["attach", "--cgroup", "/proc"], "not a control group"),
        (&["attach", "--", "no-such-command"], "command not found"),
        (&["attach", "--", "/etc/passwd"], "not a program"),
        (&["attach", "--pid", "1", "--cpus", "0"], free),
        (&["attach", "--pid", "1", "--policy", "fifo"], free),
        (&["attach", "--pid", "1", "--shield"], free),
        (&["attach", "--pid", "1", "--raw"], free),
        (&["attach", "--pid", "1", "--samples", "10"], free),
        (&["attach", "--pid", "1", "--interval", "1ms"], "leave it out"),
        (&["attach", "--pid", "1", "--trace", "stages"], free),
        (&["attach", "--pid", "1", "--calibrate"], free),
        (&["timer", "--pid", "1"], "or measure attach"),
        (&["attach", "--pid", "0"], "--pid"),
    ] {
        let said = store.run(&[&["run"], arguments].concat());
        assert_eq!(said.code, Some(2), "{arguments:?}: {said:?}");
        assert!(said.err.contains(remedy), "{arguments:?}: {}", said.err);
    }
    assert_eq!(fs::read_dir(store.runs()).map_or(0, Iterator::count), 0);
}

#[test]
fn without_rights_it_says_what_is_missing_and_starts_no_command() {
    let store = Store::unprivileged();
    if tardy::kernel::can_trace().is_ok() && !super::support::is_root() {
        return skip("this user may trace");
    }
    let made = store.path().join("made");
    let said = store.run(&["run", "attach", "--", "touch", made.to_str().unwrap()]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("cannot look at threads of others"), "{}", said.err);
    assert!(!made.exists());
}

#[test]
fn threads_of_a_group_are_found_also_those_that_come_later() {
    if !can_attach() {
        return;
    }
    let places = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu"];
    let name = format!("tardy-attach-{}", std::process::id());
    let made = places.iter().map(|place| std::path::Path::new(place).join(&name));
    let Some(group) = made.into_iter().find(|group| {
        fs::create_dir(group).is_ok()
            && (group.join("cgroup.procs").exists() || {
                let _ = fs::remove_dir(group);
                false
            })
    }) else {
        return skip("no control group can be made here");
    };
    let store = Store::new();
    let procs = group.join("cgroup.procs").display().to_string();
    let script = format!("echo $$ > {procs}; while :; do sleep 0.01; done");
    let mut shell = Command::new("sh");
    let mut target = shell.args(["-c", &script]).stderr(Stdio::null()).spawn().unwrap();
    eventually("it is in the group", || {
        fs::read_to_string(&procs).is_ok_and(|text| !text.trim().is_empty())
    });
    let asked = ["--cgroup", group.to_str().unwrap(), "--duration", "1s", "--warmup", "50ms"];
    let (said, record) = attach(&store, &asked);
    target.kill().unwrap();
    target.wait().unwrap();
    eventually("the group is empty", || fs::remove_dir(&group).is_ok());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(whole(&row(&record, "sh")["wakeups"]) > 0, "{record}");
    assert!(whole(&row(&record, "sleep")["threads"]) > 1, "{record}");
}

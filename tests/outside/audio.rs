//! The audio probe against jackd with its driver `dummy`: the record, stalls of known length with
//! their cause, a server that goes away, and what is refused.

use std::{
    fs,
    process::{Child, Command},
    time::Duration,
};

use serde_json::Value;
use tardy_hot::clock::now_ns;

use super::{
    attach::Workers,
    attach_response::sleep_until_next,
    schema::{faults, schema},
    support::{
        Said, Store, codes, eventually, finish, is_root, is_stopped, list, pause, piped, signal,
        skip, whole, with_little_time,
    },
};

const RUN: [&str; 6] = ["run", "audio", "--warmup", "300ms", "--name", "r"];
/// How long the hog has the CPU, ns.
const HOG_NS: i64 = 40_000_000;
const PERIOD: Duration = Duration::from_nanos(5_333_333);

/// Its own server name: 256 frames at 48 kHz.
struct Server {
    name: String,
    child: Child,
}

impl Server {
    /// Absent, with a message, if jackd is not installed.
    fn start(test: &str) -> Option<Self> {
        let name = format!("tardy-{}-{test}", std::process::id());
        let how = if is_root() { "-R" } else { "-r" };
        // A client that other tests keep from its CPU is not to be given up.
        let patience = ["-t", "60000"];
        let dummy = ["-d", "dummy", "-r", "48000", "-p", "256"];
        let arguments = [&["-n", name.as_str(), how], &patience[..], &dummy].concat();
        let null = std::process::Stdio::null;
        let started = Command::new("jackd").args(arguments).stdout(null()).stderr(null()).spawn();
        let Ok(child) = started else {
            skip("it needs jackd (tools/setup test installs it)");
            return None;
        };
        Some(Self { name, child })
    }

    /// The arguments of a run with it.
    fn run<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&RUN[..], &["--server", &self.name], more].concat()
    }

    /// Waits until it answers.
    fn ready(self, store: &Store) -> Self {
        eventually("the server answers", || {
            let probe = ["run", "audio", "--warmup", "0s", "--duration", "20ms", "--quiet"];
            let more = ["--trace", "off", "--server", &self.name, "--name", "first"];
            store.run(&[&probe[..], &more].concat()).code.is_some_and(|code| code != 2)
        });
        self
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It removes its own files then; one that was killed has ended already.
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            signal(&self.child, "TERM");
        }
        let _ = self.child.wait();
        // The library leaves the semaphore of a client whose server has ended before it.
        let left = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        for file in left.filter(|file| file.file_name().to_string_lossy().contains(&self.name)) {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// On a busy machine a server that answered others may refuse a client (JackServerError), which
/// is to be started again then.
fn is_refused(said: &Said) -> bool {
    said.code == Some(2) && said.err.contains("status 0x21")
}

/// The end of a run that the server accepted.
fn accepted(store: &Store, arguments: &[&str]) -> Said {
    let mut said = store.run(arguments);
    eventually("the server accepts a client", || {
        if is_refused(&said) {
            said = store.run(arguments);
        }
        !is_refused(&said)
    });
    said
}

/// Starts a run, and waits until it measures.
fn measuring(store: &Store, arguments: &[&str]) -> Child {
    let log = store.runs().join("r/series.hlog");
    let mut child = store.start(arguments);
    eventually("it measures", || {
        if child.try_wait().unwrap().is_some() {
            let ended = std::mem::replace(&mut child, store.start(arguments));
            let said = finish(ended);
            assert!(is_refused(&said), "{said:?}");
        }
        fs::read_to_string(&log).is_ok_and(|text| text.contains("\nTag="))
    });
    child
}

fn figure(record: &Value, name: &str) -> f64 {
    let mut figures = list(&record["figures"]).iter();
    figures.find(|one| one["name"] == name).and_then(|one| one["mean"].as_f64()).unwrap()
}

#[test]
fn cycles_are_those_of_the_server_and_a_stop_of_known_length_is_late() {
    const STALL_MS: u64 = 60;
    let store = Store::new();
    let Some(server) = Server::start("stall") else { return };
    let server = server.ready(&store);
    let mut child = measuring(&store, &server.run(&["--duration", "15m", "--trace", "off"]));
    signal(&child, "STOP");
    eventually("it stands still", || is_stopped(child.id()) || child.try_wait().unwrap().is_some());
    pause(Duration::from_millis(STALL_MS));
    signal(&child, "CONT");
    // The first cycle in the stop was due a period after its begin at the latest.
    let least = Duration::from_millis(STALL_MS) - PERIOD;
    store.wait_late("r", i64::try_from(least.as_nanos()).unwrap());
    let (_, record) = store.interrupt("r", child);
    assert_eq!(faults(&schema(), &record), [""; 0], "{record}");
    let parameters = &record["probe"]["parameters"];
    assert_eq!((whole(&parameters["frames"]), whole(&parameters["rate_hz"])), (256, 48_000));
    assert_eq!(whole(&parameters["interval_ns"]), 5_333_333, "{record}");
    let series = &list(&record["series"])[0];
    let max = whole(&series["max"]);
    assert!(whole(&series["missed"]) >= max / 5_333_333 - 1, "{series}");
    assert!(figure(&record, "dsp_load/least") <= figure(&record, "dsp_load/most"), "{record}");
    assert!(figure(&record, "xruns") >= 0.0 && figure(&record, "xrun_delay") >= 0.0, "{record}");
    let thread = &record["setup"]["found"]["threads"][0];
    assert_eq!(thread["policy"], if is_root() { "fifo" } else { "other" }, "{thread}");
}

#[test]
#[ignore = "live: twin a_server_that_was_stopped_is_late_once_and_its_periods_are_missed"]
fn every_cycle_of_the_time_is_on_time_late_or_missed_unless_the_server_left_it_out() {
    let store = Store::new();
    let Some(server) = Server::start("whole") else { return };
    let server = server.ready(&store);
    let said = accepted(&store, &server.run(&["--duration", "2s", "--trace", "off"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    let series = &list(&record["series"])[0];
    let all = whole(&series["count"]) + whole(&series["missed"]);
    let due = whole(&record["duration_ns"]) / 5_333_333;
    let is_whole = (due - 3..=due + 3).contains(&all) || figure(&record, "xruns") > 0.0;
    assert!(is_whole, "{all} of {due}: {record}");
}

#[test]
fn a_server_that_ends_leaves_a_run_that_says_so() {
    let store = Store::new();
    let Some(server) = Server::start("ends") else { return };
    let server = server.ready(&store);
    let child = measuring(&store, &server.run(&["--duration", "15m", "--trace", "off"]));
    drop(server);
    let said = finish(child);
    let record = store.show("r");
    assert_eq!(record["status"], "interrupted", "{said:?}");
    assert!(codes(&record).contains(&"server_lost"), "{record}");
    assert!(whole(&list(&record["series"])[0]["count"]) > 0, "{record}");
}

#[test]
fn a_hog_of_known_length_on_the_cpu_of_the_callback_is_named_as_its_cause() {
    let cpus = tardy::sys::cpus::Cpus::allowed().unwrap();
    if tardy::kernel::can_trace().is_err() || !is_root() || cpus.len() < 2 {
        return skip("it needs tracing, real-time rights and a second CPU");
    }
    let Some(server) = Server::start("hog") else { return };
    let server = server.ready(&Store::new());
    let cpu = cpus.iter().last().unwrap().to_string();
    let _hog = Workers::start("known-hog", 1, hog);
    // Other tests have real-time threads too: once they have used up what the kernel grants all of
    // these on a CPU, neither the hog nor the callback runs for a while. Then for longer.
    let peak = with_little_time(|duration| {
        let store = Store::new();
        let asked = ["--cpus", cpu.as_str(), "--duration", duration, "--trace", "peaks"];
        let said = accepted(&store, &server.run(&asked));
        assert!(said.code != Some(2), "{said:?}");
        let why: Value = serde_json::from_str(&store.run(&["why", "r", "--json"]).out).unwrap();
        list(&why["peaks"]).iter().find(|peak| is_by_hog(peak)).cloned()
    });
    let parts: i64 = list(&peak["blame"]).iter().map(|part| whole(&part["ns"])).sum();
    assert_eq!(parts, whole(&peak["latency_ns"]), "{peak}");
}

/// Has the last CPU for [`HOG_NS`] of each 400 ms, before the callback.
fn hog() {
    use tardy::sys::{
        cpus::Cpus,
        sched::{Policy, set_this_thread},
    };
    let last = Cpus::allowed().unwrap().iter().last();
    last.into_iter().collect::<Cpus>().pin_this_thread().unwrap();
    set_this_thread(Policy::Fifo, 80).unwrap();
    sleep_until_next(400_000_000, 0);
    let begin_ns = now_ns();
    while now_ns() - begin_ns < HOG_NS {}
}

/// Whether nearly all that the hog takes at a time is in this peak, and blamed on it.
fn is_by_hog(peak: &Value) -> bool {
    list(&peak["blame"]).iter().any(|part| {
        let is_long = whole(&part["ns"]) >= HOG_NS - 6_000_000;
        is_long && part["cause"] == "thread" && part["name"] == "known-hog"
    })
}

#[test]
fn what_is_absent_or_means_nothing_is_refused_with_a_remedy() {
    let store = Store::new();
    for (arguments, remedy) in [
        (&["audio", "--policy", "fifo"][..], "leave it out"),
        (&["audio", "--priority", "10"], "leave it out"),
        (&["audio", "--interval", "1ms"], "leave it out, or measure timer"),
        (&["timer", "--server", "default"], "leave it out, or measure audio"),
    ] {
        let said = store.run(&[&["run"], arguments].concat());
        assert_eq!(said.code, Some(2), "{arguments:?}: {said:?}");
        assert!(said.err.replace('\n', " ").contains(remedy), "{arguments:?}: {}", said.err);
    }
    // The file that the loader finds first is not a library.
    let hidden = store.path().join("hidden");
    fs::create_dir(&hidden).unwrap();
    fs::write(hidden.join("libjack.so.0"), "no library").unwrap();
    let mut command = store.tardy(&["run", "audio"]);
    let said = finish(piped(command.env("LD_LIBRARY_PATH", &hidden)));
    assert_eq!(said.code, Some(2), "{said:?}");
    for part in ["libjack.so.0 cannot be loaded", "apt-get install libjack-jackd2-0"] {
        assert!(said.err.contains(part), "{said:?}");
    }
    if Server::start("none").is_none() {
        return;
    }
    let said = store.run(&["run", "audio", "--server", "tardy-no-such-server"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("\"tardy-no-such-server\"") && said.err.contains("jackd -R"));
}

//! Round trips: every transport, both ends as asked for, and what happens when one of them goes.

use std::{
    fs,
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use serde_json::Value;

use super::support::{
    LIGHT_LOAD, SHORTLY_LOGGED, Said, Store, codes, contents, eventually, finish, is_root, list,
    piped, signal, skip, whole,
};

const PING: [&str; 4] = ["run", "pingpong", "--trace", "off"];

/// Those of ZeroMQ's library, where there is one; inproc has no far process.
const ZMQ: [&str; 3] = ["zmq-tcp", "zmq-ipc", "zmq-inproc"];

/// Those that need neither root nor ZeroMQ. The last one keeps its CPUs busy.
const TRANSPORTS: [&str; 11] = [
    "tcp",
    "udp",
    "unix-stream",
    "unix-dgram",
    "pipe",
    "eventfd",
    "futex",
    "posix-mq",
    "signal",
    "pi-mutex",
    "shm-spin",
];

/// One for each way to wait that ends find themselves in when somebody is killed or interrupted:
/// the calls of sockets, descriptors, shared memory, queues, signals and mutexes, and none.
/// `src/transports/pair/tests.rs` interrupts the waits of all transports but the mutex.
const WAITING: [&str; 7] = ["udp", "pipe", "futex", "posix-mq", "signal", "pi-mutex", "shm-spin"];

fn measured(store: &Store, arguments: &[&str]) -> Value {
    // An answer that a busy machine holds back for a second is not a lost one.
    let more = ["--warmup", "20ms", "--timeout", "60s", "--name", "r"];
    let said = store.run(&[&PING[..], &more, arguments].concat());
    assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
    store.show("r")
}

fn has_zmq() -> bool {
    tardy::sys::zmq::Library::get().is_ok()
}

fn remove(store: &Store) {
    fs::remove_dir_all(store.runs().join("r")).unwrap();
}

/// Every round trip is there, and nothing was lost.
fn assert_whole(record: &Value, transport: &str, samples: i64) {
    let (series, messages) = (&list(&record["series"])[0], &record["messages"]);
    assert_eq!((&series["name"], whole(&series["count"])), (&"rtt".into(), samples), "{record}");
    assert_eq!(messages["transport"], transport, "{record}");
    let flow = &list(&messages["flows"])[0];
    let figures = ["sent", "received", "lost"].map(|figure| whole(&flow[figure]));
    assert_eq!(figures, [samples, samples, 0], "{record}");
    assert_eq!(record["status"], "complete", "{transport}: {record}");
}

#[test]
fn every_transport_carries_messages_without_any_right() {
    let store = Store::unprivileged();
    for transport in TRANSPORTS {
        let arguments = ["--transport", transport, "--policy", "other", "--samples", "300"];
        let record = measured(&store, &arguments);
        assert_whole(&record, transport, 300);
        let ends = list(&record["messages"]["ends"]);
        let places: Vec<_> = ends.iter().map(|end| (&end["name"], &end["place"])).collect();
        let process = &Value::from("process");
        assert_eq!(places, [(&"near".into(), process), (&"far".into(), process)], "{record}");
        assert!(ends.iter().all(|end| end["policy"] == "other"), "{record}");
        assert!(!codes(&record).contains(&"thread_not_as_asked"), "{record}");
        remove(&store);
    }
    assert_eq!(store.processes(), [0; 0]);
}

#[test]
fn zeromq_carries_messages_between_processes_and_within_one() {
    if !has_zmq() {
        return skip("needs libzmq.so.5");
    }
    let store = Store::unprivileged();
    for transport in ZMQ {
        let arguments = ["--transport", transport, "--policy", "other", "--samples", "300"];
        let record = measured(&store, &arguments);
        assert_whole(&record, transport, 300);
        let place = if transport == "zmq-inproc" { "thread" } else { "process" };
        assert_eq!(list(&record["messages"]["ends"])[1]["place"], place, "{record}");
        remove(&store);
    }
    assert_eq!(store.processes(), [0; 0]);
}

#[test]
fn semaphores_need_a_right_and_say_so() {
    let store = Store::new();
    let arguments = ["--transport", "sysv-sem", "--policy", "other", "--samples", "300"];
    if is_root() {
        assert_whole(&measured(&store, &arguments), "sysv-sem", 300);
    }
    let store = Store::unprivileged();
    let said = store.run(&[&PING[..], &arguments].concat());
    if said.code == Some(0) {
        return skip("this user may make namespaces of semaphores");
    }
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("sysv-sem") && said.err.contains("root"), "{said:?}");
    assert!(contents(store.path()).keys().all(|path| !path.ends_with("run.json")));
}

#[test]
fn both_ends_run_as_asked_for_and_take_no_page_fault() {
    if !is_root() {
        return skip("needs root for real-time priorities");
    }
    let cpus: Vec<u32> = tardy::sys::cpus::Cpus::allowed().unwrap().iter().collect();
    let (near, far) = (cpus[cpus.len() - 1], cpus[0]);
    let store = Store::new();
    let place = format!("{near},{far}");
    let terms = ["--cpus", &place, "--priority", "40", "--far-priority", "50", "--size", "1000"];
    let faults_by = |transport: &str| -> i64 {
        let arguments = [&terms[..], &["--transport", transport, "--samples", "5k"]].concat();
        let record = measured(&store, &arguments);
        assert_whole(&record, transport, 5_000);
        assert_eq!(whole(&record["messages"]["size"]), 1000);
        let ends = list(&record["messages"]["ends"]);
        assert_eq!((whole(&ends[0]["cpu"]), &ends[0]["policy"]), (near.into(), &"fifo 40".into()));
        assert_eq!((whole(&ends[1]["cpu"]), &ends[1]["policy"]), (far.into(), &"fifo 50".into()));
        assert!(ends.iter().all(|end| whole(&end["receive_buffer_bytes"]) > 0), "{record}");
        let threads = list(&record["setup"]["found"]["threads"]);
        let found = |at: usize| {
            let thread = &threads[at];
            (&thread["series"], &thread["cpus"], whole(&thread["priority"]))
        };
        assert_eq!(found(0), (&"rtt".into(), &near.to_string().into(), 40));
        assert_eq!(found(1), (&"far".into(), &far.to_string().into(), 50));
        let used = list(&record["conditions"]["threads"]);
        assert_eq!(used.len(), 2, "{record}");
        assert!(used.iter().all(|thread| whole(&thread["cpu_ns"]) > 0), "{record}");
        remove(&store);
        let faults =
            |thread: &Value| whole(&thread["minor_faults"]) + whole(&thread["major_faults"]);
        used.iter().map(faults).sum()
    };
    for transport in ["tcp", "udp", "pipe"] {
        // A kernel that compacts memory moves a locked page, too, which is a fault of its thread.
        eventually("a run without a page fault", || faults_by(transport) == 0);
    }
}

#[test]
fn one_cpu_is_for_both_ends_where_one_is_named() {
    let cpu = tardy::sys::cpus::Cpus::allowed().unwrap().iter().next().unwrap().to_string();
    let store = Store::new();
    // 200 of them are over before the load has had a turn.
    let arguments = ["--cpus", &cpu, "--policy", "other", "--samples", "20000", "--raw"];
    let record = measured(&store, &[&arguments[..], &["--load", LIGHT_LOAD]].concat());
    assert_whole(&record, "tcp", 20_000);
    let ends = list(&record["messages"]["ends"]);
    assert!(ends.iter().all(|end| whole(&end["cpu"]) == cpu.parse::<i64>().unwrap()), "{record}");
    assert!(whole(&record["loads"][0]["proof"]["operations"]) > 0, "{record}");
    assert!(
        contents(&store.runs().join("r"))
            .keys()
            .any(|path| path.extension().is_some_and(|kind| kind == "parquet"))
    );
}

/// Processes of this store that are remote endpoints.
pub(crate) fn far_ends(store: &Store) -> Vec<i32> {
    let is_far = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"__far")
    };
    store.processes().into_iter().filter(is_far).collect()
}

pub(crate) fn kill(pid: i32, name: &str) {
    let pid = pid.to_string();
    let sent = std::process::Command::new("kill").args(["-s", name, &pid]).status().unwrap();
    assert!(sent.success(), "kill -s {name} {pid}");
}

fn endless(store: &Store, transport: &str) -> std::process::Child {
    // Without real-time priority all of them, also the one that spins, leave room for the rest.
    let length =
        ["--duration", SHORTLY_LOGGED, "--policy", "other", "--warmup", "20ms", "--name", "r"];
    let child = store.start(&[&PING[..], &length, &["--transport", transport]].concat());
    store.wait_sample("r");
    child
}

fn assert_kept(said: &Said, store: &Store, status: &str, code: &str) -> Value {
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    assert_eq!(record["status"], status, "{record}");
    assert!(codes(&record).contains(&code), "{code}: {record}");
    assert!(whole(&list(&record["series"])[0]["count"]) > 0, "{record}");
    assert_eq!(store.processes(), [0; 0], "nothing is left");
    record
}

#[test]
fn a_far_end_that_is_killed_ends_the_run_which_is_kept() {
    let store = Store::new();
    let zmq = ZMQ.into_iter().take(if has_zmq() { 1 } else { 0 });
    for transport in WAITING.into_iter().chain(zmq) {
        let child = endless(&store, transport);
        let far = far_ends(&store);
        assert_eq!(far.len(), 1, "{transport}");
        kill(far[0], "KILL");
        let record = assert_kept(&finish(child), &store, "interrupted", "far_ended");
        let caveat = list(&record["caveats"]).iter().find(|one| one["code"] == "far_ended");
        let text = caveat.unwrap()["text"].as_str().unwrap();
        assert!(text.contains("signal 9"), "{transport}: {text}");
        assert!(!codes(&record).contains(&"wait_failed"), "{transport}: {record}");
        remove(&store);
    }
}

/// What could outlive a run. Another tardy's names are there for a moment, too.
fn left_in_the_kernel() -> Vec<String> {
    let names = |directory| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    let all = names("/dev/shm").into_iter().chain(names("/dev/mqueue"));
    // Those of JACK are of its servers, and of the tests of the audio probe.
    all.filter(|name| name.contains("tardy") && !name.starts_with("jack")).collect()
}

#[test]
fn a_tardy_that_is_killed_takes_its_far_end_along() {
    for transport in ["tcp", "posix-mq", "futex", "pi-mutex", "shm-spin"] {
        let store = Store::new();
        let child = endless(&store, transport);
        signal(&child, "KILL");
        finish(child);
        eventually("the far end is gone", || store.processes().is_empty());
        assert_eq!(store.show("r")["status"], "crashed", "{transport}");
    }
    eventually("no name is left", || left_in_the_kernel().is_empty());
}

#[test]
fn a_signal_ends_it_early_and_keeps_it_whole_whatever_it_waits_for() {
    let store = Store::new();
    let zmq = ZMQ.into_iter().take(if has_zmq() { 1 } else { 0 });
    for transport in WAITING.into_iter().chain(zmq) {
        let child = endless(&store, transport);
        signal(&child, "INT");
        let record = assert_kept(&finish(child), &store, "interrupted", "interrupted");
        assert_eq!(codes(&record).iter().filter(|code| code.starts_with("wait_")).count(), 0);
        remove(&store);
    }
}

/// Sends back what it gets, but for every message whose number, from 0, `drops` names.
struct Peer {
    address: SocketAddr,
    end: Arc<AtomicBool>,
    handle: JoinHandle<u64>,
}

impl Peer {
    fn start(answer: impl Fn(u64, &[u8]) -> Option<Vec<u8>> + Send + 'static) -> Self {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let address = socket.local_addr().unwrap();
        let end = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&end);
        let handle = std::thread::spawn(move || {
            let (mut bytes, mut got) = ([0; 2048], 0);
            while !ends.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
                if let Some(answer) = answer(got, &bytes[..length]) {
                    socket.send_to(&answer, from).unwrap();
                }
                got += 1;
            }
            got
        });
        Self { address, end, handle }
    }

    /// How many messages came.
    fn finish(self) -> u64 {
        self.end.store(true, Ordering::Relaxed);
        self.handle.join().unwrap()
    }

    fn run(&self, store: &Store, more: &[&str]) -> Said {
        let to = self.address.to_string();
        let peer = ["--transport", "udp", "--to", &to, "--foreign", "--policy", "other"];
        store.run(&[&PING[..], &peer, &["--name", "r"], more].concat())
    }
}

#[test]
fn answers_that_do_not_come_are_counted_and_the_run_goes_on() {
    // Under a load an answer may take longer than the timeout, and is lost then.
    eventually("two messages are lost, and no other", || {
        let store = Store::new();
        let peer = Peer::start(|number, bytes| (number % 100 != 20).then(|| bytes.to_vec()));
        let said = peer.run(&store, &["--samples", "200", "--warmup", "0s", "--timeout", "1s"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let record = store.show("r");
        assert!(codes(&record).contains(&"messages_lost"), "{record}");
        let flow = &list(&record["messages"]["flows"])[0];
        let (sent, lost) = (whole(&flow["sent"]), whole(&flow["lost"]));
        assert_eq!((sent, whole(&flow["received"])), (200, 200 - lost), "{record}");
        assert_eq!(whole(&list(&record["series"])[0]["count"]), 200 - lost);
        assert_eq!(peer.finish(), 200);
        lost == 2
    });
}

#[test]
fn a_foreign_peer_gets_exactly_as_many_messages_as_were_asked_for() {
    let store = Store::new();
    let peer = Peer::start(|_, bytes| Some(bytes.to_vec()));
    let said = peer.run(&store, &["--samples", "500", "--warmup", "1h", "--size", "99"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    let flow = &list(&record["messages"]["flows"])[0];
    assert_eq!(whole(&flow["sent"]), 450, "a tenth of them warmed up: {record}");
    let far = &list(&record["messages"]["ends"])[1];
    assert_eq!(
        (&far["place"], &far["address"]),
        (&"foreign".into(), &peer.address.to_string().into())
    );
    assert_eq!(peer.finish(), 500);
}

#[test]
fn a_peer_that_says_nothing_or_something_else_is_no_hang() {
    let store = Store::new();
    let silent = Peer::start(|number, bytes| (number < 30).then(|| bytes.to_vec()));
    let more = ["--duration", "1h", "--warmup", "0s", "--timeout", "200ms"];
    let record = assert_kept(&silent.run(&store, &more), &store, "interrupted", "far_ended");
    assert!(record["caveats"].to_string().contains("10 answers in a row"), "{record}");
    silent.finish();
    remove(&store);
    let longer =
        Peer::start(|number, bytes| Some([bytes, &b"more"[..usize::from(number > 9)]].concat()));
    let record = assert_kept(&longer.run(&store, &more), &store, "interrupted", "far_ended");
    assert!(record["caveats"].to_string().contains("longer than --size"), "{record}");
    longer.finish();
}

#[test]
fn a_latency_over_the_limit_ends_it_with_exit_code_1() {
    let store = Store::new();
    let arguments = ["--policy", "other", "--duration", "1h", "--stop-over", "1us"];
    let said = finish(piped(&mut store.tardy(&[&PING[..], &arguments, &["--name", "r"]].concat())));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert_eq!(store.show("r")["status"], "stopped_over");
    assert_eq!(store.processes(), [0; 0]);
}

/// Arguments behind `tardy run pingpong`, and what the message must hold.
const REFUSED: &[(&[&str], &[&str])] = &[
    (&["--transport", "pigeon"], &["--transport pigeon", "shm-spin", "zmq-tcp"]),
    (&["--transport", "futex", "--size", "5"], &["--size is not supported", "futex"]),
    (&["--size", "0"], &["--size 0", "at least 1 byte"]),
    (&["--transport", "udp", "--size", "70000"], &["65507", "smaller --size"]),
    (&["--interval", "1ms"], &["--interval is not supported with pingpong", "timer"]),
    (&["--wake", "timerfd"], &["--wake is not supported with pingpong"]),
    (&["--threads", "2"], &["--threads is not supported with pingpong"]),
    (&["--rate", "1kpps"], &["--rate is not supported with pingpong", "receive, stream"]),
    (&["--policy", "deadline"], &["--policy deadline is not supported with pingpong", "fifo"]),
    (&["--policy", "other", "--far-priority", "5"], &["--far-priority", "leave one"]),
    (&["--cpus", "0-63"], &["--cpus"]),
    (&["--foreign"], &["--foreign needs --to"]),
    (&["--transport", "pipe", "--to", "127.0.0.1:9"], &["--to 127.0.0.1:9", "use tcp, udp"]),
    (&["--to", "127.0.0.1"], &["--to 127.0.0.1", "HOST:PORT"]),
    (&["--to", "127.0.0.1:1"], &["127.0.0.1:1", "tardy echo"]),
    (&["--to", "127.0.0.1:1", "--foreign"], &["127.0.0.1:1", "nobody can be reached"]),
    (&["--timeout", "0s"], &["--timeout"]),
];

#[test]
fn what_cannot_be_meant_is_refused_by_name_and_leaves_nothing() {
    let store = Store::new();
    for (arguments, wanted) in REFUSED {
        let said = store.run(&[&["run", "pingpong", "--trace", "off"], *arguments].concat());
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{arguments:?}: {said:?}");
        let err = said.err.replace('\n', " ");
        for word in *wanted {
            assert!(err.contains(word), "{arguments:?} does not say {word:?}: {err}");
        }
        assert_eq!(contents(store.path()).len(), 0, "{arguments:?} left something");
    }
    let said = store.run(&["run", "timer", "--transport", "tcp"]);
    assert!(said.err.contains("--transport is not supported with timer"), "{said:?}");
    assert_eq!(store.processes(), [0; 0]);
}

//! A server of pyzmq that is looked at by its number, while a known real-time task takes its CPU.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use serde_json::Value;
use tardy::sys::{
    cpus::Cpus,
    sched::{Policy, set_this_thread},
};

use super::{
    attach::{Workers, attach, can_attach, work},
    support::{Store, is_root, list, skip, whole},
};

/// Answers on the CPU that it is given, and says where.
const SERVER: &str = "\
import os, sys, zmq
os.sched_setaffinity(0, {int(sys.argv[1])})
socket = zmq.Context().socket(zmq.REP)
print(socket.bind_to_random_port('tcp://127.0.0.1'), flush=True)
while True:
    socket.send(socket.recv())
";

/// Asks again and again, on another CPU.
const CLIENT: &str = "\
import os, sys, time, zmq
os.sched_setaffinity(0, {int(sys.argv[1])})
socket = zmq.Context().socket(zmq.REQ)
socket.connect('tcp://127.0.0.1:' + sys.argv[2])
while True:
    socket.send(b'x')
    socket.recv()
    time.sleep(0.001)
";

/// A program that is killed with the test.
struct Python(Child);

impl Python {
    fn start(script: &str, arguments: &[&str]) -> Self {
        let mut command = python();
        command.args(["-c", script]).args(arguments).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn python() -> Command {
    let python = std::env::var_os("TARDY_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(python);
    command.stdin(Stdio::null());
    command
}

fn has_zmq() -> bool {
    let asked = python().args(["-c", "import zmq"]).output();
    asked.is_ok_and(|output| output.status.success())
}

#[test]
#[ignore = "live: twin replayed::a_late_answer_of_a_server_is_blamed_on_the_task_that_had_its_cpu"]
fn the_late_dispatches_of_a_pyzmq_server_are_blamed_on_the_task_that_had_its_cpu() {
    if !can_attach() || !is_root() {
        return skip("it needs the rights to trace and to real time");
    }
    if !has_zmq() {
        return skip("no Python with pyzmq (TARDY_TEST_PYTHON)");
    }
    let cpus: Vec<u32> = Cpus::allowed().unwrap().iter().take(2).collect();
    let [own, other] = cpus[..] else { return skip("it needs a second CPU") };
    let (own, other) = (own.to_string(), other.to_string());
    let mut server = Python::start(SERVER, &[&own]);
    let mut port = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let _client = Python::start(CLIENT, &[&other, port.trim()]);
    let _hog = Workers::start("zmq-hog", 1, || {
        Cpus::allowed().unwrap().iter().take(1).collect::<Cpus>().pin_this_thread().unwrap();
        set_this_thread(Policy::Fifo, 50).unwrap();
        work(10_000_000);
        sleep(Duration::from_millis(90));
    });

    let store = Store::new();
    let pid = server.0.id();
    let asked = ["--pid", &pid.to_string(), "--duration", "4s", "--peak-over", "2ms"];
    let (said, record) = attach(&store, &asked);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(record["trace"]["found"], "peaks", "{record}");
    let is_its = |row: &&Value| row["pid"] == pid && whole(&row["wakeups"]) > 0;
    assert!(list(&record["attached"]["rows"]).iter().any(|row| is_its(&row)), "{record}");
    let why: Value = serde_json::from_str(&store.run(&["why", "r", "--json"]).out).unwrap();
    // The hog works for 10 ms while a question comes within 1 or 2.
    let by_hog = |peak: &&Value| {
        let first = &peak["blame"][0];
        let is_hog = first["cause"] == "thread" && first["name"] == "zmq-hog";
        is_hog && whole(&first["ns"]) > 1_000_000
    };
    assert!(list(&why["peaks"]).iter().any(|peak| by_hog(&peak)), "{why}");
}

//! ZeroMQ with programs that are not a tardy, and without its library.
//!
//! The peer is pyzmq, which brings its own libzmq: another build of it than the one that tardy
//! loads.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use super::{
    echo,
    support::{Store, finish, is_root, list, skip, whole},
};

const PING: [&str; 5] = ["run", "pingpong", "--policy", "other", "--transport"];

fn has_library() -> bool {
    let there = tardy::sys::zmq::Library::get();
    if let Err(error) = &there {
        skip(&error.to_string());
    }
    there.is_ok()
}

fn python() -> Command {
    let python = std::env::var_os("TARDY_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(python);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Whether there is a foreign client as well.
fn has_peer() -> bool {
    let asked = python().args(["-c", "import zmq"]).output();
    let there = asked.is_ok_and(|output| output.status.success());
    if !there {
        skip("no Python with the modules of tests/python/requirements.txt (TARDY_TEST_PYTHON)");
    }
    there && has_library()
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/zmq_peer.py")
}

/// A REP socket of pyzmq, and where it listens.
fn answering() -> (Child, BufReader<std::process::ChildStdout>, String) {
    let mut child = python().arg(script()).arg("answer").spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let port = whole(&line(&mut out)["port"]);
    (child, out, format!("127.0.0.1:{port}"))
}

fn line(out: &mut impl BufRead) -> Value {
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
}

#[test]
fn a_foreign_rep_socket_is_sent_exactly_what_was_asked_for_warm_up_included() {
    if !has_peer() {
        return;
    }
    let store = Store::new();
    for (size, samples) in [("1", "1000"), ("5000", "300")] {
        let (mut child, mut out, to) = answering();
        let measured = ["zmq-tcp", "--to", &to, "--size", size, "--samples", samples];
        let said = store.run(&[&PING, &measured[..], &["--name", size]].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        drop(child.stdin.take());
        let counted = line(&mut out);
        let said = finish(child);
        assert_eq!(said.code, Some(0), "{said:?}");
        let asked: i64 = samples.parse().unwrap();
        assert_eq!(whole(&counted["counted"]), asked, "{counted}");
        assert_eq!(counted["sizes"], serde_json::json!([size.parse::<i64>().unwrap()]));
        let record = store.show(size);
        let recorded = whole(&list(&record["series"])[0]["count"]);
        assert!(0 < recorded && recorded <= asked, "{record}");
        let ends = list(&record["messages"]["ends"]);
        assert_eq!((&ends[1]["place"], &ends[1]["address"]), (&"foreign".into(), &to.into()));
    }
}

#[test]
fn a_foreign_req_socket_gets_every_message_back_and_the_echo_counts_them() {
    if !has_peer() {
        return;
    }
    let store = Store::new();
    let echo = echo::listen(&store, &["--foreign", "--transport", "zmq-tcp"]);
    for (count, size) in [("400", "1"), ("50", "20000")] {
        let mut asking = python();
        asking.arg(script()).args(["ask", &echo.address, count, size]);
        let said = finish(asking.spawn().unwrap());
        if said.code != Some(0) {
            // Whether the question reached the echo says on which side the answer was lost.
            panic!("{said:?}; the echo: {}", echo::end(echo));
        }
        let answers: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(answers["same"], answers["counted"], "{answers}");
    }
    let summary = echo::end(echo);
    assert_eq!(whole(&summary["answered"]), 450, "{summary}");
    assert_eq!(whole(&summary["bytes"]), 400 + 50 * 20_000, "{summary}");
}

#[test]
fn without_a_library_the_error_names_its_package() {
    let store = Store::new();
    // The file that the loader finds first is not a library.
    let hidden = store.path().join("hidden");
    fs::create_dir(&hidden).unwrap();
    fs::write(hidden.join("libzmq.so.5"), "no library").unwrap();
    for transport in ["zmq-tcp", "zmq-ipc", "zmq-inproc"] {
        let mut command = store.tardy(&[&PING[..], &[transport, "--samples", "10"]].concat());
        let said = finish(super::support::piped(command.env("LD_LIBRARY_PATH", &hidden)));
        assert_eq!(said.code, Some(2), "{said:?}");
        for part in ["libzmq.so.5 cannot be loaded", "apt-get install libzmq5", "--transport"] {
            assert!(said.err.contains(part), "{said:?}");
        }
    }
}

#[test]
fn a_peer_that_is_absent_is_named() {
    if !has_library() {
        return;
    }
    let store = Store::new();
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = taken.local_addr().unwrap().to_string();
    let said = store.run(&[&PING[..], &["zmq-tcp", "--to", &to, "--samples", "10"]].concat());
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains(&to) && said.err.contains("speaks ZeroMQ"), "{said:?}");
}

/// A short stream over `transport`.
const STREAM: [&str; 12] = [
    "run",
    "stream",
    "--trace",
    "off",
    "--policy",
    "other",
    "--warmup",
    "300ms",
    "--samples",
    "300",
    "--rate",
    "500pps",
];

/// Every packet of these flows arrived once, and was no other.
fn assert_whole(record: &Value, transport: &str, flows: &[&str]) {
    assert_eq!(record["messages"]["transport"], transport, "{record}");
    let found = list(&record["messages"]["flows"]);
    let names: Vec<_> = found.iter().map(|flow| flow["series"].as_str().unwrap()).collect();
    assert_eq!(names, flows, "{record}");
    for flow in found {
        let figures = ["sent", "received", "lost", "duplicated", "foreign"];
        let figures = figures.map(|figure| whole(&flow[figure]));
        assert_eq!(figures, [300, 300, 0, 0, 0], "{flow}");
    }
}

#[test]
fn what_is_published_arrives_both_ways() {
    if !has_library() {
        return;
    }
    let store = Store::new();
    let way = ["--transport", "zmq-pubsub", "--both-ways", "--name", "r"];
    let said = store.run(&[&STREAM[..], &way].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_whole(&store.show("r"), "zmq-pubsub", &["there", "back"]);
}

#[test]
fn what_is_published_to_a_group_reaches_each_of_its_members() {
    if !has_library() {
        return;
    }
    if !is_root() {
        return skip("a separate network needs root");
    }
    if !tardy::sys::zmq::Library::get().unwrap().has_pgm() {
        return skip("this libzmq was built without PGM");
    }
    let store = Store::new();
    let way = ["--transport", "epgm", "--group", "239.9.9.9", "--receivers", "2", "--name", "r"];
    let way = [&way[..], &["--json"]].concat();
    let tardy = store.tardy(&[&STREAM[..], &way].concat());
    let mut alone = Command::new("unshare");
    alone.args(["--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]);
    alone.arg(tardy.get_program()).args(tardy.get_args()).current_dir(store.path());
    alone.envs(tardy.get_envs().filter_map(|(name, value)| Some((name, value?))));
    // The library prints its warnings, and those of the remote endpoints must not spoil their
    // replies.
    alone.env_remove("PGM_MIN_LOG_LEVEL");
    let said = finish(super::support::piped(&mut alone));
    assert_eq!(said.code, Some(0), "{said:?}");
    let printed = serde_json::from_str::<serde_json::Value>(&said.out);
    assert!(printed.is_ok(), "the library prints nothing there: {said:?}");
    assert_whole(&store.show("r"), "epgm", &["there", "there2"]);
}

//! `tardy run receive`: by every kind of wait, from its own sender and from strangers, at a port
//! and at an interface, on one machine and on two namespaces; and a reader that stands still.

use std::{
    fs,
    net::UdpSocket,
    process::Command,
    sync::atomic::{AtomicU16, Ordering},
    time::{Duration, Instant},
};

use serde_json::Value;
use tardy_hot::clock::now_ns;

use super::support::{
    SHORTLY_LOGGED, Said, Store, codes, eventually, finish, is_root, is_stopped, list, patience,
    pause, piped, signal, skip, whole, with_time,
};

const MS: i64 = 1_000_000;

/// What differs from test to test follows.
const RECEIVE: [&str; 8] =
    ["run", "receive", "--warmup", "100ms", "--trace", "off", "--policy", "other"];

fn receive(store: &Store, arguments: &[&str]) -> Said {
    store.run(&[&RECEIVE, arguments].concat())
}

/// A port that was free a moment ago, and is not one that the kernel gives to other tests.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Tests are their own processes that start one after the other.
    let own = u16::try_from(std::process::id() % 625 * 16).unwrap();
    let next = || 20_000 + (own + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000;
    let is_free = |port: &u16| UdpSocket::bind(("127.0.0.1", *port)).is_ok();
    std::iter::repeat_with(next).find(is_free).unwrap()
}

fn flow(record: &Value) -> &Value {
    &list(&record["messages"]["flows"])[0]
}

/// Each packet that was sent is a sample or is accounted for.
fn assert_accounts(record: &Value) {
    let (flow, series) = (flow(record), &list(&record["series"])[0]);
    let of = |name: &str| whole(&flow[name]);
    assert_eq!(series["name"], "receive");
    assert!(of("sent") > 0, "{flow}");
    assert_eq!(of("sent"), of("received") + of("lost"), "{flow}");
    assert_eq!((of("duplicated"), of("reordered")), (0, 0), "{flow}");
    let unstamped = codes(record).contains(&"packets_unstamped");
    assert!(unstamped || whole(&series["count"]) == of("received"), "{flow} {series}");
    assert!(whole(&series["min"]) > 0, "no packet is read before it is there: {series}");
}

/// Where a receiver that waits so does not run for long, its socket's buffer overflows, and where
/// the sender does not, there is nothing to receive: all is accounted for each time, and soon
/// nothing is lost of many.
fn lossless(store: &Store, wait: &str) -> Value {
    let flags = ["--listen", "0", "--wait", wait, "--rate", "1kpps", "--duration", "400ms"];
    let (mut record, mut turns) = (Value::Null, 0);
    eventually(&format!("{wait}: many packets, and none lost"), || {
        turns += 1;
        let name = format!("r{turns}");
        let said = receive(store, &[&flags[..], &["--name", &name]].concat());
        record = store.show(&name);
        let of = |name: &str| whole(&flow(&record)[name]);
        if of("received") == 0 {
            assert_eq!(said.code, Some(4), "{wait}: {said:?}");
            return false;
        }
        assert_eq!(said.code, Some(0), "{wait}: {said:?}");
        assert_accounts(&record);
        of("lost") == 0 && of("sent") > 100
    });
    record
}

#[test]
fn every_kind_of_wait_has_every_packet_of_its_sender() {
    for wait in ["block", "ppoll", "epoll", "spin", "busy-poll"] {
        if wait == "busy-poll" && !is_root() {
            skip("busy polling needs CAP_NET_ADMIN");
            continue;
        }
        let store = Store::new();
        let record = lossless(&store, wait);
        let ends = list(&record["messages"]["ends"]);
        assert_eq!(ends.len(), 2, "{ends:?}");
        assert!(ends[0]["wait"].as_str().unwrap().starts_with(wait), "{ends:?}");
        assert!(whole(&ends[0]["receive_buffer_bytes"]) > 0, "{ends:?}");
        assert!(ends[0]["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{ends:?}");
        assert_eq!(ends[1]["place"], "process");
        assert_eq!(record["messages"]["transport"], "udp");
        assert!(whole(&flow(&record)["sent"]) <= 400, "a schedule: {record}");
        assert!(whole(&record["duration_ns"]) / MS >= 390, "{record}");
    }
}

#[test]
fn busy_polling_of_a_device_that_cannot_be_polled_is_reported() {
    if !is_root() {
        return skip("busy polling needs CAP_NET_ADMIN");
    }
    let store = Store::new();
    let flags = ["--listen", "0", "--wait", "busy-poll:20us", "--samples", "50", "--name", "r"];
    assert_eq!(receive(&store, &flags).code, Some(0));
    let record = store.show("r");
    assert!(codes(&record).contains(&"busy_poll_vain"), "{record}");
}

#[test]
fn so_many_samples_are_taken_as_asked_for_and_kept() {
    let store = Store::new();
    let mut turns = 0;
    // A reader that does not run for long loses packets. What comes after the last sample does not
    // count.
    eventually("no packet is lost", || {
        turns += 1;
        let name = format!("r{turns}");
        let flags = ["--listen", "0", "--samples", "200", "--size", "1400", "--raw"];
        let said = receive(&store, &[&flags[..], &["--name", &name]].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        let record = store.show(&name);
        assert_eq!(whole(&list(&record["series"])[0]["count"]), 200);
        assert_eq!(whole(&record["messages"]["size"]), 1_400);
        let samples = store.runs().join(name).join("samples");
        assert_eq!(fs::read_dir(samples).unwrap().count(), 1);
        let flow = flow(&record);
        assert_eq!(whole(&flow["received"]), 200, "what came later: {flow}");
        whole(&flow["lost"]) == 0
    });
}

/// Sends to `port` until `child` has ended.
fn send_until_it_ends(child: std::process::Child, port: u16, bytes: &[u8]) -> Said {
    let mouth = UdpSocket::bind("127.0.0.1:0").unwrap();
    let done = std::thread::spawn(move || finish(child));
    let deadline = Instant::now() + patience();
    while !done.is_finished() && Instant::now() < deadline {
        // Nobody may be there yet, or any more.
        let _ = mouth.send_to(bytes, ("127.0.0.1", port));
        pause(Duration::from_millis(1));
    }
    done.join().unwrap()
}

#[test]
fn packets_of_a_stranger_are_measured_where_nobody_else_sends() {
    let store = Store::new();
    let port = free_port();
    let text = port.to_string();
    let flags = ["--listen", &text, "--sender", "none", "--samples", "150", "--name", "r"];
    let child = store.start(&[&RECEIVE[..], &flags].concat());
    let said = send_until_it_ends(child, port, b"of no tardy");
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    assert_eq!(whole(&list(&record["series"])[0]["count"]), 150);
    assert!(whole(&flow(&record)["received"]) >= 150, "{record}");
    assert_eq!(list(&record["messages"]["ends"]).len(), 1);
    assert_eq!(record["probe"]["parameters"]["sender"], "none");
}

#[test]
fn packets_of_a_stranger_are_distinguished_from_those_of_the_sender() {
    let store = Store::new();
    let port = free_port();
    let text = port.to_string();
    let flags = ["--listen", &text, "--duration", "2s", "--name", "r"];
    let child = store.start(&[&RECEIVE[..], &flags].concat());
    let said = send_until_it_ends(child, port, b"tdy1 and then nothing that makes sense");
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    assert_accounts(&record);
    assert!(whole(&flow(&record)["foreign"]) > 0, "{record}");
    assert!(codes(&record).contains(&"packets_foreign"), "{record}");
}

#[test]
fn a_port_where_nothing_comes_is_reported_in_time() {
    for wait in ["block", "ppoll", "epoll", "spin"] {
        let store = Store::new();
        let port = free_port().to_string();
        let flags = ["--listen", &port, "--sender", "none", "--duration", "200ms", "--wait", wait];
        let said = receive(&store, &[&flags[..], &["--name", "r"]].concat());
        assert_eq!(said.code, Some(4), "{wait}: {said:?}");
        let record = store.show("r");
        assert_eq!(record["status"], "complete");
        assert!(codes(&record).contains(&"nothing_received"), "{record}");
    }
}

#[test]
fn a_reader_that_stood_still_has_late_packets_and_loses_none() {
    const STALL: Duration = Duration::from_millis(500);
    let record = with_time(|duration| {
        let store = Store::new();
        let flags = ["--listen", "0", "--rate", "200pps", "--duration", duration, "--name", "r"];
        let mut child = store.start(&[&RECEIVE[..], &flags].concat());
        store.wait_measuring("r");
        // The sender is another process, and continues.
        signal(&child, "STOP");
        eventually("it stands still", || {
            is_stopped(child.id()) || child.try_wait().unwrap().is_some()
        });
        pause(STALL);
        let end_ns = now_ns();
        signal(&child, "CONT");
        assert_eq!(finish(child).code, Some(0));
        let record = store.show("r");
        let length_ns = whole(&record["parameters"]["duration_ns"]);
        (end_ns < whole(&record["start_monotonic_ns"]) + length_ns).then_some(record)
    });
    assert_accounts(&record);
    // Its socket has room for more than a second of them.
    assert_eq!(whole(&flow(&record)["lost"]), 0, "{record}");
    let series = &list(&record["series"])[0];
    // The sender may have stood still, too, but hardly for so long.
    assert!(whole(&series["max"]) / MS >= 100, "the reader stood still for 500 ms: {series}");
    // Packets came evenly meanwhile, each late by what was left of the stall.
    let sum_ns = whole(&series["mean"]) * whole(&series["count"]);
    assert!(sum_ns >= 10 * 100 * MS, "a hundred late packets, not one: {series}");
}

#[test]
fn all_that_comes_in_at_an_interface_is_measured() {
    if !is_root() {
        return skip("reading all that comes in needs CAP_NET_RAW");
    }
    let store = Store::new();
    let flags = ["--iface", "lo", "--sender", "builtin", "--duration", "400ms", "--name", "r"];
    let said = receive(&store, &flags);
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    assert_accounts(&record);
    assert_eq!(record["messages"]["transport"], "packet");
}

#[test]
fn what_comes_from_another_namespace_is_measured_at_both_doors() {
    if !is_root() {
        return skip("namespaces need root");
    }
    // This one's interface is `near`; the other's, `far`, is where a stranger sends from.
    const LINK: &str = "
        unshare -n sleep 300 & other=$!
        trap 'kill $other' EXIT
        until [ \"$(readlink /proc/$other/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]; do
            sleep 0.01
        done
        ip link add near type veth peer name far netns $other || exit 77
        ip addr add 10.9.0.1/24 dev near && ip link set near up && ip link set lo up || exit 78
        in_other() { nsenter -t $other -n \"$@\"; }
        in_other sh -c 'ip addr add 10.9.0.2/24 dev far && ip link set far up' || exit 79
        in_other python3 -c '
import socket, time
mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    mouth.sendto(b\"from afar\", (\"10.9.0.1\", 9009))
    time.sleep(0.001)
' & sender=$!
        trap 'kill $other $sender' EXIT
        \"$@\"";
    let store = Store::new();
    for (name, input) in [("port", ["--listen", "9009"]), ("iface", ["--iface", "near"])] {
        let flags = ["--sender", "none", "--samples", "100", "--name", name];
        let inside = store.tardy(&[&RECEIVE[..], &input, &flags].concat());
        let mut command = Command::new("unshare");
        command.args(["-n", "sh", "-c", LINK, "sh"]).arg(inside.get_program());
        command.args(inside.get_args()).current_dir(store.path());
        command.envs(inside.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let said = finish(piped(&mut command));
        if said.code == Some(77) {
            return skip("this kernel has no veth");
        }
        assert_eq!(said.code, Some(0), "{said:?}");
        let record = store.show(name);
        let series = &list(&record["series"])[0];
        assert_eq!(whole(&series["count"]), 100);
        assert!(whole(&series["min"]) > 0, "{series}");
    }
}

#[test]
fn an_interface_that_goes_down_ends_the_run_which_is_kept() {
    if !is_root() {
        return skip("namespaces need root");
    }
    const DOWN: &str = "
        ip link set lo up || exit 78
        {
            until grep -qs ^Tag runs/r/series.hlog; do sleep 0.05; done
            ip link set lo down
        } &
        \"$@\"";
    let store = Store::new();
    let flags =
        ["--iface", "lo", "--sender", "builtin", "--duration", SHORTLY_LOGGED, "--name", "r"];
    let inside = store.tardy(&[&RECEIVE[..], &flags].concat());
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", DOWN, "sh"]).arg(inside.get_program());
    command.args(inside.get_args()).current_dir(store.path());
    command.envs(inside.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let said = finish(piped(&mut command));
    assert!(matches!(said.code, Some(0 | 4)), "{said:?}");
    let record = store.show("r");
    assert!(codes(&record).contains(&"wait_failed"), "{record}");
    assert!(said.out.contains("Network is down"), "{said:?}");
    assert!(whole(&record["duration_ns"]) < 240_000 * MS, "it ended by itself: {record}");
}

#[test]
fn a_sender_that_is_killed_ends_the_run_which_is_kept() {
    let store = Store::new();
    let flags = ["--listen", "0", "--duration", SHORTLY_LOGGED, "--name", "r"];
    let child = store.start(&[&RECEIVE[..], &flags].concat());
    store.wait_measuring("r");
    let is_sender = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == b"__far")
    };
    let sender = store.processes().into_iter().find(is_sender).unwrap();
    assert!(Command::new("kill").args(["-KILL", &sender.to_string()]).status().unwrap().success());
    let said = finish(child);
    let record = store.show("r");
    assert!(codes(&record).contains(&"far_ended"), "{said:?}");
    assert!(whole(&list(&record["series"])[0]["count"]) > 0, "{record}");
    eventually("nobody is left", || store.processes().is_empty());
}

#[test]
fn what_cannot_be_had_is_refused_with_the_way_out() {
    let store = Store::unprivileged();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let cases: [(&[&str], &str); 6] = [
        (&["--iface", "lo"], "CAP_NET_RAW"),
        (&["--iface", "nowhere0"], "ip link"),
        (&["--listen", &port], "ss -ulpn"),
        (&["--listen", "0", "--wait", "busy-poll:1ms"], "CAP_NET_ADMIN"),
        (&[], "--listen PORT"),
        (&["--listen", "0", "--sender", "none"], "any port that is free"),
    ];
    for (flags, way_out) in cases {
        let said = receive(&store, &[flags, &["--name", "r"]].concat());
        assert_eq!(said.code, Some(2), "{flags:?}: {said:?}");
        assert!(said.err.contains(way_out), "{flags:?}: {said:?}");
        assert!(!store.runs().join("r").exists(), "{flags:?} leaves nothing");
    }
}

//! `tardy run stream`: packets that are sent, counted and late as they should be, by every
//! transport, and what goes wrong on the way.

use std::{fs, net::UdpSocket, process::Child, time::Duration};

use serde_json::Value;

use super::support::{
    SHORTLY_LOGGED, Said, Store, codes, eventually, finish, is_root, is_stopped, list, pause,
    piped, read_record, signal, skip, wait_until_read, whole,
};

const STREAM: [&str; 8] =
    ["run", "stream", "--warmup", "100ms", "--trace", "off", "--policy", "other"];

/// Runs a stream to its end and returns its record.
fn streamed(store: &Store, name: &str, arguments: &[&str]) -> Value {
    let said = store.run(&[&STREAM, arguments, &["--name", name]].concat());
    assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
    read_record(&store.runs().join(name))
}

fn flow<'a>(record: &'a Value, series: &str) -> &'a Value {
    let flows = list(&record["messages"]["flows"]);
    flows.iter().find(|flow| flow["series"] == series).unwrap_or_else(|| panic!("{flows:?}"))
}

fn series<'a>(record: &'a Value, name: &str) -> &'a Value {
    let all = list(&record["series"]);
    all.iter().find(|series| series["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

/// What holds for every flow of every run.
fn check_flow(record: &Value, name: &str, sent: i64) {
    let flow = flow(record, name);
    assert_eq!(whole(&flow["sent"]), sent, "{name}: {flow}");
    assert_eq!(whole(&flow["received"]) + whole(&flow["lost"]), sent, "{name}: {flow}");
    for odd in ["duplicated", "reordered", "foreign"] {
        assert_eq!(whole(&flow[odd]), 0, "{name}: {flow}");
    }
    let mean = |part: &str| whole(&series(record, &format!("{name}{part}"))["mean"]);
    for part in ["", "/pacing", "/transit"] {
        let count = &series(record, &format!("{name}{part}"))["count"];
        assert_eq!(count, &flow["received"], "{name}{part}");
    }
    // Each mean is rounded.
    let parts = mean("/pacing") + mean("/transit");
    assert!((mean("") - parts).abs() <= 2, "{name}: {} of {parts}", mean(""));
}

/// The processes of remote endpoints.
fn far_ends(store: &Store) -> Vec<i32> {
    let is_far = |pid: &i32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "tardy-far"
    };
    store.processes().into_iter().filter(is_far).collect()
}

fn kill(pid: i32, how: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), how).unwrap();
}

/// Starts a stream that continues until it is ended, and waits until it measures.
fn started(store: &Store, name: &str, arguments: &[&str]) -> (Child, i32) {
    let child = store
        .start(&[&STREAM, arguments, &["--duration", SHORTLY_LOGGED, "--name", name]].concat());
    store.wait_measuring(name);
    (child, far_ends(store)[0])
}

/// Waits until `packets` more packets have arrived.
fn wait_for_more(store: &Store, name: &str, packets: i64) {
    let before = store.count(name);
    eventually("more packets", || store.count(name) > before + packets);
}

fn ended(store: &Store, name: &str, child: Child) -> (Said, Value) {
    signal(&child, "INT");
    let said = finish(child);
    (said, read_record(&store.runs().join(name)))
}

#[test]
fn by_every_transport_each_packet_is_accounted_for() {
    let store = Store::new();
    let length = ["--rate", "2kpps", "--duration", "500ms"];
    for (name, more, flows) in [
        ("udp", &[][..], &["there"][..]),
        ("udp2", &["--both-ways"], &["there", "back"]),
        ("tcp", &["--transport", "tcp"], &["there"]),
        ("tcp2", &["--transport", "tcp", "--both-ways", "--size", "9000"], &["there", "back"]),
        ("group", &["--group", "239.11.12.13", "--receivers", "3"], &["there", "there2", "there3"]),
    ] {
        let record = streamed(&store, name, &[&length, more].concat());
        let found = list(&record["messages"]["flows"]);
        assert_eq!(found.len(), flows.len(), "{name}");
        for flow in flows {
            check_flow(&record, flow, 1_000);
        }
        let ends = list(&record["messages"]["ends"]);
        let receivers = flows.iter().filter(|flow| flow.starts_with("there")).count();
        assert_eq!(ends.len(), 1 + receivers, "{name}: {ends:?}");
    }
}

#[test]
fn every_way_to_wait_keeps_the_schedule() {
    let store = Store::new();
    for (wait, far) in [("spin", "sleep"), ("hybrid:200us", "hybrid:200us"), ("sleep", "spin")] {
        let more = ["--rate", "1kpps", "--samples", "300", "--wait", wait, "--far-wait", far];
        let record =
            streamed(&store, &wait.replace(':', "-"), &[&more[..], &["--both-ways"]].concat());
        check_flow(&record, "there", 300);
        check_flow(&record, "back", 300);
        // The parameters stand with the result.
        let ends = list(&record["messages"]["ends"]);
        assert!(ends[0]["wait"].as_str().unwrap().starts_with(&wait[..4]), "{ends:?}");
        assert_eq!(whole(&series(&record, "there/pacing")["early"]), 0);
    }
}

#[test]
fn a_receiver_that_stands_still_shows_as_late_packets_and_not_as_lost_ones() {
    let store = Store::new();
    let more = ["--rate", "2kpps", "--late-over", "20ms"];
    let (child, far) = started(&store, "stall", &more);
    kill(far, rustix::process::Signal::STOP);
    eventually("it stands still", || is_stopped(far.cast_unsigned()));
    pause(Duration::from_millis(100));
    kill(far, rustix::process::Signal::CONT);
    wait_for_more(&store, "stall", 1_000);
    let (said, record) = ended(&store, "stall", child);
    assert_eq!(said.code, Some(0), "{said:?}");
    let there = flow(&record, "there");
    // Those of the first 80 ms of the stall were late by 20 ms and more; had the sender waited for
    // the receiver, it would have been one.
    let worst = whole(&series(&record, "there")["max"]);
    assert!(worst >= 90_000_000, "{worst}");
    assert!(whole(&there["late"]) >= 140, "{there}");
    // The sender did not stand still, but for what the machine made it wait.
    let waited_ns = whole(&series(&record, "there/pacing")["max"]);
    let due = (whole(&record["duration_ns"]) - waited_ns) / 500_000;
    assert!(whole(&there["sent"]) >= due - due / 50, "{due} were due: {record}");
    if worst >= 1_000_000_000 {
        return skip("this machine stood still for a second, which no buffer is for");
    }
    if codes(&record).contains(&"buffer_small") {
        return skip("the kernel grants no buffer for a second: that nothing was lost");
    }
    assert_eq!(whole(&there["lost"]), 0, "{there}");
}

#[test]
fn a_far_end_that_is_killed_ends_the_run_which_is_kept() {
    let store = Store::new();
    let (child, far) = started(&store, "killed", &["--rate", "1kpps", "--both-ways"]);
    kill(far, rustix::process::Signal::KILL);
    let said = finish(child);
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = read_record(&store.runs().join("killed"));
    assert!(codes(&record).contains(&"far_ended"), "{:?}", codes(&record));
    assert!(whole(&series(&record, "there")["count"]) > 0);
    assert_eq!(store.processes().len(), 0, "something is left");
}

#[test]
fn packets_of_strangers_are_counted_and_never_recorded() {
    let store = Store::new();
    let (child, far) = started(&store, "strangers", &["--rate", "1kpps"]);
    let port = udp_port(far);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    // Garbage, too short, too long, and one that looks right but is of no session.
    let mut forged = vec![0; 64];
    forged[..4].copy_from_slice(b"tdy1");
    forged[16..24].copy_from_slice(&1_000_000_u64.to_le_bytes());
    for bytes in [&b""[..], b"garbage", &[0xff; 64], &[0; 2_000], &forged] {
        assert_eq!(stranger.send_to(bytes, ("127.0.0.1", port)).unwrap(), bytes.len());
    }
    wait_until_read(port);
    let (said, record) = ended(&store, "strangers", child);
    assert_eq!(said.code, Some(0), "{said:?}");
    let there = flow(&record, "there");
    assert_eq!(whole(&there["foreign"]), 5, "{there}");
    assert_eq!(whole(&there["received"]) + whole(&there["lost"]), whole(&there["sent"]));
    assert_eq!(whole(&series(&record, "there")["count"]), whole(&there["received"]));
    assert!(whole(&there["sent"]) < 900_000, "the forged number was believed: {there}");
}

/// The port of a process's one UDP socket.
fn udp_port(pid: i32) -> u16 {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let sockets: Vec<String> = links
        .filter_map(|link| {
            fs::read_link(link.path())
                .ok()?
                .to_str()?
                .strip_prefix("socket:[")
                .map(|inode| inode.trim_end_matches(']').to_owned())
        })
        .collect();
    let table = fs::read_to_string(format!("/proc/{pid}/net/udp")).unwrap();
    let port = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_own = sockets.iter().any(|inode| words.get(9) == Some(&inode.as_str()));
        let port = words.get(1)?.split_once(':')?.1;
        is_own.then(|| u16::from_str_radix(port, 16).unwrap())
    };
    table.lines().find_map(port).expect("it has a UDP socket")
}

#[test]
fn a_latency_over_the_limit_ends_the_run() {
    let store = Store::new();
    let more = ["--duration", "1h", "--stop-over", "1ns", "--name", "over"];
    let said = store.run(&[&STREAM[..], &more].concat());
    assert_eq!(said.code, Some(1), "{said:?}");
    let record = read_record(&store.runs().join("over"));
    assert_eq!(record["status"], "stopped_over");
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_sent() {
    let store = Store::new();
    for (more, words) in [
        (&["--rate", "1000"][..], "write 1000pps or 1000kpps"),
        (&["--size", "20"], "at least 56 bytes"),
        (&["--group", "10.0.0.1"], "not a multicast address"),
        (&["--wait", "hybrid"], "use sleep, spin or hybrid:2ms"),
    ] {
        let said = store.run(&[&STREAM, more].concat());
        assert_eq!(said.code, Some(2), "{more:?}: {said:?}");
        assert!(said.err.contains(words), "{more:?}: {said:?}");
    }
    assert!(!store.runs().exists() || fs::read_dir(store.runs()).unwrap().next().is_none());
}

#[test]
fn a_small_buffer_is_reported() {
    let store = Store::unprivileged();
    let more = ["--rate", "100kpps", "--duration", "100ms", "--size", "1400", "--quiet"];
    let record = streamed(&store, "small", &more);
    assert!(codes(&record).contains(&"buffer_small"), "{:?}", codes(&record));
}

/// tardy in its own network, whose loopback carries frames of up to `mtu` bytes.
fn alone_in_a_network(store: &Store, mtu: u32, arguments: &[&str]) -> Child {
    let within = format!("ip link set lo mtu {mtu} up && exec \"$0\" \"$@\"");
    let script = "exec unshare -n sh -c \"$WITHIN\" \"$0\" \"$@\"";
    let mut command = store.shell(script, arguments);
    piped(command.env("WITHIN", within))
}

#[test]
fn an_interface_that_goes_down_is_reported_and_the_run_goes_on() {
    if !is_root() {
        return skip("a separate network takes root");
    }
    // A busy machine may keep the sender from sending meanwhile.
    eventually("packets of the outage are lost", || {
        let store = Store::new();
        let arguments =
            [&STREAM[..], &["--rate", "1kpps", "--duration", SHORTLY_LOGGED, "--name", "down"]]
                .concat();
        let child = alone_in_a_network(&store, 65_536, &arguments);
        store.wait_measuring("down");
        let within = |words: &[&str]| {
            let pid = child.id().to_string();
            let nsenter = [&["-t", &pid, "-n"], words].concat();
            let done = std::process::Command::new("nsenter").args(nsenter).status().unwrap();
            assert!(done.success(), "{words:?}");
        };
        within(&["ip", "link", "set", "lo", "down"]);
        pause(Duration::from_millis(500));
        within(&["ip", "link", "set", "lo", "up"]);
        wait_for_more(&store, "down", 100);
        let (said, record) = ended(&store, "down", child);
        assert_eq!(said.code, Some(0), "{said:?}");
        let there = flow(&record, "there");
        let lost = whole(&there["lost"]);
        assert_eq!(whole(&there["received"]) + lost, whole(&there["sent"]), "{there}");
        assert_eq!(lost > 0, codes(&record).contains(&"messages_lost"), "{record}");
        lost >= 50
    });
}

#[test]
fn packets_longer_than_a_frame_are_reported() {
    if !is_root() {
        return skip("a separate network takes root");
    }
    let store = Store::new();
    let more = ["--size", "4000", "--duration", "200ms", "--name", "long"];
    let child = alone_in_a_network(&store, 1_500, &[&STREAM[..], &more].concat());
    let said = finish(child);
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = read_record(&store.runs().join("long"));
    assert!(codes(&record).contains(&"packets_fragmented"), "{:?}", codes(&record));
    check_flow(&record, "there", 200);
}

#[test]
fn packets_come_back_from_an_echo_with_each_way_by_itself() {
    let store = Store::new();
    for transport in ["udp", "tcp"] {
        let echo = super::echo::listen(&store, &[]);
        let to = ["--to", &echo.address, "--transport", transport];
        let record = streamed(
            &store,
            transport,
            &[&to[..], &["--rate", "2kpps", "--samples", "1k"]].concat(),
        );
        check_flow(&record, "rtt", 1_000);
        let ends = list(&record["messages"]["ends"]);
        assert_eq!((&ends[1]["place"], &ends[1]["address"]), (&"machine".into(), &to[1].into()));
        // One machine has one clock, whatever was measured of it.
        let clock = &record["messages"]["clock"];
        let unsteady = codes(&record).contains(&"clock_unsteady");
        assert!(clock.is_object() || unsteady, "{record}");
        if clock.is_object() {
            let within = whole(&clock["uncertainty_ns"]);
            assert!(whole(&clock["offset_ns"]).abs() <= within, "{clock}");
        }
        // A period in which that is known too badly has round trips alone.
        let received = whole(&flow(&record, "rtt")["received"]);
        let ways = ["there", "back"].map(|way| whole(&series(&record, way)["count"]));
        assert!(ways[0] == ways[1] && (ways[0] == received || unsteady), "{ways:?}");
        assert_eq!(super::echo::end(echo)["admission"]["refused"], 0);
    }
}

#[test]
fn single_packets_are_kept_where_that_is_asked_for() {
    let store = Store::new();
    let record = streamed(&store, "raw", &["--raw", "--samples", "200", "--both-ways"]);
    check_flow(&record, "there", 200);
    eventually("samples on the disk", || {
        fs::read_dir(store.runs().join("raw/samples")).is_ok_and(|files| files.count() > 0)
    });
}

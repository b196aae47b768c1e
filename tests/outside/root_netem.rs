//! In a guest of `cargo xtask vm`: what a network does on purpose is found again in the figures.
//! Two network namespaces joined by veth are two machines, and netem between them delays and drops
//! packets.
//!
//! netem's timers are the guest's own. Where its time is the host's, they and everybody else wait
//! for a CPU as well, so that only the least delay is certain; counted time (`--counted`) is exact.

use std::{
    process::{Child, Command},
    time::Duration,
};

use serde_json::Value;

use super::support::{
    SHORTLY_LOGGED, Store, eventually, finish, in_guest, is_counted, list, piped, signal, skip,
    whole, write_secret,
};

const NETWORKS: [(&str, &str, &str); 2] =
    [("near", "veth-near", "192.0.2.1"), ("far", "veth-far", "192.0.2.2")];

/// As long as netem holds a packet, each way.
const DELAY_NS: f64 = 1e6;

fn run(words: &str) -> String {
    let mut parts = words.split(' ');
    let output = Command::new(parts.next().unwrap()).args(parts).output().unwrap();
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Two networks and the wire between them, gone with this. The wire carries tardy's messages alone,
/// so that every packet that netem drops is one: each machine knows the other's hardware address
/// and need not ask for it, and neither has an IPv6 address to make known.
struct Machines;

impl Machines {
    fn new() -> Self {
        for (network, ..) in NETWORKS {
            run(&format!("ip netns add {network}"));
        }
        let machines = Self;
        run("ip -n near link add veth-near type veth peer name veth-far netns far");
        for (network, device, address) in NETWORKS {
            run(&format!("ip -n {network} address add {address}/24 dev {device}"));
            run(&format!("ip -n {network} link set {device} addrgenmode none"));
            run(&format!("ip -n {network} link set lo up"));
            run(&format!("ip -n {network} link set {device} up"));
        }
        let [near, far] = NETWORKS;
        for ((network, device, _), (peer, peer_device, address)) in [(near, far), (far, near)] {
            let said = run(&format!("ip -n {peer} -j link show {peer_device}"));
            let found: Value = serde_json::from_str(&said).unwrap();
            let hardware = found[0]["address"].as_str().unwrap();
            let to = format!("{address} lladdr {hardware} dev {device} nud permanent");
            run(&format!("ip -n {network} neighbour replace {to}"));
        }
        machines
    }

    /// What netem does on both ways from now on.
    fn netem(&self, action: &str, what: &str) {
        for (network, device, _) in NETWORKS {
            run(&format!("tc -n {network} qdisc {action} dev {device} root netem {what}"));
        }
    }

    /// Packets that netem has dropped, on both ways together.
    fn dropped(&self) -> i64 {
        let of = |(network, device, _)| {
            let said = run(&format!("tc -s -j -n {network} qdisc show dev {device} root"));
            let found: Value = serde_json::from_str(&said).unwrap();
            whole(&found[0]["drops"])
        };
        NETWORKS.map(of).iter().sum()
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for (network, ..) in NETWORKS {
            let _ = Command::new("ip").args(["netns", "del", network]).status();
        }
    }
}

/// tardy in a network.
fn tardy_in(store: &Store, network: &str, arguments: &[&str]) -> Child {
    let tardy = store.tardy(arguments);
    let mut command = Command::new("ip");
    command.args(["netns", "exec", network]).arg(tardy.get_program()).args(tardy.get_args());
    let set = tardy.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.envs(set).current_dir(store.path());
    piped(&mut command)
}

/// Longer than any answer that is not dropped takes. Counted, nothing else takes time.
fn timeout() -> Duration {
    Duration::from_millis(if is_counted() { 100 } else { 1_000 })
}

/// A ping-pong with the echo that continues until it is ended.
fn ping(store: &Store, name: &str) -> Child {
    let token = store.path().join("token");
    let to = ["--to", "192.0.2.2:7117", "--token-file", token.to_str().unwrap()];
    let what = ["run", "pingpong", "--transport", "udp", "--trace", "off", "--warmup", "100ms"];
    let timeout = format!("{}ms", timeout().as_millis());
    let more = ["--duration", SHORTLY_LOGGED, "--timeout", &timeout, "--name", name];
    tardy_in(store, "near", &[&what[..], &to, &more].concat())
}

/// Ends it, and its record.
fn ended(store: &Store, near: Child, name: &str) -> Value {
    signal(&near, "INT");
    let said = finish(near);
    assert_eq!(said.code, Some(0), "{said:?}");
    store.show(name)
}

fn median(record: &Value) -> f64 {
    let series = &list(&record["series"])[0];
    assert_eq!(series["name"], "rtt");
    series["percentiles"]["50"].as_f64().unwrap()
}

#[test]
fn a_delay_of_netem_is_found_and_every_message_that_it_drops_is_counted() {
    if !in_guest() {
        skip("only in a guest of cargo xtask vm");
        return;
    }
    let store = Store::new();
    write_secret(&store.path().join("token"), "between two machines\n");
    let machines = Machines::new();
    let token = store.path().join("token");
    let listen = ["echo", "--listen", "192.0.2.2:7117", "--token-file", token.to_str().unwrap()];
    let far = tardy_in(&store, "far", &listen);
    eventually("an echo", || run("ip netns exec far cat /proc/net/udp").contains(":1BCD "));
    let plain = ping(&store, "plain");
    store.wait_measuring("plain");
    eventually("many answers", || store.count("plain") > 200);
    let without = median(&ended(&store, plain, "plain"));

    // Nothing is lost before there is a session and a measurement.
    machines.netem("add", "delay 1ms");
    let near = ping(&store, "netem");
    store.wait_measuring("netem");
    machines.netem("change", "delay 1ms loss 5%");
    eventually("lost messages", || machines.dropped() >= 10);
    machines.netem("change", "delay 1ms loss 0%");
    // The last one that was dropped is waited for until its time is up; then there are answers
    // again, of which the first may be older.
    for _ in 0..2 {
        let before = store.count("netem");
        eventually("further answers", || store.count("netem") > before);
    }
    let dropped = machines.dropped();
    let record = ended(&store, near, "netem");
    signal(&far, "INT");
    finish(far);

    let flow = &record["messages"]["flows"][0];
    let lost = whole(&flow["lost"]);
    assert!(lost >= dropped, "{dropped} dropped: {flow}");
    assert_eq!(whole(&flow["sent"]), whole(&flow["received"]) + lost, "{flow}");
    // netem holds every packet for that long, each way, however long anything else takes.
    let with = median(&record);
    assert!(with >= 2.0 * DELAY_NS, "{with} ns with the delay, {without} ns without");
    // The difference is the delay only where the rest takes the same time again; and elsewhere the
    // host may have no time for the guest, so that an answer comes too late.
    if is_counted() {
        assert_eq!(lost, dropped, "{flow}");
        let found = (with - without) / 2.0 / DELAY_NS;
        assert!((0.95..1.05).contains(&found), "{found} of the delay; without: {without} ns");
    }
}

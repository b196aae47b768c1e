//! Two network namespaces that a veth joins, as two machines: `tardy echo` in one, a run in the
//! other, and what may happen to the way between them.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::Value;

use super::{
    echo::{Listening, end, listening},
    support::{
        SHORTLY_LOGGED, Said, Store, TARDY, codes, eventually, finish, is_root, list, piped,
        signal, skip, whole, write_secret,
    },
};

const FAR: &str = "10.77.0.2:7117";
const TOKEN: &str = "a token for two machines";

/// Both, until this is dropped.
struct TwoMachines {
    store: Store,
    near: String,
    far: String,
}

/// A command of this machine; whether it did well.
fn does(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl TwoMachines {
    /// Absent, and said so, where this machine has no such things.
    fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !is_root() {
            skip("needs root: makes network namespaces");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |end: &str| format!("tardy-{}-{number}-{end}", std::process::id());
        let both = Self { store: Store::new(), near: name("near"), far: name("far") };
        write_secret(&both.token(), TOKEN);
        if !both.join() {
            skip("needs ip(8) of iproute2, nsenter, network namespaces and veth devices");
            return None;
        }
        Some(both)
    }

    fn join(&self) -> bool {
        let (near, far) = (self.near.as_str(), self.far.as_str());
        let mut words = vec![
            format!("netns add {near}"),
            format!("netns add {far}"),
            format!("link add name v netns {near} type veth peer name v netns {far}"),
        ];
        for (name, address) in [(near, "10.77.0.1/24"), (far, "10.77.0.2/24")] {
            words.push(format!("-n {name} address add {address} dev v"));
            words.push(format!("-n {name} link set v up"));
        }
        words.iter().all(|words| ip(words)) && does(&["nsenter", "--version"])
    }

    fn token(&self) -> PathBuf {
        self.store.path().join("token")
    }

    fn start_on(&self, machine: &str, words: &[&str]) -> Child {
        let like = self.store.tardy(words);
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{machine}"))
            .arg(TARDY)
            .args(words)
            .current_dir(self.store.path())
            .stdin(Stdio::null());
        for (name, value) in like.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        piped(&mut command)
    }

    fn echo(&self, more: &[&str]) -> Listening {
        let token = self.token();
        let words = ["echo", "--listen", FAR, "--json", "--token-file", token.to_str().unwrap()];
        listening(self.start_on(&self.far, &[&words[..], more].concat()))
    }

    fn start_run(&self, probe: &str, more: &[&str]) -> Child {
        let token = self.token();
        let token = token.to_str().unwrap();
        let words = ["run", probe, "--to", FAR, "--trace", "off", "--warmup", "20ms"];
        let named = ["--name", "r", "--token-file", token];
        self.start_on(&self.near, &[&words[..], &named, more].concat())
    }

    fn run(&self, probe: &str, more: &[&str]) -> Said {
        finish(self.start_run(probe, more))
    }

    fn record(&self) -> Value {
        let record = self.store.show("r");
        fs::remove_dir_all(self.store.runs().join("r")).unwrap();
        record
    }

    /// Does something to the device of a machine: `up`, `down`, `mtu 600`.
    fn set(&self, machine: &str, what: &str) {
        assert!(ip(&format!("-n {machine} link set v {what}")), "{what}");
    }
}

fn ip(words: &str) -> bool {
    does(&[&["ip"], words.split(' ').collect::<Vec<_>>().as_slice()].concat())
}

impl Drop for TwoMachines {
    fn drop(&mut self) {
        for machine in [&self.near, &self.far] {
            does(&["ip", "netns", "del", machine]);
        }
    }
}

fn rtt(record: &Value) -> i64 {
    whole(&list(&record["series"])[0]["count"])
}

#[test]
fn round_trips_to_another_machine_are_all_recorded_and_its_echo_counts_the_same() {
    let Some(both) = TwoMachines::new() else { return };
    let echo = both.echo(&[]);
    for transport in ["udp", "tcp"] {
        let said = both
            .run("pingpong", &["--transport", transport, "--samples", "500", "--timeout", "60s"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let record = both.record();
        assert_eq!((rtt(&record), &record["status"]), (500, &"complete".into()), "{record}");
        let far = &list(&record["messages"]["ends"])[1];
        assert_eq!((&far["place"], &far["address"]), (&"machine".into(), &FAR.into()), "{far}");
        assert_eq!(far["version"], env!("CARGO_PKG_VERSION"), "{far}");
        assert!(whole(&far["receive_buffer_bytes"]) > 0, "{far}");
        let flow = &list(&record["messages"]["flows"])[0];
        assert_eq!((whole(&flow["received"]), whole(&flow["lost"])), (500, 0), "{flow}");
    }
    let summary = end(echo);
    assert!(whole(&summary["answered"]) >= 1000, "{summary}");
    assert_eq!((whole(&summary["foreign"]), whole(&summary["peers"])), (0, 2), "{summary}");
}

#[test]
fn another_token_or_none_is_refused_and_nothing_is_recorded() {
    let Some(both) = TwoMachines::new() else { return };
    let echo = both.echo(&[]);
    write_secret(&both.token(), "another token\n");
    for transport in ["udp", "tcp"] {
        let said = both.run("pingpong", &["--transport", transport, "--samples", "5"]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains("another token") && said.err.contains(FAR), "{said:?}");
    }
    let none = ["run", "pingpong", "--transport", "udp", "--to", FAR, "--samples", "5"];
    let said = finish(both.start_on(&both.near, &none));
    assert!(said.err.contains("--token-file"), "{said:?}");
    assert_eq!(whole(&end(echo)["admission"]["wrong_token"]), 3);
}

#[test]
fn without_an_echo_on_the_other_machine_the_error_says_what_to_start() {
    let Some(both) = TwoMachines::new() else { return };
    for transport in ["udp", "tcp"] {
        let said = both.run("pingpong", &["--transport", transport, "--samples", "5"]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains("tardy echo --listen"), "{said:?}");
    }
}

#[test]
fn an_echo_that_is_killed_ends_the_run_which_is_kept() {
    let Some(both) = TwoMachines::new() else { return };
    for transport in ["udp", "tcp"] {
        let echo = both.echo(&[]);
        let child =
            both.start_run("pingpong", &["--transport", transport, "--duration", SHORTLY_LOGGED]);
        both.store.wait_measuring("r");
        signal(&echo.child, "KILL");
        let said = finish(child);
        finish(echo.child);
        assert_eq!(said.code, Some(0), "{said:?}");
        let record = both.record();
        assert!(codes(&record).contains(&"far_ended"), "{transport}: {record}");
        assert!(rtt(&record) > 0 && record["status"] == "interrupted", "{record}");
    }
}

#[test]
fn a_network_that_goes_away_ends_the_run_which_is_kept_and_the_echo_answers_again() {
    let Some(both) = TwoMachines::new() else { return };
    let echo = both.echo(&[]);
    for (machine, timeout) in [(&both.far, "50ms"), (&both.near, "50ms")] {
        let more = ["--transport", "udp", "--duration", SHORTLY_LOGGED, "--timeout", timeout];
        let child = both.start_run("pingpong", &more);
        both.store.wait_measuring("r");
        both.set(machine, "down");
        let said = finish(child);
        both.set(machine, "up");
        assert!(said.code == Some(0) || said.code == Some(4), "{said:?}");
        let record = both.record();
        let ended = ["far_ended", "wait_failed"].iter().any(|code| codes(&record).contains(code));
        assert!(ended && rtt(&record) > 0, "{said:?} {record}");
        // Until both ends know each other's addresses again.
        eventually("an answer", || {
            let said = both.run("pingpong", &["--transport", "udp", "--samples", "50"]);
            let is_whole = said.code == Some(0) && rtt(&both.record()) == 50;
            let _ = fs::remove_dir_all(both.store.runs().join("r"));
            is_whole
        });
    }
    end(echo);
}

#[test]
fn messages_that_the_way_does_not_carry_are_reported_and_the_run_is_kept() {
    let Some(both) = TwoMachines::new() else { return };
    both.set(&both.far, "mtu 600");
    let echo = both.echo(&[]);
    let more = ["--transport", "udp", "--size", "1400", "--samples", "50", "--timeout", "20ms"];
    let said = both.run("pingpong", &more);
    let record = both.record();
    assert!(codes(&record).contains(&"far_ended"), "{said:?} {record}");
    let flow = &list(&record["messages"]["flows"])[0];
    assert_eq!((whole(&flow["received"]), whole(&flow["lost"]) > 0), (0, true), "{flow}");
    // Smaller ones are carried.
    let smaller = ["--transport", "udp", "--size", "500", "--samples", "50", "--timeout", "60s"];
    let said = both.run("pingpong", &smaller);
    assert_eq!((said.code, rtt(&both.record())), (Some(0), 50), "{said:?}");
    end(echo);
}

#[test]
fn a_stream_to_another_machine_comes_back_whole_and_its_socket_there_holds_a_second() {
    let Some(both) = TwoMachines::new() else { return };
    let echo = both.echo(&[]);
    for (transport, rate) in [("udp", "10kpps"), ("tcp", "2kpps")] {
        let more = ["--transport", transport, "--rate", rate, "--samples", "2k"];
        let mut record = Value::Null;
        // An end that does not run for a second loses packets.
        eventually("no packet is lost", || {
            let said = both.run("stream", &more);
            assert_eq!(said.code, Some(0), "{said:?}");
            record = both.record();
            let flow = &list(&record["messages"]["flows"])[0];
            ["sent", "received", "lost"].map(|name| whole(&flow[name])) == [2_000, 2_000, 0]
        });
        if transport == "udp" {
            let far = &list(&record["messages"]["ends"])[1];
            // 64 bytes each, and what the kernel counts beside them.
            assert!(whole(&far["receive_buffer_bytes"]) >= 10_000 * (64 + 768), "{far}");
        }
    }
    assert_eq!(whole(&end(echo)["foreign"]), 0);
}

//! An echo that is killed, or stands still, while a run measures against it.

use std::{process::Child, time::Duration};

use super::{
    super::{
        killed::{Killing, killed_at_random},
        support::{SHORTLY_LOGGED, codes, eventually, finish, is_stopped, pause, signal, whole},
    },
    Listening, Store,
    attack::still_answers,
    end, listen, listening,
};

/// A run against it that continues until one of them ends.
fn near_end(store: &Store, echo: &Listening, transport: &str, timeout: &str) -> Child {
    let run = ["run", "pingpong", "--to", &echo.address, "--transport", transport];
    let terms = ["--policy", "other", "--trace", "off", "--warmup", "20ms", "--timeout", timeout];
    store.start(&[&run[..], &terms, &["--duration", SHORTLY_LOGGED, "--name", "r"]].concat())
}

#[test]
fn an_echo_that_is_killed_at_a_random_moment_frees_its_port_and_the_other_end_says_so() {
    let within = Duration::from_millis(1_500);
    killed_at_random(
        &Killing { name: "kill -9 of an echo", times: (4, 50), within },
        |number| {
            let store = Store::new();
            let echo = listen(&store, &[]);
            let transport = ["udp", "tcp"][number % 2];
            let near = near_end(&store, &echo, transport, "200ms");
            ((store, echo.address, near), echo.child)
        },
        |_, (store, address, near), _| {
            let again = ["echo", "--listen", &address, "--policy", "other", "--json"];
            let again = listening(store.start(&again));
            still_answers(&again);
            // A local endpoint that had not said hello yet may have found this one.
            end(again);
            left_of_the_near_end(&store, near, &address)
        },
    );
}

/// How the local endpoint took the death of its echo.
fn left_of_the_near_end(store: &Store, near: Child, address: &str) -> String {
    let said = finish(near);
    assert_eq!(store.processes(), [0; 0], "nothing is left");
    assert!(!said.err.contains("panicked"), "{said:?}");
    if said.code == Some(2) {
        assert!(said.err.contains(address), "{said:?}");
        assert!(!store.runs().join("r").exists(), "{said:?}");
        return "an error before the run".into();
    }
    let record = store.show("r");
    assert_eq!(record["status"], "interrupted", "{said:?}");
    assert!(codes(&record).contains(&"far_ended"), "{record}");
    let count = whole(&record["series"][0]["count"]);
    let code = if count == 0 { 4 } else { 0 };
    assert_eq!(said.code, Some(code), "{said:?}");
    let kind = if count == 0 { "an invalid run without a sample" } else { "a run up to the kill" };
    kind.into()
}

#[test]
fn an_echo_that_stands_still_is_a_late_answer_and_one_that_does_so_for_too_long_ends_the_run() {
    let store = Store::new();
    let echo = listen(&store, &[]);
    for (transport, timeout) in [("udp", "60s"), ("tcp", "60s"), ("udp", "2s")] {
        let near = near_end(&store, &echo, transport, timeout);
        store.wait_measuring("r");
        // Its first interval may hold no sample.
        eventually("an answer", || store.count("r") > 0);
        signal(&echo.child, "STOP");
        eventually("it stands still", || is_stopped(echo.child.id()));
        if timeout == "60s" {
            pause(Duration::from_millis(300));
            signal(&echo.child, "CONT");
            let before = store.count("r");
            eventually("it answers again", || store.count("r") > before);
            let (said, record) = store.interrupt("r", near);
            assert_eq!(said.code, Some(0), "{said:?}");
            assert!(!codes(&record).contains(&"far_ended"), "{record}");
            // A message was on its way when it stopped, or sent at once.
            assert!(whole(&record["series"][0]["max"]) > 200_000_000, "{record}");
        } else {
            let said = finish(near);
            assert_eq!(said.code, Some(0), "{said:?}");
            assert!(codes(&store.show("r")).contains(&"far_ended"), "{said:?}");
            signal(&echo.child, "CONT");
        }
        still_answers(&echo);
        std::fs::remove_dir_all(store.runs().join("r")).unwrap();
    }
    end(echo);
}

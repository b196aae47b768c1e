//! Whether a run was long enough, and what a deadline is to it: `tardy show --tail`, `--how-long`,
//! `--deadline`.

use serde_json::Value;

use super::support::{Store, list, whole};

/// 20,000 samples of 2 to 6 us, one in a thousand up to 100 us later.
fn store() -> Store {
    let store = Store::new();
    let run = ["run", "fake", "--warmup", "0s", "--cpus", "0", "--unpaced", "--interval", "200us"];
    let said = store.run(&[&run[..], &["--raw", "--samples", "20000", "--name", "r"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    store
}

fn shown(store: &Store, arguments: &[&str]) -> Value {
    let all: Vec<&str> = ["show", "r", "--json"].iter().chain(arguments).copied().collect();
    let said = store.run(&all);
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.out).unwrap()
}

#[test]
fn a_deadline_has_the_misses_of_the_samples_in_their_order() {
    let store = store();
    let found = shown(&store, &["--deadline", "7us"]);
    let own = &list(&found["deadlines"])[0];
    let missed = whole(&own["missed"]);
    assert!((1..=20).contains(&missed), "{own}");
    assert_eq!(whole(&own["periods"]), 20_000);
    assert_eq!(whole(&own["longest_burst"]), 1, "they are a thousand samples apart");
    for window in list(&own["windows"]) {
        assert_eq!(whole(&window["most_missed"]), 1, "{own}");
    }
    let met = shown(&store, &["--deadline", "1ms"]);
    assert_eq!(whole(&list(&met["deadlines"])[0]["missed"]), 0);
    let text = store.run(&["show", "r", "--deadline", "1ms"]).out;
    assert!(text.contains("none missed in"), "{text}");
}

#[test]
fn a_run_remembers_the_deadline_that_it_was_given() {
    let store = Store::new();
    let run = ["run", "fake", "--warmup", "0s", "--cpus", "0", "--samples", "2000", "--unpaced"];
    let said = store.run(&[&run[..], &["--deadline", "7us", "--name", "r", "--json"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let measured: Value = serde_json::from_str(&said.out).unwrap();
    let found = shown(&store, &[]);
    assert_eq!(found["parameters"]["deadline_ns"], 7_000);
    assert_eq!(found["deadlines"], measured["deadlines"]);
    assert!(whole(&list(&found["deadlines"])[0]["missed"]) > 0, "{found}");
    let other = shown(&store, &["--deadline", "1s"]);
    assert_eq!(whole(&list(&other["deadlines"])[0]["missed"]), 0, "another one may be asked for");
    assert!(store.run(&["show", "r"]).out.contains("deadline 7us"));
    let noise = store.run(&["run", "noise", "--duration", "1s", "--deadline", "7us"]);
    assert_eq!(noise.code, Some(2), "{noise:?}");
    assert!(noise.err.contains("--deadline is not supported with noise"), "{noise:?}");
}

#[test]
fn a_short_run_has_no_levels_but_says_what_it_did_not_see() {
    let store = store();
    let tail = &shown(&store, &["--tail"])["tail"];
    let own = &list(&tail["series"])[0];
    assert_eq!(own["model"], Value::Null);
    assert!(own["refusal"].as_str().unwrap().contains("fewer than 40 intervals"), "{own}");
    assert!(whole(&own["max_ns"]) > 6_000, "{own}");
    let text = store.run(&["show", "r", "--tail"]).out;
    assert!(text.contains("cpu0: none over") && text.contains("no level"), "{text}");
}

#[test]
fn how_long_to_run_follows_from_what_is_over_the_limit() {
    let store = store();
    let found = shown(&store, &["--how-long", "p99<50us"]);
    assert!(list(&found["how_long"])[0]["needed_s"].as_f64().unwrap() > 0.0, "{found}");
    let never = shown(&store, &["--how-long", "p99<4us"]);
    assert_eq!(list(&never["how_long"])[0]["needed_s"], Value::Null);
    for (statement, why) in [("p99", "is not a gate"), ("missed=0", "missed periods are counted")] {
        let said = store.run(&["show", "r", "--how-long", statement]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(why), "{said:?}");
    }
}

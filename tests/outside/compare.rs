//! `show --intervals` of made-up runs.

use serde_json::Value;

use super::support::{Said, Store, list};

/// Runs of the fake probe under these names.
fn made(store: &Store, names: &[&str]) {
    for name in names {
        let said = store.run(&[
            "run",
            "fake",
            "--warmup",
            "0s",
            "--cpus",
            "0",
            "--interval",
            "10us",
            "--unpaced",
            "--samples",
            "20000",
            "--quiet",
            "--name",
            name,
        ]);
        assert_eq!(said.code, Some(0), "{said:?}");
    }
}

fn json(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

#[test]
fn intervals_are_printed_where_they_are_asked_for() {
    let store = Store::new();
    made(&store, &["r"]);
    let plain = store.run(&["show", "r"]);
    assert!(!plain.out.contains("95 % interval"), "{plain:?}");
    let said = store.run(&["show", "r", "--intervals"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.out.contains("us, 95 % interval"), "{said:?}");
    assert!(store.show("r").get("intervals").is_none());
    let shown = json(&store.run(&["show", "r", "--intervals", "--json"]));
    assert_eq!(shown["name"], "r", "the members of the record stay");
    let all = list(&shown["intervals"]["series"][0]["percentiles"]);
    let names: Vec<&str> = all.iter().map(|own| own["percentile"].as_str().unwrap()).collect();
    assert_eq!(names, ["50", "90", "99", "99.9", "99.99", "99.999"]);
    for own in all {
        let ns = |name: &str| own[name].as_u64();
        assert!(ns("low_ns") <= ns("value_ns"), "{own}");
        assert_eq!(own["high_ns"].is_null(), own["backing"] == "too_few", "{own}");
    }
}

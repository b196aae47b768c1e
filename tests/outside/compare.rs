//! `tardy compare` and `show --intervals` of made-up runs.

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
    assert!(!plain.out.contains("95% interval"), "{plain:?}");
    let said = store.run(&["show", "r", "--intervals"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.out.contains("us, 95% interval"), "{said:?}");
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

#[test]
fn one_run_beside_another_is_inconclusive_and_three_of_each_are_judged() {
    let store = Store::new();
    made(&store, &["a1", "a2", "a3", "b1", "b2", "b3"]);
    let said = store.run(&["compare", "a1", "b1"]);
    assert_eq!((said.code, said.err.as_str()), (Some(3), ""), "{said:?}");
    assert!(said.out.contains("described, not judged"), "{said:?}");
    let found = json(&store.run(&["compare", "a1", "b1", "b2", "--json"]));
    assert_eq!(found["verdict"], "inconclusive");
    assert_eq!(list(&found["comparisons"]).len(), 2, "each beside the first");
    assert_eq!(list(&found["runs"]).len(), 3);
    // The fake probe makes the same samples each time: sides are equal.
    let said =
        store.run(&["compare", "a1", "a2", "a3", "--vs", "b1", "b2", "b3", "--margin", "50%"]);
    assert!(said.out.contains("95% interval"), "{said:?}");
    let json = json(&store.run(&["compare", "a1", "a2", "a3", "--vs", "b1", "b2", "b3", "--json"]));
    let rows = list(&json["comparisons"][0]["figures"]);
    let figures: Vec<&str> = rows.iter().map(|row| row["figure"].as_str().unwrap()).collect();
    assert_eq!(figures, ["p50", "p99", "p99.9"]);
    for row in rows {
        assert_eq!((&row["series"], &row["pairs"]), (&"cpu0".into(), &3.into()), "{row}");
        assert!(row["low"].as_f64() <= row["ratio"].as_f64(), "{row}");
        assert!(row["ratio"].as_f64() <= row["high"].as_f64(), "{row}");
    }
}

#[test]
fn what_cannot_be_compared_is_an_error_that_names_it() {
    let store = Store::new();
    made(&store, &["a", "b"]);
    for (arguments, says) in [
        (&["compare", "a"][..], "one run is not enough"),
        (&["compare", "a", "a"], "a is listed twice"),
        (&["compare", "a", "nosuch"], "no run \"nosuch\""),
        (&["compare", "a", "b", "--figures", "p95"], "unknown metric \"p95\""),
        (&["compare", "a", "b", "--margin", "5"], "5 has no unit; write a share as 5%"),
    ] {
        let said = store.run(arguments);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{arguments:?}: {said:?}");
        assert!(said.err.contains(says), "{arguments:?}: {said:?}");
    }
}

#[test]
fn an_invalid_run_is_compared_on_request_only() {
    let store = Store::new();
    made(&store, &["a", "b"]);
    let record = store.runs().join("b/run.json");
    let text = std::fs::read_to_string(&record).unwrap();
    assert!(text.contains("\"validity\": \"valid\"") || text.contains("\"weakened\""), "{text}");
    let text = text.replacen("\"validity\": \"valid\"", "\"validity\": \"invalid\"", 1);
    let text = text.replacen("\"validity\": \"weakened\"", "\"validity\": \"invalid\"", 1);
    std::fs::write(&record, text).unwrap();
    let said = store.run(&["compare", "a", "b"]);
    assert_eq!((said.code, said.out.as_str()), (Some(4), ""), "{said:?}");
    assert!(said.err.contains("b is invalid") && said.err.contains("--even-invalid"), "{said:?}");
    let said = store.run(&["compare", "a", "b", "--even-invalid"]);
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(said.out.contains("b is invalid: tardy show b"), "{said:?}");
}

#[test]
fn gates_decide_the_exit_code_and_say_why() {
    let store = Store::new();
    made(&store, &["r"]);
    let gates = |words: &[&str]| {
        let gates: Vec<&str> = words.iter().flat_map(|gate| ["--gate", *gate]).collect();
        store.run(&[&["show", "r"][..], &gates].concat())
    };
    // The fake probe has 2 to 6 us, and one in a thousand up to 100 us more.
    let said = gates(&["max<1ms", "missed=0"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("1ms reached by none of 20,000"), "{said:?}");
    let said = gates(&["max<1ms", "max<5us"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    // Of 20,000 samples 0.2 lie beyond.
    let said = gates(&["p99.999<=1s", "max<1ms"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.out.contains("inconclusive"), "{said:?}");
    let said = gates(&["p99.999<=1s", "max<5us"]);
    assert_eq!(said.code, Some(1), "no over inconclusive: {said:?}");
    for (gate, says) in [
        ("p95<=1us", "unknown metric \"p95\""),
        ("p99<=80", "80 has no unit"),
        ("cpu9:max<1ms", "unknown series cpu9; there are cpu0"),
    ] {
        let said = gates(&[gate]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{gate}: {said:?}");
        assert!(said.err.contains(says), "{gate}: {said:?}");
    }
    let shown = json(&store.run(&["show", "r", "--json", "--gate", "max<5us"]));
    assert_eq!(shown["gates"][0]["verdict"], "fail");
    let said = store.run(&["compare", "r", "r", "--gate", "p99<=1us"]);
    assert!(said.err.contains("not a gate of a comparison"), "{said:?}");
}

#[test]
fn a_run_with_gates_says_beforehand_what_it_can_never_pass() {
    let store = Store::new();
    let run = ["run", "fake", "--warmup", "0s", "--cpus", "0", "--unpaced", "--samples", "500"];
    let with = |gate: &str, more: &[&str]| {
        store.run(&[&run[..], &["--interval", "10us", "--gate", gate], more].concat())
    };
    let said = with("p99.9<=1us", &["--name", "r"]);
    assert!(matches!(said.code, Some(1 | 3)), "{said:?}");
    assert!(said.err.contains("can fail, but never pass"), "{said:?}");
    let said = with("max<1s", &["--json"]);
    assert_eq!((said.code, &json(&said)["gates"][0]["verdict"]), (Some(0), &"pass".into()));
    assert!(!said.err.contains("never pass"), "{said:?}");
    // Before anything is measured.
    let said = with("cpu7:max<1s", &["--name", "never"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(!store.runs().join("never").exists());
}

#[test]
fn a_run_stands_beside_a_published_table_and_nothing_is_judged() {
    let store = Store::new();
    let timer = ["run", "timer", "--cpus", "0", "--warmup", "0s", "--duration", "0.2s"];
    let said = store.run(&[&timer[..], &["--policy", "other", "--quiet", "--name", "r"]].concat());
    assert!(matches!(said.code, Some(0 | 4)), "{said:?}");
    made(&store, &["f"]);
    let beside = |run: &str, id: &str, more: &[&str]| {
        let words = ["compare", run, "--even-invalid", "--published", id];
        store.run(&[&words[..], more].concat())
    };
    let record = store.show("r");
    let said = beside("r", "latstat-2007", &["--json"]);
    let found = json(&said);
    let (own, there) = (&found["measured"][0], &found["published"][0]);
    let max_ns = record["series"][0]["max"].as_f64();
    assert_eq!(own["figures_ns"]["max"].as_f64(), max_ns, "{said:?}");
    assert_eq!(there["figures_ns"]["max"], 32_000.0);
    let method = list(&found["method"]);
    let policy = method.iter().find(|own| own["what"] == "policy").unwrap();
    assert_eq!((&policy["run"], &policy["published"]), (&"other".into(), &Value::Null));
    let text = beside("r", "latstat-2007", &[]).out;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("r beside latstat-2007: Solaris"), "{text}");
    assert!(text.contains("policy: here other; there not stated"), "{text}");
    assert!(text.contains("nothing is judged"), "{text}");
    for (run, id, says) in [
        ("r", "latstat-2008", "\"latstat-2008\": no such table"),
        ("r", "latstat-2008", "latstat-2007"),
        ("f", "latstat-2007", "f is a run of fake"),
        ("r", "receive-2012", "tables for timer: cyclictest-hackbench-2012"),
    ] {
        let said = beside(run, id, &[]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.err.contains(says), "{says}: {said:?}");
    }
    let all = store.run(&["compare", "--published", "list"]);
    assert_eq!(all.code, Some(0), "{all:?}");
    assert!(all.out.lines().any(|line| line.starts_with("zeromq-rt-2008 ")), "{all:?}");
}

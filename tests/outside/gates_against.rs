//! `--gate 'worse<5%@p99 vs RUN'`: runs compared with others, on every verb that has gates. Samples
//! are made up, so that every verdict is always the same.

use std::fs;

use serde_json::Value;

use super::support::{Said, Store, list, page_data};

const MADE: [&str; 9] =
    ["run", "fake", "--cpus", "0", "--warmup", "0s", "--policy", "other", "--distribution"];

/// Ten seconds of samples from this distribution.
fn made(store: &Store, name: &str, distribution: &str, more: &[&str]) -> Said {
    let rest = [distribution, "--duration", "10s", "--name", name, "--quiet"];
    store.run(&[&MADE[..], &rest, more].concat())
}

/// p99 is 28 us in e1 to e3, and 15.8 us in p1 to p3.
fn store() -> Store {
    let store = Store::new();
    for seed in 1..=3 {
        for (name, kind) in [("e", "exponential:"), ("p", "pareto:index=4,")] {
            let said = made(&store, &format!("{name}{seed}"), &format!("{kind}seed={seed}"), &[]);
            assert_eq!(said.code, Some(0), "{said:?}");
        }
    }
    store
}

#[test]
fn compare_holds_the_runs_of_b_against_those_behind_vs() {
    let store = store();
    let gate = |runs: &[&str], gate: &str| {
        store.run(&[&["compare"], runs, &["--gate", gate, "--json"]].concat())
    };
    for (runs, expression, code, verdict) in [
        (["e1", "e2", "e3"], "worse<5%@p99 vs p1,p2,p3", 1, "fail"),
        (["p1", "p2", "p3"], "worse<5%@p99 vs e1,e2,e3", 0, "pass"),
        (["p1", "p2", "p3"], "worse<5%@p99 vs e1", 3, "inconclusive"),
    ] {
        let said = gate(&runs, expression);
        assert_eq!(said.code, Some(code), "{expression}: {said:?}");
        let found: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(list(&found["gates"])[0]["verdict"], verdict, "{said:?}");
    }
    let said = gate(&["e1", "e2"], "worse<5%@p99 vs e1,e2");
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("all runs of B stand behind vs"), "{said:?}");
}

#[test]
fn one_run_against_another_says_what_it_would_take() {
    let store = store();
    let gate = ["--gate", "worse<5%@p99 vs p1"];
    let shown = store.run(&[&["show", "e1"][..], &gate].concat());
    assert_eq!(shown.code, Some(3), "{shown:?}");
    assert!(shown.out.contains("it takes 3 of each"), "{shown:?}");
    let measured = made(&store, "new", "exponential", &gate);
    assert_eq!(measured.code, Some(3), "{measured:?}");
    let warned = measured.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(warned.contains("can be neither passed nor failed: 1 run against 1 run"), "{warned}");
    let exported = store.run(&[&["export", "e1", "--to", "tap"][..], &gate].concat());
    assert_eq!(exported.code, Some(3), "{exported:?}");
}

#[test]
fn all_repeats_of_a_cell_are_held_against_the_base() {
    let store = store();
    let file = store.path().join("plan.toml");
    let plan = "name = \"p\"\nprobe = \"fake\"\nrepeat = 3\n[run]\ncpus = \"0\"\nwarmup = \"0s\"\n\
                policy = \"other\"\ndistribution = \"exponential\"\nduration = \"10s\"\n\
                [[load]]\nname = \"a\"\nuse = []\n";
    fs::write(&file, plan).unwrap();
    let run = ["plan", file.to_str().unwrap(), "--name=held", "--quiet", "--json", "--gate"];
    let said = store.run(&[&run[..], &["worse<5%@p99 vs p1,p2,p3"]].concat());
    assert_eq!(said.code, Some(1), "{said:?}");
    let found: Value = serde_json::from_str(&said.out).unwrap();
    let gates = list(&found["gates"]);
    assert_eq!((gates.len(), &gates[0]["verdict"]), (1, &"fail".into()), "{said:?}");
    let page = store.path().join("x.html");
    let said = store.run(&["report", "held", "--pages=0", "-o", page.to_str().unwrap()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let data = page_data(&fs::read_to_string(page).unwrap());
    let remark = data["matrix"]["remarks"][0].as_str().unwrap();
    assert!(remark.contains("\"worse<5%@p99 vs p1,p2,p3\" holds all repeats"), "{remark}");
}

#[test]
fn a_base_that_decides_nothing_is_refused_before_anything_is_measured() {
    let store = Store::new();
    assert_eq!(made(&store, "e", "exponential", &[]).code, Some(0));
    let timer = ["run", "timer", "--gate", "worse<5%@p99 vs e", "--name", "new"];
    let record = store.runs().join("e/run.json");
    let text = fs::read_to_string(&record).unwrap();
    for (gate, says) in [
        ("worse<5%@p99 vs nosuch", "no run \"nosuch\""),
        ("worse<5%@p99", "say worse than which run"),
        ("worse<5%@p95 vs e", "unknown metric \"p95\""),
        ("worse@p99 vs e", "use worse<5%@p99"),
        ("cpu9:worse<5%@p99 vs e", "unknown series cpu9"),
    ] {
        let said = made(&store, "new", "exponential", &["--gate", gate]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{gate}: {said:?}");
        assert!(said.err.contains(says), "{gate}: {said:?}");
    }
    let said = store.run(&timer);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("e is a run of fake, this is one of timer"), "{said:?}");
    let invalid = text.replacen("\"validity\": \"valid\"", "\"validity\": \"invalid\"", 1);
    let invalid = invalid.replacen("\"validity\": \"weakened\"", "\"validity\": \"invalid\"", 1);
    fs::write(&record, invalid).unwrap();
    let said = made(&store, "new", "exponential", &["--gate", "worse<5%@p99 vs e"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("e is invalid"), "{said:?}");
    assert!(!store.runs().join("new").exists(), "nothing was measured");
}

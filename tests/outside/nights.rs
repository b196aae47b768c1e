//! `--gate 'worse<5%@p99 vs baseline'`: a run compared with the nights before in the store. The
//! nights are copies of a run whose p99 is rewritten, so that every verdict is always the same.

use std::fs;

use serde_json::{Value, json};

use super::support::{Said, Store, list};

const GATE: [&str; 2] = ["--gate", "worse<5%@p99 vs baseline"];

/// Ten seconds of made-up samples.
fn made(store: &Store, name: &str, more: &[&str]) -> Said {
    let run = "run fake --cpus 0 --warmup 0s --policy other --distribution exponential:seed=1 \
               --duration 10s --quiet --name";
    let words: Vec<&str> =
        run.split_whitespace().chain([name]).chain(more.iter().copied()).collect();
    store.run(&words)
}

fn record(store: &Store, name: &str) -> Value {
    let text = fs::read_to_string(store.runs().join(name).join("run.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Copies of the record of `name`, a night apart and before it, whose p99 is that times `ratio`,
/// give or take `spread`; `change` changes the rest of each.
fn nights_before(
    store: &Store,
    name: &str,
    (count, ratio, spread): (i64, f64, f64),
    change: impl Fn(i64, &mut Value),
) {
    let own = record(store, name);
    let start: jiff::Timestamp = own["started_at"].as_str().unwrap().parse().unwrap();
    for night in 1..=count {
        let mut past = own.clone();
        let id = format!("{name}-{night:03}");
        let noise = (night * 37 % 11 - 5) as f64 / 3.3;
        let factor = ratio * (spread * noise).exp();
        let time = start - jiff::SignedDuration::from_hours(24 * night);
        (past["id"], past["name"]) = (json!(id), json!(id));
        past["started_at"] = json!(time.to_string());
        for place in ["/series/0/percentiles/99", "/series/0/scheduled/percentiles/99"] {
            if let Some(ns) = past.pointer_mut(place) {
                *ns = json!((ns.as_f64().unwrap() * factor) as i64);
            }
        }
        change(night, &mut past);
        let place = store.runs().join(&id);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("run.json"), past.to_string()).unwrap();
    }
}

/// The exit code, and the only result of the gates.
fn shown(store: &Store, name: &str, gate: &str) -> (Option<i32>, Value) {
    let said = store.run(&["show", name, "--json", "--gate", gate]);
    let found: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    (said.code, list(&found["gates"])[0].clone())
}

#[test]
fn a_night_passes_or_fails_by_the_nights_before_and_few_decide_nothing() {
    for (nights, code, verdict, says) in [
        ((30, 1.0, 0.01), 0, "pass", "of 30 nights before, which differ by 1"),
        ((30, 0.8, 0.01), 1, "fail", "x1.2"),
        ((7, 1.0, 0.01), 3, "inconclusive", "7 nights before are alike, and it takes 8"),
        ((30, 1.0, 0.05), 3, "inconclusive", "of unchanged nights pass 5%; with these, 80% pass 1"),
    ] {
        let store = Store::new();
        assert_eq!(made(&store, "tonight", &[]).code, Some(0));
        nights_before(&store, "tonight", nights, |_, _| ());
        let (found, gate) = shown(&store, "tonight", GATE[1]);
        assert_eq!((found, &gate["verdict"]), (Some(code), &json!(verdict)), "{nights:?}: {gate}");
        assert!(gate["reason"].as_str().unwrap().contains(says), "{nights:?}: {gate}");
    }
}

#[test]
fn what_is_not_alike_does_not_count_and_is_named() {
    let store = Store::new();
    assert_eq!(made(&store, "tonight", &[]).code, Some(0));
    nights_before(&store, "tonight", (40, 1.0, 0.01), |night, past| match night {
        1..=2 => past["validity"] = json!("invalid"),
        3..=5 => past["facts"]["hostname"] = json!("elsewhere"),
        6..=9 => past["setup"]["found"]["policy"] = json!("fifo 7"),
        20.. => past["facts"]["kernel"] = json!("6.1-old"),
        _ => {}
    });
    let (_, gate) = shown(&store, "tonight", GATE[1]);
    let reason = gate["reason"].as_str().unwrap();
    assert!(reason.contains("of 31 nights before"), "an earlier kernel counts: {reason}");
    let out = "left out: 2 invalid runs, 3 runs of another machine, 4 runs under other conditions \
               (policy)";
    assert!(reason.ends_with(out), "{reason}");
    let (_, gate) = shown(&store, "tonight", "worse<5%@p99 vs baseline:10");
    let reason = gate["reason"].as_str().unwrap();
    assert!(reason.contains("of 10 nights before") && reason.contains("21 nights that are older"));
    // One of these took turns with that of tonight.
    nights_before(&store, "tonight", (40, 1.0, 0.01), |night, past| {
        past["facts"]["kernel"] = json!(format!("6.{}", night % 2));
    });
    nights_before(&store, "tonight-001", (0, 1.0, 0.01), |_, _| ());
    let said = store.run(&["show", "tonight-001", "--json", GATE[0], GATE[1]]);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    let reason = list(&found["gates"])[0]["reason"].as_str().unwrap();
    assert!(reason.contains("20 nights of other kernels in turn (6.0)"), "{reason}");
}

#[test]
fn a_change_of_level_cuts_off_the_nights_before_it() {
    let store = Store::new();
    assert_eq!(made(&store, "tonight", &[]).code, Some(0));
    nights_before(&store, "tonight", (90, 1.0, 0.01), |night, past| {
        for place in ["/series/0/percentiles/99", "/series/0/scheduled/percentiles/99"] {
            if let Some(ns) = past.pointer_mut(place).filter(|_| night > 40) {
                *ns = json!(ns.as_i64().unwrap() * 3);
            }
        }
    });
    let (code, gate) = shown(&store, "tonight", GATE[1]);
    let reason = gate["reason"].as_str().unwrap();
    assert!(code == Some(0) && reason.contains("of 40 nights before"), "{gate}");
    assert!(reason.contains("50 nights before the change of "), "{reason}");
}

#[test]
fn every_verb_with_gates_takes_it_or_says_which_does() {
    let store = Store::new();
    assert_eq!(made(&store, "tonight", &[]).code, Some(0));
    nights_before(&store, "tonight", (30, 1.0, 0.01), |_, _| ());
    // It is of the night that `tonight` is of.
    let measured = made(&store, "again", &GATE);
    assert_eq!(measured.code, Some(0), "{measured:?}");
    for format in ["tap", "junit"] {
        let said = store.run(&[&["export", "tonight", "--to", format][..], &GATE].concat());
        assert!(said.code == Some(0) && said.out.contains("baseline"), "{said:?}");
    }
    let said = store.run(&[&["compare", "tonight", "again"][..], &GATE].concat());
    assert!(said.code == Some(0) && said.out.contains("of 30 nights"), "{said:?}");
    let said = store.run(&[&["compare", "tonight"][..], &GATE].concat());
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("`tardy show tonight --gate"), "{said:?}");
    let said = store.run(&["show", "tonight", "--gate", "worse<5%@max vs baseline"]);
    assert!(said.code == Some(2) && said.err.contains("p50, p99 and p99.9"), "{said:?}");
    let said = store.run(&["show", "tonight", "--gate", "cpu9:worse<5%@p99 vs baseline"]);
    assert!(said.code == Some(2) && said.err.contains("unknown series cpu9"), "{said:?}");
    let said = store.run(&["lab", "run", "--suite", "quick", GATE[0], GATE[1]]);
    assert!(said.code == Some(2) && said.err.contains("tardy plan"), "{said:?}");
}

#[test]
fn all_repeats_of_a_cell_are_one_night() {
    let store = Store::new();
    let file = store.path().join("plan.toml");
    let plan = "name = \"p\"\nprobe = \"fake\"\nrepeat = 3\n\
                gates = [\"worse<5%@p99 vs baseline\"]\n\
                [run]\ncpus = \"0\"\nwarmup = \"0s\"\npolicy = \"other\"\n\
                distribution = \"exponential:seed=1\"\nduration = \"10s\"\n\
                [[load]]\nname = \"a\"\nuse = []\n";
    fs::write(&file, plan).unwrap();
    assert_eq!(made(&store, "tonight", &[]).code, Some(0));
    nights_before(&store, "tonight", (30, 1.0, 0.01), |_, _| ());
    let plan = ["plan", file.to_str().unwrap(), "--name=held", "--quiet", "--json"];
    let said = store.run(&plan);
    let found: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    let gate = &list(&found["gates"])[0];
    assert_eq!((said.code, &gate["verdict"]), (Some(0), &json!("pass")), "{gate}");
    let said = store.run(&["export", "held", "--to", "tap"]);
    assert!(said.code == Some(0) && said.out.contains("baseline"), "{said:?}");
    // The nights of a cell are those that are like the last run of the same words.
    let said = store.run(&["plan", file.to_str().unwrap(), "--check"]);
    let words = said.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.code == Some(0) && words.contains("a: p99 of cpu0 differed by 1"), "{said:?}");
    assert!(words.contains("in the last 31 nights; 80% of unchanged nights pass from "), "{words}");
    let base = ["--check", "--gate", "worse<5%@p99 vs tonight,tonight-001,tonight-002"];
    let said = store.run(&[&["plan", file.to_str().unwrap()][..], &base].concat());
    let words = said.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("needs about 3 runs per side, each of another night (3 and 3"),
        "{words}"
    );
}

#[test]
fn a_plan_without_a_past_says_so() {
    let store = Store::new();
    let file = store.path().join("plan.toml");
    let plan = "name = \"p\"\nprobe = \"fake\"\ngates = [\"worse<5%@p99 vs baseline\"]\n[run]\n\
                cpus = \"0\"\nduration = \"1s\"\n[[load]]\nname = \"a\"\nuse = []\n";
    fs::write(&file, plan).unwrap();
    let said = store.run(&["plan", file.to_str().unwrap(), "--check"]);
    let words = said.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("no past of 1 planned cell is in this store"), "{words}");
}

//! Runs whose tail is known (`tardy run fake --distribution`): `tardy show --tail` has levels that
//! hold the truth, or refuses. Time is simulated and seeds are fixed, so every answer is always the
//! same.

use serde_json::Value;

use super::support::{Store, list, whole};

/// What `show --tail` says of the only series, of `length` with a sample every `interval_ms`.
fn tail(store: &Store, distribution: &str, length: &str, interval_ms: u64) -> Value {
    let interval = format!("{interval_ms}ms");
    let what = ["run", "fake", "--warmup", "0s", "--cpus", "0", "--distribution", distribution];
    let rest = ["--duration", length, "--interval", &interval, "--name", "r", "--quiet"];
    let said = store.run(&[&what[..], &rest, &["--policy", "other"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let shown = store.run(&["show", "last", "--tail", "--json"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    list(&shown["tail"]["series"])[0].clone()
}

/// For how many seeds from 1 on the run of a minute has a model, and of how many of these every
/// interval holds the level that one sample in that time exceeds on average.
fn held(distribution: &str, seeds: u64, upper_us: impl Fn(f64) -> f64) -> (usize, usize) {
    let store = Store::new();
    let of = |seed| tail(&store, &format!("{distribution}seed={seed}"), "60s", 1);
    let models: Vec<Value> =
        (1..=seeds).map(of).map(|own| own["model"].clone()).filter(Value::is_object).collect();
    let holds = |level: &Value| {
        let samples = level["period_s"].as_f64().unwrap() * 1e3;
        let truth_ns = (1e3 * upper_us(1.0 / samples)) as i64;
        let high_ns = level["high_ns"].as_i64().unwrap_or(i64::MAX);
        whole(&level["low_ns"]) <= truth_ns && truth_ns <= high_ns
    };
    let all_hold = |model: &&Value| list(&model["levels"]).iter().all(holds);
    (models.len(), models.iter().filter(all_hold).count())
}

#[test]
fn levels_of_an_exponential_tail_hold_the_true_ones_for_most_seeds() {
    let (models, right) = held("exponential:", 5, |share| 5.0 - 5.0 * share.ln());
    assert_eq!((models, right), (4, 3), "one is refused, one too low");
}

#[test]
fn levels_of_a_slowly_falling_power_and_of_a_bounded_tail_hold_the_true_ones() {
    let pareto = held("pareto:index=10,", 2, |share| 5.0 * share.powf(-0.1));
    assert_eq!(pareto, (2, 2));
    let bounded = held("bounded:shape=0.3,", 3, |share| 25.0 - 20.0 * share.powf(0.3));
    assert_eq!(bounded, (2, 2), "one is refused");
}

#[test]
fn of_two_kinds_a_frequent_second_one_has_levels_and_a_rare_one_is_refused() {
    // Beyond 100 us the first kind, of 5 us on average, has no part.
    let of_second = |share: f64| 50.0 - 100.0 * (50.0 * share).ln();
    assert_eq!(held("two-kinds:one-in=50,", 1, of_second), (1, 1));
    let store = Store::new();
    let rare = tail(&store, "two-kinds:one-in=10000", "60s", 1);
    assert_eq!(rare["model"], Value::Null, "{rare}");
    assert!(rare["refusal"].as_str().unwrap().contains("too heavy"), "{rare}");
}

#[test]
fn a_tail_without_a_mean_is_refused_and_the_same_seed_has_the_same_answer() {
    let store = Store::new();
    let heavy = tail(&store, "pareto:index=1", "60s", 1);
    assert_eq!(heavy["model"], Value::Null, "{heavy}");
    assert!(heavy["refusal"].as_str().unwrap().contains("too heavy"), "{heavy}");
    assert_eq!(tail(&store, "pareto:index=1,seed=1", "60s", 1), heavy);
}

#[test]
fn an_hour_of_simulated_time_is_recorded_as_an_hour() {
    let store = Store::new();
    let own = tail(&store, "bounded:shape=0.3", "1h", 10);
    let hour = &list(&own["model"]["levels"])[0];
    assert_eq!(hour["is_extrapolation"], false, "{own}");
    let record = store.show("r");
    assert_eq!(whole(&record["duration_ns"]), 3_600_000_000_000);
    assert_eq!(whole(&list(&record["series"])[0]["count"]), 360_000);
    let log = std::fs::read_to_string(store.runs().join("r/series.hlog")).unwrap();
    let intervals: Vec<&str> = log.lines().filter(|line| line.starts_with("Tag=")).collect();
    assert_eq!(intervals.len(), 1_000, "a thousandth of the run each");
}

#[test]
fn a_distribution_is_for_made_up_samples_alone() {
    let store = Store::new();
    for (arguments, says) in [
        (&["timer", "--distribution", "exponential"][..], "or measure fake"),
        (&["timer", "--unpaced"], "or measure fake"),
        (&["fake", "--distribution", "normal"], "there are exponential, pareto"),
        (&["fake", "--distribution", "exponential", "--load", "idle"], "no load works"),
    ] {
        let said = store.run(&[&["run"], arguments].concat());
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(says), "{said:?}");
    }
}

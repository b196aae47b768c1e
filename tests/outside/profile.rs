//! `--profile`: a function that burns a known share of a CPU has to come back with that share, and
//! perf has to agree about whole seconds of the machine.

use std::{
    collections::HashMap,
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{JoinHandle, spawn},
};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use super::{
    attach_response::sleep_until_next,
    chance::is_long,
    support::{Store, codes, eventually, is_root, list, signal, skip, whole, with_little_time},
};

/// Computes without calling anything, so that it is the innermost function of its samples.
#[inline(never)]
fn burns_for_the_profile_test(mut value: u64) -> u64 {
    let mut turn = 0_u32;
    while turn < 20_000 {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
        turn += 1;
    }
    value
}

fn now_ns(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// A thread that burns for half of each 10 ms until this ends: the moment after each time, and the
/// CPU time so far, ns.
struct Burner {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<(i64, i64)>>,
}

impl Burner {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        Self { stop, thread: spawn(move || burn(&stops)) }
    }

    fn end(self) -> Vec<(i64, i64)> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn burn(stop: &AtomicBool) -> Vec<(i64, i64)> {
    let (mut value, mut points) = (1_u64, Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let until_ns = now_ns(ClockId::ThreadCPUTime) + 5_000_000;
        while now_ns(ClockId::ThreadCPUTime) < until_ns {
            value = burns_for_the_profile_test(value);
        }
        points.push((now_ns(ClockId::Monotonic), now_ns(ClockId::ThreadCPUTime)));
        sleep_until_next(10_000_000, 0);
    }
    assert_ne!(value, 0);
    points
}

fn report_of(store: &Store) -> Value {
    serde_json::from_str(&store.run(&["profile", "r", "--json"]).out).unwrap()
}

/// The function of the burner in a report.
fn burnt(report: &Value) -> Option<&Value> {
    let is_it =
        |symbol: &&Value| symbol["name"].as_str().unwrap().contains("burns_for_the_profile_test");
    list(&report["symbols"]).iter().find(is_it)
}

fn profile_of(store: &Store, name: &str) -> Value {
    let text = fs::read_to_string(store.runs().join(name).join("profile.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A run of some seconds with a profile; `None` if none can be had, which is said.
fn profiled(store: &Store, more: &[&str]) -> Option<Value> {
    let asked = ["run", "--warmup", "200ms", "--policy", "other", "--trace", "off", "--name", "r"];
    let said = store.run(&[&asked[..], more].concat());
    if !is_root() && said.code == Some(2) {
        skip(&format!("no right to sample: {}", said.err.trim()));
        return None;
    }
    assert!(matches!(said.code, Some(0)), "{said:?}");
    Some(profile_of(store, "r"))
}

#[test]
fn a_function_that_burns_is_in_the_profile_and_each_sample_in_one_stack() {
    let burner = Burner::start();
    // A machine may give the burner no CPU for all this time, and then has no sample of it: so it
    // is tried for longer.
    let tried = with_little_time(|duration| {
        let store = Store::new();
        let asked = ["--profile=499", "--duration", duration];
        if profiled(&store, &asked).is_none() {
            return Some(None);
        }
        let report = report_of(&store);
        burnt(&report).is_some().then_some(Some((store, report)))
    });
    burner.end();
    let Some((store, report)) = tried else { return };
    let found = burnt(&report).unwrap();
    assert!(whole(&found["samples"]) > 0, "{found}");
    assert!(found["total"].as_f64() >= found["own"].as_f64(), "{found}");
    for cpu in list(&report["cpus"]) {
        let parts = ["idle", "user", "kernel", "softirq", "hardirq"].map(|part| cpu[part].as_f64());
        let sum: f64 = parts.into_iter().flatten().sum();
        assert!((sum - 100.0).abs() < 0.01, "{cpu}");
    }
    let folded = store.run(&["export", "r", "--to", "folded"]).out;
    let counts = folded.lines().map(|line| number(line.rsplit_once(' ').unwrap().1));
    let counted: i64 = counts.sum();
    assert_eq!(counted, whole(&report["samples"]), "each sample is in one stack");
    assert!(folded.contains("burns_for_the_profile_test"), "{folded}");
    let file = store.path().join("r.pb.gz");
    let to = ["export", "r", "--to", "pprof"];
    let said = store.run(&[&to[..], &["-o", file.to_str().unwrap()]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(fs::read(&file).unwrap()[..2], [0x1f, 0x8b], "gzip");
    let said = store.run(&to);
    assert!(said.code == Some(2) && said.err.contains("-o FILE"), "it is binary: {said:?}");
    assert!(codes(&store.show("r")).contains(&"profiled"));
    let shown = store.run(&["profile", "r"]).out;
    assert!(shown.contains("The profile itself took"), "{shown}");
}

#[test]
#[ignore = "live: twin profile_sums::tests::replayed::a_known_share_is_that_share_of_the_samples"]
fn a_function_that_burns_a_known_share_shows_with_that_share() {
    let store = Store::new();
    let burner = Burner::start();
    let profile = profiled(&store, &["--profile=499", "--duration", "3s"]);
    let points = burner.end();
    let Some(profile) = profile else { return };
    let (from, until) = (whole(&profile["from_ns"]), whole(&profile["until_ns"]));
    let within: Vec<_> = points.iter().filter(|(at, _)| (from..=until).contains(at)).collect();
    let burned = within[within.len() - 1].1 - within[0].1;
    let share = burned as f64 / (until - from) as f64 * 100.0;
    let report = report_of(&store);
    let found = burnt(&report).unwrap();
    // By the number of samples, since a share is of those that came: in time that a host takes none
    // do, and of the time that was burnt this much can be missing.
    let cpus = list(&report["cpus"]).len() as f64;
    let due = 499.0 * (until - from) as f64 / 1e9;
    let own = whole(&found["samples"]) as f64 / due * 100.0;
    let lacking = (cpus - whole(&report["samples"]) as f64 / due).max(0.0) * 100.0;
    let is_it = (share - 8.0 - lacking..share + 8.0).contains(&own);
    assert!(is_it, "{own}% of a CPU in it, {share}% burnt, {lacking}% lacking: {found}");
}

fn number(text: &str) -> i64 {
    text.parse().unwrap()
}

#[test]
fn a_profile_that_cannot_be_had_or_is_not_there_is_an_error_with_the_remedy() {
    let store = Store::unprivileged();
    let said = store.run(&["run", "--profile", "--duration", "1s", "--name", "r"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("--profile is not available: no right to trace"), "{said:?}");
    assert!(said.err.contains("CAP_PERFMON"), "{said:?}");
    assert!(!store.runs().join("r").exists(), "nothing was measured");
    store.made_up("10");
    for wanted in [&["profile"][..], &["export", "--to", "folded"]] {
        let said = store.run(wanted);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains("measure one with `tardy run --profile`"), "{said:?}");
    }
    let said = store.run(&["run", "--profile=0"]);
    assert!(said.code == Some(2) && said.err.contains("1..=1000"), "{said:?}");
    let gated = store.run(&["export", "--to", "folded", "--gate", "max<1s"]);
    assert!(gated.code == Some(2) && gated.err.contains("--gate is not supported"), "{gated:?}");
}

#[test]
fn a_profile_whose_numbers_lead_nowhere_is_named_and_none_is_believed() {
    let store = Store::new();
    store.made_up("10");
    let run = store.runs().join("r");
    let good = json!({
        "version": 1, "event": "cpu-clock", "unit": "ns", "hz": 99, "from_ns": 0,
        "until_ns": 1_000_000_000, "tells_interrupts": true, "samples": 2, "lost": 0, "other": 0,
        "cost": {"samples": 2, "program_ns": 10, "helper_ns": 10}, "modules": ["[kernel]"],
        "functions": ["a\u{1b}[31m", "b"], "frames": [[0, 0], [1, 0]], "nodes": [[0, 0], [1, 1]],
        "tasks": [{"name": "t", "pid": 1, "tid": 1}], "rows": [[0, 0, "kernel", 2, 2, 20]],
    });
    let said = |profile: &Value| {
        fs::write(run.join("profile.json"), profile.to_string()).unwrap();
        store.run(&["profile"])
    };
    let shown = said(&good);
    assert!(shown.code == Some(0) && !shown.out.contains('\u{1b}'), "{shown:?}");
    for (field, bad, words) in [
        ("frames", json!([[7, 0]]), "names function 7, of 2"),
        ("nodes", json!([[2, 0], [0, 1]]), "node 0 before its caller"),
        ("nodes", json!([[0, 9]]), "names frame 9, of 2"),
        ("rows", json!([[0, 5, "user", 0, 1, 1]]), "names task 5, of 1"),
        ("rows", json!([[0, 0, "user", 9, 1, 1]]), "names node 9, of 3"),
        ("version", json!(99), "has version 99"),
        ("tasks", json!(vec![json!({"name": "t", "pid": 1, "tid": 1}); 10_001]), "more than 10000"),
    ] {
        let mut damaged = good.clone();
        damaged[field] = bad;
        let said = said(&damaged);
        assert_eq!(said.code, Some(2), "{field}: {said:?}");
        assert!(said.err.contains("profile.json") && said.err.contains(words), "{said:?}");
    }
}

/// Shares in percent of all functions by their names, as `perf report` has them between two moments
/// of the machine, s.
fn by_perf(data: &Path, from_s: f64, until_s: f64) -> HashMap<String, f64> {
    let time = format!("{from_s:.9},{until_s:.9}");
    let said = Command::new("perf")
        .args(["report", "--stdio", "--no-children", "-F", "overhead,sym", "-t", "|", "--time"])
        .args([&time, "-i"])
        .arg(data)
        .output()
        .unwrap();
    let mut shares = HashMap::new();
    for line in String::from_utf8_lossy(&said.stdout).lines() {
        // "12.34%|[k] name"
        let Some((share, symbol)) = line.split_once('|') else { continue };
        let Ok(share) = share.trim().trim_end_matches('%').parse::<f64>() else { continue };
        let name = symbol.split_once("] ").map_or(symbol, |(_, name)| name).trim();
        *shares.entry(name.to_owned()).or_default() += share;
    }
    shares
}

#[test]
#[ignore = "live: twin tests::shares_of_cpus_tasks_and_functions_are_those_of_the_samples"]
fn perf_agrees_on_the_shares_of_the_first_functions() {
    let has_perf = Command::new("perf").arg("--version").output().is_ok();
    if !is_root() || !has_perf {
        return skip("needs root and perf (Debian's linux-perf)");
    }
    let store = Store::new();
    let data = store.path().join("perf.data");
    // The same event and rate: each samples the other as it does the rest.
    let mut perf = Command::new("perf")
        .args(["record", "-q", "-a", "-F", "997", "-e", "cpu-clock", "-k", "CLOCK_MONOTONIC", "-o"])
        .arg(&data)
        .args(["sleep", "600"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("perf has begun to record", || data.exists());
    let load = ["--load", "burn:threads=1,share=50"];
    let asked = [&["--profile=997", "--duration", "3s"][..], &load].concat();
    let profile = profiled(&store, &asked).unwrap();
    signal(&perf, "INT");
    perf.wait().unwrap();
    if profile["event"] != "cpu-clock" {
        return skip("tardy samples by cycles here, and perf was asked for cpu-clock");
    }
    let at = |key: &str| whole(&profile[key]) as f64 / 1e9;
    let theirs = by_perf(&data, at("from_ns"), at("until_ns"));
    let report = report_of(&store);
    let (mut ours, mut nowhere) = (HashMap::<&str, f64>::new(), 0.0);
    for symbol in list(&report["symbols"]) {
        let own = symbol["own"].as_f64().unwrap();
        *ours.entry(symbol["name"].as_str().unwrap()).or_default() += own;
        // Of processes that ended before they could be asked; perf hears of each mapping.
        nowhere += if symbol["module"] == "[unknown]" { own } else { 0.0 };
    }
    // What one of two samplers has of the other's interrupts depends on whose timer comes first.
    let is_compared = |name: &str| !name.starts_with("0x") && !name.starts_with("irqentry_");
    let mut first: Vec<(&String, &f64)> =
        theirs.iter().filter(|(name, _)| is_compared(name)).collect();
    first.sort_by(|a, b| b.1.total_cmp(a.1));
    assert!(first.len() >= 5, "{theirs:?}");
    // Five need a machine that has little else to do.
    for (name, share) in &first[..if is_long() { 5 } else { 2 }] {
        // perf leaves out the arguments of functions of C++.
        let with_arguments = format!("{name}(");
        let is_it = |ours: &str| ours == name.as_str() || ours.starts_with(&with_arguments);
        let own: f64 = ours.iter().filter(|(ours, _)| is_it(ours)).map(|(_, own)| own).sum();
        let differs = (own - **share).abs();
        assert!(differs < 3.0 + nowhere, "{name}: {own}%, perf {share}%, nowhere {nowhere}%");
    }
}

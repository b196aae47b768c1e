//! The truth test: delays that the injector made and wrote down, against what `tardy why` says of
//! the run, which knows nothing but the run directory.
//!
//! Random, with a seed that is printed; `TARDY_TEST_SEED` repeats it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod judge;

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant, SystemTime},
};

use judge::{Injected, Outcome, Peak, judge};

const XTASK: &str = env!("CARGO_BIN_EXE_xtask");
/// How long delays are injected, s; the run takes a little longer.
const INJECTING_S: u32 = 45;
const PATIENCE: Duration = Duration::from_secs(120);

/// tardy, which is built with all tests, lies beside.
fn tardy() -> PathBuf {
    Path::new(XTASK).with_file_name("tardy")
}

/// Past the harness, which hides what passing tests print.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Notes it for the account of what ran nowhere.
fn skip(why: &str) {
    let name = "delays_that_were_injected_come_back_by_cause_and_size";
    say(&format!("{name} skipped: {why}"));
    if let Some(file) = std::env::var_os("TARDY_TEST_SKIPS") {
        let file = fs::OpenOptions::new().create(true).append(true).open(file);
        let line = format!("{name}\t{why}\n");
        file.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
    }
}

fn seed() -> u64 {
    let given = std::env::var("TARDY_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    given.unwrap_or_else(|| now.map_or(1, |now| now.as_secs()))
}

/// Ended with the test, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure(run: &Path) -> Running {
    let duration = format!("{}s", INJECTING_S + 4);
    let words = ["run", "timer", "--trace", "peaks", "--peak-over", "45us", "--warmup", "1s"];
    let child = Command::new(tardy())
        .args(words)
        .args(["--interval", "1ms", "--duration", &duration, "-o"])
        .arg(run)
        .stdout(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}; cargo build first", tardy().display()));
    Running(child)
}

/// Until the first intervals are there: the tracer is attached by then, and the injector comes
/// after it, as it must.
fn wait_measuring(running: &mut Running, run: &Path) {
    let log = run.join("series.hlog");
    let deadline = Instant::now() + PATIENCE;
    while !fs::read_to_string(&log).is_ok_and(|text| text.contains("\nTag=")) {
        let ended = running.0.try_wait().unwrap();
        assert!(ended.is_none(), "tardy ended early: {ended:?}");
        assert!(Instant::now() < deadline, "tardy does not measure");
        sleep(Duration::from_millis(20));
    }
}

fn inject(target: u32, seed: u64) -> Vec<Injected> {
    let output = Command::new(XTASK)
        .args(["inject", "--target", &target.to_string(), "--seed", &seed.to_string()])
        .args(["--duration", &format!("{INJECTING_S}s")])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "the injector failed");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn why(run: &Path) -> Vec<Peak> {
    let output = Command::new(tardy()).arg("why").arg(run).args(["--json", "--all-peaks"]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    serde_json::from_value(told["peaks"].take()).unwrap()
}

/// Why this machine cannot run the test.
fn lacks() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root may inject delays");
    }
    let has_types = Path::new("/sys/kernel/btf/vmlinux").exists();
    (!has_types).then_some("the kernel has no BTF")
}

#[test]
fn delays_that_were_injected_come_back_by_cause_and_size() {
    if let Some(why) = lacks() {
        return skip(why);
    }
    let seed = seed();
    say(&format!("the truth test's seed is {seed}; TARDY_TEST_SEED={seed} repeats it"));
    let directory = tempfile::tempdir().unwrap();
    let run = directory.path().join("run");
    let mut running = measure(&run);
    wait_measuring(&mut running, &run);
    let log = inject(running.0.id(), seed);
    let ended = running.0.wait().unwrap();
    // 3 is a run with doubts, and a run under such delays has them.
    assert!(ended.code().is_some(), "tardy died: {ended}");
    let outcome = judge(&log, &why(&run));
    say(&outcome.table());
    keep(&log, &outcome, &run);
    hold(&outcome);
}

/// Everything, for whoever wants to know what went wrong: `TARDY_TEST_TRUTH` names a directory.
fn keep(log: &[Injected], outcome: &Outcome, run: &Path) {
    let Some(into) = std::env::var_os("TARDY_TEST_TRUTH").map(PathBuf::from) else { return };
    fs::create_dir_all(&into).unwrap();
    let lines: Vec<String> = log.iter().map(|line| format!("{line:?}")).collect();
    fs::write(into.join("log"), lines.join("\n")).unwrap();
    let wrong: Vec<&str> =
        outcome.rows.values().flat_map(|row| &row.wrong).map(String::as_str).collect();
    fs::write(into.join("wrong"), wrong.join("\n")).unwrap();
    fs::write(into.join("false-blame"), outcome.false_blame.join("\n")).unwrap();
    for name in ["run.json", "peaks.jsonl", "blame.json"] {
        let _ = fs::copy(run.join(name), into.join(name));
    }
}

/// What is demanded.
fn hold(outcome: &Outcome) {
    let [judged, found, right, sized] = outcome.totals();
    let share = |part: usize, of: usize| part as f64 / of.max(1) as f64;
    let wrong: Vec<&String> =
        outcome.rows.values().flat_map(|row| row.wrong.iter().take(3)).collect();
    assert!(judged > 200, "too few delays to judge: {judged}");
    assert!(share(found, judged) >= 0.99, "found {found} of {judged}\n{wrong:#?}");
    assert!(share(right, found) >= 0.98, "right cause of {right} in {found}\n{wrong:#?}");
    assert!(share(sized, right) >= 0.98, "right size of {sized} in {right}\n{wrong:#?}");
    let false_blame = outcome.false_blame.len();
    let told = outcome.false_blame.first();
    let clean = outcome.clean;
    assert!(share(false_blame, clean) <= 0.01, "{false_blame} of {clean} clean: {told:?}");
}

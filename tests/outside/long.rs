//! What weeks of measuring would do, in a minute: the fake probe feeds samples as fast as it can.

use std::{fs, process::Child, time::Duration};

use super::{
    chance::is_long,
    support::{Store, eventually, finish, list, pause, whole},
};

/// The memory that may be added without growing with the samples: a page here and there.
const SLACK_KB: i64 = 4 << 10;

/// What the process keeps in memory, KiB; `None` if it is gone.
fn resident_kb(child: &Child) -> Option<i64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// 500 hours of a sample a millisecond, or 3 of them if time is short.
#[test]
fn memory_does_not_grow_with_the_samples() {
    let store = Store::new();
    let samples = (if is_long() { 500 } else { 3 }) * 3_600_000_i64;
    let number = samples.to_string();
    let run = ["run", "fake", "--unpaced", "--cpus", "0", "--warmup", "0s", "--name", "r"];
    let mut child = store.start(&[&run[..], &["--samples", &number]].concat());
    let log = store.runs().join("r/series.hlog");
    eventually("the first samples are in the log", || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("Tag=")) || is_over(&mut child)
    });
    let (first, mut most) = (resident_kb(&child), 0);
    while !is_over(&mut child) {
        most = resident_kb(&child).unwrap_or(0).max(most);
        pause(Duration::from_millis(100));
    }
    let said = finish(child);
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    let series = &list(&record["series"])[0];
    assert_eq!(whole(&series["count"]), samples, "{record}");
    // One in a million takes 3 ms.
    assert_eq!(whole(&series["max"]), 3_000_000, "{record}");
    let first = first.unwrap_or(most);
    assert!(most <= first + SLACK_KB, "{first} KiB at the beginning, {most} KiB at most");
    eprintln!("{samples} samples: {first} KiB at the beginning, {most} KiB at most");
}

fn is_over(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_some()
}

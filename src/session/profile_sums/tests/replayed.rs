//! The sampling program with made-up samples: `profile_replay.c` compiles it for the host. What it
//! hands over is read and summed up as in a run.

use std::{
    fmt::Write as _,
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use super::*;
use crate::session::profiling::head;

/// A function of this program whose address is sampled.
#[inline(never)]
fn burns_for_the_replayed_profile(value: u64) -> u64 {
    std::hint::black_box(value)
}

/// An address in it, behind its first instruction.
fn address() -> u64 {
    burns_for_the_replayed_profile as *const () as u64 + 1
}

/// The samples that the program hands over where this happens, which are so many.
fn sampled(events: &str, count: usize) -> Vec<TaskSample> {
    let program =
        PathBuf::from(env!("OUT_DIR")).join(format!("profile_replay-{}", std::process::id()));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/kernel/tests/profile_replay.c");
    let made = Command::new("cc").args(["-O1", "-w", "-o"]).arg(&program).arg(source).status();
    assert!(made.unwrap().success(), "cc, which also links Rust's programs");
    let mut command = Command::new(&program);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(events.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    std::fs::remove_file(program).unwrap();
    assert!(output.status.success() && output.stdout.len().is_multiple_of(count), "{events}");
    let samples = output.stdout.chunks_exact(output.stdout.len() / count);
    samples.map(|bytes| TaskSample::decode(bytes).unwrap()).collect()
}

/// Samples and weight of rows, by what is asked of them.
fn sum(profile: &Profile, is_it: impl Fn(&ProfileRow) -> bool) -> (u64, u64) {
    let rows = profile.rows.iter().filter(|row| is_it(row));
    rows.fold((0, 0), |sum, row| (sum.0 + row.4, sum.1 + row.5))
}

#[test]
fn a_known_share_is_that_share_of_the_samples() {
    const MS: u64 = 1_000_000;
    let (process, burns) = (std::process::id(), address());
    let mut events = String::new();
    // Of each 20 ms of CPU 0 it has 8: 5 in user mode and 3 in a call of the kernel. In one more
    // each a softirq and an interrupt had its CPU, and 10 were idle. CPU 1 is another task's.
    for _ in 0..50 {
        let _ = writeln!(events, "5 0 {process} 7 user 0 {burns:x}");
        let _ = writeln!(events, "3 0 {process} 7 kernel ff00 {burns:x}");
        let _ = writeln!(events, "1 0 {process} 7 softirq ff00 {burns:x}");
        let _ = writeln!(events, "1 0 {process} 7 hardirq ff00 {burns:x}");
        let _ = writeln!(events, "10 0 0 0 idle ff00 0\n20 1 {process} 8 user 0 1000");
    }
    let mut sums = ProfileSums::new(Symbols::default(), SumLimits::USUAL, LateSamples::default());
    sums.add(sampled(&events, 2_000));
    let profile = sums.into_profile(head(1_000));
    assert_eq!((profile.samples, profile.other, profile.weight()), (2_000, 0, 2_000 * MS));
    assert!(profile.tells_interrupts);
    let contexts = CpuContext::ALL.map(|own| sum(&profile, |row| row.0 == 0 && row.2 == own).0);
    assert_eq!(contexts, [500, 250, 150, 50, 50], "of CPU 0");
    let is_named = |frame: u32| profile.frame(frame).0.contains("burns_for_the_replayed_profile");
    let own = sum(&profile, |row| profile.stack(row.node()).next().is_some_and(is_named));
    assert_eq!(own, (250, 250 * MS), "in the function itself");
    let below = sum(&profile, |row| profile.stack(row.node()).any(is_named));
    assert_eq!(below, (400, 400 * MS), "with what it calls, and without interrupts");
    let tasks = [7, 8].map(|tid| {
        sum(&profile, |row| {
            let is_interrupt = matches!(row.2, CpuContext::Softirq | CpuContext::Hardirq);
            profile.tasks[row.1 as usize].tid == tid && !is_interrupt
        })
    });
    assert_eq!(tasks, [(400, 400 * MS), (1_000, 1_000 * MS)]);
}

//! The timer probe beside cyclictest, on one idle CPU.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, anyhow, ensure};
use hdrhistogram::Histogram;
use tardy::{
    run::{Run, hlog},
    units::Nanos,
};

use super::{
    CountedBench,
    guest::{CountedGuest, OUT},
    helpers,
    ratio::{Pair, Peer, rows},
};
use crate::bench::{
    peers::{CYCLICTEST_NS_BUCKETS, cyclictest},
    sheet::Section,
};

/// How often both sides run.
const ROUNDS: usize = 3;

/// Intervals, ns, and wake-ups of each side in a round: several of tardy's looks at the machine,
/// one a second.
const RUNS: [(i64, u64); 2] = [(1_003_000, 4_000), (201_000, 12_000)];

const CYCLICTEST: Peer = Peer { name: "cyclictest", maximum_limit: 1.2 };

/// All kernels and intervals.
pub(super) fn part(bench: &CountedBench) -> Result<Section> {
    let mut section = Section::new("Timer wake-ups beside cyclictest");
    for kernel in &bench.kernels {
        for (interval_ns, wakeups) in RUNS.into_iter().skip(bench.either(0, 1)) {
            let name = format!("{}, {} interval", kernel.asked, Nanos(interval_ns));
            let left = measure(&bench.guest(kernel), (interval_ns, wakeups), !bench.quick);
            let pairs = left.as_ref().map_err(|error| anyhow!("{error:#}"));
            let pairs = pairs.and_then(|left| read(left, wakeups));
            section.rows.extend(rows(&name, &CYCLICTEST, pairs));
            if !bench.quick {
                section.rows.push(helpers::row(&name, left.as_deref()));
            }
        }
    }
    section.note(format!(
        "{ROUNDS} rounds in one guest, tardy and cyclictest in turns, there and back, {} \
         each, the first ones included: `tardy run timer --trace off --warmup 0us` and \
         `cyclictest -m -N -h {CYCLICTEST_NS_BUCKETS} -d 0 -q`; one thread, SCHED_FIFO 90, memory \
         locked, CLOCK_MONOTONIC, absolute `clock_nanosleep`, one CPU that is otherwise idle.",
        RUNS.map(|(interval_ns, wakeups)| format!(
            "{wakeups} wake-ups every {}",
            Nanos(interval_ns)
        ))
        .join(" or "),
    ));
    section.note(
        "The intervals do not divide the kernel's tick (4 ms), so that expiries meet it at \
         every phase, on both sides alike: with 1 ms the start of a run would decide which one it \
         has throughout.",
    );
    section.note(
        "Wake-ups of other threads: voluntary context switches of all threads of the process but \
         the measuring one, between two looks 2 s apart, in a separate run.",
    );
    Ok(section)
}

/// Runs everything, and returns the directory with what it left.
fn measure(
    guest: &CountedGuest,
    (interval_ns, wakeups): (i64, u64),
    with_helpers: bool,
) -> Result<PathBuf> {
    let mut script = String::new();
    for round in 0..ROUNDS {
        let ours = format!("{} >/dev/null", tardy(interval_ns, wakeups, &format!("ours-{round}")));
        let theirs = peer(interval_ns, wakeups, &format!("theirs-{round}"));
        // There and back, so that running before the other side gives no advantage.
        let both = if round % 2 == 0 { [ours, theirs] } else { [theirs, ours] };
        script += &(both.join("\n") + "\n");
    }
    if !with_helpers {
        return guest.run(&format!("timer-{interval_ns}"), &["cyclictest"], &script);
    }
    let wakeups = (helpers::LENGTH_S * 1_000_000_000 / interval_ns).unsigned_abs();
    let ours = tardy(interval_ns, wakeups, "ours");
    script += &helpers::script(&ours, &peer(interval_ns, wakeups, "theirs"));
    guest.run(&format!("timer-{interval_ns}"), &["cyclictest"], &script)
}

fn read(left: &Path, wakeups: u64) -> Result<Vec<Pair>> {
    let pair = |round| {
        let ours = recorded(&left.join(format!("ours-{round}")))?;
        let mut theirs = hlog::empty();
        cyclictest(&fs::read(left.join(format!("theirs-{round}")))?, &mut theirs)?;
        ensure!((ours.len(), theirs.len()) == (wakeups, wakeups), "not {wakeups} wake-ups each");
        Ok(Pair { ours, theirs })
    };
    (0..ROUNDS).map(pair).collect()
}

/// What a run recorded, all series together.
pub(super) fn recorded(run: &Path) -> Result<Histogram<u64>> {
    let mut all = hlog::empty();
    Run::open(run)?.intervals(|_, _, counts| {
        // Bounds are equal, so that nothing can be lost.
        let _ = all.add(&counts);
    })?;
    Ok(all)
}

fn tardy(interval_ns: i64, wakeups: u64, to: &str) -> String {
    format!(
        "tardy run timer --trace off --cpus 0 --interval {interval_ns}ns --warmup 0us \
         --samples {wakeups} --policy fifo --priority 90 --quiet -o {OUT}/{to}"
    )
}

fn peer(interval_ns: i64, wakeups: u64, to: &str) -> String {
    format!(
        "cyclictest -m -N -h {CYCLICTEST_NS_BUCKETS} -p90 -a 0 -t 1 -i {} -d 0 -q -l {wakeups} \
         --json={OUT}/{to}",
        interval_ns / 1_000
    )
}

//! The bare loop: the least that can be called a measurement of wake-ups, to compare with.
//!
//! What a C programmer writes first: sleep until a time, read the clock, subtract, keep the maximum
//! (or, to know more than a maximum, put the number into an array that was touched before).

use std::{fs, path::PathBuf, thread, time::Duration};

use anyhow::{Context, Result};
use clap::Args;
use tardy::{
    setup::power::DmaLatency,
    sys::{
        cpus::Cpus,
        memory,
        sched::{self, Policy},
        timer,
    },
};
use tardy_hot::clock::{now_ns, to_timespec};

/// One thread per CPU at FIFO 90
#[derive(Debug, Args)]
pub(crate) struct LoopFlags {
    cpus: Cpus,
    interval_ns: i64,
    duration_ns: i64,
    /// Takes the latencies (i64, native order)
    file: Option<PathBuf>,
}

/// The loops, one a CPU.
pub(crate) fn run(flags: &LoopFlags) -> Result<()> {
    let LoopFlags { cpus, interval_ns, duration_ns, file } = flags;
    let (interval_ns, duration_ns) = (*interval_ns, *duration_ns);
    memory::lock_all(true).context("memory cannot be locked")?;
    let _held = DmaLatency::hold();
    let keeps = file.is_some();
    let first_ns = now_ns() + 100_000_000;
    let measure = |cpu: u32| move || measure(cpu, first_ns, interval_ns, duration_ns, keeps);
    let threads: Vec<_> = cpus
        .iter()
        .map(|cpu| thread::Builder::new().name(format!("bare/{cpu}")).spawn(measure(cpu)))
        .collect::<Result<_, _>>()?;
    let mut kept = Vec::new();
    for thread in threads {
        let latencies = thread.join().map_err(|_| anyhow::anyhow!("a thread died"))??;
        kept.extend(latencies.iter().flat_map(|latency| latency.to_ne_bytes()));
    }
    file.as_ref().map_or(Ok(()), |file| fs::write(file, kept)).context("cannot write latencies")
}

/// Returns the latencies, or the maximum alone.
fn measure(
    cpu: u32,
    first_ns: i64,
    interval_ns: i64,
    duration_ns: i64,
    keeps: bool,
) -> Result<Vec<i64>> {
    [cpu].into_iter().collect::<Cpus>().pin_this_thread()?;
    timer::set_slack(1)?;
    sched::set_this_thread(Policy::Fifo, 90).context("FIFO 90 is not available")?;
    let end_ns = first_ns + duration_ns;
    if keeps {
        let room = usize::try_from(duration_ns / interval_ns.max(1))? + 1;
        let mut latencies = vec![-1; room];
        let mut at = 0;
        sleep_loop(first_ns, interval_ns, end_ns, |latency| {
            if let Some(place) = latencies.get_mut(at) {
                *place = latency;
                at += 1;
            }
        });
        latencies.truncate(at);
        return Ok(latencies);
    }
    let mut max = 0;
    sleep_loop(first_ns, interval_ns, end_ns, |latency| {
        if latency > max {
            max = latency;
        }
    });
    // The thread stays a moment, so that its counters can be read to the end.
    thread::sleep(Duration::from_millis(10));
    Ok(vec![max])
}

#[inline(always)]
fn sleep_loop(first_ns: i64, interval_ns: i64, end_ns: i64, mut keep: impl FnMut(i64)) {
    let mut next_ns = first_ns;
    while next_ns < end_ns {
        let request = to_timespec(next_ns);
        // SAFETY: `request` is a valid timespec, and a null remainder is allowed.
        unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const request,
                core::ptr::null_mut(),
            );
        }
        let now = now_ns();
        keep(now - next_ns);
        next_ns += interval_ns;
        // Periods that have passed are skipped, as the others do.
        while next_ns <= now {
            next_ns += interval_ns;
        }
    }
}

//! `--profile`: what every CPU does, sampled during the run, and written as `profile.json` when it
//! has ended.
//!
//! What it changes on the machine: a sampling program runs on every CPU until the run ends. The
//! thread that collects samples looks every 100 ms, below the measured threads: by then the
//! processes that were sampled mostly live, which tell what they have mapped where.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::Receiver,
    },
    thread::{Builder, JoinHandle},
};

use anyhow::{Context, Result};
use tardy_hot::clock::now_ns;

use super::{
    cadence::Cadence,
    evidence::{ProfileEvidence, RefusedWrite},
    helper_use::HelperUse,
    profile_late::LateSamples,
    profile_sums::{ProfileSums, SumLimits},
    ticks::wait_until,
};
use crate::{
    kernel::{Profiler, Symbols},
    probes::LateCycle,
    run::{
        HelperTime, OsError, RunDirectory, names,
        profile::{PROFILE_VERSION, Profile, ProfileCost},
    },
    setup::threads::become_helper,
    sys::{cpus::Cpus, perf::SamplingEvent, root::Root},
};

/// Samples are collected so often, ns.
const TICK_NS: i64 = 100_000_000;

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// The sampling program, loaded, and the names of the kernel's functions.
#[derive(Debug)]
pub(super) struct LoadedProfiler {
    profiler: Profiler,
    symbols: Symbols,
    hz: u32,
}

/// Loads what samples `hz` times a second, if it shall; nothing is sampled yet.
///
/// # Errors
/// It cannot be had.
pub(super) fn load(hz: Option<u32>) -> Result<Option<LoadedProfiler>> {
    let Some(hz) = hz else { return Ok(None) };
    let online: Cpus = Root::default().value(ONLINE).context("cannot read which CPUs there are")?;
    let cpus: Vec<u32> = online.iter().collect();
    let profiler = Profiler::load(&cpus, hz).context("--profile is not available")?;
    Ok(Some(LoadedProfiler { profiler, symbols: Symbols::read(), hz }))
}

/// What the collecting thread must know of the run.
pub(super) struct ProfileContext {
    pub directory: RunDirectory,
    pub start_ns: i64,
    pub cadence: Cadence,
    pub measured_priority: u32,
    pub housekeeping: Cpus,
    /// Cycles of attached threads that missed their deadline, as they end.
    pub late_cycles: Option<Receiver<LateCycle>>,
}

/// What a profile leaves beside its file.
#[derive(Debug)]
pub(super) struct ProfileEnd {
    pub evidence: ProfileEvidence,
    /// The kernel hides the addresses of its functions.
    pub symbols_hidden: bool,
    /// What the disk refused.
    pub refused: Option<RefusedWrite>,
    pub helper: HelperTime,
}

/// The running thread.
#[derive(Debug)]
pub(super) struct ProfileRecorder {
    finished: Arc<AtomicBool>,
    handle: JoinHandle<ProfileEnd>,
}

impl LoadedProfiler {
    /// Begins to sample, and starts the thread that collects.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn start(mut self, run: ProfileContext) -> Result<ProfileRecorder> {
        self.profiler.attach()?;
        let finished = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&finished);
        let handle = Builder::new()
            .name("tardy/profile".into())
            .spawn(move || self.run(run, &ends))
            .context("cannot start the thread that collects the profile")?;
        Ok(ProfileRecorder { finished, handle })
    }

    fn run(mut self, mut run: ProfileContext, finished: &AtomicBool) -> ProfileEnd {
        // The drain reports where this is refused.
        let _ = become_helper(run.measured_priority, &run.housekeeping);
        let symbols_hidden = self.symbols.are_hidden();
        let late = LateSamples::of(run.late_cycles.take());
        let mut sums = ProfileSums::new(std::mem::take(&mut self.symbols), SumLimits::USUAL, late);
        // The warm-up is sampled too, so that nothing begins with the measurement, and left out.
        let from_ns = u64::try_from(run.start_ns).unwrap_or(0);
        let (mut used, mut began) = (HelperUse::begin(), false);
        loop {
            let has_ended = wait_until(run.cadence.after(now_ns() + TICK_NS), finished);
            if !began && now_ns() >= run.start_ns {
                (used, began) = (HelperUse::begin(), true);
            }
            if has_ended {
                self.profiler.detach();
            }
            let mut samples = self.profiler.take();
            samples.retain(|sample| sample.at_ns >= from_ns);
            sums.add(samples);
            used.rest();
            if has_ended {
                break;
            }
        }
        let helper = used.of("tardy/profile");
        self.end(&run, sums, helper, symbols_hidden)
    }

    /// Nothing is measured any more: names, and the file.
    fn end(
        self,
        run: &ProfileContext,
        sums: ProfileSums,
        helper: HelperTime,
        symbols_hidden: bool,
    ) -> ProfileEnd {
        let cost = self.profiler.cost();
        let (event, unit) = match self.profiler.event() {
            SamplingEvent::CpuClock => ("cpu-clock", "ns"),
            SamplingEvent::Cycles => ("cycles", "cycles"),
        };
        let head = Profile {
            event: event.into(),
            unit: unit.into(),
            from_ns: run.start_ns,
            until_ns: now_ns(),
            lost: cost.lost,
            cost: ProfileCost {
                samples: cost.samples,
                program_ns: cost.ns,
                helper_ns: helper.cpu_ns,
            },
            ..head(self.hz)
        };
        let profile = sums.into_profile(head);
        let written = write(&run.directory, &profile);
        let refused = written.err().map(|error| RefusedWrite {
            file: names::PROFILE.into(),
            at_ns: None,
            error: OsError::from(&error),
        });
        let evidence = ProfileEvidence { hz: self.hz, cost: profile.cost, lost: profile.lost };
        ProfileEnd { evidence, symbols_hidden, refused, helper }
    }
}

fn write(directory: &RunDirectory, profile: &Profile) -> io::Result<()> {
    let mut text = serde_json::to_vec(profile)?;
    text.push(b'\n');
    directory.replace(names::PROFILE, &text)
}

/// A profile of nothing.
pub(super) fn head(hz: u32) -> Profile {
    Profile {
        version: PROFILE_VERSION,
        event: "cpu-clock".into(),
        unit: "ns".into(),
        hz,
        from_ns: 0,
        until_ns: 0,
        tells_interrupts: true,
        samples: 0,
        lost: 0,
        other: 0,
        cost: ProfileCost::default(),
        modules: Vec::new(),
        functions: Vec::new(),
        frames: Vec::new(),
        nodes: Vec::new(),
        tasks: Vec::new(),
        rows: Vec::new(),
        late: None,
    }
}

impl ProfileRecorder {
    /// Ends sampling, and waits until the file is written.
    ///
    /// # Errors
    /// The thread died.
    pub(super) fn finish(self) -> Result<ProfileEnd, String> {
        self.finished.store(true, Ordering::Release);
        self.handle.thread().unpark();
        self.handle.join().map_err(|_| "the thread that collects the profile died".to_owned())
    }
}

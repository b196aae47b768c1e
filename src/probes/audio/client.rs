//! A client that its server calls in each cycle.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tardy_hot::{
    clock::now_ns,
    cycle_grid::CycleGrid,
    cycles::{CycleCallback, CycleShared, CycleSink},
    stop::Stop,
    wakeup::Series,
};

use super::{SERIES, SILENT_NS, ServerFacts};
use crate::{
    probes::ArmError,
    setup::threads::Found,
    sys::{
        cpus::Cpus,
        jack::{JackClient, JackError},
        sched::{self, Policy},
    },
};

/// A client that is called.
pub(super) struct Opened {
    pub(super) client: JackClient,
    pub(super) shared: Arc<CycleShared>,
    pub(super) facts: ServerFacts,
    pub(super) tid: i32,
}

impl Opened {
    pub(super) fn new(
        server: Option<&str>,
        sink: impl CycleSink + 'static,
        warmup: &Arc<Series>,
        stop: &Arc<Stop>,
    ) -> Result<Self, ArmError> {
        let refused = |error: JackError| ArmError::Transport(error.to_string());
        let shared: Arc<CycleShared> = Arc::default();
        let mut client = JackClient::open(server, &shared).map_err(refused)?;
        let (frame_time, own) = client.frame_time();
        let callback = CycleCallback {
            grid: CycleGrid::new(client.frames, client.rate_hz),
            warmup: Arc::clone(warmup),
            sink,
            shared: Arc::clone(&shared),
            stop: Arc::clone(stop),
            frame_time,
            client: own,
        };
        client.activate(callback).map_err(refused)?;
        let tid = first_cycle(&shared)?;
        let found = sched::of_thread(tid)
            .map_err(|source| ArmError::ThreadConfig { series: SERIES.into(), source })?;
        let policy = match found.policy.as_str() {
            "fifo" => Policy::Fifo,
            "rr" => Policy::Rr,
            _ => Policy::Other,
        };
        let facts = ServerFacts {
            frames: client.frames,
            rate_hz: client.rate_hz,
            policy: (policy, found.priority),
        };
        Ok(Self { client, shared, facts, tid })
    }

    /// Binds the thread to a CPU, and says what it runs as.
    pub(super) fn bind(&self, cpu: u32) -> Result<Found, ArmError> {
        let refused = |source| ArmError::ThreadConfig { series: SERIES.into(), source };
        let tid = self.tid;
        [cpu].into_iter().collect::<Cpus>().pin(tid).map_err(refused)?;
        let scheduling = sched::of_thread(tid).map_err(refused)?;
        let cpus = Cpus::of_thread(tid).map_err(refused)?.to_string();
        let slack = std::fs::read_to_string(format!("/proc/self/task/{tid}/timerslack_ns"));
        let timer_slack_ns = slack.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        Ok(Found { tid, scheduling, cpus, timer_slack_ns })
    }
}

/// Waits for the first callback; the number of its thread.
fn first_cycle(shared: &CycleShared) -> Result<i32, ArmError> {
    let until_ns = now_ns() + SILENT_NS;
    while now_ns() < until_ns {
        match shared.tid.load(Ordering::Acquire) {
            0 => std::thread::sleep(Duration::from_millis(2)),
            tid => return Ok(tid),
        }
    }
    let text = "the JACK server begins no cycle within 5 s: its sound device does not run; see \
                what the server prints";
    Err(ArmError::Transport(text.into()))
}

//! Late wake-ups, and what they are blamed on.

use std::{collections::BTreeMap, path::Path, process::Command};

use serde::Deserialize;

use super::{Injected, LOST, NOT_RECORDED, STEAL, STRANGER_NS};

/// A switch and what leads to it take so long.
const SWITCH_NS: i64 = 2_000;
/// And the way out of the system call that waits for a mutex, which the log has, in a real-time
/// kernel of a guest that takes 2 ns an instruction.
const WAY_OUT_NS: i64 = 5_000;

/// A late wake-up as `tardy why --json` tells it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Peak {
    pub at_ns: i64,
    pub series: String,
    pub latency_ns: i64,
    pub blame: Vec<Part>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Part {
    pub cause: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub task: Option<String>,
    pub ns: i64,
    #[serde(default)]
    pub stack: Vec<String>,
}

impl Peak {
    /// All late wake-ups of a run, by this `tardy`.
    pub(crate) fn all_of(tardy: &Path, run: &Path) -> Vec<Self> {
        let mut command = Command::new(tardy);
        let output = command.arg("why").arg(run).arg("--json").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut why: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        serde_json::from_value(why["peaks"].take()).unwrap()
    }

    pub(super) fn cpu(&self) -> Option<u32> {
        self.series.strip_prefix("cpu")?.parse().ok()
    }

    pub(super) fn end_ns(&self) -> i64 {
        self.at_ns + self.latency_ns
    }

    /// What the steal clock counted within it.
    pub(crate) fn stolen_ns(&self) -> i64 {
        let is_steal = |part: &&Part| part.cause == "host" && part.name == STEAL;
        self.blame.iter().filter(is_steal).map(|part| part.ns).sum()
    }

    /// Whether any of it is blamed on what is below the kernel: the hypervisor, the firmware.
    pub(super) fn blames_machine(&self) -> bool {
        self.blame.iter().any(|part| ["host", "hardware"].contains(&part.cause.as_str()))
    }

    /// A thread ran first that the log does not have. One that would explain all does not count.
    pub(super) fn met_stranger(&self) -> bool {
        let is_stranger = |part: &Part| {
            let is_own = part.task.as_deref().is_some_and(|task| task.starts_with("inject/"));
            part.cause == "thread" && !is_own && part.ns <= STRANGER_NS
        };
        self.blame.iter().any(is_stranger)
    }

    /// Its events were overwritten before it was looked at.
    pub(super) fn is_lost(&self) -> bool {
        self.blame.iter().any(|part| part.name == LOST)
    }

    /// The kernel recorded none of its events, as some do while a task of their platform is
    /// current, and so all of it is nobody's.
    pub(super) fn is_unrecorded(&self) -> bool {
        self.blame.iter().any(|part| part.name == NOT_RECORDED && part.ns == self.latency_ns)
    }

    /// What is blamed on the cause of a delay. Of a process at its end that is what it did in the
    /// kernel, with interrupts on or off. Work that cannot be preempted has a task where it is
    /// somebody's; the wake-up's own path has none. Without real-time, any task runs first.
    pub(super) fn blamed_ns(&self, delay: &Injected, real_time: bool) -> i64 {
        let ending = format!("/{}", delay.pid);
        let is_own = |part: &&Part| {
            let goes_first = !real_time && part.cause == "thread";
            let is_cause = delay.causes().contains(&part.cause.as_str());
            let task = part.task.as_deref().unwrap_or_default();
            match delay.kind.as_str() {
                "exit" => task.ends_with(&ending) && (is_cause || goes_first),
                "nonpreemptible" => !task.is_empty() && (is_cause || goes_first),
                // By the driver of the serial line, or by the line where no driver is known.
                "device" => {
                    is_cause && ["irq ", "ttyS"].iter().any(|begin| part.name.starts_with(begin))
                }
                "hog" => is_cause && task.starts_with("inject/"),
                "irq_thread" => is_cause && task.starts_with("irq/"),
                // Its owner is known only where it gets the thread's priority.
                "lock" => is_cause && (task.is_empty() || task.starts_with("inject/")),
                // And this one's is the task of the log.
                "pi_mutex" => is_cause && task.starts_with("inject/") && task.ends_with(&ending),
                // Interrupts are off in the injector's own task, or nobody knows.
                "masked" => is_cause && (task.is_empty() || task.starts_with("inject/")),
                _ => is_cause,
            }
        };
        let own = self.blame.iter().filter(is_own);
        if delay.kind.starts_with("softirq") {
            // It is in one softirq; another one over the same wake-up is not part of it.
            let mut by_vector = BTreeMap::<&str, i64>::new();
            for part in own {
                let vector = part.name.split(':').next().unwrap_or_default();
                *by_vector.entry(vector).or_default() += part.ns;
            }
            return by_vector.into_values().max().unwrap_or(0);
        }
        own.map(|part| part.ns).sum()
    }

    /// What a delay shares with others, so that its part may be smaller: the way of a thread that
    /// is awake at its expiry, or that gets a lock; what a lock's owner, or who goes before the
    /// thread, does until it lets go of the CPU; the end of a process up to the switch, which
    /// counts as the wake-up's way.
    pub(super) fn shared_ns(&self, delay: &Injected) -> i64 {
        if delay.kind == "exit" {
            return SWITCH_NS;
        }
        let is_way = |part: &Part| part.cause == "nonpreemptible" && part.task.is_none();
        let is_shared = |part: &&Part| match delay.kind.as_str() {
            "arming" => is_way(part),
            "lock" => part.cause != "lock" && (part.task.is_some() || is_way(part)),
            "pi_mutex" => part.cause != "lock" && part.task.is_some(),
            _ => false,
        };
        let way_out_ns = if delay.kind == "pi_mutex" { WAY_OUT_NS } else { 0 };
        way_out_ns + self.blame.iter().filter(is_shared).map(|part| part.ns).sum::<i64>()
    }

    /// Blames what only the injector does here, and does not do at all between its delays: its
    /// hogs, waits in its programs, stops, faults, moves. Its other work (timers armed, processes
    /// started) is as real as anybody's, and may be blamed; before a thread without real-time goes
    /// whatever it does.
    pub(super) fn blames_injector(&self, real_time: bool) -> bool {
        let injects = |part: &Part| {
            let task = part.task.as_deref().unwrap_or_default();
            let hogs = real_time && part.cause == "thread" && task.starts_with("inject/");
            let waits = part.stack.iter().any(|function| function.starts_with("bpf_loop"));
            let never = ["stopped", "page_fault", "migration"].contains(&part.cause.as_str());
            hogs || waits || never
        };
        self.blame.iter().any(|part| part.ns > 20_000 && injects(part))
    }
}

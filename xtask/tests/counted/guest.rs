//! One guest with a measurement and the injector in it, and what `tardy why` says of its wake-ups.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::judge::{Injected, Outcome, Peak, ThreadConfig, judge};

const XTASK: &str = env!("CARGO_BIN_EXE_xtask");

/// Wake-ups that are later are blamed and kept whole, us: delays from 50 us on are judged.
const OVER_US: i64 = 45;
/// Without real-time half of all wake-ups are later than that, some for the very program that looks
/// at them, which is not optimised here and has to share the one CPU: there it would fall behind.
/// So it would with the kernel's own tracer, which makes most wake-ups later than the other.
const SLOW_OVER_US: i64 = 150;

/// What can be injected on one CPU.
const KINDS: [&str; 18] = [
    "hardirq",
    "softirq",
    "softirq_thread",
    "switch",
    "from_idle",
    "to_idle",
    "masked",
    "masked_idle",
    "device",
    "irq_thread",
    "arming",
    "nonpreemptible",
    "hog",
    "exit",
    "storm",
    "stop",
    "lock",
    "overlap",
];

/// What a guest does: measures, has delays injected, and leaves both records. The injector loads
/// its programs at the lowest real-time priority, so that no load keeps it from doing so.
const SCRIPT: &str = "\
mkdir -p /run/out && cd /run/out || exit 1
$START run timer --trace peaks --peak-over $OVER --warmup 500ms --interval 1ms --duration 1h \
    $FLAGS --quiet -o run >said 2>&1 &
pid=$!
until grep -qs ^Tag= run/series.hlog; do
    kill -0 $pid || { cat said; exit 1; }
    sleep 0.1
done
chrt -f 1 xtask inject --target $pid --seed $SEED --duration $TIME --kinds $KINDS --timer 1us \
    --mutex /run/mutex >log 2>errors
code=$?
cat errors
kill -TERM $pid
wait $pid
exit $code
";

/// What a guest is like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guest {
    /// As `xtask vm --kernel` takes it; a real-time one ends with `rt`.
    pub kernel: &'static str,
    /// What runs beside the measurement; a load of tardy's, with its parameters.
    pub load: &'static str,
    /// How the measured thread sleeps, as `--wake` takes it.
    pub wake: &'static str,
    /// Its policy, as `--policy` takes it.
    pub policy: &'static str,
    /// For so long, s of the guest's time.
    pub time_s: u32,
    /// What is injected, and nothing else; all that can be where it is empty.
    pub kinds: &'static [&'static str],
}

impl Guest {
    /// In a few words.
    pub(crate) fn name(&self) -> String {
        let Self { kernel, load, wake, policy, .. } = self;
        let kinds = self.kinds.iter().map(|kind| format!(", {kind}")).collect::<String>();
        format!("{kernel}, {load}, {wake}, {policy}{kinds}")
    }

    /// What is injected: what its kernel and the measured thread can be delayed by.
    fn kinds(&self) -> Vec<&'static str> {
        if !self.kinds.is_empty() {
            return self.kinds.to_vec();
        }
        let can_be = |kind: &&str| match *kind {
            // Before a thread without real-time goes all that the injector and others do, and the
            // log does not have that; its timer expires in a softirq on PREEMPT_RT.
            "from_idle" | "nonpreemptible" | "hog" | "exit" | "storm" | "lock" | "overlap"
            | "hardirq" | "softirq_thread"
                if self.policy == "other" =>
            {
                false
            }
            "softirq" => (self.has_rt(), self.policy) != (true, "other"),
            // Softirqs and the handlers of interrupts are threads there, and locks have owners
            // whose priority is raised.
            "softirq_thread" => self.has_rt(),
            // No thread of another policy goes before a deadline thread, and any before one without
            // real-time.
            "irq_thread" => self.has_rt() && ["fifo", "rr"].contains(&self.policy),
            "lock" => self.has_rt() && self.policy != "deadline",
            // The kernel can be preempted there, as by default in 7.2, and a timer without a
            // real-time thread waits.
            "exit" => !self.has_rt() && !self.kernel.starts_with("sid"),
            "storm" => !self.has_rt(),
            // No thread of another policy goes before a deadline thread.
            "hog" => self.policy != "deadline",
            // A periodic timer is armed already when the thread has read the clock; a deadline
            // thread that works for that time is throttled.
            "arming" => self.wake != "timerfd" && self.policy != "deadline",
            _ => true,
        };
        KINDS.iter().copied().filter(can_be).collect()
    }

    /// Boots it and judges; nothing where guests are impossible here, which only root must not
    /// accept.
    pub(crate) fn run(&self, seed: u64, place: &Path) -> Option<Outcome> {
        let out = place.join(self.name().replace([',', ' ', ':'], "-"));
        // A directory that outlives the test may hold the records of a guest before.
        if !out.join("log").exists() && !self.boot(seed, &out) {
            return None;
        }
        let lines = fs::read_to_string(out.join("log")).unwrap();
        let mut log: Vec<Injected> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for line in log.iter_mut().filter(|line| self.is_unseen(line)) {
            line.kind = "masked".into();
        }
        let peaks = Peak::all_of(&tardy(), &out.join("run"));
        let (over_ns, real_time) = (self.over_us() * 1_000, self.is_real_time());
        Some(judge(&log, &peaks, ThreadConfig { over_ns, real_time, alone: true }))
    }

    /// Whether its kernel is a real-time one.
    fn has_rt(&self) -> bool {
        self.kernel.ends_with("rt")
    }

    /// Whether its kernel is too old for BPF, so that its own tracer records.
    pub(crate) fn has_tracefs_alone(&self) -> bool {
        self.kernel.starts_with("bullseye")
    }

    /// Whether nothing shows that interrupts were off during a delay in a switch. The kernel's own
    /// tracer does not say what an interrupt interrupted. And 7.2 arms the next timer after an
    /// interrupt only once it has switched to the task that the interrupt woke, so that the timer
    /// that expires during that switch interrupts later than at its end.
    fn is_unseen(&self, delay: &Injected) -> bool {
        let from_a_task = delay.kind == "switch" && delay.pid > 0;
        self.kernel.starts_with("sid") && from_a_task
            || self.has_tracefs_alone()
                && ["switch", "from_idle", "to_idle"].contains(&delay.kind.as_str())
    }

    fn is_asked(&self) -> bool {
        self.kinds.contains(&"pi_mutex")
    }

    fn is_real_time(&self) -> bool {
        self.policy != "other"
    }

    fn over_us(&self) -> i64 {
        if self.is_real_time() && !self.has_tracefs_alone() { OVER_US } else { SLOW_OVER_US }
    }

    /// Whether there was a guest.
    fn boot(&self, seed: u64, out: &Path) -> bool {
        let flags = format!("--load {} --wake {} --policy {}", self.load, self.wake, self.policy);
        // Its measured threads want a mutex when the injector asks them to.
        let start =
            if self.is_asked() { "env TARDY_INJECT_MUTEX=/run/mutex xtask" } else { "tardy" };
        let assigned = format!(
            "START='{start}' FLAGS='{flags}' OVER={}us SEED={seed} TIME={}s KINDS={}\n{SCRIPT}",
            self.over_us(),
            self.time_s,
            self.kinds().join(",")
        );
        let mut command = Command::new(XTASK);
        command.args(["vm", "--counted", "--kernel", self.kernel, "--program", XTASK]);
        command.args(["--limit", "40m", "--stall", "20m", "--out"]).arg(out);
        let output = command.args(["--", "sh", "-c", &assigned]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        if said.starts_with("vm: skipped: ") {
            assert!(!rustix::process::geteuid().is_root(), "{said}");
            crate::say(said.trim_end());
            return false;
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}{errors}", self.name());
        true
    }
}

/// tardy, which is built for the guest, lies beside.
fn tardy() -> PathBuf {
    Path::new(XTASK).with_file_name("tardy")
}

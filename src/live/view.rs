//! What is shown of a run at one moment: values only, in words where a table of words made them.

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LiveStatus {
    /// Its maker still arranges the machine.
    Arranging,
    /// The probe runs, and nothing is recorded yet.
    WarmUp,
    /// It is measured.
    Running,
    /// It is over, and how.
    Ended(String),
}

/// A run at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LiveView {
    /// What the user calls it.
    pub name: String,
    /// What measures, with what it was asked for: `timer, every 1 ms`.
    pub probe: String,
    /// How far it is.
    pub status: LiveStatus,
    /// Since the start, s; negative in the warm-up.
    pub elapsed_s: f64,
    /// Until the planned end, s, where there is one.
    pub left_s: Option<f64>,
    /// What one sample is, and several: `wake-up`, `wake-ups`.
    pub sample: (&'static str, &'static str),
    /// How much of what was written before is read, from 0 to 1.
    pub read: f64,
    /// Its series of whole latencies, in the order of its record.
    pub rows: Vec<SeriesRow>,
    /// Of each series and main cause the worst sample that was kept whole, the worst first.
    pub kept: Vec<KeptSample>,
    /// What late samples were blamed on, the most first.
    pub causes: Vec<CauseRow>,
    /// Of which time, behind "causes": `, last 10 s`; empty without any.
    pub causes_of: String,
    /// How many late samples there were; or why causes are missing.
    pub causes_are: String,
    /// Each CPU, by its number; empty where the run is on another machine.
    pub cpus: Vec<CpuShares>,
    /// Interrupts that moved, the most first.
    pub interrupts: Vec<MovedInterrupt>,
    /// Why there are neither; `None` if there are.
    pub no_machine: Option<String>,
    /// Each load.
    pub loads: Vec<LoadState>,
    /// What the run gives reason to doubt so far, worst first.
    pub caveats: Vec<CaveatLine>,
    /// The CPU time of this view, as a share of one CPU; absent in the first second.
    pub own_share: Option<f64>,
}

/// One series.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SeriesRow {
    /// `cpu0`, `rtt`, the name of a thread.
    pub name: String,
    /// The series of all threads of its name, where it is that of a single one.
    pub pooled_in: Option<String>,
    /// Whether it is of the work after wake-ups.
    pub is_response: bool,
    /// Whether it answers what was asked: the responses of a thread with a deadline, else its
    /// wake-ups.
    pub leads: bool,
    /// The CPU that it measures; `None` if it is of none.
    pub cpu: Option<u32>,
    /// Samples so far.
    pub samples: u64,
    /// Periods without a sample; `None` without a schedule.
    pub missed: Option<u64>,
    /// The largest of the last second, ns; absent without samples in it, as below.
    pub now_ns: Option<i64>,
    /// The median, ns.
    pub p50_ns: Option<i64>,
    /// The 99th percentile, ns.
    pub p99_ns: Option<i64>,
    /// The largest, ns.
    pub max_ns: Option<i64>,
    /// When that came, s since the start: from when to when, as far as that is known.
    pub max_s: Option<(f64, f64)>,
    /// The largest of each second of the last minute, oldest first.
    pub minute: Vec<Option<i64>>,
}

impl SeriesRow {
    /// Whether the sample is one of this series. Of a single thread that is known of its largest.
    pub(super) fn has(&self, kept: &KeptSample) -> bool {
        let is_pooled = self.pooled_in.as_ref() == Some(&kept.series);
        kept.series == self.name || is_pooled && Some(kept.latency_ns) == self.max_ns
    }
}

/// A late sample that was kept whole.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeptSample {
    /// Whose.
    pub series: String,
    /// When it was due, s since the start; `None` if nobody knows.
    pub at_s: Option<f64>,
    /// How late, ns.
    pub latency_ns: i64,
    /// Its main cause: `softirq`; empty where it was not blamed.
    pub kind: String,
    /// That with its part and a name: `61% softirq: NET_RX`.
    pub cause: String,
}

/// What late samples of one series were blamed on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CauseRow {
    /// Whose.
    pub series: String,
    /// `softirq`
    pub kind: String,
    /// `softirq: NET_RX`
    pub cause: String,
    /// Late samples with such a part.
    pub samples: u64,
    /// Their parts together, ns.
    pub ns: u64,
}

/// What one CPU's time went to, as shares from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CpuShares {
    /// Its number.
    pub cpu: u32,
    /// Whether it is measured.
    pub is_measured: bool,
    /// Programs.
    pub user: f64,
    /// The kernel for them.
    pub system: f64,
    /// Hard interrupts.
    pub hardirq: f64,
    /// Softirqs.
    pub softirq: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
}

impl CpuShares {
    /// All of it.
    #[must_use]
    pub(crate) fn busy(&self) -> f64 {
        self.user + self.system + self.hardirq + self.softirq + self.steal
    }
}

/// A source of interrupts that counted in the last second.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MovedInterrupt {
    /// `irq 24 virtio0-input.0`, `softirq TIMER`, `Local timer interrupts (LOC)`.
    pub source: String,
    /// Per second, on all CPUs.
    pub per_s: f64,
    /// Per second, on measured CPUs.
    pub measured_per_s: f64,
}

/// A load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoadState {
    /// Its name.
    pub name: String,
    /// What shows that it works: `12.3 k messages/s`; or what is wrong.
    pub proof: String,
    /// Whether it does not work.
    pub fails: bool,
}

/// A reason to doubt the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CaveatLine {
    /// `invalidates`, `weakens`, `informs`.
    pub effect: &'static str,
    /// What it is.
    pub text: String,
}

//! The page's data model: the one JSON block that the drawing code reads.
//!
//! `docs/reference/page-data.md` describes it for readers; `docs/page.schema.json` and
//! the types of the
//! drawing code, `web/src/data.ts`, are derived from it. Latencies and interval lengths are
//! integers in ns; `t_s` is seconds since the run's `started_at`.

use serde::{Deserialize, Serialize};

use super::{
    ab_page::PageAb,
    causes::{PageBlame, PagePeaks},
    comparison_page::PageComparison,
    deadline::SeriesDeadline,
    matrix_page::PageMatrix,
    profile::PageCpuUse,
    tail::RunTail,
    trend::PageTrend,
    vocabulary::{SampleWords, Vocabulary},
};
use crate::{analysis::between::BetweenThreads, run::Document};

/// The version of the page's data.
pub const PAGE_VERSION: u32 = 3;

/// All that one page shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Page {
    /// See [`PAGE_VERSION`].
    pub page_version: u32,
    /// The tardy that made the page.
    pub tardy_version: String,
    /// RFC 3339, UTC.
    pub made_at: String,
    /// The words for what the data has names for.
    pub words: Vocabulary,
    /// Edges of the latency bins that histograms and heat maps of all runs share, ascending, ns;
    /// bin `i` holds `edges[i] <= latency < edges[i + 1]`.
    pub latency_edges_ns: Vec<u64>,
    /// The runs, in the order they were named.
    pub runs: Vec<PageRun>,
    /// One side's runs against another's; none where there is one run, and where runs cannot
    /// be compared.
    #[serde(default)]
    pub comparisons: Vec<PageComparison>,
    /// Kernels of the lab beside each other, the cells of a plan or the blocks of a comparison,
    /// instead of runs; absent on a page of runs.
    pub matrix: Option<Box<PageMatrix>>,
    /// What a comparison in blocks has beside its figures and its matrix; absent on other pages.
    pub ab: Option<Box<PageAb>>,
    /// Runs of many nights, instead of single ones; absent on other pages.
    pub trend: Option<Box<PageTrend>>,
}

impl Page {
    /// A page of this tardy, made now, that is to show `documents` and has nothing of them yet.
    #[must_use]
    pub fn empty<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Self {
        Self {
            page_version: PAGE_VERSION,
            tardy_version: env!("CARGO_PKG_VERSION").into(),
            made_at: format!("{:.0}", jiff::Timestamp::now()),
            words: Vocabulary::of(documents),
            latency_edges_ns: Vec::new(),
            runs: Vec::new(),
            comparisons: Vec::new(),
            matrix: None,
            ab: None,
            trend: None,
        }
    }

    /// A page that shows how latencies went over many nights.
    #[must_use]
    pub fn of_trend(trend: PageTrend) -> Self {
        Self { trend: Some(Box::new(trend)), ..Self::empty([]) }
    }

    /// A page that shows kernels beside each other.
    #[must_use]
    pub fn of_matrix(matrix: PageMatrix) -> Self {
        Self { matrix: Some(Box::new(matrix)), ..Self::empty([]) }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageRun {
    /// One sentence for a manager.
    pub headline: String,
    /// Machine, kernel, load and duration in one line.
    pub line: String,
    /// What was removed and what was not, in sentences, where it is a run without the time of its
    /// hypervisor; empty of others.
    pub without_host: Vec<String>,
    /// `run.json`, with the status as a reader sees it.
    pub record: Document,
    /// What its samples are called.
    pub samples: SampleWords,
    /// What is drawn of them: of attached threads with a deadline their responses.
    pub drawn: SampleWords,
    /// Whether too many periods were missed for the view per wake-up: then
    /// the view per scheduled period comes first. Of several runs it does not where a series of one
    /// of them missed periods and has no such view.
    pub scheduled_first: bool,
    /// The command line, quoted for a shell.
    pub command: String,
    /// Edges of the time bins of the heat maps: bin `i` is from edge `i` to edge `i + 1`.
    pub time_edges_s: Vec<f64>,
    /// All series together, counts per time and latency bin.
    pub heat: Heat,
    /// One entry a series of wake-ups in `record.series`, in its order; stages are in `stages`.
    pub series: Vec<PageSeries>,
    /// One entry a stage of a series (`cpu0/irq`), in the order of `record.series`; none where
    /// wake-ups were not traced.
    #[serde(default)]
    pub stages: Vec<PageStage>,
    /// What the machine did meanwhile.
    pub machine: MachineTrack,
    /// One track a load, in the order of `record.loads`; a load without figures has an empty one.
    pub loads: Vec<LoadTrack>,
    /// Interrupt and softirq sources that moved, busiest first.
    pub interrupts: Vec<InterruptRow>,
    /// What late wake-ups were blamed on; null where that was not recorded.
    #[serde(default)]
    pub blame: Option<PageBlame>,
    /// What the threads of an attached program did to each other, the longest waits first.
    #[serde(default)]
    pub between: Vec<BetweenThreads>,
    /// The worst wake-ups, whole.
    #[serde(default)]
    pub peaks: PagePeaks,
    /// What the run's deadline was to each series; none where it had none, and on a page of a
    /// stretch of time.
    #[serde(default)]
    pub deadlines: Vec<SeriesDeadline>,
    /// What was not seen, and how late it may become in a longer time.
    #[serde(default)]
    pub tail: RunTail,
    /// Who used the CPUs; nothing on a page of a stretch of time.
    #[serde(default)]
    pub cpu_use: PageCpuUse,
}

/// One stage of a series: a part of each of its latencies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageStage {
    /// As in `record.series`: the series, a slash, the stage.
    pub name: String,
    /// Counts per bin of `latency_edges_ns`, as in [`PageSeries::histogram`].
    pub histogram: Vec<(u32, u64)>,
}

/// One series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageSeries {
    /// As in `record.series`.
    pub name: String,
    /// The percentile curve: pairs of percentile (0 to 100) and latency in ns, ascending, the last
    /// one the maximum at 100.
    pub curve: Vec<(f64, i64)>,
    /// Counts per bin of `latency_edges_ns`: pairs of bin and count, empty bins left out.
    pub histogram: Vec<(u32, u64)>,
    /// The same per scheduled period; null where no period was missed, for then it is the same, and
    /// if it has no schedule.
    pub scheduled: Option<PageScheduled>,
    /// Counts per time and latency bin of this series alone; absent if there are many series.
    pub heat: Option<Heat>,
    /// Latencies over time.
    pub points: Points,
}

/// One series per scheduled period: a wake-up late by L at period T counts as L, L-T, ..., L-kT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageScheduled {
    /// As in [`PageSeries`].
    pub curve: Vec<(f64, i64)>,
    /// As in [`PageSeries`].
    pub histogram: Vec<(u32, u64)>,
}

/// Counts per time and latency bin, empty cells left out; three columns of one length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Heat {
    /// Index into `time_edges_s`.
    pub time: Vec<u32>,
    /// Index into `latency_edges_ns`.
    pub latency: Vec<u32>,
    /// Samples in the cell, at least 1.
    pub count: Vec<u64>,
}

/// Latencies over time; two columns of one length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Points {
    /// What a point is.
    pub kind: PointKind,
    /// Samples (or intervals) there were; more than the points where the crowd was thinned.
    pub of: u64,
    /// How the crowd was thinned, in words; empty where it was not.
    pub thinned: String,
    /// Seconds since the start of the run.
    pub t_s: Vec<f64>,
    /// Latency in ns; early wake-ups are negative.
    pub latency_ns: Vec<i64>,
}

/// What a point of [`Points`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PointKind {
    /// One wake-up.
    Sample,
    /// The largest latency of an interval; single samples were not kept.
    IntervalMax,
}

/// What the machine did, second by second; columns of one length, rates per second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MachineTrack {
    /// End of each interval, seconds since the start of the run.
    pub t_s: Vec<f64>,
    /// Hard interrupts per second, all CPUs.
    pub interrupts_per_s: Vec<f64>,
    /// Soft interrupts per second, all CPUs.
    pub softirqs_per_s: Vec<f64>,
    /// Context switches per second, all CPUs.
    pub context_switches_per_s: Vec<f64>,
    /// Share of time that each CPU was not idle, 0 to 1.
    pub cpu_busy: Vec<CpuBusy>,
}

/// How busy one CPU was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuBusy {
    /// Its number.
    pub cpu: u32,
    /// Share of time not idle, 0 to 1, one per interval of [`MachineTrack`].
    pub busy: Vec<f64>,
}

/// What a load did over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoadTrack {
    /// Its name.
    pub name: String,
    /// What one operation is.
    pub unit: String,
    /// End of each interval, seconds since the start of the run.
    pub t_s: Vec<f64>,
    /// Operations per second.
    pub operations_per_s: Vec<f64>,
}

/// One source of interrupts that moved during the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InterruptRow {
    /// `irq` or `softirq`.
    pub kind: String,
    /// `LOC`, `24`, `TIMER`, ...
    pub source: String,
    /// What the kernel calls it: `Local timer interrupts`.
    pub description: String,
    /// Total per second, all CPUs.
    pub per_s: f64,
    /// Count per CPU during the run; pairs of CPU and count, CPUs without any left out.
    pub per_cpu: Vec<(u32, u64)>,
}

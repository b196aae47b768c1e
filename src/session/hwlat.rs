//! Runs the kernel's tracer of hardware latency, for `tardy hwlatdetect`.
//!
//! Changes on the machine, all in the journal before they are made: an instance of the tracer, its
//! threshold, window and width, which the kernel has once for all instances; and a request on
//! `/dev/cpu_dma_latency`, which the kernel drops when the process ends.

use std::{thread::sleep, time::Duration};

use anyhow::{Context as _, Result, ensure};
use tardy_hot::clock::now_ns;

use crate::{
    kernel::tracefs::{HwlatLine, HwlatRecord, HwlatTracer},
    setup::{
        journal::{Change, Journal, JournalPath, KnownFile},
        power::DmaLatency,
    },
    sys::{cpus::Cpus, root::Root},
};

const THRESHOLD: &str = "/sys/kernel/tracing/tracing_thresh";
const WINDOW: &str = "/sys/kernel/tracing/hwlat_detector/window";
const WIDTH: &str = "/sys/kernel/tracing/hwlat_detector/width";

/// How often the trace is read.
const READ_EVERY: Duration = Duration::from_millis(100);

/// What was asked for; the rest stays as the kernel has it.
#[derive(Debug, Clone, Default)]
pub(crate) struct HwlatRequest {
    pub(crate) threshold_us: Option<u64>,
    pub(crate) window_us: Option<u64>,
    pub(crate) width_us: Option<u64>,
    pub(crate) cpus: Option<Cpus>,
}

/// What the kernel has then, us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HwlatSettings {
    /// Longer gaps are recorded.
    pub(crate) threshold: u64,
    /// From the begin of one measurement to the next.
    pub(crate) window: u64,
    /// How long each measures.
    pub(crate) width: u64,
}

/// What was recorded.
#[derive(Debug, Default)]
pub(crate) struct HwlatFound {
    pub(crate) records: Vec<HwlatRecord>,
    /// Records that the kernel had no room for.
    pub(crate) lost: u64,
    pub(crate) was_interrupted: bool,
}

/// The tracer, ready to measure.
#[derive(Debug)]
pub(crate) struct HwlatDetector {
    // Before the journal, which removes the instance: a reader would be in the way.
    tracer: HwlatTracer,
    journal: Journal,
    pub(crate) settings: HwlatSettings,
    /// Each value that was written, for people.
    pub(crate) written: Vec<String>,
}

impl HwlatDetector {
    /// Makes the instance, and sets what was asked for.
    ///
    /// # Errors
    /// The kernel has no such tracer, or refuses a value; then all is as before.
    pub(crate) fn prepare(asked: &HwlatRequest, command: &str) -> Result<Self> {
        let path = HwlatTracer::look()?;
        let root = Root::default();
        let mut journal = Journal::claim(&JournalPath::usual(), &root, command)?;
        // The kernel restores it with the end of the instance; should it not, this does.
        journal.note(Change::of_file(&root, THRESHOLD).into_iter().collect())?;
        journal.note(vec![Change::TraceInstance { path: path.clone() }])?;
        let tracer = HwlatTracer::make(&path).context(
            "the hwlat tracer cannot be used; if another instance has it, end that one first",
        )?;
        let (settings, written) = adjust(&mut journal, &root, asked)?;
        if let Some(cpus) = &asked.cpus {
            let online = root.read("/sys/devices/system/cpu/online").unwrap_or_default();
            let online: Cpus = online.parse().unwrap_or_default();
            let off = cpus.without(&online);
            ensure!(off.is_empty(), "--cpu-list {cpus}: CPU {off} is not online; use {online}");
            tracer.set_cpus(cpus)?;
        }
        Ok(Self { tracer, journal, settings, written })
    }

    /// Measures for this time, or until told to end; hands over each record as it comes.
    ///
    /// # Errors
    /// The tracer cannot be started, read or stopped.
    pub(crate) fn detect(
        &mut self,
        length: Duration,
        is_told: impl Fn() -> bool,
        mut each: impl FnMut(&HwlatRecord) -> Result<()>,
    ) -> Result<HwlatFound> {
        let _idle = DmaLatency::hold();
        let mut found = HwlatFound::default();
        self.tracer.start()?;
        let length_ns = i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
        let end_ns = now_ns().saturating_add(length_ns);
        loop {
            let rest_ns = end_ns.saturating_sub(now_ns());
            found.was_interrupted = is_told();
            let is_over = rest_ns <= 0 || found.was_interrupted;
            if is_over {
                self.tracer.stop()?;
            }
            let mut lines = Vec::new();
            self.tracer.read(|line| lines.push(line)).context("cannot read the trace")?;
            found.take(lines, &mut each)?;
            if is_over {
                return Ok(found);
            }
            sleep(READ_EVERY.min(Duration::from_nanos(rest_ns.unsigned_abs())));
        }
    }

    /// Restores everything; what could not be.
    pub(crate) fn restore(mut self) -> Vec<String> {
        drop(self.tracer);
        self.journal.undo().failed
    }
}

impl HwlatFound {
    fn take(
        &mut self,
        lines: Vec<HwlatLine>,
        each: &mut impl FnMut(&HwlatRecord) -> Result<()>,
    ) -> Result<()> {
        for line in lines {
            match line {
                HwlatLine::Record(record) => {
                    each(&record)?;
                    self.records.push(record);
                }
                HwlatLine::Lost(records) => self.lost = self.lost.saturating_add(records),
                HwlatLine::Other => {}
            }
        }
        Ok(())
    }
}

/// Sets what was asked for, in an order that the kernel takes: the width never exceeds the window.
/// Each value is journalled before it is written, so that undoing them from the last to the first
/// never does either. A threshold noted while the tracer is on is the one that the kernel would
/// use next time: it remembers the last.
fn adjust(
    journal: &mut Journal,
    root: &Root,
    asked: &HwlatRequest,
) -> Result<(HwlatSettings, Vec<String>)> {
    let mut written = Vec::new();
    let mut set = |flag: &str, path: &str, us: u64| -> Result<()> {
        journal.note(Change::of_file(root, path).into_iter().collect())?;
        let file = KnownFile::find(path).context("no such setting")?;
        file.write(root, &us.to_string())
            .with_context(|| format!("{flag} {us}us: the kernel refuses it ({path})"))?;
        written.push(format!("{path} set to {us}"));
        Ok(())
    };
    if let Some(us) = asked.threshold_us {
        set("--threshold", THRESHOLD, us)?;
    }
    if let Some(us) = asked.window_us {
        if us < value(root, WIDTH)? {
            set("--window", WIDTH, us / 2)?;
        }
        set("--window", WINDOW, us)?;
    }
    if let Some(us) = asked.width_us {
        if us > value(root, WINDOW)? {
            set("--width", WINDOW, us.saturating_mul(2))?;
        }
        set("--width", WIDTH, us)?;
    }
    let settings = HwlatSettings {
        threshold: value(root, THRESHOLD)?,
        window: value(root, WINDOW)?,
        width: value(root, WIDTH)?,
    };
    Ok((settings, written))
}

fn value(root: &Root, path: &str) -> Result<u64> {
    root.value(path).with_context(|| format!("{path} cannot be read"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A machine whose tracer is on.
    struct Machine {
        directory: tempfile::TempDir,
        root: Root,
    }

    impl Machine {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let root = Root::at(directory.path());
            fs::create_dir_all(directory.path().join("sys/kernel/tracing/hwlat_detector")).unwrap();
            fs::create_dir_all(directory.path().join("proc/sys/kernel/random")).unwrap();
            fs::write(directory.path().join("proc/sys/kernel/random/boot_id"), "b\n").unwrap();
            let machine = Self { directory, root };
            machine.put([10, 1_000_000, 500_000]);
            machine
        }

        fn put(&self, values: [u64; 3]) {
            for (path, value) in [THRESHOLD, WINDOW, WIDTH].into_iter().zip(values) {
                fs::write(self.root.path(path), format!("{value}\n")).unwrap();
            }
        }

        fn values(&self) -> [u64; 3] {
            [THRESHOLD, WINDOW, WIDTH].map(|path| value(&self.root, path).unwrap())
        }

        fn journal(&self) -> Journal {
            let path = JournalPath::at(self.directory.path().join("state/journal"));
            Journal::claim(&path, &self.root, "tardy hwlatdetect").unwrap()
        }
    }

    #[test]
    fn settings_are_written_in_an_order_that_the_kernel_takes_and_restored() {
        let machine = Machine::new();
        for (asked, expected, writes) in [
            ([Some(25), Some(100_000), None], [25, 100_000, 50_000], 3),
            ([None, Some(2_000_000), None], [10, 2_000_000, 500_000], 1),
            ([None, None, Some(1_500_000)], [10, 3_000_000, 1_500_000], 2),
            ([None, Some(1_000), Some(4_000)], [10, 8_000, 4_000], 4),
            ([None, None, None], [10, 1_000_000, 500_000], 0),
        ] {
            let [threshold_us, window_us, width_us] = asked;
            let asked = HwlatRequest { threshold_us, window_us, width_us, cpus: None };
            let mut journal = machine.journal();
            let (settings, written) = adjust(&mut journal, &machine.root, &asked).unwrap();
            assert_eq!(machine.values(), expected);
            let HwlatSettings { threshold, window, width } = settings;
            assert_eq!([threshold, window, width], expected);
            assert_eq!(written.len(), writes, "{written:?}");
            assert_eq!(journal.undo().failed, [""; 0]);
            assert_eq!(machine.values(), [10, 1_000_000, 500_000]);
        }
    }

    #[test]
    fn what_the_trace_lost_is_counted_and_the_rest_is_handed_over() {
        let text = include_str!("../../tests/fixtures/hwlat/trace.txt");
        let lines: Vec<HwlatLine> = text.lines().map(HwlatLine::read).collect();
        let (mut found, mut handed) = (HwlatFound::default(), 0);
        let lost = [HwlatLine::Lost(3), HwlatLine::Lost(4)];
        let lines = lines.into_iter().chain(lost).collect();
        found
            .take(lines, &mut |_| {
                handed += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!((found.records.len(), found.lost, handed), (3, 7, 3));
    }
}

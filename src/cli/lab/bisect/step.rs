//! One kernel of the row: measured, and compared with the good one.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{
    analysis::{
        baseline::{Baseline, BaselineFinding, BaselineResult},
        bisection::BisectSide,
    },
    cli::{
        lab::{compare, gates, measure::LabMeasurement},
        output,
    },
    lab::{
        cell::{ClockMode, guest_runner::GuestRunner},
        kernels::{self, KernelSource},
        matrix::{
            cell_runner::{CellRunner, Target, file_names},
            results::Results,
            rows::LabRow,
        },
    },
    plan::order::CellOrder,
    run::{Document, Run, RunDirectory},
    sys::signals::Quit,
};

/// How kernels are measured and judged.
pub(super) struct Asked<'a> {
    pub plan: &'a str,
    pub phases: u32,
    pub seed: u64,
    pub limit: Duration,
    pub margin: Option<f64>,
    pub quiet: bool,
}

/// The runs of one kernel.
pub(super) struct Measured(Vec<Run>);

impl Measured {
    pub(super) fn documents(&self) -> Vec<&Document> {
        self.0.iter().map(|run| &run.document).collect()
    }
}

/// Measures kernels one after the other, each into its own directory.
pub(super) struct Stepper<'a> {
    asked: Asked<'a>,
    /// With the one kernel that is measured.
    cells: CellRunner,
    cache: PathBuf,
    results: &'a Results,
    directory: &'a RunDirectory,
    place: &'a Path,
    quit: &'a Quit,
    /// Names of directories that are taken.
    names: Vec<String>,
}

impl<'a> Stepper<'a> {
    pub(super) fn new(
        asked: Asked<'a>,
        (runner, cache): (GuestRunner, &Path),
        results: &'a Results,
        (directory, place): (&'a RunDirectory, &'a Path),
        quit: &'a Quit,
    ) -> Self {
        let cells = CellRunner {
            runner: Some(runner),
            targets: Vec::new(),
            rows: Vec::new(),
            mode: ClockMode::Deterministic,
            seed: asked.seed,
            limit: asked.limit,
            program: PathBuf::new(),
        };
        let cache = cache.join(kernels::DIRECTORY);
        Self { asked, cells, cache, results, directory, place, quit, names: Vec::new() }
    }

    /// Whether somebody asked for the end.
    pub(super) fn is_stopped(&self) -> bool {
        self.quit.seen().is_some()
    }

    /// Measures these loads under a kernel.
    ///
    /// # Errors
    /// It cannot be had or does not boot; a cell that failed; an interruption.
    pub(super) fn measure(&mut self, source: &KernelSource, rows: &[LabRow]) -> Result<Measured> {
        let quiet = self.asked.quiet;
        let notify = |line: &str| {
            if !quiet {
                output::notice(line);
            }
        };
        let kernel = kernels::get(source, &self.cache, &notify)?;
        kernel.check()?;
        notify(&format!("{}:", source.asked));
        self.cells.targets =
            vec![Target { name: kernel.asked.clone(), kernel: Some(kernel), is_control: false }];
        self.cells.rows = rows.to_vec();
        let name = self.directory_name(&source.asked);
        let below = self.place.join(&name);
        let directory = self.directory.subdirectory(&name);
        let directory = directory.with_context(|| format!("cannot make {}", below.display()))?;
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let record = LabMeasurement {
            plan: self.asked.plan,
            cell_runner: &self.cells,
            results: self.results,
            phases: 0..self.asked.phases,
            order: (CellOrder::Listed, self.asked.seed),
            pause: Duration::ZERO,
            budget: None,
            jobs,
            again: false,
            quiet,
            quit: self.quit,
        }
        .measure(&directory, &below)?;
        if let Some(failed) = record.failed.first() {
            bail!("{}, phase {}: {}", failed.load, failed.seed, failed.why);
        }
        if record.undone > 0 {
            bail!("interrupted; what was measured is kept, and found again the next time");
        }
        Ok(Measured(compare::gather_held(&directory, &below)?.runs))
    }

    /// A name for the kernel's directory that no other has.
    fn directory_name(&mut self, asked: &str) -> String {
        let stem = asked.rsplit('/').next().unwrap_or(asked).to_owned();
        self.names.push(stem);
        file_names(self.names.iter().map(String::as_str)).pop().unwrap_or_default()
    }

    /// What is said of each load and figure against the good kernel.
    pub(super) fn judge(&self, baseline: &Baseline, runs: &Measured) -> Vec<BaselineResult> {
        baseline.decide(&runs.documents(), self.asked.margin)
    }

    /// On which side a kernel is by the figure of `worst`, and why. One that does not boot is on
    /// none.
    pub(super) fn look(
        &mut self,
        kernel: &KernelSource,
        rows: &[LabRow],
        baseline: &Baseline,
        worst: &BaselineResult,
    ) -> (BisectSide, String) {
        let found = match self.measure(kernel, rows) {
            Ok(runs) => self.judge(baseline, &runs),
            Err(error) => return (BisectSide::Open, format!("{error:#}")),
        };
        let is_it = |one: &&BaselineResult| one.load == worst.load && one.figure == worst.figure;
        let Some(own) = found.iter().find(is_it) else {
            return (BisectSide::Open, "no such figure".into());
        };
        let side = match own.is_kept() {
            Some(true) => BisectSide::Good,
            Some(false) => BisectSide::Bad,
            None => BisectSide::Open,
        };
        (side, gates::difference(own))
    }
}

/// Of the figures that became worse, the one whose interval is farthest beyond its margin; the
/// maximum only where no percentile did.
pub(super) fn worst(found: &[BaselineResult], figure: Option<&str>) -> Option<BaselineResult> {
    let beyond = |own: &BaselineResult| match own.finding {
        BaselineFinding::Compared(result) => {
            result.interval.map_or(f64::MIN, |(low, _)| low - own.margin.ln_1p())
        }
        _ => f64::MIN,
    };
    let asked = found.iter().filter(|own| figure.is_none_or(|figure| own.figure == figure));
    let worse = asked.filter(|own| own.is_kept() == Some(false));
    // The largest sample varies most: other kernels are seldom for certain on either side of it.
    let order = |own: &BaselineResult| (own.figure != "max", beyond(own));
    worse
        .max_by(|a, b| {
            let (a, b) = (order(a), order(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        })
        .cloned()
}

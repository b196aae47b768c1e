//! `tardy lab compare`: runs of the lab side by side, and how they differ.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use serde_json::json;

use crate::limits::matrix::{DEEPEST, MOST_CONFIG_BYTES, MOST_RECORD_BYTES, MOST_RUNS};
use crate::{
    analysis::{
        kernel_config::{KernelConfig, differences},
        matrix::{MOST_KERNELS, NameOrder, matrix},
    },
    cli::{Exit, flags::FormatFlags, gates, output, report},
    lab::kernels::LARGEST_CONFIG,
    report::{
        causes::cells,
        finding::of_lab,
        gate_decision::GateResult,
        html,
        lab::{self, ConfigRow, ConfigTable, MatrixView},
        matrix_page,
        page::Page,
    },
    run::{Document, Run, RunDirectory, files, lab::LabRecord, names},
    store::Store,
};

/// Compare kernels load by load, over all phase offsets.
///
/// Compares the phase offsets of each kernel with those of the first one. The error probability is
/// 5% for all metrics of the matrix together. Each difference is stated as its smallest plausible
/// size. With few phase offsets it gives no verdict (`tardy lab run --seeds 7`).
#[derive(Debug, Args)]
pub(super) struct CompareFlags {
    /// Output directories of `tardy lab run`, or runs in them
    #[arg(value_name = "PLACE", required = true)]
    places: Vec<String>,
    /// File to write; an existing one is replaced
    ///
    /// One self-contained HTML page; its name ends in .html.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    format: FormatFlags,
}

/// Runs, with the records of their directories.
#[derive(Default)]
pub(in crate::cli) struct Gathered {
    pub runs: Vec<Run>,
    /// Each run with its directory.
    pub records: Vec<(PathBuf, LabRecord)>,
    record_bytes: u64,
}

/// Prints the comparison.
pub(super) fn compare(flags: &CompareFlags, store: &Store) -> Result<Exit> {
    if let Some(file) = &flags.output {
        report::is_page("-o", file)?;
    }
    let gathered = gather(&flags.places, store)?;
    let sheet = sheet(&gathered)?;
    put(&sheet, flags.format.is_json(), None)?;
    if let Some(file) = &flags.output {
        write_page(file, &sheet, &gathered)?;
    }
    Ok(Exit::Done)
}

/// Prints a sheet, and what came of gates where there were any.
pub(super) fn put(sheet: &MatrixView, as_json: bool, gates: Option<&[GateResult]>) -> Result<()> {
    if !as_json {
        output::put(&lab::show(sheet))?;
        return gates::put_by("load and kernel", gates);
    }
    let mut value = json!({
        "title": sheet.title,
        "finding": sheet.finding,
        "meaning": lab::meanings(&sheet.matrix),
        "matrix": sheet.matrix,
        "failed": sheet.failed,
        "undone": sheet.undone,
        "config": sheet.config,
    });
    if let Some(gates) = gates {
        value["gates"] = json!(gates);
    }
    output::put_json(&value)
}

/// Writes the page of a sheet made from these runs.
pub(super) fn write_page(file: &Path, sheet: &MatrixView, gathered: &Gathered) -> Result<()> {
    let page = Page::of_matrix(matrix_page::matrix(sheet, &gathered.runs));
    let text = html::render(&page).context("cannot write the data of the page")?;
    report::write(file, text.as_bytes())
}

/// Opens all runs at these paths.
pub(in crate::cli) fn gather(places: &[String], store: &Store) -> Result<Gathered> {
    let mut found = Gathered::default();
    for name in places {
        let place = store.place_of(Path::new(name));
        match place.filter(|place| place.is_dir() && !place.join(names::RUN).exists()) {
            Some(place) => found.add(&place, false)?,
            None => found.runs.push(store.find(name)?),
        }
    }
    ensure!(
        !found.runs.is_empty() || !found.records.is_empty(),
        "no runs in {}; `tardy lab run` makes them",
        places.join(", ")
    );
    Ok(found)
}

/// Opens all runs in a directory of the lab that is held open, which errors call `place`.
pub(super) fn gather_held(directory: &RunDirectory, place: &Path) -> Result<Gathered> {
    let mut found = Gathered::default();
    let held = directory.path();
    found.add(&held, true).map_err(|error| {
        let shown = |path: &Path| path.display().to_string();
        anyhow!(format!("{error:#}").replace(&shown(&held), &shown(place)))
    })?;
    Ok(found)
}

impl Gathered {
    /// Opens the runs below `directory`, which lies in a directory of the lab or not.
    fn add(&mut self, directory: &Path, in_lab: bool) -> Result<()> {
        let mut found = Vec::new();
        self.look_into(directory, 0, in_lab, &mut found)?;
        for (path, in_lab) in found {
            let run = Run::open(&path)?;
            // One without these is a cell whose lab was killed before it was done; the record of
            // the lab counts it among those that were not made.
            if !in_lab || run.document.facts.lab.is_some() {
                self.runs.push(run);
            }
        }
        Ok(())
    }

    /// Finds the runs below `directory`, and whether each is in a directory of the lab.
    fn look_into(
        &mut self,
        directory: &Path,
        depth: usize,
        in_lab: bool,
        found: &mut Vec<(PathBuf, bool)>,
    ) -> Result<()> {
        let shown = || format!("cannot read {}", directory.display());
        let record = LabRecord::open(directory).with_context(shown)?;
        let in_lab = in_lab || record.is_some();
        self.records.extend(record.map(|record| (directory.into(), record)));
        let mut below: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(directory).with_context(shown)? {
            let entry = entry.with_context(shown)?;
            // Not through symbolic links, which may form cycles.
            if entry.file_type().with_context(shown)?.is_dir() {
                below.push(entry.path());
            }
        }
        below.sort();
        for path in below {
            if let Ok(about) = fs::metadata(path.join(names::RUN)) {
                self.record_bytes = self.record_bytes.saturating_add(about.len());
                ensure!(
                    self.runs.len() + found.len() < MOST_RUNS,
                    "more than {MOST_RUNS} runs below {}; name a directory of the lab",
                    directory.display()
                );
                ensure!(
                    self.record_bytes <= MOST_RECORD_BYTES,
                    "the records of the runs below {} have more than {} MiB together; name fewer \
                     runs",
                    directory.display(),
                    MOST_RECORD_BYTES >> 20
                );
                found.push((path, in_lab));
            } else if depth < DEEPEST {
                self.look_into(&path, depth + 1, in_lab, found)?;
            }
        }
        Ok(())
    }

    /// The names of the plans; a general title for runs without a plan.
    fn title(&self) -> String {
        let mut plans: Vec<&str> =
            self.records.iter().map(|(_, record)| record.plan.as_str()).collect();
        plans.dedup();
        if plans.is_empty() { "runs of the lab".into() } else { plans.join(" and ") }
    }
}

/// The comparison of these runs.
pub(super) fn sheet(gathered: &Gathered) -> Result<MatrixView> {
    let records = || gathered.records.iter().map(|(_, record)| record);
    let kernels: Vec<String> =
        records().flat_map(|record| &record.kernels).map(|kernel| kernel.name.clone()).collect();
    let loads: Vec<String> = records().flat_map(|record| record.loads.clone()).collect();
    let failed = records().flat_map(|record| record.failed.clone()).collect::<Vec<_>>();
    let documents: Vec<Document> = gathered.runs.iter().map(|run| run.document.clone()).collect();
    let order = NameOrder { kernels: &kernels, loads: &loads };
    if documents.is_empty() {
        let why = failed.first().map_or("nothing was measured", |cell| cell.why.as_str());
        bail!("{}: no run to compare: {why}", gathered.title());
    }
    let mut matrix = matrix(&documents, order)?;
    cells::fill(&mut matrix, &gathered.runs);
    let mut sheet = MatrixView {
        title: gathered.title(),
        finding: String::new(),
        matrix,
        failed,
        undone: records().map(|record| record.undone).fold(0, usize::saturating_add),
        config: configurations(gathered),
    };
    sheet.finding = of_lab(&sheet, None);
    Ok(sheet)
}

/// The build configurations of the kernels, from the copies beside their runs; one that cannot be
/// read is left out.
fn configurations(gathered: &Gathered) -> Option<ConfigTable> {
    let mut known: Vec<(String, KernelConfig)> = Vec::new();
    let mut room = MOST_CONFIG_BYTES;
    for (directory, record) in &gathered.records {
        for kernel in record.kernels.iter().take(MOST_KERNELS) {
            if known.iter().any(|(name, _)| *name == kernel.name) {
                continue;
            }
            // A plain name: an edited record must not lead out of its directory.
            let plain = kernel.config.as_ref().and_then(|path| path.file_name());
            let most = LARGEST_CONFIG.min(room);
            let text = plain.and_then(|name| files::read(&directory.join(name), most).ok());
            let text = text.unwrap_or_default();
            room = room.saturating_sub(text.len() as u64);
            let config = KernelConfig::parse(&String::from_utf8_lossy(&text));
            if !config.is_empty() {
                known.push((kernel.name.clone(), config));
            }
        }
    }
    let named: Vec<(&str, &KernelConfig)> =
        known.iter().map(|(name, config)| (name.as_str(), config)).collect();
    let found = differences(&named);
    let row = |row: crate::analysis::kernel_config::OptionDifference| ConfigRow {
        option: row.option,
        values: row.values,
    };
    (known.len() > 1).then(|| ConfigTable {
        kernels: found.kernels,
        rows: found.latency.into_iter().map(row).collect(),
        others: found.others,
    })
}

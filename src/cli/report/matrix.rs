//! `tardy report` of a plan or of a comparison in blocks: its page, and the pages of its runs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{run_pages::RunPages, write};
use crate::{
    cli::{Exit, gates::RunGates, plan::gates_of},
    report::{
        compare::{CompareOptions, SideComparison, compare_runs},
        html,
        page::Page,
        page_of_ab,
        plan_page::{self, FoundRun},
    },
    run::{AB, AbRecord, CellStatus, PLAN, PlanRecord, Run, SideName},
    store::{Store, is_plain},
};

/// A directory of many runs, with their record.
pub(super) struct Campaign {
    pub directory: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Plan,
    Ab,
}

impl Campaign {
    /// That of a plan or of a comparison in blocks, where it is what is named.
    pub(super) fn find(names: &[String], store: &Store) -> Option<Self> {
        let [name] = names else { return None };
        let stored = is_plain(name).then(|| store.place(name));
        let mut places = std::iter::once(PathBuf::from(name)).chain(stored);
        places.find_map(|directory| {
            let kinds = [(PLAN, Kind::Plan), (AB, Kind::Ab)];
            let found = kinds.into_iter().find(|(file, _)| directory.join(file).is_file());
            found.map(|(_, kind)| Self { directory, kind })
        })
    }

    /// Writes the page, and those of its runs.
    pub(super) fn report(&self, file: &Path, most: Option<u32>) -> Result<Exit> {
        let mut pages = RunPages::beside(file, most);
        let page = match self.kind {
            Kind::Plan => plan(&self.directory, &mut pages)?,
            Kind::Ab => ab(&self.directory, &mut pages)?,
        };
        let text = html::render(&page).context("cannot write the data of the page")?;
        write(file, text.as_bytes())?;
        pages.tell();
        Ok(Exit::Done)
    }
}

fn plan(directory: &Path, pages: &mut RunPages) -> Result<Page> {
    let record = PlanRecord::open(directory)?;
    let gates = gates_of(&record);
    let limits = gates.limits();
    let mut found = Vec::new();
    for cell in &record.cells {
        let path = cell.path.as_ref().filter(|_| cell.status == CellStatus::Measured);
        found.push(match path {
            Some(path) => pages.found(&directory.join(path), &limits)?,
            None => FoundRun::default(),
        });
    }
    let mut remarks = pages.remarks();
    remarks.extend(gates.against_runs().map(|gate| {
        format!(
            "The gate \"{gate}\" holds all repeats of a cell against other runs: `tardy plan \
             --resume` of this plan with it says what it comes to."
        )
    }));
    Ok(Page::of_matrix(plan_page::matrix(&record, found, remarks)))
}

fn ab(directory: &Path, pages: &mut RunPages) -> Result<Page> {
    let record = AbRecord::open(directory)?;
    let mut found = Vec::new();
    for block in &record.blocks {
        found.push(pages.found(&directory.join(&block.path), &RunGates::default())?);
    }
    let mut remarks = pages.remarks();
    let blocks = held_together(&record, &found).unwrap_or_else(|why| {
        remarks.push(why);
        None
    });
    Ok(page_of_ab::page(&record, found, blocks.as_ref(), remarks))
}

/// The compared blocks of both sides held against each other; nothing where a side has none.
fn held_together(record: &AbRecord, found: &[FoundRun]) -> Result<Option<SideComparison>, String> {
    let of = |side: SideName| -> Vec<Run> {
        let blocks = record.blocks.iter().zip(found);
        let own = blocks.filter(|(block, _)| block.compared && block.side == side);
        own.filter_map(|(_, found)| found.run.clone()).collect()
    };
    let (a, b) = (of(SideName::A), of(SideName::B));
    if a.is_empty() || b.is_empty() {
        return Ok(None);
    }
    let judged = record.judged.iter().filter_map(|name| name.parse().ok()).collect();
    let options = CompareOptions { judged, margin: None };
    match compare_runs(a, b, &options) {
        Ok(report) => Ok(report.comparisons.into_iter().next()),
        Err(error) => Err(format!("The blocks cannot be held against each other: {error}")),
    }
}

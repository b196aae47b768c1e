//! `tardy report` of a plan: the page of its cells, and the pages of its runs beside it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{run_pages::RunPages, write};
use crate::{
    cli::{Exit, plan::gates_of},
    report::{
        html,
        page::Page,
        plan_page::{self, FoundRun},
    },
    run::{CellStatus, PLAN, PlanRecord},
    store::{Store, is_plain},
};

/// The directory of a plan, where that is what is named.
pub(super) fn directory(names: &[String], store: &Store) -> Option<PathBuf> {
    let [name] = names else { return None };
    let stored = is_plain(name).then(|| store.place(name));
    let mut places = std::iter::once(PathBuf::from(name)).chain(stored);
    places.find(|place| place.join(PLAN).is_file())
}

/// Writes the page, and those of its runs.
pub(super) fn report(directory: &Path, file: &Path, most: Option<u32>) -> Result<Exit> {
    let record = PlanRecord::open(directory)?;
    let gates = gates_of(&record);
    let limits = gates.limits();
    let mut pages = RunPages::beside(file, most);
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
    let matrix = plan_page::matrix(&record, found, remarks);
    write_page(file, &Page::of_matrix(matrix))?;
    pages.tell();
    Ok(Exit::Done)
}

fn write_page(file: &Path, page: &Page) -> Result<()> {
    let text = html::render(page).context("cannot write the data of the page")?;
    write(file, text.as_bytes())
}

//! `tardy report` of a plan or of a comparison in blocks: its page, and the pages of its runs.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use super::{run_pages::RunPages, wrote};
use crate::{
    cli::{Exit, chosen::Skipped, gates::RunGates, output, plan::gates_of},
    draft,
    plain::plain_path,
    plan::Plan,
    report::{
        compare::{CompareOptions, SideComparison, compare_runs},
        finding, html,
        page::Page,
        page_of_ab, plan_page,
        plan_sheet::{AskedGates, FoundRun, MeasuredPlan},
        plans_beside::PlansBeside,
        suite::{self, FINDINGS},
        suite_page::PageFinding,
    },
    run::{AbRecord, CellStatus, PlanRecord, Run, SideName},
    store::{CampaignKind, Candidates, PlaceKind, Store, StoredPlace, is_last},
};

/// A directory of many runs, with their record; or several of plans.
pub(in crate::cli) struct Campaign {
    directories: Vec<PathBuf>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plan,
    Ab,
}

impl Campaign {
    /// Those of plans or that of a comparison in blocks, where it is what is named.
    ///
    /// # Errors
    /// A plan beside another kind of record, or beside a name that means nothing.
    pub(in crate::cli) fn find(names: &[String], store: &Store) -> Result<Option<Self>> {
        let words: Vec<&OsStr> = names.iter().map(OsStr::new).collect();
        let among = company(&words, store);
        let (mut found, mut failed) = (Vec::new(), None);
        for name in names {
            match store.find_any(name, among) {
                Ok(place) => found.push(place),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match failed {
            Some(error) if found.iter().any(is_plan) => Err(error.into()),
            // What is missing is said by those that look for runs.
            Some(_) => Ok(None),
            None => Self::of(&found, names.len()),
        }
    }

    /// The same of what `count` names mean.
    ///
    /// # Errors
    /// A plan or a comparison beside something else.
    pub(super) fn of(places: &[StoredPlace], count: usize) -> Result<Option<Self>> {
        let of_kind = |kind: CampaignKind| -> Vec<PathBuf> {
            let own = places.iter().filter(|place| place.kind == PlaceKind::Campaign(kind));
            own.map(|place| place.path.clone()).collect()
        };
        let directories = of_kind(CampaignKind::Plan);
        let comparisons = of_kind(CampaignKind::Comparison);
        if let ([comparison], 1) = (comparisons.as_slice(), count) {
            let directories = vec![comparison.clone()];
            return Ok(Some(Self { directories, kind: Kind::Ab }));
        }
        let Some(first) = directories.first() else { return Ok(None) };
        ensure!(
            directories.len() == count,
            "{} is a plan, and the other is not; name plans only, or runs only (those of \
             a plan are in its directory cells)",
            plain_path(first)
        );
        Ok(Some(Self { directories, kind: Kind::Plan }))
    }

    /// That of a plan in this directory.
    pub(super) fn of_plan(directory: &Path) -> Self {
        Self { directories: vec![directory.to_owned()], kind: Kind::Plan }
    }

    /// Several plans, each after the first compared with it; nothing where one is named alone or
    /// something else.
    pub(in crate::cli) fn beside(&self) -> Result<Option<PlansBeside>> {
        if self.kind != Kind::Plan || self.directories.len() < 2 {
            return Ok(None);
        }
        let mut pages = RunPages::none();
        let mut remarks = Vec::new();
        let plans: Vec<MeasuredPlan> = self
            .directories
            .iter()
            .map(|directory| plan(directory, &mut pages, &mut remarks))
            .collect::<Result<_>>()?;
        pages.tell_unread(Skipped::default())?;
        let unread = finding::unread(&plans);
        PlansBeside::of(&plans, unread, remarks).map(Some).map_err(anyhow::Error::msg)
    }

    /// What errors call it.
    pub(super) fn shown(&self) -> String {
        self.directories.first().map(|first| plain_path(first)).unwrap_or_default()
    }

    /// Writes the page, and those of its runs, and says so, and what was left out.
    ///
    /// # Errors
    /// It cannot be written; or there are runs, and none of them can be read.
    pub(super) fn report(&self, file: &Path, most: Option<u32>, skipped: Skipped) -> Result<Exit> {
        let pages = self.write(file, most)?;
        output::notice(&wrote(file));
        pages.tell();
        pages.tell_unread(skipped)?;
        Ok(Exit::Done)
    }

    /// Writes the page, and those of its runs.
    pub(super) fn write(&self, file: &Path, most: Option<u32>) -> Result<RunPages> {
        let mut pages = RunPages::beside(file, most);
        let page = match (self.kind, self.directories.as_slice()) {
            (Kind::Ab, [directory]) => ab(directory, &mut pages)?,
            (_, directories) => plans(directories, &mut pages)?,
        };
        let text = html::render(&page).context("cannot write the data of the page")?;
        let written = draft::replace(file, text.as_bytes());
        written.with_context(|| format!("cannot write {}", plain_path(file)))?;
        Ok(pages)
    }
}

fn is_plan(place: &StoredPlace) -> bool {
    place.kind == PlaceKind::Campaign(CampaignKind::Plan)
}

/// What `last` means beside other names: a plan beside plans, and a run beside runs. Alone it is
/// the newest of all.
pub(super) fn company(names: &[&OsStr], store: &Store) -> Candidates {
    let last = |name: &OsStr| name.to_str().filter(|name| is_last(name)).map(str::to_owned);
    if let Some(other) = names.iter().find(|name| last(name).is_none()) {
        let place = store.place_of(Path::new(other)).and_then(|place| StoredPlace::of(&place));
        return match place.map(|place| place.kind) {
            Some(PlaceKind::Campaign(_)) => Candidates::Plans,
            // It may be the beginning of an id, too.
            _ => Candidates::Runs,
        };
    }
    let found = names.iter().filter_map(|name| store.find_any(&last(name)?, Candidates::All).ok());
    match names.len() > 1 && !found.into_iter().all(|place| is_plan(&place)) {
        true => Candidates::Runs,
        false => Candidates::All,
    }
}

fn plans(directories: &[PathBuf], pages: &mut RunPages) -> Result<Page> {
    let mut remarks = Vec::new();
    let mut plans = Vec::new();
    for (number, directory) in directories.iter().enumerate() {
        if directories.len() > 1 {
            pages.set_prefix(&format!("{}-", number + 1));
        }
        plans.push(plan(directory, pages, &mut remarks)?);
    }
    let mut all = pages.remarks();
    all.extend(remarks);
    Ok(Page::of_matrix(plan_page::matrix(&plans, all)))
}

fn plan(directory: &Path, pages: &mut RunPages, remarks: &mut Vec<String>) -> Result<MeasuredPlan> {
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
    remarks.extend(gates.against_runs().map(|gate| {
        format!(
            "The gate \"{gate}\" holds all repeats of a cell against other runs: `tardy plan \
             --resume` of this plan with it says what it comes to."
        )
    }));
    let findings = findings(directory).unwrap_or_else(|error| {
        remarks.push(format!("What `tardy check` found before cannot be read: {error:#}"));
        None
    });
    let documents = found.iter().filter_map(|found| Some(&found.run.as_ref()?.document));
    let unmeasured = limits.unmeasured(documents);
    let asked = AskedGates { asked: gates.gates.len(), undecided: gates.against_runs().count() };
    Ok(MeasuredPlan { record, found, findings, gates: asked, unmeasured })
}

/// What was found on the machine before; nothing where nobody looked.
fn findings(directory: &Path) -> Result<Option<Vec<PageFinding>>> {
    let file = directory.join(FINDINGS);
    if !file.exists() {
        return Ok(None);
    }
    let text = Plan::text(&file)?;
    Ok(Some(suite::findings(&text)?))
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

/// The compared blocks of both sides compared with each other; nothing where a side has none.
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
        Err(error) => Err(format!("The blocks cannot be compared: {error}")),
    }
}

//! Counted figures that somebody publishes for others to repeat to the last bit: what decides them,
//! the hash of all samples, and the figures themselves, without the samples.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::verify;
pub use crate::limits::matrix::MOST_PUBLISHED;
use crate::run::{Document, LabFacts, Run};

/// The version of the file that this tardy writes.
pub const PUBLISHED_VERSION: u32 = 1;

/// Runs of the lab as one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedRuns {
    /// See [`PUBLISHED_VERSION`].
    pub published_version: u32,
    /// One a run.
    pub cells: Vec<PublishedCell>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedCell {
    /// The version of tardy that measured.
    pub tardy_version: String,
    /// `uname -r`
    pub release: String,
    /// Its series by name.
    pub series: BTreeMap<String, PublishedSeries>,
    /// What decides the samples, and their hash.
    pub lab: LabFacts,
}

/// The figures of one series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedSeries {
    /// Number of samples.
    pub count: u64,
    /// Figures by their names, `50` to `max`, ns; those with fewer than 10 samples beyond them are
    /// left out.
    pub figures: BTreeMap<String, i64>,
}

impl PublishedRuns {
    /// Of these runs.
    ///
    /// # Errors
    /// No run, too many, one that is not the lab's, whose time is the host's, or whose samples are
    /// not those that its record was made of.
    pub fn of(runs: &[Run]) -> Result<Self> {
        ensure!(!runs.is_empty(), "no runs to publish");
        ensure!(runs.len() <= MOST_PUBLISHED, "more than {MOST_PUBLISHED} runs; name fewer");
        let cells = runs.iter().map(cell).collect::<Result<_>>()?;
        Ok(Self { published_version: PUBLISHED_VERSION, cells })
    }

    /// Whether this tardy can read it.
    ///
    /// # Errors
    /// A newer file, no cells or too many, a cell without a hash.
    pub fn check(&self) -> Result<()> {
        ensure!(
            self.published_version <= PUBLISHED_VERSION,
            "published_version {} is newer than this tardy reads ({PUBLISHED_VERSION})",
            self.published_version
        );
        ensure!(!self.cells.is_empty(), "cells is empty: there is nothing to repeat");
        ensure!(self.cells.len() <= MOST_PUBLISHED, "it has more than {MOST_PUBLISHED} cells");
        for (number, cell) in self.cells.iter().enumerate() {
            let said = format!("cells[{number}].lab");
            ensure!(
                cell.lab.mode == "deterministic",
                "{said}.mode is not deterministic: only virtual time can be repeated"
            );
            ensure!(cell.lab.sample_hash.is_some(), "{said}.sample_hash is missing");
        }
        Ok(())
    }

    /// `most` of the cells, spread evenly over the file.
    #[must_use]
    pub fn some(&self, most: usize) -> Vec<&PublishedCell> {
        let (all, most) = (self.cells.len(), most.min(self.cells.len()));
        (0..most).filter_map(|at| self.cells.get(at * all / most)).collect()
    }
}

impl PublishedCell {
    /// In what a repetition differs: its samples, or, where those are the same, the figures that
    /// were published beside their hash.
    #[must_use]
    pub fn difference(&self, again: &Document) -> Option<String> {
        let now = again.facts.lab.as_ref().and_then(|lab| lab.sample_hash.as_ref());
        if now != self.lab.sample_hash.as_ref() {
            let now = now.map_or("none: it kept no samples", String::as_str);
            return Some(format!("the hash of its samples is {now}"));
        }
        let series = figures(again);
        if series == self.series {
            return None;
        }
        let other = |name: &&String| series.get(*name) != self.series.get(*name);
        let names = series.keys().chain(self.series.keys());
        let name = names.into_iter().find(other)?;
        let now = series.get(name).map(|one| format!("{:?}", one.figures));
        let now = now.unwrap_or_else(|| "not there".into());
        Some(format!("its samples are the same and the published figures of {name} are not: {now}"))
    }
}

fn cell(run: &Run) -> Result<PublishedCell> {
    let facts = &run.document.facts;
    Ok(PublishedCell {
        tardy_version: facts.tardy_version.clone(),
        release: facts.kernel.clone(),
        series: figures(&run.document),
        lab: verify::facts(run)?.clone(),
    })
}

/// The figures of each series that have enough samples.
fn figures(run: &Document) -> BTreeMap<String, PublishedSeries> {
    let series = run.series.iter().map(|series| {
        let is_certain = |name: &String| !series.uncertain.contains(name);
        let certain = series.percentiles.iter().filter(|(name, _)| is_certain(name));
        let named = certain.filter_map(|(name, ns)| Some((name.clone(), i64::try_from(*ns).ok()?)));
        let largest = series.max.map(|ns| ("max".to_owned(), ns));
        let figures = named.chain(largest).collect();
        (series.name.clone(), PublishedSeries { count: series.count, figures })
    });
    series.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(count: usize) -> PublishedRuns {
        let cell = |number: usize| PublishedCell {
            tardy_version: "0.2.0".into(),
            release: "6.1".into(),
            series: BTreeMap::new(),
            lab: LabFacts {
                mode: "deterministic".into(),
                sample_hash: Some("aa".into()),
                load: format!("l{number}"),
                ..LabFacts::default()
            },
        };
        PublishedRuns {
            published_version: PUBLISHED_VERSION,
            cells: (0..count).map(cell).collect(),
        }
    }

    fn refusal(published: &PublishedRuns) -> String {
        published.check().unwrap_err().to_string()
    }

    #[test]
    fn a_file_that_cannot_be_repeated_is_refused_by_the_name_of_what_is_wrong() {
        published(2).check().unwrap();
        assert!(refusal(&published(0)).contains("cells is empty"));
        let mut newer = published(1);
        newer.published_version += 1;
        assert!(refusal(&newer).contains("published_version 2"));
        let mut real = published(2);
        real.cells[1].lab.mode = "kvm".into();
        assert!(refusal(&real).contains("cells[1].lab.mode"));
        let mut bare = published(1);
        bare.cells[0].lab.sample_hash = None;
        assert!(refusal(&bare).contains("cells[0].lab.sample_hash"));
        assert!(PublishedRuns::of(&[]).unwrap_err().to_string().contains("no runs"));
    }

    #[test]
    fn some_cells_are_spread_over_all() {
        let names = |all: usize, most: usize| -> Vec<String> {
            published(all).some(most).iter().map(|cell| cell.lab.load.clone()).collect()
        };
        assert_eq!(names(10, 3), ["l0", "l3", "l6"]);
        assert_eq!(names(2, 5), ["l0", "l1"]);
        assert!(names(2, 0).is_empty());
    }

    #[test]
    fn other_samples_and_other_figures_of_the_same_samples_are_told_apart() {
        let mut again = crate::analysis::matrix::tests::run("k", "l", 1, [8, 100, 110, 120]);
        let lab = again.facts.lab.clone().unwrap();
        let (tardy_version, release) = (String::new(), String::new());
        let cell = PublishedCell { tardy_version, release, series: figures(&again), lab };
        assert_eq!(cell.series["cpu0"].figures.keys().collect::<Vec<_>>(), ["50", "99", "max"]);
        assert_eq!(cell.difference(&again), None);
        let mut flattered = cell.clone();
        flattered.series.get_mut("cpu0").unwrap().figures.insert("99".into(), 50);
        let said = flattered.difference(&again).unwrap();
        assert!(said.contains("the published figures of cpu0 are not") && said.contains("100"));
        again.facts.lab.as_mut().unwrap().sample_hash = Some("other".into());
        assert!(cell.difference(&again).unwrap().contains("is other"));
        again.facts.lab.as_mut().unwrap().sample_hash = None;
        assert!(cell.difference(&again).unwrap().contains("kept no samples"));
    }
}

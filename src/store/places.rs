//! Kinds of directories: a run, or many runs with a record.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::campaigns::CampaignKind;
use crate::{
    limits::selection::DEEPEST,
    run::{AbRecord, CampaignRecordError, CellStatus, PlanRecord, lab::LAB, names},
};

/// What a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceKind {
    /// One run.
    Run,
    /// A comparison, or a plan.
    Campaign(CampaignKind),
    /// An output directory of `tardy lab run`.
    Lab,
}

/// A directory with one run or many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredPlace {
    /// What it is.
    pub kind: PlaceKind,
    /// Its path.
    pub path: PathBuf,
}

/// What was found below a directory.
#[derive(Debug, Default)]
pub(crate) struct PlacesBelow {
    /// Runs, plans, comparisons and directories of the lab, in the order of their paths.
    pub places: Vec<StoredPlace>,
    /// Directories that could not be read, and why.
    pub unread: Vec<String>,
}

impl StoredPlace {
    /// What is in `path`; `None` if it is neither a run nor a record of many.
    #[must_use]
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let kind = if path.join(names::RUN).exists() {
            PlaceKind::Run
        } else if let Some(kind) = CampaignKind::of(path) {
            PlaceKind::Campaign(kind)
        } else if path.join(LAB).is_file() {
            PlaceKind::Lab
        } else {
            return None;
        };
        Some(Self { kind, path: path.to_owned() })
    }

    /// In a sentence: `a plan`.
    #[must_use]
    pub(crate) const fn called(&self) -> &'static str {
        match self.kind {
            PlaceKind::Run => "a run",
            PlaceKind::Campaign(kind) => kind.called(),
            PlaceKind::Lab => "a directory of the lab",
        }
    }

    /// The directories of its runs: those that its record names, in that order.
    ///
    /// # Errors
    /// The record cannot be read.
    pub(crate) fn runs(&self) -> Result<Vec<PathBuf>, CampaignRecordError> {
        let at = |path: String| self.path.join(path);
        Ok(match self.kind {
            PlaceKind::Run => vec![self.path.clone()],
            PlaceKind::Campaign(CampaignKind::Plan) => {
                let cells = PlanRecord::open(&self.path)?.cells.into_iter();
                let measured = cells.filter(|cell| cell.status == CellStatus::Measured);
                measured.filter_map(|cell| cell.path).map(at).collect()
            }
            PlaceKind::Campaign(CampaignKind::Comparison) => {
                let blocks = AbRecord::open(&self.path)?.blocks.into_iter();
                blocks.map(|block| at(block.path)).collect()
            }
            PlaceKind::Lab => self.found_runs(),
        })
    }

    /// The directories of all runs that lie in it, for a record that cannot be read.
    #[must_use]
    pub(crate) fn found_runs(&self) -> Vec<PathBuf> {
        let found = PlacesBelow::of(&self.path).unwrap_or_default().places;
        let runs = found.into_iter().filter(|place| place.kind == PlaceKind::Run);
        runs.map(|place| place.path).collect()
    }
}

impl PlacesBelow {
    /// All that is below `directory`, and not `directory` itself. Hidden directories are left out,
    /// and so are links: they may form cycles, or lead out of a tree that others made.
    ///
    /// # Errors
    /// `directory` cannot be read.
    pub(crate) fn of(directory: &Path) -> io::Result<Self> {
        let mut found = Self::default();
        found.look_into(directory, 0)?;
        Ok(found)
    }

    fn look_into(&mut self, directory: &Path, depth: usize) -> io::Result<()> {
        let mut below = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if !is_hidden && entry.file_type()?.is_dir() {
                below.push(entry.path());
            }
        }
        below.sort();
        for path in below {
            match StoredPlace::of(&path) {
                Some(place) => self.places.push(place),
                None if depth == DEEPEST => {}
                None => {
                    if let Err(error) = self.look_into(&path, depth + 1) {
                        self.unread.push(format!("{} cannot be read: {error}", path.display()));
                    }
                }
            }
        }
        Ok(())
    }
}

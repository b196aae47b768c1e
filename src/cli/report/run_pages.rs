//! The pages of single runs beside the page of the matrix that they are in. They share one viewer.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rustix::rand::{GetRandomFlags, getrandom};

use super::page_of;
use crate::{
    cli::{
        chosen::{Skipped, SkippedKind},
        gates::RunGates,
        output,
    },
    draft::DraftDirectory,
    plain::{plain_path, shell_word},
    report::{html::SharedViewer, plan_sheet::FoundRun, time_range::TimeRange},
    run::Run,
    units::many,
};

/// The number of pages of single runs that are written without --pages.
const PAGES: u32 = 100;

/// The pages of single runs beside that of their matrix.
pub(super) struct RunPages {
    directory: PathBuf,
    /// The same, held open once a page is written, with the viewer in it.
    open: Option<(DraftDirectory, SharedViewer)>,
    most: u32,
    written: u32,
    /// Runs without their own page, for there are enough.
    left_out: u64,
    /// What gates say nothing of, and why.
    refused: Vec<String>,
    /// Runs that were opened.
    opened: u64,
    /// Those that cannot be read.
    skipped: Skipped,
    /// What the names of pages begin with, so that those of several plans differ.
    prefix: String,
}

impl RunPages {
    /// Those of `x.html` are in `x.pages`.
    pub(super) fn beside(file: &Path, most: Option<u32>) -> Self {
        Self {
            directory: file.with_extension("pages"),
            open: None,
            most: most.unwrap_or(PAGES),
            written: 0,
            left_out: 0,
            refused: Vec::new(),
            opened: 0,
            skipped: Skipped::default(),
            prefix: String::new(),
        }
    }

    /// Writes none.
    pub(super) fn none() -> Self {
        Self::beside(Path::new(""), Some(0))
    }

    /// Begins the names of all further pages with this.
    pub(super) fn set_prefix(&mut self, prefix: &str) {
        self.prefix = prefix.to_owned();
    }

    /// Opens a run, decides the limits on it, and writes its page.
    pub(super) fn found(&mut self, path: &Path, gates: &RunGates) -> Result<FoundRun> {
        let run = match Run::open(path) {
            Ok(run) => run,
            Err(error) => {
                let error = error.to_string();
                self.skipped.add(SkippedKind::Run, &error);
                return Ok(FoundRun { error: Some(error), ..FoundRun::default() });
            }
        };
        self.opened += 1;
        let gates = gates.of_run(&run.document).decide_limits(&run).unwrap_or_else(|error| {
            let refusal = error.to_string();
            let is_new = !self.refused.contains(&refusal);
            self.refused.extend(is_new.then_some(refusal));
            None
        });
        let page = self.page(path, &run)?;
        Ok(FoundRun { run: Some(run), page, gates: gates.unwrap_or_default(), error: None })
    }

    /// Writes the page of a run; gives its place from the page of the matrix.
    fn page(&mut self, path: &Path, run: &Run) -> Result<Option<String>> {
        if run.document.series.is_empty() && run.document.figures.is_empty() {
            return Ok(None);
        }
        if self.written >= self.most {
            self.left_out += 1;
            return Ok(None);
        }
        let cell = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{}{cell}.html", self.prefix);
        let shown = || format!("cannot write into {}", self.directory.display());
        let open = match self.open.take() {
            Some(open) => open,
            None => with_viewer(&self.directory).with_context(shown)?,
        };
        let (directory, viewer) = self.open.insert(open);
        let page = page_of(vec![run.clone()], TimeRange::ALL);
        let text = viewer.page(&page, &alone(path, &name), nonce()?);
        let text = text.context("cannot write the data of the page")?;
        directory.replace(name.as_ref(), text.as_bytes()).with_context(shown)?;
        self.written += 1;
        let directory = self.directory.file_name().unwrap_or_default().to_string_lossy();
        Ok(Some(format!("{}/{}", in_link(&directory), in_link(&name))))
    }

    /// What a reader of the matrix must know of the pages.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = self.refused.clone();
        if self.left_out > 0 && self.most > 0 {
            remarks.push(format!(
                "{} without a page, beyond the {} that --pages allows; `tardy report` \
                 of their directories makes them.",
                many(self.left_out, "run"),
                self.most
            ));
        }
        remarks
    }

    /// Says which runs cannot be read, after what was `skipped` before.
    ///
    /// # Errors
    /// There are runs, and none of them can be read.
    pub(super) fn tell_unread(self, mut skipped: Skipped) -> Result<()> {
        skipped.extend(self.skipped);
        skipped.tell_beside(self.opened)
    }

    /// Says how many pages there are, and where.
    pub(super) fn tell(&self) {
        if self.written > 0 {
            let pages = many(u64::from(self.written), "page");
            let place = plain_path(&self.directory);
            output::notice(&format!("wrote {pages} of single runs into {place}"));
        }
    }
}

/// The directory of pages, made where it is absent, with the viewer that they share.
fn with_viewer(path: &Path) -> Result<(DraftDirectory, SharedViewer)> {
    let directory = DraftDirectory::at(path)?;
    let viewer = SharedViewer::new()?;
    // Before any page needs it.
    directory.replace(viewer.name().as_ref(), viewer.text().as_bytes())?;
    Ok((directory, viewer))
}

/// The command that makes one file of the page of a run.
fn alone(run: &Path, page: &str) -> String {
    // The path of a directory that is held open is of this process alone.
    let run = fs::canonicalize(run).unwrap_or_else(|_| run.to_owned());
    format!("tardy report {} -o {}", shell_word(&run), shell_word(Path::new(page)))
}

/// What scripts of one page alone are marked with.
fn nonce() -> Result<u128> {
    let mut random = [0; 16];
    getrandom(&mut random, GetRandomFlags::empty())?;
    Ok(u128::from_ne_bytes(random))
}

/// A file name as a part of a relative link.
fn in_link(name: &str) -> String {
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let each = |byte: u8| match is_kept(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    name.bytes().map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunDirectory;

    #[test]
    fn a_name_in_a_link_is_neither_a_scheme_nor_a_way_out() {
        assert_eq!(in_link("my plan.pages"), "my%20plan.pages");
        assert_eq!(in_link("javascript:x/..\u{e9}#?"), "javascript%3Ax%2F..%C3%A9%23%3F");
    }

    #[test]
    fn the_command_for_one_file_names_the_run_wherever_it_is_typed() {
        let said = alone(Path::new("/a b/cells/0001"), "1-0001.html");
        assert_eq!(said, "tardy report '/a b/cells/0001' -o 1-0001.html");
        let here = tempfile::tempdir().unwrap();
        let held = RunDirectory::open_private(here.path()).unwrap();
        let said = alone(&held.path(), "0001.html");
        let run = shell_word(&here.path().canonicalize().unwrap());
        assert_eq!(said, format!("tardy report {run} -o 0001.html"));
    }

    #[test]
    fn pages_lie_beside_that_of_the_matrix_and_those_left_out_are_told() {
        let mut pages = RunPages::beside(Path::new("/a/x.html"), None);
        assert_eq!((pages.directory.as_path(), pages.most), (Path::new("/a/x.pages"), PAGES));
        assert_eq!(pages.remarks(), Vec::<String>::new());
        pages.left_out = 1;
        assert!(pages.remarks().concat().starts_with("1 run without a page"));
        pages.most = 0;
        assert_eq!(pages.remarks(), Vec::<String>::new(), "none was asked for");
    }
}

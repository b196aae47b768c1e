//! The pages of single runs beside the page of the matrix that they are in.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::page_of;
use crate::{
    cli::{gates::RunGates, output},
    draft::DraftDirectory,
    plain::plain_path,
    report::{html, plan_sheet::FoundRun, time_range::TimeRange},
    run::Run,
    units::many,
};

/// The number of pages of single runs that are written without --pages.
const PAGES: u32 = 100;

/// The pages of single runs beside that of their matrix.
pub(super) struct RunPages {
    directory: PathBuf,
    /// The same, held open once a page is written.
    open: Option<DraftDirectory>,
    most: u32,
    written: u32,
    /// Runs without their own page, for there are enough.
    left_out: u64,
    /// What gates say nothing of, and why.
    refused: Vec<String>,
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
                let error = Some(error.to_string());
                return Ok(FoundRun { error, ..FoundRun::default() });
            }
        };
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
            None => DraftDirectory::at(&self.directory).with_context(shown)?,
        };
        let open = self.open.insert(open);
        let page = page_of(vec![run.clone()], TimeRange::ALL);
        let text = html::render(&page).context("cannot write the data of the page")?;
        open.replace(name.as_ref(), text.as_bytes()).with_context(shown)?;
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

    /// Says how many pages there are, and where.
    pub(super) fn tell(&self) {
        if self.written > 0 {
            let pages = many(u64::from(self.written), "page");
            let place = plain_path(&self.directory);
            output::notice(&format!("wrote {pages} of single runs into {place}"));
        }
    }
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

    #[test]
    fn a_name_in_a_link_is_neither_a_scheme_nor_a_way_out() {
        assert_eq!(in_link("my plan.pages"), "my%20plan.pages");
        assert_eq!(in_link("javascript:x/..\u{e9}#?"), "javascript%3Ax%2F..%C3%A9%23%3F");
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

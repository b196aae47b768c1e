//! Formats that take one run: which one it is.

use std::{io, path::Path};

use anyhow::{Context as _, Result, anyhow, bail, ensure};

use super::ExportFlags;
use crate::{
    cli::profile,
    exchange::export::TraceTimeline,
    run::{Run, profile::Profile},
    store::{FindError, Store},
};

impl ExportFlags {
    /// The only run that is named.
    pub(super) fn one(&self, store: &Store) -> Result<Run> {
        let to = &self.to;
        self.check_no_gates()?;
        let names = self.names()?;
        let names = names.all();
        let [name] = names.as_slice() else {
            bail!("--to {to} takes one run, and {} are named; export one at a time", names.len());
        };
        let shown = || format!("{:?} is not UTF-8; rename it", name.to_string_lossy());
        let name = name.to_str().with_context(shown)?;
        match store.find(name) {
            Ok(run) => Ok(run),
            Err(FindError::Campaign { what, runs, .. }) => bail!(
                "--to {to} takes one run, and {name} is {what}; name one of its runs, which are in \
                 {}",
                runs.display()
            ),
            Err(error) if Path::new(name).is_dir() && error.is_no_run() => {
                bail!("--to {to} takes one run, and {name} is a directory; name a run in it")
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The one run, of which single samples are written.
    pub(super) fn one_sampled(&self, store: &Store) -> Result<Run> {
        let run = self.one(store)?;
        ensure!(
            run.has_samples(),
            "{} kept no single samples, which --to {} is of: measure with --raw, or write its \
             histograms (--to histogram-{})",
            run.document.name,
            self.to,
            self.to
        );
        Ok(run)
    }

    /// What happened when around the late samples of the one run.
    pub(super) fn timeline(&self, store: &Store) -> Result<TraceTimeline> {
        TraceTimeline::of_run(&self.one(store)?).map_err(|what| anyhow!(what))
    }

    /// The profile of the one run.
    pub(super) fn profiled(
        &self,
        store: &Store,
        write: fn(&Profile) -> io::Result<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        Ok(write(&profile::of(&self.one(store)?)?)?)
    }
}

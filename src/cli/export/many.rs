//! The counts of many runs, of which not all need fit into memory.

use std::io;

use anyhow::{Result, anyhow, ensure};

use super::ExportFlags;
use crate::{
    cli::chosen::ChosenRuns,
    exchange::export::{CountedRun, CountedRuns},
    limits::export::MOST_BUCKETS,
    store::{Candidates, Store},
};

/// The chosen runs with their counts, each read when its turn comes. Damaged ones are skipped.
pub(super) struct CountedChoice {
    runs: ChosenRuns,
    first: Option<CountedRun>,
}

impl CountedChoice {
    /// The runs that are named, in that order.
    pub(super) fn of(flags: &ExportFlags, store: &Store) -> Result<Self> {
        flags.check_no_gates()?;
        let chosen = flags.names()?.choose(store, Candidates::All)?;
        Self::begin(chosen.into_runs())
    }

    /// The same in the order of their machines.
    pub(super) fn by_machine(flags: &ExportFlags, store: &Store) -> Result<Self> {
        flags.check_no_gates()?;
        let chosen = flags.names()?.choose(store, Candidates::All)?;
        Self::begin(chosen.into_runs().by_machine())
    }

    /// Reads the first one, so that an export without any makes or replaces no file.
    fn begin(runs: ChosenRuns) -> Result<Self> {
        let mut choice = Self { runs, first: None };
        choice.first = choice.read();
        if choice.first.is_none() {
            choice.runs.tell()?;
        }
        Ok(choice)
    }

    fn read(&mut self) -> Option<CountedRun> {
        loop {
            match CountedRun::read(self.runs.next_run()?) {
                Ok(run) => return Some(run),
                Err(why) => self.runs.skip(&why),
            }
        }
    }

    /// Makes something of the runs, and says which were left out.
    pub(super) fn written<T>(
        mut self,
        write: impl FnOnce(CountedRuns<'_>) -> Result<T>,
    ) -> Result<T> {
        let written = write(&mut self)?;
        self.runs.tell()?;
        Ok(written)
    }

    /// All of them, where a format is made of all together.
    pub(super) fn all(self) -> Result<Vec<CountedRun>> {
        self.written(|runs| {
            let mut buckets = 0;
            let one = |run: io::Result<CountedRun>| {
                let run = run?;
                buckets += run.recorded();
                check_buckets(buckets).map(|()| run)
            };
            runs.map(one).collect()
        })
    }
}

impl Iterator for CountedChoice {
    type Item = io::Result<CountedRun>;

    fn next(&mut self) -> Option<Self::Item> {
        self.first.take().or_else(|| self.read()).map(Ok)
    }
}

/// The one run of a format that takes no more.
pub(super) fn one_counted(flags: &ExportFlags, store: &Store) -> Result<CountedRun> {
    let run = CountedRun::read(flags.one(store)?).map_err(|what| anyhow!(what))?;
    check_buckets(run.recorded())?;
    Ok(run)
}

/// Refuses more buckets than a result is made of that is written whole.
fn check_buckets(count: usize) -> Result<()> {
    ensure!(
        count <= MOST_BUCKETS,
        "more than {MOST_BUCKETS} buckets of these histograms have samples; export fewer runs at a \
         time, or --to histogram-parquet"
    );
    Ok(())
}

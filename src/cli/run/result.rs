//! What is printed of a run that has just been measured.

use anyhow::Result;

use crate::{
    cli::{deadline::DeadlineFlags, gates, output, runs::ShownRun},
    report::{
        collect,
        deadline::SeriesDeadline,
        gate_decision::GateResult,
        page::InterruptRow,
        terminal::{self, Asked},
    },
    run::{Document, Run, RunDirectory},
};

/// How much of the result is asked for, and how.
#[derive(Debug, Clone)]
pub(super) struct ResultFlags {
    pub json: bool,
    pub quiet: bool,
    pub interrupts: bool,
    pub deadline: DeadlineFlags,
}

impl ResultFlags {
    /// Prints the result of the run in `held`, whose directory was made as `place`.
    pub(super) fn put(
        &self,
        document: &Document,
        (held, place): (&RunDirectory, &str),
        gates: Option<&[GateResult]>,
    ) -> Result<()> {
        match (self.json, self.quiet) {
            (true, _) => {
                let deadlines = self.deadlines(document, held)?;
                output::put_json(&ShownRun::measured(document, deadlines, gates))?;
            }
            (false, true) => output::put(&terminal::verdict(document, output::width()))?,
            (false, false) => {
                let moved = if self.interrupts { interrupts(held) } else { Vec::new() };
                let deadlines = self.deadlines(document, held)?.unwrap_or_default();
                let asked = Asked { interrupts: &moved, deadlines: &deadlines, ..Asked::default() };
                output::put(&terminal::show(document, place, asked, output::width()))?;
            }
        }
        if !self.json {
            gates::put(gates)?;
        }
        if self.json && !self.quiet {
            let mut caveats = String::new();
            document.caveats.iter().for_each(|caveat| terminal::push_caveat(&mut caveats, caveat));
            output::notice(caveats.trim_end());
        }
        Ok(())
    }

    fn deadlines(
        &self,
        document: &Document,
        held: &RunDirectory,
    ) -> Result<Option<Vec<SeriesDeadline>>> {
        self.deadline.of(&Run::of(held.path(), document.clone()))
    }
}

/// The interrupts of a run that has just been measured, wherever its directory was moved since.
fn interrupts(held: &RunDirectory) -> Vec<InterruptRow> {
    // The commands that read the run report damage to its files.
    let read = |run: Run| collect::interrupts(&run, &mut Vec::new());
    Run::open(&held.path()).map(read).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::run::names;

    #[test]
    fn what_takes_the_place_of_a_run_is_not_read_at_its_end() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1");
        let fill = |from: &str, to: &Path| {
            for name in [names::RUN, names::INTERRUPTS] {
                fs::copy(fixtures.join(from).join(name), to.join(name)).unwrap();
            }
        };
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let held = RunDirectory::make(&at("run")).unwrap();
        fill("timer", &at("run"));
        let own = interrupts(&held);
        assert!(!own.is_empty());
        fs::rename(at("run"), at("moved")).unwrap();
        fs::create_dir(at("run")).unwrap();
        fill("pingpong", &at("run"));
        let swapped = Run::open(&at("run")).unwrap();
        assert_ne!(collect::interrupts(&swapped, &mut Vec::new()), own);
        assert_eq!(interrupts(&held), own);
    }
}

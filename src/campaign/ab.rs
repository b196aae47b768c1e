//! Runs `tardy ab`: block order, blocks, interim analyses, record, end.

use std::{
    fs::File,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use super::{
    ab_plan::{AbRequest, BlockPlan, TRIAL_NS, divide, fixed},
    blocks::{Block, Blocks, trial},
    child_run::ChildOrder,
    commands::{self, Commands, UserCommand},
    judge::{add_caveats, judge, note},
    lock::locked,
    process::ChildWaiter,
};
use crate::{
    analysis::ab::{
        looks::FEWEST_PAIRS,
        measured::MeasuredBlock,
        order::{AbSide, Quad, quads},
    },
    run::{
        AB, AB_LOCK, AbBlock, AbLook, AbRecord, AbStatus, AbVerdict, BandDifference, RunDirectory,
        SideName, Validity,
    },
    sys::{run_id::new_id, signals::Quit},
};

/// The directory of blocks.
const BLOCKS: &str = "blocks";

/// Progress events.
#[derive(Debug)]
pub(crate) enum AbEvent<'a> {
    /// Both sides work; the number of blocks is known.
    Planned(&'a AbRecord),
    /// Interim analysis, with the standard deviation of a pair's log ratio for each figure.
    Looked(&'a AbRecord, &'a [f64]),
    /// It continues.
    Goes(AbProgress<'a>),
}

/// A comparison in progress.
#[derive(Debug)]
pub(crate) struct AbProgress<'a> {
    /// The record so far.
    pub record: &'a AbRecord,
    /// Since the start.
    pub elapsed: Duration,
    /// The side that is measured.
    pub side: SideName,
    /// The number of the block, from 1; 0 for the first ones, which are not compared.
    pub block: u32,
}

/// Which causes differ between the run directories of A and those of B.
pub(crate) type CausesBetween<'a> =
    &'a dyn Fn(&[PathBuf], &[PathBuf]) -> Option<Vec<BandDifference>>;

/// How somebody watches it.
pub(crate) struct Ab<'a> {
    /// How often it is shown while a block continues; absent for never.
    pub pace: Option<Duration>,
    /// What is shown.
    pub show: &'a mut dyn FnMut(AbEvent<'_>),
    /// Which causes differ between the compared blocks of A and those of B.
    pub causes: CausesBetween<'a>,
}

/// Compares, and hands over the record, which is in the directory too.
///
/// # Errors
/// A block or a command of the user failed, or the record cannot be written. What was measured by
/// then is kept, and what the commands changed is restored.
pub(crate) fn run(request: AbRequest, quit: Quit, view: &mut Ab<'_>) -> Result<AbRecord> {
    run_in(RunDirectory::make_private(&request.directory)?, request, quit, view)
}

/// The same in a directory that was made for it.
///
/// # Errors
/// As [`run`].
pub(super) fn run_in(
    directory: RunDirectory,
    request: AbRequest,
    quit: Quit,
    view: &mut Ab<'_>,
) -> Result<AbRecord> {
    let discarded = directory.clone();
    let mut campaign = Campaign::new(request, directory, quit).inspect_err(|_| {
        discarded.discard();
    })?;
    let measured = campaign.measure(view);
    let undone = campaign.undo();
    campaign.note_causes(view.causes);
    campaign.close(measured, undone)
}

/// Why no further block is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is decided, or no time is left.
    Done,
    /// The user ended it.
    Quit,
    /// This run is invalid.
    Invalid,
}

struct Campaign {
    request: AbRequest,
    directory: RunDirectory,
    /// Where the blocks go.
    below: RunDirectory,
    blocks: Blocks,
    commands: Commands,
    watch: ChildWaiter,
    start: Instant,
    record: AbRecord,
    /// What is compared, in the order of time.
    measured: Vec<MeasuredBlock>,
    /// Whether a command may have changed something.
    is_changed: bool,
    /// Held as long as it continues.
    _lock: File,
}

impl Campaign {
    fn new(request: AbRequest, directory: RunDirectory, quit: Quit) -> Result<Self> {
        let cannot = || format!("cannot write into {}", request.directory.display());
        let lock = locked(&directory, &request.directory, AB_LOCK)?;
        let below = directory.subdirectory(BLOCKS).with_context(cannot)?;
        let limit = Duration::from_nanos(u64::try_from(request.budget_ns).unwrap_or(0));
        let campaign = Self {
            blocks: Blocks::new(&directory).with_context(cannot)?,
            commands: Commands::new(&directory, commands::LOG, limit).with_context(cannot)?,
            watch: ChildWaiter::new(quit).context("cannot set a signal handler")?,
            start: Instant::now(),
            record: request.planned(),
            measured: Vec::new(),
            is_changed: false,
            _lock: lock,
            request,
            directory,
            below,
        };
        campaign.write()?;
        Ok(campaign)
    }

    /// The first block of each side, which shows that both can be measured and what that takes;
    /// then quads, until it is decided.
    fn measure(&mut self, view: &mut Ab<'_>) -> Result<End> {
        let mut trials = Vec::new();
        for side in [SideName::A, SideName::B] {
            match self.block(side, TRIAL_NS, 0, view)? {
                Ok(block) => trials.push(trial(&block)),
                Err(end) => return Ok(end),
            }
        }
        let [a, b] = trials.as_slice() else { bail!("a comparison has two sides") };
        let budget = (self.request.budget_ns, self.elapsed_ns());
        let figures = &self.request.figures;
        let plan = match self.request.fixed {
            Some(size) => fixed(size, [*a, *b], figures)?,
            None => divide(budget, [*a, *b], figures)?,
        };
        self.note_plan(&plan)?;
        (view.show)(AbEvent::Planned(&self.record));
        self.compare(&plan, view)
    }

    fn compare(&mut self, plan: &BlockPlan, view: &mut Ab<'_>) -> Result<End> {
        let pairs = plan.looks.pairs().last().copied().unwrap_or(0);
        let order = quads(self.request.seed, pairs as usize / 2);
        for quad in &order {
            for side in quad.sides() {
                let is_late = self.elapsed_ns() >= self.request.budget_ns;
                if is_late && self.request.fixed.is_none() {
                    return Ok(End::Done);
                }
                let number = u32::try_from(self.measured.len()).unwrap_or(u32::MAX) + 1;
                match self.block(name_of(side), plan.block_ns, number, view)? {
                    Ok(block) => self.measured.push(block.measured),
                    Err(end) => return Ok(end),
                }
            }
            if self.look(plan, &order, view)? {
                break;
            }
        }
        Ok(End::Done)
    }

    /// Judges where a look is due; whether all is decided.
    fn look(&mut self, plan: &BlockPlan, order: &[Quad], view: &mut Ab<'_>) -> Result<bool> {
        let pairs = self.measured.len() / 2;
        if !plan.looks.pairs().iter().any(|look| *look as usize == pairs) {
            return Ok(false);
        }
        let figures = &self.request.figures;
        let margin = self.request.margin;
        let Some(found) = judge(&plan.looks, order, &self.measured, figures, margin) else {
            return Ok(false);
        };
        note(&mut self.record, &found);
        self.write()?;
        (view.show)(AbEvent::Looked(&self.record, &found.sds));
        // The first look of a small plan comes earlier; fewer pairs than these end nothing.
        Ok(found.is_decided && pairs >= FEWEST_PAIRS as usize)
    }

    /// Prepares and measures one block, and notes it.
    fn block(
        &mut self,
        side: SideName,
        length_ns: i64,
        number: u32,
        view: &mut Ab<'_>,
    ) -> Result<Result<Block, End>> {
        let name = format!("{number:04}-{}", side.as_str());
        let elapsed = self.start.elapsed();
        (view.show)(AbEvent::Goes(AbProgress {
            record: &self.record,
            elapsed,
            side,
            block: number,
        }));
        let start = Instant::now();
        if let Some(end) = self.prepare(side, &name)? {
            return Ok(Err(end));
        }
        let path = self.request.directory.join(BLOCKS).join(&name);
        let directory = self.below.subdirectory(&name);
        let directory = directory.with_context(|| format!("cannot make {}", path.display()))?;
        let order = ChildOrder {
            words: &self.request.side(side).words,
            length_ns: Some(length_ns),
            id: &new_id()?,
            directory: &directory,
            path: &path,
            name: &format!("{}-{name}", self.record.name),
            store: &self.request.store,
        };
        let (record, began) = (&self.record, self.start);
        let now = || AbProgress { record, elapsed: began.elapsed(), side, block: number };
        let mut show = || (view.show)(AbEvent::Goes(now()));
        let block = self.blocks.measure(&order, &self.watch, (view.pace, &mut show));
        directory.remove_if_empty();
        let Some(mut block) = block? else { return Ok(Err(End::Quit)) };
        block.taken_ns = i64::try_from(start.elapsed().as_nanos()).unwrap_or(i64::MAX);
        self.note_block(side, &name, number > 0, &block)?;
        let is_invalid = block.document.validity == Validity::Invalid;
        Ok(if is_invalid { Err(End::Invalid) } else { Ok(block) })
    }

    /// Runs the prepare command of a side, where it has one.
    fn prepare(&mut self, side: SideName, block: &str) -> Result<Option<End>> {
        if self.watch.is_quit() {
            return Ok(Some(End::Quit));
        }
        let Some(text) = &self.request.side(side).record.prepare else { return Ok(None) };
        let (what, shown) = match side {
            SideName::A => ("prepare-a", "--prepare-a"),
            SideName::B => ("prepare-b", "--prepare-b"),
        };
        let command = UserCommand { what, shown, text, block: Some(block) };
        self.is_changed = true;
        let done = self.commands.run(command, &self.watch)?;
        self.record.commands.push(done.record.clone());
        if done.ended.was_asked {
            return Ok(Some(End::Quit));
        }
        self.commands.check(command, &done)?;
        Ok(None)
    }

    /// Restores what the prepare commands may have changed.
    fn undo(&mut self) -> Result<()> {
        let Some(text) = self.request.undo.as_ref().filter(|_| self.is_changed) else {
            return Ok(());
        };
        let command = UserCommand { what: "undo", shown: "--undo", text, block: None };
        let done = self.commands.run(command, &self.watch)?;
        self.record.commands.push(done.record.clone());
        let checked = self.commands.check(command, &done);
        checked.context("the machine may still be as the last prepare command left it")
    }

    /// Notes which causes differ, once all is measured and restored.
    fn note_causes(&mut self, causes: CausesBetween<'_>) {
        let of = |side: SideName| -> Vec<PathBuf> {
            let own = self.record.blocks.iter().filter(|own| own.compared && own.side == side);
            own.map(|own| self.directory.path().join(&own.path)).collect()
        };
        self.record.causes = causes(&of(SideName::A), &of(SideName::B));
    }

    fn elapsed_ns(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    fn note_plan(&mut self, plan: &BlockPlan) -> Result<()> {
        let look = |pairs: &u32| AbLook { pairs: *pairs, verdict: None };
        self.record.looks = plan.looks.pairs().iter().map(look).collect();
        self.record.block_ns = u64::try_from(plan.block_ns).ok();
        self.record.pair_ns = u64::try_from(plan.pair_ns).ok();
        self.write()
    }

    fn note_block(
        &mut self,
        side: SideName,
        name: &str,
        compared: bool,
        block: &Block,
    ) -> Result<()> {
        let document = &block.document;
        self.record.blocks.push(AbBlock {
            path: format!("{BLOCKS}/{name}"),
            side,
            compared,
            validity: document.validity,
            samples: block.measured.counts.len(),
            measured_ns: document.duration_ns,
            taken_ns: u64::try_from(block.taken_ns).unwrap_or(0),
        });
        add_caveats(&mut self.record.caveats, side, &document.caveats);
        self.write()
    }

    /// Writes all or nothing: a killed process leaves the record of the block before.
    fn write(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.record)? + "\n";
        self.directory.replace(AB, text.as_bytes()).with_context(|| {
            let place = self.request.directory.display();
            format!("cannot write {AB} in {place}; the blocks that were measured are readable")
        })
    }

    /// The last record. A command that could not put the machine back is an error, whatever was
    /// measured.
    fn close(mut self, measured: Result<End>, undone: Result<()>) -> Result<AbRecord> {
        let error = measured.as_ref().err().or(undone.as_ref().err());
        self.record.error = error.map(|error| format!("{error:#}"));
        self.record.status = match (&measured, &undone) {
            (Err(_), _) | (_, Err(_)) => AbStatus::Failed,
            (Ok(End::Done), _) => AbStatus::Complete,
            (Ok(End::Quit), _) => AbStatus::Interrupted,
            (Ok(End::Invalid), _) => AbStatus::Invalid,
        };
        if self.record.status == AbStatus::Invalid {
            self.record.verdict = AbVerdict::Inconclusive;
        }
        self.record.ended_at = Some(jiff::Timestamp::now().to_string());
        let written = self.write();
        // Nothing was measured: an empty record would only be in the way.
        if self.record.status == AbStatus::Failed && self.record.blocks.is_empty() {
            self.directory.discard();
        }
        match (measured, undone) {
            (Err(error), Err(other)) => Err(error.context(format!("and --undo: {other:#}"))),
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(_), Ok(())) => written.map(|()| self.record),
        }
    }
}

const fn name_of(side: AbSide) -> SideName {
    match side {
        AbSide::A => SideName::A,
        AbSide::B => SideName::B,
    }
}

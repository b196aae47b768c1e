//! `tardy run`: from flags to a plan, from the plan to a run.

mod length;
mod measured;
pub(super) mod of_probe;
mod part_of;
mod planned;
mod result;

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::{ArgMatches, Args, parser::ValueSource};

use self::{
    length::{DEFAULT_DURATION, LengthFlags},
    measured::{UserSignal, measure},
    of_probe::{CommonOptions, OfProbe},
    part_of::PartOf,
    result::ResultFlags,
};
use super::{
    Exit,
    cyclictest::EXAMPLES,
    deadline::DeadlineFlags,
    flags::{FormatFlags, LoadFlags},
    gates::{self, GateFlags},
    output,
    runs::new_id,
    setup::{SetupFlags, exit_of_setup, name_holder, recover_first},
    trace::TraceFlags,
};
use crate::{
    plain::plain,
    probes::request::{MeasuredCpus, SharedOptions, ThreadPriority},
    run::{Deadlines, Document, RunDirectory},
    session::RunPlan,
    setup::{Choice, journal::Recovered, threads::ThreadConfig},
    store::{Store, check_name},
    sys::cpus::Cpus,
    units::{Nanos, typed::HowLong},
};

/// Measure latency, idle or under load, and save the run.
///
/// A bare `tardy run` measures timer wake-ups on every CPU for 60 s. No load runs unless
/// you give --load.
///
/// A kill or a full disk loses at most the last second of the record. A power cut loses the data
/// that the kernel had not written yet: by default up to 30 s, and up to 45 s of single samples
/// (--raw). Once tardy has ended, the disk has the complete run.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct CommonFlags {
    #[command(flatten)]
    length: LengthFlags,
    #[command(flatten)]
    setup: SetupFlags,
    #[command(flatten)]
    loads: LoadFlags,
    #[command(flatten)]
    trace: TraceFlags,
    #[command(flatten)]
    gates: GateFlags,
    #[command(flatten)]
    deadline: DeadlineFlags,
    #[command(flatten)]
    record: RecordFlags,
    #[command(flatten)]
    format: FormatFlags,
}

impl CommonOptions for CommonFlags {
    const LEADING: &'static [&'static str] =
        &["loads", "duration", "cpus", "interval", "priority", "name"];
}

/// The options of `tardy run`.
pub(super) type RunFlags = OfProbe<CommonFlags>;

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct RecordFlags {
    /// Also keep every single sample, as Parquet files
    #[arg(long)]
    raw: bool,
    /// Directory for the run [default: a new one in the store]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Name of the run and of its directory
    ///
    /// If NAME exists, the run is saved as NAME-2, NAME-3 and so on. Nothing is overwritten;
    /// `tardy rm` removes runs.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Descriptor of its directory and id, of a run that a plan or a comparison starts
    #[arg(long, value_name = "FD:ID", hide = true, requires = "output")]
    part_of: Option<PartOf>,
    /// Also print how often each CPU was interrupted, by source
    #[arg(long, conflicts_with = "quiet")]
    interrupts: bool,
    /// Show a live full-screen view of the run, like `tardy top`
    ///
    /// The key q closes the view, and the run continues; ? explains the other keys. Without a
    /// terminal this option has no effect.
    #[arg(long, conflicts_with = "quiet")]
    live: bool,
    /// Print only the result: no progress, no hints
    ///
    /// As text: one line with the verdict and one with the headline. `tardy show` prints the rest.
    #[arg(long)]
    quiet: bool,
}

/// Measures, records, and prints the result.
pub(super) fn run(flags: &RunFlags, store: &Store, argv: Vec<String>) -> Result<Exit> {
    let asked = flags.asked_result()?;
    let common = &flags.common;
    let (quiet, live) = (asked.quiet, common.record.live);
    let is_bare = !flags.is_named && common.loads.is_empty();
    let left = recover_first(quiet);
    let (name, gates) = (common.record.name.clone(), common.gates.find(store)?);
    let mut plan = flags.plan(store, argv).map_err(|error| name_holder(error, &left))?;
    plan.left = left;
    planned::check(&gates, &plan, 1, planned::planned_samples(&plan))?;
    planned::check_deadline(&plan)?;
    if is_bare && !quiet {
        output::notice("No load: the machine as it is. `--load hackbench` makes it busy.");
    }
    if let (Some(name), Some(free), false) = (&name, &plan.name, quiet)
        && name != free
    {
        output::notice(&plain(&format!("{name} is there already: this run is {free}.")));
    }
    let directory = plan.directory.clone();
    let (document, held) = measure(plan, quiet, live, UserSignal::Ends)?;
    let ended = if flags.request.has_failed(&document) { Exit::No } else { Exit::Done };
    let found = gates.decide_held(&held);
    let decided = found.as_ref().ok().and_then(Option::as_deref);
    // What was measured is shown also where a gate names a series that did not come.
    asked.put(&document, (&held, &directory.display().to_string()), decided)?;
    let exit = exit_of_setup(&document);
    Ok(exit.worst(ended).worst(gates::exit(&document, found?.as_deref())))
}

/// Measures and records for a drop-in, and prints no result.
///
/// # Errors
/// As [`run`].
pub(super) fn record(
    flags: &RunFlags,
    store: &Store,
    argv: Vec<String>,
) -> Result<(Document, RunDirectory)> {
    let RecordFlags { quiet, live, .. } = flags.common.record;
    let left = recover_first(quiet);
    let mut plan = flags.plan(store, argv).map_err(|error| name_holder(error, &left))?;
    plan.left = left;
    measure(plan, quiet, live, UserSignal::ShowsStatus)
}

impl RunFlags {
    /// What to print at the end.
    fn asked_result(&self) -> Result<ResultFlags> {
        let CommonFlags { format, record, deadline, .. } = &self.common;
        format.refuse_with_json("--interrupts", record.interrupts)?;
        Ok(ResultFlags {
            json: format.is_json(),
            quiet: record.quiet,
            interrupts: record.interrupts,
            deadline: deadline.clone(),
        })
    }

    /// Refuses what [`run`] would refuse before it changes anything, and what no block of a
    /// comparison can be.
    ///
    /// # Errors
    /// The option, and the remedy.
    pub(super) fn check(&self, store: &Store) -> Result<()> {
        let plan = self.plan(store, Vec::new())?;
        ensure!(
            !planned::series_of(&plan).is_empty() || plan.probe.finds_series(),
            "{} measures no latencies, and latencies are compared; measure each side by `tardy \
             run`, and have their figures side by side by `tardy report`",
            plan.probe.name()
        );
        Ok(())
    }

    /// What blocks of a comparison have besides what was typed.
    pub(super) fn defaults_of_blocks(&self, typed: &ArgMatches, is_prepared: bool) -> Vec<String> {
        let is_typed = |id: &str| typed.value_source(id) == Some(ValueSource::CommandLine);
        let defaults = self.request.defaults_of_blocks(is_prepared).into_iter();
        defaults.filter(|(id, _)| !is_typed(id)).map(|(_, word)| word.to_owned()).collect()
    }

    /// Checks everything that can be checked before anything is changed.
    fn plan(&self, store: &Store, argv: Vec<String>) -> Result<RunPlan> {
        let allowed = allowed_cpus()?;
        self.common.setup.check_cpus(&allowed)?;
        let deadlines = self.common.deadline.asked();
        let shared = self.common.shared(&allowed, &deadlines);
        self.request.check(&shared)?;
        let loads = self.common.loads.specs()?;
        let cpus = self.request.cpus(&shared)?;
        let threads = self.threads(&cpus, &shared)?;
        let CommonFlags { length, setup, record, deadline, trace, .. } = &self.common;
        let wishes = setup.wishes(&cpus.all)?;
        let slack_ns = setup.slack_ns();
        let (policy, priority) = (threads.policy.granted, threads.priority.granted);
        let terms = ThreadConfig { policy, priority, cpu: cpus.near, slack_ns };
        let (held, id) = match &record.part_of {
            Some(part) => (Some(part.directory()?), part.id.clone()),
            None => (None, new_id()?),
        };
        let deadline_ns = deadline.all_ns();
        let peak_over_ns = deadline_ns.filter(|_| self.request.keeps_peaks_over_deadline());
        let (directory, name) = self.place(store, &id)?;
        let is_attached = self.info().is_attached();
        if !is_attached {
            deadline.refuse_names(self.info().name)?;
        }
        let planned = self.request.plan(terms, &cpus, &shared)?;
        Ok(RunPlan {
            probe: planned.probe,
            loads,
            length: length.of(self.info(), self.request.lasts_as_its_command()),
            interval_ns: planned.pace_ns,
            warmup_ns: length.warmup.0,
            stop_over_ns: length.stop_over.map(|over| over.0),
            foreign_trace: length.foreign_trace()?,
            deadline_ns,
            raw: record.raw,
            cpus: cpus.all,
            policy: threads.policy,
            priority: threads.priority,
            slack_ns,
            // Another program is looked at as it is.
            hold_dma_latency: !setup.no_dma_latency && !is_attached,
            wishes,
            trace: trace.wish(peak_over_ns)?,
            calibrations: trace.calibrations(store),
            profile_hz: trace.profile_hz(),
            real_time_refused: threads.refused,
            left: Recovered::Nothing,
            directory,
            held,
            name,
            id,
            argv: part_of::without(argv),
        })
    }

    /// Policy and priority of the measured threads.
    fn threads(&self, cpus: &MeasuredCpus, shared: &SharedOptions<'_>) -> Result<ThreadPriority> {
        let setup = &self.common.setup;
        let usual = self.request.usual_policy();
        let policy = setup.policy(Nanos(self.request.interval_ns()), usual)?;
        let priority = Choice::new(setup.priority, DEFAULT_PRIORITY);
        if !policy.value.is_real_time() && priority.explicit {
            bail!(
                "--priority is not supported with --policy {}; leave one of them out",
                policy.value
            );
        }
        self.request.check_policy(policy.value, priority.value, cpus, shared)?;
        self.request.settle(policy, priority)
    }

    /// Where the run goes, and its name where it has one beside its id.
    fn place(&self, store: &Store, id: &str) -> Result<(PathBuf, Option<String>)> {
        let record = &self.common.record;
        let name = record.name.as_ref();
        if let Some(name) = name {
            check_name(name)?;
        }
        if let Some(directory) = &record.output {
            return Ok((directory.clone(), name.cloned()));
        }
        let Some(name) = name else { return Ok((store.place(id), None)) };
        let (place, name) = store.free_place(name);
        Ok((place, Some(name)))
    }
}

impl CommonFlags {
    /// What of it a probe has a say in.
    fn shared<'a>(&'a self, allowed: &'a Cpus, deadlines: &'a Deadlines) -> SharedOptions<'a> {
        SharedOptions {
            cpus: self.setup.cpus.as_ref(),
            allowed,
            samples: self.length.samples,
            duration: self.length.duration.unwrap_or(HowLong::Time(DEFAULT_DURATION)),
            deadlines,
            trace: self.trace.mode(),
            has_loads: !self.loads.is_empty(),
            names_policy: self.setup.says_policy(),
            to_stderr: self.format.is_json(),
        }
    }
}

/// The CPUs that this process may use.
fn allowed_cpus() -> Result<Cpus> {
    Cpus::allowed().context("cannot read which CPUs this process may use")
}

const DEFAULT_PRIORITY: u32 = 90;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::run::probes::{PROBES, Traceable};

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        flags: RunFlags,
    }

    #[test]
    fn every_probe_of_the_table_can_be_named_and_made() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::at(Some(place.path().into())).unwrap();
        // Audio is made from what a server says, so that it needs one.
        for probe in PROBES.iter().filter(|probe| probe.name != "audio") {
            let mut words = vec!["run", probe.name];
            words.extend((probe.name == "receive").then_some("--listen=0"));
            words.extend((probe.name == "attach").then_some("--pid=1"));
            words.extend((probe.name == "inversion").then_some("--hog=1ms"));
            let flags = Typed::try_parse_from(words).unwrap().flags;
            assert_eq!((flags.info(), flags.is_named), (probe, true));
            let plan = match flags.plan(&store, Vec::new()) {
                Ok(plan) => plan,
                // Three real-time priorities need a right.
                Err(refused) => {
                    assert!(format!("{refused:#}").contains("CAP_SYS_NICE"), "{refused:#}");
                    continue;
                }
            };
            assert_eq!(plan.probe.name(), probe.name);
            assert!(plan.interval_ns > 0, "{}", probe.name);
            let traceable = (plan.probe.can_be_traced(), plan.probe.is_traced_on_request());
            let expected = match probe.traceable {
                Traceable::All => (true, false),
                Traceable::OnRequest | Traceable::Causes => (true, true),
                Traceable::No => (false, false),
            };
            assert_eq!(traceable, expected, "{}", probe.name);
        }
        Typed::try_parse_from(["run", "nosuch"]).unwrap_err();
    }
}

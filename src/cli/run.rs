//! `tardy run`: from flags to a plan, from the plan to a run.

mod length;
mod making;
mod measured;
mod part_of;
mod planned;
mod result;

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::{
    ArgMatches, Args,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
    parser::ValueSource,
};

use self::{
    length::LengthFlags,
    making::allowed_cpus,
    measured::{UserSignal, measure},
    part_of::PartOf,
    result::ResultFlags,
};
use super::{
    Exit,
    attach::AttachFlags,
    audio::AudioFlags,
    bandwidth::BandwidthFlags,
    cyclictest::EXAMPLES,
    deadline::DeadlineFlags,
    flags::{FormatFlags, LoadFlags},
    gates::{self, GateFlags},
    interactive::InteractiveFlags,
    inversion::InversionFlags,
    irq::IrqFlags,
    messages::{self, MessageFlags},
    noise::{self, NoiseFlags},
    output,
    runs::new_id,
    setup::{SetupFlags, exit_of_setup, name_holder, recover_first},
    timer::TimerFlags,
    trace::TraceFlags,
};
use crate::{
    plain::plain,
    report::steadiness::found_in_log,
    run::{
        Document, RunDirectory,
        probes::{DEFAULT_PROBE, PROBES, ProbeInfo, Rhythm},
    },
    session::RunPlan,
    setup::{Wish, journal::Recovered, threads::Terms},
    store::{Store, check_name},
    sys::sched::Policy,
    units::Nanos,
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
pub(super) struct RunFlags {
    /// What to measure [default: timer]
    #[arg(value_name = "PROBE", value_parser = probe_name())]
    probe: Option<&'static ProbeInfo>,
    #[command(flatten)]
    length: LengthFlags,
    #[command(flatten)]
    timer: TimerFlags,
    #[command(flatten)]
    messages: MessageFlags,
    #[command(flatten)]
    noise: NoiseFlags,
    #[command(flatten)]
    inversion: InversionFlags,
    #[command(flatten)]
    irq: IrqFlags,
    #[command(flatten)]
    audio: AudioFlags,
    #[command(flatten)]
    bandwidth: BandwidthFlags,
    #[command(flatten)]
    interactive: InteractiveFlags,
    #[command(flatten)]
    attach: AttachFlags,
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

/// A probe by its name in the table.
pub(super) fn probe_name() -> impl TypedValueParser<Value = &'static ProbeInfo> {
    let value = |probe: &ProbeInfo| PossibleValue::new(probe.name).help(probe.help);
    PossibleValuesParser::new(PROBES.iter().map(value)).try_map(|name: String| {
        ProbeInfo::find(&name).ok_or_else(|| format!("no probe is called {name}"))
    })
}

/// Measures, records, and prints the result.
pub(super) fn run(flags: RunFlags, store: &Store, argv: Vec<String>) -> Result<Exit> {
    let asked = flags.asked_result()?;
    let (quiet, live) = (asked.quiet, flags.record.live);
    let is_bare = flags.probe.is_none() && !flags.has_load();
    let left = recover_first(quiet);
    let (name, gates) = (flags.record.name.clone(), flags.gates.find(store)?);
    let attached = flags.attach.clone();
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
    let ended = attached.exit(&document);
    let found = gates.decide_held(&held);
    let decided = found.as_ref().ok().and_then(Option::as_deref);
    // What was measured is shown also where a gate names a series that did not come.
    asked.put(&document, (&held, &directory.display().to_string()), decided)?;
    let exit = exit_of_setup(&document);
    Ok(exit.worst(ended).worst(gates::exit(&document, found?.as_deref())))
}

/// Measures and records for the drop-in of cyclictest, and prints no result.
///
/// # Errors
/// As [`run`].
pub(super) fn record(
    flags: RunFlags,
    store: &Store,
    argv: Vec<String>,
) -> Result<(Document, RunDirectory)> {
    let (quiet, live) = (flags.record.quiet, flags.record.live);
    let left = recover_first(quiet);
    let mut plan = flags.plan(store, argv).map_err(|error| name_holder(error, &left))?;
    plan.left = left;
    measure(plan, quiet, live, UserSignal::ShowsStatus)
}

impl RunFlags {
    /// What to print at the end.
    fn asked_result(&self) -> Result<ResultFlags> {
        self.format.refuse_with_json("--interrupts", self.record.interrupts)?;
        Ok(ResultFlags {
            json: self.format.is_json(),
            quiet: self.record.quiet,
            interrupts: self.record.interrupts,
            deadline: self.deadline.clone(),
        })
    }

    fn has_load(&self) -> bool {
        !self.loads.is_empty()
    }

    /// Refuses what [`run`] would refuse before it changes anything, and what no block of a
    /// comparison can be.
    ///
    /// # Errors
    /// The option, and the remedy.
    pub(super) fn check(self, store: &Store) -> Result<()> {
        let plan = self.plan(store, Vec::new())?;
        ensure!(
            !planned::series_of(&plan).is_empty() || plan.probe.finds_series(),
            "{} measures no latencies, and latencies are compared; measure each side by `tardy \
             run`, and have their figures side by side by `tardy report`",
            plan.probe.name()
        );
        Ok(())
    }

    /// What blocks of a comparison have besides what was typed. Threads of others run already, and
    /// need little warm-up; after a prepare command they may be just starting.
    pub(super) fn defaults_of_blocks(&self, typed: &ArgMatches, is_prepared: bool) -> Vec<String> {
        if self.probe.is_none_or(|probe| probe.rhythm != Rhythm::Attached) {
            return Vec::new();
        }
        let is_typed = |id: &str| typed.value_source(id) == Some(ValueSource::CommandLine);
        let mut words = Vec::new();
        words.extend((!is_typed("warmup")).then(|| "--warmup=100ms".to_owned()));
        let waits = is_prepared && !is_typed("wait_for_threads");
        words.extend(waits.then(|| "--wait-for-threads=10s".to_owned()));
        words
    }

    /// The threads that it attaches to may come only before it measures.
    pub(super) const fn threads_may_come(&mut self) {
        self.attach.may_come();
    }

    /// Checks everything that can be checked before anything is changed.
    fn plan(self, store: &Store, argv: Vec<String>) -> Result<RunPlan> {
        let probe = self.probe.unwrap_or(DEFAULT_PROBE);
        self.check_flags(probe)?;
        let loads = self.loads.specs()?;
        let (cpus, places) = self.measured_cpus(probe)?;
        let usual = noise::usual_policy(probe);
        let policy = self.setup.policy(Nanos(self.timer.interval_ns()), usual)?;
        match probe.rhythm {
            Rhythm::Interval
            | Rhythm::Contest
            | Rhythm::Interrupts
            | Rhythm::Cycles
            | Rhythm::Attached => {}
            Rhythm::Messages | Rhythm::Rounds => {
                messages::check_policy(probe.name, policy.value)?;
            }
            Rhythm::Spin => noise::check_policy(policy.value, &cpus, &allowed_cpus()?)?,
            Rhythm::Tasks => self.check_tasks(policy.value, &cpus)?,
        }
        let priority = Wish::new(self.setup.priority, DEFAULT_PRIORITY);
        self.check_priorities(policy.value, priority.value)?;
        let (policy, priority, found) = self.settle(probe, policy, priority)?;
        let (found_policy, found_priority, refused) = found;
        let wishes = self.setup.wishes(&cpus)?;
        let slack_ns = u64::try_from(self.setup.timer_slack.0).unwrap_or(1).max(1);
        let terms =
            Terms { policy: found_policy, priority: found_priority, cpu: places.0, slack_ns };
        let (held, id) = match &self.record.part_of {
            Some(part) => (Some(part.directory()?), part.id.clone()),
            None => (None, new_id()?),
        };
        let length = self.length.of(probe, self.attach.has_command());
        let deadline_ns = self.deadline.all_ns();
        let peak_over_ns = deadline_ns.filter(|_| probe.rhythm == Rhythm::Interrupts);
        let (directory, name) = self.place(store, &id)?;
        let is_attached = probe.rhythm == Rhythm::Attached;
        if !is_attached {
            self.deadline.refuse_names(probe.name)?;
        }
        let (probe, interval_ns) = self.probe(probe, &cpus, terms, places.1)?;
        Ok(RunPlan {
            probe,
            loads,
            length,
            interval_ns,
            warmup_ns: self.length.warmup.0,
            stop_over_ns: self.length.stop_over.map(|over| over.0),
            foreign_trace: self.length.foreign_trace()?,
            deadline_ns,
            raw: self.record.raw,
            cpus,
            policy: (policy, found_policy),
            priority: (priority, found_priority),
            slack_ns,
            // Another program is looked at as it is.
            hold_dma_latency: !self.setup.no_dma_latency && !is_attached,
            wishes,
            trace: self.trace.wish(peak_over_ns)?,
            found_in_log,
            calibrations: self.trace.calibrations(store),
            profile_hz: self.trace.profile_hz(),
            real_time_refused: refused,
            left: Recovered::Nothing,
            directory,
            held,
            name,
            id,
            argv: part_of::without(argv),
        })
    }

    /// Refuses flags that are not supported with that probe.
    fn check_flags(&self, probe: &ProbeInfo) -> Result<()> {
        self.messages.check(probe.name)?;
        self.noise.check(probe)?;
        self.inversion.check(probe)?;
        self.irq.check(probe)?;
        self.audio.check(probe)?;
        self.timer.check_fake(probe.name, self.has_load())?;
        let of_latencies =
            [("--raw", self.record.raw), ("--stop-over", self.length.stop_over.is_some())];
        self.bandwidth.check(probe, &of_latencies)?;
        self.interactive.check(probe)?;
        self.attach.check(probe, &self.of_own_threads())?;
        if probe.rhythm != Rhythm::Interval {
            self.timer.check(probe)?;
        }
        Ok(())
    }

    /// Flags that are about threads of tardy, and whether they are given.
    fn of_own_threads(&self) -> [(&'static str, bool); 9] {
        let [policy, priority, slack, shield] = self.setup.of_threads();
        [
            policy,
            priority,
            slack,
            shield,
            ("--trace stages", self.trace.is_stages()),
            ("--calibrate", self.trace.calibrates()),
            ("--cpus", self.timer.cpus.is_some()),
            ("--raw", self.record.raw),
            ("--samples", self.length.samples.is_some()),
        ]
    }

    fn check_priorities(&self, policy: Policy, priority: u32) -> Result<()> {
        if !policy.is_real_time() {
            if self.setup.priority.is_some() {
                bail!("--priority is not supported with --policy {policy}; leave one of them out");
            }
            return Ok(());
        }
        self.timer.check_step(priority)
    }

    /// Where the run goes, and its name where it has one beside its id.
    fn place(&self, store: &Store, id: &str) -> Result<(PathBuf, Option<String>)> {
        let name = self.record.name.as_ref();
        if let Some(name) = name {
            check_name(name)?;
        }
        if let Some(directory) = &self.record.output {
            return Ok((directory.clone(), name.cloned()));
        }
        let Some(name) = name else { return Ok((store.place(id), None)) };
        let (place, name) = store.free_place(name);
        Ok((place, Some(name)))
    }
}

const DEFAULT_PRIORITY: u32 = 90;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::{probes::Probe, run::probes::Traceable};

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        flags: RunFlags,
    }

    fn made(probe: &'static ProbeInfo) -> (Box<dyn Probe>, i64) {
        let mut words = vec!["run", probe.name];
        words.extend((probe.name == "receive").then_some("--listen=0"));
        words.extend((probe.name == "attach").then_some("--pid=1"));
        let flags = Typed::try_parse_from(words).unwrap().flags;
        assert_eq!(flags.probe, Some(probe));
        let cpu = allowed_cpus().unwrap().iter().next().unwrap();
        let terms = Terms { policy: Policy::Other, priority: 0, cpu, slack_ns: 1 };
        flags.probe(probe, &[cpu].into_iter().collect(), terms, cpu).unwrap()
    }

    #[test]
    fn every_probe_of_the_table_can_be_named_and_made() {
        // Audio is made from what a server says, so that it needs one.
        for probe in PROBES.iter().filter(|probe| probe.rhythm != Rhythm::Cycles) {
            let (made, interval_ns) = made(probe);
            assert_eq!(made.name(), probe.name);
            assert!(interval_ns > 0, "{}", probe.name);
            let traceable = (made.can_be_traced(), made.is_traced_on_request());
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

//! `tardy run`: from flags to a plan, from the plan to a run.

mod making;
mod planned;
mod result;

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};

use self::{making::allowed_cpus, result::ResultFlags};
use super::{
    Exit,
    bandwidth::BandwidthFlags,
    cyclictest::EXAMPLES,
    flags::{DeadlineFlags, FormatFlags, HowLong, LoadFlags, duration, positive, samples},
    gates::{self, GateFlags},
    interactive::InteractiveFlags,
    inversion::{self, InversionFlags},
    irq::IrqFlags,
    messages::{self, MessageFlags},
    noise::{self, NoiseFlags},
    output,
    progress::RunStatus,
    runs::new_id,
    setup::{SetupFlags, name_holder, recover_first},
    timer::TimerFlags,
    trace::TraceFlags,
};
use crate::{
    plain::plain,
    run::probes::{DEFAULT_PROBE, PROBES, ProbeInfo, Rhythm},
    session::{CALIBRATION_NS, Length, RunPlan, RunProgress, Session},
    setup::{
        Wish,
        journal::Recovered,
        threads::{self, Terms},
    },
    store::{Store, is_plain},
    sys::{sched::Policy, signals::Quit},
    units::{Nanos, span},
};

/// Measure how late this machine responds, as it is or under a load, and record it.
///
/// A bare `tardy run` measures timer wake-ups on every CPU for 60 s. It starts no load: that is
/// asked for by --load.
///
/// A kill or a full disk costs at most the last second of the record. A power cut costs what the
/// kernel had not written yet, by its defaults up to half a minute, of single samples (--raw) up to
/// 45 s; when tardy has ended, the disk holds the whole run.
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
    bandwidth: BandwidthFlags,
    #[command(flatten)]
    interactive: InteractiveFlags,
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
#[command(next_help_heading = "Length")]
struct LengthFlags {
    /// How long to measure: 10s, 1d, or inf [default: 60s; pingpong: 1M samples]
    ///
    /// inf measures until Ctrl-C, SIGTERM or SIGHUP. That is then the end that was asked for: the
    /// run is complete, with the exit code of any other, and all until then is kept. Intervals of
    /// its log grow with it, so that a month takes little more memory and disk than a day.
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "samples")]
    #[arg(allow_hyphen_values = true)]
    duration: Option<HowLong>,
    /// Number of samples per thread, instead of a time: 1000, 50k, 300M
    #[arg(long, value_name = "N", value_parser = samples)]
    samples: Option<u64>,
    /// How long to run the probe before recording starts
    #[arg(long, value_name = "TIME", default_value = "1s")]
    warmup: Nanos,
    /// End the run at the first latency above this, with exit code 1
    #[arg(long, value_name = "TIME", value_parser = positive)]
    stop_over: Option<Nanos>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct RecordFlags {
    /// Also keep every single sample, as Parquet files
    #[arg(long)]
    raw: bool,
    /// Directory for the run, instead of a new one in the store
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Name of the run and of its directory
    ///
    /// Where that is taken the run becomes NAME-2, NAME-3 and so on, and nothing is overwritten;
    /// `tardy rm` removes runs.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Also print how often each CPU was interrupted, and by what
    #[arg(long, conflicts_with = "quiet")]
    interrupts: bool,
    /// Print only the result: no progress, no hints
    ///
    /// As text that is the verdict and the headline, a line each; `tardy show` has the rest.
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
    let quiet = asked.quiet;
    let is_bare = flags.probe.is_none() && !flags.has_load();
    let left = recover_first(quiet);
    let (name, gates) = (flags.record.name.clone(), flags.gates.find(store)?);
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
    let quit = Quit::listen().context("cannot set a signal handler")?;
    let session = Session::arm(plan)?;
    if session.calibrates() && !quiet {
        let length = span(CALIBRATION_NS as f64 / 1e9);
        output::notice(&format!("First measuring the cost of tracing, for {length}."));
    }
    let held = session.directory();
    let mut status = RunStatus::new(quiet);
    quit.rings(session.bell()).context("cannot set a signal handler")?;
    let pace = status.pace();
    let each = |elapsed_ns: i64, now: &dyn Fn() -> RunProgress| status.show(elapsed_ns, now);
    let document = session.run(|| quit.seen().map(signal_name), pace.map(|pace| (pace, each)))?;
    status.clear();
    let found = gates.decide_held(&held)?;
    let gates = found.as_deref();
    asked.put(&document, (&held, &directory.display().to_string()), gates)?;
    Ok(gates::exit(&document, gates))
}

fn signal_name(number: usize) -> String {
    match i32::try_from(number) {
        Ok(libc::SIGINT) => "Ctrl-C".into(),
        Ok(libc::SIGTERM) => "SIGTERM".into(),
        Ok(libc::SIGHUP) => "SIGHUP".into(),
        _ => format!("signal {number}"),
    }
}

impl RunFlags {
    /// What to print at the end.
    fn asked_result(&self) -> Result<ResultFlags> {
        self.format.refuse_with_json("--interrupts", self.record.interrupts)?;
        Ok(ResultFlags {
            json: self.format.is_json(),
            quiet: self.record.quiet,
            interrupts: self.record.interrupts,
            deadline: self.deadline,
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
            !planned::series_of(&plan).is_empty(),
            "{} measures no latencies, and latencies are compared; measure each side by `tardy \
             run`, and have their figures side by side by `tardy report`",
            plan.probe.name()
        );
        Ok(())
    }

    /// Checks everything that can be checked before anything is changed.
    fn plan(self, store: &Store, argv: Vec<String>) -> Result<RunPlan> {
        let probe = self.probe.unwrap_or(DEFAULT_PROBE);
        self.messages.check(probe.name)?;
        self.noise.check(probe)?;
        self.inversion.check(probe)?;
        self.irq.check(probe)?;
        self.timer.check_fake(probe.name, self.has_load())?;
        let loads = self.loads.specs()?;
        let (cpus, places) = self.measured_cpus(probe)?;
        let usual = noise::usual_policy(probe);
        let policy = self.setup.policy(Nanos(self.timer.interval_ns()), usual)?;
        let of_latencies =
            [("--raw", self.record.raw), ("--stop-over", self.length.stop_over.is_some())];
        self.bandwidth.check(probe, &of_latencies)?;
        self.interactive.check(probe)?;
        if probe.rhythm != Rhythm::Interval {
            self.timer.check(probe)?;
        }
        match probe.rhythm {
            Rhythm::Interval | Rhythm::Contest | Rhythm::Interrupts => {}
            Rhythm::Messages | Rhythm::Rounds => {
                messages::check_policy(probe.name, policy.value)?;
            }
            Rhythm::Spin => noise::check_policy(policy.value, &cpus, &allowed_cpus()?)?,
            Rhythm::Tasks => self.check_tasks(policy.value, &cpus)?,
        }
        let priority = Wish::new(self.setup.priority, DEFAULT_PRIORITY);
        self.check_priorities(policy.value, priority.value)?;
        let (found_policy, found_priority, refused) = match probe.rhythm {
            Rhythm::Contest => inversion::settle(policy, priority)?,
            _ => threads::settle(policy, priority)?,
        };
        let wishes = self.setup.wishes(&cpus)?;
        let slack_ns = u64::try_from(self.setup.timer_slack.0).unwrap_or(1).max(1);
        let terms =
            Terms { policy: found_policy, priority: found_priority, cpu: places.0, slack_ns };
        let id = new_id()?;
        let length = self.length(probe);
        let deadline = self.deadline.deadline.filter(|_| probe.rhythm == Rhythm::Interrupts);
        let peak_over_ns = deadline.map(|time| time.0);
        let (directory, name) = self.place(store, &id)?;
        let (probe, interval_ns) = self.probe(probe, &cpus, terms, places.1)?;
        Ok(RunPlan {
            probe,
            loads,
            length,
            interval_ns,
            warmup_ns: self.length.warmup.0,
            stop_over_ns: self.length.stop_over.map(|over| over.0),
            deadline_ns: self.deadline.deadline.map(|time| time.0),
            raw: self.record.raw,
            cpus,
            policy: (policy, found_policy),
            priority: (priority, found_priority),
            slack_ns,
            hold_dma_latency: !self.setup.no_dma_latency,
            wishes,
            trace: self.trace.wish(peak_over_ns)?,
            calibrations: self.trace.calibrations(store),
            profile_hz: self.trace.profile_hz(),
            real_time_refused: refused,
            left: Recovered::Nothing,
            directory,
            name,
            id,
            argv,
        })
    }

    fn length(&self, probe: &ProbeInfo) -> Length {
        match (self.length.samples, self.length.duration) {
            (Some(samples), _) => Length::Samples(samples),
            (None, Some(HowLong::Time(time))) => Length::Time(time.0),
            (None, Some(HowLong::Unlimited)) => Length::Unlimited,
            (None, None) => {
                probe.default_samples.map_or(Length::Time(DEFAULT_DURATION.0), Length::Samples)
            }
        }
    }

    fn check_priorities(&self, policy: Policy, priority: u32) -> Result<()> {
        if !policy.is_real_time() {
            if self.setup.priority.is_some() {
                bail!("--priority has no meaning with --policy {policy}; leave one of them out");
            }
            return Ok(());
        }
        self.timer.check_step(priority)
    }

    /// Where the run goes, and its name where it has one beside its id.
    fn place(&self, store: &Store, id: &str) -> Result<(PathBuf, Option<String>)> {
        let name = self.record.name.as_ref();
        if let Some(name) = name {
            ensure!(is_plain(name), "--name {name:?}: a name may not contain / or be . or ..");
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
const DEFAULT_DURATION: Nanos = Nanos(60_000_000_000);

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
        let flags = Typed::try_parse_from(words).unwrap().flags;
        assert_eq!(flags.probe, Some(probe));
        let cpu = allowed_cpus().unwrap().iter().next().unwrap();
        let terms = Terms { policy: Policy::Other, priority: 0, cpu, slack_ns: 1 };
        flags.probe(probe, &[cpu].into_iter().collect(), terms, cpu).unwrap()
    }

    #[test]
    fn every_probe_of_the_table_can_be_named_and_made() {
        for probe in PROBES {
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

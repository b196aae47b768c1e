//! `tardy why`: what made the wake-ups of a run late.

mod blocks;
mod fix;

use anyhow::{Result, bail, ensure};
use clap::Args;

use super::{
    Exit,
    deadline::named,
    flags::{FormatFlags, WithoutFlags},
    output,
};
use fix::FixFlags;

use crate::{
    report::{
        intervals::RunLog,
        why::{self, PeakFilter, PeakView},
    },
    run::{Run, peaks::Cause},
    store::Store,
    units::Nanos,
};

/// The question that follows a verdict.
const REMEDIES: &str = "\
What to do about a cause:
  thread           compare the priorities: run --policy fifo; or shield the CPU
  non-preemptible  a kernel with preempt=full or PREEMPT_RT; see the stack
  interrupts off   the stack shows the driver, or the console, that disabled them
  hard interrupt   move it: /proc/irq/N/smp_affinity_list; or shield the CPU
  softirq          steer its source to another CPU; or PREEMPT_RT
  host             no fix inside the virtual machine; reserve a CPU on its host
  tracing          run --stacks off, or --trace off

All causes are explained in docs/reference/causes.md, which the Debian package
installs as /usr/share/doc/tardy/docs/reference/causes.md.";

/// Explain late wake-ups: verdict, causes, worst peaks
#[derive(Debug, Args)]
#[command(after_help = REMEDIES)]
pub(super) struct WhyFlags {
    /// A path, a name, the beginning of an id, `last` or `last~1`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    #[command(flatten)]
    without: WithoutFlags,
    #[command(flatten)]
    format: FormatFlags,
    /// How many of the worst peaks to explain: a number, or all
    ///
    /// JSON output has all that were kept.
    #[arg(
        long,
        value_name = "COUNT",
        default_value = "3",
        value_parser = shown,
        conflicts_with = "oneline",
        help_heading = "Peaks"
    )]
    peaks: usize,
    /// All peaks, a line each: when, how late, and the main cause
    #[arg(long, help_heading = "Peaks")]
    oneline: bool,
    /// Only peaks of this series, e.g. cpu0; the name of an attached thread selects its wake-ups
    /// and responses
    #[arg(long, value_name = "NAME", help_heading = "Peaks")]
    series: Option<String>,
    /// Only peaks that woke up on this CPU
    #[arg(long, value_name = "CPU", help_heading = "Peaks")]
    cpu: Option<u32>,
    /// Only peaks with this main cause, e.g. softirq or irqs_off
    #[arg(long, value_name = "CAUSE", value_parser = cause, help_heading = "Peaks")]
    cause: Option<Cause>,
    /// Only from this time of the run on: 90s
    #[arg(long, value_name = "TIME", help_heading = "Peaks")]
    since: Option<Nanos>,
    /// Only up to this time of the run: 2m
    #[arg(long, value_name = "TIME", help_heading = "Peaks")]
    until: Option<Nanos>,
    #[command(flatten)]
    fix: FixFlags,
}

fn shown(text: &str) -> Result<usize, String> {
    match text {
        "all" => Ok(usize::MAX),
        _ => text.parse().map_err(|_| "write a number, or all".into()),
    }
}

fn cause(text: &str) -> Result<Cause, String> {
    let named = Cause::ALL.into_iter().find(|cause| cause.code() == text);
    named.ok_or_else(|| {
        let known = Cause::ALL.map(Cause::code).join(", ");
        format!("no cause is called so; use one of {known}")
    })
}

impl WhyFlags {
    fn filter(&self) -> Result<PeakFilter> {
        if let (Some(since), Some(until)) = (self.since, self.until) {
            ensure!(
                since <= until,
                "--since {} is after --until {}, so that no peak can lie between them; swap them, \
                 or leave one out",
                since.typed(),
                until.typed()
            );
        }
        let (series, cpu, cause) = (self.series.clone(), self.cpu, self.cause);
        let [since_ns, until_ns] = [self.since, self.until].map(|time| time.map(|time| time.0));
        Ok(PeakFilter { series, cpu, cause, since_ns, until_ns })
    }
}

/// Refuses a series that the run does not have.
fn check_series(series: &str, run: &Run) -> Result<()> {
    let known = || run.document.series.iter().map(|own| own.name.as_str());
    if known().any(|name| name == series) {
        return Ok(());
    }
    let whole: Vec<&str> = run.document.wakeups().map(|own| own.name.as_str()).collect();
    bail!(
        "--series {series}: {} has no such series; there are {}",
        run.document.name,
        named(&whole)
    )
}

/// Prints the explanation.
pub(super) fn why(flags: &WhyFlags, store: &Store, argv: Vec<String>) -> Result<Exit> {
    let filter = flags.filter()?;
    ensure!(
        flags.fix.fix.is_none() || !flags.without.is_given(),
        "--fix tries something on this machine, and no run of it is without the host: leave out \
         --without host"
    );
    let mut run = flags.without.of(store.find(&flags.run)?)?;
    // With what the log says of the run, the verdict is that of `tardy show`.
    if let Ok(log) = RunLog::read(&run) {
        let found = log.blocks().caveats(&run.document);
        found.into_iter().for_each(|kind| run.add_caveat(kind.into()));
    }
    let (mut why, document) = why::document(&run)?;
    if let Some(number) = flags.fix.fix {
        return fix::run(&flags.fix, number, flags.format.is_json(), (&why, &run), store, argv);
    }
    if let Some(series) = &filter.series {
        check_series(series, &run)?;
    }
    let kept = why.peaks.len();
    why.peaks.retain(|peak| filter.takes(peak, &document));
    let none_fits = why.peaks.is_empty() && kept > 0;
    if flags.format.is_json() {
        output::put_json(&why)?;
        if none_fits {
            output::notice(&filter.none_fits(kept));
        }
    } else {
        let view = match flags.oneline {
            _ if none_fits => PeakView::NoneFits(filter, kept),
            true => PeakView::List,
            false => PeakView::Timelines(flags.peaks),
        };
        let place = run.path.display().to_string();
        output::put(&why::text(&why, &document, &place, view))?;
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        flags: WhyFlags,
    }

    fn filter(words: &[&str]) -> Result<PeakFilter> {
        Typed::try_parse_from([&["why"][..], words].concat()).unwrap().flags.filter()
    }

    #[test]
    fn an_end_before_the_beginning_is_refused_with_both() {
        let error = filter(&["--since", "2m", "--until", "90s"]).unwrap_err().to_string();
        assert!(error.starts_with("--since 2m is after --until 90s"), "{error}");
        let same = filter(&["--since", "90s", "--until", "1.5m"]).unwrap();
        assert_eq!((same.since_ns, same.until_ns), (same.until_ns, Some(90_000_000_000)));
    }
}

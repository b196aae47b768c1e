//! `tardy hwlatdetect`: its options and its output, by the kernel's own tracer. Also where tardy is
//! called by the name hwlatdetect.

mod lengths;
mod printed;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use clap::{
    Args,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

use self::lengths::{microseconds, seconds};
use super::{Exit, output, report};
use crate::{
    kernel::tracefs::TracefsUnavailable,
    session::hwlat::{HwlatDetector, HwlatRequest},
    sys::{cpus::Cpus, signals::Quit},
};

/// As there, s.
const DURATION_S: u64 = 120;

/// Run with hwlatdetect's options and output format
///
/// The kernel's hwlat tracer reads the clock with interrupts off and records gaps: what firmware or
/// hardware took. It runs in its own instance, and tardy restores every setting at the end; after a
/// kill, `tardy restore` does. No run is saved. Needs root and a kernel with CONFIG_HWLAT_TRACER;
/// `tardy run noise` needs neither. A link to tardy with the name hwlatdetect does the same.
#[derive(Debug, Args)]
#[command(infer_long_args = true)]
pub(super) struct HwlatdetectFlags {
    /// How long: seconds, or a number with s, m, h, d or w [default: 120]
    #[arg(long, value_name = "SPAN", value_parser = seconds)]
    duration: Option<u64>,
    /// Record gaps longer than this: us, or a number with us, ms or s [default: 10]
    #[arg(long, value_name = "TIME", value_parser = microseconds)]
    threshold: Option<u64>,
    /// Exit with 1 if a gap is longer than this [default: the threshold]
    #[arg(long, value_name = "TIME", value_parser = microseconds)]
    hardlimit: Option<u64>,
    /// Time from one measurement to the next [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = microseconds)]
    window: Option<u64>,
    /// How long each measurement is [default: 500ms]
    #[arg(long, value_name = "TIME", value_parser = microseconds)]
    width: Option<u64>,
    /// Write the samples to this file, too
    #[arg(long, value_name = "FILENAME")]
    report: Option<PathBuf>,
    /// CPUs that the kernel measures, one after another [default: all]
    #[arg(long, value_name = "CPUS")]
    cpu_list: Option<Cpus>,
    /// Print each setting that is changed
    #[arg(long)]
    debug: bool,
    /// Print only the result: no progress, no hints
    #[arg(long)]
    quiet: bool,
    /// Print each sample when it comes
    #[arg(long)]
    watch: bool,
}

/// Options that are not here, and what tardy has.
const REFUSED: [(&str, &str); 2] = [
    ("--cleanup", "`tardy restore` restores what a killed tardy left"),
    ("--json", "`tardy run noise` saves a run, and `tardy show last --json` prints it"),
];

/// What tardy has instead of any other.
const NOISE: &str = "`tardy run noise` finds such gaps from user space, with further options";

/// Says what of tardy is meant where an option is not here.
pub(super) fn with_tip(mut error: clap::Error) -> clap::Error {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    if error.kind() != ErrorKind::UnknownArgument || !usage.contains("tardy hwlatdetect") {
        return error;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let known = REFUSED.iter().find(|(long, _)| flag == long);
    let way = known.map_or(NOISE, |(_, way)| way);
    error.remove(ContextKind::SuggestedArg);
    let tips = vec![StyledStr::from(format!("not covered here: {way}"))];
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    error
}

/// Measures, and prints what hwlatdetect would.
pub(super) fn hwlatdetect(flags: &HwlatdetectFlags, argv: &[String]) -> Result<Exit> {
    let quit = Quit::listen().context("cannot set a signal handler")?;
    let mut detector =
        HwlatDetector::prepare(&flags.request(), &argv.join(" ")).map_err(with_way)?;
    let measured = measure(flags, &mut detector, &quit);
    let failed = detector.restore();
    failed.iter().for_each(|what| {
        output::notice(&format!("not restored: {what}; `tardy restore` tries again"));
    });
    let exit = measured?;
    Ok(if failed.is_empty() { exit } else { Exit::Failed })
}

/// Says what tardy has without the tracer.
fn with_way(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<TracefsUnavailable>() {
        Some(_) => anyhow!("{error:#}. {NOISE}"),
        None => error,
    }
}

fn measure(flags: &HwlatdetectFlags, detector: &mut HwlatDetector, quit: &Quit) -> Result<Exit> {
    let settings = detector.settings;
    if flags.debug && !flags.quiet {
        detector.written.iter().try_for_each(|what| output::put(&format!("{what}\n")))?;
    }
    flags.inform(&printed::parameters(flags, settings))?;
    let length = std::time::Duration::from_secs(flags.seconds());
    let found = detector.detect(
        length,
        || quit.seen().is_some(),
        |record| if flags.watch { output::put(&printed::sample(record)) } else { Ok(()) },
    )?;
    if found.was_interrupted {
        output::put("interrupted\n")?;
    }
    if found.lost > 0 {
        output::warn(&format!("the kernel had no room for {} samples", found.lost));
    }
    flags.inform(&printed::result(&found.records, settings))?;
    let samples: String = found.records.iter().map(printed::sample).collect();
    if let Some(path) = &flags.report {
        report::write_quietly(path, samples.as_bytes())?;
        let (path, count) = (path.display(), found.records.len());
        output::put(&format!("report saved to {path} ({count} samples)\n"))?;
    }
    if !flags.watch {
        output::put(&samples)?;
    }
    let limit_us = flags.hardlimit.unwrap_or(settings.threshold);
    let is_over = printed::longest_us(&found.records) > limit_us;
    Ok(if is_over { Exit::No } else { Exit::Done })
}

impl HwlatdetectFlags {
    fn seconds(&self) -> u64 {
        self.duration.unwrap_or(DURATION_S)
    }

    fn request(&self) -> HwlatRequest {
        HwlatRequest {
            threshold_us: self.threshold,
            window_us: self.window,
            width_us: self.width,
            cpus: self.cpu_list.clone(),
        }
    }

    /// Prints what `--quiet` leaves out.
    fn inform(&self, text: &str) -> Result<()> {
        if self.quiet { Ok(()) } else { output::put(text) }
    }
}

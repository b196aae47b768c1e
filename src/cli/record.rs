//! `tardy record`: what every CPU did in the last seconds before a trigger.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread::sleep,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, builder::PossibleValuesParser};

use super::{Exit, flags::positive, output};
use crate::{
    draft::Draft,
    exchange::export::{ExportFormat, ExportWriter, TimelineWriter, TraceTimeline},
    plain::plain_path,
    run::recording::Recording,
    session::flight::FlightRecorder,
    sys::signals::{Quit, note_user_signal},
    units::{Nanos, count, span},
};

/// The trigger is looked for so often.
const PAUSE: Duration = Duration::from_millis(10);

/// Record what every CPU does, and keep the last seconds before a trigger
///
/// A flight recorder: the kernel records task switches, interrupts, softirqs, wake-ups of real-time
/// tasks and long functions of every CPU in a ring buffer. At the trigger tardy writes the last
/// seconds to a file for ui.perfetto.dev or other trace viewers. The trigger is Ctrl-C, SIGTERM, or
/// SIGUSR1; a file that is touched or created (--when-touched); or the end of --duration. To
/// trigger on a late wake-up, use `tardy run --stop-over 1ms --record 5s`, or for your own program
/// `tardy run attach --pid PID --stop-over 1ms --record 5s`.
#[derive(Debug, Args)]
#[command(after_help = "Needs root, or CAP_BPF and CAP_PERFMON. Takes 8 MiB of memory for each \
                        CPU.\n\nExit codes: 0 written; 2 error.")]
pub(super) struct RecordVerbFlags {
    /// How much time before the trigger to keep
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = positive)]
    last: Nanos,
    /// File to write; an existing one is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The format [default: chrome for a FILE that ends in .json, else perfetto]
    #[arg(long, value_name = "VIEWER", value_parser = formats())]
    to: Option<String>,
    /// Also stop when this file is touched or created
    #[arg(long, value_name = "FILE")]
    when_touched: Option<PathBuf>,
    /// Also stop after this time
    #[arg(long, value_name = "MOST", value_parser = positive)]
    duration: Option<Nanos>,
    /// Print only the result: no progress, no hints
    #[arg(long)]
    quiet: bool,
}

fn formats() -> PossibleValuesParser {
    PossibleValuesParser::new(ExportFormat::of_timelines().map(|format| format.name))
}

/// Records until the trigger, and writes.
pub(super) fn record(flags: &RecordVerbFlags) -> Result<Exit> {
    let write = flags.writer()?;
    let mut draft = flags.draft()?;
    let asked = note_user_signal().context("cannot set a signal handler")?;
    let quit = Quit::listen_without_user_signal().context("cannot set a signal handler")?;
    let trigger = Trigger::new(flags);
    let recorder = FlightRecorder::start().context("cannot record")?;
    if !flags.quiet {
        output::notice(&flags.announcement());
    }
    let why = trigger.wait(&quit, &asked);
    let (recording, lost) = recorder.finish(flags.last.0);
    if recording.moments.is_empty() {
        bail!("nothing was recorded: no CPU has an event");
    }
    let timeline = TraceTimeline::of_recording("tardy record", &recording);
    if !flags.quiet {
        output::notice(&format!("{why}."));
    }
    let written = draft.file().write_all(&write(&timeline)?).and_then(|()| draft.place_on_disk());
    written.with_context(|| format!("cannot write {}", plain_path(&flags.output)))?;
    output::notice(&format!("wrote {}", plain_path(&flags.output)));
    if !flags.quiet {
        lacks(&recording, lost).iter().for_each(|lack| output::notice(lack));
    }
    Ok(Exit::Done)
}

/// What of the time that was asked for is not in the file.
fn lacks(recording: &Recording, lost: u64) -> Vec<String> {
    let whole = span(Nanos(recording.until_ns - recording.from_ns).seconds());
    let cut = recording.cut().map(|(cpu, there_ns)| {
        let there = span(Nanos(there_ns.max(0)).seconds());
        format!("CPU {cpu} was so busy that only the last {there} of {whole} are there.")
    });
    let lost = (lost > 0).then(|| format!("{} events were lost.", count(lost)));
    cut.chain(lost).collect()
}

impl RecordVerbFlags {
    fn writer(&self) -> Result<TimelineWriter> {
        let is_json = self.output.extension().is_some_and(|ending| ending == "json");
        let usual = if is_json { "chrome" } else { "perfetto" };
        let name = self.to.as_deref().unwrap_or(usual);
        match ExportFormat::find(name).map(|format| format.write) {
            Some(ExportWriter::Timeline(write) | ExportWriter::TimelineFile(write)) => Ok(write),
            _ => bail!("--to {name}: no format of timelines"),
        }
    }

    /// The file to be, made before anything is recorded: at the end it would be too late to hear
    /// that it cannot be.
    fn draft(&self) -> Result<Draft> {
        let file = plain_path(&self.output);
        ensure!(!self.output.is_dir(), "-o {file}: this is a directory; name a file");
        Draft::beside(&self.output).with_context(|| format!("-o {file}: cannot be written"))
    }

    fn announcement(&self) -> String {
        let mut triggers = vec!["Ctrl-C".to_owned(), format!("kill -USR1 {}", std::process::id())];
        let touched = self.when_touched.as_deref().map(plain_path);
        triggers.extend(touched.map(|file| format!("touch {file}")));
        let most = self.duration.map(|time| format!(", or in {}", span(time.seconds())));
        format!(
            "Recording; the last {} are written at {}{}.",
            span(self.last.seconds()),
            triggers.join(" or "),
            most.unwrap_or_default()
        )
    }
}

/// What ends the recording besides signals.
struct Trigger<'a> {
    file: Option<(&'a Path, Option<SystemTime>)>,
    until: Option<Instant>,
}

impl<'a> Trigger<'a> {
    fn new(flags: &'a RecordVerbFlags) -> Self {
        let file = flags.when_touched.as_deref().map(|file| (file, touched(file)));
        let length = flags.duration.map(|time| Duration::from_nanos(time.0.unsigned_abs()));
        Self { file, until: length.and_then(|length| Instant::now().checked_add(length)) }
    }

    /// Why it ended.
    fn wait(&self, quit: &Quit, asked: &AtomicBool) -> String {
        loop {
            if let Some(signal) = quit.seen() {
                return super::progress::signal_name(signal);
            }
            if asked.load(Ordering::Relaxed) {
                return "SIGUSR1".into();
            }
            if let Some((file, _)) = self.file.filter(|(file, then)| touched(file) != *then) {
                return format!("{} was touched", plain_path(file));
            }
            if self.until.is_some_and(|until| Instant::now() >= until) {
                return "The time is over".into();
            }
            sleep(PAUSE);
        }
    }
}

/// When a file was changed last; `None` without such a file.
fn touched(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|data| data.modified()).ok()
}
